# SPDX-License-Identifier: BSD-2-Clause
"""Which headers a CUDA C++ source reads, and whether they have changed.

================  =============================================================================
``preprocessor``  what a text includes, probes for and defines, in every spelling
``macros``        what macros may stand for in an include, in a probe, and for a path
``scan``          find the headers that a source includes or probes for, in the texts
``file_state``    what shows that a file is unchanged without reading it
``manifest``      whether the headers that a compile read have changed, or others have appeared
================  =============================================================================
"""
