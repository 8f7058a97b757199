# SPDX-License-Identifier: BSD-2-Clause
"""A call that C++ refuses is a typing error at its line, with the reasons of C++ and without text that is ours."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from autolink_support import CC, build
from front_ends import front_end_named
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError
from numba.cuda.np.numpy_support import from_dtype

from numba_cuda_autolink.short_tracebacks import message_of

SOURCE = """
namespace shapes {
struct Circle { float radius; };
class Opaque { int x; public: __device__ Opaque(int v) : x(v) {} };
__device__ float area(Circle c) { return c.radius * c.radius; }
__device__ float overlap(float a, float b) { return a + b; }
__device__ double overlap(double a, double b) { return a - b; }
__device__ int corner(int* p, int i) { return p[i]; }
__device__ float gone(float) = delete;
__device__ int close_to(long x) { return 1; }
__device__ int close_to(unsigned x) { return 2; }
template <class T> __device__ T twice(T a, T b) { return a + b; }
template <int N> __device__ int sized() { return N; }
template <class T> __device__ auto member(T x) { return x.size(); }
template <class T> __device__ T checked(T x) { static_assert(sizeof(T) == 4, "only four bytes"); return x; }
__device__ Opaque opaque(int x) { return Opaque(x); }
__device__ void written(int& x) { x = 1; }
struct Counter { int n; __device__ int next() { return n++; } private: __device__ int hidden() { return n; } };
__device__ int count(Counter& c) { return c.n; }
}
"""


class TestRemedies:
    @pytest.mark.parametrize(
        ("call", "argtypes", "remedy"),
        [
            ("corner(x)", "int32[::1]", "pass the arguments that C++ declares: those with = may be left out"),
            ("square(x)", "float32[::1]", "pass one element of it, such as x[i]"),
            ("square(x)", "float32[:, :]", "pass one element of it, such as x[i, j]"),
            ("square('two')", "float32[::1]", "pass a number, not a string"),
        ],
    )
    def test_what_a_call_passes(self, call, argtypes, remedy):
        lib = autolink.cxx(SOURCE + "__device__ float square(float x) { return x * x; }", namespace="shapes")
        assert f"\n  what to do: {remedy}" in refusal_of(lib, call, argtypes)

    @pytest.mark.parametrize(
        ("ask", "remedy"),
        [
            (lambda lib: lib.type("S"), "define S in the source, or include the header that does"),
            (lambda lib: lib.expr("[](S* s) { return s.x; }").signature(types.voidptr, cc=CC), "write -> for the dot"),
            (lambda lib: lib.eval("Q < 2"), "declare it in the source"),
            (lambda lib: lib.expr("[](int x) { return x;").signature("int32", cc=CC), "close what { opens"),
            (lambda lib: lib.eval("f()"), "declare what it calls and reads constexpr"),
        ],
    )
    def test_questions(self, ask, remedy):
        with pytest.raises(autolink.CxxError, match=remedy):
            ask(autolink.cxx("struct S; __device__ int f() { return 3; }"))

    def test_the_place_in_a_lambda(self):
        with pytest.raises(autolink.CxxError) as caught:
            autolink.cxx("").expr("[](auto x) { return x + ; }").signature(types.float32, cc=CC)
        *_, text, caret, todo = str(caught.value).splitlines()
        assert todo == "  what to do: complete the C++ of this call, or correct it"
        assert text == "  [](auto x) { return x + ; }"
        assert caret.index("^") == text.index(";")

    def test_the_place_in_a_line_of_the_source(self):
        source = "namespace q {\n    template <class T> __device__ T f(T x) { return x.size(); }\n}"
        text = refusal_of(autolink.cxx(source, namespace="q"), "f(x[0])", "float32[::1]").splitlines()
        k = next(k for k, line in enumerate(text) if line.endswith("x.size(); }"))
        assert text[k + 1].index("^") == text[k].index("x.size")

    def test_a_record_of_other_fields(self):
        source = "namespace q { struct P { float x, y; }; __device__ float norm(P p) { return p.x; } }"
        records = types.Array(from_dtype(np.dtype([("x", "f8"), ("y", "f8")])), 1, "C")
        text = refusal_of(autolink.cxx(source, namespace="q"), "norm(x[0])", records)
        assert "\n  what to do: make the records with the dtype that lib.record(...) returns" in text
        assert "Note #" not in text

    @pytest.mark.parametrize(
        ("header", "namespace", "meant"),
        [("<cuda/std/cmath>", "cuda::sdt", "cuda::std"), ("<cuda/std/cmath>", "cdua", "cuda")],
    )
    def test_a_namespace_that_does_not_exist(self, header, namespace, meant):
        lib = autolink.cxx(f"#include {header}", namespace=namespace)
        text = refusal_of(lib, "hypot(x[0], x[0])", "float32[::1]")
        assert text.startswith(f"C++ has no namespace {namespace}\n")
        line = place_of(lib)
        assert f"\n  given at: {line}\n  what to do: did you mean {meant}? " in text
        assert "nca_" not in text

    def test_a_type_that_is_unknown(self):
        lib = autolink.cxx(SOURCE, namespace="shapes")
        with pytest.raises(autolink.CxxError) as caught:
            lib.record("Q")
        assert str(caught.value).startswith('Q: identifier "Q" is undefined\n  at: ' + __file__)
        assert "what to do: declare it in the source" in str(caught.value)
        assert "the source has Circle, Counter, Opaque, " in str(caught.value)


def refusal_of(lib, call, argtypes):
    kernel = eval(f"lambda x: lib.{call}", {"lib": lib})
    with pytest.raises(TypingError) as caught:
        build(cuda.jit(kernel), (argtypes,) if not isinstance(argtypes, str) else f"void({argtypes})")
    return str(caught.value)


def place_of(lib):
    return ":".join(map(str, lib._source.place))


# How calls go wrong: the C++ name, the argument types, and what the message says of the reason.
WRONG = [
    ("area", ("float32",), "argument 1 is a float32, and area takes "),
    ("area", ("float32[::1]",), "argument 1 is an array of float32, and area takes "),
    ("area", (), "too few arguments"),
    ("overlap", ("complex64", "complex64"), 'no instance of overloaded function "shapes::overlap"'),
    ("overlap", ("float32",), 'no instance of overloaded function "shapes::overlap"'),
    ("overlap", ("int64", "int64"), "more than one instance of overloaded function"),
    ("corner", ("float32[::1]", "int32"), 'argument of type "float *" is incompatible with parameter of type "int *"'),
    ("corner", ("int32[::1]",), "too few arguments in function call"),
    ("corner", ("int32[::1]", "int32", "int32"), "too many arguments in function call"),
    ("gone", ("float32",), "cannot be referenced -- it is a deleted function"),
    ("close_to", ("int32",), "more than one instance of overloaded function"),
    ("twice", ("int32", "float32"), "T is int32 in argument 1 and float32 in argument 2"),
    ("sized", (), "no argument tells N of template <int N>"),
    ("sized<x>", (), 'identifier "x" is undefined'),
    ("sized<-1", (), "a < is not closed"),
    ("member", ("float32",), "expression must have class type but it has type"),
    ("checked", ("float64",), "only four bytes"),
    ("opaque", ("int32",), "returns an object that only C++ knows (4 bytes)"),
    ("written", ("float32",), "C++ writes to an argument of type float32 as int&"),
    ("area", ("float32[:]",), "argument 1 is an array of float32, and area takes "),
    ("corner", ("int32[:]", "int32"), "a strided array cannot be passed as int *: C++ reads contiguous memory"),
    ("corner", ("types.Array(types.int32, 1, 'C', readonly=True)", "int32"), "pass an array that is not read-only"),
    ("overlep", ("float32", "float32"), 'identifier "overlep" is undefined'),
    ("nowhere::f", ("float32",), "must be a class or namespace name"),
    ("shapes::absent", ("float32",), 'namespace "shapes" has no member "absent"'),
    ("shapes::corners", ("float32",), 'namespace "shapes" has no member "corners"'),
    ("Circle", ("complex64",), "it is a class, not a function, and has no constructor of these arguments"),
    ("count", ("int32",), "a reference of type"),
    ("overlap", ("types.unicode_type", "float32"), "strings must be constants"),
    ("__sinf", ("complex64",), "a complex number cannot be passed as float"),
    ("return", (), "expected an expression"),
    (")", (), "expected"),
]


def message(lib, name, argtypes, line="r[0] = f({})") -> str:
    """The typing error of a kernel that calls the function with arguments of these types."""
    names = {"f": lib[name]}
    parameters = [f"a{number}" for number in range(len(argtypes))]
    text = f"def kernel({', '.join(['r', *parameters])}):\n    {line.format(', '.join(parameters))}\n"
    exec(compile(text, "wrong_call.py", "exec"), names)
    given = [types.float32[::1], *(eval(each, {"types": types, **vars(types)}) for each in argtypes)]
    with pytest.raises(TypingError) as caught:
        build(names["kernel"], tuple(given))
    return str(caught.value)


def check(text: str, name: str, reason: str) -> None:
    assert name in text and reason in text
    assert "wrong_call.py" in text
    of_ours = text.partition("During: resolving callee")[0].strip().splitlines()
    assert len(of_ours) <= 25
    for noise in ("nca_", "nca::", "_expr", "static_cast", "decltype(auto)", "__nv_name_map", "prelude("):
        assert noise not in text, noise
    assert not re.search(r"cxx_\w+_[0-9a-f]{16}", text)


lib = autolink.cxx(SOURCE, namespace="shapes")
outside = autolink.cxx(SOURCE)


@pytest.mark.parametrize(("name", "argtypes", "reason"), WRONG, ids=lambda each: str(each)[:30])
def test_a_wrong_call_says_which_function_where_and_why(name, argtypes, reason):
    check(message(lib, name, argtypes), name, reason)


def test_a_near_name_of_a_header_is_named(tmp_path):
    (tmp_path / "shapes.hpp").write_text(
        "namespace shapes { template <class T> T distance(T x, T y) { return x - y; } }"
    )
    header = autolink.cxx("#include <shapes.hpp>", include_paths=[tmp_path], namespace="shapes")
    assert "what to do: did you mean distance?" in message(header, "distnace", ("float32", "float32"))
    math = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std")
    assert "what to do: did you mean hypot" in message(math, "hypott", ("float32", "float32"))


IN_PLAIN_WORDS = {  # by names: diagnoses, and what to do
    "power<3": ("a < is not closed", "close what < opens"),
    "power<3>>": ("the name has a > that ends nothing", "leave out the >"),
    "power<3>;": ("the name has a ; that ends nothing", "leave out the ;"),
    "power<>": (
        "no argument tells N of template <int N>",
        'name the template arguments that C++ cannot deduce: lib["power<',
    ),
    "3": ("3 is not a C++ function", 'value = lib.eval("3")'),
    "lanes": ("lanes is not a C++ function", "if it is a variable, call a function of C++ that returns it"),
    "inner": ("inner is a namespace, which cannot be called", 'name a function in it: lib["inner::..."]'),
    "Counter::next": ("Counter::next belongs to an object", 'call lib.type("Counter").method("next")'),
}


@pytest.mark.parametrize("name", IN_PLAIN_WORDS)
def test_a_name_that_is_no_function_is_refused_in_plain_words(name):
    source = (
        "template <int N> __device__ int power(int x) { return x * N; } __device__ int lanes = 3;"
        "namespace inner { int q; } struct Counter { __device__ int next(); };"
    )
    diagnosis, remedy = IN_PLAIN_WORDS[name]
    text = message(autolink.cxx(source), name, ("int32",))
    assert text.startswith(f"{name}(int32): {diagnosis}")
    assert remedy in text.partition("\n  what to do: ")[2]


@pytest.mark.parametrize("lambda_", ["[](int x) { return x + ; }", "1 +", "int x"])
def test_an_expression_that_is_not_complete_says_what_to_do(lambda_):
    with pytest.raises(TypingError, match=r"(?s)(?:expected|not allowed).*\n  what to do: "):
        build_call(autolink.cxx("int x;").expr(lambda_))


def build_call(f):
    def kernel(r):
        r[0] = f(r[0])

    build(kernel, (types.int32[::1],))


MEMBERS = """
class Kept {
    int v;
};
__device__ int f(Kept k) { return k.v; }
"""


def test_a_private_member_is_declared_at_its_line_of_the_python_file():
    members = autolink.cxx(MEMBERS)
    with pytest.raises(TypingError) as caught:
        build_call(members.f)
    first, *_ = str(caught.value).split("\n")
    assert first == 'the C++ source of f(int32) does not compile: member "Kept::v" is inaccessible'
    line = Path(__file__).read_text().split("\n").index("    int v;") + 1
    assert f"\n  declared at: {__file__}:{line}\n" in str(caught.value)


EQUAL_SOURCES = """
from numba.cuda import autolink
T = "int"
first = f'__device__ {T} f({T} x) {{ return y; }}'
second = f'__device__ {T} f({T} x) {{ return y; }}'
def within():
    third = f'__device__ {T} f({T} x) {{ return y; }}'
    return autolink.cxx(third)
