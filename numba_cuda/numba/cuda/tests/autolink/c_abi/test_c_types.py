# SPDX-License-Identifier: BSD-2-Clause
"""The C ABI: a device callable passes arguments and results as NVRTC compiles the same prototype."""

import enum
import functools
import re
from collections import namedtuple

import numpy as np
import pytest
from autolink_support import build, symbols
from cuda.bindings import nvrtc
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.compile.translation_unit import toolkit_include_paths
from numba.cuda.np.numpy_support import from_dtype

HEADERS = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
NUMBERS = {
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "boolean": "bool",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "float2",
    "complex128": "double2",
}
# From compute capability 10.0 on NVVM is another one, with another dialect of LLVM IR.
DIALECTS = [(9, 0), (10, 0)]
Point = namedtuple("Point", "x y")
Color = enum.IntEnum("Color", "RED BLUE")
PARTICLE = np.dtype([("mass", "f4"), ("position", "f8", 3), ("id", "u2")], align=True)
READONLY = types.Array(types.float32, 1, "C", readonly=True)
POINTERS = {
    "array": (types.float32[::1], "float*"),
    "array_2d": (types.int16[:, ::1], "short*"),
    "array_fortran": (types.float64[::1, :], "double*"),
    "array_readonly": (READONLY, "const float*"),
    "array_bool": (types.boolean[::1], "bool*"),
    "array_half": (types.float16[::1], "__half*"),
    "array_complex": (types.complex128[::1], "double2*"),
    "array_record": (from_dtype(PARTICLE)[::1], "void*"),
    "record": (from_dtype(PARTICLE), "void*"),
    "tuple": (types.UniTuple(types.float32, 3), "const float*"),
    "tuple_complex": (types.UniTuple(types.complex64, 2), "const float2*"),
    "tuple_mixed": (types.Tuple((types.int8, types.complex128, types.boolean)), "const void*"),
    "tuple_nested": (types.UniTuple(types.UniTuple(types.float32, 3), 2), "const void*"),
    "tuple_named": (types.NamedUniTuple(types.float64, 2, Point), "const double*"),
    "pointer": (types.CPointer(types.int32), "int*"),
    "pointer_void": (types.voidptr, "void*"),
}


class C(autolink.DeviceCallable):
    """A C function that takes the arguments of the call."""

    def __init__(self, symbol, returns=None, *, args=None, source=None):
        self.symbol, self.returns, self.args, self.source = symbol, returns, args, source

    def __repr__(self):
        return self.symbol

    def __numba_cuda_call__(self, *args):
        return autolink.Extern(self.symbol, returns=self.returns, args=self.args)

    def __numba_cuda_link__(self, *args):
        return self.source and autolink.CUDASource(HEADERS + self.source)


def declarations(ptx):
    """Return the external functions that PTX text declares, each as one line."""
    return sorted(" ".join(found.split()) for found in re.findall(r"\.extern \.func[^;]*;", ptx))


def from_numba(kernel, *argtypes, cc=(9, 0)):
    return declarations(cuda.compile(kernel, argtypes, cc=cc, device=False, abi="numba", output="ptx")[0])


@functools.cache
def nvrtc_declarations(cc=(9, 0)):
    """Return NVRTC's declarations of all prototypes in this file, by name."""
    prototypes = [f"{cxx} returns_{name}()" for name, cxx in NUMBERS.items()]
    prototypes += [f"void takes_{name}({cxx} a)" for name, cxx in NUMBERS.items()]
    prototypes += [f"void takes_{name}({cxx} a)" for name, (_, cxx) in POINTERS.items()]
    prototypes += [
        "void nothing()",
        "void* returns_pointer()",
        "__half mixed(bool a, double2 b, signed char c, __half d, char* e, short f, float2 g, double h, float* i)",
    ]
    calls = ""
    for prototype in prototypes:
        result, name, parameters = re.fullmatch(r"(.*) (\w+)\((.*)\)", prototype).groups()
        values = [f"*({parameter.rpartition(' ')[0]}*)p" for parameter in parameters.split(", ") if parameter]
        calls += f"{'' if result == 'void' else f'*({result}*)p ='} {name}({', '.join(values)});\n"
    declared = "\n".join(f'extern "C" __device__ {prototype};' for prototype in prototypes)
    source = f'{HEADERS}{declared}\nextern "C" __global__ void kernel(char* p) {{ {calls} }}'
    found = declarations(nvrtc_ptx(source, cc))
    names = [re.search(r"\b([a-z]\w*) \(", declaration.replace("func (", "")).group(1) for declaration in found]
    return dict(zip(names, found, strict=True))


