# SPDX-License-Identifier: BSD-2-Clause
"""Linking: a plan and a kernel's own code become a cubin, or an error that names the input at fault.

==================  ===============================================================================
``plan``            what is linked into a kernel, in which order; sources that share a unit
``kernel_code``     the kernel's own code, and the undefined symbols with the calls that use them
``run``             runs a plan: checks, compiled sources, cache, link
``request``         what a link needs, as data that can be pickled
``uncached_link``   a link that no cache has, with the checks of its parts and its result
``linker_options``  the options of nvJitLink
``parts``           the inputs as the linker takes them, with sources and bitcode compiled
``fit``             whether an input fits the target
``duplicates``      symbols that two inputs define
``variables``       variables that the host sets: their names, and how C++ declares them
``signatures``      calls whose parameters are not those of the function
``hidden_prototypes``  the functions of LTO-IR and of compressed code
``probes``          links made only to read LTO-IR, and what logs report of symbols
``ltoir_symbols``   which LTO-IR defines and references what
``errors``          the error of a link
``compile_errors``  the errors of sources
``explain``         what nvJitLink's log means
``missing_symbol``  the error for a symbol that nothing defines
``unsupported``     the error for an instruction that the target's architecture does not have
``trial``           links in a child process, for inputs that may crash the linker
``survival``        inputs that were linked on this machine before
``trial_child``     the script that the child process runs
``record``          the record of a link, for reports
==================  ===============================================================================
"""