unknown, known, direct = autolink.cxx(second), within(), []
direct = autolink.cxx(
    f'__device__ {T} f({T} x) {{ return y; }}')
"""


def test_the_line_of_one_of_several_equal_sources_is_shown_if_it_is_known(tmp_path):
    script = tmp_path / "equal.py"
    script.write_text(EQUAL_SOURCES)
    names = {}
    exec(compile(EQUAL_SOURCES, str(script), "exec"), names)
    for name, line in {"known": f"{script}:7", "direct": f"{script}:11"}.items():
        with pytest.raises(TypingError, match=f"  at: {re.escape(line)}\n"):
            build_call(names[name].f)
    with pytest.raises(TypingError) as caught:
        build_call(names["unknown"].f)
    assert str(caught.value).splitlines()[1] == "  at: source of autolink.cxx:1"
    assert "__device__ int f(int x) { return y; }" in str(caught.value)


def test_a_member_function_of_an_object_in_memory_is_called_by_its_class():
    counters = autolink.cxx("struct Counter { int n; __device__ Counter(int s) : n(s) {} __device__ int next(); };")
    Counter = counters.type("Counter")

    def kernel(r):
        c = cuda.local.array(1, Counter.dtype)
        r[0] = c[0].next()

    with pytest.raises(TypingError) as caught:
        build(kernel, (types.int32[::1],))
    first, place, _, caret, todo = message_of(caught.value).split("\n")
    assert first == "kernels know no members of an object of Counter, got 'next'"
    assert __file__ in place and caret.strip() == "^" * len("c[0].next()")
    assert (
        todo == "  what to do: call its member function by lib.type('Counter').method('next'), made before the kernel"
    )

    def of_class(r):
        r[0] = Counter.next(r[0])

    with pytest.raises(TypingError, match=r"write \.method\('next'\) of it before the kernel"):
        build(of_class, (types.int32[::1],))


def test_a_constant_that_is_called_or_passed_is_taken_before_the_kernel():
    constants = autolink.cxx("constexpr int lanes = 4; __device__ float f(float x, int n) { return x * n; }")
    text = message(constants, "lanes", ())
    assert text.startswith("lanes(): lanes is not a C++ function\n")
    assert 'if it is a constant, take it before the kernel, lanes = lib.eval("lanes")' in text
    lanes = constants.lanes

    def kernel(r):
        r[0] = constants.f(r[0], lanes)

    with pytest.raises(
        TypingError, match=r"'lanes' is a constant of C\+\+, which kernels do not read by its name"
    ) as caught:
        build(kernel, (types.float32[::1],))
    assert 'take it before the kernel: lanes = lib.eval("lanes")' in str(caught.value)


def test_none_for_a_number_and_a_static_assertion_have_remedies():
    checked = autolink.cxx("template <class T> __device__ T f(T x) { static_assert(sizeof(T) == 8); return x; }")
    assert "what to do: make the call as the assertion demands" in message(checked, "f", ("float32",))
    taking = autolink.cxx("__device__ float f(float x) { return x; }")
    assert "what to do: pass a number, not None" in message(taking, "f", ("none",))


def test_an_expression_that_cannot_be_called_and_a_function_that_returns_a_text():
    with pytest.raises(autolink.CxxError, match=re.escape("3 + 4(float32): 3 + 4 cannot be called\n")):
        outside.expr("3 + 4").signature("float32")
    applying = autolink.cxx("template <class F> __device__ float apply(F f, float x) { return f(x); }")

    def kernel(r):
        r[0] = applying.apply(lambda x: "no", r[0])

    with pytest.raises(
        TypingError, match=r"the result is a text, which C.. does not get(.|\n)*what to do: return a number"
    ):
        build(kernel, (types.float32[::1],))


def test_a_function_with_an_index_is_an_error_with_the_template_arguments():
    with pytest.raises(TypeError, match=r'area is a C\+\+ function, which has no index\n.*: lib\["area<3>"\]'):
        lib.area[3]


def test_a_near_name_is_named():
    assert "what to do: did you mean overlap" in message(lib, "overlep", ("float32", "float32"))
    assert "did you mean shapes::corner?" in message(lib, "shapes::corners", ("float32",))
    short = autolink.cxx("__device__ float f(float x) { return x; } struct Point { float x; };")
    assert message(short, "ff", ("float32",)).endswith("what to do: did you mean f?")
    assert message(short, "other", ("float32",)).endswith("; the source has Point, f")
    macro = autolink.cxx("__device__ float f(float x) { return x * FACTOR; }", defines={"FACTR": 3})
    assert "did you mean FACTOR by the macro FACTR in defines=?" in message(macro, "f", ("float32",))


@pytest.mark.parametrize(
    ("name", "argtypes", "remedy"),
    [
        ("area", ("float32",), "write its namespace: shapes::area"),
        ("shapes::sized<N>", (), "write the value of a variable of Python into the name: lib[f'shapes::sized<{N}>']"),
        ("shapes::sized<x>", (), "write the value of a variable of Python into the name: lib[f'shapes::sized<{x}>']"),
        ("shapes::twice<flaot>", ("float32",) * 2, "did you mean float?"),
        ("shapes::sized<3", (), "close what < opens"),
        ("[](auto x) { return x; }", ("float32",), "write lib.expr(...) for a lambda, not lib[...]"),
        ("shapes::member", ("float32",), "pass an object that has the member"),
        ("shapes::member", ("float32[::1]",), "member = lib['shapes::member'].passing('span')"),
        ("shapes::area", ("float32",), "lib.expr('[](auto... x) { return shapes::area(shapes::Circle{x...}); }')"),
        ("shapes::corner", ("int32[::1]", "complex64"), "pass x.real, x.imag or abs(x)"),
        ("shapes::corner", ("int32[::1]", "int32", "int32"), "pass no more arguments than C++ declares"),
        ("shapes::overlap", ("complex64",) * 2, "pass x.real, x.imag or abs(x): C++ takes no complex number there"),
        ("shapes::close_to", ("int32",), "convert arguments in the kernel to the types of one of these functions"),
        ("shapes::corner", ("float32[::1]", "int32"), "pass an array of np.int32"),
    ],
)
def test_what_to_do(name, argtypes, remedy):
    assert remedy in message(outside, name, argtypes).rpartition("  what to do: ")[2]


def test_the_name_in_libcudacxx_is_named_for_one_of_the_hosts_library():
    for name in ("std::min", "std::min<float>", "::std::min"):
        text = message(lib, name, ("float32", "float32"))
        assert 'namespace "std" has no member "min"' in text
        # CUDA 13.0 has the function in no public header.
        remedies = ("cuda::std::min of <cuda/std/algorithm>, or host_headers", "cuda::std::min, where libcu++ has it")
        assert any(f"what to do: std has the host's functions: use {each}" in text for each in remedies)


def test_arguments_of_a_template_that_cannot_be_deduced_are_asked_for():
    assert 'what to do: name the template arguments that C++ cannot deduce: lib["sized<N>"]' in message(
        lib, "sized", ()
    )


def test_arguments_of_a_class_template_that_cannot_be_deduced_are_asked_for():
    boxes = autolink.cxx("template <class T> struct Box { T t; __device__ Box(T, T); };")
    assert 'what to do: name the arguments of the class template: lib["Box<...>"]' in message(boxes, "Box", ("int32",))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("shapes::sized<float>", "<int N>"),
        ("shapes::sized<3, 4>", "<int N>"),
        ("shapes::checked<3>", "<class T>"),
        ("shapes::twice<float, double>", "<class T>"),
    ],
)
def test_template_arguments_of_another_number_or_kind_come_with_those_that_are_declared(name, parameters):
    argtypes = ["float32"] * {"sized": 0, "checked": 1, "twice": 2}[name[8:].partition("<")[0]]
    text = message(outside, name, argtypes)
    assert text.startswith(f"{name}(") and f"the template arguments {name.partition('<')[1]}" in text
    assert f"what to do: write the arguments of template {parameters} in its order: types for class" in text


@pytest.mark.parametrize("name", ["Box", "Box<3, 4>", "Box<float, float>", "Box<float, 2, 3>"])
def test_arguments_of_a_class_template_come_with_those_that_are_declared(name):
    boxes = autolink.cxx("template <class T, int N = 2> struct Box { T t[N]; };")
    with pytest.raises(autolink.CxxError, match=r"write the arguments of template <class T, int N = 2> in its order"):
        boxes.type(name)


def test_a_call_that_is_refused_outside_of_kernels_is_at_the_users_line():
    with pytest.raises(autolink.CxxError) as caught:
        outside.declare([("shapes::corner", ["int32[::1]"])])
    first, at, line, caret, *_ = str(caught.value).splitlines()
    assert first == "shapes::corner(array(int32, 1d, C)): too few arguments in function call"
    assert line.strip() == (called := 'outside.declare([("shapes::corner", ["int32[::1]"])])')
    assert at == f"  at: {find_line(called)}" and caret.strip() == "^" * len(called)


def test_types_of_cuda_name_their_headers():
    half = autolink.cxx("__device__ __half f(__half x) { return x; }")
    assert "what to do: include <cuda_fp16.h>" in message(half, "f", ("float32",))


@pytest.mark.parametrize("text", ["__devcie__ float f(float x) { return x; }", "foo\n", "def f(x):\n    return x\n"])
def test_what_follows_from_an_error_has_no_remedy(text):
    assert "cuda_fp16.h" not in message(autolink.cxx(text), "f", ("float32",))


@pytest.mark.parametrize("before", ["", "namespace a {\n", "__device__ float g(float x) { if (x > 0) { return x; }\n"])
def test_a_brace_that_is_not_closed_is_the_diagnosis_with_its_line(before):
    """What follows the source are declarations that are ours, of which NVRTC complains instead."""
    unclosed = before or "__device__ float h(float x) {\n"
    library = autolink.cxx(f"{unclosed}__device__ float f(float x) {{ return x; }}\n")
    text = message(library, "f", ("float32",))
    assert 'the C++ source of f(float32) does not compile: expected a "}" to match this "{"' in text
    assert f"  at: source of autolink.cxx:1\n      {unclosed}" in text
    assert "what to do: close it: the source ends before" in text


@pytest.mark.parametrize("type_", ["size_t", "const size_t", "words"])
def test_a_cast_names_the_type_that_an_alias_stands_for(type_):
    library = autolink.cxx(f"using words = unsigned long; __device__ float f({type_}* p) {{ return *p; }}")
    meant = "const unsigned long" if "const" in type_ else "unsigned long"
    cast = f"[](auto* p) {{ return f(reinterpret_cast<{meant} *>(p)); }}"
    with pytest.raises(autolink.CxxError, match=re.escape(f"let a lambda cast it: lib.expr('{cast}')")):
        library.f.signature("uint64[::1]", cc=CC)
    library.expr(cast).signature("uint64[::1]", cc=CC)


def test_what_nvrtc_says_about_options_is_the_diagnosis():
    library = autolink.cxx("__device__ float f(float x) { return x; }", options={"std": "c++99"})
    text = message(library, "f", ("float32",))
    assert re.search(r"f\(float32\) does not compile: invalid value for --std ?\(-std\)\n", text)  # a space in CUDA 12
    place = find_line('options={"std": "c++99"})')
    assert f"  given at: {place}\n" in text
    assert "what to do: correct options={'std': 'c++99'}" in text


def test_lines_in_the_python_file_with_and_without_line_information():
    class_ = autolink.cxx("class S { S(int) {} public: float v; };")

    def kernel(x):
        x[0] = class_.S(x[0])

    for lineinfo in (False, True):
        with pytest.raises(TypingError, match=r"\n  declared at: \S*/test_refusals\.py:\d+\n") as caught:
            build(kernel, "void(int32[::1])", lineinfo=lineinfo)
        first, *_, remedy = str(caught.value).splitlines()
        assert first.endswith('"S::S(int)" is inaccessible')
        assert remedy == "  what to do: make it public in its class, or name a public member that uses it"


def test_candidates_come_with_their_places():
    text = message(lib, "overlap", ("complex64", "complex64"))
    assert re.search(r'function "shapes::overlap\(double, double\)" does not match because argument #1', text)
    assert f"({__file__}:" in text


def find_line(text):
    """The number of the line of this file that ends with *text*."""
    (number,) = (
        number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.endswith(text)
    )
    return f"{__file__}:{number}"


def test_structs_are_called_by_their_names():
    library = autolink.cxx("""
        struct Pair { float x; int n; };
        __device__ void fill(Pair* p) {}
        __device__ float add(Pair p) { return p.x + p.n; }
    """)
    known = from_dtype(library.record("Pair", cc=CC))
    other = from_dtype(np.dtype([("n", "i4"), ("x", "f4")], align=True))
    with pytest.raises(autolink.CxxError) as caught:
        library.fill.signature(types.Array(known, 1, "C", readonly=True))
    assert 'argument of type "const Pair *" is incompatible with parameter of type "Pair *"' in str(caught.value)
    assert "what to do: pass an array that is not read-only" in str(caught.value)
    for function, argument in ((library.fill, types.Array(other, 1, "C")), (library.add, other)):
        with pytest.raises(autolink.CxxError, match=r"with the dtype that lib.record\('Pair'\) returns"):
            function.signature(argument)


def test_errors_in_cxx_that_is_given_as_text_are_at_the_lines_of_the_python_file():
    library = autolink.cxx("""
        template <class T> __device__ T late(T x) {
            return x.foo;
        }
        __device__ int fine(int x) { return x; }
    """)
    place = find_line("return x.foo;")
    with pytest.raises(autolink.CxxError) as caught:
        library.late.signature("float32")
    assert f"  in C++: {place}\n" in str(caught.value) and place.replace(":", "(") in caught.value.log

    def kernel(r):
        r[0] = library.late(r[0])

    with pytest.raises(TypingError, match=re.escape(f"in C++: {place}\n")):
        build(kernel, "void(float32[::1])")


def test_errors_in_cxx_on_one_line_of_python_are_at_that_line():
    library = autolink.cxx("__device__ int wrong(int x) { return nowhere; }")
    place = find_line('return nowhere; }")')
    with pytest.raises(autolink.CxxError, match=re.escape(f"  at: {place}\n")):
        library.eval("1 + 1")


ESCAPED = """
    __device__ float escaped(float x) {
        printf("\\"%f\\" \\\\ \\n", x);
        return unknown_escaped;
    }
