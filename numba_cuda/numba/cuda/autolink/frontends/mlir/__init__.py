# SPDX-License-Identifier: BSD-2-Clause
"""numba-cuda-mlir, the second front end. Importing a module here imports it."""
