# SPDX-License-Identifier: BSD-2-Clause
"""Functions of C++ are called by name: the compiler resolves the call and tells the type of its result."""

from __future__ import annotations

import enum
import inspect
import pickle
import pydoc

import numpy as np
import pytest
from autolink_support import build, symbols
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.autolink.cxx_by_name.results import make_enumerator_type
from numba.cuda.autolink.protocol.callee import Callee
from numba.cuda.autolink.protocol.value_digest import value_digest

f32, f64, i32, i64 = types.float32, types.float64, types.int32, types.int64

SOURCE = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
enum class Level : short { low = 1, high = 2 };
enum Plain { zero, one };
struct Pair { float a; int b; };
struct Nested { Pair pair; double values[3]; bool flag; };
class Closed { int secret; public: __device__ Closed(int s) : secret(s) {} };
struct Part { __device__ float real() const { return re; } __device__ float imag() const { return im; } float re, im; };

__device__ float overloaded(float x) { return x; }
__device__ double overloaded(double x) { return x; }
__device__ int overloaded(int x, int y) { return x + y; }
__device__ float with_default(float x, int times = 2) { return x * times; }
template <int N, class T> __device__ T power(T x) { T r = 1; for (int i = 0; i < N; ++i) r *= x; return r; }
template <class T> __device__ T same(T x) { return x; }
namespace inner { __device__ double half(double x) { return x / 2; } struct Tag { int t; };
                  __device__ long long tagged(Tag t) { return t.t; } }