"""
RAW = r"""
    __device__ float raw(float x) {
        printf("\"%f\"\n", x);
        return unknown_raw;
    }
"""
JOINED = (
    "__device__ float g(float x) { return x; }\n"  # a comment
    "__device__ float joined(float x) {\n"
    "return unknown_joined"
    ";\x0a"
    "}"
)
ADDED = (
    "__device__ float g(float x) { return x; }\n" + "__device__ float added(float x) {\n" + ("return unknown_added; }")
)
CONTINUED = """\
    __device__ float continued(float x) { \
        return x;
    }
    __device__ int wrong() { return unknown_continued; }
"""
IN_ONE = "__device__ float in_one(float x) {\n    return unknown_in_one;\n}\n"
INDENTED = textwrap.dedent("""
    __device__ float indented(float x) {
        return unknown_indented;
    }
""")


@pytest.mark.parametrize("name", ["ESCAPED", "RAW", "JOINED", "ADDED", "CONTINUED", "IN_ONE", "INDENTED"])
def test_errors_in_a_literal_of_any_form_are_at_the_lines_of_the_python_file(name):
    library = autolink.cxx(globals()[name])
    with pytest.raises(autolink.CxxError, match="does not compile: identifier") as caught:
        library.eval("1 + 1")
    lines = enumerate(Path(__file__).read_text().splitlines(), 1)
    number = next(number for number, line in lines if f"unknown_{name.lower()}" in line)
    assert f"  at: {__file__}:{number}\n" in str(caught.value)


def test_errors_in_cxx_that_is_not_in_the_file_as_it_is_are_at_lines_of_the_source():
    with pytest.raises(autolink.CxxError, match=r"  at: source of autolink.cxx:2\n"):
        autolink.cxx("\n__device__ int f(int x) { return y; }".replace("y", "elsewhere")).f.signature("int32")


def test_an_unknown_member_function_is_refused():
    counter = autolink.cxx(SOURCE, namespace="shapes").type("Counter", cc=CC)
    for name, reason in (("nothing", 'has no member "nothing"'), ("hidden", "is inaccessible")):
        method = counter.method(name)

        @cuda.jit
        def kernel(r):
            memory = cuda.local.array(1, counter.dtype)
            r[0] = method(memory[0])  # noqa: B023

        with pytest.raises(TypingError) as caught:
            build(kernel, "void(float32[::1])")
        assert reason in str(caught.value) and f"Counter::{name}(Counter)" in str(caught.value)


def test_a_struct_that_no_conversion_makes_is_passed_as_a_record():
    source = "struct P { float x, y; };\n__device__ float norm(const P& p);\n__device__ float norm(P p, int);"
    library = autolink.cxx(source)
    for argtypes, remedy in (
        (
            (types.float32,),
            "let a lambda make the P: lib.expr('[](auto... x) { return norm(P{x...}); }');\n"
            "    or pass an element of an array of lib.record('P')",
        ),
        ((types.float32,) * 5, "pass as many arguments as one of these functions has parameters"),
    ):
        with pytest.raises(autolink.CxxError) as caught:
            library.norm.signature(*argtypes, cc=CC)
        assert str(caught.value).endswith(f"\n  what to do: {remedy}")


@pytest.mark.parametrize("more", ["", "__device__ float area(float r);"])
def test_arguments_of_an_ambiguous_call_are_converted_whatever_other_overloads_take(more):
    overloads = "__device__ float area(float w, float h);\n__device__ double area(double w, double h);\n"
    text = message(autolink.cxx(overloads + more), "area", ("int64", "int64"))
    assert 'more than one instance of overloaded function "area" matches' in text
    assert text.endswith(
        "what to do: convert arguments in the kernel to the types of one of these functions, such as np.float64(x) for"
        " arguments 1 and 2"
    )


@pytest.mark.parametrize(
    ("overloads", "argtypes", "conversion"),
    [
        (
            "float area(float, int); __device__ float area(float, float);",
            ("float32", "float64"),
            "np.float32(x) for argument 2",
        ),
        ("int area(long); __device__ int area(unsigned);", ("int32",), "np.int64(x)"),
    ],
)
def test_the_conversion_for_an_ambiguous_call_is_one_that_it_lacks(overloads, argtypes, conversion):
    text = message(autolink.cxx(f"__device__ {overloads}"), "area", argtypes)
    assert text.splitlines()[0].endswith('"area" matches the argument list')
    assert text.endswith(f"to the types of one of these functions, such as {conversion}")


def test_the_compilers_own_functions_are_listed_as_candidates():
    text = message(autolink.cxx(""), "atomicAdd", ("int64[::1]", "int64"))
    wrong = "does not match because argument #1 does not match parameter"
    assert f'\n  function "atomicAdd(unsigned long long *, unsigned long long)" {wrong}\n' in text
    remedy = text.rpartition("what to do: ")[2]
    assert remedy.startswith("pass an array of np.int32 or np.uint32 or np.uint64 or ") and "x.view(...)" in remedy
    of_element = message(autolink.cxx(""), "atomicAdd", ("float32", "float32"))
    assert of_element.endswith(
        "what to do: pass an array, or one element of it as a slice, x[i : i + 1]; for a variable, make it an array of"
        " one element: y = cuda.local.array(1, np.float32)"
    )


def test_a_signed_array_is_viewed_as_one_of_a_type_that_c_has():
    lib, x = autolink.cxx(""), np.zeros(2, np.int64)

    def kernel(x):
        lib["atomicAdd"](x.view(np.uint64)[1:], -2)

    build(kernel, "void(int64[::1])").emulate[1, 32](x)
    assert x.tolist() == [0, -64]


def test_a_note_of_a_template_is_at_its_line_of_the_python_file():
    lib = autolink.cxx("""
        template <class T> __device__ T inner(T x) { return x.member; }
        template <class T> __device__ T outer(T x) {
            return inner(x);
        }
    """)
    line = sys._getframe().f_lineno - 5
    text = message(lib, "outer", ("float32",))
    assert f"in C++: {__file__}:{line}\n" in text
    assert f'instantiation of "T inner(T) [with T=float]" at {__file__}:{line + 2}\n' in text


@pytest.mark.parametrize("body", ["return g(1.f);", "float y = g(1.f); return y;"])
def test_a_python_function_that_returns_nothing(body):
    lib = autolink.cxx(f"template <class F> __device__ float apply(F g) {{ {body} }}")

    def kernel(x):
        x[0] = lib.apply(lambda a: None)

    line = kernel.__code__.co_firstlineno + 1
    with pytest.raises(TypingError, match="lambda returns None, and C\\+\\+ uses its result") as raised:
        build(kernel, "void(float32[::1])")
    assert f"in Python: {__file__}:{line}\n" in str(raised.value)


def test_a_python_function_that_returns_nothing_may_be_called_for_what_it_does():
    lib = autolink.cxx("template <class F> __device__ float apply(float* x, F g) { g(x); return x[0]; }")

    def double(x):
        x[0] = 2 * x[0]

    def kernel(x):
        x[1] = lib.apply(x, double)

    build(kernel, "void(float32[::1])")


def test_a_complex_number_for_a_vector_type_is_made_one_of_its_parts():
    lib = autolink.cxx("__device__ float f(float2 x) { return x.x + x.y; }")
    text = message(lib, "f", ("complex64",))
    (made,) = re.findall(r"lib\.expr\('(.*)'\)", text)
    assert made == "[](auto x) { return f(float2{x.real(), x.imag()}); }"
    assert str(lib.expr(made).signature("complex64", cc=CC).return_type) == "float32"


def test_a_lambda_of_python_in_quotes_is_said_to_be_none_of_cxx():
    text = message(autolink.cxx(""), "lambda x, y: x * y", ("float32", "float32"))
    assert "this is a lambda of Python, and C++ is expected\n" in text
    assert "write C++, [](auto x, auto y) { return ...; }" in text


def test_a_template_argument_list_that_is_not_closed():
    text = message(autolink.cxx("template <class T> __device__ T same(T x) { return x; }"), "same<double", ("float32",))
    assert text.endswith("\n  what to do: close what < opens")


OBJECTS = """
struct A { int a; __device__ A(int) {} __device__ int get() { return a; }
           template <class T> __device__ T as() const { return a; }
           __device__ bool operator<(const A& o) const { return a < o.a; } };
