# SPDX-License-Identifier: BSD-2-Clause
"""A user's file in which type checkers report each line that is marked, and no other."""

from typing import Any

import numba.cuda.random
import numpy as np
import numpy.typing as npt
from numba import cuda
from numba.cuda import autolink, types

import numba_cuda_autolink


class Returns(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x: Any) -> str:  # wrong: not an Extern
        return "scale"

    def __numba_cuda_link__(self, x: Any) -> int:  # wrong: not linkable
        return 3

    @autolink.device_method  # wrong: not an Extern
    def up(self, x: Any) -> int:
        return 3


class Hook:
    def __numba_cuda_link__(self, x: Any) -> bytes:
        return b""


class Key:
    def __numba_cuda_link__(self, x: Any) -> None: ...


linked: autolink.SupportsLink = Hook()  # wrong: bytes do not tell their kind
keyed: autolink.SupportsLinkKey = Key()  # wrong: no key
autolink.Extern("f", return_type="float32")  # wrong: returns
autolink.Extern(3)  # wrong: symbol
autolink.Target(9.0)  # wrong: a float
autolink.build(lambda x: None, "void(float32[::1])", cc=9.0)  # wrong: a float
autolink.build(lambda x: None, "void(float32[::1])", cc=[9.0])  # wrong: a float
autolink.build(lambda x: None, "void(float32[::1])", cc=("9", 0))  # wrong: text
autolink.build(lambda x: None, "void(float32[::1])", output="elf")  # wrong: no such output
autolink.build(lambda x: None, "void(float32[::1])", ccc=(9, 0))  # wrong: misspelled
autolink.Variable("table", "float32", 4, space="constnt")  # wrong: misspelled
autolink.save("all.kernels", [b""])  # wrong: not what build returns
autolink.CUDASource(b"")  # wrong: bytes
print(autolink.current_target().architecture)  # wrong: arch
print(autolink.LinkEror)  # wrong: misspelled
autolink.testing.ask(len, cc=None)  # wrong: no compute capability
cuda.LTOIR(b"", nam="a.ltoir")  # wrong: name
autolink.Job(len, "void()", output="elf")  # wrong: no such output
autolink.Prebuilt("folder", prefer="cubn")  # wrong: misspelled
autolink.Bitcode("text")  # wrong: not bytes
numba_cuda_autolink.load("all.kernels").kernel.configure(1.5, 32)  # wrong: a float


@autolink.cxx("#include <cuda/std/cmath>").hypot.python
def hypot(x: float, y: float) -> float:
    return (x * x + y * y) ** 0.5


autolink.cxx("").f.passing("spam")  # wrong: no such way
print(hypot(3))  # wrong: two arguments


@cuda.jit
def kernel(x: npt.NDArray[np.float32], n: int) -> None:
    x[0] = n


@cuda.jit(device=True, inline="always")
def add_one(n: int) -> int:
    return n + 1


cuda.jit(kernel.py_func, fastmth=True)  # wrong: misspelled
cuda.jit("void(float32[::1], int32)", lineinf=True)  # wrong: misspelled
cuda.jit(max_register=32)  # wrong: misspelled
kernel[1, 32](np.zeros(1, np.float32))  # wrong: two arguments
kernel[1, 32](np.zeros(1, np.float32), "3")  # wrong: a number
kernel[32](np.zeros(1, np.float32), 3)  # wrong: a grid and a block
text: str = add_one(1)  # wrong: a number
built = autolink.build(kernel, "void(float32[::1], int32)")
print(built.report.builds[0].cals)  # wrong: calls
print(built.report.builds[0].calls[0].returned[0].size.name)  # wrong: a number
print(built.inputs[0].kind, built.call_sites[0].site)  # wrong: input.kind and call
autolink.build(kernel, 3)  # wrong: no signature
autolink.build(kernel, "void(float32[::1], int32)").emulate(np.zeros(1), 3)  # wrong: no grid and block


