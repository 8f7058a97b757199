# SPDX-License-Identifier: BSD-2-Clause
# numba-cuda-mlir's own stub lacks most names of its cuda. Here, those of numba-cuda are what they are there, and all
# others are Any.
from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypedDict, overload

from typing_extensions import ParamSpec, TypeVar, Unpack

from numba.cuda import (
    LTOIR as LTOIR,
    Archive as Archive,
    BaseCUDAMemoryManager as BaseCUDAMemoryManager,
    Cubin as Cubin,
    CudaSupportError as CudaSupportError,
    CUSource as CUSource,
    Dim3 as Dim3,
    Fatbin as Fatbin,
    GetIpcHandleMixin as GetIpcHandleMixin,
    GridGroup as GridGroup,
    HostOnlyCUDAMemoryManager as HostOnlyCUDAMemoryManager,
    In as In,
    InOut as InOut,
    IpcHandle as IpcHandle,
    KernelRuntimeError as KernelRuntimeError,
    LinkableCode as LinkableCode,
    MappedMemory as MappedMemory,
    MemoryInfo as MemoryInfo,
    MemoryPointer as MemoryPointer,
    Object as Object,
    Out as Out,
    PinnedMemory as PinnedMemory,
    PTXSource as PTXSource,
    Reduce as Reduce,
    activemask as activemask,
    all_sync as all_sync,
    any_sync as any_sync,
    as_cuda_array as as_cuda_array,
    atomic as atomic,
    b1 as b1,
    ballot_sync as ballot_sync,
    bfloat16 as bfloat16,
    blockDim as blockDim,
    blockIdx as blockIdx,
    bool as bool,
    bool_ as bool_,
    boolean as boolean,
    brev as brev,
    byte as byte,
    c8 as c8,
    c16 as c16,
    cbrt as cbrt,
    cg as cg,
    char as char,
    close as close,
    clz as clz,
    compile as compile,
    compile_all as compile_all,
    compile_for_current_device as compile_for_current_device,
    compile_ptx as compile_ptx,
    compile_ptx_for_current_device as compile_ptx_for_current_device,
    complex64 as complex64,
    complex128 as complex128,
    config as config,
    const as const,
    cuda_error as cuda_error,
    current_context as current_context,
    declare_device as declare_device,
    default_stream as default_stream,
    defer_cleanup as defer_cleanup,
    deferred_type as deferred_type,
    detect as detect,
    device_array as device_array,
    device_array_like as device_array_like,
    dim3 as dim3,
    double as double,
    eq_sync as eq_sync,
    event as event,
    event_elapsed_time as event_elapsed_time,
    external_stream as external_stream,
    f4 as f4,
    f8 as f8,
    ffi as ffi,
    ffi_forced_object as ffi_forced_object,
    ffs as ffs,
    float32 as float32,
    float64 as float64,
    fma as fma,
    from_cuda_array_interface as from_cuda_array_interface,
    get_current_device as get_current_device,
    gpus as gpus,
    grid as grid,
    grid_group as grid_group,
    gridDim as gridDim,
    gridsize as gridsize,
    guvectorize as guvectorize,
    i1 as i1,
    i2 as i2,
    i4 as i4,
    i8 as i8,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    int_ as int_,
    intc as intc,
    intp as intp,
    is_available as is_available,
    is_bfloat16_supported as is_bfloat16_supported,
    is_cuda_array as is_cuda_array,
    is_float16_supported as is_float16_supported,
    is_fp8_supported as is_fp8_supported,
    is_supported_version as is_supported_version,
    laneid as laneid,
    lanemask_lt as lanemask_lt,
    ldca as ldca,
    ldcg as ldcg,
    ldcs as ldcs,
    ldcv as ldcv,
    ldlu as ldlu,
    legacy_default_stream as legacy_default_stream,
    libdevice as libdevice,
    list_devices as list_devices,
    literal_unroll as literal_unroll,
    local as local,
    long_ as long_,
    longlong as longlong,
    managed_array as managed_array,
    mapped as mapped,
    mapped_array as mapped_array,
    mapped_array_like as mapped_array_like,
    match_all_sync as match_all_sync,
    match_any_sync as match_any_sync,
    nanosleep as nanosleep,
    none as none,
    open_ipc_array as open_ipc_array,
    optional as optional,
    per_thread_default_stream as per_thread_default_stream,
    pinned as pinned,
    pinned_array as pinned_array,
    pinned_array_like as pinned_array_like,
    popc as popc,
    prepare_shape_strides_dtype as prepare_shape_strides_dtype,
    profile_start as profile_start,
    profile_stop as profile_stop,
    profiling as profiling,
    reduce as reduce,
    require_context as require_context,
    runtime as runtime,
    select_device as select_device,
    selp as selp,
    set_memory_manager as set_memory_manager,
    shared as shared,
    shfl_down_sync as shfl_down_sync,
    shfl_sync as shfl_sync,
    shfl_up_sync as shfl_up_sync,
    shfl_xor_sync as shfl_xor_sync,
    short as short,
    size_t as size_t,
    ssize_t as ssize_t,
    stcg as stcg,
    stcs as stcs,
    stream as stream,
    stwb as stwb,
    stwt as stwt,
    synchronize as synchronize,
    syncthreads as syncthreads,
    syncthreads_and as syncthreads_and,
    syncthreads_count as syncthreads_count,
    syncthreads_or as syncthreads_or,
    syncwarp as syncwarp,
    threadfence as threadfence,
    threadfence_block as threadfence_block,
    threadfence_system as threadfence_system,
    threadIdx as threadIdx,
    to_device as to_device,
    types as types,
    u1 as u1,
    u2 as u2,
    u4 as u4,
    u8 as u8,
    uchar as uchar,
    uint as uint,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    uintc as uintc,
    uintp as uintp,
    ulong as ulong,
    ulonglong as ulonglong,
    ushort as ushort,
    vectorize as vectorize,
    void as void,
    warpsize as warpsize,
)
from numba.cuda.core._stubs.arguments import _Signature
from numba.cuda.core._stubs.launches import Function, Signature
from numba.cuda.core._stubs.vectors import *  # noqa: F403
from numba.cuda.dispatcher import CUDADispatcher