struct B { int a; float b; __device__ int get() { return 2; } };
struct Derived : A { __device__ int get() { return 3; } };
struct Hidden : private A {};
namespace n { template <class T, int N> struct Ring { T x[N]; __device__ Ring(T) {} __device__ void push(T v) {} }; }
"""


def _object_of(kind, ndim=0):
    record = from_dtype(kind.dtype)
    return types.Array(record, ndim, "C") if ndim else record


def test_a_member_function_and_a_constructor_take_objects_of_their_class_and_of_derived_ones_alone():
    library = autolink.cxx(OBJECTS)
    names = ("A", "B", "Derived", "Hidden", "n::Ring<n::Ring<float, 2>, 4>", "n::Ring<float, 8>")
    a, b, derived, hidden, nested, ring = (library.type(name, cc=CC) for name in names)
    for function, argtypes in (
        (a.method("get"), [_object_of(a)]),
        (a.method("get"), [_object_of(derived)]),
        (a.method("as<int>"), [_object_of(a)]),
        (a.method("operator<"), [_object_of(a), _object_of(derived)]),
        (a, [_object_of(derived), types.int32]),
        (a.passing("element"), [types.Array(types.uint8, 1, "C"), types.int32]),
    ):
        function.signature(*argtypes, cc=CC)
    own = "pass an element of an array of lib.type({!r}).dtype"
    element = "pass an element of the array, such as x[0]"
    for function, argtypes, diagnosis, remedy in (
        (a.method("get"), [_object_of(b)], "takes an object of A, got B", own.format("A")),
        (a.method("get"), [_object_of(hidden)], "takes an object of A, got Hidden", own.format("A")),
        (a.method("as<int>"), [_object_of(b)], "takes an object of A, got B", own.format("A")),
        (a.method("operator<"), [_object_of(b)] * 2, "takes an object of A, got B", own.format("A")),
        (a.method("get"), [types.int32], "takes an object of A, got int", own.format("A")),
        (a.method("get"), [_object_of(a, 1)], "takes an object of A, got an array of them", element),
        (a, [_object_of(a, 1), types.int32], "takes memory for an object of A, got an array of them", element),
        (a, [_object_of(b), types.int32], "takes memory for an object of A, got B", own.format("A")),
        (
            nested.method("push"),
            [_object_of(ring), types.float32],
            f"takes an object of {names[4]}, got n::Ring<float, 8>",
            own.format(names[4]),
        ),
        (a.method("get"), [], "A::get takes an object first", "pass the object"),
    ):
        with pytest.raises(autolink.CABIError) as caught:
            function.signature(*argtypes, cc=CC)
        lines = str(caught.value).splitlines()
        assert lines[0].endswith(diagnosis) and lines[-1] == f"  what to do: {remedy}", str(caught.value)


def test_the_arguments_of_a_type_that_is_deduced_twice_are_named():
    source = "template <class T> __device__ T both(T a, T b) { return a; }"
    library = autolink.cxx(f"{source}\nstruct S {{ int n; {source} }};")
    method = library.type("S", cc=CC)
    for function, first, named in (
        (library.both, (), "T is float32 in argument 1 and float64 in argument 2"),
        (method.method("both"), (_object_of(method),), "T is float32 in argument 2 and float64 in argument 3"),
    ):
        with pytest.raises(autolink.CxxError) as caught:
            function.signature(*first, types.float32, types.float64, cc=CC)
        assert named in str(caught.value).partition("\n")[0]


def test_a_misspelt_member_function_is_told_from_those_of_its_class():
    source = "struct Other { __device__ int nest(); };\nstruct R {\n  int n = 0; // nxt()\n"
    source += "  __device__ explicit R(int) {}\n  __device__ int next() { int nixet(int); return n++; }\n};"
    rng = autolink.cxx(source).type("R", cc=CC)
    for name, remedy in (("nxet", "did you mean next?"), ("seed", "name a public member of R, or add it there")):
        method = rng.method(name)

        @cuda.jit
        def kernel(r):
            memory = cuda.local.array(1, rng.dtype)
            r[0] = method(memory[0])  # noqa: B023

        with pytest.raises(TypingError) as caught:
            build(kernel, "void(float32[::1])")
        assert str(caught.value).splitlines()[-1] == f"  what to do: {remedy}"


def test_a_misspelt_header_is_told_from_those_of_the_search_paths(tmp_path):
    (tmp_path / "wave").mkdir()
    (tmp_path / "wave" / "sines.cuh").touch()
    headers = {
        "cuda/std/cmaht": "cuda/std/cmath",
        "cub/blok/block_reduce.cuh": "cub/block/block_reduce.cuh",
        "wave/sine.cuh": "wave/sines.cuh",
    }
    for name, meant in headers.items():
        with pytest.raises(autolink.CxxError, match=rf"\n  what to do: did you mean {re.escape(meant)}\?$"):
            autolink.cxx(f"#include <{name}>", include_paths=tmp_path).f.signature(types.int32, cc=CC)


def test_a_broken_source_is_named_with_its_line(tmp_path):
    (tmp_path / "broken.h").write_text("\n__device__ int f(int x) { return y; }\n")
    broken = autolink.cxx("#include <broken.h>", include_paths=tmp_path)
    with pytest.raises(autolink.CxxError) as caught:
        broken.f.signature(types.int32, cc=CC)
    first, at, *_ = str(caught.value).splitlines()
    assert first == 'the C++ source of f(int32) does not compile: identifier "y" is undefined'
    assert at.strip() == f"at: {tmp_path}/broken.h:2"


def test_a_missing_header_and_a_missing_namespace_are_named():
    with pytest.raises(autolink.CxxError, match=r'cannot open source file "absent\.h"'):
        autolink.cxx("#include <absent.h>").f.signature(types.int32, cc=CC)
    with pytest.raises(autolink.CxxError, match=r"C\+\+ has no namespace absent"):
        autolink.cxx("", namespace="absent").f.signature(types.int32, cc=CC)


KERNELS = """
namespace ns {
__global__ void __launch_bounds__(128) fill(float* x) { *x = 1; }
template <class T> __global__ void copy(T* x, int n) { x[n] = x[0]; }
__device__ void copy(float* x, float* y) { *x = *y; }
template <class F, class T> __device__ void apply(F f, T x) { f(x); }
__device__ void through(float* x) { fill<<<1, 1>>>(x); }
}
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("fill(x)", "fill"),
        ("copy(x, 1)", "copy"),
        ("explicit(x, 1)", "copy"),
        ("apply(fill, x)", "fill"),
        ("lambda_(x)", "fill"),
    ],
)
def test_a_kernel_is_not_a_device_function(line, name):
    """NVRTC would inline it: overload resolution finds it, wherever the call is."""
    kernels = autolink.cxx(KERNELS, namespace="ns")
    called = {"explicit": kernels["ns::copy<float>"], "lambda_": kernels.expr("[](auto x) { fill(x); }")}
    names = {**called, **{each: kernels[each] for each in ("fill", "copy", "apply")}}
    exec(compile(f"def kernel(x):\n    copy(x, x)\n    {line}\n", "kernels.py", "exec"), names)
    with pytest.raises(TypingError) as caught:
        build(names["kernel"], "void(float32[::1])")
    text = str(caught.value)
    assert text.startswith(f"ns::{name} is a kernel (__global__), which device code cannot call\n")
    assert "kernels.py:3 in kernel" in text and "what to do: move its body into a __device__ function" in text


