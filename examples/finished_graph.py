# SPDX-License-Identifier: BSD-2-Clause
"""Save ten linked kernels to a file, load them, and launch them as one CUDA graph.

Each kernel adds a term of the Taylor series of exp, which is written in CUDA C++. Together they give exp(x).

    python examples/finished_graph.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from _frontend import cuda
from _run import compare, on_cpu, run, simulated
from numba.cuda import autolink

SIZE = 1000
SIGNATURE = "void(float64[::1], float64[::1])"


class Term(autolink.DeviceCallable):
    """x to the n-th power, divided by n factorial."""

    def __init__(self, n):
        self.n = n

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"term_{self.n}", returns=np.float64, args={"x": np.float64})

    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(f"""
            extern "C" __device__ double term_{self.n}(double x) {{
                double term = 1;
                for (int k = 1; k <= {self.n}; ++k) term *= x * (1.0 / k);
                return term;
            }}""")

    def __call__(self, x):
        term = 1.0
        for k in range(1, self.n + 1):
            term *= x / k
        return term


def adds(name, term):
    """Return the kernel that adds *term*, which files of kernels call *name*."""

    def kernel(y, x):
        i = cuda.grid(1)
        if i < y.size:
            y[i] += term(x[i])

    kernel.__name__ = name
    return cuda.jit(kernel)


KERNELS = [adds(f"add_term_{n}", Term(n)) for n in range(10)]


def launch():
    x = np.linspace(-0.5, 0.5, SIZE)
    y = cuda.to_device(np.zeros(SIZE))
    blocks, threads = SIZE // 128 + 1, 128
    if simulated():
        for kernel in KERNELS:
            kernel[blocks, threads](y, x)
    else:
        launch_as_graph(blocks, threads, y, cuda.to_device(x))
    return compare("ten terms of exp(x)", y.copy_to_host(), np.exp(x), 1e-9)


def launch_as_graph(blocks, threads, y, x):
    """Launch what other programs would: the kernels of a file, captured from a stream."""
    from cuda.bindings import driver

    import numba_cuda_autolink

    def call(function, *args):
        error, *results = function(*args)
        assert error == driver.CUresult.CUDA_SUCCESS, error
        return results[0] if results else None

    path = Path(tempfile.mkdtemp()) / "terms.kernels"
    # The emulator runs PTX.
    built = [autolink.build(kernel, SIGNATURE, output="ptx" if on_cpu() else "cubin") for kernel in KERNELS]
    autolink.save(path, built)
    loaded = numba_cuda_autolink.load(path)
    own = cuda.stream()
    stream = driver.CUstream(int(own))
    call(driver.cuStreamBeginCapture, stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    for name in loaded:
        loaded[name][blocks, threads, stream](y, x)
    graph = call(driver.cuGraphInstantiate, call(driver.cuStreamEndCapture, stream), 0)
    call(driver.cuGraphLaunch, graph, stream)
    call(driver.cuStreamSynchronize, stream)


def link():
    for number, kernel in enumerate(KERNELS):
        yield f"add_term_{number}", autolink.build(kernel, SIGNATURE, cc=(9, 0))


if __name__ == "__main__":
    run(launch, link)
