# SPDX-License-Identifier: BSD-2-Clause
"""A user's file in which type checkers find nothing wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import cuda, njit, prange
from numba.cuda import autolink, extending, types
from numba.cuda.core.errors import TypingError
from numba.cuda.datamodel import models
from numba.cuda.np.numpy_support import from_dtype
from typing_extensions import Unpack

import numba_cuda_autolink


class Scale(autolink.DeviceCallable):
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __numba_cuda_call__(self, x: Any, times: Any = 1) -> autolink.Extern:
        return autolink.Extern(f"scale_{x}", returns="float32", args={"x": types.float32})

    def __numba_cuda_link__(self, x: Any, times: Any) -> Iterator[autolink.LinkItem]:
        if autolink.current_target().compute_capability >= (9, 0):
            yield Path("scale.cubin")
        yield autolink.CUDASource("", include_paths=["include"])
        yield cuda.LTOIR(b"", name="scale.ltoir")

    def __numba_cuda_link_key__(self, x: Any, times: Any) -> Any:
        return self.factor

    def __call__(self, x: float, times: int = 1) -> float:
        return x * self.factor * times

    @autolink.device_method
    def up(self, x: Any) -> autolink.Extern:
        return autolink.Extern("up", returns=x)

    @up.link
    def _(self, x: Any) -> autolink.CUDASource:
        return autolink.CUDASource("")

    @up.python
    def _(self, x: float) -> float:
        return x


class Table(autolink.DeviceCallable):
    table = autolink.Variable("table", np.float32, (4, 4), space="constant")

    def __numba_cuda_call__(self, i: Any) -> autolink.Extern:
        self.table.set(np.zeros((4, 4), np.float32))
        return autolink.Extern("look", returns=self.table.get().dtype)

    def __numba_cuda_link__(self, i: Any) -> list[autolink.CUDASource]:
        return [self.table, autolink.CUDASource(self.table.declaration)]


class Untyped(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("untyped", returns=x)

    def __numba_cuda_link__(self, x):
        return autolink.CUDASource("")


class Other:
    def __numba_cuda_link__(self, x: Any) -> str:
        return "other.cu"


ways = {"n": autolink.exact("int32"), "x": autolink.by_reference(np.float32), "a": autolink.mdspan, "b": autolink.span}
extern = autolink.Extern(autolink.symbol("f", 3, types.int8), returns=np.dtype("f4, i4"), args=ways)
by_value = autolink.Extern("f", args={"p": autolink.by_value})
view: str = autolink.cxx_type(types.float32[:, :], autolink.mdspan)
source = autolink.CUDASource.from_file("scale.cu", include_paths=["include"], defines={"N": 3})
path: str | None = autolink.CUDASource(Path("scale.cu")).path
scale = Scale(2)
linked: autolink.SupportsLink = Other()
called: autolink.SupportsCall = scale


@cuda.jit
def kernel(x):
    x[0] = scale(x[1]) + scale.up(x[2])


@cuda.jit("void(float32[::1], int32)", fastmath=True)
def typed(x: npt.NDArray[np.float32], n: int) -> None:
    x[0] = add_one(n)


@cuda.jit(device=True)
def add_one(n: int) -> int:
    return n + 1


typed[1, 32](np.zeros(1, np.float32), 3)
typed[1, 32, cuda.stream()](cuda.to_device(np.zeros(1, np.float32)), 3)
one: int = add_one(0)


@cuda.jit(types.void(types.float32[:, ::1], types.int32))
def with_signature(x: npt.NDArray[np.float32], n: int) -> None:
    x[0] = types.float32(n)


with_signature[1, 32](np.zeros((1, 1), np.float32), 3)
DEBUG = {"debug": True, "opt": False}
print(cuda.jit(**DEBUG)(typed.py_func).signatures, cuda.jit("float32(float32)", True)(typed.py_func).signatures)
print(typed.overloads, cuda.jit(typed.py_func, lineinfo=True).signatures)
autolink.build(typed, (types.float32[::1], types.int32), cc=(9, 0))
autolink.build(typed, types.void(types.float32[::1], types.int32), cc=(9, 0))
built = autolink.build(kernel, "void(float32[::1])", cc="9.0a")
code: bytes = built.code
major: int = built.cc.major
ccs = [(8, 0), (9, 0)]
many = autolink.build(typed, "void(float32[::1], int32)", cc=ccs)
for record in many[0].report.builds:
    print(record.arch, record.result.registers, [code.kind for call in record.calls for code in call.returned])
print(many[0].call_sites[0].place, many[0].inputs[0].input.kind.name, many[0].report.graph.functions[0].line)
both = [autolink.build(kernel, "void(float32[::1])"), autolink.build(typed, "void(float32[::1], int32)")]
autolink.save("both.kernels", both)
autolink.Job(kernel, "void(float32[::1])", options={"debug": True})
shared_options: Any = {"fastmath": True}
autolink.Job(kernel, "void(float32[::1])", options=shared_options)
for capability in (9, 0), "sm_90", 90, autolink.ComputeCapability(9, 0), np.int64(90):
    autolink.Target(capability, lto=True)
try:
    autolink.report(kernel, cc=[(9, 0), "10.0"]).show()
except (autolink.LinkError, autolink.CallError) as error:
    print(error)
built.emulate[1, 32](np.zeros(3))
built.emulate.with_checks()[1, 32](np.zeros(3))
autolink.build(typed, "void(float32[::1], int32)").emulate[1, 32](np.zeros(1, np.float32), 3)
untyped: autolink.LinkedKernel = autolink.build(typed.py_func, "void(float32[::1], int32)")
untyped.emulate[1, 32](np.zeros(1), 3.0)
built.save("one.kernels")
autolink.write_header("one.h", [built])
autolink.save(Path("all.kernels"), [built, *autolink.build(kernel, "void(float32[::1])", cc=[(8, 0), "9.0"])])
autolink.bind(kernel, "void(float32[::1])")[1, 32](np.zeros(3))
finished: numba_cuda_autolink.Kernel = numba_cuda_autolink.load("all.kernels").kernel
finished.configure(4, (32, 2), cluster=2)(np.zeros(3))
signatures: tuple[str, ...] = finished.signatures
inputs = autolink.testing.ask(scale, "float32", cc=90)
if inputs is not None:
    print(str(inputs[0].kind), len(inputs[0].code))
autolink.cache.clear()
lib = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std")


def use(library: autolink.CxxLibrary) -> tuple[autolink.CxxFunction, autolink.CxxType]:
    return library.hypot.passing("value", None), library.type("div_t")


use(lib)
struct: np.dtype[Any] = lib.record("div_t")
memory: np.dtype[Any] = lib.type("div_t").dtype
resolved: tuple[Any, ...] = lib.hypot.signature("float32", "float32").args


@lib.hypot.python
def hypot(x: float, y: float) -> float:
    return (x * x + y * y) ** 0.5


rounded: int = hypot(3, 4).__trunc__()
raised: float = scale.up(3.0)
finished.configure((np.int64(4), 1), 32)
print(autolink.__version__)
emulated = numba_cuda_autolink.load("all.kernels", emulate=True)
emulated.kernel.with_checks()[1, 32](np.zeros(3))
with numba_cuda_autolink.load("all.kernels", emulate=True) as opened:
    opened["kernel"].with_limit(100)[(1, 2), [32], 0, np.int64(64)](np.zeros(3))
is_emulated = bool(input())
either: numba_cuda_autolink.Kernel = numba_cuda_autolink.load("all.kernels", emulate=is_emulated).kernel
blocks = (1, np.int64(2))
typed[blocks, (np.int32(32), 1), cuda.stream(), 128](np.zeros(1, np.float32), 3)
for launched in (blocks, 32), (blocks, 32, 0):
    typed[launched](np.zeros(1, np.float32), 3)
built.emulate[blocks, 32, None, 16](np.zeros(3))


@cuda.jit
def of_all_kinds(x: npt.NDArray[np.float32], n: int) -> None:
    i, (j, k) = cuda.grid(1), cuda.grid(2)
    column: int = cuda.threadIdx.x + cuda.blockIdx.y * cuda.blockDim.x - cuda.gridsize(1) + cuda.laneid % cuda.warpsize
    tile = cuda.shared.array(shape=(32, 2), dtype=types.float32)
    own = cuda.local.array(4, np.float32, alignment=16)
    tile[i, 0] = own[0] = x[j + k + column]
    cuda.syncthreads()
    cuda.syncwarp()
    cuda.atomic.add(x, 0, tile[i, 1] + cuda.shfl_down_sync(0xFFFFFFFF, own[1], 1))
    vector = cuda.float32x2(x[0], x[1])
    x[0] = cuda.fma(vector.x, vector.y, cuda.libdevice.fabsf(x[1])) + cuda.popc(n) + types.float32(n)
    without_result(x)


@cuda.jit(device=True)
def without_result(x: npt.NDArray[np.float32]) -> None:
    x[0] = 1


@cuda.jit
def not_annotated(x):
    return x + 1


@cuda.jit
def uses(x):
    x[0] = not_annotated(x[1])


without_result(np.zeros(1, np.float32))
not_annotated(3)
device: Any = cuda.to_device(np.zeros(3)).copy_to_host()
of_all_kinds.forall(3)(cuda.device_array(3, np.float32), 3)
of_all_kinds[1, 32, 0](cuda.device_array_like(np.zeros(3)), 3)
print(
    of_all_kinds.get_regs_per_thread(), of_all_kinds.inspect_asm(), of_all_kinds.specialize(np.zeros(3), 3).specialized
)
array_type = types.Array(types.float32, 1, "C")
autolink.Extern("f", returns=types.CPointer(types.float32), args={"x": autolink.exact(array_type)})
autolink.build(of_all_kinds, types.void(array_type, types.int32)).emulate[1, 32](np.zeros(3, np.float32), 3)
print(
    from_dtype(np.dtype("f4")),
    njit,
    prange,
    models.StructModel,
    isinstance(array_type, types.Literal),
    TypingError("no"),
)


class Model(models.StructModel):
    def __init__(self, manager: Any, of: Any) -> None:
        super().__init__(manager, of, [("n", types.int32)])


class Own(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Own")


class Shift(autolink.DeviceCallable):
    @autolink.device_method
    def by(self, x: types.Type, n: types.Type = types.int32) -> autolink.Extern:
        return autolink.Extern(f"shift_{x}", returns=x, args={"x": x, "n": n})

    @by.link
    def _(self, x: types.Type, n: types.Type) -> autolink.CUDASource:
        return autolink.CUDASource("")

    @by.python
    def _(self, x: float, n: int = 1) -> float:
        return x + n


class Shifts(Shift):
    @autolink.device_method
    def by_one(self, x: types.Type) -> autolink.Extern:
        return autolink.Extern(f"shift_{x}", returns=x)

    @by_one.python
    def _(self, x: float) -> float:
        return x + 1


shifted: float = Shift().by(2.0, 3) + Shift().by(2.0, n=3) + Shift().by(np.float32(2))


class Rotate(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x: types.Type, by: types.Literal = 1) -> autolink.Extern:
        return autolink.Extern(f"rotate_{by.literal_value}", returns=Own())


for i in range(lib.eval("lanes")):
    print([0] * lib.eval("lanes"), np.zeros(lib.eval("lanes")), i)
count: int = lib.eval("count")
table = autolink.Variable("table", np.float32, 4, value=range(4))
table.set(np.float32(3))
table.set([1, 2, 3, 4])
table.set(2.5)
on_device = cuda.to_device(np.arange(8.0))
on_device[2:4].copy_to_host()
on_device.reshape(2, 4).T[1, :].copy_to_host()
on_device.view(np.int64).ravel().squeeze().copy_to_host()
on_device[:].copy_to_device(on_device)
print(on_device[0] + 1)


@cuda.reduce
def total(a, b):
    return a + b


print(total(on_device) + 1, float(total(on_device)))
with cuda.gpus[0]:
    print(len(cuda.gpus), [device.id for device in cuda.gpus])
rebuilt = autolink.build(kernel, "void(float32[::1])")
rebuilt = autolink.build(typed, "void(float32[::1], int32)")


@cuda.jit
def synchronised(x):
    cuda.cg.this_grid().sync()
    x[0] = cuda.ldca(x, 1) + 1


@cuda.jit
def fill(x, i):
    x[i] = 1


@cuda.jit(link=["a.cu"], launch_bounds=(128, 2), inline="never")
def calls_without_device(x):
    fill(x, 0)
    s, c = cuda.libdevice.sincos(x[1])
    x[2] = s * c + cuda.libdevice.popc(3)


ptx, returned = cuda.compile_ptx(fill, "void(float32[::1], int32)", cc=(9, 0))
ltoir, _ = cuda.compile(lambda x: x, (types.float32,), device=True, output="ltoir")
start, stop, stream = cuda.event(), cuda.event(timing=True), cuda.stream()
start.record()
with stream.auto_synchronize() as same, cuda.pinned(np.zeros(3)), cuda.defer_cleanup():
    fill[1, 1, same](cuda.device_array((3, 2), np.float32, stream=same), 0)
stop.record(stream)
milliseconds: float = start.elapsed_time(stop) + cuda.event_elapsed_time(start, stop)
free, total_memory = cuda.current_context().get_memory_info()
percentage: float = 100 * cuda.current_context().get_memory_info().free / total_memory
gpu = cuda.select_device(0)
threads: int = gpu.MAX_THREADS_PER_BLOCK * gpu.MULTIPROCESSOR_COUNT
print(gpu.name, gpu.compute_capability >= (9, 0), gpu.id, len(cuda.list_devices()), [each.uuid for each in cuda.gpus])
pinned: npt.NDArray[Any] = cuda.pinned_array((2, 3), dtype=np.int32)
cuda.to_device(pinned, to=cuda.device_array_like(pinned))
external = cuda.external_stream(int(stream))
foreign = cuda.declare_device("foreign", "float32(float32)", link=["a.cu"])
mixed = {"n": types.int32, "x": "float32", "y": np.float32, "a": autolink.mdspan, "z": None}
autolink.Extern("f", args=mixed)
autolink.Extern("f", args={"n": types.int32, "x": "float32", "y": np.float32, "a": autolink.mdspan, "z": None})
autolink.Extern("f", args={name: autolink.exact(types.int64) for name in ("n", "m")})
autolink.Extern("f", args=ways.keys())
autolink.Extern("f", args=(name for name in ("n", "m")))
autolink.Extern("f", args=["n"])
plain: dict[str, Any] = {}
autolink.Extern("f", args=plain)
lib.hypot.signature("float32", np.float32, np.dtype("f4"), types.float32[::1], None)
for tested in (scale, scale.up, foreign, add_one, Other(), Untyped(), lib.hypot, lib.type("div_t")):
    autolink.testing.check_linkable(tested, "float32", 7)
autolink.testing.check_linkable(Other(), types.float32)
autolink.testing.check_linkable(scale.up, types.float32)
autolink.testing.check_linkable(cuda.declare_device("foreign", "float32(float32)"), types.float32)
typed[1, 32](cuda.In(np.zeros(1, np.float32)), 3)
typed.forall(3)(cuda.InOut(on_device), 3)
launch = typed[1, 32]
launch(on_device, launch.griddim[0])
host: npt.NDArray[Any] = np.ones(8) + on_device + np.asarray(on_device)
np.testing.assert_allclose(on_device, np.sum(on_device))
print(len(on_device), on_device.shape[0] + on_device.size + on_device.nbytes, on_device.dtype, list(on_device))
available: bool = cuda.is_available()
borrowed = cuda.devicearray.DeviceNDArray(shape=(3,), strides=(4,), dtype=np.float32, gpu_data=on_device.gpu_data)
typed[1, 32](borrowed, 3)
both.append(autolink.build(typed, "void(float32[::1], int32)"))
by_name = {"kernel": autolink.build(kernel, "void(float32[::1])"), "typed": autolink.build(typed, "void()")}


def save_all(kernels: list[autolink.LinkedKernel], names: dict[str, autolink.LinkedKernel]) -> autolink.LinkedKernel:
    autolink.save("all.kernels", [*kernels, *names.values()])
    return kernels[0]


save_all(both, by_name).emulate[1, 32](3)
save_all(many, by_name)
rebuilt = save_all([rebuilt], by_name)
rebuilt.emulate[1, 32](3)
for each in (kernel, typed):
    rebuilt = autolink.build(each, "void()")
rebuilt = autolink.build(kernel, "void()") if is_emulated else autolink.build(typed, "void()")
of_any_kernel: Any = kernel
autolink.build(of_any_kernel, "void()").emulate[1, 32](3)
many = autolink.build(of_all_kinds, "void()", cc=[90])


class Holder:
    def __init__(self, linked: autolink.LinkedKernel | None = None) -> None:
        self.linked = linked or autolink.build(typed, "void()")


Holder().linked = autolink.build(kernel, "void()")
rebuilt = autolink.build(typed, "void(float32[::1], int32)")
rebuilt.emulate[1, 32](np.zeros(1, np.float32), 3)
rebuilt = autolink.build(fill, "void(float32[::1], int32)")
rebuilt.emulate[1, 32](np.zeros(1), 3)
OPTIONS = {"device": True}
cuda.jit(**OPTIONS)(fill.py_func)[1, 32](np.zeros(1), 3)
cuda.jit(device=is_emulated)(fill.py_func)[1, 32](np.zeros(1), 3)
cuda.jit(device=is_emulated)(fill.py_func)(np.zeros(1), 3)
foreign.__numba_cuda_link__ = lambda *argtypes: "a.cu"
foreign.__numba_cuda_link_key__ = lambda x: 1


@extending.intrinsic
def pointer_to_data(typing_context, array):
    return types.CPointer(array.dtype)(array), None


@cuda.jit
def of_memory(x: npt.NDArray[np.float32], n: int) -> None:
    rows = np.int64(2)
    tile = cuda.shared.array((rows, cuda.warpsize), types.float32)
    own, dynamic = cuda.local.array(x.shape, np.float32), cuda.shared.array(0, "float32")
    own[0] = dynamic[0] = tile[0, 0] = foreign(pointer_to_data(x), x[0])
    x[0] = cuda.libdevice.fmaf(x[0], n, types.float32(n)) + cuda.libdevice.powi(own[0], True) + np.sqrt(x[1])
    x[1] = cuda.libdevice.sqrtf(np.float16(1)) + cuda.libdevice.popc(np.uint32(n))
    x[2] = cuda.libdevice.fabs(types.float64(n))


def extern_of(names: Sequence[str], more: Mapping[str, Any], few: deque[str]) -> list[autolink.Extern]:
    return [autolink.Extern("f", args=each) for each in (names, more, few, ("n", "m"), {"n", "m"}, frozenset(names))]


def of_one(self: Any, x: Any) -> autolink.Extern:
    return autolink.Extern("f", returns=x)


def of_two(self, x, y):
    return lambda x, y: x + y


one_of_both = autolink.device_method(of_one if is_emulated else of_two).link(lambda self, *args: None)


jobs = [(kernel, "void(float32[::1])"), (typed, "void(float32[::1], int32)")]
autolink.build_many(jobs)
autolink.build_many((each, signature, cc) for each, signature in jobs for cc in ("8.0", (9, 0), None))
autolink.build_many([autolink.Job(kernel, "void()"), (typed, "void()")])
compiled: Any = {"std": "c++17"}
autolink.cxx("", options=compiled)
autolink.cxx("", options={"std": "c++17", "use_fast_math": True})
typed[on_device.shape[0], [32, 1]](on_device, 3)
bound = autolink.bind(typed, "void(float32[::1], int32)")
bound[1, 32](on_device, 3)
bound = autolink.bind(kernel, np.zeros(3))
bound[1, 32](np.zeros(3))
autolink.compiled(autolink.CUDASource("", include_paths=Path("include"), defines="TILE"), ["f"])


NUMBER_OF_DIMENSIONS = 2
numbers: list[Any] = [1, 2]
of_any: tuple[Any, ...] = (1, 32)
computed = tuple((size + 7) // 8 for size in on_device.shape)


@cuda.jit
def of_dimensions(x: npt.NDArray[np.float32], n: int) -> None:
    x[cuda.grid(NUMBER_OF_DIMENSIONS)] = cuda.gridsize(NUMBER_OF_DIMENSIONS)[0]


def launch_all(grid: tuple[int, ...], block: tuple[int, int] | int, stream: Any = 0) -> None:
    typed[grid, block](on_device, 3)
    typed[block, grid, stream](on_device, 3)
    typed.configure(grid, block, stream, 64)(on_device, 3)
    finished.configure(grid, block, cluster=grid)(np.zeros(3))
    built.emulate[grid, block, stream, 0](np.zeros(3))


for size in computed, of_any:
    typed[size](on_device, 3)
    typed[size, size](on_device, 3)
    typed[(1, *size), 32](on_device, 3)
    typed[(1,) * len(size), (32,) * len(size), cuda.stream()](on_device, 3)
    finished[size, size](np.zeros(3))
typed[of_any, computed](on_device, 3)
typed[tuple(numbers), tuple(size + 1 for size in computed)](on_device, 3)
typed[computed, tuple(numbers), None, 16](on_device, 3)
typed[numbers, [np.int64(32), 1]](on_device, 3)
typed[tuple(np.array([8, 16]) // 8), np.int32(32)](on_device, 3)
for copied in [1, 2, 3], (1.0, 2.0), np.float32(3), 4, np.zeros(3).tolist():
    cuda.to_device(copied)
linked_kernel: autolink.LinkedKernel = autolink.build(kernel, "void(float32[::1])")
report: autolink.Report = linked_kernel.report


@cuda.vectorize(["float32(float32, float32)"])
def summed(x: float, y: float) -> float:
    return x + y


@cuda.guvectorize([types.void(types.float32[:], types.float32[:])], "(n)->(n)")
def copied_to(x: Any, out: Any) -> None:
    out[0] = x[0]


cuda.config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
cuda.core.config.CUDA_NVRTC_EXTRA_SEARCH_PATHS = "include"
print(cuda.config.CUDA_LOG_LEVEL, cuda.config.DEBUG_TYPEINFER)
summed(np.zeros(3), cuda.to_device(np.zeros(3)), out=on_device, stream=cuda.stream())
print(summed.reduce(np.zeros(3)) + 1, copied_to(np.zeros(3), on_device), copied_to.max_blocksize)


def launch_any(launched: cuda.dispatcher.CUDADispatcher) -> None:
    launched[1, 32](np.zeros(3))


launch_any(kernel)
launch_any(typed)


OF_COMPILER: Any = {"std": "c++17"}
autolink.cxx("", options=OF_COMPILER)
autolink.CUDASource("", options={"ftz": np.bool_(True), "max_register_count": np.int32(32), "diag_suppress": [1, 2]})
autolink.build(kernel, "void(float32[::1])", cc=tuple(map(int, input().split("."))))
autolink.Variable("table", np.float32, np.int64(4)).set(3)
kernel.forall(np.int64(3), tpb=np.int32(64))(np.zeros(3))


@cuda.jit
def of_integers(x: npt.NDArray[np.int32]) -> None:
    mask = types.uint32(0xFFFFFFFF)
    x[0] = cuda.shfl_sync(np.uint32(1), x[0], x[1]) + cuda.shfl_xor_sync(mask, x[1], types.int32(1))
    cuda.syncwarp(mask)
    cuda.nanosleep(np.uint32(10))
    x[1] = cuda.match_any_sync(cuda.ballot_sync(mask, x[0] > 1), x[0])


Vector = npt.NDArray[np.float32]


@cuda.jit
def of_a_float(x: Vector, n: float = 1) -> None:
    x[0] = n


@cuda.jit
def of_twelve(
    a: Vector,
    b: Vector,
    c: Vector,
    d: Vector,
    e: Vector,
    f: Vector,
    g: Vector,
    h: Vector,
    i: int,
    j: int,
    k: int,
    m: int,
) -> None: ...


@cuda.jit
def of_thirteen(
    a: Vector,
    b: Vector,
    c: Vector,
    d: Vector,
    e: Vector,
    f: Vector,
    g: int,
    h: int,
    i: int,
    j: int,
    k: int,
    m: int,
    n: Vector,
) -> None: ...


@cuda.jit
def of_several(*arrays: Vector) -> None: ...


class OfAnyLibrary:
    __cuda_array_interface__: dict[str, Any]


class WithKernels:
    @staticmethod
    @cuda.jit
    def kernel(x: Vector, n: int) -> None:
        x[0] = n

    @staticmethod
    @cuda.jit
    def not_annotated(x, n):
        x[0] = n

    @staticmethod
    @cuda.jit("void(float32[::1], int32)", fastmath=True)
    def with_signature(x: Vector, n: int) -> None:
        x[0] = n

    @staticmethod
    @cuda.jit(device=True)
    def add_one(n: int) -> int:
        return n + 1

    def launch(self, x: Vector) -> int:
        self.kernel[1, 32](x, 3)
        WithKernels.not_annotated[1, 32](x, 3)
        WithKernels.with_signature.forall(3)(x, 3)
        return self.add_one(2)


array = cuda.to_device(np.zeros(3, np.float32))
typed[1, 32](array, np.int32(3))
typed[1, 32](OfAnyLibrary(), 3)
of_a_float[1, 32](array)
of_a_float[1, 32](np.zeros(3, np.float32), np.float32(3))
of_a_float.forall(3)(array, np.int64(3))
of_twelve[1, 32](array, array, array, array, array, array, array, array, 1, np.int32(2), 3, 4)
of_thirteen[1, 32](array, array, array, array, array, array, 1, 2, 3, 4, np.int32(5), 6, array)
of_several[1, 32](array, array, np.zeros(3, np.float32))
array[1:3] = array[0] = 4
print([value for value in array], 3.0 in array, np.sum(array), array.flags["C_CONTIGUOUS"])


@cuda.jit
def of_13(
    a: int,
    b: int,
    c: int,
    d: int,
    e: int,
    f: int,
    g: int,
    h: int,
    i: int,
    j: int,
    k: int,
    m: int,
    x: npt.NDArray[np.float32],
):
    x[0] = a


of_13[1, 1](np.int32(1), 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, on_device)


@cuda.jit
def of_24(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q, r, s, t, u, v, w, x: npt.NDArray[np.float32], y: int):
    x[0] = y


of_24[1, 1](*(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, on_device, np.int32(3))


@cuda.jit
def of_numbers(x: npt.NDArray[np.float32], flag: bool, c: complex, n: int, y: float) -> None:
    x[0] = y


of_numbers[1, 1](on_device, np.bool_(True), np.complex64(2), np.int32(3), np.float32(2))
of_numbers[1, 1](np.zeros(1, np.float32), np.float32(1) > 2, np.float32(2), np.uint8(3), np.int64(2))
autolink.build(kernel, "void(float32[::1])", ["8.0", (9, 0)], output="ptx")[0].save("all.kernels")
autolink.build_many(jobs, "9.0")


def with_options(compile_options: autolink.ProgramOptions, **jit_options: Unpack[autolink.JitOptions]) -> None:
    autolink.cxx("", options=compile_options)
    autolink.build(kernel, "void(float32[::1])", (9, 0), **jit_options)
    autolink.Job(kernel, "void(float32[::1])", options=jit_options)


OF_CXX: autolink.ProgramOptions = {"std": "c++20"}
JIT: autolink.JitOptions = {"fastmath": True}
with_options(OF_CXX, **JIT)
autolink.CUDASource("", options={**OF_CXX, "fma": False})


@cuda.jit(**JIT)
def of_options(x: Any) -> None: ...
