# SPDX-License-Identifier: BSD-2-Clause
"""Linking: a plan and a kernel's own code become a cubin, or an error that names the input at fault.

=====================  =====================================================================
``checked_link``       a link that no cache has, with the checks of its parts and its result
``duplicate_symbols``  symbols that two inputs define
``prototype_checks``   calls whose parameters are not those of the function, also of LTO-IR
``ltoir_probes``       links made only to read LTO-IR, and what logs report of symbols
``ltoir_symbols``      which LTO-IR defines and references what
``nvjitlink``          links in a child process, for inputs that may crash the linker
``crash_history``      inputs that were linked on this machine before
``nvjitlink_child``    the script that the child process runs
``link_record``        the record of a link, for reports
``linker_input``       the inputs as the linker takes them
=====================  =====================================================================
"""
