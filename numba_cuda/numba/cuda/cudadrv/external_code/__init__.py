# SPDX-License-Identifier: BSD-2-Clause
"""External code: what is linked into kernels, from the returned input to the cubin. No Numba types are known here."""
