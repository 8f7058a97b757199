# SPDX-License-Identifier: BSD-2-Clause
# numba-cuda-mlir's own names, without which mypy ends where the package is not installed.
from numba_cuda_mlir.numba_cuda.np.numpy_support import carray as carray, farray as farray

__version__: str
