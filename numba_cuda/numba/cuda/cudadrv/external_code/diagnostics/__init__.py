# SPDX-License-Identifier: BSD-2-Clause
"""What users see while code is built and when something is wrong.

============  =======================================================================
``messages``  a short text of any object
``progress``  what a slow build is doing, in a terminal
``timeline``  what a build did, how long each part took, and from which cache it came
``log``       the logger of the cache
============  =======================================================================
"""
