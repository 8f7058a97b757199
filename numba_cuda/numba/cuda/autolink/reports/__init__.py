# SPDX-License-Identifier: BSD-2-Clause
"""Reports of what a kernel links. Facts of a build become records, and records are shown in several forms."""
