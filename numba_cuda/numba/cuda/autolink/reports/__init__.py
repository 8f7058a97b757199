# SPDX-License-Identifier: BSD-2-Clause
"""Reports of what a kernel links. Facts of a build become records, and records are shown in several forms.

================  ===========================================================================
``facts``         what is kept of a build: plain data that outlives the compiler's own
``collect``       makes the report of one build from its facts
``records``       the frozen records that a report consists of
``report_class``  `Report`: the records in every form, JSON among them
``formatting``    sizes, times and names as people read them
``outline``       what a report says, in order: plain text, and text in colour
``html``          a page, and a fragment for notebooks
``graph``         kernel, functions, objects, code and result as nodes and edges, also for Graphviz
``layout``        where the nodes of a graph are placed
``svg``           the graph as a drawing
``theme``         colours, light and dark
================  ===========================================================================
"""
