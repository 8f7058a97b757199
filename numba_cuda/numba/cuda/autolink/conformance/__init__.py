# SPDX-License-Identifier: BSD-2-Clause
"""The checks of `testing.check_linkable`, which `checks` runs in order. Each one adds to the findings.

=========================  ====================================================================================
``checks``                 runs the checks in their order; the last are whether the code links, and whether it runs
``records``                what the checks find, and the result: a record, or an error that lists what failed
``subject``                an object that a kernel can call and that returns code, for the other checks
``probes``                 the functions that call it, and what they pass
``symbol_checks``          the symbols that the call references, and those that the code defines
``reproducibility``        asks the object again, in this process and in another one
``reproducibility_child``  the other process
``comparison``             whether code and link key are the same again, and differ from those of other objects
``emulated_run``           whether the linked code computes what the object's Python equivalent does
=========================  ====================================================================================
"""