def test_a_kernel_is_refused_in_later_processes_too(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path))
    for _ in range(2):  # the second library finds the program in the cache
        with pytest.raises(autolink.CxxError, match="ns::fill is a kernel"):
            autolink.cxx(KERNELS).__getitem__("ns::fill").signature("float32[::1]", cc=CC)


def test_kernels_that_the_source_launches_are_its_own_affair(recwarn):
    kernels = autolink.cxx(KERNELS, namespace="ns")
    launch = kernels.expr("[](auto x) { copy<float><<<1, 1>>>(x, 1); through(x); }")
    assert launch.signature("float32[::1]", cc=CC).return_type == types.none
    assert not recwarn.list


def test_functions_that_devices_cannot_call_are_refused():
    host = autolink.cxx("__host__ float f(float x) { return x; }")
    with pytest.raises(autolink.CxxError) as caught:
        host.f.signature("float32", cc=CC)
    assert "explicitly marked as a __host__ function" in caught.value.log
    assert "what to do: mark it __host__ __device__; or put what only the host needs between" in str(caught.value)
    at_compile_time = autolink.cxx("consteval __device__ int f(int x) { return x; }", options={"std": "c++20"})
    with pytest.raises(autolink.CxxError, match='consteval function "f" did not produce a valid constant'):
        at_compile_time.f.signature("int32", cc=CC)


