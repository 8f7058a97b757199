# SPDX-License-Identifier: BSD-2-Clause
# What kernels call, jit and the classes of linkable code have types. All other names are those of numba-cuda's code.
# All are listed: mypy does not look into that code.
from builtins import bool as _bool  # numba.cuda has a type of this name
from collections.abc import Callable as _Callable, Iterator as _Iterator
from typing import (
    Any as _Any,
    Generic as _Generic,
    Literal as _Literal,
    ParamSpec as _ParamSpec,
    Protocol as _Protocol,
    SupportsIndex as _SupportsIndex,
    TypeAlias as _TypeAlias,
    TypedDict as _TypedDict,
    TypeVar as _TypeVar,
    overload as _overload,
)

from numba.core import config as config
from numba.core.types import *  # noqa: F403
from numba.cuda.api_util import prepare_shape_strides_dtype as prepare_shape_strides_dtype
from numba.cuda.compiler import (
    compile as compile,
    compile_all as compile_all,
    compile_for_current_device as compile_for_current_device,
    compile_ptx as compile_ptx,
    compile_ptx_for_current_device as compile_ptx_for_current_device,
)
from numba.cuda.cudadrv import (
    devicearray as devicearray,
    devices as devices,
    driver as driver,
    nvvm as nvvm,
)
from numba.cuda.cudadrv.devicearray import DeviceNDArray as _DeviceNDArray
from numba.cuda.device_init import (
    BaseCUDAMemoryManager as BaseCUDAMemoryManager,
    CudaSupportError as CudaSupportError,
    GetIpcHandleMixin as GetIpcHandleMixin,
    HostOnlyCUDAMemoryManager as HostOnlyCUDAMemoryManager,
    In as In,
    InOut as InOut,
    IpcHandle as IpcHandle,
    KernelRuntimeError as KernelRuntimeError,
    MappedMemory as MappedMemory,
    MemoryInfo as MemoryInfo,
    MemoryPointer as MemoryPointer,
    Out as Out,
    PinnedMemory as PinnedMemory,
    close as close,
    cuda_error as cuda_error,
    current_context as current_context,
    declare_device as declare_device,
    default_stream as default_stream,
    defer_cleanup as defer_cleanup,
    detect as detect,
    event as event,
    event_elapsed_time as event_elapsed_time,
    external_stream as external_stream,
    get_current_device as get_current_device,
    is_available as is_available,
    is_bfloat16_supported as is_bfloat16_supported,
    is_cuda_array as is_cuda_array,
    is_float16_supported as is_float16_supported,
    is_fp8_supported as is_fp8_supported,
    is_supported_version as is_supported_version,
    legacy_default_stream as legacy_default_stream,
    list_devices as list_devices,
    literal_unroll as literal_unroll,
    managed_array as managed_array,
    mapped as mapped,
    mapped_array as mapped_array,
    mapped_array_like as mapped_array_like,
    open_ipc_array as open_ipc_array,
    per_thread_default_stream as per_thread_default_stream,
    pinned as pinned,
    pinned_array as pinned_array,
    pinned_array_like as pinned_array_like,
    profile_start as profile_start,
    profile_stop as profile_stop,
    profiling as profiling,
    require_context as require_context,
    runtime as runtime,
    select_device as select_device,
    set_memory_manager as set_memory_manager,
    stcg as stcg,
    stcs as stcs,
    stream as stream,
    stwb as stwb,
    stwt as stwt,
    synchronize as synchronize,
)
from numba.cuda.kernels import reduction as reduction
from numba.cuda.misc import literal as literal
from numba.cuda.np.ufunc import (
    guvectorize as guvectorize,
    vectorize as vectorize,
)
from numba_cuda_autolink.launch.configuration_types import (
    ConfigurationLike as _ConfigurationLike,
    Size as _Size,
    StreamLike as _StreamLike,
)
from numpy import ndarray as _ndarray
from typing_extensions import Unpack as _Unpack

