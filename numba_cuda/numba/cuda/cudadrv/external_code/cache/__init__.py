# SPDX-License-Identifier: BSD-2-Clause
"""The one cache of everything that is built: in memory, and in one directory for all projects of a user."""