kernel["a", 32](np.zeros(1, np.float32), 3)  # wrong: text
kernel[1, 32, 0, "4"](np.zeros(1, np.float32), 3)  # wrong: text
kernel[1, 32, 0, 0, 7](np.zeros(1, np.float32), 3)  # wrong: five of four
kernel[10 / 2, 32](np.zeros(1, np.float32), 3)  # wrong: a float
built.emulate["a", 32](np.zeros(1, np.float32), 3)  # wrong: text
built.emulate[1](np.zeros(1, np.float32), 3)  # wrong: a grid and a block
built.emulate.with_checks()[(1, 2.0), 32](np.zeros(1, np.float32), 3)  # wrong: a float
numba_cuda_autolink.load("all.kernels").kernel["a", 1](np.zeros(1))  # wrong: text
numba_cuda_autolink.load("all.kernels").kernel.with_checks()  # wrong: not emulated
numba_cuda_autolink.load("all.kernels", emulate=True).kernel[1](np.zeros(1))  # wrong: a grid and a block
print(cuda.thredIdx.x)  # wrong: misspelled
cuda.syncthread()  # wrong: misspelled
cuda.to_devce(3)  # wrong: misspelled
print(types.flaot32)  # wrong: misspelled
print(numba_cuda_autolink.laod)  # wrong: misspelled
cuda.grid("1")  # wrong: a number
cuda.shared.array(32)  # wrong: no dtype
cuda.atomic.add(np.zeros(3), 0)  # wrong: no value


@cuda.jit("void(float32[::1], int32)")
def with_signature(x: npt.NDArray[np.float32], n: int) -> None:
    x[0] = n


