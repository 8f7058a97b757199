# SPDX-License-Identifier: BSD-2-Clause
"""The one cache of everything that is built: in memory, and in one directory for all projects of a user.

====================  ================================================================================
``key``               what an artefact depends on: named parts, and their digest
``entry``             the format of an entry on disk
``disk``              the directory, who may have written to it, and what can go wrong with it
``guard``             one build per key, among threads and processes
``shared_work``       which builds a thread leaves to another process
``settings``          the environment variables
``log``               the logger of hits and misses
``store``             what is cached under a key, or is built and cached now
====================  ================================================================================
"""
