# SPDX-License-Identifier: BSD-2-Clause
"""Linking: a plan and a kernel's own code become a cubin, or an error that names the input at fault."""
