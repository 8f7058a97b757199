# SPDX-License-Identifier: BSD-2-Clause
"""Readers of the formats of linkable code: one per format, bounds-checked, in time linear in the size of the code."""