def nvrtc_ptx(source, cc):
    """Return PTX straight from NVRTC: `cuda.core` needs a driver for it."""

    def call(function, *args):
        result, *values = function(*args)
        assert result == nvrtc.nvrtcResult.NVRTC_SUCCESS, result
        return values[0] if values else None

    program = call(nvrtc.nvrtcCreateProgram, source.encode(), b"abi.cu", 0, [], [])
    arch = f"-arch=compute_{cc[0]}{cc[1]}".encode()
    options = [b"-rdc=true", arch, *(f"-I{path}".encode() for path in toolkit_include_paths())]
    call(nvrtc.nvrtcCompileProgram, program, len(options), options)
    text = b" " * call(nvrtc.nvrtcGetPTXSize, program)
    call(nvrtc.nvrtcGetPTX, program, text)
    return text.decode()


def kernel_of(parameters, statement, more=(), **objects):
    """A kernel with these *parameters* and, for each, a *statement* in which ``NAME`` is the parameter's name."""
    body = "".join(f"    {line}\n" for each in parameters for line in statement.replace("NAME", each).split("; "))
    exec(f"def kernel({', '.join((*parameters, *more))}):\n{body}", objects)
    return objects["kernel"]


def test_types_have_their_cxx_names():
    assert {name: autolink.cxx_type(getattr(types, name)) for name in NUMBERS} == NUMBERS
    assert {name: autolink.cxx_type(argtype) for name, (argtype, _) in POINTERS.items()} == {
        name: cxx for name, (_, cxx) in POINTERS.items()
    }


@pytest.mark.parametrize("cc", DIALECTS)
def test_numbers_are_declared_as_nvrtc_declares_arguments_and_results(cc):
    takes = {f"takes_{name}": C(f"takes_{name}") for name in NUMBERS}
    returns = {f"returns_{name}": C(f"returns_{name}", getattr(types, name)) for name in NUMBERS}
    kernel = kernel_of(NUMBERS, "takes_NAME(NAME[0]); NAME[0] = returns_NAME()", **takes, **returns)
    declared = from_numba(kernel, *(getattr(types, name)[::1] for name in NUMBERS), cc=cc)
    assert declared == sorted(nvrtc_declarations(cc)[name] for name in (*takes, *returns))


@pytest.mark.parametrize("cc", DIALECTS)
def test_pointers_are_declared_as_nvrtc_declares_them(cc):
    takes = {f"takes_{name}": C(f"takes_{name}") for name in POINTERS}
    kernel = kernel_of(POINTERS, "takes_NAME(NAME)", **takes)
    declared = from_numba(kernel, *(argtype for argtype, _ in POINTERS.values()), cc=cc)
    assert declared == sorted(nvrtc_declarations(cc)[name] for name in takes)


def test_numbers_and_pointers_are_inlined_under_lto():
    """And link without it."""
    objects = {}
    for name, cxx in NUMBERS.items():
        source = f'extern "C" __device__ {cxx} f_{name}({cxx} x) {{ return x; }}'
        objects[f"f_{name}"] = C(f"f_{name}", getattr(types, name), source=source)
    for name, (_, cxx) in POINTERS.items():
        source = f'extern "C" __device__ void f_{name}({cxx} x, char* y) {{ *y = *(const char*)x; }}'
        objects[f"f_{name}"] = C(f"f_{name}", source=source)
    numbers = kernel_of(NUMBERS, "NAME[1] = f_NAME(NAME[0])", **objects)
    pointers = kernel_of(POINTERS, "f_NAME(NAME, y)", ("y",), **objects)
    of_pointers = (*(argtype for argtype, _ in POINTERS.values()), types.int8[::1])
    for kernel, argtypes, calls in (
        (numbers, tuple(getattr(types, name)[::1] for name in NUMBERS), len(NUMBERS)),
        (pointers, of_pointers, len(POINTERS)),
    ):
        assert "call." not in build(kernel, argtypes, output="ptx").code.decode()
        without_lto = symbols(build(kernel, argtypes, lto=False).code)
        assert len([name for name in without_lto if name.startswith("f_")]) == calls


