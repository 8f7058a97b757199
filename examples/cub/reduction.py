# SPDX-License-Identifier: BSD-2-Clause
# mypy: disable-error-code=no-redef
"""Reduce values over the threads of a block or of a warp."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba.cuda import autolink, types

from . import arguments
from .combining import reduced
from .operators import known, operator_of, with_state
from .primitive import Primitive, flag, items_per_thread, kernel_method, one_of, threads_in_warp

_ALGORITHMS = ("warp_reductions", "raking", "raking_commutative_only")


class _Reduction(Primitive):
    """The methods of both classes."""

    items_per_thread: int
    broadcast: bool
    _body: Any
    _cub_class: Any
    _storage: Any

    @kernel_method
    def sum(self, x, valid=None):
        return self._reduction("sum", x, valid, lambda dtype: known(operator.add, dtype))

    @sum.python
    def _(self, x, valid=None):
        return self._simulated(x, operator.add, valid)

    @kernel_method
    def min(self, x, valid=None):
        return self._reduction("min", x, valid, lambda dtype: known(min, dtype))

    @min.python
    def _(self, x, valid=None):
        return self._simulated(x, min, valid)

    @kernel_method
    def max(self, x, valid=None):
        return self._reduction("max", x, valid, lambda dtype: known(max, dtype))

    @max.python
    def _(self, x, valid=None):
        return self._simulated(x, max, valid)

    @kernel_method
    def reduce(self, x, op, valid=None, state=None):
        return self._reduction("reduce", x, valid, lambda dtype: operator_of(op, dtype, state))

    @reduce.python
    def _(self, x, op, valid=None, state=None):
        return self._simulated(x, with_state(op, state), valid)

    def _reduction(self, name, x, valid, operator_for):
        count = self.items_per_thread
        several = arguments.is_array(x) or count > 1
        dtype = arguments.items("x", x, count) if several else arguments.number("x", x)
        op = operator_for(dtype)
        T = autolink.cxx_type(dtype)
        parameters = [f"const {T}* x" if several else f"{T} x"]
        args: dict[str, Any] = {"x": None}
        guard = ""
        if arguments.given(valid):
            if several:
                raise TypeError(f"valid: got {valid} with {x}, expected None: it is for threads with a number each")
            arguments.integer("valid", valid)
            parameters.append("int valid")
            args["valid"] = types.int32
            guard = ", valid"
        return self.function(
            name,
            self._cub_class(T),
            parameters,
            f"""
            const auto op = {op.functor};
            {f"items<{T}, {count}> in(x);" if several else ""}
            {self._body(T, "in.values" if several else "x", guard)}
            """,
            returns=dtype,
            args=args,
            storage=self._storage,
            op=op,
            tags=(dtype, "array" if several else "", "valid" if guard else "", op.name if name == "reduce" else ""),
        )

    def _simulated(self, x, op, valid):
        values = np.array(x)
        if values.ndim:
            arguments.check_length("x", values, self.items_per_thread)
        rank, all_values = self.meet(values)
        if rank != 0 and not self.broadcast:
            return values.dtype.type(0)
        return reduced(np.array(all_values[:valid]).ravel(), op)


class BlockReduce(_Reduction):
    """``total = reduce.sum(x)``: reduce the values of a block's threads to one value.

    ``x`` is a number, or an array (or tuple) of `items_per_thread` numbers. All threads of the block must make the
    call. Thread 0 gets the result. The result of the other threads is undefined, unless `broadcast` is set.

    - ``sum(x, valid=None)``, ``min(x, valid=None)``, ``max(x, valid=None)``
    - ``reduce(x, op, valid=None, state=None)``: ``op`` is `min`, `max`, ``operator.add``, ``mul``, ``and_``, ``or_`` or
      ``xor``, or a device function of two numbers. It must be associative. A device function may have a third
      parameter, for which ``state`` is passed: an array, a record, a tuple or a number.

    With ``valid``, only the values of the first ``valid`` threads are reduced, where ``valid`` is at least 1. Only
    calls with numbers accept it, not those with arrays.

    Parameters
    ----------
    block : int or tuple of int
        The shape of the block.
    items_per_thread : int, optional
    algorithm : "warp_reductions", "raking" or "raking_commutative_only", optional
    broadcast : bool, optional
        Give the result to all threads.
    """

    header = "cub/block/block_reduce.cuh"
    _storage = "block"

    def __init__(self, block, items_per_thread=1, algorithm="warp_reductions", broadcast=False):
        super().__init__(block)
        self.items_per_thread = _count(items_per_thread)
        self.algorithm = one_of("algorithm", algorithm, _ALGORITHMS)
        self.broadcast = flag("broadcast", broadcast)

    def _cub_class(self, T):
        x, y, z = self.block_dim
        return f"cub::BlockReduce<{T}, {x}, cub::BLOCK_REDUCE_{self.algorithm.upper()}, {y}, {z}>"

    def _body(self, T, x, guard):
        result = f"const {T} result = Primitive(block_storage<Storage>()).Reduce({x}, op{guard});\n"
        return result + ("return from_first_thread(result, thread);" if self.broadcast else "return result;")


class WarpReduce(_Reduction):
    """``total = reduce.sum(x)``: reduce the values of a logical warp's threads to one value.

    The methods are those of `BlockReduce`; ``valid`` counts threads of the warp. All threads of the logical warp make
    the call, others need not. The first of them gets the result; what the others get is undefined, unless `broadcast`
    is set.

    Parameters
    ----------
    block : int or tuple of int
        The shape of the block, a multiple of `threads_in_warp`.
    threads_in_warp : 2, 4, 8, 16 or 32, optional
    items_per_thread : int, optional
    broadcast : bool, optional
        Give the result to all threads of the logical warp.
    """

    header = "cub/warp/warp_reduce.cuh"
    _storage = None

    def __init__(self, block, threads_in_warp=32, items_per_thread=1, broadcast=False):
        super().__init__(block)
        self.threads_in_warp = _logical(threads_in_warp, self.threads)
        self.items_per_thread = _count(items_per_thread)
        self.broadcast = flag("broadcast", broadcast)

    def _cub_class(self, T):
        return f"cub::WarpReduce<{T}, {self.threads_in_warp}>"

    def _body(self, T, x, guard):
        combine = "x" if x == "x" else "in.values[0]"
        rest = "" if x == "x" else f"for (int i = 1; i < {self.items_per_thread}; ++i) own = op(own, {x}[i]);"
        broadcast = f"from_first_lane<{self.threads_in_warp}>(result, thread)"
        return f"""
            Storage none;
            {T} own = {combine};
            {rest}
            const {T} result = Primitive(none).Reduce(own, op{guard});
            return {broadcast if self.broadcast else "result"};"""


# The names are also those of parameters.
_count, _logical = items_per_thread, threads_in_warp
