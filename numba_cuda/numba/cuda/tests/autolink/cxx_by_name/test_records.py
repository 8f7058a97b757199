# SPDX-License-Identifier: BSD-2-Clause
"""Structs of any layout are records in Python: as elements of arrays, as arguments, and as results of C++ by name."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from autolink_support import build
from emulator_support import kernel_of, registered
from numba.cuda import autolink, types
from numba.cuda.autolink.cxx_by_name.records import _read_member_name
from numba.cuda.autolink.frontend_api.placed_messages import placed
from numba.cuda.core.errors import TypingError
from numba.cuda.np.numpy_support import from_dtype

lib = autolink.cxx("""
#pragma pack(push, 1)
struct Packed { char c; double d; };
#pragma pack(pop)
struct alignas(64) Over { double d; int n; };
struct Flags { bool b[3]; int n; };
struct Unnamed { int a; struct { float x, y; } p, q[2]; };
struct Many { double first; float v[40]; char name[32]; struct { char c; double d; } in[2]; };
struct Mixed { double first; Packed in[2]; };
struct __attribute__((packed, aligned(8))) Sly { char c[3]; double d; };  // of the size that it has without "packed"
struct Twenty { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t; };
struct Either { int a; union { int i; float f; }; };
struct Bits { int a : 3; };
struct Huge { float v[2000]; };

__device__ Packed packed(double x) { return {1, x}; }
__device__ Mixed mixed(double x) { return {x, {}}; }
__device__ Sly sly(double x) { return {{}, x}; }
__device__ void fill(Packed& p, double x) { p = {1, x}; }
__device__ void fill(Mixed& m, double x) { m.first = x; fill(m.in[1], 0.5); }
__device__ Over over(double x) { return {x, 7}; }
__device__ Flags flags(int i) { return {{true, false, true}, i}; }
__device__ Unnamed unnamed(int i) { Unnamed u{}; u.a = i; u.p.y = 2; u.q[1].x = 5; return u; }
__device__ Many many(int i) { Many m{}; m.first = i; m.v[39] = 4; m.name[31] = 8; m.in[1].d = 0.5; return m; }
__device__ Twenty twenty(int i) { Twenty t{}; t.a = i; t.t = 20; return t; }
__device__ Either either() { return {}; }
__device__ Bits bits() { return {}; }
__device__ Huge huge() { return {}; }

