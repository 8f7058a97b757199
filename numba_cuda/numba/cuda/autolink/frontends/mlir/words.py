# SPDX-License-Identifier: BSD-2-Clause
"""The vocabulary of numba-cuda-mlir, in which this project reads its types and its IR."""

from numba_cuda_mlir import cuda
from numba_cuda_mlir.descriptor import MLIRDispatcher
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core import ir, ir_utils, sigutils, typed_passes
from numba_cuda_mlir.numba_cuda.typing import typeof

from ...frontend_api.front_end import Vocabulary
from .type_translation import from_core, to_core

MLIR = Vocabulary(
    "numba-cuda-mlir",
    types,
    ir,
    ir_utils,
    typeof,
    typed_passes,
    sigutils,
    cuda.jit(device=True),
    f"{__package__}.front_end",
    to_core,
    from_core,
    MLIRDispatcher,
)