def test_the_error_of_a_template_belongs_to_the_call_that_instantiates_it():
    @cuda.jit
    def kernel(x):
        checked(x[0])
        member(x[0])

    checked, member = lib.checked, lib.member
    with pytest.raises(TypingError) as caught:
        build(kernel, "void(float64[::1])")
    assert str(caught.value).startswith('checked(float64): static assertion failed with "only four bytes"\n')


@pytest.mark.parametrize(("factor", "has_candidates"), [("x", False), ("__half(x)", True)])
def test_operators_of_half_are_candidates_of_half_only(factor, has_candidates):
    text = f"""
        #include <cuda_fp16.h>
        struct V {{ float a; }};
        template <class T> __device__ T scaled(T v, float x) {{ return v * {factor}; }}
        __device__ float call(float x) {{ return scaled(V{{x}}, x).a; }}
    """
    with pytest.raises(autolink.CxxError, match=r"no operator .* matches these operands") as caught:
        autolink.cxx(text).call.signature("float32", cc=CC)
    assert ("cuda_fp16.h" in str(caught.value)) == has_candidates
    assert has_candidates or "instantiation of" in str(caught.value)
    assert "cuda_fp16.h" in caught.value.log


def test_a_function_of_another_library_is_not_an_argument():
    other = autolink.cxx("__device__ float g(float x) { return x; }").g
    call = lib.expr("[](auto f) { return f(1.0f); }")

    @cuda.jit
    def kernel(r):
        r[0] = call(other)

    with pytest.raises(TypingError, match=r"argument 1: .* is a function of another library"):
        build(kernel, "void(float32[::1])")


def test_a_library_is_not_an_argument():
    def kernel(r):
        r[0] = lib.overlap(lib, r[0])

    with pytest.raises(TypingError, match="argument 1: an object that is not a function of C\\+\\+ cannot be passed"):
        build(kernel, "void(float32[::1])")


def test_the_log_has_all_that_nvrtc_said():
    with pytest.raises(autolink.CxxError) as caught:
        lib.overlap.signature(types.complex64, types.complex64, cc=CC)
    assert "errors detected in the compilation" in caught.value.log


def test_a_name_that_is_unknown_too_is_not_suggested():
    both = autolink.cxx("__device__ float mix(float x) { return x * WEIGHT_A + WEIGHT_B; }")
    assert "what to do: if WEIGHT_A is a macro, define it" in message(both, "mix", ("float32",))
    one = autolink.cxx("constexpr int WEIGHT_B = 2; __device__ float mix(float x) { return x * WEIGHT_A + WEIGHT_B; }")
    assert message(one, "mix", ("float32",)).endswith("what to do: did you mean WEIGHT_B?")


GUARDED = """
#ifndef TALLY_HPP
#define TALLY_HPP
namespace tally {
/* count(x)
   is declared below */
#ifdef TALLY_EXTRA
__device__ int count(int x) { return x; }
#endif
#ifndef __CUDACC_RTC__
struct File { int of; };
#else
__device__ int plain(int x) { return x; }
#endif
}
#endif
"""


@pytest.mark.parametrize(
    ("name", "guard"),
    [("count", "#ifdef TALLY_EXTRA"), ("tally::count", "#ifdef TALLY_EXTRA"), ("File", "#ifndef __CUDACC_RTC__")],
)
def test_a_name_within_a_condition_is_said_to_be_there(name, guard, tmp_path):
    (tmp_path / "tally.hpp").write_text(GUARDED)
    library = autolink.cxx("#include <tally.hpp>", include_paths=[tmp_path], namespace="tally")
    with pytest.raises(autolink.CxxError, match=f"what to do: define what {guard} asks for, or use another name: "):
        library.type(name) if name == "File" else library[name].signature("int32")
    assert str(library.plain.signature("int32")) == "(int32,) -> int32"


def test_a_class_with_a_call_operator_is_called_as_an_object():
    source = "struct Avg { __device__ float operator()(float x, float y) const { return (x + y) / 2; } };"
    library = autolink.cxx(source)
    with pytest.raises(autolink.CxxError) as caught:
        library.Avg.signature(types.float32, types.float32, cc=CC)
    first, *_, todo = str(caught.value).splitlines()
    assert first == "Avg(float32, float32): Avg is a class with operator(), not a function"
    assert todo == "  what to do: call an object of it: lib.expr('[](auto... x) { return Avg()(x...); }')"
    called = library.expr("[](auto... x) { return Avg()(x...); }")
    assert called.signature(types.float32, types.float32, cc=CC).return_type == types.float32


