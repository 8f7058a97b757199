# SPDX-License-Identifier: BSD-2-Clause
# All names are listed: mypy does not look into the code of numba-cuda.
from builtins import bool as _bool  # numba.cuda has a type of this name

from numba.core.types import *  # noqa: F403
from numba.cuda.api_util import prepare_shape_strides_dtype as prepare_shape_strides_dtype
from numba.cuda.misc import literal as literal

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
from numba.cuda._vectors import *  # noqa: F403
from numba.cuda.api import (
    as_cuda_array as as_cuda_array,
    close as close,
    current_context as current_context,
    default_stream as default_stream,
    defer_cleanup as defer_cleanup,
    detect as detect,
    device_array as device_array,
    device_array_like as device_array_like,
    event as event,
    event_elapsed_time as event_elapsed_time,
    external_stream as external_stream,
    from_cuda_array_interface as from_cuda_array_interface,
    get_current_device as get_current_device,
    is_bfloat16_supported as is_bfloat16_supported,
    is_cuda_array as is_cuda_array,
    is_float16_supported as is_float16_supported,
    is_fp8_supported as is_fp8_supported,
    legacy_default_stream as legacy_default_stream,
    list_devices as list_devices,
    managed_array as managed_array,
    mapped as mapped,
    mapped_array as mapped_array,
    mapped_array_like as mapped_array_like,
    open_ipc_array as open_ipc_array,
    per_thread_default_stream as per_thread_default_stream,
    pinned as pinned,
    pinned_array as pinned_array,
    pinned_array_like as pinned_array_like,
    select_device as select_device,
    stream as stream,
    synchronize as synchronize,
    to_device as to_device,
)
from numba.cuda.args import In as In, InOut as InOut, Out as Out
from numba.cuda.cache_hints import (
    ldca as ldca,
    ldcg as ldcg,
    ldcs as ldcs,
    ldcv as ldcv,
    ldlu as ldlu,
    stcg as stcg,
    stcs as stcs,
    stwb as stwb,
    stwt as stwt,
)
from numba.cuda.compiler import (
    compile as compile,
    compile_all as compile_all,
    compile_for_current_device as compile_for_current_device,
    compile_ptx as compile_ptx,
    compile_ptx_for_current_device as compile_ptx_for_current_device,
)
from numba.cuda.core import config as config
from numba.cuda.cudadrv import (
    devicearray as devicearray,
    devices as devices,
    driver as driver,
    nvvm as nvvm,
)
from numba.cuda.cudadrv.devices import (
    gpus as gpus,
)
from numba.cuda.cudadrv.driver import (
    MemoryInfo as MemoryInfo,
    profile_start as profile_start,
    profile_stop as profile_stop,
    profiling as profiling,
)
from numba.cuda.cudadrv.linkable_code import (
    LTOIR as LTOIR,
    Archive as Archive,
    Cubin as Cubin,
    CUSource as CUSource,
    Fatbin as Fatbin,
    LinkableCode as LinkableCode,
    Object as Object,
    PTXSource as PTXSource,
)
from numba.cuda.decorators import (
    declare_device as declare_device,
    jit as jit,
)
from numba.cuda.device_init import (
    BaseCUDAMemoryManager as BaseCUDAMemoryManager,
    CudaSupportError as CudaSupportError,
    GetIpcHandleMixin as GetIpcHandleMixin,
    HostOnlyCUDAMemoryManager as HostOnlyCUDAMemoryManager,
    IpcHandle as IpcHandle,
    KernelRuntimeError as KernelRuntimeError,
    MappedMemory as MappedMemory,
    MemoryPointer as MemoryPointer,
    PinnedMemory as PinnedMemory,
    cuda_error as cuda_error,
    is_available as is_available,
    is_supported_version as is_supported_version,
    literal_unroll as literal_unroll,
    require_context as require_context,
    runtime as runtime,
    set_memory_manager as set_memory_manager,
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
from numba.cuda.kernels import reduction as reduction
from numba.cuda.kernels.reduction import (
    Reduce as Reduce,
)
from numba.cuda.np.ufunc import (
    guvectorize as guvectorize,
    vectorize as vectorize,
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

reduce = Reduce
HAS_NUMBA: _bool
implementation: str
config_default_cc: tuple[int, int]
numba_cuda_default_ptx_cc: tuple[int, int]