@pytest.mark.parametrize("cc", DIALECTS)
def test_any_mixture_is_declared_as_nvrtc_declares_it(cc):
    mixed = C("mixed", types.float16)

    def kernel(a, b, c, d, e, f, g, h, i):
        d[0] = mixed(a, b, c, d[0], e, f, g, h, i)

    argtypes = (
        types.boolean,
        types.complex128,
        types.int8,
        types.float16[::1],
        types.Tuple((types.int8, types.float64)),
        types.int16,
        types.complex64,
        types.float64,
        types.float32[::1],
    )
    assert from_numba(kernel, *argtypes, cc=cc) == [nvrtc_declarations(cc)["mixed"]]


def test_void_and_no_arguments():
    nothing = C("nothing")

    def kernel():
        nothing()

    assert from_numba(kernel) == [nvrtc_declarations()["nothing"]]
    assert autolink.cxx_type(types.void) == "void"


@pytest.mark.parametrize("pointer", [types.voidptr, types.CPointer(types.float32)])
def test_pointers_are_returned(pointer):
    returns, takes = C("returns_pointer", pointer), C("takes_pointer")

    def kernel():
        takes(returns())

    expected = [nvrtc_declarations()["returns_pointer"], nvrtc_declarations()["takes_pointer"]]
    assert from_numba(kernel) == sorted(expected)


def test_none_is_a_null_pointer():
    takes = C("takes_array")

    def kernel():
        takes(None)

    assert from_numba(kernel) == [nvrtc_declarations()["takes_array"]]
    text, _ = cuda.compile(kernel, (), cc=(9, 0), device=False, abi="numba", output="ptx")
    assert re.search(r"st\.param\.b64\s+\[param0(\+0)?\], (0|%rd\d+)", text)


def test_a_number_by_reference_is_converted_or_rejected():
    class Takes(autolink.DeviceCallable):
        def __numba_cuda_call__(self, value):
            return autolink.Extern("takes", args={"value": autolink.by_reference(types.float32)})

        def __numba_cuda_link__(self, value):
            return autolink.CUDASource('extern "C" __device__ void takes(const float& value) {}')

    takes = Takes()

    def kernel(x):
        takes(x[0])

    build(kernel, "void(int64[::1])")
    with pytest.raises(TypingError, match="argument 'value': complex64 cannot be converted to float32"):
        build(kernel, "void(complex64[::1])")


def test_objects_known_only_to_the_compiler_are_not_passed():
    takes = C("takes_float32")

    @cuda.jit(device=True)
    def device_function(x):
        return x

    dtype = np.dtype("int8")

    def kernel(x):
        takes(np.float32, dtype, device_function, takes, "text", x[0])

    assert from_numba(kernel, types.float32[::1]) == [nvrtc_declarations()["takes_float32"]]


class TestMemory:
    """Values passed by address have the layout of C. The linker folds constants, which shows what C reads."""

    @staticmethod
    def constant_stored(kernel):
        """Return the 64-bit constant that the linked PTX stores."""
        text = build(kernel, (types.float64[::1],), output="ptx").code.decode()
        (name,) = re.findall(r"st\.global\.[uf]64\s+\[%rd\d+\], (%\w+);", text)
        (bits,) = re.findall(rf"mov\.[uf]64\s+{name}, (\w+);", text)
        return np.uint64(int(bits.removeprefix("0d"), 16 if bits.startswith("0d") else 10)).view(np.float64)

    def test_a_mixed_tuple_is_a_struct(self):
        f = C(
            "f",
            types.float64,
            source="""
            struct S { signed char a; double2 b; bool c; float2 d[2]; struct { short e; double f; } g; };
            extern "C" __device__ double f(const S* s) {
                return s->a + 10 * s->b.x + 100 * s->b.y + 1e3 * s->c + 1e4 * s->d[0].x + 1e5 * s->d[1].y
                     + 1e6 * s->g.e + 1e7 * s->g.f;
            }""",
        )
        c64 = np.complex64

        def kernel(x):
            x[0] = f((np.int8(1), 2 + 3j, True, (c64(4), c64(5j)), (np.int16(6), 7.0)))

        assert self.constant_stored(kernel) == 76541321

    def test_arrays_of_the_kernel_have_the_alignment_of_c(self):
        f = C("f")

        def kernel():
            f(cuda.local.array(3, np.int8), cuda.local.array(3, np.complex64), cuda.shared.array(3, np.complex128))

        text, _ = cuda.compile(kernel, (), cc=(9, 0), device=False, abi="numba", output="ptx")
        assert re.search(r"\.local \.align 8 ", text)
        assert re.search(r"\.shared \.align 16 \.b8 \w+\[48\]", text)