from numba.cuda import (
    api as api,
    api_util as api_util,
    args as args,
    autolink as autolink,
    cache_hints as cache_hints,
    cext as cext,
    cg as cg,
    cgutils as cgutils,
    cloudpickle as cloudpickle,
    codegen as codegen,
    compiler as compiler,
    core as core,
    cpython as cpython,
    cuda_paths as cuda_paths,
    cudadrv as cudadrv,
    datamodel as datamodel,
    debuginfo as debuginfo,
    decorators as decorators,
    descriptor as descriptor,
    device_init as device_init,
    deviceufunc as deviceufunc,
    dispatcher as dispatcher,
    errors as errors,
    extending as extending,
    flags as flags,
    initialize as initialize,
    intrinsics as intrinsics,
    itanium_mangler as itanium_mangler,
    kernels as kernels,
    launchconfig as launchconfig,
    libdevice as libdevice,
    locks as locks,
    lowering as lowering,
    mathimpl as mathimpl,
    memory_management as memory_management,
    misc as misc,
    models as models,
    nvvmutils as nvvmutils,
    serialize as serialize,
    simulator as simulator,
    stubs as stubs,
    target as target,
    typeconv as typeconv,
    types as types,
    typing as typing,
    ufuncs as ufuncs,
    utils as utils,
    vectorizers as vectorizers,
)
from numba.cuda.intrinsics import (
    all_sync as all_sync,
    any_sync as any_sync,
    ballot_sync as ballot_sync,
    eq_sync as eq_sync,
    grid as grid,
    gridsize as gridsize,
    shfl_down_sync as shfl_down_sync,
    shfl_sync as shfl_sync,
    shfl_up_sync as shfl_up_sync,
    shfl_xor_sync as shfl_xor_sync,
    syncthreads as syncthreads,
    syncthreads_and as syncthreads_and,
    syncthreads_count as syncthreads_count,
    syncthreads_or as syncthreads_or,
)
from numba.cuda.stubs import (
    activemask as activemask,
    atomic as atomic,
    blockDim as blockDim,
    blockIdx as blockIdx,
    brev as brev,
    cbrt as cbrt,
    clz as clz,
    const as const,
    ffs as ffs,
    fma as fma,
    gridDim as gridDim,
    laneid as laneid,
    lanemask_lt as lanemask_lt,
    local as local,
    match_all_sync as match_all_sync,
    match_any_sync as match_any_sync,
    nanosleep as nanosleep,
    popc as popc,
    selp as selp,
    shared as shared,
    syncwarp as syncwarp,
    threadfence as threadfence,
    threadfence_block as threadfence_block,
    threadfence_system as threadfence_system,
    threadIdx as threadIdx,
    warpsize as warpsize,
)
from numba.cuda.types import (
    Dim3 as Dim3,
    GridGroup as GridGroup,
    bfloat16 as bfloat16,
    dim3 as dim3,
    grid_group as grid_group,
)

_P = _ParamSpec("_P")
_R = _TypeVar("_R")

# A signature of Numba.
class _Signature(_Protocol):
    @property
    def args(self) -> tuple[_Any, ...]: ...
    @property
    def return_type(self) -> _Any: ...

_SignatureLike: _TypeAlias = str | _Signature | list[_Any] | tuple[_Any, ...] | None

class _LaunchNeedsGridAndBlock: ...
class _OfNoFunction: ...

# How a dispatcher is called: not at all if its function returns nothing, and so is a kernel. The first overload is for
# functions of which a type checker does not know what they return.
class _Call:
    @_overload
    def __get__(self, dispatcher: _Dispatcher[_P, _OfNoFunction], owner: _Any) -> _Any: ...
    @_overload
    def __get__(self, dispatcher: _Dispatcher[_P, None], owner: _Any) -> _LaunchNeedsGridAndBlock: ...
    @_overload
    def __get__(self, dispatcher: _Dispatcher[_P, _R], owner: _Any) -> _Callable[_P, _R]: ...

