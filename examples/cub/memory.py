# SPDX-License-Identifier: BSD-2-Clause
# mypy: disable-error-code=no-redef
"""Load a tile of an array into the threads of a block, and store it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cuda import autolink, types

from . import arguments
from .primitive import Primitive, items_per_thread, kernel_method, one_of

_ALGORITHMS = ("direct", "striped", "vectorize", "transpose", "warp_transpose", "warp_transpose_timesliced")
_WITHOUT_STORAGE = ("direct", "striped", "vectorize")


class _Tiles(Primitive):
    """The implementation of both classes."""

    _prefix: str
    _before: Any
    _after: Any

    def __init__(self, block, items_per_thread=1, algorithm="direct"):
        super().__init__(block)
        self.items_per_thread = _count(items_per_thread)
        self.algorithm = one_of("algorithm", algorithm, _ALGORITHMS)
        self.tile = self.threads * self.items_per_thread
        if algorithm.startswith("warp_") and self.threads % 32:
            raise ValueError(f"block: got {self.threads} threads, expected a multiple of 32 for {algorithm}")

    def _transfer(self, name, cub_class, pointers, dtype, offset, valid, default, body):
        """Return the `Function` whose *body* makes the call, with ``{guard}`` for the arguments after the items."""
        T = autolink.cxx_type(dtype)
        x, y, z = self.block_dim
        args = {**{name: None for name in pointers}, "offset": types.int64}
        parameters = [*pointers.values(), "long long offset"]
        arguments.integer("offset", offset)
        guard = tags = ""
        if arguments.given(valid):
            arguments.integer("valid", valid)
            args["valid"] = types.int64
            parameters.append("long long valid")
            guard, tags = ", int(valid < 0 ? 0 : valid)", "valid"
        if arguments.given(default):
            if not guard:
                raise TypeError(f"default: got {default} without valid, expected both: it is for what is not valid")
            args["default"] = dtype
            parameters.append(f"{T} otherwise")
            guard, tags = f"{guard}, otherwise", "default"
        storage = None if self.algorithm in _WITHOUT_STORAGE else "block"
        full, guarded = body.format(guard=""), body.format(guard=guard)
        return self.function(
            name,
            f"cub::{cub_class}<{T}, {x}, {self.items_per_thread}, {self._prefix}_{self.algorithm.upper()}, {y}, {z}>",
            parameters,
            f"""
            {"Storage storage;" if storage is None else "Storage& storage = block_storage<Storage>();"}
            {self._before(T)}
            {f"if (valid < {self.tile}) {{ {guarded} }} else {{ {full} }}" if guard else full}
            {self._after()}
            """,
            args=args,
            storage=storage,
            tags=(dtype, tags),
        )

    def _places(self):
        """Return the positions in the tile of each thread's items, in the simulator."""
        places = np.arange(self.tile)
        striped = self.algorithm == "striped"
        return places.reshape(self.items_per_thread, -1).T if striped else places.reshape(-1, self.items_per_thread)

    def _own(self, offset, length, valid):
        """Return the positions in the array of this thread's valid items, and which are valid, in the simulator."""
        rank, _ = self.meet(None)
        places = self._places()[rank]
        inside = places < (self.tile if valid is None else valid)
        if offset < 0 or (inside.any() and offset + places[inside].max() >= length):
            last = offset + (self.tile if valid is None else min(valid, self.tile))
            raise IndexError(f"got an array of {length} items, expected at least {last}: offset {offset} and the tile")
        return offset + places[inside], inside


class BlockLoad(_Tiles):
    """``load.load(source, items)``: load a tile of an array in global memory into the threads of a block.

    ``load(source, items, offset=0, valid=None, default=None)`` gives each thread `items_per_thread` items of the tile
    that begins at element ``offset`` of ``source``. ``items`` is an array in local memory. With ``valid``, only the
    first ``valid`` elements of the tile are read; the other items are ``default``, or undefined if it is not given. All
    threads of the block must make the call, with the same arguments.

    Parameters
    ----------
    block : int or tuple of int
        The shape of the block.
    items_per_thread : int, optional
    algorithm : str, optional
        - "direct": each thread reads its items, which are consecutive.
        - "striped": item ``i`` of a thread is the tile's item ``i * threads + thread``.
        - "vectorize": like "direct", but reads up to 4 items at a time; the tile must have the alignment of that many.
        - "transpose", "warp_transpose", "warp_transpose_timesliced": like "direct", but neighbouring threads read
          neighbouring elements and exchange them in shared memory.

    Attributes
    ----------
    tile : int
        The number of items of a block.
    """

    header = "cub/block/block_load.cuh"
    _prefix = "cub::BLOCK_LOAD"

    @kernel_method
    def load(self, source, items, offset=0, valid=None, default=None):
        dtype = arguments.items("items", items, self.items_per_thread, written=True)
        arguments.memory("source", source, dtype)
        T = autolink.cxx_type(dtype)
        pointers = {"source": f"const {T}* source", "items": f"{T}* items_"}
        call = "Primitive(storage).Load(source + offset, loaded.values{guard});"
        return self._transfer("load", "BlockLoad", pointers, dtype, offset, valid, default, call)

    def _before(self, T):
        return f"items<{T}, {self.items_per_thread}> loaded;"

    def _after(self):
        return "loaded.copy_to(items_);"

    @load.python
    def _(self, source, items, offset=0, valid=None, default=None):
        arguments.check_length("items", items, self.items_per_thread)
        flat = source.reshape(-1)
        places, inside = self._own(offset, flat.size, valid)
        if default is not None:
            items[:] = default
        for i, place in zip(np.flatnonzero(inside), places, strict=True):
            items[i] = flat[place]


class BlockStore(_Tiles):
    """``store.store(target, items)``: store the items of a block's threads as a tile of an array in global memory.

    ``store(target, items, offset=0, valid=None)``, the parameters and the attributes are those of `BlockLoad`. With
    ``valid``, only the first ``valid`` elements of the tile are written.
    """

    header = "cub/block/block_store.cuh"
    _prefix = "cub::BLOCK_STORE"

    @kernel_method
    def store(self, target, items, offset=0, valid=None):
        dtype = arguments.items("items", items, self.items_per_thread)
        arguments.memory("target", target, dtype, written=True)
        T = autolink.cxx_type(dtype)
        pointers = {"target": f"{T}* target", "items": f"const {T}* items_"}
        call = "Primitive(storage).Store(target + offset, stored.values{guard});"
        return self._transfer("store", "BlockStore", pointers, dtype, offset, valid, None, call)

    def _before(self, T):
        return f"items<{T}, {self.items_per_thread}> stored(items_);"

    def _after(self):
        return ""

    @store.python
    def _(self, target, items, offset=0, valid=None):
        arguments.check_length("items", items, self.items_per_thread)
        flat = target.reshape(-1)
        places, inside = self._own(offset, flat.size, valid)
        for i, place in zip(np.flatnonzero(inside), places, strict=True):
            flat[place] = items[i]


# The function has the name of a parameter.
_count = items_per_thread