class TestRejected:
    """Each one is a typing error at the line of the call that names the argument and says what to do."""

    UNALIGNED = from_dtype(np.dtype([("a", "i1"), ("b", "f8")]))
    COMPLEX = from_dtype(np.dtype([("a", "f8"), ("b", "c16")], align=True))

    @pytest.mark.parametrize(
        "argtype, message",
        [
            (
                types.float32[:],
                r"argument 'args_0': array\(float32, 1d, A\) may be strided(?s:.*)pass a contiguous array",
            ),
            (types.float32[:, :], r"float32\[:, ::1\]"),
            (
                UNALIGNED,
                r"'b' \(float64\) of a record is at byte 1, and in a C\+\+ struct of such members(?s:.*)align=True",
            ),
            (UNALIGNED[::1], r"'b' \(float64\) of a record is at byte 1"),
            (COMPLEX, r"'b' \(complex128\) of a record is at byte 8, and in a C\+\+ struct of such members at byte 16"),
            (types.Optional(types.float32), r"has no counterpart in C: a value that may be None cannot be passed"),
            (types.Tuple((types.float32[::1], types.int8)), r"inside an array or tuple has no counterpart"),
            (types.NPDatetime("s")[::1], r"datetime64\[s\] has no counterpart in C"),
            (types.grid_group, r"has no counterpart in C"),
        ],
    )
    def test_values_that_c_would_misread(self, argtype, message):
        f = C("f")

        def kernel(x):
            f(x)  # the line of the call

        with pytest.raises(TypingError, match=message) as caught:
            from_numba(kernel, argtype)
        text = str(caught.value)
        assert "argument 'args_0'" in text
        assert "f(x)  # the line of the call" in text
        assert "No implementation of function" not in text

    @pytest.mark.parametrize(
        "numba_type", [types.float32[:], types.unicode_type, np.dtype("U3"), "float", 3, types.DType(types.int8)]
    )
    def test_cxx_type_without_a_c_type(self, numba_type):
        with pytest.raises(TypeError):
            autolink.cxx_type(numba_type)


def test_cxx_type_takes_what_numpy_calls_a_dtype():
    assert autolink.cxx_type(np.dtype("complex64")) == autolink.cxx_type(np.complex64) == "float2"


