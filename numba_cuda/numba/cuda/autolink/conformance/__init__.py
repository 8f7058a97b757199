# SPDX-License-Identifier: BSD-2-Clause
"""What `testing.check_linkable` does.

================  ===================================================================================
``checks``        the checks, in their order
``records``       what they come to
``probe_kernel``  a kernel that calls the object
``prototypes``    what a call passes to a symbol, and what the symbol's definition takes
``link_keys``     what is asked of a link key
``reproducibility``  asking the object in another process
``reproducibility_child``  the other process
================  ===================================================================================
"""
