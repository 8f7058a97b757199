# SPDX-License-Identifier: BSD-2-Clause
# mypy: disable-error-code=no-redef
"""Sort the items of a block or of a warp."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba.cuda import autolink, types

from . import arguments
from .arguments import REALS
from .operators import Operator, comparison_of, with_state
from .primitive import Primitive, items_per_thread, kernel_method, one_of, threads_in_warp


class _Sort(Primitive):
    """The implementation of all classes."""

    items_per_thread: int

    def _checked(self, keys, values):
        """Return the C++ types of a key and of a value, the parameters, the arguments and the dtypes."""
        count = self.items_per_thread
        dtype = arguments.items("keys", keys, count, REALS, written=True)
        K = autolink.cxx_type(dtype)
        if not arguments.given(values):
            return K, "cub::NullType", [f"{K}* keys"], {"keys": None}, (dtype,)
        of_values = arguments.items("values", values, count, written=True)
        V = autolink.cxx_type(of_values)
        return K, V, [f"{K}* keys", f"{V}* values"], {"keys": None, "values": None}, (dtype, of_values)

    def _body(self, K, V, place, method, more):
        count = self.items_per_thread
        if V == "cub::NullType":
            return f"""
                items<{K}, {count}> sorted(keys);
                Primitive({place}).{method}(sorted.values{more});
                sorted.copy_to(keys);"""
        return f"""
            items<{K}, {count}> sorted(keys);
            items<{V}, {count}> moved(values);
            Primitive({place}).{method}(sorted.values, moved.values{more});
            sorted.copy_to(keys);
            moved.copy_to(values);"""

    def _simulated(self, keys, values, descending, bits=None, striped=False, before=None):
        given = [np.array(array) for array in (keys, values) if array is not None]
        for name, array in zip(("keys", "values"), given, strict=False):
            arguments.check_length(name, array, self.items_per_thread)
        rank, all_given = self.meet(given)
        flat = np.concatenate([own[0] for own in all_given])
        ordered = flat if bits is None else _bits(flat, *bits)
        if before is not None:
            order = np.array(sorted(range(flat.size), key=functools.cmp_to_key(_comparing(flat, before))))
        elif descending:
            # This order is stable, too: equal keys stay in order.
            order = (flat.size - 1 - np.argsort(ordered[::-1], kind="stable"))[::-1]
        else:
            order = np.argsort(ordered, kind="stable")
        shape = (self.items_per_thread, -1) if striped else (-1, self.items_per_thread)
        arranged = order.reshape(shape)
        own = arranged[:, rank] if striped else arranged[rank]
        for index, target in enumerate((keys, values)):
            if target is not None:
                target[:] = np.concatenate([other[index] for other in all_given])[own]


def _comparing(keys, before):
    """Return a function that compares two places in *keys*, as `functools.cmp_to_key` needs it."""
    return lambda i, j: bool(before(keys[j], keys[i])) - bool(before(keys[i], keys[j]))


def _bits(keys, begin, end):
    """Return the bits from *begin* to *end* of unsigned integers that have the same order as *keys*."""
    size = 8 * keys.dtype.itemsize
    bits = keys.view(f"u{keys.dtype.itemsize}").astype(np.uint64)
    top = np.uint64(1) << np.uint64(size - 1)
    if keys.dtype.kind == "i":
        bits = bits ^ top
    elif keys.dtype.kind == "f":
        bits = np.where(bits == top, np.uint64(0), bits)  # -0.0 equals 0.0
        every = np.uint64((1 << size) - 1)
        bits = np.where(bits & top, bits ^ every, bits ^ top)
    begin, end = begin or 0, size if end is None else end
    return bits >> np.uint64(begin) & np.uint64((1 << (end - begin)) - 1)


class BlockRadixSort(_Sort):
    """``sort.sort(keys)`` sorts the items of a block in place; ``sort.sort(keys, values)`` sorts pairs by their keys.

    ``keys`` and ``values`` are arrays of `items_per_thread` numbers in each thread, in blocked arrangement: thread 0
    has the first of the block's items, before and after. The sort is stable. All threads of the block must make the
    call.

    - ``sort(keys, values=None, begin_bit=None, end_bit=None)``
    - ``sort_descending(...)``, with the same parameters
    - ``sort_blocked_to_striped(...)``, ``sort_descending_blocked_to_striped(...)``: the result is in striped
      arrangement, in which item ``i`` of a thread is the block's item ``i * threads + thread``.

    Only the bits from ``begin_bit`` to ``end_bit`` (exclusive) are compared. Fewer bits take less time.

    Parameters
    ----------
    block : int or tuple of int
        The shape of the block.
    items_per_thread : int, optional
    radix_bits : int, optional
        The number of bits that are sorted at a time, 1 to 8. CUB's default is 4.
    """

    header = "cub/block/block_radix_sort.cuh"

    def __init__(self, block, items_per_thread=1, radix_bits=4):
        super().__init__(block)
        self.items_per_thread = _count(items_per_thread)
        self.radix_bits = one_of("radix_bits", radix_bits, tuple(range(1, 9)))
        self.tile = self.threads * self.items_per_thread

    @kernel_method
    def sort(self, keys, values=None, begin_bit=None, end_bit=None):
        return self._sort("Sort", keys, values, begin_bit, end_bit)

    @sort.python
    def _(self, keys, values=None, begin_bit=None, end_bit=None):
        self._simulated(keys, values, False, (begin_bit, end_bit))

    @kernel_method
    def sort_descending(self, keys, values=None, begin_bit=None, end_bit=None):
        return self._sort("SortDescending", keys, values, begin_bit, end_bit)

    @sort_descending.python
    def _(self, keys, values=None, begin_bit=None, end_bit=None):
        self._simulated(keys, values, True, (begin_bit, end_bit))

    @kernel_method
    def sort_blocked_to_striped(self, keys, values=None, begin_bit=None, end_bit=None):
        return self._sort("SortBlockedToStriped", keys, values, begin_bit, end_bit)

    @sort_blocked_to_striped.python
    def _(self, keys, values=None, begin_bit=None, end_bit=None):
        self._simulated(keys, values, False, (begin_bit, end_bit), striped=True)

    @kernel_method
    def sort_descending_blocked_to_striped(self, keys, values=None, begin_bit=None, end_bit=None):
        return self._sort("SortDescendingBlockedToStriped", keys, values, begin_bit, end_bit)

    @sort_descending_blocked_to_striped.python
    def _(self, keys, values=None, begin_bit=None, end_bit=None):
        self._simulated(keys, values, True, (begin_bit, end_bit), striped=True)

    def _sort(self, method, keys, values, begin_bit, end_bit):
        K, V, parameters, args, dtypes = self._checked(keys, values)
        limits = {"begin_bit": begin_bit, "end_bit": end_bit}
        limited = [name for name in limits if arguments.given(limits[name])]
        for name in limited:
            arguments.integer(name, limits[name])
            parameters.append(f"int {name}")
            args[name] = types.int32
        begin = "begin_bit" if "begin_bit" in limited else "0"
        end = "end_bit" if "end_bit" in limited else f"int(sizeof({K}) * 8)"
        x, y, z = self.block_dim
        more = "true, cub::BLOCK_SCAN_WARP_SCANS, cudaSharedMemBankSizeFourByte"
        return self.function(
            method,
            f"cub::BlockRadixSort<{K}, {x}, {self.items_per_thread}, {V}, {self.radix_bits}, {more}, {y}, {z}>",
            parameters,
            self._body(K, V, "block_storage<Storage>()", method, f", {begin}, {end}"),
            args=args,
            storage="block",
            tags=(*dtypes, *limited),
        )


class _MergeSort(_Sort):
    """The methods of both sorts by comparison."""

    _cub_class: Any
    _place: Any
    _storage: Any

    @kernel_method
    def sort(self, keys, values=None, before=None, state=None):
        return self._sort("sort", keys, values, "less", before, state)

    @sort.python
    def _(self, keys, values=None, before=None, state=None):
        self._simulated(keys, values, False, before=with_state(before, state))

    @kernel_method
    def sort_descending(self, keys, values=None):
        return self._sort("sort_descending", keys, values, "greater")

    @sort_descending.python
    def _(self, keys, values=None):
        self._simulated(keys, values, True)

    def _sort(self, name, keys, values, order, before=None, state=None):
        K, V, parameters, args, dtypes = self._checked(keys, values)
        op = Operator("", f"autolink_cub::{order}{{}}")
        if arguments.given(before):
            op = comparison_of(before, dtypes[0], state)
        elif arguments.given(state):
            raise TypeError(f"state: got {state} without before, expected both")
        return self.function(
            name,
            self._cub_class(K, V),
            parameters,
            self._body(K, V, self._place(), "StableSort", f", {op.functor}"),
            args=args,
            storage=self._storage(),
            op=op,
            tags=(*dtypes, op.name),
        )


class BlockMergeSort(_MergeSort):
    """``sort.sort(keys)`` and ``sort.sort(keys, values)`` sort the items of a block by comparisons.

    Arrangement and order are those of `BlockRadixSort`. All threads of the block must make the call.

    - ``sort(keys, values=None, before=None, state=None)``: ``before`` is a device function of two keys, which returns
      whether the first comes before the second; the default is ``<``. It may have a third parameter, for which
      ``state`` is passed, as for `BlockReduce.reduce`.
    - ``sort_descending(keys, values=None)``

    Parameters
    ----------
    block : int or tuple of int
        The shape of the block, whose number of threads is a power of two.
    items_per_thread : int, optional
    """

    header = "cub/block/block_merge_sort.cuh"

    def __init__(self, block, items_per_thread=1):
        super().__init__(block)
        if self.threads & (self.threads - 1):
            raise ValueError(f"block: got {self.threads} threads, expected a power of two")
        self.items_per_thread = _count(items_per_thread)
        self.tile = self.threads * self.items_per_thread

    def _cub_class(self, K, V):
        x, y, z = self.block_dim
        return f"cub::BlockMergeSort<{K}, {x}, {self.items_per_thread}, {V}, {y}, {z}>"

    def _place(self):
        return "block_storage<Storage>()"

    def _storage(self):
        return "block"


class WarpMergeSort(_MergeSort):
    """``sort.sort(keys)`` and ``sort.sort(keys, values)`` sort the items of a logical warp.

    Arrangement and order are those of `BlockRadixSort`, the methods those of `BlockMergeSort`. All threads of the
    logical warp must make the call; other threads need not.

    Parameters
    ----------
    block : int or tuple of int
        The shape of the block, a multiple of `threads_in_warp`.
    threads_in_warp : 2, 4, 8, 16 or 32, optional
    items_per_thread : int, optional
    """

    header = "cub/warp/warp_merge_sort.cuh"

    def __init__(self, block, threads_in_warp=32, items_per_thread=1):
        super().__init__(block)
        self.threads_in_warp = _logical(threads_in_warp, self.threads)
        self.items_per_thread = _count(items_per_thread)
        self.tile = self.threads_in_warp * self.items_per_thread

    def _cub_class(self, K, V):
        return f"cub::WarpMergeSort<{K}, {self.items_per_thread}, {self.threads_in_warp}, {V}>"

    def _place(self):
        return f"warp_storage<Storage, {self.threads_in_warp}>(thread)"

    def _storage(self):
        return self.threads_in_warp


# The functions have the names of parameters.
_count, _logical = items_per_thread, threads_in_warp
