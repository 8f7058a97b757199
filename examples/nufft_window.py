# SPDX-License-Identifier: BSD-2-Clause
"""Spread and interpolate nonuniform points with your own window function: a Python function inside a C++ template.

    def gaussian(t, steepness):  # from 0 at the point to 1 at the edge of the window
        return math.exp(-steepness * t * t)

    sums = WindowSums((256, 192), width=8, window=gaussian)

    @cuda.jit
    def interpolate(x, y, grid, steepness, values):
        i = cuda.grid(1)
        if i < x.size:
            values[i] = sums.interpolate(x[i], y[i], grid, steepness)

The template is nufft_window/window_sums.cuh. `autolink.device_function` makes its argument of the Python function, with
the last argument of the call as state: a number or an array. The host calls the same function to divide the modes by
the window's Fourier transform.

    python examples/nufft_window.py

compares nonuniform FFTs of types 1 and 2 with the direct sums, for a window by a formula and by a table. The FFTs are
NumPy's.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from _frontend import cuda
from _run import compare, run, simulated
from nufft_parts import direct
from nufft_parts.window import frequencies
from numba.cuda import autolink, types

FOLDER = Path(__file__).resolve().parent / "nufft_window"
THREADS = 128


class WindowSums(autolink.DeviceCallable):
    """Sums over the points of a periodic grid within a window around a nonuniform point.

    - ``value = sums.interpolate(x, y, grid, state=None)``
    - ``sums.spread(x, y, value, grid, state=None)`` adds a value to the grid, atomically.

    ``x`` and ``y`` are float32 or float64, in units of the grid's spacing, from 0 to `sizes`. ``grid`` is a
    C-contiguous array of `sizes`, complex64 or complex128 accordingly.

    Parameters
    ----------
    sizes : tuple of two int
    width : int
        The grid points that a window covers in each dimension.
    window : function
        ``window(t)`` or ``window(t, state)``, from ``t = 0`` at the point to ``t = 1`` at the edge.
    """

    __numba_cuda_link_types__ = "numba-cuda"  # whose classes the hooks name, whichever front end compiles the kernel

    def __init__(self, sizes, width, window):
        self.sizes = sizes
        self.width = width
        self.window = window

    @autolink.device_method
    def interpolate(self, x, y, grid, state=None):
        symbol = self._symbol("interpolate", x, grid, state)
        return autolink.Extern(symbol, returns=grid.dtype, args=self._args(x, state))

    @interpolate.link
    def _(self, x, y, grid, state):
        C = autolink.cxx_type(grid.dtype)
        return self._code("interpolate", C, f"const {C}* grid", x, grid, state)

    @interpolate.python
    def _(self, x, y, grid, state=None):
        rows, columns = self._reach(0, x, state), self._reach(1, y, state)
        return sum(grid[i, j] * across * along for i, across in rows for j, along in columns)

    @autolink.device_method
    def spread(self, x, y, value, grid, state=None):
        return autolink.Extern(self._symbol("spread", x, grid, state), args=self._args(x, state, value=grid.dtype))

    @spread.link
    def _(self, x, y, value, grid, state):
        C = autolink.cxx_type(grid.dtype)
        return self._code("spread", "void", f"{C} value, {C}* grid", x, grid, state)

    @spread.python
    def _(self, x, y, value, grid, state=None):
        rows, columns = self._reach(0, x, state), self._reach(1, y, state)
        for i, across in rows:
            for j, along in columns:
                cuda.atomic.add(grid, (i, j), value * across * along)

    def _function(self, x, grid, state):
        """Return the window as a class in C++."""
        if not isinstance(grid, types.Array) or grid.dtype not in (types.complex64, types.complex128):
            raise TypeError(f"grid: got {grid}, expected a C-contiguous array of complex64 or complex128")
        if grid.ndim != 2 or grid.layout != "C":
            raise TypeError(f"grid: got {grid}, expected a C-contiguous array of two dimensions")
        if x != grid.dtype.underlying_float:
            raise TypeError(f"x: got {x}, expected {grid.dtype.underlying_float}, as the grid is {grid.dtype}")
        return autolink.device_function(self.window, x, state=state if _given(state) else ())

    def _symbol(self, name, x, grid, state):
        return autolink.symbol(f"window_{name}", self.sizes, self.width, self._function(x, grid, state).symbol)

    def _args(self, x, state, **others):
        args = {"x": None, "y": x, **others, "grid": None}
        return {**args, "state": autolink.state} if _given(state) else args

    def _code(self, name, returns, parameters, x, grid, state):
        function, T = self._function(x, grid, state), autolink.cxx_type(x)
        more, made = (", const void* state", "(state)") if _given(state) else ("", "()")
        numbers = ", ".join(map(str, (self.width, *self.sizes)))
        arguments = "x, y, grid" if name == "interpolate" else "x, y, value, grid"
        yield function
        yield autolink.CUDASource(
            f"""
            #include "window_sums.cuh"
            {function.declaration}
            extern "C" __device__ {returns} {self._symbol(name, x, grid, state)}({T} x, {T} y, {parameters}{more}) {{
                return window_sums::{name}<{numbers}>({arguments}, {function.functor}{made});
            }}""",
            name=f"window_{name}.cu",
            include_paths=[FOLDER],
        )

    def _reach(self, dimension, x, state):
        """Return the index and weight of each grid point within the window of `x`, in the simulator."""
        first = math.ceil(x - self.width / 2)
        distances = [min(abs(first + i - x) * 2 / self.width, 1.0) for i in range(self.width)]
        more = () if state is None else (state,)
        return [((first + i) % self.sizes[dimension], self.window(t, *more)) for i, t in enumerate(distances)]


def _given(state):
    return state is not None and state != types.none


def make_kernels(sums):
    """Return the kernels ``spread(x, y, values, state, grid)`` and ``interpolate(x, y, grid, state, values)``.

    Indices are unsigned: for one that could be negative, Python would count from the end, which takes registers. The
    size is compared as a number of 32 bits, as CUDA C++ does with an int.
    """

    @cuda.jit
    def spread(x, y, values, state, grid):
        i = np.uint32(cuda.grid(1))
        if i < np.uint32(x.size):
            sums.spread(x[i], y[i], values[i], grid, state)

    @cuda.jit
    def interpolate(x, y, grid, state, values):
        i = np.uint32(cuda.grid(1))
        if i < np.uint32(x.size):
            values[i] = sums.interpolate(x[i], y[i], grid, state)

    return spread, interpolate


def make_formula(real):
    """Return the window "exponential of semicircle" for numbers of type `real`."""
    one = real(1)

    def semicircle(t, beta):
        return math.exp(beta * (math.sqrt(one - t * t) - one))

    return semicircle


def make_table(real):
    """Return a window that is interpolated from a table: its values from 0 to 1, and one beyond."""
    one = np.uint32(1)

    def tabulated(t, table):
        at = t * real(table.size - 2)
        i = np.uint32(at)
        return table[i] + (at - real(i)) * (table[i + one] - table[i])

    return tabulated


def window_case(kind, width, real):
    """Return a window and its state: by a ``"formula"`` with a parameter, or by a ``"table"`` of it."""
    beta = real(2.3 * width)
    if kind == "formula":
        return make_formula(real), beta
    t = np.minimum(np.arange(4098) / 4096, 1)
    return make_table(real), np.exp(float(beta) * (np.sqrt(1 - t * t) - 1)).astype(real)


def deconvolution(sums, state, dimension, modes):
    """Return, for each mode, the inverse of the window's Fourier transform, by Gauss's quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(100)
    values = np.array([sums.window(real, state) for real in np.abs(nodes).astype(np.asarray(state).dtype)])
    angles = np.pi * sums.width / sums.sizes[dimension] * np.outer(frequencies(modes), nodes)
    return 1 / (np.cos(angles) @ (weights * values) * sums.width / 2)


