# SPDX-License-Identifier: BSD-2-Clause
# Kernels call these. Numbers and arrays in kernels are Any: their types are Numba's.
from typing import Any, SupportsIndex, TypeAlias, TypeVar

from numba_cuda.numba.cuda.stubs import Stub as Stub, stub_function as stub_function

from numba.cuda.core._stubs.arguments import _Integer

_Array = TypeVar("_Array")
_Shape: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...]

class Dim3:
    """An index or a size in three dimensions."""

    @property
    def x(self) -> int: ...
    @property
    def y(self) -> int: ...
    @property
    def z(self) -> int: ...

threadIdx: Dim3
"""The index of this thread in its block."""
blockIdx: Dim3
"""The index of this thread's block in the grid."""
blockDim: Dim3
"""The size of a block in threads."""
gridDim: Dim3
"""The size of the grid in blocks."""
warpsize: int
"""The number of threads in a warp: 32."""
laneid: int
"""The number of this thread in its warp."""

class shared:
    """Memory that the threads of a block share."""

    @staticmethod
    def array(shape: _Shape, dtype: Any, alignment: SupportsIndex | None = None) -> Any:
        """Return an array that the threads of a block share. *shape* is a constant, 0 for the launch's size."""

class local:
    """Memory of one thread."""

    @staticmethod
    def array(shape: _Shape, dtype: Any, alignment: SupportsIndex | None = None) -> Any:
        """Return an array of this thread alone. *shape* is a constant."""

class const:
    """Constant memory."""

    @staticmethod
    def array_like(ndarray: _Array) -> _Array:
        """Return an array in constant memory with the content of *ndarray*, which is a constant of the kernel."""

def syncwarp(mask: _Integer = 0xFFFFFFFF, /) -> None:
    """Wait for the threads of the warp that *mask* names, and see what they wrote to memory."""

def match_any_sync(mask: _Integer, value: Any, /) -> int:
    """Return the mask of the threads in *mask* whose *value* is that of this thread."""

def match_all_sync(mask: _Integer, value: Any, /) -> tuple[int, bool]:
    """Return the mask of the threads in *mask* and True if all have the same *value*; otherwise 0 and False."""

def activemask() -> int:
    """Return the mask of the threads of the warp that execute this call together."""

def lanemask_lt() -> int:
    """Return the mask of the lanes before that of this thread."""

def threadfence_block() -> None:
    """Order this thread's accesses to memory, as the threads of its block see them."""

def threadfence_system() -> None:
    """Order this thread's accesses to memory, as all devices and the host see them."""

def threadfence() -> None:
    """Order this thread's accesses to memory, as all threads of the device see them."""

def popc(x: Any, /) -> int:
    """Return the number of bits of *x* that are set."""

def brev(x: Any, /) -> Any:
    """Return *x* with its bits in reverse order."""

def clz(x: Any, /) -> int:
    """Return the number of zeros before the highest bit of *x* that is set."""

def ffs(x: Any, /) -> int:
    """Return the position of the lowest bit of *x* that is set, from 1; 0 if none is."""

def selp(a: Any, b: Any, c: Any, /) -> Any:
    """Return *b* if *a* is true, otherwise *c*."""

def fma(a: Any, b: Any, c: Any, /) -> Any:
    """Return ``a * b + c``, rounded once."""

def cbrt(a: Any, /) -> Any:
    """Return the cube root of *a*."""

def nanosleep(ns: _Integer, /) -> None:
    """Let the thread sleep for about *ns* nanoseconds."""

class atomic:
    """Operations that no other thread's access to the same element can be between."""

    @staticmethod
    def add(ary: Any, idx: Any, val: Any, /) -> Any:
        """Set ``ary[idx] += val`` in one step. Return the value before."""
    @staticmethod
    def sub(ary: Any, idx: Any, val: Any, /) -> Any:
        """Set ``ary[idx] -= val`` in one step. Return the value before."""
    @staticmethod
    def and_(ary: Any, idx: Any, val: Any, /) -> Any:
        """Set ``ary[idx] &= val`` in one step. Return the value before."""
    @staticmethod
    def or_(ary: Any, idx: Any, val: Any, /) -> Any:
        """Set ``ary[idx] |= val`` in one step. Return the value before."""
    @staticmethod
    def xor(ary: Any, idx: Any, val: Any, /) -> Any:
        """Set ``ary[idx] ^= val`` in one step. Return the value before."""
    @staticmethod
    def inc(ary: Any, idx: Any, val: Any, /) -> Any:
        """Add 1 to ``ary[idx]`` in one step, or set it to 0 if it is *val* or more. Return the value before."""
    @staticmethod
    def dec(ary: Any, idx: Any, val: Any, /) -> Any:
        """Subtract 1 from ``ary[idx]`` in one step, or set it to *val* if that is less. Return the value before."""
    @staticmethod
    def exch(ary: Any, idx: Any, val: Any, /) -> Any:
        """Set ``ary[idx] = val`` in one step. Return the value before."""
    @staticmethod
    def max(ary: Any, idx: Any, val: Any, /) -> Any:
        """Set ``ary[idx] = max(ary[idx], val)`` in one step. Return the value before."""
    @staticmethod
    def min(ary: Any, idx: Any, val: Any, /) -> Any:
        """Set ``ary[idx] = min(ary[idx], val)`` in one step. Return the value before."""
    @staticmethod
    def nanmax(ary: Any, idx: Any, val: Any, /) -> Any:
        """As `max`; a NaN is less than any number."""
    @staticmethod
    def nanmin(ary: Any, idx: Any, val: Any, /) -> Any:
        """As `min`; a NaN is more than any number."""
    @staticmethod
    def compare_and_swap(ary: Any, old: Any, val: Any, /) -> Any:
        """Set ``ary[0] = val`` in one step if it is *old*. Return the value before."""
    @staticmethod
    def cas(ary: Any, idx: Any, old: Any, val: Any, /) -> Any:
        """Set ``ary[idx] = val`` in one step if it is *old*. Return the value before."""
