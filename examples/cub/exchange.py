# SPDX-License-Identifier: BSD-2-Clause
# mypy: disable-error-code=no-redef
"""Exchange items between the threads of a block or of a warp."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cuda import autolink

from . import arguments
from .primitive import Primitive, flag, items_per_thread, kernel_method, threads_in_warp


class _Exchange(Primitive):
    """The methods of both classes, and their implementation."""

    items_per_thread: int
    _call: Any
    _cub_class: Any
    _storage: Any

    @kernel_method
    def striped_to_blocked(self, items, out=None):
        return self._exchange("StripedToBlocked", items, out)

    @striped_to_blocked.python
    def _(self, items, out=None):
        self._simulated(items, out, self._striped(), self._blocked())

    @kernel_method
    def blocked_to_striped(self, items, out=None):
        return self._exchange("BlockedToStriped", items, out)

    @blocked_to_striped.python
    def _(self, items, out=None):
        self._simulated(items, out, self._blocked(), self._striped())

    @kernel_method
    def scatter_to_striped(self, items, ranks, out=None):
        return self._exchange("ScatterToStriped", items, out, ranks)

    @scatter_to_striped.python
    def _(self, items, ranks, out=None):
        self._simulated(items, out, None, self._striped(), ranks)

    def _exchange(self, method, items, out, ranks=None):
        count = self.items_per_thread
        in_place = not arguments.given(out)
        dtype = arguments.items("items", items, count, written=in_place)
        if not in_place:
            arguments.same("out", arguments.items("out", out, count, written=True), dtype, "items")
        T = autolink.cxx_type(dtype)
        parameters, args = [f"{'' if in_place else 'const '}{T}* items_"], {"items": None}
        before = after = ""
        tags = [dtype]
        if ranks is not None:
            of_ranks = arguments.items("ranks", ranks, count, arguments.INTEGERS)
            parameters.append(f"const {autolink.cxx_type(of_ranks)}* ranks")
            args["ranks"] = None
            before = f"items<int, {count}> to;\nfor (int i = 0; i < {count}; ++i) to.values[i] = int(ranks[i]);"
            after = ", to.values"
            tags.append(of_ranks)
        if not in_place:
            parameters.append(f"{T}* out")
            args["out"] = None
            tags.append("out")
        return self.function(
            method,
            self._cub_class(T),
            parameters,
            f"""
            items<{T}, {count}> in(items_);
            items<{T}, {count}> moved;
            {before}
            {self._call(method, T, after)}
            moved.copy_to({"items_" if in_place else "out"});
            """,
            args=args,
            storage=self._storage,
            tags=tags,
        )

    def _members(self):
        return vars(self).get("threads_in_warp", self.threads)

    def _blocked(self):
        """Return the position among all items of each thread's items."""
        return np.arange(self._members() * self.items_per_thread).reshape(-1, self.items_per_thread)

    def _striped(self):
        return np.arange(self._members() * self.items_per_thread).reshape(self.items_per_thread, -1).T

    def _warp_striped(self):
        members = self._members()
        places = np.empty((members, self.items_per_thread), int)
        for first in range(0, members, 32):
            size = min(32, members - first)
            of_warp = np.arange(size * self.items_per_thread).reshape(self.items_per_thread, size).T
            places[first : first + size] = first * self.items_per_thread + of_warp
        return places

    def _simulated(self, items, out, source, destination, ranks=None):
        target = items if out is None else out
        arguments.check_length("items", items, self.items_per_thread)
        arguments.check_length("out", target, self.items_per_thread)
        if ranks is not None:
            arguments.check_length("ranks", ranks, self.items_per_thread)
        rank, all_given = self.meet((np.array(items), None if ranks is None else np.array(ranks)))
        values = np.array([own for own, _ in all_given])
        if ranks is not None:
            source = np.array([own for _, own in all_given])
        whole = np.empty(values.size, values.dtype)
        whole[source] = values
        target[:] = whole[destination[rank]]