def test_the_first_line_is_not_cut_within_a_type():
    library = autolink.cxx(
        "struct Quite_a_long_name_of_a_class {}; __device__ int consume(Quite_a_long_name_of_a_class a, int b, int c);"
    )
    with pytest.raises(autolink.CxxError) as caught:
        library.consume.signature(types.float32[:, ::1], types.int32, types.int32, cc=CC)
    first = str(caught.value).partition("\n")[0]
    assert first.startswith("consume(...): ") or "..." not in first


def test_a_standard_before_cxx17_is_refused():
    with pytest.raises(autolink.LinkInputError) as caught:
        autolink.cxx("__device__ int f() { return 1; }", options={"std": "c++14"})
    diagnosis, todo = str(caught.value).splitlines()
    assert diagnosis == "cxx() needs C++17 or later, and options= set std to 'c++14'"
    assert todo == "  what to do: leave std out, which is C++17 then, or set it to 'c++20'"


def test_arguments_of_what_is_not_a_template():
    text = message(autolink.cxx("__device__ float square(float x) { return x * x; }"), "square<float>", ("float32",))
    assert text.startswith("square<float>(float32): square is not a template\n")
    assert text.endswith("\n  what to do: leave out its <...>, write lib.square")


VIEWS = """
    #include <cuda/std/mdspan>
    template <class V> __device__ float trace(V a) { return a.extent(0) + a(0, 0); }
    template <class V> __device__ float size_of(int n, V a) { return a.size() + n; }
    template <class T, class E, class L> __device__ T corner(cuda::std::mdspan<T, E, L> a) { return a[0, 0]; }
    template <class T, class E, class L> __device__ T first(cuda::std::mdspan<T, E, L> a) { return a[0]; }
"""


def test_an_array_in_a_template_that_takes_a_view_is_passed_as_one():
    views = autolink.cxx(VIEWS)
    text = message(views, "trace", ("float32[:, ::1]",))
    assert "pass a view, trace = lib.trace.passing('mdspan') before the kernel" in text
    assert views.trace.passing("mdspan").signature("float32[:, ::1]").return_type == types.float32
    text = message(views, "size_of", ("int32", "float32[::1]"))
    assert "size_of = lib.size_of.passing(None, 'span')" in text
    assert views.size_of.passing(None, "span").signature("int32", "float32[::1]").return_type == types.float32
    assert "passing" not in message(views, "trace", ("float32",))


@pytest.mark.parametrize(
    ("name", "diagnosis", "todo"),
    [
        ("corner", "an mdspan has no a[0, 0] before C++23, but a(0, 0)", "write a(0, 0)"),
        ("first", "an mdspan takes 2 indices, as in a(i, j), got 1", "write a(i, j)"),
    ],
)
def test_an_index_in_brackets_of_an_mdspan_says_what_to_write(name, diagnosis, todo):
    text = message(autolink.cxx(VIEWS), name, ("float32[:, ::1]",))
    assert text.startswith(f"{name}(array(float32, 2d, C)): {diagnosis}\n")
    assert "candidate" not in text and "more line" not in text
    lines = text.splitlines()
    number = next(number for number, line in enumerate(lines) if "return a[0" in line)
    assert lines[number + 1].index("^") == lines[number].index("a[0") + 1
    assert f"\n  what to do: {todo}" in text
    source = "__device__ float f(cuda::std::mdspan<float, cuda::std::dims<2>> a)\n{ return a[1, 1]; }"
    plain = message(autolink.cxx(f"#include <cuda/std/mdspan>\n{source}"), "f", ("float32[:, ::1]",))
    assert "\n  what to do: write a(1, 1)" in plain and "candidate" not in plain


def test_an_mdspan_of_another_rank_than_its_indices_says_both():
    lib = autolink.cxx("""
    #include <cuda/std/mdspan>
    template <class T, class E, class L> __device__ T corner(cuda::std::mdspan<T, E, L> a) { return a(0, 0); }
    """)
    for argtype, rank, indices in (("float32[::1]", 1, "i"), ("float32[:, :, ::1]", 3, "i, j, k")):
        lines = message(lib, "corner", (argtype,)).splitlines()
        assert lines[0].endswith(f": a is {rank}d, and C++ indexes it with 2")
        number = next(number for number, line in enumerate(lines) if "return a(0, 0)" in line)
        assert f"in C++: {__file__}:" in lines[number - 1]
        assert lines[number + 1].index("^") == lines[number].index("a(0, 0)")
        assert lines[-1] == f"  what to do: write a({indices}), or pass a 2d array"


@pytest.mark.parametrize(("argtype", "written"), [("int32[:]", "int32[::1]"), ("float32[:, :]", "int32[:, ::1]")])
def test_a_strided_array_for_a_pointer_names_the_type_of_signatures(argtype, written):
    assert f"pass a contiguous array (in signatures: {written}), or a copy" in message(
        lib, "corner", (argtype, "int32")
    )


CLASSES = """
    #include <cub/block/block_reduce.cuh>
    struct A { __device__ float get(float x) const { return x; } };
    struct Q { float a; __device__ Q(float x, float y) : a(x) {} };
    template <class T> struct V { T a; __device__ V(T x, T y) : a(x) {} };
"""
OF_MEMBERS = "for its members, lib.expr('[](auto... members) { return A{members...}; }');"


@pytest.mark.parametrize(
    ("name", "constructors", "remedy"),
    [
        ("A", [], OF_MEMBERS),
        ("Q", ["Q(float, float)"], "pass the arguments of a constructor;"),
        ("V<float>", ["V(T, T) with T=float"], "pass the arguments of a constructor;"),
        ("cub::BlockReduce<float, 128>", ["BlockReduce(TempStorage &)", "BlockReduce()"], "pass the arguments of"),
        ("cub::BlockReduce", [], 'name the arguments of the class template: lib["cub::BlockReduce<...>"], or give'),
    ],
)
def test_a_class_that_is_called_as_a_function_says_so_with_its_constructors(name, constructors, remedy):
    classes = autolink.cxx(CLASSES)
    text = message(classes, name, ("float32",))
    assert text.startswith(f"{name}(float32): it is a class") and "np.float64" not in text
    listed = re.findall(r"constructor: (.*) \(", text)
    assert listed == constructors and f"\n  what to do: {remedy}" in text
    of = name if "<" in name or name in "AQ" else f"{name}<...>"
    assert text.endswith(f"call it: lib.expr('[](auto x) {{ return {of}(...).f(x); }}')")
    assert max(map(len, text.splitlines())) < 180


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (
            'extern "C" __device__ float f(float x) { return x; }\nextern "C" __device__ float f(int x) { return x; }',
            '  what to do: give each function a name of its own, or leave out extern "C": C has no overloads',
        ),
        (
            "__device__ float f(float x) { return x; }\n__device__ float f(float y) { return y; }",
            "  previous definition at: ",
        ),
        ("#include <cusolverRf.h>", "  what to do: install the package that has it, "),
        ("#include <nvshmem.h>", "nvidia-nvshmem-cu"),
    ],
)
def test_definitions_and_headers_of_other_packages(source, shown):
    assert f"\n{shown}" in message(autolink.cxx(source), "f", ("float32",)).replace("pip install ", "\n")


def test_a_kernel_of_cxx_that_python_launches():
    kernels = autolink.cxx("__global__ void k(float* x) { x[0] = 1; } __device__ void f() {}")
    with pytest.raises(autolink.CABIError, match=r"k is a kernel of C\+\+ \(__global__\), which Python"):
        kernels.k[1, 1](np.zeros(3))
    with pytest.raises(autolink.CABIError, match="f is a C\\+\\+ function, which has no index"):
        kernels.f[1, 1]()


def test_a_name_that_the_source_has_below_is_declared_before():
    lib = autolink.cxx(
        "template <class T> __device__ T f(T x) { return g(x); } template <class T> __device__ T g(T x) { return x; }"
    )
    assert message(lib, "f", ("float32",)).endswith(
        "\n  what to do: declare g before that place, or include the header that does"
    )


