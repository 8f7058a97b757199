# SPDX-License-Identifier: BSD-2-Clause
"""Kernels that were compiled in this process, with the launch of finished kernels."""

from __future__ import annotations

from typing import Any

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.diagnostics.messages import shown, suggest_names

from numba_cuda_autolink.launch.kernel import Kernel

from ..frontend_api.front_end import Vocabulary, front_end_of, is_kernel, vocabulary_of_kernel
from ..protocol.kernel_signatures import normalize


@suggest_names
def bind(kernel: Any, *what: Any) -> Kernel:
    """Compile *kernel* for one signature, if it is not, and return it with the launch of finished kernels.

    The result is launched as the kernel is, ``bound[grid, block, stream, shared](*args)``, in a fraction of the time.
    It takes arguments of that signature alone, with arrays on the device. Setup and teardown callbacks run as always.

    Parameters
    ----------
    kernel:
        A kernel made by ``cuda.jit``.
    *what:
        A signature, as for ``cuda.jit``; or the arguments of a launch, whose types are taken.

    Raises
    ------
    FinishedKernelError
        If the kernel needs the launch of its front end: for exceptions (``debug=True``), ``extensions=``, or arguments
        without a value at run time.
    TypeError
        If *kernel* is not a kernel made by ``cuda.jit``, numba-cuda's or numba-cuda-mlir's.
    """
    if config.ENABLE_CUDASIM:
        raise RuntimeError("bind() launches on a GPU, and the simulator (NUMBA_ENABLE_CUDASIM=1) has none")
    if not is_kernel(kernel) or kernel.targetoptions.get("device"):
        raise TypeError(f"bind() expects a kernel made by cuda.jit\n  got: {shown(kernel)}")
    vocabulary = vocabulary_of_kernel(kernel)
    code = front_end_of(kernel).code_for_bind(kernel, _argtypes(what, vocabulary))
    return Kernel(kernel.py_func.__name__, lambda: [code])


def _argtypes(what: tuple[Any, ...], vocabulary: Vocabulary) -> tuple[Any, ...]:
    if len(what) == 1:
        (one,) = what
        is_types = isinstance(one, tuple) and all(map(vocabulary.is_type, one))
        if isinstance(one, str) or hasattr(one, "return_type") or is_types:
            return normalize(one, vocabulary)[0]
    typeof = vocabulary.typeof
    return tuple(typeof.typeof(value, typeof.Purpose.argument) for value in what)
