# SPDX-License-Identifier: BSD-2-Clause
"""What users see while code is built and when something is wrong.

====================  ==============================================================================
``messages``          short texts of objects; checks of paths and lists that callers give
``progress``          what a slow build is doing, in a terminal
``timeline``          what a build did, how long each part took, and from which cache it came
``log``               the logger of the cache
``signal_handlers``   what a program's signal handlers raise, and blocks that they may not interrupt
====================  ==============================================================================
"""
