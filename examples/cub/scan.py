# SPDX-License-Identifier: BSD-2-Clause
# mypy: disable-error-code=no-redef
"""Scan values (compute running reductions) over the threads of a block or of a warp."""

from __future__ import annotations

import operator

import numpy as np
from numba.cuda import autolink

from . import arguments
from .combining import reduced, scanned
from .operators import known, operator_of, with_state
from .primitive import Primitive, items_per_thread, kernel_method, one_of, threads_in_warp

_ALGORITHMS = ("raking", "raking_memoize", "warp_scans")


class BlockScan(Primitive):
    """``y = scan.inclusive_sum(x)``: the sum of ``x`` over this thread and those before it.

    For numbers, the call returns the result. For arrays of `items_per_thread` numbers, it writes the result into
    ``out``, or in place if ``out`` is not given, and returns the sum of all items of the block to all threads. All
    threads of the block must make the call.

    - ``inclusive_sum(x, out=None)``
    - ``exclusive_sum(x, out=None)``: the sum of the items before each item, 0 for the first.
    - ``inclusive_scan(x, op, out=None, state=None)``: with another operator, which `BlockReduce.reduce` describes.
    - ``exclusive_scan(x, op, initial, out=None, state=None)``: of ``initial`` and the items before each item.
      For arrays, the returned value does not include ``initial``.

    Parameters
    ----------
    block : int or tuple of int
        The shape of the block.
    items_per_thread : int, optional
    algorithm : "raking", "raking_memoize" or "warp_scans", optional
    """

    header = "cub/block/block_scan.cuh"
    _storage: str | None = "block"
    _place, _declared = "block_storage<Storage>()", ""

    def __init__(self, block, items_per_thread=1, algorithm="raking"):
        super().__init__(block)
        self.items_per_thread = _count(items_per_thread)
        self.algorithm = one_of("algorithm", algorithm, _ALGORITHMS)
        if algorithm == "warp_scans" and self.threads % 32:
            raise ValueError(f"block: got {self.threads} threads, expected a multiple of 32 for warp_scans")

    @kernel_method
    def inclusive_sum(self, x, out=None):
        return self._scan("inclusive_sum", x, out, None, lambda dtype: known(operator.add, dtype))

    @inclusive_sum.python
    def _(self, x, out=None):
        return self._simulated(x, out, operator.add)

    @kernel_method
    def exclusive_sum(self, x, out=None):
        return self._scan("exclusive_sum", x, out, "T{}", lambda dtype: known(operator.add, dtype))

    @exclusive_sum.python
    def _(self, x, out=None):
        return self._simulated(x, out, operator.add, 0)

    @kernel_method
    def inclusive_scan(self, x, op, out=None, state=None):
        return self._scan("inclusive_scan", x, out, None, lambda dtype: operator_of(op, dtype, state))

    @inclusive_scan.python
    def _(self, x, op, out=None, state=None):
        return self._simulated(x, out, with_state(op, state))

    @kernel_method
    def exclusive_scan(self, x, op, initial, out=None, state=None):
        arguments.number("initial", initial)
        return self._scan("exclusive_scan", x, out, "initial", lambda dtype: operator_of(op, dtype, state))

    @exclusive_scan.python
    def _(self, x, op, initial, out=None, state=None):
        return self._simulated(x, out, with_state(op, state), initial)

    def _scan(self, name, x, out, initial, operator_for):
        several = arguments.is_array(x) or self.items_per_thread > 1
        if several:
            in_place = not arguments.given(out)
            dtype = arguments.items("x", x, self.items_per_thread, written=in_place)
            if not in_place:
                written = arguments.items("out", out, self.items_per_thread, written=True)
                arguments.same("out", written, dtype, "x")
        else:
            in_place = False
            dtype = arguments.number("x", x)
            if arguments.given(out):
                raise TypeError(f"out: got {out}, expected None: what comes of a number is returned")
        op = operator_for(dtype)
        T = autolink.cxx_type(dtype)
        kind = "Inclusive" if initial is None else "Exclusive"
        between = "" if initial is None else f"{initial}, "
        parameters, args = [f"{T}{'*' if in_place else ''} x"], {"x": None}
        if several and not in_place:
            parameters, args = [f"const {T}* x", f"{T}* out"], {"x": None, "out": None}
        if initial == "initial":
            parameters.append(f"{T} initial")
            args["initial"] = dtype
        if several:
            body = f"""
                items<T, {self.items_per_thread}> in(x);
                items<T, {self.items_per_thread}> scanned;
                T total;
                Primitive({self._place}).{kind}Scan(in.values, scanned.values, {between}{op.functor}, total);
                scanned.copy_to({"x" if in_place else "out"});
                return total;"""
        else:
            body = f"""
                T scanned;
                {self._declared}
                Primitive({self._place}).{kind}Scan(x, scanned, {between}{op.functor});
                return scanned;"""
        return self.function(
            name,
            self._cub_class(T),
            parameters,
            f"using T = {T};\n{body}",
            returns=dtype,
            args=args,
            storage=self._storage,
            op=op,
            tags=(
                dtype,
                ("in_place" if in_place else "array") if several else "",
                op.name if name.endswith("scan") else "",
            ),
        )

    def _cub_class(self, T):
        x, y, z = self.block_dim
        return f"cub::BlockScan<{T}, {x}, cub::BLOCK_SCAN_{self.algorithm.upper()}, {y}, {z}>"

    def _simulated(self, x, out, op, initial=None):
        values = np.array(x)
        target = x if out is None else out
        if values.ndim:
            arguments.check_length("x", values, self.items_per_thread)
            arguments.check_length("out", target, self.items_per_thread)
        rank, all_values = self.meet(values)
        flat = np.array(all_values).ravel()
        result = scanned(flat, op, initial).reshape(len(all_values), -1)[rank]
        if not values.ndim:
            return result[0]
        target[:] = result
        return reduced(flat, op)


class WarpScan(BlockScan):
    """``y = scan.inclusive_sum(x)``: the sum of ``x`` over this thread of a logical warp and those before it.

    The methods are those of `BlockScan`, of numbers alone. All threads of the logical warp make the call, others need
    not.

    Parameters
    ----------
    block : int or tuple of int
        The shape of the block, a multiple of `threads_in_warp`.
    threads_in_warp : 2, 4, 8, 16 or 32, optional
    """

    header = "cub/warp/warp_scan.cuh"
    items_per_thread = 1
    _storage = None
    _place, _declared = "none", "Storage none;"

    def __init__(self, block, threads_in_warp=32):
        Primitive.__init__(self, block)
        self.threads_in_warp = _logical(threads_in_warp, self.threads)

    def _scan(self, name, x, out, initial, operator_for):
        arguments.number("x", x)
        return super()._scan(name, x, out, initial, operator_for)

    def _cub_class(self, T):
        return f"cub::WarpScan<{T}, {self.threads_in_warp}>"


# The names are also those of parameters.
_count, _logical = items_per_thread, threads_in_warp
