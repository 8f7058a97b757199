# SPDX-License-Identifier: BSD-2-Clause
"""Build kernels, and hand out what was built: results, reports, kernels that can be launched."""