__device__ double value(const Packed& p) { return p.c + p.d; }
__device__ double value(const Over& p) { return p.d + p.n; }
__device__ double value(const Flags& f) { return f.b[0] + f.b[1] * 10 + f.b[2] * 100 + f.n * 1000; }
__device__ double value(const Unnamed& u) { return u.a + 10 * u.p.y + 100 * u.q[1].x; }
__device__ double value(const Many& m) { return m.first + m.v[39] * 10 + m.name[31] * 100 + m.in[1].d; }
__device__ double value(const Mixed& m) { return m.first + m.in[1].d; }
__device__ double value(const Twenty& t) { return t.a + t.t; }
__device__ void add(Packed* p, int n) { for (int i = 0; i < n; ++i) p[i].d += i + 1; }
""")


def test_a_field_that_a_record_does_not_have():
    """Numba raises a plain KeyError for it."""

    def kernel(flags):
        flags[0].n = flags[0].nn

    with pytest.raises(TypingError, match=r"a record has no field 'nn'; did you mean n\?\n") as raised:
        build(kernel, (types.Array(from_dtype(lib.record("Flags")), 1, "C"),))
    assert "  its fields: b, n" in str(raised.value)


def emulate(kernel, *arrays):
    """Run a kernel of one thread in the emulator, with records and all that C++ does to them."""
    signature = tuple(types.Array(from_dtype(array.dtype), 1, "C") for array in arrays)
    linked = build(kernel, signature, output="ptx")
    packed = b""
    for array in arrays:
        packed += struct.pack("<7q", 0, 0, array.size, array.itemsize, array.ctypes.data, *array.shape, *array.strides)
    with registered(*arrays):
        kernel_of(linked.code.decode().rstrip("\0")).launch((1, 1, 1), (1, 1, 1), packed)


def make_array(dtype, count):
    """Return an array in memory that is aligned to more than any struct."""
    memory = np.zeros(count * dtype.itemsize + 128, "u1")
    start = -memory.ctypes.data % 128
    return memory[start : start + count * dtype.itemsize].view(dtype)


class TestDtypes:
    @pytest.mark.parametrize(
        ("name", "offsets", "size"),
        [
            ("Packed", {"c": 0, "d": 1}, 9),
            ("Over", {"d": 0, "n": 8}, 64),
            ("Flags", {"b": 0, "n": 4}, 8),
            ("Unnamed", {"a": 0, "p": 4, "q": 12}, 28),
            ("Many", {"first": 0, "v": 8, "name": 168, "in": 200}, 232),
            ("Twenty", {name: 4 * number for number, name in enumerate("abcdefghijklmnopqrst")}, 80),
        ],
    )
    def test_the_fields_are_where_cxx_has_the_members(self, name, offsets, size):
        dtype = lib.record(name)
        assert {field: dtype.fields[field][1] for field in dtype.names} == offsets and dtype.itemsize == size

    def test_arrays_and_structs_inside_are_described(self):
        dtype = lib.record("Many")
        assert dtype["v"].shape == (40,) and dtype["in"].shape == (2,)
        assert dtype["in"].base.fields["d"] == (np.dtype("f8"), 8)
        assert lib.record("Unnamed")["q"].base.names == ("x", "y")
        assert lib.record("Flags")["b"].base == np.uint8

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("Either", "Either: a struct has a base class or an anonymous member, as no tuple or dtype has"),
            ("Bits", "Bits has a bit-field, as no dtype has"),
        ],
    )
    def test_what_no_dtype_has_is_refused_in_a_sentence(self, name, reason):
        with pytest.raises(autolink.CxxError) as caught:
            lib.record(name)
        assert str(caught.value).splitlines()[0] == reason


class TestInKernels:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [("Over", 10), ("Flags", 3101), ("Unnamed", 523), ("Many", 843.5), ("Twenty", 23)],
    )
    def test_results_are_stored_and_passed_on(self, cuda, name, expected):
        make, value = lib[name.lower()], lib.value
        dtype = lib.record(name)

        @cuda.jit
        def kernel(a, r, i):
            a[i] = make(3)
            r[0] = value(a[1])
            made = make(3)
            r[1] = value(made)

        a, r = make_array(dtype, 3), np.zeros(2)
        build(kernel, (from_dtype(dtype)[::1], types.float64[::1], types.int64)).emulate[1, 1](a, r, -2)
        assert r.tolist() == [expected, expected]
        assert a[0] == a[2] == np.zeros(1, dtype)[0] != a[1]

    def test_another_record_may_be_told_of_between_two_kernels_that_make_the_same_call(self, cuda):
        lib = autolink.cxx("""
            struct One { int n; };
            struct Other { float x; };
            __device__ One one(int n) { return {n}; }
            __device__ int value(One one) { return one.n; }
        """)
        results = []
        for name in ("One", "Other"):
            lib.record(name)

            @cuda.jit
            def kernel(r):
                r[0] = lib.value(lib.one(3))

            r = np.zeros(1)
            build(kernel, "void(float64[::1])").emulate[1, 1](r)
            results.append(r[0])
        assert results == [3, 3]

    @pytest.mark.parametrize(("name", "expected"), [("Packed", 4), ("Mixed", 3.5)])
    def test_packed_members_are_written_and_read_by_reference(self, name, expected):
        fill, value = lib.fill, lib.value

        def kernel(a, r):
            fill(a[1], 3.0)
            r[0] = value(a[1])

        a, r = np.zeros(3, lib.record(name)), np.zeros(1)
        emulate(kernel, a, r)
        assert r[0] == expected and a[0] == a[2] == np.zeros(1, a.dtype)[0]

    @pytest.mark.parametrize("name", ["packed", "mixed", "sly"])
    def test_a_result_with_packed_members_is_refused_since_cuda_may_lose_bytes_of_it(self, name):
        with pytest.raises(autolink.CxxError) as caught:
            lib[name].signature("float64")
        first, *_, last = str(caught.value).splitlines()
        assert (first, last) == (
            f"{name}(float64) returns a struct with packed members, of which CUDA's compiler may lose bytes",
            "  what to do: let C++ write it through a reference, to an element of an array of lib.record(...)",
        )

    def test_without_a_record_results_are_tuples(self):
        plain = autolink.cxx("struct S { char c; double d[20]; bool b[3]; }; __device__ S make(int i) { S s{}; s.c = i;"
                             " s.d[19] = 2.5; s.b[1] = true; return s; }")  # fmt: skip
        make = plain.make

        def kernel(r):
            c, d, b = make(3)
            r[0], r[1], r[2], r[3] = c, d[19], b[1], b[0]

        r = np.zeros(4)
        emulate(kernel, r)
        assert r.tolist() == [3, 2.5, 1, 0]

    def test_a_member_that_a_result_does_not_have_comes_with_those_that_it_has(self, cuda):
        lib = autolink.cxx("struct P { float first; float y; }; __device__ P f(float x) { return {x, x}; }")

        def kernel(x):
            x[0] = lib.f(x[0]).fist

        def stored(x):
            x[0] = lib.f(x[0])

        texts = []
        for function in (kernel, stored):
            with pytest.raises(Exception) as caught:
                autolink.build(cuda.jit(function), "void(float32[::1])", cc=(9, 0))
            short, *_ = str(caught.value).partition("\n\n")
            texts.append(placed(short))
        assert "'fist' of type Struct{first, y}(float32 x 2); did you mean first?\n" in texts[0]
        assert texts[0].endswith("\n  its members: first, y")
        assert "\n  what to do: assign its elements one by one: " in texts[1]

    def test_a_member_function_is_called_by_a_lambda_for_its_class(self, cuda):
        lib = autolink.cxx(
            "namespace n { template <class T> struct S { T a; __device__ T plus(T b) const { return a + b; } }; }"
            " __device__ n::S<float> f(float x) { return {x}; }"
        )

        def kernel(x):
            x[0] = lib.f(x[0]).plus(x[1])

        def other(x):
            x[0] = lib.f(x[0]).bcd

        texts = []
        for function in (kernel, other):
            with pytest.raises(Exception) as caught:
                autolink.build(cuda.jit(function), "void(float32[::1])", cc=(9, 0))
            short, *_ = str(caught.value).partition("\n\n")
            texts.append(short)
        assert texts[1].endswith("\n  what to do: use one of its members, such as a")
        lambda_text = re.search(r"plus = lib.expr\('(.*)'\) before the kernel, and plus\(...\) in it$", texts[0])[1]
        assert lambda_text == "[](n::S<float> x, auto... more) { return x.plus(more...); }"
        plus = lib.expr(lambda_text)

        def corrected(x):
            x[0] = plus(lib.f(x[0]), x[1])

        autolink.build(cuda.jit(corrected), "void(float32[::1])", cc=(9, 0))

    def test_arrays_of_them_are_pointers(self):
        add = lib.add
        a = np.zeros(3, lib.record("Packed"))

        def kernel(a):
            add(a, 2)

        emulate(kernel, a)
        assert a["d"].tolist() == [1, 2, 0]

    def test_a_result_that_no_value_can_be_is_refused(self):
        with pytest.raises(
            autolink.CxxError, match=r"huge\(\) returns 8000 bytes, and a value in a kernel has at most 4096"
        ):
            lib.huge.signature()


@pytest.mark.parametrize(
    "spelled", ["adL_ZNS_10nca_objectI1QEEE5nca_v1p3two1x", "ixL_ZNS_10nca_objectI1QEEE5nca_v1pLl0E3twoLl0E1x"]
)
def test_a_member_is_read_from_lowered_names_with_indices_and_from_those_of_nvrtc_13_0_without(spelled):
    assert _read_member_name(f"_ZN3nca15nca_tell_memberIXaddtdtdt{spelled}EEE") == "x"


packed = autolink.cxx("""
#pragma pack(push, 1)
struct Ones { char c; double d[2]; };
struct Large { char c; double d[20]; };
struct Place { int n; };
#pragma pack(pop)
#pragma pack(push, 4)
struct Fours { int n; double d[2]; };
#pragma pack(pop)
struct __attribute__((packed, aligned(2))) Twos { char c; double d; unsigned short s[3]; };
struct __attribute__((packed, aligned(8))) Sly { char c[3]; double d; int n; };
struct __attribute__((packed, aligned(8))) Pointing { char c; double* d; };
struct alignas(32) Aligned { int s; Place in; double d; };
struct Around { Fours in; double d; };