# A kernel, or a function that kernels call, with the parameters of its Python function and what that returns.
class _Dispatcher(_Generic[_P, _R]):
    __name__: str
    __wrapped__: _Callable[_P, _R]
    __call__: _Call
    py_func: _Callable[_P, _R]
    targetoptions: dict[str, _Any]
    overloads: dict[tuple[_Any, ...], _Any]
    specializations: dict[tuple[_Any, ...], _Any]
    targetctx: _Any
    targetdescr: _Any
    typingctx: _Any
    def __getitem__(self, configuration: _ConfigurationLike) -> _Callable[_P, None]:
        """Return the launch with a grid, a block, and a stream and bytes of shared memory if they are given."""

    def configure(
        self, griddim: _Size, blockdim: _Size, stream: _StreamLike = 0, sharedmem: int = 0
    ) -> _Callable[_P, None]:
        """Return the launch with these: what ``kernel[griddim, blockdim, stream, sharedmem]`` is."""

    def forall(self, ntasks: int, tpb: int = 0, stream: _StreamLike = 0, sharedmem: int = 0) -> _Callable[_P, None]:
        """Return the launch of one thread for each task, in blocks of *tpb* threads, by default of a fitting size."""

    def specialize(self, *args: _Any) -> _Dispatcher[_P, _R]:
        """Return the kernel for the types of *args* alone."""

    @property
    def specialized(self) -> _bool: ...
    @property
    def signatures(self) -> list[_Any]: ...
    @property
    def nopython_signatures(self) -> list[_Any]: ...
    @property
    def extensions(self) -> list[_Any]: ...
    @property
    def is_compiling(self) -> _bool: ...
    @property
    def stats(self) -> _Any: ...
    def compile(self, sig: _Any) -> _Any: ...
    def compile_device(self, args: _Any, return_type: _Any = None) -> _Any: ...
    def recompile(self) -> None: ...
    def call(self, args: _Any, launch_config: _Any) -> _Any: ...
    def disable_compile(self, val: _bool = True) -> None: ...
    def dump(self, tab: str = "") -> None: ...
    def enable_caching(self) -> None: ...
    def add_overload(self, kernel: _Any, argtypes: _Any) -> None: ...
    def fold_argument_types(self, args: _Any, kws: _Any) -> _Any: ...
    def typeof_pyval(self, val: _Any) -> _Any: ...
    def get_annotation_info(self, signature: _Any = None) -> _Any: ...
    def get_call_template(self, args: _Any, kws: _Any) -> _Any: ...
    def get_compile_result(self, sig: _Any) -> _Any: ...
    def get_function_type(self) -> _Any: ...
    def get_metadata(self, signature: _Any = None) -> _Any: ...
    def get_overload(self, sig: _Any) -> _Any: ...
    # Of one signature, or of all in a dict.
    def get_const_mem_size(self, signature: _Any = None) -> _Any: ...
    def get_local_mem_per_thread(self, signature: _Any = None) -> _Any: ...
    def get_max_threads_per_block(self, signature: _Any = None) -> _Any: ...
    def get_regs_per_thread(self, signature: _Any = None) -> _Any: ...
    def get_shared_mem_per_block(self, signature: _Any = None) -> _Any: ...
    def inspect_asm(self, signature: _Any = None) -> _Any: ...
    def inspect_cfg(self, signature: _Any = None, show_wrapper: _Any = None, **kwargs: _Any) -> _Any: ...
    def inspect_disasm_cfg(self, signature: _Any = None) -> _Any: ...
    def inspect_llvm(self, signature: _Any = None) -> _Any: ...
    def inspect_lto_ptx(self, signature: _Any = None) -> _Any: ...
    def inspect_sass(self, signature: _Any = None) -> _Any: ...
    def inspect_sass_cfg(self, signature: _Any = None) -> _Any: ...
    def inspect_types(self, file: _Any = None) -> _Any: ...

# With device=True, also a function that returns nothing is called.
class _DeviceFunction(_Dispatcher[_P, _R]):
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

class _JitOptions(_TypedDict, total=False):
    link: _Any
    debug: _bool | None
    opt: _bool | None
    lineinfo: _bool
    inline: _Any
    forceinline: _bool
    fastmath: _bool
    extensions: _Any
    max_registers: int | None
    lto: _bool | None
    launch_bounds: _Any
    shared_memory_carveout: _Any
    cache: _bool