_P = ParamSpec("_P", default=[Function])
_R = TypeVar("_R", default=Function)
_DecoratedP = ParamSpec("_DecoratedP")
_DecoratedR = TypeVar("_DecoratedR")
_Signatures: TypeAlias = str | _Signature | list[Any] | tuple[Any, ...] | Signature

class JitOptions(TypedDict, total=False):
    abi: str
    abi_info: dict[str, Any] | None
    annotations_as_signatures: bool
    cache: bool
    capi: bool | str
    cc: tuple[Any, ...] | None
    chip: str | None
    debug: bool
    device: bool
    dump: bool
    dump_ast: bool
    dump_ast_after_all: bool
    dump_cubin: bool
    dump_llvmir: bool
    dump_mlir: bool
    dump_numba_ir: bool
    dump_ptx: bool
    experimental_ast_transforms: bool
    extensions: list[Any] | None
    fast_math: bool | None
    fastmath: bool
    features: str
    forceinline: bool
    inline: Callable[..., Any] | bool | str
    launch_bounds: int | tuple[Any, ...] | None
    lineinfo: bool
    link: list[Any]
    lto: bool | None
    max_registers: int
    no_cpython_wrapper: bool
    nopython: bool
    opt: bool | int | None
    opt_level: int
    print_after_all: bool
    print_before_all: bool
    profile_jit: bool | str
    ptxas_options: str
    shared_memory_carveout: int | str | None
    signature: list[Any] | str | tuple[Any, ...]

# Without a function, what jit returns is called with one.
class _Call:
    @overload
    def __get__(
        self, dispatcher: MLIRDispatcher[[Function], Function], owner: Any
    ) -> Callable[[Callable[_DecoratedP, _DecoratedR]], MLIRDispatcher[_DecoratedP, _DecoratedR]]: ...
    @overload
    def __get__(
        self, dispatcher: MLIRDispatcher[_DecoratedP, _DecoratedR], owner: Any
    ) -> Callable[_DecoratedP, _DecoratedR]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class MLIRDispatcher(CUDADispatcher[_P, _R], Generic[_P, _R]):
    __call__: _Call  # type: ignore[assignment]

    def inspect_mlir(self, signature: Any = None) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

def jit(
    func_or_sig: Callable[_P, _R] | _Signatures | None = None, /, **options: Unpack[JitOptions]
) -> MLIRDispatcher[_P, _R]: ...
def __getattr__(name: str) -> Any: ...