#define KEEP __device__ __noinline__
KEEP double taken(Ones a) { return a.c + a.d[1] * 10; }
KEEP double taken(Large a) { return a.c + a.d[19]; }
KEEP double taken(Fours a) { return a.n + a.d[1] * 10; }
KEEP double taken(Twos a) { return a.d; }
KEEP double taken(Sly a) { return a.d; }
KEEP double taken(Pointing a) { return *a.d; }
KEEP double taken(const Aligned a) { return a.s + a.in.n * 10 + a.d * 100; }
KEEP double taken(Around a) { return a.d; }
template <class A> KEEP double copied(A a) { return taken(a); }
template <class A> KEEP double referred(const A& a) { return taken(a); }
template <class A> __device__ auto deduced(const A& a) { return a.d; }
KEEP double written(Sly& a, int n) { return a.d = n; }
KEEP double first(Sly* a) { return a[1].d; }
""")


class TestArgumentsByValue:
    """With packed members. CUDA's compiler stores numbers that are aligned to no more than the argument where they are:
    bytes get lost there, or the kernel faults, if they are not aligned. It reads an argument of more than 128 bytes as
    if it were aligned to 4. Others arrive."""

    @pytest.mark.parametrize("function", ["taken", "copied", "referred"])
    @pytest.mark.parametrize(
        ("name", "values", "expected"),
        [("Ones", (3, (0, 5)), 53), ("Fours", (3, (0, 5)), 53), ("Aligned", (3, (4,), 5), 543)],
    )
    def test_some_arrive(self, front_end, function, name, values, expected):
        called = packed[function]

        def kernel(a, r):
            r[0] = called(a[1])

        a, r = make_array(packed.record(name), 2), np.zeros(1)
        a[1] = values
        signature = tuple(types.Array(from_dtype(each.dtype), 1, "C") for each in (a, r))
        build(front_end.cuda.jit(kernel), signature).emulate[1, 1](a, r)
        assert r[0] == expected

    @pytest.mark.parametrize("function", ["taken", "copied"])
    @pytest.mark.parametrize("name", ["Large", "Twos", "Sly", "Pointing", "Around"])
    def test_others_are_refused_at_the_line_of_the_call(self, front_end, function, name):
        called = packed[function]

        def kernel(a):
            called(a[1])

        array = types.Array(from_dtype(packed.record(name)), 1, "C")
        with pytest.raises(Exception) as caught:
            build(front_end.cuda.jit(kernel), (array,))
        lines = str(caught.value).splitlines()
        reason = f"{name} has packed members, which CUDA's compiler passes wrongly by value"
        assert lines[0] == f"{function}({name}): {reason}"
        assert f"  what to do: let C++ take a reference to it: const {name}&" in lines
        assert f"{kernel.__code__.co_filename}:{kernel.__code__.co_firstlineno + 1}" in str(caught.value)

    def test_so_are_elements_of_arrays(self):
        array = types.Array(from_dtype(packed.record("Sly")), 1, "C")
        with pytest.raises(autolink.CxxError, match=r"taken\(.*\): Sly has packed members"):
            packed.taken.passing("element").signature(array)

    def test_all_arrive_by_reference(self):
        referred, written, first = packed.referred, packed.written, packed.first

        def kernel(a, r):
            r[0] = referred(a[1])
            written(a[0], 7)
            r[1] = first(a[:2])

        a, r = make_array(packed.record("Sly"), 2), np.zeros(2)
        a[1] = ((0, 0, 0), 4, 0)
        emulate(kernel, a, r)
        assert r.tolist() == [4, 4] and a["d"].tolist() == [7, 4]

    def test_whether_a_template_that_deduces_its_result_copies_one_is_not_known(self):
        assert packed.deduced.signature(from_dtype(packed.record("Aligned"))).return_type == types.float64
        with pytest.raises(autolink.CxxError) as caught:
            packed.deduced.signature(from_dtype(packed.record("Sly")))
        reason = "whether a template copies Sly, which has packed members, is not known where its result is deduced"
        assert str(caught.value).splitlines()[0] == f"deduced(Sly): {reason}"
        assert str(caught.value).endswith("what to do: let C++ take a const Sly&, or declare the type of the result")


class TestPythonFunctions:
    """C++ hands a record on to them."""

    library = autolink.cxx("""
        struct Plain { int n; double d; };
        struct __attribute__((packed)) Packed { int n; double d; };
        struct alignas(32) Over { int n; double d; };
        template <class T, class F> __device__ double apply(const T& t, F f) { return f(t); }
    """)

    def test_plain(self):
        apply = self.library.apply

        def kernel(a, r):
            r[0] = apply(a[1], lambda p: p.n + p.d)

        a, r = make_array(self.library.record("Plain"), 2), np.zeros(1)
        a[1] = (3, 0.5)
        emulate(kernel, a, r)
        assert r[0] == 3.5

    @pytest.mark.parametrize("name", ["Packed", "Over"])
    def test_of_another_layout_is_refused(self, name):
        apply = self.library.apply

        def kernel(a, r):
            r[0] = apply(a[1], lambda p: p.n + p.d)

        array = types.Array(from_dtype(self.library.record(name)), 1, "C")
        reason = rf"the Python function lambda with {name}, which is packed, or aligned to more than its members"
        with pytest.raises(TypingError, match=reason):
            build(kernel, (array, types.float64[::1]))


@pytest.mark.parametrize("before", ["alignas(32)", "__attribute__((packed))"])
def test_a_record_with_a_struct_elsewhere_than_in_cxx_is_refused(before):
    """It is at byte 4 in the record, and in C++ at byte 32 or 1; the packed one in a struct of the same size."""
    lib = autolink.cxx(f"""
        struct {before} In {{ int n[8]; }};
        template <class A> __device__ int read(const A& a) {{ return a.in.n[0]; }}
    """)
    formats = ["i1", lib.record("In"), "i4"]
    whole = np.dtype({"names": ["c", "in", "n"], "formats": formats, "offsets": [0, 4, 36], "itemsize": 40})
    with pytest.raises(autolink.CxxError) as caught:
        lib.read.signature(from_dtype(whole))
    lines = str(caught.value).splitlines()
    assert "an argument has a struct in it that is packed, or aligned to more than its members" in lines[0]
    assert lines[-1] == "  what to do: call lib.record(...) of the whole struct, and its values go in as records"


A, B, C = ("a", np.float32), ("b", np.float32), ("c", np.float32)


@pytest.mark.parametrize(
    ("fields", "diagnosis", "got"),
    [
        ([A, ("b", np.float64)], "the field 'b' of the record is float64, and that of P is float32", "b: float64 at 8"),
        ([A, ("b", np.int32)], "the field 'b' of the record is int32, and that of P is float32", "b: int32 at 4"),
        ([A, C], "the record has a field 'c', and P has no such member", "c: float32 at 4"),
        ([A], "P has a member 'b', and the record has no such field", "a: float32 at 0"),
        ([B, A], "the record has its fields at other offsets than P", "a: float32 at 4"),
        ([A, B], "the record has the members of P, and C++ does not know that it is one", ""),
    ],
)
@pytest.mark.parametrize("call", ["f(p[0])", "g(p)"])
def test_a_record_for_a_struct_of_other_members_says_what_differs_in_cxx(call, fields, diagnosis, got):
    structs = autolink.cxx(
        "struct P { float a, b; }; __device__ float f(const P& p) { return p.a; }"
        " __device__ float g(const P* p) { return p->a; }"
    )
    kernel = eval(f"lambda p, x: structs.{call}", {"structs": structs})
    with pytest.raises(TypingError) as caught:
        build(kernel, (from_dtype(np.dtype(fields, align=True))[::1], types.float32[::1]))
    lines = str(caught.value).splitlines()
    assert lines[0].endswith(f": {diagnosis}")
    assert any(each.startswith("  got: ") and each.endswith(got) for each in lines) == bool(got)
    assert ("  expected: a: float32 at 0, b: float32 at 4, with the offsets in bytes" in lines) == bool(got)
    assert lines[-1] == "  what to do: make the records with the dtype that lib.record('P') returns"


def test_a_module_that_asks_for_a_record_can_be_imported_in_the_simulator():
    """What uses the record, of which only the compiler knows, is an error; with a dtype it can be used."""
    script = """
        import numpy as np
        from numba.cuda import autolink
        lib = autolink.cxx("struct Body { float x; }; class Opaque { int n; };")
        body, opaque, given = lib.record("Body"), lib.type("Opaque"), lib.record("Body", [("x", "f4")])
        assert given == np.dtype([("x", "f4")])
        for use in (lambda: np.zeros(2, body), lambda: opaque.dtype, lambda: opaque.method("f"), lambda: lib.eval("1")):
            try:
                use()
            except autolink.CxxError as error:
                print(str(error).partition(":")[0], "lib.record(name, dtype)" in str(error))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Body True", "Opaque True", "Opaque True", "1 True"]
