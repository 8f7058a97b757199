# SPDX-License-Identifier: BSD-2-Clause
"""Reports of what a kernel links. Facts of a build become records, and records are shown in several forms.

====================  =========================================================================================
``facts``             what is kept of a build: plain data that outlives the compiler's own
``collect``           makes the report of one build from its facts
``records``           the frozen records that a report consists of
``report_class``      `Report`: the records in every form, JSON among them
``formatting``        sizes, times and names as people read them
``object_names``      short names that tell objects apart
``outline``           what a report says, in order: plain text, and text in colour
``by_class``          totals by the class of the objects, for large reports
``html``              a page, and a fragment for notebooks
``html_table``        tables that sort and filter
``graph``             kernel, functions, objects, code and result as nodes and edges, also for Graphviz
``folding``           large graphs with few nodes
``layout``            where the nodes of a graph are placed
``svg``               the graph as a drawing
``listings``         what code became: which calls were inlined; source, PTX and machine code
``disassembly``       machine code as text, by function and source file
``html_listings``     listings side by side
``occupancy``         how many warps a multiprocessor can hold
``changes``           what changed between two reports
``trace``             the timeline of a build: its lanes, its totals, and a file for Perfetto
``timeline_drawing``  the timeline as a drawing
``theme``             colours, light and dark, and style sheets that win over those of the page around a report
====================  =========================================================================================
"""
