# SPDX-License-Identifier: BSD-2-Clause
"""The one cache of everything that is built: in memory, and in one directory for all projects of a user.

================  =====================================================================================
``key``           what an artefact depends on: named parts, and their digest
``entry``         the format of an entry on disk
``settings``      the environment variables
``disk``          the directory, who may have written to it, and what can go wrong with it; directories
                  that are only read, of images and wheels
``remote_store``  the cache that machines share
``build_locks``   one build per key, among threads and processes
``statistics``    how often things were found, and how long building them took
``store``         what is cached under a key, or is built and cached now
``entry_files``   files of entries, for machines without a network
================  =====================================================================================
"""
