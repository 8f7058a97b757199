# SPDX-License-Identifier: BSD-2-Clause
"""Constants, classes and structs of C++: numbers of Python, memory in kernels, NumPy dtypes."""

from __future__ import annotations

import functools

import numba
import numpy as np
import pytest
from autolink_support import CC, build
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.platform import cuda_libraries

SOURCE = """
namespace my {
enum Color { red = 3, blue = -1 };
constexpr double tau = 6.28;
constexpr __device__ int twice(int x) { return 2 * x; }
struct Vector { float x, y; };
struct Particle { float mass; double charge; int n[3]; Vector v; Vector w[2]; bool alive; float* next; };
__device__ float norm(const Particle& p) { return p.mass + p.charge + p.v.x + p.w[1].y; }
__device__ Particle make(float mass) { Particle p{}; p.mass = mass; p.w[1].y = 5; return p; }
__device__ void move(Particle& p) { p.mass += 1; }
struct Rng {
    int state[5];
    __device__ Rng(int seed) { state[0] = seed; }
    __device__ int next(int step = 1) { return state[0] += step; }
    struct Inner { double d; };
};
__device__ int draw(Rng& r) { return r.next(); }
struct alignas(16) Wide { double d; __device__ Wide(double x) : d(x) {} };
class Private { int a; };
struct Derived : Vector { float z; };
}
"""
lib = autolink.cxx(SOURCE, namespace="my")


class TestConstants:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("sizeof(Particle)", 64),
            ("red", 3),
            ("blue", -1),
            ("Color::red", 3),
            ("tau", 6.28),
            ("1.5f", 1.5),
            ("twice(21)", 42),
            ("sizeof(int) == 4", True),
            ("~0ull", 2**64 - 1),
            ("'a'", 97),
        ],
    )
    def test_a_constant_expression_is_a_number(self, text, expected):
        found = lib.eval(text)
        assert found == expected and type(found) is type(expected)

    def test_any_name_is_taken_as_it_is(self):
        modes = autolink.cxx(
            "namespace files { enum { IS_OPEN = 1, TO_CLOSE = 2, LABEL_INSIDE = 3 }; }", namespace="files"
        )
        assert modes.eval("IS_OPEN + TO_CLOSE * LABEL_INSIDE") == 7

    def test_it_is_that_of_the_compute_capability(self):
        arch = autolink.cxx("constexpr int arch = __CUDA_ARCH__;")
        assert arch.eval("__CUDA_ARCH__", cc=(8, 0)) == 800
        assert arch.eval("__CUDA_ARCH__", cc="9.0a") == 900

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("Vector{}", r"Vector\{\} is not a number but a UniTuple\(float32 x 2\) of C\+\+"),
            ("missing", 'missing: identifier "missing" is undefined'),
            ("1 +", "expected an expression"),
        ],
    )
    def test_what_is_not_a_number_is_refused(self, text, message):
        with pytest.raises(autolink.CxxError, match=message):
            lib.eval(text)


class TestRecords:
    def test_the_dtype_has_the_members_of_the_struct(self):
        vector = np.dtype([("x", "f4"), ("y", "f4")])
        dtype = lib.record("Particle")
        assert dtype.names == ("mass", "charge", "n", "v", "w", "alive", "next")
        assert [dtype.fields[name][1] for name in dtype.names] == [0, 8, 16, 28, 36, 52, 56]
        assert dtype["n"] == np.dtype(("i4", 3)) and dtype["w"] == np.dtype((vector, 2)) and dtype.itemsize == 64

    def test_a_dtype_of_ones_own_is_compared(self):
        own = np.dtype([("x", np.float32), ("y", np.float32)])
        assert lib.record("Vector", own) == own
        with pytest.raises(autolink.CxxError, match=r"the dtype differs from the C\+\+ struct Vector\n  got: 8 bytes"):
            lib.record("Vector", np.dtype([("x", np.float32), ("z", np.float32)]))

    @pytest.mark.parametrize("name", ["Private", "float", "Color"])
    def test_what_is_not_a_struct_is_refused(self, name):
        with pytest.raises(autolink.CxxError, match=f"{name} is not a struct of numbers, pointers, arrays"):
            lib.record(name)

    def test_an_unknown_struct_is_refused(self):
        with pytest.raises(autolink.CxxError, match='identifier "Nothing" is undefined'):
            lib.record("Nothing")

    def test_a_record_that_no_struct_is_known_for_is_a_struct_with_its_fields(self):
        total = lib.expr("[](auto& r) { r.a += 1; return r.a + r.b[1]; }")
        record = numba.from_dtype(np.dtype([("a", np.float64), ("b", np.int32, 2)], align=True))
        assert total.signature(record).return_type == types.float64