class BlockExchange(_Exchange):
    """``exchange.striped_to_blocked(items)``: rearrange the items of a block among its threads.

    In a blocked arrangement a thread has `items_per_thread` consecutive items. In a striped arrangement, item ``i`` of
    a thread is the block's item ``i * threads + thread``. A warp-striped arrangement is striped within the items of
    each warp. The result is written into ``out``, or in place if ``out`` is not given. All threads of the block must
    make the call.

    - ``striped_to_blocked(items, out=None)``, ``blocked_to_striped(items, out=None)``
    - ``warp_striped_to_blocked(items, out=None)``, ``blocked_to_warp_striped(items, out=None)``
    - ``scatter_to_blocked(items, ranks, out=None)``, ``scatter_to_striped(items, ranks, out=None)``: ``ranks`` are
      integers, the position of each item among those of the block. Each position must occur exactly once.

    Parameters
    ----------
    block : int or tuple of int
        The shape of the block.
    items_per_thread : int, optional
    warp_time_slicing : bool, optional
        Let all warps use the shared memory of one warp in turn.
    """

    header = "cub/block/block_exchange.cuh"
    _storage = "block"

    def __init__(self, block, items_per_thread=1, warp_time_slicing=False):
        super().__init__(block)
        self.items_per_thread = _count(items_per_thread)
        self.warp_time_slicing = flag("warp_time_slicing", warp_time_slicing)
        self.tile = self.threads * self.items_per_thread

    @kernel_method
    def warp_striped_to_blocked(self, items, out=None):
        return self._exchange("WarpStripedToBlocked", items, out)

    @warp_striped_to_blocked.python
    def _(self, items, out=None):
        self._simulated(items, out, self._warp_striped(), self._blocked())

    @kernel_method
    def blocked_to_warp_striped(self, items, out=None):
        return self._exchange("BlockedToWarpStriped", items, out)

    @blocked_to_warp_striped.python
    def _(self, items, out=None):
        self._simulated(items, out, self._blocked(), self._warp_striped())

    @kernel_method
    def scatter_to_blocked(self, items, ranks, out=None):
        return self._exchange("ScatterToBlocked", items, out, ranks)

    @scatter_to_blocked.python
    def _(self, items, ranks, out=None):
        self._simulated(items, out, None, self._blocked(), ranks)

    def _cub_class(self, T):
        x, y, z = self.block_dim
        slicing = str(self.warp_time_slicing).lower()
        return f"cub::BlockExchange<{T}, {x}, {self.items_per_thread}, {slicing}, {y}, {z}>"

    def _call(self, method, T, ranks):
        return f"Primitive(block_storage<Storage>()).{method}(in.values, moved.values{ranks});"


class WarpExchange(_Exchange):
    """``exchange.striped_to_blocked(items)``: rearrange the items of a logical warp among its threads.

    The methods are ``striped_to_blocked``, ``blocked_to_striped`` and ``scatter_to_striped`` of `BlockExchange`. All
    threads of the logical warp must make the call; other threads need not.

    Parameters
    ----------
    block : int or tuple of int
        The shape of the block, a multiple of `threads_in_warp`.
    threads_in_warp : 2, 4, 8, 16 or 32, optional
    items_per_thread : int, optional
    """

    header = "cub/warp/warp_exchange.cuh"

    def __init__(self, block, threads_in_warp=32, items_per_thread=1):
        super().__init__(block)
        self.threads_in_warp = _logical(threads_in_warp, self.threads)
        self.items_per_thread = _count(items_per_thread)
        self.tile = self.threads_in_warp * self.items_per_thread

    @property
    def _storage(self):
        return self.threads_in_warp

    def _cub_class(self, T):
        return f"cub::WarpExchange<{T}, {self.items_per_thread}, {self.threads_in_warp}>"

    def _call(self, method, T, ranks):
        place = f"warp_storage<Storage, {self.threads_in_warp}>(thread)"
        return f"Primitive({place}).{method}(in.values, moved.values{ranks});"


# The names are also those of parameters.
_count, _logical = items_per_thread, threads_in_warp
