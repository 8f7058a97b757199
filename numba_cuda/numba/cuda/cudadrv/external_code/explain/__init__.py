# SPDX-License-Identifier: BSD-2-Clause
"""Explain a failed build: which input is at fault, and what to do.

===========================  =========================================================================
``source_errors``            the errors of sources
``link_log``                 what nvJitLink's log means; links that find the input at fault
``undefined_symbol``         the error for a symbol that nothing defines
``unsupported_instruction``  the error for an instruction that the target's architecture does not have
===========================  =========================================================================
"""