class TestClasses:
    def test_size_and_alignment_are_those_of_cxx(self):
        rng, wide = lib.type("Rng"), lib.type("Wide")
        assert (rng.size, rng.align, wide.size, wide.align) == (20, 4, 16, 16)
        assert rng.dtype.itemsize == 20 and wide.alignment == 16
        assert rng.nested("Inner").size == 8

    def test_an_unknown_class_is_refused(self):
        with pytest.raises(autolink.CxxError, match='identifier "Nothing" is undefined'):
            lib.type("Nothing")


@pytest.mark.gpu(emulated=True)
class TestInKernels:
    def test_objects_keep_their_state(self):
        rng = lib.type("Rng")
        draw, next_ = lib.draw, rng.method("next")

        @cuda.jit
        def kernel(r):
            local = cuda.local.array(1, rng.dtype)
            shared = cuda.shared.array(2, rng.dtype)
            rng(local[0], 42)
            rng(shared[1], 7)
            r[0] = next_(local[0])
            r[1] = draw(local[0])
            r[2] = next_(shared[1], 5)
            r[3] = next_(shared[1])

        r = np.zeros(4, np.int32)
        kernel[1, 1](r)
        assert r.tolist() == [43, 44, 12, 13]

    def test_records_are_the_structs(self):
        dtype = lib.record("Particle")
        norm, move, make = lib.norm, lib.move, lib.make

        @cuda.jit
        def kernel(p, r):
            move(p[0])
            r[0] = norm(p[0])
            p[1] = make(r[0])

        p = np.zeros(2, dtype)
        p["mass"][0], p["charge"][0] = 1, 2
        r = np.zeros(1, np.float32)
        kernel[1, 1](p, r)
        assert r[0] == 4 and p["mass"].tolist() == [2, 4] and p["w"]["y"][1].tolist() == [0, 5]


def test_two_structs_of_one_dtype_are_an_error_and_two_names_of_one_struct_are_not():
    twins = autolink.cxx("struct First { int a; float b; }; struct Second { int a; float b; }; using Alias = First;")
    assert twins.record("First") == twins.record("Alias") == twins.record("const First")
    with pytest.raises(autolink.CxxError, match="Second and First have the same dtype"):
        twins.record("Second")


@pytest.mark.parametrize("name", ["Own;", "Own//", "Own /*", "Own\\"])
def test_a_type_is_its_name_alone_and_a_refused_one_leaves_the_library_as_it_was(name):
    own = autolink.cxx("struct Own { int a; }; __device__ int one() { return 1; }")
    own.record("Own")
    with pytest.raises(ValueError, match="a type of C\\+\\+ is its name alone"):
        own.record(name)
    assert str(own.one.signature(cc=(9, 0)).return_type) == "int32"


@pytest.mark.parametrize(
    "calls", [None, "one", {"one": []}, [("one",)], [(1, [])], [("one", None)], [("one", "int32")]]
)
def test_declare_says_what_it_takes(calls):
    with pytest.raises(TypeError, match=r"declare\(\) takes "):
        autolink.cxx("__device__ int one() { return 1; }").declare(calls, cc=(9, 0))


def test_options_that_are_not_a_dict_are_an_error():
    with pytest.raises(TypeError, match=r"cxx\(\) takes options as a dict, got list"):
        autolink.cxx("", options=["-std=c++20"])


@pytest.mark.parametrize("members", [": B { int b; }", "{ union { int a; float f; }; int b; }"])
def test_a_struct_that_no_tuple_is_like_is_named(members):
    odd = autolink.cxx(f"struct B {{ int a; }}; struct S {members}; __device__ S make() {{ return {{}}; }}")
    with pytest.raises(autolink.CxxError, match="S: a struct has a base class or an anonymous member"):
        odd.record("S")
    with pytest.raises(autolink.CxxError, match=r"make\(\)(: a struct has a base class| returns an object that only)"):
        odd.make.signature(cc=(9, 0))


def test_a_constant_may_begin_with_a_sign():
    """NVRTC takes the name of a source that begins with it for an option."""
    assert [autolink.cxx("").eval(text, cc=CC) for text in ("-1", "-2.5f")] == [-1, -2.5]