with_signature(np.zeros(1, np.float32), 3)  # wrong: no grid and block
kernel.inspect_sas()  # wrong: misspelled
kernel.forall("3")(np.zeros(1, np.float32), 3)  # wrong: a number
kernel[1, 32, "s"](np.zeros(1, np.float32), 3)  # wrong: no stream
built.emulate[1, 32, 0.5](np.zeros(1, np.float32), 3)  # wrong: no stream
autolink.Extern("f", returns=3)  # wrong: no type
autolink.exact(3)  # wrong: no type
autolink.device_function(3, "int32")  # wrong: no function
autolink.Variable("table", "float32", 4).set("a")  # wrong: no values
cuda.stream().synchronise()  # wrong: misspelled
cuda.event().recrd()  # wrong: misspelled
cuda.event().record("s")  # wrong: no stream
cuda.current_context().get_mem_info()  # wrong: misspelled
print(cuda.get_current_device().nme)  # wrong: misspelled
print(cuda.gpus[0].nme)  # wrong: misspelled
cuda.device_array(3, np.float32).copy_to_hst()  # wrong: misspelled
cuda.device_array("3")  # wrong: no shape
cuda.compile(kernel, "void()", outputs="ltoir")  # wrong: output
cuda.compile(kernel, "void()", output="cubin")  # wrong: no such output
cuda.compile_ptx(kernel)  # wrong: no signature
cuda.declare_device("f")  # wrong: no signature
cuda.jit(link="a.cu")  # wrong: a list
cuda.jit(inline="alway")  # wrong: misspelled
cuda.libdevice.fabsf(1.0, 2.0)  # wrong: one argument
autolink.Extern("f", args={"x": 3})  # wrong: no type
autolink.Extern("f", args=3)  # wrong: no names
autolink.cxx("").f.signature(3.5)  # wrong: no type
autolink.testing.check_linkable(3)  # wrong: not called by kernels
print(numba.cuda.random.create_states)  # wrong: misspelled
cuda.cg.thisgrid()  # wrong: misspelled
on_device = cuda.to_device(np.zeros(3, np.float32))
on_device.sum()  # wrong: of host arrays
print(on_device.mean)  # wrong: of host arrays
print(on_device + 1, cuda.stream())  # wrong: of host arrays
print(2 * on_device)  # wrong: of host arrays
print(on_device > 1)  # wrong: of host arrays
print(on_device @ on_device)  # wrong: of host arrays
print(-on_device)  # wrong: of host arrays
on_device += 1  # wrong: of host arrays
kernel[1, 32](on_device)  # wrong: two arguments
kernel[1, 32](on_device, 3, 4)  # wrong: two arguments
kernel[1, 32](on_device, "3")  # wrong: a number
kernel[1, 32](3, 3)  # wrong: an array
kernel[1, 32](np.zeros(1, np.float32), np.float32(3))  # wrong: an integer
kernel[1, 32](cuda.In(np.zeros(3, np.float32)))  # wrong: two arguments
print(kernel[1, 32].grid)  # wrong: griddim
add_one[1, 32](1)  # wrong: not launched
add_one.forall(32)(1)  # wrong: not launched
cuda.local.array((4, "x"), np.float32)  # wrong: a number
cuda.shared.array("64", np.float32)  # wrong: a number
cuda.libdevice.powf("a", 1.0)  # wrong: a number
cuda.blockDim.x = 3  # wrong: it is read
autolink.Extern("f", args="float32")  # wrong: names
cuda.declare_device("foreign", "float32(float32)").__numba_cuda_lnk__ = len  # wrong: misspelled
print(cuda.grid(4) + 1)  # wrong: at most 3
print(cuda.gridsize(0) + 1)  # wrong: at least 1
kernel[(1, 1, 1, 1), 32](np.zeros(1, np.float32), 3)  # wrong: at most three numbers
built.emulate[1, (8, 2, 1, 1)](np.zeros(1, np.float32), 3)  # wrong: at most three numbers
autolink.build_many([kernel])  # wrong: no signature
autolink.build_many([(kernel,)])  # wrong: no signature
autolink.build_many([(kernel, 3)])  # wrong: no signature
autolink.build_many([(kernel, "void()", (9, 0), "cubin")])  # wrong: a Job
bound = autolink.bind(kernel, "void(float32[::1], int32)")
bound(np.zeros(1, np.float32), 3)  # wrong: no grid and block
bound[1, 32](x=np.zeros(1, np.float32), n=3)  # wrong: by position
built.emulate[1, 32](np.zeros(1, np.float32), n=3)  # wrong: by position
autolink.bind(kernel.py_func, "void(float32[::1], int32)")  # wrong: not a kernel
autolink.compiled(autolink.CUDASource(""), "f")  # wrong: names
autolink.CUDASource("", include_paths=[None])  # wrong: no path
print(cuda.float32x2(1, 2).z)  # wrong: of two numbers
autolink.cxx("").hypot(x=3.0)  # wrong: C++ has no names of arguments
autolink.cxx("")(3.0)  # wrong: a function of it
cuda.guvectorize(["void(float32[:])"])  # wrong: no dimensions
autolink.cxx("", options=["use_fast_math"])  # wrong: names and values
autolink.CUDASource("", options={"use_fastmath": True})  # wrong: use_fast_math
autolink.cxx("", options={"standard": "c++20"})  # wrong: std
autolink.cxx("", options={"ftz": "yes"})  # wrong: a flag
autolink.CUDASource("", options={"arch": "sm_90"})  # wrong: the kernel's
autolink.Job(kernel, "void()", options={"fastmaths": True})  # wrong: fastmath
autolink.build_many([(kernel, "void()")], on_eror="return")  # wrong: misspelled
numba_cuda_autolink.load("all.kernels", emulated=True)  # wrong: misspelled


@cuda.jit
def of_13(
    a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int, i: int, j: int, k: int, m: int, x: Any
) -> None:
    x[0] = a


@cuda.jit
def of_24(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q, r, s, t, u, v, w, x, y: int):
    x[0] = y


of_13[1, 1](1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)  # wrong: 13 arguments
of_13[1, 1](1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, on_device, 14)  # wrong: 13 arguments
of_13[1, 1](np.int32(1), 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, "12", on_device)  # wrong: a number
of_24[1, 1](1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)  # wrong: 24 arguments
of_24[1, 1](1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, "24")  # wrong: a number


@cuda.jit
def of_numbers(x: npt.NDArray[np.float32], flag: bool, c: complex) -> None: ...


of_numbers[1, 1](on_device, np.zeros(1, np.float32), 2)  # wrong: a flag
of_numbers[1, 1](on_device, np.bool_(True), np.zeros(1, np.float32))  # wrong: a number
of_numbers[1, 1](on_device, np.int32(1), np.complex64(2))  # wrong: a flag
program_options: autolink.ProgramOptions = {"use_fastmath": True}  # wrong: use_fast_math
jit_options: autolink.JitOptions = {"fastmth": True}  # wrong: fastmath
