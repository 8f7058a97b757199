# SPDX-License-Identifier: BSD-2-Clause
"""The failures in the catalogue of errors: for each, user code that fails, the cause, and what to do."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Case:
    """One failure.

    ``code`` raises, or assigns the text to show to ``said``. ``setup`` creates the files that it reads.
    ``without_library`` names a library to hide while it runs; if it *is_emulated*, kernels run in the emulator. If
    ``shown`` is set, the page shows only that part of the code.
    """

    section: str
    title: str
    when: str
    code: str
    remedy: str
    setup: Callable[[], None] | None = None
    teardown: Callable[[], None] | None = None
    without_library: str = ""
    is_emulated: bool = False
    shown: str = ""


_SCALE = 'extern "C" __device__ float scale(float x) { return 2 * x; }'
_SETMAXNREG = _SCALE.replace("return", 'asm volatile("setmaxnreg.inc.sync.aligned.u32 232;"); return')
_E2M1 = _SCALE.replace(
    "return", 'asm volatile("{ .reg .b8 a; cvt.rn.satfinite.e2m1x2.f32 a, %0, %0; }" :: "f"(x)); return'
)
_PTX = """\
.version 8.0
.target sm_80
.address_size 64

.visible .func (.param .b32 result) scale(.param .b32 x)
{
    .reg .f32 %f<3>;
    ld.param.f32 %f1, [x];
    add.f32 %f2, %f1, %f1;
    st.param.f32 [result], %f2;
    ret;
}
"""


def _compiled(kind: str, source: str = _SCALE, arch: str = "sm_90", relocatable: bool = True) -> bytes:
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(
        arch=arch,
        relocatable_device_code=relocatable,
        link_time_optimization=(kind == "ltoir") or None,
        name="scale.cu",
    )
    return bytes(Program(source, "c++", options=options).compile(kind).code)


def _write(name: str, make: Callable[[], bytes]) -> Callable[[], None]:
    """Return a function that writes the file *name*."""

    def write() -> None:
        Path(name).write_bytes(make())

    return write


def _newer(code: bytes) -> bytes:
    """Return LTO-IR marked as a future toolkit's: with a later minor version of the container and of the IR."""
    return code[:5] + bytes([code[5] + 16]) + code[6:7] + bytes([code[7] + 16]) + code[8:]


def _start_verifying() -> None:
    from numba.cuda.cudadrv.external_code.cache.store import reset_store

    os.environ["NUMBA_CUDA_AUTOLINK_CACHE"] = "verify"
    reset_store()


def _stop_verifying() -> None:
    from numba.cuda.cudadrv.external_code.cache.store import reset_store

    del os.environ["NUMBA_CUDA_AUTOLINK_CACHE"]
    reset_store()


FRAME = """
class Scale(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("scale", returns=x)

    def __numba_cuda_link__(self, x):
        return ...


scale = Scale()


def kernel(data):
    data[0] = scale(data[1])


autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
"""


_WINDOW = """
        import numpy as np


        class Window(autolink.DeviceCallable):
            def __init__(self, n):
                self.table = autolink.Variable("window_table", np.float32, n, space="constant")

            def __numba_cuda_call__(self, i):
                return autolink.Extern(f"window_{self.table.shape[0]}", returns="float32", args={"i": "int32"})

            def __numba_cuda_link__(self, i):
                yield self.table
                yield autolink.CUDASource(
                    "DECLARATION\\n"
                    f'extern "C" __device__ float window_{self.table.shape[0]}(int i) {{ return window_table[i]; }}'
                )

"""
_BUILD_WINDOW = """
        window = Window(256)


        def kernel(data):
            data[0] = window(1)


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
"""


def _returning(section: str, title: str, when: str, returned: str, remedy: str, **more: Any) -> Case:
    """Return the case of an object whose hook returns *returned*."""
    shown = more.pop("shown", f"return {returned}")
    return Case(section, title, when, FRAME.replace("...", returned), remedy, shown=shown, **more)


def _call(extern: str, call: str = "scale(data[0])", imports: str = "") -> str:
    """Return the code of an object whose function is ``Extern(extern)``, and a kernel that calls it."""
    code = FRAME.replace('"scale", returns=x', extern).replace("data[0] = scale(data[1])", call)
    without_hook = code.replace("    def __numba_cuda_link__(self, x):\n        return ...\n\n", "")
    return f"from numba.cuda import types\n{imports}{without_hook}"


_USING = "When a kernel uses the object"
_ASKING = "When the object is asked"
_TYPING = "When the types of a call do not fit"
_BY_NAME = "When C++ is called by name"
_COMPILING = "When CUDA C++ is compiled"
_SYMBOLS = "When symbols do not match"
_FITTING = "When code does not fit the kernel"
_DAMAGED = "When code is damaged or mislabelled"
_INSTALLED = "When a library is missing"
_BUILDING = "When a kernel is built"
_LAUNCHED = "When a kernel is launched"
_FINISHED = "When a finished kernel is saved or loaded"

# An object to use in kernels, above their code.
_OBJECT = """
class Scale(autolink.DeviceCallable):
    def __init__(self, factor):
        self.factor = factor

    def __numba_cuda_call__(self, x, offset=0):
        return autolink.Extern(f"scale_{self.factor}_{x}", returns=x, args={"x": autolink.exact("float32")})

    def __numba_cuda_link__(self, x, offset):
        return autolink.CUDASource(
            f'extern "C" __device__ {x} scale_{self.factor}_{x}({x} x) {{ return {self.factor} * x; }}'
        )


double, triple = Scale(2), Scale(3)


"""
_BUILD = """


autolink.build(kernel, "void(float32[::1], int32)", cc=(9, 0))
"""


