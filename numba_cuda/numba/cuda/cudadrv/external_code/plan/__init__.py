# SPDX-License-Identifier: BSD-2-Clause
"""What is linked into a kernel, before anything is compiled."""