# Options that stand in a dict, jit(**options), are no first argument.
@_overload
def jit(
    func_or_sig: _Callable[_P, _R], /, device: _Literal[False] = False, **options: _Unpack[_JitOptions]
) -> _Dispatcher[_P, _R]: ...
@_overload
def jit(
    func_or_sig: _Callable[_P, _R], /, device: _bool = False, **options: _Unpack[_JitOptions]
) -> _DeviceFunction[_P, _R]: ...
@_overload
def jit(
    func_or_sig: _SignatureLike = None, /, device: _Literal[False] = False, **options: _Unpack[_JitOptions]
) -> _Callable[[_Callable[_P, _R]], _Dispatcher[_P, _R]]: ...
@_overload
def jit(
    func_or_sig: _SignatureLike = None, /, device: _bool = False, **options: _Unpack[_JitOptions]
) -> _Callable[[_Callable[_P, _R]], _DeviceFunction[_P, _R]]: ...

# An array on the device. Kernels take it as they take one of NumPy.
class _DeviceArray(_DeviceNDArray, _ndarray[_Any, _Any]):
    @_overload  # type: ignore[override]
    def __getitem__(self, item: _SupportsIndex | tuple[_SupportsIndex, ...], /) -> _Any: ...
    @_overload
    def __getitem__(self, item: _Any, /) -> _DeviceArray: ...
    @property
    def T(self) -> _DeviceArray: ...
    def transpose(self, axes: _Any = None) -> _DeviceArray: ...  # type: ignore[override]
    def reshape(self, *newshape: _Any, **kws: _Any) -> _DeviceArray: ...  # type: ignore[override]
    def ravel(self, order: str = "C", stream: _StreamLike = 0) -> _DeviceArray: ...  # type: ignore[override]
    def squeeze(self, axis: _Any = None, stream: _StreamLike = 0) -> _DeviceArray: ...  # type: ignore[override]
    def view(self, dtype: _Any) -> _DeviceArray: ...  # type: ignore[override]

def to_device(obj: _Any, stream: _StreamLike = 0, copy: _bool = True, to: _Any = None) -> _DeviceArray: ...
def device_array(
    shape: _Any, dtype: _Any = ..., strides: _Any = None, order: str = "C", stream: _StreamLike = 0
) -> _DeviceArray: ...
def device_array_like(ary: _Any, stream: _StreamLike = 0) -> _DeviceArray: ...
def as_cuda_array(obj: _Any, sync: _bool = True) -> _DeviceArray: ...
def from_cuda_array_interface(desc: _Any, owner: _Any = None, sync: _bool = True) -> _DeviceArray: ...

# A device of gpus. It has the attributes of numba-cuda's device.
class _Gpu:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: _Any) -> None: ...
    def __getattr__(self, name: str) -> _Any: ...

class _Gpus:
    @property
    def lst(self) -> list[_Gpu]: ...
    @property
    def current(self) -> _Gpu | None: ...
    @_overload
    def __getitem__(self, devnum: _SupportsIndex, /) -> _Gpu: ...
    @_overload
    def __getitem__(self, devnum: slice, /) -> list[_Gpu]: ...
    def __iter__(self) -> _Iterator[_Gpu]: ...
    def __len__(self) -> int: ...

gpus: _Gpus

class Reduce:
    """A reduction on the device, by a function of two values."""

    def __init__(self, functor: _Callable[[_Any, _Any], _Any]) -> None: ...
    def __call__(
        self, arr: _Any, size: int | None = None, res: _Any = None, init: _Any = 0, stream: _StreamLike = 0
    ) -> _Any:
        """Return what *arr* is reduced to, or write it to the first element of *res*."""

reduce = Reduce

# Loads with a cache hint.
def ldca(array: _Any, i: _Any) -> _Any: ...
def ldcg(array: _Any, i: _Any) -> _Any: ...
def ldcs(array: _Any, i: _Any) -> _Any: ...
def ldcv(array: _Any, i: _Any) -> _Any: ...
def ldlu(array: _Any, i: _Any) -> _Any: ...