def transform(kind, x, y, data, modes, sums, state):
    """Return the nonuniform FFT of type 1 (values to modes) or 2 (modes to values), for points from -pi to pi."""
    spread, interpolate = make_kernels(sums)
    real = data.real.dtype
    x, y = [(u / (2 * np.pi) % 1 * size).astype(real) for u, size in zip((x, y), sums.sizes, strict=True)]
    factors = np.outer(*(deconvolution(sums, state, d, n) for d, n in enumerate(modes)))
    kept = np.ix_(*(frequencies(n) for n in modes))
    grid = np.zeros(sums.sizes, data.dtype)
    blocks = -(-x.size // THREADS)
    if kind == 1:
        spread[blocks, THREADS](x, y, data, state, grid)
        return np.fft.ifft2(grid, norm="forward")[kept] * factors
    grid[kept] = data * factors
    grid = np.fft.ifft2(grid, norm="forward").astype(data.dtype)
    values = np.zeros(x.size, data.dtype)
    interpolate[blocks, THREADS](x, y, grid, state, values)
    return values


CASES = [("formula", 7, np.float32, 1e-4), ("table", 7, np.float32, 1e-4), ("formula", 12, np.float64, 1e-9)]


def launch():
    modes, points = ((12, 9), 40) if simulated() else ((100, 81), 2000)
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-np.pi, np.pi, (2, points))
    right = True
    for window, width, real, tolerance in CASES:
        function, state = window_case(window, width, real)
        sums = WindowSums(tuple(2 * n for n in modes), width, function)
        for kind, shape in (1, points), (2, modes):
            data = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.result_type(real, 1j))
            result = transform(kind, x, y, data, modes, sums, state)
            expected = direct.type1([x, y], data, modes, +1) if kind == 1 else direct.type2([x, y], data, +1)
            title = f"type {kind}, {data.dtype}, a window by a {window}"
            right &= compare(title, result, expected, tolerance)
    return right


SIGNATURES = {
    "spread": "void({real}[::1], {real}[::1], {number}[::1], {state}, {number}[:, ::1])",
    "interpolate": "void({real}[::1], {real}[::1], {number}[:, ::1], {state}, {number}[::1])",
}


def signature(name, window, real):
    """Return the signature of a kernel for a window by a ``"formula"`` or a ``"table"``."""
    real = np.dtype(real)
    state = real.name if window == "formula" else f"{real.name}[::1]"
    return SIGNATURES[name].format(real=real.name, number=np.result_type(real, 1j).name, state=state)


def link():
    for window in "formula", "table":
        sums = WindowSums((1024, 1024), 7, window_case(window, 7, np.float32)[0])
        for kernel in make_kernels(sums):
            name = kernel.py_func.__name__
            built = autolink.build(kernel, signature(name, window, np.float32), cc=(9, 0))
            yield f"{name}, a window by a {window}", built


if __name__ == "__main__":
    run(launch, link)