class TestExtern:
    def declared(self, extern, *argtypes):
        class Function(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x, y, z):
                return extern

        f = Function()

        def kernel(x, y, z):
            f(x, y, z)

        return from_numba(kernel, *argtypes)

    def test_args_select_and_order_the_arguments(self):
        extern = autolink.Extern("f", args=("z", "x"))
        (found,) = self.declared(extern, types.float64, types.int8[:], types.int32)
        assert found == ".extern .func f ( .param .b32 f_param_0, .param .b64 f_param_1 ) ;"

    def test_args_convert_the_arguments(self):
        extern = autolink.Extern("f", args={"x": types.int32, "y": types.voidptr, "z": None})
        (found,) = self.declared(extern, types.float64, types.int8[:], types.complex64)
        assert found == (
            ".extern .func f ( .param .b32 f_param_0, .param .b64 f_param_1, .param .align 8 .b8 f_param_2[8] ) ;"
        )

    @pytest.mark.parametrize(
        "args, message",
        [
            (("w",), "Extern's args name 'w', but the parameters of the call are x, y, z"),
            ({"x": types.float32[::1]}, r"argument 'x': float64 cannot be converted to array\(float32, 1d, C\)"),
            (("z",), r"argument 'z': class\(float32\) is known only to the compiler and cannot be passed to C"),
        ],
    )
    def test_args_that_do_not_fit_the_call(self, args, message):
        with pytest.raises(TypingError, match=message):
            self.declared(autolink.Extern("f", args=args), types.float64, types.int8, types.NumberClass(types.float32))

    @pytest.mark.parametrize(
        "arguments, options, error, message",
        [
            ((3,), {}, TypeError, "symbol must be a str, not int"),
            (("f<int>",), {}, ValueError, "symbol must be a C identifier, not 'f<int>'"),
            (("f",), {"returns": types.float32[::1]}, TypeError, r"cannot return array.*: C returns numbers"),
            (("f",), {"returns": types.UniTuple(types.int8[::1], 2)}, TypeError, "inside an array or tuple has no"),
            (("f",), {"returns": types.Tuple(())}, TypeError, "has no counterpart in C"),
            (("f",), {"returns": "float"}, TypeError, "'float' is not the name of a Numba type; did you mean "),
            (("f",), {"returns": "Array"}, TypeError, "returns: 'Array' is not the name of a Numba type: it is <class"),
            (("f",), {"returns": "float32)"}, TypeError, "is not the name of a Numba type: SyntaxError"),
            (("f",), {"returns": "float32[::1]"}, TypeError, "Extern cannot return array"),
            (("f",), {"returns": int}, TypeError, "is not a Numba type: C and Python mean different types by int"),
            (("f",), {"returns": 4}, TypeError, "returns: 4 is not a Numba type"),
            (("f",), {"args": "x"}, TypeError, "several parameter names or a mapping, not the str 'x'"),
            (("f",), {"args": [1]}, TypeError, "must name parameters of the call, got 1"),
        ],
    )
    def test_invalid_arguments(self, arguments, options, error, message):
        with pytest.raises(error, match=message):
            autolink.Extern(*arguments, **options)

    @pytest.mark.parametrize("name", ["float32", "int32", "complex64", "boolean", "void", "CPointer(float32)", "f4"])
    def test_names_stand_for_types_as_in_signatures(self, name):
        extern = autolink.Extern("f", returns=name, args={"x": name})
        expected = eval(name, {}, vars(types))
        assert (extern.returns, extern.args) == (expected, (("x", expected),))
        assert autolink.cxx_type(name) == autolink.cxx_type(expected)

    def test_a_name_of_no_type_is_an_error_at_the_calls_line(self):
        class Wrong(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("f", returns="float33")

        wrong = Wrong()

        def kernel(x):
            x[0] = wrong(x[1])

        line = kernel.__code__.co_firstlineno + 1
        message = rf"returns: 'float33' is not the name of a Numba type(.|\n)*test_c_types\.py\W+(line )?{line}\b"
        with pytest.raises(TypingError, match=message):
            autolink.build(kernel, "void(float32[::1])", cc=(9, 0))

    def test_literal_types_stand_for_the_types_of_their_values(self):
        assert autolink.Extern("f", returns=types.literal(3)).returns == types.int64


@pytest.mark.gpu
@pytest.mark.parametrize("lto", [True, False])
class TestOnTheGPU:
    """The same bytes with and without LTO, in both directions."""

    def test_numbers(self, lto):
        functions, arrays = {}, {}
        for name, cxx in NUMBERS.items():
            body = "return !x;" if cxx == "bool" else "for (char& c : (char(&)[sizeof x])x) c = ~c; return x;"
            source = f'extern "C" __device__ {cxx} f_{name}({cxx} x) {{ {body} }}'
            functions[f"f_{name}"] = C(f"f_{name}", getattr(types, name), source=source)
            if name != "bfloat16":  # which NumPy has not
                dtype = np.dtype({"boolean": "bool"}.get(name, name))
                bits = np.random.default_rng(0).integers(0, 2 if cxx == "bool" else 256, 64 * dtype.itemsize, np.uint8)
                arrays[name] = bits.view(dtype)
        kernel = kernel_of(arrays, "NAME[cuda.threadIdx.x] = f_NAME(NAME[cuda.threadIdx.x])", cuda=cuda, **functions)
        found = [x.copy() for x in arrays.values()]
        cuda.jit(kernel, lto=lto)[1, 64](*found)
        for x, y in zip(arrays.values(), found, strict=True):
            assert y.tobytes() == (~x if x.dtype == bool else ~x.view(np.uint8)).tobytes(), x.dtype

    def test_bfloat16(self, lto):
        f = C("f", types.bfloat16, source='extern "C" __device__ __nv_bfloat16 f(__nv_bfloat16 x) { return -x; }')

        @functools.partial(cuda.jit, lto=lto)
        def kernel(x, y):
            i = cuda.threadIdx.x
            y[i] = types.float32(f(types.bfloat16(x[i])))

        x, y = np.arange(-8, 8, dtype=np.float32), np.zeros(16, np.float32)
        kernel[1, 16](x, y)
        assert (y == -x).all()

    def test_small_integers_that_overflowed(self, lto):
        source = 'extern "C" __device__ int f(signed char x, unsigned short y) { return x * 65536 + y; }'
        f = C("f", types.int32, source=source)

        @functools.partial(cuda.jit, lto=lto)
        def kernel(x, y, z):
            i = cuda.threadIdx.x
            z[i] = f(np.int8(x[i] + x[i]), np.uint16(y[i] + y[i]))

        x, y, z = np.arange(-64, 64, dtype=np.int8) * 2, np.arange(128, dtype=np.uint16) * 512, np.zeros(128, np.int32)
        kernel[1, 128](x, y, z)
        assert (z == (x + x).astype(np.int32) * 65536 + (y + y)).all()
