# SPDX-License-Identifier: BSD-2-Clause
"""The compilation in progress.

=================  ==========================================================
``context``        the compilation in progress on this thread, and its target
``kernel_events``  which kernels an application compiles, for whoever listens
=================  ==========================================================
"""
