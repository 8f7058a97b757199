# SPDX-License-Identifier: BSD-2-Clause
"""The compilation in progress."""