def _using(title: str, when: str, kernel: str, remedy: str, before: str = "") -> Case:
    """Return the case of a *kernel* that uses objects, below the text *before* it."""
    kernel = textwrap.dedent(kernel).strip()
    shown = f"{textwrap.dedent(before).strip()}\n\n\n{kernel}".strip()
    return Case(_USING, title, when, f"{_OBJECT}{shown}{_BUILD}", remedy, shown=shown)


def _by_name(title: str, when: str, code: str, remedy: str) -> Case:
    """Return the case of *code* that has a library of C++, ``lib``, and a kernel that uses it."""
    return Case(_BY_NAME, title, when, f"{textwrap.dedent(code).strip()}{_BUILD}", remedy)


CASES = (
    _using(
        "A parameter that does not exist",
        "The call has a keyword that is not a parameter of `__numba_cuda_call__`.",
        """
        def kernel(data, i):
            data[0] = double(data[i], ofset=1)
        """,
        "Use the name that the message suggests, or one of the parameters that it lists.",
    ),
    _using(
        "An argument of another type",
        "The C function takes `float32` exactly (`autolink.exact`), and this `float64` might lose digits.",
        """
        def kernel(data, i):
            data[0] = double(data[i] * 1.5)
        """,
        'Convert the argument in the kernel, as the message shows. With `args={"x": "float32"}` in the `Extern`, the'
        " object converts it as a cast in C does.",
    ),
    _using(
        "A list of objects",
        "Numba has no lists in kernels. A dictionary causes the same error.",
        """
        def kernel(data, i):
            data[0] = functions[0](data[i])
        """,
        "Write `functions = (double, triple)`. `functions[0]` works with a tuple, and so does"
        " `for f in literal_unroll(functions)`.",
        before="functions = [double, triple]",
    ),
    _using(
        "A tuple with an index that varies",
        "Each object is code of its own, so the index of a tuple of objects must be known at compile time.",
        """
        def kernel(data, i):
            data[0] = functions[i](data[i])
        """,
        "Call all of them in turn, in a loop over `literal_unroll(functions)`, or one in each branch of an `if`.",
        before="functions = (double, triple)",
    ),
    _using(
        "A choice between objects",
        "For the same reason, a variable cannot be one object or another.",
        """
        def kernel(data, i):
            function = double if i > 3 else triple
            data[0] = function(data[i])
        """,
        "Choose between the results: `data[0] = double(data[i]) if i > 3 else triple(data[i])`.",
    ),
    _using(
        "An object made in a kernel",
        "Objects exist in Python. Kernels only call their code.",
        """
        def kernel(data, i):
            data[0] = Scale(4)(data[i])
        """,
        "Make the object outside: `quadruple = Scale(4)`.",
    ),
    _using(
        "A Python function that calls an object",
        "A lambda or function that is not compiled for the device.",
        """
        def kernel(data, i):
            data[0] = twice(data[i])
        """,
        "Write `twice = cuda.jit(device=True)(lambda x: double(double(x)))`.",
        before="twice = lambda x: double(double(x))",
    ),
    _using(
        "An object that has only the hook",
        "`__numba_cuda_link__` gives code for a call that Numba can type. For that, Numba needs a type of the object.",
        """
        def kernel(data, i):
            data[0] = halve(data[i])
        """,
        "Derive the class from `autolink.DeviceCallable`. An object with a Numba type of its own needs no base class.",
        before="""
        class Halve:
            def __numba_cuda_link__(self, x):
                return "halve.ltoir"


        halve = Halve()
        """,
    ),
    Case(
        _ASKING,
        "The hook raises",
        "An object rejects the types of a call by raising in `__numba_cuda_link__`, or its hook has a bug.",
        """
        class Scale(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("scale", returns=x)

            def __numba_cuda_link__(self, x):
                raise ValueError(f"Scale supports float64 only, got {x}")


        scale = Scale()


        def kernel(data):
            data[0] = scale(data[1])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        "Read the object's own message. `called at` is the call to change, and `raised at` is the line that raised. The"
        " object's exception is the error's `__cause__`.",
    ),
    _returning(
        _ASKING,
        "A misspelt name in the hook",
        "Python finds no such name in the module or among the variables.",
        'autolink.CUDASourc("...")',
        "Use the name that the message suggests, at the line that `raised at` shows.",
    ),
    Case(
        _ASKING,
        "The hook has the wrong parameters",
        "`__numba_cuda_link__` receives one Numba type for each argument of the call, in the order of the parameters.",
        FRAME.replace("...", "None").replace("_link__(self, x)", "_link__(self, x, y)"),
        "Give `__numba_cuda_link__` the parameters of the call.",
    ),
    Case(
        _ASKING,
        "The hook is not callable",
        "The object has an attribute `__numba_cuda_link__` that is not a method.",
        """
        class Scale(autolink.DeviceCallable):
            __numba_cuda_link__ = "scale.ltoir"

            def __numba_cuda_call__(self, x):
                return autolink.Extern("scale", returns=x)


        scale = Scale()


        def kernel(data):
            data[0] = scale(data[1])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        "Make it a method that returns the code.",
    ),
    _returning(
        _ASKING,
        "The hook returns something other than code",
        "Bytes alone do not show which kind of code they are. Numbers, dictionaries and the like cause the same error.",
        'b"..."',
        "Wrap the bytes: `cuda.LTOIR(data)`, `cuda.Cubin(data)`, and so on. For several pieces, return a list.",
    ),
    _returning(
        _ASKING,
        "A file of unknown kind",
        "The suffix of a path gives the kind of code in the file.",
        '"scale.bin"',
        "Rename the file, or read it and wrap its content: `cuda.Cubin(data)`.",
    ),
    _returning(
        _ASKING,
        "A file that does not exist",
        "The file is read as soon as the hook returns its path.",
        '"scale.ltoir"',
        "Return the full path, such as `pathlib.Path(__file__).with_name('scale.ltoir')`: a relative path is relative"
        " to the directory in which Python runs.",
    ),
    _returning(
        _ASKING,
        "The hook compiles a call to itself",
        "A hook may compile kernels and device functions. If these call the object itself with the same types, the"
        " hook's answer depends on itself.",
        'autolink.build(kernel, "void(float32[::1])", cc=(9, 0)).code',
        "Call another object in the code that the hook compiles, or return CUDA C++.",
    ),
    Case(
        _ASKING,
        "The hook changes its answer",
        "An object is asked once per process for each signature and target, and its answer is cached. If the code"
        " depends on anything else, such as a counter, kernels may get different code. With"
        " `NUMBA_CUDA_AUTOLINK_CACHE=verify` each object is asked again, and the answers are compared.",
        """
        class Scale(autolink.DeviceCallable):
            calls = 0

            def __numba_cuda_call__(self, x):
                return autolink.Extern("scale", returns=x)

            def __numba_cuda_link__(self, x):
                self.calls += 1
                return autolink.CUDASource(
                    'extern "C" __device__ float scale(float x) { return x * %d; }' % self.calls
                )


        scale = Scale()


        def kernel(data):
            data[0] = scale(data[1])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        "Generate the code from the object's constant attributes, the types and `autolink.current_target()` only.",
        setup=_start_verifying,
        teardown=_stop_verifying,
    ),
    Case(
        _TYPING,
        "An inexact number",
        "`autolink.exact` refuses numbers that the type may not have. Other arguments are converted as in Python, which"
        " cuts off what does not fit.",
        _call('"scale", args={"x": autolink.exact("int8")}'),
        "Convert the number in the kernel, or let C++ take a type that has all numbers of the argument.",
    ),
    Case(
        _TYPING,
        "A number for a pointer",
        "C++ could write through the pointer, and what it writes would be lost.",
        _call('"scale", args={"x": types.CPointer(types.float32)}'),
        "Pass an array of one element, or the address of a copy with `autolink.by_reference`.",
    ),
    Case(
        _TYPING,
        "An array by reference",
        "`autolink.by_reference` passes the address of a copy of a number. An array has an address of its own.",
        _call('"scale", args={"x": autolink.by_reference("float32")}', "scale(data)"),
        "Pass the array without it: C++ takes a pointer to its elements.",
    ),
    Case(
        _TYPING,
        "An array of another dtype for a pointer",
        "C++ would read the bytes of the elements as other numbers.",
        _call('"scale", args={"x": types.CPointer(types.float64)}', "scale(data)"),
        "Let C++ take a pointer to the elements, or pass `types.voidptr`.",
    ),
    Case(
        _TYPING,
        "An array by value",
        "C passes numbers and structs by value, and arrays as pointers.",
        _call('"scale", args={"x": autolink.by_value}', "scale(data)"),
        "Pass the array without `by_value`.",
    ),
    Case(
        _TYPING,
        "A struct with a string by value",
        "Numba keeps the strings of records as other characters than C.",
        """
        import numpy as np
        from numba.np.numpy_support import from_dtype

        record = from_dtype(np.dtype([("x", "f4"), ("unit", "S4")]))
        autolink.Extern("scale", returns=record)
        """,
        "Leave the field out, or make it an array of `uint8`.",
    ),
    Case(
        _TYPING,
        "A strided array as a span",
        "A `cuda::std::span` has one stride: that of its elements.",
        _call('"scale", args={"x": autolink.span}', "scale(data[::2])"),
        "Pass an `mdspan`, which has strides, or an array whose type is contiguous: `float32[::1]`.",
    ),
    Case(
        _TYPING,
        "Records as an mdspan",
        "A view has the type of its elements, and the struct of a record is declared in C++ alone.",
        _call(
            '"scale", args={"x": autolink.mdspan}',
            "scale(cuda.local.array(4, point))",
            'import numpy as np\n\npoint = np.dtype([("x", "f4"), ("y", "f4")], align=True)\n',
        ),
        "Pass the array as a pointer, and its length.",
    ),
    Case(
        _TYPING,
        "A part of a symbol without known content",
        "`autolink.symbol` names a function by the content of its parts, and the content of some objects is not known.",
        """
        import os

        autolink.symbol("scale", open(os.devnull))
        """,
        "Pass the numbers, strings and types that distinguish it, or give its class a `__numba_cuda_link_key__`.",
    ),
    Case(
        _TYPING,
        "An array that is passed as a pointer, where a Python function takes it as state",
        "C++ would pass on the address of the data, without the shape and the strides.",
        '''
        class Add(autolink.DeviceCallable):
            def __numba_cuda_call__(self, i, table):
                return autolink.Extern("add", returns="float32", args={"i": "int32", "table": None})

            def __numba_cuda_link__(self, i, table):
                function = autolink.device_function(lambda i, t: t[i] + t[i + 1], "int32", state=table)
                yield function
                yield autolink.CUDASource(f"""
                    {function.declaration}
                    extern "C" __device__ float add(int i, const void* table) {{
                        return {function.functor}(table)(i);
                    }}""")


        add = Add()


        def kernel(data):
            data[0] = add(1, data)


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        ''',
        'Pass it as state: `args={"i": "int32", "table": autolink.state}`.',
    ),
    Case(
        _TYPING,
        "A variable that is set to another type",
        "`Variable.set` does not convert arrays, which would lose digits unnoticed.",
        """
        import numpy as np

        factors = autolink.Variable("factors", np.float32, 16, space="constant")
        factors.set(np.linspace(0, 1, 16))
        """,
        "Convert the array to the dtype of the variable.",
    ),
    _by_name(
        "A misspelt function",
        "C++ knows no such name. Those that the source and its headers declare are compared with it.",
        """
        lib = autolink.cxx("__device__ float scale(float x) { return 2 * x; }")


        def kernel(data, i):
            data[i] = lib.scael(data[i])
        """,
        "Use the name that the message suggests.",
    ),
    _by_name(
        "An argument with a name",
        "C++ has no keyword arguments.",
        """
        lib = autolink.cxx("__device__ float scale(float x, float factor) { return factor * x; }")


        def kernel(data, i):
            data[i] = lib.scale(data[i], factor=2)
        """,
        "Pass it by its position.",
    ),
    _by_name(
        "A result of a function that returns nothing",
        "The function is `void` in C++. That of an object returns nothing if its `Extern` says so.",
        """
        lib = autolink.cxx("__device__ void scale(float* x) { *x *= 2; }")


        def kernel(data, i):
            data[i] = lib.scale(data[i:])
        """,
        "Call it as a statement of its own: `lib.scale(data[i:])`.",
    ),
    _by_name(
        "A complex number for a real one",
        "C++ converts no complex numbers to real ones.",
        """
        lib = autolink.cxx("__device__ float scale(float x) { return 2 * x; }")


        def kernel(data, i):
            data[i] = lib.scale(data[i] + 1j)
        """,
        "Pass its real or imaginary part, or let C++ take a `cuda::std::complex<float>`.",
    ),
    Case(
        _BY_NAME,
        "A strided array for a pointer",
        "A function that takes a pointer reads elements that are next to each other. Those of a slice with a step, and"
        " of a column of a matrix, are not.",
        """
        lib = autolink.cxx("__device__ float first(const float* x) { return x[0]; }")


        def kernel(data):
            data[0] = lib.first(data[::2])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        "Pass a contiguous array, or let C++ take a `cuda::std::mdspan`, which has the strides.",
    ),
    _by_name(
        "Template arguments of another number or kind",
        "The arguments in the brackets are not those that the template declares.",
        """
        lib = autolink.cxx("template <int N, class T> __device__ T power(T x) { return N ? x : 1; }")
        power = lib["power<float, 3>"]


        def kernel(data, i):
            data[i] = power(data[i])
        """,
        'Write them in the order of the template: `lib["power<3, float>"]`, or `lib["power<3>"]`, where C++ deduces the'
        " type.",
    ),
    _by_name(
        "Template arguments that C++ cannot deduce",
        "No argument of the call tells what `N` is.",
        """
        lib = autolink.cxx("template <int N, class T> __device__ T power(T x) { return N ? x : 1; }")


        def kernel(data, i):
            data[i] = lib.power(data[i])
        """,
        'Write them: `lib["power<3>"](data[i])`.',
    ),
    _by_name(
        "A library that is called",
        "`autolink.cxx` returns a library, not a function.",
        """
        scale = autolink.cxx("__device__ float scale(float x) { return 2 * x; }")


        def kernel(data, i):
            data[i] = scale(data[i])
        """,
        "Call one of its functions: `scale.scale(data[i])`.",
    ),
    _by_name(
        "A Python function that C++ cannot call",
        "C++ passes two numbers to the function, which has one parameter.",
        """
        lib = autolink.cxx('''
            template <class T, class F> __device__ T fold(const T* x, int n, F f) {
                T result = x[0];
                for (int i = 1; i < n; ++i) result = f(result, x[i]);
                return result;
            }
        ''')


        def kernel(data, i):
            data[0] = lib.fold(data, i, lambda x: 2 * x)
        """,
        "Give the function the parameters that C++ passes, and let it use what numbers of Python have.",
    ),
    Case(
        _BY_NAME,
        "A file that `cxx` does not find",
        "A text without any of `;{}#<>` and quotes, on one line, is the path of a file.",
        """
        lib = autolink.cxx("solver.cu")
        """,
        'Write the path from your own file: `autolink.cxx(Path(__file__).parent / "solver.cu")`.',
    ),
    Case(
        _BY_NAME,
        "Options that are a list",
        "Options are given by the names of the fields of `cuda.core.ProgramOptions`, not as those of `nvcc`.",
        """
        lib = autolink.cxx("__device__ float scale(float x) { return 2 * x; }", options=["--use_fast_math"])
        """,
        'Write `options={"use_fast_math": True}`.',
    ),
    _by_name(
        "An option with a wrong value",
        "NVRTC does not know the value. Options are used when the first call is compiled.",
        """
        lib = autolink.cxx("__device__ float scale(float x) { return 2 * x; }", options={"std": "c++2"})


        def kernel(data, i):
            data[i] = lib.scale(data[i])
        """,
        'Correct the value: `options={"std": "c++20"}`.',
    ),
    Case(
        _BY_NAME,
        "A struct that C++ does not have",
        "`lib.record`, `lib.type` and `lib.eval` ask C++ at once, and their errors are at their own line.",
        """
        lib = autolink.cxx("struct Particle { float x, y; };")
        dtype = lib.record("Partcle")
        """,
        "Use the name that the message suggests, with its namespace.",
    ),
    _by_name(
        "A wrong number of arguments for C++",
        "C++ declares another number of parameters than the call has arguments.",
        """
        lib = autolink.cxx("__device__ float scale(float x, float factor) { return factor * x; }")


        def kernel(data, i):
            data[i] = lib.scale(data[i])
        """,
        "Pass the arguments that the message lists.",
    ),
    _by_name(
        "An array for a number",
        "C++ takes one number, and the call passes the array.",
        """
        lib = autolink.cxx("__device__ float scale(float x) { return 2 * x; }")


        def kernel(data, i):
            data[i] = lib.scale(data)
        """,
        "Pass an element of the array. Where C++ takes an array, it takes a pointer, a `span` or an `mdspan`.",
    ),
    _by_name(
        "A struct that no overload takes",
        "None of the functions of that name takes these arguments. Numbers and arrays are not converted to structs.",
        """
        lib = autolink.cxx('''
            struct Point { float x, y; };
            __device__ float length(Point p) { return sqrtf(p.x * p.x + p.y * p.y); }
            __device__ float length(Point p, Point q) { return length({q.x - p.x, q.y - p.y}); }
        ''')


        def kernel(data, i):
            data[i] = lib.length(data[i])
        """,
        'Pass an element of an array with the dtype `lib.record("Point")`.',
    ),
    _by_name(
        "A namespace that C++ does not have",
        "No header that the source includes has the namespace, or its name is misspelt.",
        """
        lib = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::sdt")


        def kernel(data, i):
            data[i] = lib.hypot(data[i], 2)
        """,
        "Correct the name, or include the header that declares it.",
    ),
    _by_name(
        "A misspelt header",
        "A header is not in the include paths, and one with a similar name is.",
        """
        lib = autolink.cxx("#include <cuda/std/cmaht>", namespace="cuda::std")


        def kernel(data, i):
            data[i] = lib.hypot(data[i], 2)
        """,
        "Use the name that the message suggests.",
    ),
    _by_name(
        "An assignment to an attribute",
        "Attributes of libraries and objects are constants of the code: a kernel cannot change them.",
        """
        lib = autolink.cxx("__device__ int count;")


        def kernel(data, i):
            lib.count = i
        """,
        "Let a C++ function assign to a variable of C++, and call it.",
    ),
    Case(
        _COMPILING,
        "CUDA C++ that does not compile",
        "NVRTC finds an error. Its messages give the line in the source and show it. The source is saved in the file"
        " that the message names, so that you can open it in an editor.",
        '''
        class Scale(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("scale", returns=x)

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource("""
                    extern "C" __device__ float scale(float x) {
                        float factor = FACTOR;
                        return factor * x
                    }""")


        scale = Scale()


        def kernel(data):
            data[0] = scale(data[1])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        ''',
        "Fix the source. The exception's `.log` has everything that NVRTC printed, and `.source_path` is the file.",
    ),
    Case(
        _COMPILING,
        "A function of `autolink.cxx` that does not compile",
        "A `static_assert` of a template fails for the types of a call, or there is an error in the source. The message"
        " has the line in the Python file, or in the `.cu` file.",
        '''
        library = autolink.cxx("""
            template <class T>
            __device__ T next_integer(T x)
            {
                static_assert(T(0.5) == 0, "next_integer takes integers");
                return x + 1;
            }
        """)


        def kernel(data):
            data[0] = library.next_integer(data[1])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        ''',
        "Pass arguments of the types that the function takes, or correct the source at that line.",
    ),
    _returning(
        _COMPILING,
        "A header that is not found",
        "NVRTC searches for headers in the source's `include_paths` and the toolkit's directories. If the source is a"
        " file, it also searches the file's directory.",
        """autolink.CUDASource('#include "tables.h"')""",
        "Pass the directory: `autolink.CUDASource(code, include_paths=[...])`.",
    ),
    _returning(
        _COMPILING,
        "A header of the host's C++ library",
        "NVRTC has no standard library. Functions such as `printf`, `assert`, `malloc` and `sqrt` need no header, and"
        " `cuda/std` has much of the rest.",
        """autolink.CUDASource('#include <cstdio>')""",
        "Delete the line, or include what the message names. Containers that allocate do not exist on the device.",
    ),
    _returning(
        _SYMBOLS,
        'A function without `extern "C"`',
        'C++ mangles the name of a function with the types of its parameters, unless it is declared `extern "C"`.',
        'autolink.CUDASource("__device__ float scale(float x) { return 2 * x; }")',
        'Write `extern "C" __device__ float scale(float x)`.',
    ),
    _returning(
        _SYMBOLS,
        "A misspelled symbol",
        "The call refers to a function that no code defines, but a similar name is defined.",
        """autolink.CUDASource('extern "C" __device__ float scale_f32(float x) { return 2 * x; }')""",
        "Use the same name in `Extern` and in the source.",
    ),
    _returning(
        _SYMBOLS,
        "An undefined symbol",
        "Nothing similar is defined. Usually a piece of code was left out, or is excluded by `#ifdef`.",
        """autolink.CUDASource('extern "C" __device__ float tables[16];')""",
        "Return the code that defines it as well: a hook may return a list. The message lists the names that the linked"
        " code defines, where they can be read.",
    ),
    Case(
        _SYMBOLS,
        "A symbol defined twice",
        "Two objects provide different code under one name. (nvJitLink would silently link either of them.)",
        """
        class Scale(autolink.DeviceCallable):
            def __init__(self, factor):
                self.factor = factor

            def __numba_cuda_call__(self, x):
                return autolink.Extern("scale", returns=x)

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource(
                    'extern "C" __device__ float scale(float x) { return x * %d; }' % self.factor
                )


        double, triple = Scale(2), Scale(3)


        def kernel(data):
            data[0] = double(data[1]) + triple(data[2])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        'Put what distinguishes them into the name: `f"scale_{self.factor}_{x}"`.',
    ),
    Case(
        _SYMBOLS,
        "A function that a header defines twice",
        "Two sources include a header whose function is not `inline`. Each source is a translation unit with a"
        " definition of its own.",
        """
        from pathlib import Path

        Path("shapes.cuh").write_text("namespace shapes { __device__ float area(float x) { return x * x; } }")


        class Shape(autolink.DeviceCallable):
            def __init__(self, name):
                self.name = name

            def __numba_cuda_call__(self, x):
                return autolink.Extern(self.name, returns="float32")

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource(
                    '#include "shapes.cuh"\\n'
                    f'extern "C" __device__ float {self.name}(float x) {{ return shapes::area(x); }}',
                    include_paths=["."],
                )


        square, tile = Shape("square"), Shape("tile")


        def kernel(data):
            data[0] = square(data[1]) + tile(data[2])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        "Make the function `inline` in the header. If the header is not yours, give both sources the same"
        ' `unit="shapes"`: they are compiled as one translation unit. Their include paths, macros and options must be'
        " equal, so list the folders of both libraries in both.",
    ),
    Case(
        _SYMBOLS,
        "Two libraries that define a template differently",
        "C++ lets each source have its own copy of a template, an inline function, a member of a class or an inline"
        " variable, if all are the same. The linker takes the first for all.",
        """
        text = "template <class T> __device__ T power(T x) { T p = 1; for (int i = 0; i < N; ++i) p *= x; return p; }"
        square = autolink.cxx(text, defines={"N": 2})
        cube = autolink.cxx(text, defines={"N": 3})


        def kernel(data):
            data[0] = square.power(data[1]) + cube.power(data[2])


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        "Put the functions of each library into a namespace of its own, or make them `static`. Here, `N` may be a"
        " parameter of the template. Where one library is only compiled with other options, such as `use_fast_math`,"
        " compile both with the same.",
    ),
    Case(
        _SYMBOLS,
        "A variable that no object returns",
        "C++ declares a variable, and nothing that is linked defines it.",
        _WINDOW.replace("DECLARATION", "extern __constant__ float window_table[256];").replace(
            "                yield self.table\n", ""
        )
        + _BUILD_WINDOW,
        "Return the `Variable` from `__numba_cuda_link__`, together with the source.",
    ),
    Case(
        _SYMBOLS,
        "Two variables of one name",
        "A kernel calls objects with different variables of the same name.",
        _WINDOW.replace("DECLARATION", "extern __constant__ float window_table[];")
        + """
        hann, hamming = Window(256), Window(512)


        def kernel(data):
            data[0] = hann(1) + hamming(1)


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        'Put what distinguishes them into the name: `f"window_table_{n}"`, or `autolink.symbol("window_table", n)`.',
    ),
    Case(
        _SYMBOLS,
        "A variable that C++ declares as a pointer",
        "An array is declared as an array. The linker does not compare types, and the code would take the first bytes"
        " of the table for an address.",
        _WINDOW.replace("DECLARATION", "extern __constant__ float* window_table;") + _BUILD_WINDOW,
        "Declare it as the variable is. `variable.declaration` is the text.",
    ),
    Case(
        _SYMBOLS,
        "A variable that C++ declares in another memory",
        "The linker does not compare the memory of variables, and may crash.",
        _WINDOW.replace("DECLARATION", "extern __device__ float window_table[256];") + _BUILD_WINDOW,
        "Declare it with the space of the variable.",
    ),
    Case(
        _SYMBOLS,
        "A kernel that is called as a function",
        "The parameters of a `__global__` function, which is an `.entry` in PTX, are elsewhere: it is launched, not"
        " called.",
        """
        class Scale(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("scale")

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource('extern "C" __global__ void scale(float* x) { x[0] *= 2; }', name="scale.cu")


        scale = Scale()


        def kernel(data):
            scale(data)


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        "Declare it as `__device__`.",
    ),
    Case(
        _SYMBOLS,
        "A function of CUDA C++ with other types than its call",
        "NVRTC compares each function that a kernel calls with the types that the call passes and expects.",
        FRAME.replace(
            "return ...",
            """return autolink.CUDASource(
            'extern "C" __device__ float scale(double x) { return 2 * x; }', name="scale.cu"
        )""",
        ),
        "Use `autolink.cxx_type(x)` for the types in the source, or convert the argument:"
        ' `Extern(..., args={"x": "float64"})`.',
    ),
    Case(
        _SYMBOLS,
        "A struct with other members than the record of a call",
        "NVRTC compares the members of a struct with the fields of the record that a call passes or expects, where"
        " their names agree.",
        """
        import numpy as np
        from numba import from_dtype

        BODY = from_dtype(np.dtype([("x", np.float32), ("v", np.float32)], align=True))


        class Move(autolink.DeviceCallable):
            def __numba_cuda_call__(self, body):
                return autolink.Extern("move")

            def __numba_cuda_link__(self, body):
                return autolink.CUDASource(
                    "struct Body { float v, x; };"
                    'extern "C" __device__ void move(Body* body) { body->x += body->v; }',
                    name="move.cu",
                )


        move = Move()


        def kernel(bodies):
            move(bodies[0])


        autolink.build(kernel, (BODY[::1],), cc=(9, 0))
        """,
        "Define the fields of the dtype in the order of the struct's members, with the same types.",
    ),
    Case(
        _SYMBOLS,
        "A function whose signature differs from its call",
        "PTX and machine code show how many bytes the parameters of a function take. If the call passes a different"
        " number, the function would read bytes that the call does not pass. (LTO-IR does not show this.)",
        FRAME.replace("...", '"scale.ptx"').replace("float32", "float64"),
        "Define one function for each type, with the type in its name.",
        setup=_write("scale.ptx", _PTX.encode),
    ),
    _returning(
        _FITTING,
        "An instruction of another architecture",
        "The code is of the right kind, but ptxas finds an instruction in it that the architecture does not have."
        " The PTX that the linker generated is saved.",
        '"scale.ltoir"',
        "Build for the architecture that has it, or choose the code by `autolink.current_target()`.",
        setup=_write("scale.ltoir", lambda: _compiled("ltoir", _SETMAXNREG)),
    ),
    _returning(
        _FITTING,
        "A type of another architecture",
        "The same, of a type of numbers: this conversion to 4-bit floating point needs `sm_100a`.",
        '"scale.ltoir"',
        "Build for the architecture that has it, or choose the code by `autolink.current_target()`.",
        setup=_write("scale.ltoir", lambda: _compiled("ltoir", _E2M1)),
    ),
    _returning(
        _FITTING,
        "Machine code for another architecture",
        "A cubin runs on the architecture that it was compiled for and on later ones of the same major version.",
        '"scale_sm_80.cubin"',
        "Compile for `autolink.current_target().arch`, or return LTO-IR, PTX or CUDA C++.",
        setup=_write("scale_sm_80.cubin", lambda: _compiled("cubin", arch="sm_80")),
    ),
    _returning(
        _FITTING,
        "LTO-IR for a newer architecture",
        "LTO-IR and PTX can be linked for the architecture that they were compiled for and for later ones.",
        '"scale_sm_100.ltoir"',
        "Compile it for the oldest architecture that your users have.",
        setup=_write("scale_sm_100.ltoir", lambda: _compiled("ltoir", arch="sm_100")),
    ),
    _returning(
        _FITTING,
        "PTX for a newer architecture",
        "The same applies to PTX, whose `.target` directive names its architecture.",
        '"scale_sm_100.ptx"',
        "Compile it for the oldest architecture that your users have.",
        setup=_write("scale_sm_100.ptx", lambda: _PTX.replace("sm_80", "sm_100").encode()),
    ),
    _returning(
        _FITTING,
        "PTX of a newer version than the toolkit supports",
        "The `.version` directive of PTX names the version of the language. The installed nvJitLink supports versions"
        " up to its own.",
        '"scale_new.ptx"',
        "Generate the PTX with the toolkit that your users have, or update nvJitLink.",
        setup=_write("scale_new.ptx", lambda: _PTX.replace("8.0", "99.0").encode()),
    ),
    _returning(
        _FITTING,
        "LTO-IR from a newer toolkit than nvJitLink",
        "The LTO-IR comes from a toolkit that is newer than the installed nvJitLink, often because the package that"
        " ships it was built with that toolkit.",
        '"scale_new.ltoir"',
        "Update nvJitLink (`pip install -U nvidia-nvjitlink`, for CUDA 12 `nvidia-nvjitlink-cu12`), or generate the"
        " LTO-IR with an older toolkit.",
        setup=_write("scale_new.ltoir", lambda: _newer(_compiled("ltoir"))),
    ),
    _returning(
        _FITTING,
        "A cubin that is not relocatable",
        "By default, compilers produce finished programs, which cannot be linked with other code.",
        '"scale.cubin"',
        "Compile with `-rdc=true`.",
        setup=_write("scale.cubin", lambda: _compiled("cubin", relocatable=False)),
    ),
    _returning(
        _DAMAGED,
        "Empty code",
        "The file is empty, usually because a build step failed.",
        'cuda.Cubin(b"", name="scale.cubin")',
        "Rebuild the file.",
    ),
    _returning(
        _DAMAGED,
        "Code of another kind",
        "The first bytes show the kind of the code, whatever its suffix or class.",
        '"scale.cubin"',
        "Use the class or suffix of its actual kind.",
        setup=_write("scale.cubin", lambda: _compiled("ltoir")),
    ),
    _returning(
        _DAMAGED,
        "Truncated code",
        "The file is shorter than its own headers declare, for example because a download or a copy was interrupted.",
        '"scale.cubin"',
        "Rebuild the file, or download it again.",
        setup=_write("scale.cubin", lambda: _compiled("cubin")[:1500]),
    ),
    _returning(
        _DAMAGED,
        "Bytes that are not code",
        "The bytes are neither of the declared kind nor of any other.",
        'cuda.LTOIR(b"<!DOCTYPE html>", name="scale.ltoir")',
        "Look at the file. This one is a web page.",
    ),
    _returning(
        _DAMAGED,
        "PTX with an error in it",
        "Before the link, only the structure of PTX is checked. The linker checks its instructions.",
        '"scale.ptx"',
        "Fix the line that the message shows.",
        setup=_write("scale.ptx", lambda: _PTX.replace("add.f32", "ad.f32").encode()),
    ),
    _returning(
        _DAMAGED,
        "LTO-IR that is damaged inside",
        "The linker finds damage that the headers do not show. If its message names no input, each input is linked"
        " alone.",
        '"scale.ltoir"',
        "Rebuild the file, or download it again.",
        setup=_write("scale.ltoir", lambda: _compiled("ltoir")[:-200]),
    ),
    _returning(
        _INSTALLED,
        "NVRTC is not installed",
        "NVRTC comes with the extras `cu12` and `cu13` of this package, or with the CUDA toolkit.",
        """autolink.CUDASource('extern "C" __device__ float scale(float x) { return 2 * x; }')""",
        "Install the extra that matches the driver of your GPU.",
        without_library="nvrtc",
    ),
    _returning(
        _INSTALLED,
        "nvJitLink is not installed",
        "nvJitLink comes with the same extras, or with the CUDA toolkit.",
        '"scale.ptx"',
        "Install the extra that matches the driver of your GPU.",
        setup=_write("scale.ptx", _PTX.encode),
        without_library="nvJitLink",
    ),
    Case(
        _INSTALLED,
        "The driver is not installed",
        "A launch needs the driver of a GPU, which the CUDA toolkit and packages of Python do not have.",
        """
        import numpy as np


        @cuda.jit
        def increment(data):
            data[0] += 1


        increment[1, 1](np.zeros(2))
        """,
        "Launch on a machine with a GPU, or in the emulator; `autolink.build` needs neither.",
        without_library="cuda",
    ),
    Case(
        _BUILDING,
        "A signature that is none",
        "A signature is a text with the types of the kernel's parameters, or a tuple of Numba types.",
        """
        def kernel(data):
            data[0] += 1


        autolink.build(kernel, "void(flaot32[::1])", cc=(9, 0))
        """,
        "Correct the names of the types.",
    ),
    Case(
        _BUILDING,
        "A signature of another number of types",
        "A signature has one type for each parameter of the kernel.",
        """
        def kernel(data, n):
            data[0] += n


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
        """,
        "Add the missing types.",
    ),
    Case(
        _BUILDING,
        "A compute capability that is none",
        "A compute capability has two numbers, and may have a letter.",
        """
        def kernel(data):
            data[0] += 1


        autolink.build(kernel, "void(float32[::1])", cc="sm90.0.1")
        """,
        "Write it in one of the forms that the message shows.",
    ),
    Case(
        _BUILDING,
        "An option that does not exist",
        "`build` takes its own options and those of `cuda.jit`.",
        """
        def kernel(data):
            data[0] += 1


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0), lineinf=True)
        """,
        "Use the name that the message suggests.",
    ),
    Case(
        _LAUNCHED,
        "A launch without a grid and blocks",
        "A kernel is called as a function. Between the brackets are two sizes or more, each an integer or a tuple of up"
        " to three: other things are errors at the same line.",
        """
        @cuda.jit
        def increment(data):
            data[0] += 1


        increment([1.0, 2.0])
        """,
        "Write `increment[blocks, threads](data)`.",
    ),
    Case(
        _LAUNCHED,
        "A wrong number of arguments",
        "A launch passes one argument for each parameter. On its own, numba-cuda-mlir drops arguments that are too"
        " many. With this project it raises the same error, for every kernel, when the kernel is compiled for arguments"
        " of these types: no check is made at each launch. In numba-cuda, kernels that are declared with a signature,"
        " `@cuda.jit('void(...)')`, are not checked.",
        """
        import numpy as np

        @cuda.jit
        def increment(data):
            data[0] += 1


        increment[1, 1](np.zeros(2), 3)
        """,
        "Pass the arguments that the message lists.",
        is_emulated=True,
    ),
    Case(
        _LAUNCHED,
        "A list as an argument",
        "Kernels take numbers, and arrays, tuples and records of numbers. A string, a set and a dictionary cause the"
        " same error.",
        """
        @cuda.jit
        def increment(data):
            data[0] += 1


        increment[1, 1]([1.0, 2.0])
        """,
        "Pass `np.array(data)`, or copy it to the GPU first, `cuda.to_device(np.array(data))`.",
        is_emulated=True,
    ),
    Case(
        _LAUNCHED,
        "A called object as an argument",
        "Kernels treat objects that they call as constants, libraries of C++ too.",
        """
        import numpy as np

        lib = autolink.cxx("__device__ float scale(float x) { return 2 * x; }")


        @cuda.jit
        def kernel(data, f):
            data[0] = f(data[0])


        kernel[1, 1](np.zeros(2, np.float32), lib.scale)
        """,
        "Use the object in the kernel by its name. To make kernels for several objects, define the kernel in a function"
        " that takes the object.",
        is_emulated=True,
    ),
    Case(
        _LAUNCHED,
        "An access out of bounds",
        "The emulator checks each access to memory.",
        """
        import numpy as np


        @cuda.jit
        def shift(data):
            i = cuda.grid(1)
            data[i] = data[i + 1]


        shift[1, 8](np.zeros(8, np.float32))
        """,
        "Compare the index with the size of the array, `if i + 1 < data.size`, or launch fewer threads.",
        is_emulated=True,
    ),
    Case(
        _FINISHED,
        "A kernel that only numba-cuda can launch",
        "Exceptions of kernels (`debug=True`) are reported by numba-cuda's own launch. Other reasons are `extensions=`"
        " and code that uses numba-cuda's runtime (NRT).",
        """
        def kernel(data):
            data[0] += 1


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0), debug=True, opt=False).save("increment.kernels")
        """,
        "Build it without `debug=True`. `lineinfo=True` keeps source lines for profilers and compute-sanitizer.",
    ),
    Case(
        _FINISHED,
        "A parameter without a value",
        "A literal is part of the code of a kernel, and a function has no value that could be passed.",
        """
        from numba.cuda import types


        def kernel(data, n):
            data[0] = n


        autolink.build(kernel, types.void(types.float32[::1], types.literal(3)), cc=(9, 0)).save("set.kernels")
        """,
        "Make the value a global or closure variable of the kernel, or give the parameter the type `int64`.",
    ),
    Case(
        _FINISHED,
        "Two kernels of one name",
        "Kernels are found by the name of their Python function. These two have one name, signature and architecture.",
        """
        def increment(amount):
            def kernel(data):
                data[0] += amount

            return autolink.build(kernel, "void(float32[::1])", cc=(9, 0))


        autolink.save("increments.kernels", [increment(1), increment(2)])
        """,
        "Build one of them with `entry_name=`.",
    ),
    Case(
        _FINISHED,
        "A file that is not one of finished kernels",
        "The file is something else. Here, it is a cubin.",
        """
        import numba_cuda_autolink

        numba_cuda_autolink.load("scale.cubin")
        """,
        "Load a file that `save` wrote.",
        setup=_write("scale.cubin", lambda: _compiled("cubin")),
    ),
    Case(
        _FINISHED,
        "A file that is damaged",
        "All parts of a file have a checksum. Here, the file is shorter than it says.",
        """
        import numba_cuda_autolink


        def kernel(data):
            data[0] += 1


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0)).save("increment.kernels")
        content = open("increment.kernels", "rb").read()
        open("increment.kernels", "wb").write(content[:-1000])
        numba_cuda_autolink.load("increment.kernels").kernel.signatures
        """,
        "Copy the file again, or save it again.",
    ),
    Case(
        _FINISHED,
        "A launch that no GPU can make",
        "Grid and block are checked when a launch is configured, its arguments when it is called.",
        """
        import numba_cuda_autolink


        def kernel(data):
            data[0] += 1


        autolink.build(kernel, "void(float32[::1])", cc=(9, 0)).save("increment.kernels")
        numba_cuda_autolink.load("increment.kernels").kernel[1, 2048]
        """,
        "Use a smaller block.",
    ),
)
