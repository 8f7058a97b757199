# SPDX-License-Identifier: BSD-2-Clause
"""What users see while code is built and when something is wrong."""
