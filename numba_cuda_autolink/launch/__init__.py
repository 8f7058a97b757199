# SPDX-License-Identifier: BSD-2-Clause
"""Launch kernels that are ready: arguments, configuration, the driver."""
