# SPDX-License-Identifier: BSD-2-Clause
"""Kernels that call functions of CUDA C++ with other types than these have."""

from __future__ import annotations

import pytest
from autolink_support import CC, build, compiled
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.cudadrv.external_code.cache.store import reset_store
from numba.cuda.cudadrv.external_code.compile import programs
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError


class Function(autolink.DeviceCallable):
    """Calls the C function *symbol* of *code* with the types of the arguments."""

    def __init__(self, symbol, *code, returns=None, args=None, **options):
        self.symbol, self.code, self.returns, self.args, self.options = symbol, code, returns, args, options

    def __repr__(self):
        return self.symbol

    def __numba_cuda_call__(self, x):
        return autolink.Extern(self.symbol, returns=self.returns or x, args=self.args)

    def __numba_cuda_link__(self, x):
        return [autolink.CUDASource(code, name="functions.cu", **self.options) for code in self.code]


def one_call(function):
    def kernel(x):
        x[0] = function(x[1])

    return kernel


def define(symbol, result="float", parameter="float"):
    return f'extern "C" __device__ {result} {symbol}({parameter} x) {{ return x; }}\n'


@pytest.fixture
def compiles(monkeypatch, tmp_path):
    """The units that NVRTC compiles, with an empty cache."""
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path))
    reset_store()
    units, compile_unit = [], programs.compile_unit

    def counted(unit, names=()):
        units.append(unit)
        return compile_unit(unit, names)

    monkeypatch.setattr(programs, "compile_unit", counted)
    yield units
    monkeypatch.undo()
    reset_store()


def test_calls_with_equal_types_are_checked_once(compiles):
    function = Function("same", define("same"))

    def kernel(x):
        x[0] = function(x[1])
        x[2] = function(x[3])

    build(kernel, "void(float32[::1])")
    build(one_call(function), "void(float32[::1])")
    assert len(compiles) == 1
    reset_store()
    build(one_call(function), "void(float32[::1])")
    assert len(compiles) == 1


def test_functions_of_one_source_share_its_program(compiles):
    code = define("one") + define("two", "double", "double") + define("three", "int", "int")
    kernels = [
        (one_call(Function("one", code)), "void(float32[::1])"),
        (one_call(Function("two", code)), "void(float64[::1])"),
        (one_call(Function("three", code)), "void(int32[::1])"),
    ]
    built = [build(*each) for each in (*kernels, *kernels)]
    assert len(compiles) == 3
    linked = {part.compiled.sha256 for each in built for part in each.facts.link.inputs if part.compiled is not None}
    assert len(linked) == 1


def test_each_of_several_functions_is_checked(compiles):
    code = define("one") + define("two") + define("three")
    one, two, three = (Function(symbol, code) for symbol in ("one", "two", "three"))

    def kernel(x, y, z):
        x[0] = one(x[1])
        y[0] = two(y[1])
        z[0] = three(z[1])

    with pytest.raises(LinkError) as caught:
        build(kernel, "void(float32[::1], float64[::1], int32[::1])")
    text = str(caught.value)
    assert "'three' is called with other types" in text
    assert "got: double two(double) for" in text and "expected: float two(float)," in text
    assert "got: int three(int) for" in text and "expected: float three(float)," in text
    assert "one(float)" not in text


def test_what_fails_is_not_cached(compiles):
    wrong = one_call(Function("wrong", define("wrong", parameter="double")))
    for _ in range(2):
        with pytest.raises(LinkError, match="other types"):
            build(wrong, "void(float32[::1])")
    build(one_call(Function("wrong", define("wrong", parameter="double"), args={"x": "float64"})), "void(float32[::1])")


def test_one_function_is_called_with_pointers_to_different_types():
    def fills(parameter):
        fill = Function("fill", f'extern "C" __device__ void fill({parameter} x) {{}}', returns=types.none)

        def kernel(x, y):
            fill(x)
            fill(y)

        return kernel

    build(fills("void*"), "void(float32[::1], int32[::1])")
    with pytest.raises(LinkError) as caught:
        build(fills("int*"), "void(float32[::1], int32[::1])")
    assert "got: void fill(float*) for" in str(caught.value)
    assert "void fill(int*) for" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "defines"),
    [
        ('#define DEFINE(T) extern "C" __device__ T identity_##T(T x) { return x; }\nDEFINE(float)', {}),
        (define("NAME"), {"NAME": "identity_float"}),
    ],
)
def test_functions_whose_names_macros_make(code, defines):
    build(one_call(Function("identity_float", code, defines=defines)), "void(float32[::1])")
    with pytest.raises(LinkError, match=r"expected: float identity_float\(float\)"):
        build(one_call(Function("identity_float", code, defines=defines)), "void(int32[::1])")


def test_functions_of_a_shared_unit():
    right, wrong = Function("right", define("right"), unit="u"), Function("wrong", define("wrong", "int"), unit="u")

    def kernel(x):
        x[0] = right(x[1]) + wrong(x[2])

    with pytest.raises(LinkError, match="'wrong' is called with other types"):
        build(kernel, "void(float32[::1])")


@pytest.mark.parametrize("lto", [True, False])
@pytest.mark.parametrize(
    "other",
    [
        'extern "C" __device__ int elsewhere(int x);',
        "__device__ int elsewhere(int x) { return x; }",
    ],
)
def test_a_unit_that_does_not_define_the_function_is_not_refused(other, lto):
    build(one_call(Function("elsewhere", other, define("elsewhere"))), "void(float32[::1])", lto=lto)


