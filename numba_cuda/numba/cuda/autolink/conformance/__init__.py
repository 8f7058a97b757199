# SPDX-License-Identifier: BSD-2-Clause
"""The checks of `testing.check_linkable`, which `checks` runs in order. Each one adds to the findings."""