class LinkableCode:
    def __init__(
        self,
        data: _Any,
        name: str | None = None,
        setup_callback: _Callable[[_Any], object] | None = None,
        teardown_callback: _Callable[[_Any], object] | None = None,
        nrt: _bool = False,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def data(self) -> _Any: ...

class LTOIR(LinkableCode): ...
class PTXSource(LinkableCode): ...
class CUSource(LinkableCode): ...
class Cubin(LinkableCode): ...
class Fatbin(LinkableCode): ...
class Object(LinkableCode): ...
class Archive(LinkableCode): ...

HAS_NUMBA: _bool
implementation: str
config_default_cc: tuple[int, int]
numba_cuda_default_ptx_cc: tuple[int, int]

# Vectors. A kernel makes them of numbers and of shorter vectors.
class _Vector1:
    x: _Any
    def __init__(self, *parts: _Any) -> None: ...

class _Vector2(_Vector1):
    y: _Any

class _Vector3(_Vector2):
    z: _Any

class _Vector4(_Vector3):
    w: _Any

int8x1: type[_Vector1]
int16x1: type[_Vector1]
int32x1: type[_Vector1]
int64x1: type[_Vector1]
uint8x1: type[_Vector1]
uint16x1: type[_Vector1]
uint32x1: type[_Vector1]
uint64x1: type[_Vector1]
float32x1: type[_Vector1]
float64x1: type[_Vector1]
char1: type[_Vector1]
short1: type[_Vector1]
int1: type[_Vector1]
long1: type[_Vector1]
longlong1: type[_Vector1]
uchar1: type[_Vector1]
ushort1: type[_Vector1]
uint1: type[_Vector1]
ulong1: type[_Vector1]
ulonglong1: type[_Vector1]
float1: type[_Vector1]
double1: type[_Vector1]
int8x2: type[_Vector2]
int16x2: type[_Vector2]
int32x2: type[_Vector2]
int64x2: type[_Vector2]
uint8x2: type[_Vector2]
uint16x2: type[_Vector2]
uint32x2: type[_Vector2]
uint64x2: type[_Vector2]
float32x2: type[_Vector2]
float64x2: type[_Vector2]
char2: type[_Vector2]
short2: type[_Vector2]
int2: type[_Vector2]
long2: type[_Vector2]
longlong2: type[_Vector2]
uchar2: type[_Vector2]
ushort2: type[_Vector2]
uint2: type[_Vector2]
ulong2: type[_Vector2]
ulonglong2: type[_Vector2]
float2: type[_Vector2]
double2: type[_Vector2]
int8x3: type[_Vector3]
int16x3: type[_Vector3]
int32x3: type[_Vector3]
int64x3: type[_Vector3]
uint8x3: type[_Vector3]
uint16x3: type[_Vector3]
uint32x3: type[_Vector3]
uint64x3: type[_Vector3]
float32x3: type[_Vector3]
float64x3: type[_Vector3]
char3: type[_Vector3]
short3: type[_Vector3]
int3: type[_Vector3]
long3: type[_Vector3]
longlong3: type[_Vector3]
uchar3: type[_Vector3]
ushort3: type[_Vector3]
uint3: type[_Vector3]
ulong3: type[_Vector3]
ulonglong3: type[_Vector3]
float3: type[_Vector3]
double3: type[_Vector3]
int8x4: type[_Vector4]
int16x4: type[_Vector4]
int32x4: type[_Vector4]
int64x4: type[_Vector4]
uint8x4: type[_Vector4]
uint16x4: type[_Vector4]
uint32x4: type[_Vector4]
uint64x4: type[_Vector4]
float32x4: type[_Vector4]
float64x4: type[_Vector4]
char4: type[_Vector4]
short4: type[_Vector4]
int4: type[_Vector4]
long4: type[_Vector4]
longlong4: type[_Vector4]
uchar4: type[_Vector4]
ushort4: type[_Vector4]
uint4: type[_Vector4]
ulong4: type[_Vector4]
ulonglong4: type[_Vector4]
float4: type[_Vector4]
double4: type[_Vector4]