def test_code_of_another_object_is_checked_by_name():
    class Calls(Function):
        def __numba_cuda_link__(self, x):
            return None

    calls, provides = Calls("provided"), Function("other", define("other") + define("provided", parameter="int"))

    def kernel(x):
        x[0] = calls(x[1]) + provides(x[2])

    with pytest.raises(LinkError, match="'provided' is called with other types"):
        build(kernel, "void(float32[::1])")


AS_NUMBA = 'extern "C" __device__ int given(float* r, float x) { *r = x; return 0; }'
AS_C = 'extern "C" __device__ float given(float x) { return x; }'


def build_declared(given, lto, link=()):
    @cuda.jit
    def kernel(x):
        x[0] = given(x[1])

    autolink.build(kernel, "void(float32[::1])", cc=CC, lto=lto, link=link)


@pytest.mark.parametrize("lto", [True, False])
@pytest.mark.parametrize("abi, code, other", [("numba", AS_NUMBA, AS_C), ("c", AS_C, AS_NUMBA)])
def test_sources_of_link_are_compared(tmp_path, abi, code, other, lto):
    """A C function whose result Numba expects in memory would be linked into garbage."""
    file, wrong = tmp_path / "given.cu", tmp_path / "other.cu"
    file.write_text(code)
    wrong.write_text(other)
    given = cuda.declare_device("given", "float32(float32)", abi=abi)
    build_declared(given, lto, [str(file)])
    build_declared(cuda.declare_device("given", "float32(float32)", link=cuda.CUSource(code), abi=abi), lto)
    with pytest.raises(LinkError, match="'given' is called with other types than it has") as caught:
        build_declared(given, lto, [str(wrong)])
    remedy = str(caught.value).rpartition("what to do: ")[2]
    if abi == "numba":
        assert remedy.startswith(
            """declare it as the C function that it is, declare_device('given', ..., abi="c"); or"""
        )
        assert 'extern "C" __device__ int given(float*, float), which writes the result' in remedy
    else:
        assert "the types of declare_device's signature" in remedy


@pytest.mark.parametrize("kind", [cuda.PTXSource, cuda.LTOIR, cuda.Cubin])
def test_compiled_code_of_link_is_compared(kind):
    output = {cuda.PTXSource: "ptx", cuda.LTOIR: "ltoir", cuda.Cubin: "cubin"}[kind]
    given = cuda.declare_device("given", "float32(float32)")
    lto = kind is cuda.LTOIR
    build_declared(given, lto, [kind(compiled(AS_NUMBA, output))])
    with pytest.raises(LinkError, match="'given' is called with the wrong signature"):
        build_declared(given, lto, [kind(compiled(AS_C, output))])


@pytest.mark.parametrize(
    "signature, code",
    [
        ("uint8(boolean, int8, uint16)", "(unsigned char* r, bool a, char b, short c)"),
        ("void(CPointer(float32), voidptr)", "(void**, const float* x, long y)"),
        ("float16(uint32, int64)", "(short* r, int a, unsigned long b)"),
        ("complex64(complex64)", "(float2* r, float x, float y)"),
    ],
)
def test_what_numba_passes_to_sources_of_link_fits(signature, code):
    _build_fitting(signature, f"int fits{code} {{ return 0; }}", "numba")


@pytest.mark.parametrize(
    "signature, code",
    [
        ("void(CPointer(float32), voidptr)", "void fits(const float* x, long y) {}"),
        ("uint8(boolean, int8, uint16)", "unsigned char fits(bool a, char b, short c) { return 0; }"),
        ("boolean(uint32, int64)", "bool fits(int a, unsigned long b) { return false; }"),
        ("CPointer(float32)(CPointer(float32))", "float* fits(float* x) { return x; }"),
        ("float64(float64)", "double fits(double x) { return x; }"),
    ],
)
def test_what_numba_passes_to_c_functions_of_link_fits(signature, code):
    _build_fitting(signature, code, "c")


def test_a_c_function_without_a_result_may_be_compiled_code():
    code = compiled('extern "C" __device__ void given(float* x) { *x = 1; }', "ltoir")
    _build_fitting("void(CPointer(float32))", cuda.LTOIR(code), "c", "given")


def _build_fitting(signature, code, abi, name="fits"):
    source = cuda.CUSource(f'extern "C" __device__ {code}') if isinstance(code, str) else code
    fits = cuda.declare_device(name, eval(signature, vars(types)), link=source, abi=abi)
    arguments = eval(signature, vars(types)).args
    names = ", ".join(f"a{number}" for number in range(len(arguments)))
    namespace = {"fits": fits}
    exec(f"def kernel({names}):\n    fits({names})", namespace)
    autolink.build(cuda.jit(namespace["kernel"]), types.void(*arguments), cc=CC)


def test_the_functions_that_a_kernel_calls_are_listed():
    function = Function("listed", define("listed"))
    (called,) = build(one_call(function), "void(float32[::1])").called_functions
    assert called.declaration == "float listed(float)"
    assert called.call.startswith(f"the call with (float32) at {__file__}:")


@pytest.mark.parametrize("word", ["__global__", "__attribute__((global))"])
@pytest.mark.parametrize("lto", [True, False])
def test_a_kernel_is_not_called_as_a_function(lto, word):
    """Its parameters are elsewhere. The linker says nothing."""
    function = Function("f", f'extern "C" {word} void f(int x) {{}}', returns=types.void)

    def kernel(x):
        function(x[1])

    with pytest.raises(
        LinkError, match=r"'f' is called as a function, but it is a kernel\n  called at: .* in .*kernel"
    ):
        build(kernel, lto=lto)
