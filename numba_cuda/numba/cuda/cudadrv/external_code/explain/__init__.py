# SPDX-License-Identifier: BSD-2-Clause
"""Explain a failed build: which input is at fault, and what to do."""
