# SPDX-License-Identifier: BSD-2-Clause
"""What an object may return, as records that are validated where they are made."""