def test_a_changed_header_changes_constants_classes_and_structs_and_old_dtypes_are_refused(tmp_path):
    header = tmp_path / "layout.h"
    text = """
        constexpr int lanes = {lanes};
        struct Pair {{ float {first}, {second}; }};
        struct Counter {{ int n[{lanes}]; __device__ Counter() {{}} }};
        __device__ inline float first_of(const Pair& p) {{ return p.a; }}
        __device__ inline Pair made(float x) {{ return {{x, x}}; }}
    """
    header.write_text(text.format(lanes=2, first="a", second="b"))
    lib = autolink.cxx('#include "layout.h"', include_paths=[tmp_path])
    pair, counter = lib.record("Pair"), lib.type("Counter")
    assert lib.type("Counter") is counter

    def read(dtype):
        def kernel(pairs, r):
            r[0] = lib.first_of(pairs[0])

        return build(kernel, (numba.from_dtype(dtype)[::1], types.float32[::1])).code

    def take(x):
        x[0] = lib.made(x[0]).a

    def construct(x):
        objects = cuda.local.array(1, counter.dtype)
        counter(objects[0])

    before = read(pair)
    header.write_text(text.format(lanes=3, first="b", second="a"))
    compiled = functools.partial(build, signature="void(float32[::1])")
    for attempt in (lambda: read(pair), lambda: compiled(take), lambda: compiled(construct)):
        with pytest.raises(TypingError, match=r"the layout of (Pair|Counter) has changed in C\+\+"):
            attempt()
    assert (lib.eval("lanes"), lib.type("Counter").size) == (3, 12)
    assert lib.record("Pair") != pair
    assert read(lib.record("Pair")) != before
    compiled(take)


@pytest.mark.parametrize("ask", ["eval('1')", "type('int')", "record('P')", "f.signature('int32')", "declare([])"])
def test_without_nvrtc_each_question_says_that_it_is_missing(monkeypatch, ask):
    error = OSError("no libnvrtc")
    monkeypatch.setattr(cuda_libraries, "_load", lambda library: (None, error))
    with pytest.raises(autolink.LinkError, match=r"^C\+\+ cannot be asked: NVRTC, which .* was not found\n") as raised:
        eval(f"lib.{ask}", {"lib": autolink.cxx("")})
    assert raised.value.__context__ is error


CONSTRUCTED = """
struct Rng { unsigned s; __device__ Rng(unsigned seed, int stream) : s(seed + stream) {} };
struct V { float a, b; };
struct Two { int z; __device__ Two(int a) : z(a) {} __device__ Two(int a, int b, int c) : z(a) {} };
struct Holder { V v; __device__ Holder(V v) : v(v) {} };
template <class T> struct Pair { T z; __device__ Pair(T a, T b) : z(a) {} };
"""
constructed = autolink.cxx(CONSTRUCTED)


@pytest.mark.parametrize(
    ("name", "arguments", "diagnosis", "remedy"),
    [
        ("Rng", "5", "Rng takes (unsigned int, int), and the call passes 1 argument", "pass those, besides the object"),
        ("Rng", "1, 2, 3", "Rng takes (unsigned int, int), and the call passes 3 arguments", "pass those, besides"),
        ("Rng", "x, 2", "argument 2 is an array, where C++ takes a number", "pass one element of it, such as x[i]"),
        (
            "Two",
            "1, 2",
            "no instance of constructor",
            "as many arguments as one of these functions has parameters, besi",
        ),
        ("Holder", "x[0]", "argument 2 is a float32, and Holder takes V", "an element of an array of lib.record('V')"),
        ("Pair<float>", "1", "Pair<float> takes (T, T), and the call passes 1 argument", "pass those, besides"),
        ("V", "1, 2, 3", "V has no constructor that takes 3 arguments", "construct it without arguments, and assign"),
    ],
)
def test_a_constructor_that_takes_other_arguments(name, arguments, diagnosis, remedy):
    """Those that copy an object are no candidates of users."""
    made = constructed.type(name)
    names = {"made": made, "dtype": made.dtype, "cuda": cuda}
    exec(f"def kernel(x):\n    r = cuda.local.array(1, dtype)\n    made(r[0], {arguments})", names)
    with pytest.raises(TypingError) as caught:
        autolink.build(cuda.jit(names["kernel"]), "void(float32[::1])", cc=(9, 0))
    message = str(caught.value).partition("\n\n")[0]
    assert diagnosis in message.partition("\n")[0]
    assert remedy in message.partition("what to do: ")[2]
