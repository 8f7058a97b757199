# SPDX-License-Identifier: BSD-2-Clause
"""Reports of what a kernel links. Facts of a build become records, and records are shown in several forms.

====================  ========================================================================================
``collect``           makes the report of one build from its facts
``records``           the frozen records that a report consists of
``report``            `Report`: the records in every form, JSON among them
``formatting``        sizes, times and names as people read them
``text``              what a report says, in order: plain text, and text in colour
``class_totals``      totals by the class of the objects, for large reports
``html_page``         a page, a fragment for notebooks and the graph as SVG, from the files in ``templates/``
``graph``             kernel, calls, inputs and result in four columns, also for Graphviz
``listings``          what code became: which calls were inlined; the lines of sources with their machine code
``occupancy``         how many warps a multiprocessor can hold
``comparison``        what changed between two reports
``trace``             the timeline of a build: its lanes, its totals, and a file for Perfetto
====================  ========================================================================================
"""
