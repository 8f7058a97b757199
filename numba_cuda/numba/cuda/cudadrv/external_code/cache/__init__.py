# SPDX-License-Identifier: BSD-2-Clause
"""The one cache of everything that is built: in memory, and in one directory for all projects of a user.

====================  ================================================================================
``key``               what an artefact depends on: named parts, and their digest
``entry``             the format of an entry on disk
``read_only``         cache directories that are read as they are: of images and wheels
``remote``            the cache that machines share
``packs``             what one process wrote to it, in one file
``remote_settings``   where it is, and which of its entries are trusted
``seals``             what tells one's own entries from others'
``entry_files``       files of entries, for machines without a network
``statistics``        how often things were found, and how long building them took
``transfers``         reading and writing its files, in threads of their own
``patience``          how long to wait for it
``disk``              the directory, who may have written to it, and what can go wrong with it
``guard``             one build per key, among threads and processes
``shared_work``       which builds a thread leaves to another process
``settings``          the environment variables
``log``               the logger of hits and misses
``store``             what is cached under a key, or is built and cached now
====================  ================================================================================
"""
