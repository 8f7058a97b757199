# SPDX-License-Identifier: BSD-2-Clause
"""A finished kernel as an operator of PyTorch: GELU, whose error function is libcu++'s, with its gradient.

The kernels are built once, and loaded without Numba where they are launched. PyTorch differentiates the operator,
compiles programs that call it (``torch.compile``), and records them in CUDA graphs.

    pip install torch
    python examples/torch_operator.py

Without a GPU the kernels are linked, and run in the emulator on arrays of NumPy.
"""

import math
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
from _frontend import cuda
from _run import compare, on_cpu, run, simulated
from numba.cuda import autolink

import numba_cuda_autolink

SIZE = 10_000
SIGNATURES = {"gelu": "void(float32[::1], float32[::1])", "gelu_grad": "void(float32[::1], float32[::1], float32[::1])"}
std = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std")


@cuda.jit
def gelu(y, x):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = 0.5 * x[i] * (1.0 + std.erf(x[i] * 0.70710678))


@cuda.jit
def gelu_grad(dx, x, dy):
    i = cuda.grid(1)
    if i < dx.size:
        density = 0.39894228 * std.exp(-0.5 * x[i] * x[i])
        dx[i] = dy[i] * (0.5 * (1.0 + std.erf(x[i] * 0.70710678)) + x[i] * density)


KERNELS: dict[str, Any] = {"gelu": gelu, "gelu_grad": gelu_grad}


def operator(kernels: Any) -> Any:
    """Return the operator ``autolink_example::gelu``, which launches the finished *kernels*."""
    import torch

    def launch(kernel: Any, result: Any, *inputs: Any) -> Any:
        stream = torch.cuda.current_stream(result.device).cuda_stream
        kernel[math.ceil(result.numel() / 256), 256, stream](result.view(-1), *(each.view(-1) for each in inputs))
        return result

    @torch.library.custom_op("autolink_example::gelu", mutates_args=())
    def gelu(x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        return launch(kernels.gelu, torch.empty_like(x), x)

    @torch.library.custom_op("autolink_example::gelu_grad", mutates_args=())
    def gelu_grad(x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        x, dy = x.contiguous(), dy.contiguous()
        return launch(kernels.gelu_grad, torch.empty_like(x), x, dy)

    # What the results look like, for torch.compile, which traces with tensors without data.
    gelu.register_fake(lambda x: torch.empty(x.shape, dtype=x.dtype, device=x.device))
    gelu_grad.register_fake(lambda x, dy: torch.empty(x.shape, dtype=x.dtype, device=x.device))
    gelu.register_autograd(
        lambda ctx, dy: gelu_grad(ctx.saved_tensors[0], dy),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    return gelu


def build(output: Literal["cubin", "ptx"] = "cubin", cc=None):
    """Return the kernels, linked."""
    return [autolink.build(KERNELS[name], each, output=output, cc=cc) for name, each in SIGNATURES.items()]


def expected(x):
    """Return GELU of *x* and its derivative, in NumPy."""
    erf = np.array([math.erf(each / math.sqrt(2)) for each in x])
    return 0.5 * x * (1 + erf), 0.5 * (1 + erf) + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def launch():
    x = np.linspace(-4, 4, SIZE, dtype=np.float32)
    if simulated():
        sys.exit("This example needs the compiler, which the simulator has not.")
    path = Path(tempfile.mkdtemp()) / "gelu.kernels"
    autolink.save(path, build("ptx" if on_cpu() else "cubin"))
    values, slopes = expected(x.astype(np.float64))
    if on_cpu():
        kernels = numba_cuda_autolink.load(path, emulate=True)
        y, dx = np.zeros_like(x), np.zeros_like(x)
        kernels.gelu[SIZE // 256 + 1, 256](y, x)
        kernels.gelu_grad[SIZE // 256 + 1, 256](dx, x, np.ones_like(x))
        return compare("GELU", y, values, 1e-6) & compare("its derivative", dx, slopes, 1e-6)
    return launch_in_torch(numba_cuda_autolink.load(path), x, values, slopes)


def launch_in_torch(kernels, x, values, slopes):
    """Call the operator in eager mode, compiled, and in a CUDA graph."""
    try:
        import torch
    except ImportError:
        print("This example needs PyTorch: pip install torch")
        sys.exit(2)
    gelu = operator(kernels)
    torch.library.opcheck(gelu, (torch.randn(3, 5, device="cuda", requires_grad=True),))
    right = True
    for title, called in (
        ("eager", gelu),
        ("torch.compile", torch.compile(lambda x: gelu(x) * 1.0, fullgraph=True)),
        ("torch.compile, CUDA graphs", torch.compile(lambda x: gelu(x) * 1.0, mode="reduce-overhead", fullgraph=True)),
    ):
        for _ in range(3):  # the third one replays a graph
            given = torch.tensor(x, device="cuda", requires_grad=True)
            result = called(given)
            result.sum().backward()
        right &= compare(f"GELU, {title}", result.detach().cpu().numpy(), values, 1e-6)
        right &= compare(f"its gradient, {title}", given.grad.cpu().numpy(), slopes, 1e-6)

    given, graph = torch.tensor(x, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = gelu(given)
    given.mul_(-1)
    graph.replay()
    return right & compare("GELU, torch.cuda.graph", result.cpu().numpy(), values[::-1], 1e-6)


def link():
    yield from zip(SIGNATURES, build(cc=(9, 0)), strict=True)


if __name__ == "__main__":
    run(launch, link)