extern "C" __device__ unsigned short c_function(unsigned char x) { return x + 1; }
struct Functor { template <class T> __device__ T operator()(T x, T y) const { return x - y; } };
__device__ Level level(int x) { return Level(x); }
__device__ int of_level(Level x) { return int(x) + 10; }
__device__ Plain plain(int x) { return Plain(x); }
__device__ Pair pair(float a) { return {a, int(a) + 1}; }
__device__ Nested nested(float a) { return {pair(a), {a, 2 * a, 3 * a}, true}; }
__device__ Closed closed(int x) { return Closed(x); }
__device__ Part part(float x) { Part p; p.re = x; p.im = -x; return p; }
__device__ float3 vector(float x) { return make_float3(x, x + 1, x + 2); }
__device__ void store(float* p, int i, float x) { p[i] = x; }
__device__ const float* second(const float* p) { return p + 1; }
__device__ const float& larger(const float& x, const float& y) { return x < y ? y : x; }
template <class F> __device__ auto twice(F f, float x) { return f(f(x, 1.0f), 1.0f); }
__device__ float refused(int) = delete;
__device__ int& at(int* p, int i) { return p[i]; }
__device__ float both(const float* __restrict__ a, volatile float* b) { return *a + *b; }
__device__ auto pointer() { return &__sinf; }
#define SQUARE(x) ((x) * (x))
"""
lib = autolink.cxx(SOURCE)


class Level(enum.IntEnum):
    low = 1
    high = 2


@pytest.mark.parametrize(
    ("name", "argtypes", "expected"),
    [
        ("overloaded", (f32,), f32),
        ("overloaded", (f64,), f64),
        ("overloaded", (i32, i32), i32),
        ("with_default", (f32,), f32),
        ("with_default", (f32, i64), f32),
        ("power<3>", (f64,), f64),
        ("power<2, long long>", (i32,), i64),
        ("inner::half", (f32,), f64),
        ("c_function", (types.uint8,), types.uint16),
        ("Functor{}", (i64, i64), i64),
        ("level", (i32,), make_enumerator_type("Level", types.int16)),
        ("plain", (i32,), make_enumerator_type("Plain", i32)),
        ("of_level", (types.IntEnumMember(Level, i64),), i32),
        ("part", (f32,), types.complex64),
        ("vector", (f32,), types.UniTuple(f32, 3)),
        ("pair", (f32,), types.Tuple((f32, i32))),
        (
            "nested",
            (f32,),
            types.Tuple((types.Tuple((f32, i32)), types.UniTuple(f64, 3), types.boolean)),
        ),
        ("store", (f32[::1], i64, f32), types.none),
        ("second", (f32[::1],), types.CPointer(f32)),
        ("larger", (f32, f32), f32),
        ("__sinf", (f32,), f32),
        ("at", (i32[::1], i32), i32),
        ("both", (f32[::1], f32[::1]), f32),
        ("pointer()", (f32,), f32),
        ("SQUARE", (f32,), f32),
        ("static_cast<Level>", (i32,), make_enumerator_type("Level", types.int16)),
        ("__popc", (types.uint32,), i32),
        ("float", (i64,), f32),
        *[("same", (t,), t) for t in (types.boolean, types.int8, types.uint8, types.int16, types.uint64)],
        *[("same", (t,), t) for t in (types.float16, types.bfloat16, types.voidptr, types.CPointer(i32))],
        ("same", (f32[:, ::1],), types.CPointer(f32)),
    ],
    ids=str,
)
def test_a_call_has_the_type_of_its_result_in_cxx(name, argtypes, expected):
    assert lib[name].signature(*argtypes).return_type == expected


def test_names_of_types_and_dtypes_serve_as_argument_types():
    assert lib.overloaded.signature("float32").return_type == f32
    assert lib.overloaded.signature(np.float64, cc="9.0").return_type == f64


def test_a_name_is_always_the_same_object():
    assert lib.power is lib["power"] and lib["power<3>"] is lib["power<3>"]
    assert lib.expr("Functor{}") is lib.expr("Functor{}")


def test_an_expression_is_made_where_the_user_writes_tuples():
    def shifted(by):
        return autolink.cxx("").expr(f"[](auto x) {{ return x + {len(by)}; }}")

    function = shifted(())
    assert function.signature(f32).return_type == f32


def test_names_resolve_as_inside_the_namespace():
    inside = autolink.cxx(SOURCE, namespace="inner")
    assert inside.half.signature(f64).return_type == f64
    assert inside.overloaded.signature(f32).return_type == f32
    assert inside["::inner::half"].signature(f64).return_type == f64


def test_a_lambda_is_called():
    fma = lib.expr("[](auto x, auto y) { return x * y + 1; }")
    assert fma.signature(f32, i32).return_type == f32
    assert fma.signature(i32, f64).return_type == f64


def test_a_kernel_calls_functions_which_are_inlined():
    overloaded, power, store, nested = lib.overloaded, lib["power<3>"], lib.store, lib.nested

    @cuda.jit
    def kernel(x, r):
        i = cuda.grid(1)
        pair, values, flag = nested(x[i])
        if flag:
            store(r, i, overloaded(x[i]) + power(x[i]) + pair[0] + values[2])

    cubin = build(kernel, "void(float32[::1], float32[::1])").code
    assert not [name for name in symbols(cubin) if name.startswith("cxx_")]


def test_all_calls_of_a_library_share_one_translation_unit():
    """Functions that are not inline, and static state, are defined once."""
    counting = autolink.cxx(
        "__device__ int count = 0; __device__ int next() { return atomicAdd(&count, 1); }"
        "__device__ int peek() { return count; }"
    )
    first, second = counting.next, counting.peek

    @cuda.jit
    def kernel(r):
        r[0] = first()
        r[1] = second()

    linked = build(kernel, "void(int32[::1])")
    assert [name for name in symbols(linked.code) if "count" in name] == ["count"]


def test_without_lto_the_functions_are_called():
    power = lib["power<3>"]

    @cuda.jit
    def kernel(r):
        r[0] = power(r[0])

    assert len(build(kernel, "void(float64[::1])", lto=False).code) > 0


def test_debug_information_does_not_hinder():
    vector = lib.vector

    @cuda.jit(debug=True, opt=False)
    def kernel(r):
        r[0] = vector(r[0])[2]

    assert len(build(kernel, "void(float32[::1])").code) > 0


def test_a_library_without_a_source_has_the_intrinsics():
    assert autolink.cxx()["__fmaf_rn"].signature(f32, f32, f32).return_type == f32


class TestSources:
    def test_a_file_finds_headers_in_its_folder(self, tmp_path):
        (tmp_path / "own.h").write_text("#define FACTOR 3\n")
        (tmp_path / "own.cu").write_text('#include "own.h"\n__device__ int triple(int x) { return x * FACTOR; }\n')
        (tmp_path / "own.cpp").write_text('#include "own.cu"')
        for source in tmp_path / "own.cu", str(tmp_path / "own.cu"), str(tmp_path / "own.cpp"):
            assert autolink.cxx(source).triple.signature(i32).return_type == i32

    def test_a_missing_file_is_an_error(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"cxx\(\) finds no file '.*absent\.cu'"):
            autolink.cxx(tmp_path / "absent.cu")

    def test_macros_options_and_include_paths_are_those_of_a_source(self, tmp_path):
        (tmp_path / "own.h").write_text("template <class T> __device__ TYPE own(T x) requires true { return x; }\n")
        own = autolink.cxx(
            "#include <own.h>", include_paths=tmp_path, defines={"TYPE": "short"}, options={"std": "c++20"}
        )
        assert own.own.signature(i32).return_type == types.int16

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"source": 3}, TypeError, "takes C\\+\\+ text or a path, got int"),
            ({"source": "", "namespace": "a b"}, ValueError, "takes the namespace as a name such as 'a::b', got 'a b'"),
            ({"source": "", "options": {"stdd": 1}}, ValueError, "did you mean std"),
        ],
    )
    def test_wrong_arguments_are_refused(self, arguments, error, message):
        with pytest.raises(error, match=message):
            autolink.cxx(**arguments)

    def test_a_name_is_one_line_of_text(self):
        with pytest.raises(TypeError, match=r"a name of C\+\+ is a str, got int"):
            lib[3]
        with pytest.raises(ValueError, match=r"a name of C\+\+ is one line of text"):
            lib["a\nb"]
        with pytest.raises(ValueError, match=r"an expression of C\+\+ is one line of text"):
            lib.expr("")

    def test_an_expression_has_comments_and_lines(self):
        text = """[](auto x) {  // one
            return x + 1;
        }"""
        assert lib.expr(text).signature(f32).return_type == f32

    def test_hidden_names_are_not_looked_up_as_attributes(self):
        assert not hasattr(lib, "_private")


class TestArrays:
    source = """
    #include <cuda/std/span>
    #include <cuda/std/mdspan>
    __device__ float total(cuda::std::span<const float> values) {
        float sum = 0; for (float v : values) sum += v; return sum;
    }
    template <class T, class E, class L> __device__ T corner(cuda::std::mdspan<T, E, L> a) { return a(0, 1); }
    template <class T> __device__ int kind(T) { return 1; }
    __device__ void raise(float& x) { x += 1; }
    """

    def test_a_function_gets_what_it_takes(self):
        """A pointer, else the view that it takes; passing() chooses."""
        arrays = autolink.cxx(self.source)
        of_any = arrays.expr("[](auto a) { return sizeof(a) == 8 ? 1 : 2u; }")
        calls = [
            (arrays.total, f32[::1], f32),
            *[(arrays.corner, layout, f32) for layout in (f32[:, ::1], f32[::1, :], f32[:, :])],
            (arrays.kind, f32[::1], i32),
            (of_any.passing("span"), f32[::1], types.uint32),
            (of_any.passing("mdspan"), f32[:, :], types.uint32),
            (arrays["raise"].passing("element"), f32[::1], types.none),
        ]
        arrays.declare([(function, [array]) for function, array, _ in calls])
        for function, array, expected in calls:
            assert function.signature(array).return_type == expected

    def test_unknown_ways_are_refused(self):
        with pytest.raises(ValueError, match=r"passing\(\) takes 'value', .*, got 'reference'"):
            autolink.cxx(self.source).total.passing("reference")

    def test_a_pointer_that_cxx_returned_goes_to_cxx_again(self):
        moves = autolink.cxx("""
            __device__ int* from(int* p, int n) { return p + n; }
            __device__ const int* from(const int* p, int n) { return p + n; }
            __device__ void set(int* p, int n) { *p = n; }
        """)

        def kernel(x):
            moves.set(moves["from"](x, 1), 5)

        x = np.zeros(2, np.int32)
        build(kernel, "void(int32[::1])").emulate[1, 1](x)
        assert x.tolist() == [0, 5]

    def test_a_strided_array_is_not_passed_as_a_pointer(self):
        with pytest.raises(autolink.CxxError, match=r"argument 1 is an array of float32, and f takes S"):
            autolink.cxx("struct S {}; __device__ int f(S);").f.signature(f32[:])
        with pytest.raises(
            autolink.CABIError, match="may be strided, but C\\+\\+ reads contiguous memory through a span"
        ):
            autolink.cxx().f.passing("span").signature(f32[:])


@pytest.mark.gpu
class TestOnGPU:
    def test_views_have_the_shape_and_the_strides_of_arrays(self):
        arrays = autolink.cxx(TestArrays.source)
        total, corner, raise_ = arrays.total, arrays.corner, arrays["raise"].passing("element")

        @cuda.jit
        def kernel(a, b, r):
            r[0] = total(r[1:4])
            r[4] = corner(a)
            r[5] = corner(b)
            raise_(r[6:])

        a = cuda.to_device(np.arange(12, dtype=np.float32).reshape(3, 4))
        b = cuda.to_device(np.arange(24, dtype=np.float32).reshape(4, 6))[::2, ::3]
        r = np.arange(7, dtype=np.float32)
        kernel[1, 1](a, b, r)
        np.testing.assert_array_equal(r, [6, 1, 2, 3, 1, 3, 7])


def test_dir_has_the_methods_and_the_names_of_the_text_and_no_internals():
    lib = autolink.cxx("""
        // int hidden(int x) {
        struct P { float x; };
        template <class T> __device__ T twice(T x) { return scaled(x, 2); }
        __device__ const float* first(const float* x) { if (x) { return x; } return nullptr; }
        enum class Kind { one };
        __device__ void declared(int x);""")
    assert set(dir(lib)) == {
        *("declare", "eval", "expr", "record", "type"), *("P", "twice", "first", "Kind", "declared")
    }  # fmt: skip


def test_dir_has_the_names_that_headers_declare_in_the_namespace():
    math = dir(autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std"))
    assert {"sin", "hypot", "isnan", "declare"} <= set(math)  # functions, templates, and the methods
    assert not [name for name in math if name.startswith(("_", "nca")) or name.isupper()]
    assert "sin" not in dir(autolink.cxx("#include <cuda/std/cmath>"))


def test_dir_has_what_the_text_shows_where_a_header_is_missing():
    text = """
        #include <missing.h>
        using A = int; typedef float B; extern "C" { int of_c(int); } namespace { int of_text(int); }
        inline namespace v1 { template <class T> requires (sizeof(T) > 1) T newest(T x) { if (x) { return f(x); } } }
        #define IN_NAMESPACE(name) namespace name {
        IN_NAMESPACE(other) int elsewhere(int); }
        int unfinished("""
    names = {"A", "B", "of_c", "of_text", "newest", "other", "unfinished"}
    assert set(dir(autolink.cxx(text))) - set(dir(autolink.cxx())) == names
    assert "elsewhere" in dir(autolink.cxx(text, namespace="other"))


DECLARED = """/// adds one
__device__ int add_one(int i) { return i + 1; } // after it
// Part 1

/* of another
 * size */
template <class T> [[nodiscard]] __device__ inline T
twice(T x, char c = ';');
__device__ float twice(float x); /** lanes of a warp */
constexpr int lanes = 2 * int(16);
__constant__ float table[3];
namespace inner { __device__ float deep(float x); namespace detail { __device__ int hidden(int); } }"""


def test_help_shows_the_declarations_in_cxx_with_their_comments():
    lib = autolink.cxx(DECLARED)
    assert inspect.getdoc(lib.add_one).startswith("int add_one(int i)\n    adds one\n\nA function of C++")
    twice = (
        "template <class T> T twice(T x, char c = ';')\n    of another\n    size\n\nfloat twice(float x)\n\nA function"
    )
    assert inspect.getdoc(lib.twice).startswith(twice)
    assert inspect.getdoc(lib["twice<int>"]).startswith(twice)
    assert inspect.getdoc(lib["inner::deep"]).startswith("float deep(float x)\n\nA function")
    assert "float deep(float x)" in inspect.getdoc(autolink.cxx(DECLARED, namespace="inner").deep)
    assert inspect.getdoc(lib.absent).startswith("A function of C++")
    assert inspect.getdoc(lib.lanes).startswith("constexpr int lanes = 2 * int(16)\n\nA constant of C++")
    assert "float sin(float __x)" in inspect.getdoc(
        autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std").sin
    )
    assert inspect.getdoc(type(lib.add_one)).startswith("A function of C++, or any expression")


def test_names_of_constants_and_namespaces_are_offered_too():
    lib = autolink.cxx(DECLARED)
    assert {"add_one", "twice", "lanes", "table", "inner"} <= set(dir(lib))
    assert lib._ipython_key_completions_() == ["add_one", "inner::deep", "lanes", "table", "twice"]
    completer = pytest.importorskip("IPython.core.completer")
    with completer.provisionalcompleter():
        found = [*completer.IPCompleter(namespace={"lib": lib}).completions('lib["', 5)]
    assert "inner::deep" in {each.text for each in found}


def test_a_namespace_shows_its_names_and_none_of_a_function():
    inner = autolink.cxx(DECLARED).inner
    assert not [name for name in dir(inner) if not name.startswith("_")]
    assert inspect.getdoc(inner) == "A namespace of C++. Its names are\nlib['inner::deep']"
    assert "signature" in dir(autolink.cxx(DECLARED).add_one)


@pytest.mark.parametrize(
    ("declaration", "shown"),
    [
        ("int f(int i)", "(i: int, /) -> int"),
        ("void f()", "() -> void"),
        ("template <class T, int N> T* f(T (&x)[N])", None),
        (
            "int f(const span<T, 3>& x, char c = ',', int n = g(1, 2))",
            "(x: const span<T, 3>&, c: char = ',', n: int = g(1, 2), /) -> int",
        ),
        ("template <class T> pair<T> const& f(T x)", "(x: T, /) -> pair<T> const&"),
        ("auto f(float x[3]) -> decltype(x[0])", "(x: float[3], /) -> decltype(x[0])"),
        ("constexpr unsigned f(unsigned long n)", "(n: unsigned long, /) -> unsigned"),
        ("int f(int)", None),
        ("int f(const float, float y)", None),
        ("int f(const S)", None),
        ("int f(int lambda)", None),
        ("template <class... T> int f(T... x)", None),
        ("int f(int i); int f(float x)", None),  # two
    ],
)
def test_the_signature_is_that_in_cxx_of_a_function_whose_parameters_have_names(declaration, shown):
    function = autolink.cxx(f"{declaration};").f
    assert str(inspect.signature(function)) == (shown or "(*args: 'Any') -> 'Any'")


def test_help_shows_what_the_python_function_says():
    function = autolink.cxx("__device__ float scaled(float x, float by) { return x * by; }").scaled

    @function.python
    def _(x, by):
        """Return x times by."""
        return x * by

    shown = pydoc.render_doc(function, renderer=pydoc.plaintext)
    assert shown.endswith("    scaled(x, by)\n    \n    Return x times by.\n") and len(shown.splitlines()) == 6, shown
    assert str(inspect.signature(function)) == "(x, by)"


def test_help_shows_the_declaration_of_a_function_whose_python_function_says_nothing():
    function = autolink.cxx("__device__ float scaled(float x, float by) { return x * by; }").scaled
    function.python(lambda x, by: x * by)
    assert inspect.getdoc(function).startswith("float scaled(float x, float by)\n\nA function of C++")


def test_the_variable_and_the_line_of_an_expression_are_no_part_of_its_content():
    one = autolink.cxx("").expr("[](auto x) { return x; }")
    other = autolink.cxx("").expr("[](auto x) { return x; }")
    assert value_digest(one) == value_digest(other)
    given = Callee(other, None).expression
    assert given == ("[](auto x) { return x; }", ("other", __file__, given[1].line))
    assert Callee(pickle.loads(pickle.dumps(other)), None).expression == given
