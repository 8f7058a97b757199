# SPDX-License-Identifier: BSD-2-Clause
"""Plans of nonuniform FFTs: create a plan, set its points, and execute it on any number of vectors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from _frontend import cuda

from . import points as _points
from . import spread as _spread
from . import transform as _transform
from .window import deconvolution, window_for

LONGEST_FFT = 4096
LONGEST_GRID = LONGEST_FFT**2  # in one dimension, with two passes


class Plan:
    """A nonuniform FFT of type 1 or 2 in one or two dimensions.

    Type 1 computes modes from values `c` at points, and type 2 computes values at points from modes `f`::

        f[k0, k1] = sum over j of  c[j] exp(sign i (k0 x[j] + k1 y[j]))
        c[j] = sum over k0, k1 of  f[k0, k1] exp(sign i (k0 x[j] + k1 y[j]))

    Frequency ``k0 = -(modes[0] // 2), ...`` is row ``k0 + modes[0] // 2`` of `f`, and likewise `k1` for the columns. In
    one dimension there are no `k1` and `y`. As in FINUFFT, nothing is scaled.

    Parameters
    ----------
    kind : 1 or 2
        The type.
    modes : int or tuple of one or two ints
        Modes in each dimension: any number up to 2**23 in one dimension, up to 2048 each in two.
    eps : float
        Requested relative error in the 2-norm: at least 1e-13, or 1e-6 for complex64.
    sign : +1 or -1, optional
        Sign of the exponent. By default +1 for type 1 and -1 for type 2, which are then adjoint to each other.
    dtype : numpy.complex128 or numpy.complex64
        The type of values and modes. Points may be float32 or float64 with either, and keep their precision.
    longest_fft : int, optional
        The longest FFT in one pass: a power of two from 4 to 4096. Longer dimensions take two passes.

    Attributes
    ----------
    sizes : tuple of int
        The size of the fine grid: for each dimension, the smallest power of two that is at least twice the modes.
    window : Window
        The function that spreads points.
    polynomial_eps : float
        The maximum error of the polynomials that approximate the window.
    """

    def __init__(
        self, kind, modes, eps=1e-6, sign=None, dtype: type[np.complexfloating] = np.complex128, longest_fft=LONGEST_FFT
    ):
        if kind not in (1, 2):
            raise ValueError(f"kind: got {kind!r}, expected 1 or 2")
        self.kind = int(kind)
        self.modes = _as_modes(modes, longest_fft)
        if dtype not in (np.complex64, np.complex128):
            raise ValueError(f"dtype: got {dtype!r}, expected numpy.complex64 or numpy.complex128")
        self.dtype = np.dtype(dtype)
        least = 1e-6 if self.dtype == np.complex64 else 1e-13
        if not least <= eps < 1:
            raise ValueError(f"eps: got {eps!r}, expected {least:.0e} or more, and less than 1, for {self.dtype}")
        self.eps = float(eps)
        if sign is None:
            sign = 1 if kind == 1 else -1
        if sign not in (1, -1):
            raise ValueError(f"sign: got {sign!r}, expected 1 or -1")
        self.sign = int(sign)
        self.sizes = tuple(_fine_size(n) for n in self.modes)
        self.window = window_for(self.eps, self.modes, self.sizes)
        self._real: Any = np.float32 if self.dtype == np.complex64 else np.float64
        self.polynomial_eps = max(0.02 * self.eps, 1e-15)
        self._bins = _spread.bins_for(self.kind, self.sizes, self.window.width, self._real)
        self._spread, self._spread_block = _spread.make_kernel(
            self.kind,
            self.sizes,
            self._bins,
            self.window.polynomials(self.polynomial_eps).tobytes(),
            self.window.width,
            self._real,
        )
        self._passes = _transform.passes_of(self.kind, self.modes, self.sizes, longest_fft)
        self._sorted: Any = None
        self._memory: Any = None

    def __repr__(self):
        return (
            f"Plan({self.kind}, {self.modes}, eps={self.eps:g}, sign={self.sign:+d}, dtype=np.{self.dtype}):"
            f" fine grid {self.sizes}, window of {self.window.width}"
        )

    def set_points(self, x, y=None):
        """Set the points: `x`, and `y` in two dimensions, in radians, on the host or the device. Returns the plan.

        Coordinates may be any number of turns. The points are sorted here, so the arrays may be changed afterwards.
        """
        given = [x] if y is None else [x, y]
        if len(given) != len(self.modes):
            raise TypeError(f"set_points: got {len(given)} coordinate arrays, expected {len(self.modes)}")
        arrays = [_as_device(values) if _is_device(values) else np.asarray(values) for values in given]
        for name, array in zip("xy", arrays, strict=False):
            if array.dtype not in (np.float32, np.float64) or array.ndim != 1:
                raise TypeError(
                    f"{name}: got {array.ndim}-dimensional {array.dtype}, expected 1-dimensional float32 or float64"
                )
        if arrays[-1].size != arrays[0].size:
            raise ValueError(f"y: got {arrays[-1].size} points, expected as many as of x, {arrays[0].size}")
        coordinates = [a if _is_device(a) else cuda.to_device(np.ascontiguousarray(a)) for a in arrays]
        self._sorted = _points.sort_points(
            coordinates, self.sizes, self._bins, self.window.width, self._real, _most(self.kind, coordinates[0].size)
        )
        return self

    def execute(self, data, out=None):
        """Transform `data`: values at points for type 1, modes for type 2.

        An array on the device gives an array on the device, computed in the default stream; the call does not wait. An
        array on the host gives an array on the host. `out`, on the device, receives the result.
        """
        if self._sorted is None:
            raise RuntimeError("execute: this plan has no points yet: call set_points first")
        values, modes = (self._sorted.order.size,), self.modes
        source_shape, target_shape = (values, modes) if self.kind == 1 else (modes, values)
        on_device = _is_device(data)
        source = _as_device(data) if on_device else np.ascontiguousarray(data, self.dtype)
        _check("data", source, source_shape, self.dtype)
        if not on_device:
            source = cuda.to_device(source)
        if out is None:
            target = cuda.device_array(target_shape, self.dtype)
        else:
            target = _as_device(out)
            _check("out", target, target_shape, self.dtype)
        self._run(source, target)
        if on_device:
            return target if out is None else out
        return target.copy_to_host() if out is None else out

    def kernels(self):
        """Return triples of a title, a kernel that `execute` launches and its signature, to build ahead of time."""
        c, r = self.dtype, np.dtype(self._real)
        title, grid = ("spreads", r) if self.kind == 1 else ("interpolates", c)
        points = f"{c}[::1], uint32[::1], uint32[::1], {r}[:, ::1], int32[:, ::1]"
        to_grid = title, self._spread, f"void({points}, {grid}[::1])"
        passes = []
        for done in self._passes:
            kernel, fft = _transform.make_kernel(done, self.sign, self._real)
            tables = [c if isinstance(at, _transform.Grid) and at.twiddle else r for at in (done.load, done.store)]
            signature = f"void({c}[::1], {c}[::1], {tables[0]}[::1], {tables[1]}[::1])"
            passes.append((f"transforms {done.rows} x {done.size} with {fft}", kernel, signature))
        return [to_grid, *passes] if self.kind == 1 else [*passes, to_grid]

    def _run(self, source, target):
        grid, reals, middle, passes = self._on_gpu()
        if self.kind == 1:
            self._launch_spread(source, reals)
            ends = grid, _flat(target)
        else:
            ends = _flat(source), grid
        for number, (kernel, tables) in enumerate(passes):
            kernel(ends[0] if number == 0 else middle, ends[1] if number == len(passes) - 1 else middle, *tables)
        if self.kind == 2:
            self._launch_spread(target, grid)

    def _launch_spread(self, values, grid):
        order, start, offset, work = self._sorted
        pieces = work.shape[0]
        if pieces:
            threads, at_once = self._spread_block
            self._spread[-(-pieces // at_once), threads](values, order, start, offset, work, grid)

    def _on_gpu(self):
        """Return what does not depend on points: the fine grid, its reals, the array between passes, and the passes."""
        if self._memory is None:
            grid = cuda.to_device(np.zeros(int(np.prod(self.sizes)), self.dtype))
            first = self._passes[0]
            each = first.store.kept if isinstance(first.store, _transform.Modes) else first.size
            middle = cuda.device_array(first.rows * each, self.dtype) if len(self._passes) == 2 else None
            passes = []
            for done in self._passes:
                kernel, fft = _transform.make_kernel(done, self.sign, self._real)
                blocks = -(-done.rows // fft.ffts_per_block)
                tables = [cuda.to_device(self._table(place)) for place in (done.load, done.store)]
                passes.append((kernel[blocks, fft.block_dim, 0, fft.shared_memory_size], tables))
            self._memory = grid, grid.view(self._real), middle, passes
        return self._memory

    def _table(self, place):
        if isinstance(place, _transform.Modes):
            return deconvolution(self.window, place.kept, place.size).astype(self._real)
        if place.twiddle:
            return _transform.twiddles(self.sizes[0], self.sign, self.dtype)
        return np.zeros(1, self._real)


def _as_modes(modes: Any, longest_fft: int) -> tuple[int, ...]:
    try:
        counts = tuple(operator.index(n) for n in (modes if np.iterable(modes) else [modes]))
    except TypeError:
        raise TypeError(f"modes: got {modes!r}, expected an int or one or two of them") from None
    if len(counts) not in (1, 2):
        raise ValueError(f"modes: got {modes!r}, expected an int or one or two of them")
    if longest_fft not in [1 << k for k in range(2, LONGEST_FFT.bit_length())]:
        raise ValueError(f"longest_fft: got {longest_fft!r}, expected a power of two from 4 to {LONGEST_FFT}")
    most = longest_fft**2 // 2 if len(counts) == 1 else longest_fft // 2
    if not all(1 <= n <= most for n in counts):
        raise ValueError(
            f"modes: got {modes!r}, expected 1 to {most} in {len(counts)} dimension{'s'[: len(counts) - 1]}"
        )
    return counts


def _fine_size(modes: int) -> int:
    return max(2, 1 << (2 * modes - 1).bit_length())


def _most(kind: int, points: int) -> int:
    """Return the points per piece of work: enough to be worth a tile, few enough for the pieces to fill the GPU."""
    return max(128, min(1024 if kind == 2 else 512, points // 4096))


def _is_device(array: Any) -> bool:
    return hasattr(array, "__cuda_array_interface__") or hasattr(array, "__cuda_ndarray__")


def _as_device(array: Any) -> Any:
    return array if hasattr(array, "__cuda_ndarray__") else cuda.as_cuda_array(array)


def _flat(array: Any) -> Any:
    return array if array.ndim == 1 else array.reshape(array.size)


def _check(name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{name}: got {array.dtype} of shape {array.shape}, expected {dtype} of shape {shape}")
    if not array.flags["C_CONTIGUOUS"]:
        raise ValueError(f"{name}: got an array with strides {array.strides}, expected a contiguous one")