@pytest.mark.parametrize(
    ("body", "marked", "more"),
    [
        ("float* p = x; return y;", "x; return", '  also at: source of autolink.cxx:2: identifier "y" is undefined'),
        ('float w = "a"; return w;', '"a"', ""),
        (
            "return cuda::std::max(x, 0);",
            "cuda::std::max",
            "  what to do: _Tp is float in argument 1 and int in argument 2: convert one of the two, so that both have"
            " one type",
        ),
    ],
)
def test_the_place_in_cxx_is_the_second_line_of_an_error_of_the_source(body, marked, more):
    text = f"__device__ float f(float x) {{ {body} }}"
    lines = message(autolink.cxx(f"#include <cuda/std/algorithm>\n{text}"), "f", ("float32",)).splitlines()
    assert lines[0].startswith("the C++ source does not compile: ")
    assert lines[1] == "  at: source of autolink.cxx:2" and lines[2].strip() == text
    assert lines[3].index("^") == lines[2].index(marked) and "  call: f(float32)" in lines
    assert any(each.startswith("  called from: ") and "wrong_call.py:2 in kernel" in each for each in lines)
    assert more in lines or not more


@pytest.mark.parametrize("other", ["", "struct R { int i; }; __device__ R operator+(R a, R b) { return a; }"])
def test_an_operator_that_is_a_member_is_called_by_its_class_or_a_lambda(other):
    vectors = autolink.cxx(f"struct V {{ float x; __device__ V operator+(V o) {{ return {{x + o.x}}; }} }}; {other}")
    dtype = vectors.type("V").dtype

    def with_(add):
        def kernel(r):
            v = cuda.local.array(2, dtype)
            v[0] = add(v[0], v[1])

        build(kernel, (types.float32[::1],))

    with pytest.raises(TypingError) as caught:
        with_(vectors["operator+"])
    todo = message_of(caught.value).partition("\n  what to do: ")[2]
    made = "lib.expr('[](auto a, auto b) { return a + b; }')"
    assert "lib.type('V').method('operator+')" in todo and made in todo
    with_(vectors.type("V").method("operator+"))
    with_(vectors.expr("[](auto a, auto b) { return a + b; }"))


def test_a_member_of_an_object_in_memory_is_a_field_of_a_record():
    points = autolink.cxx("struct P { float x; int id; __device__ int next(); };")
    dtype = points.type("P").dtype

    def kernel(r):
        p = cuda.local.array(1, dtype)
        p[0].y = 3

    with pytest.raises(TypingError) as caught:
        build(kernel, (types.int32[::1],))
    todo = message_of(caught.value).partition("\n  what to do: ")[2]
    assert "lib.record('P')" in todo and "lib.expr('[](P& x) { return x.y; }')" in todo and "method" not in todo


def test_a_value_that_cxx_writes_to_is_made_a_variable():
    text = message(
        autolink.cxx("__device__ int inc(float& x) { x += 1; return 1; }"), "inc", ("float32",), "r[0] = f({} * 2.0)"
    )
    todo = "pass an element of an array of np.float32; or a variable, and store it after the call: "
    assert f"what to do: {todo}n = np.float32(v); inc(n); v = n" in text


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize(
    ("written", "todo"),
    [
        ("f(r[0]) * 2", "use its members, .a, .b; or let C++ do it: lib.expr('[](auto x, auto y) { return x * y; }')"),
        ("-f(r[0])", "use its members, .a, .b; or let C++ do it: lib.expr('[](auto x) { return -x; }')"),
        ("abs(f(r[0]))", "use its members: .a, .b"),
    ],
)
def test_what_calculates_with_a_struct_names_its_members(front_end, written, todo):
    pytest.importorskip(front_end.replace("-", "_"))
    names = {"f": autolink.cxx("struct R { float a, b; }; __device__ R f(float x) { return {x, x}; }").f}
    exec(compile(f"def kernel(r):\n    r[0] = {written}\n", "struct_call.py", "exec"), names)
    with pytest.raises(Exception, match=re.escape(f"\n  what to do: {todo}")):
        autolink.build(front_end_named(front_end).cuda.jit(names["kernel"]), "void(float32[::1])", cc=(9, 0))


def test_only_what_does_not_follow_from_an_unclosed_brace_is_listed():
    source = """
        __device__ float before(float x) { return unknown_before; }
        __device__ float area(float r) {
            if (r > 0) {
                return r;
            return -r;
        }
        __device__ float after(float x) { return x }
    """
    with pytest.raises(autolink.CxxError) as caught:
        autolink.cxx(source).area.signature("float32", cc=CC)
    text = str(caught.value)
    assert 'expected a "}" to match this "{"' in text.splitlines()[0]
    others = [line.partition(": ")[2] for line in text.splitlines() if line.startswith("  also at: ")]
    assert [each.partition(": ")[2] for each in others] == ['identifier "unknown_before" is undefined']
    assert "more errors" not in text


NESTED = autolink.cxx("""
    namespace geo { __device__ float area(float r); namespace inner { __device__ float width(float a); } }
    __device__ float mixed(float a, double b);
    __device__ float mixed(double a, float b);
    template <class T, int N> __device__ T fold(const T* x) { return x[0] + N; }
""")


@pytest.mark.parametrize(
    ("name", "argtypes", "remedy"),
    [
        ("geo::aera", ["float32"], "did you mean geo::area?"),
        ("geo::inner::widht", ["float32"], "did you mean geo::inner::width?"),
        ("geo::nothing", ["float32"], "; the source has geo::area"),
        ("goe::area", ["float32"], "write its namespace: geo::area"),
        ("mixed", ["float32"] * 2, "such as np.float64(x) for argument 2"),
        ("mixed", ["complex64"] * 2, "pass x.real, x.imag or abs(x): C++ takes no complex number there"),
        ("fold<float>", ["float32[::1]"], 'lib["fold<float, N>"], with a value or type for N'),
    ],
)
def test_a_name_in_a_namespace_and_the_argument_to_convert_are_said(name, argtypes, remedy):
    with pytest.raises(autolink.CxxError) as caught:
        NESTED[name].signature(*argtypes, cc=CC)
    assert str(caught.value).endswith(remedy)


@pytest.mark.parametrize(
    ("source", "todo"),
    [
        ("__device__ float f(float x) { const float y = x; y = 2; return y; }", "do not assign to what is const"),
        ("__device__ float f(float x) { return two(x, x, x); }", "pass no more arguments than the function there"),
        ("__device__ float f(float x) { return two(x); }", "pass all arguments that the function there declares"),
        (
            "template <class T> struct H { using V = T; };"
            " template <class T> __device__ T g(T x) { H<T>::V y = x; return y; }"
            " __device__ float f(float x) { return g(x); }",
            "write typename before that type",
        ),
        ("struct P {}; __device__ float f(float x) { return P{} < P{}; }", "define that operator for the class"),
        (
            "struct A { __device__ virtual float v() = 0; }; __device__ float f(float x) { A a; return x; }",
            "make an object of a derived class",
        ),
    ],
)
def test_what_to_write_for_an_error_of_the_source(source, todo):
    text = message(autolink.cxx(f"__device__ float two(float x, float y) {{ return x; }} {source}"), "f", ("float32",))
    assert f"\n  what to do: {todo}" in text


def test_an_error_in_a_header_of_cuda_is_at_the_line_that_instantiates_it():
    lib = autolink.cxx("""
        #include <cuda/std/algorithm>
        struct P { float v; };
        __device__ float f(float x) { P a{x}, b{2}; return cuda::std::max(a, b).v; }
    """)
    line = sys._getframe().f_lineno - 2
    first, second, third = message(lib, "f", ("float32",)).split("\n")[:3]
    assert 'no operator "<" matches these operands' in first
    assert second == f"  at: {__file__}:{line}"
    assert "in the header: " in message(lib, "f", ("float32",)) and third


def test_a_misspelt_constant_gets_the_one_that_is_meant():
    lib = autolink.cxx("constexpr int lanes = 4; __device__ int n;")
    with pytest.raises(autolink.CxxError, match=r"did you mean lanes\?"):
        lib.eval("lane")
