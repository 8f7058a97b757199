# SPDX-License-Identifier: BSD-2-Clause
"""The front ends that this project extends: a package for each, with every seam between the two."""
