# SPDX-License-Identifier: BSD-2-Clause
# Kernels call these.
from typing import Any, Literal, TypeAlias, overload

from typing_extensions import deprecated

from numba.cuda.core._stubs.arguments import _Integer

_NoDimensions: TypeAlias = Literal[-1, 0, 4, 5]

# What such a number of dimensions gives. The name of the class is in messages.
class _DimensionsAre1To3: ...

@overload
def grid(ndim: Literal[1], /) -> int:
    """Return the position of this thread in the grid: in *ndim* dimensions, a constant, 1, 2 or 3."""

@overload
def grid(ndim: Literal[2], /) -> tuple[int, int]: ...
@overload
def grid(ndim: Literal[3], /) -> tuple[int, int, int]: ...
@overload
@deprecated("the number of dimensions is 1, 2 or 3")
def grid(ndim: _NoDimensions, /) -> _DimensionsAre1To3: ...
@overload
def grid(ndim: int, /) -> Any: ...
@overload
def gridsize(ndim: Literal[1], /) -> int:
    """Return the size of the grid in threads: in *ndim* dimensions, a constant, 1, 2 or 3."""

@overload
def gridsize(ndim: Literal[2], /) -> tuple[int, int]: ...
@overload
def gridsize(ndim: Literal[3], /) -> tuple[int, int, int]: ...
@overload
@deprecated("the number of dimensions is 1, 2 or 3")
def gridsize(ndim: _NoDimensions, /) -> _DimensionsAre1To3: ...
@overload
def gridsize(ndim: int, /) -> Any: ...
def syncthreads() -> None:
    """Wait for all threads of the block, and see what they wrote to memory."""

def syncthreads_count(predicate: Any, /) -> int:
    """Wait for all threads of the block. Return for how many of them *predicate* is true."""

def syncthreads_and(predicate: Any, /) -> int:
    """Wait for all threads of the block. Return 1 if *predicate* is true for all of them, otherwise 0."""

def syncthreads_or(predicate: Any, /) -> int:
    """Wait for all threads of the block. Return 1 if *predicate* is true for any of them, otherwise 0."""

def shfl_sync(mask: _Integer, value: Any, src_lane: _Integer, /) -> Any:
    """Return *value* as the lane *src_lane* of the warp has it."""

def shfl_up_sync(mask: _Integer, value: Any, delta: _Integer, /) -> Any:
    """Return *value* as the lane that is *delta* before that of this thread has it."""

def shfl_down_sync(mask: _Integer, value: Any, delta: _Integer, /) -> Any:
    """Return *value* as the lane that is *delta* after that of this thread has it."""

def shfl_xor_sync(mask: _Integer, value: Any, lane_mask: _Integer, /) -> Any:
    """Return *value* as the lane has it whose number is that of this thread's xor *lane_mask*."""

def all_sync(mask: _Integer, predicate: Any, /) -> bool:
    """Return whether *predicate* is true for all threads in *mask*."""

def any_sync(mask: _Integer, predicate: Any, /) -> bool:
    """Return whether *predicate* is true for any thread in *mask*."""

def eq_sync(mask: _Integer, predicate: Any, /) -> bool:
    """Return whether *predicate* is the same for all threads in *mask*."""

def ballot_sync(mask: _Integer, predicate: Any, /) -> int:
    """Return the mask of the threads in *mask* for which *predicate* is true."""
