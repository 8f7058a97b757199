# SPDX-License-Identifier: BSD-2-Clause
"""Large graphs: nodes of one family become one node, and nothing is out of sight."""

from numba.cuda.autolink.reports.folding import MOST, folded
from numba.cuda.autolink.reports.graph import Graph, Node
from numba.cuda.autolink.reports.object_names import only_different


def star(families):
    """A kernel, an object for each of *families*, and a result."""
    drawn = Graph()
    drawn.nodes["kernel"] = Node("kernel", 0, "kernel", "", "", "")
    for number, family in enumerate(families):
        drawn.nodes[f"object {number}"] = Node("objects", 1, f"{family}({number})", "", "", "", f"{family} objects")
        drawn.connect("kernel", f"object {number}", f"line {number}")
        drawn.connect(f"object {number}", "result")
    drawn.nodes["result"] = Node("result", 2, "cubin", "", "", "")
    return drawn


def test_a_small_graph_stays_as_it_is():
    drawn = star(["FFT"] * MOST)
    assert folded(drawn) is drawn


def test_in_a_long_column_each_class_is_one_node_that_names_its_members():
    found = folded(star(["FFT"] * 90 + ["Sum"] * 10 + ["One"]))
    titles = [node.title for node in found.nodes.values()]
    assert titles == ["kernel", "90 FFT objects", "10 Sum objects", "One(100)", "cubin"]
    many = next(node for node in found.nodes.values() if node.title == "90 FFT objects")
    assert many.detail == "FFT(0) … FFT(89)"
    assert many.hint.splitlines() == [f"FFT({number})" for number in range(90)]


def test_edges_keep_their_labels():
    found = folded(star(["FFT"] * 20))
    (labels,) = [labels for (tail, _), labels in found.edges.items() if tail == "kernel"]
    assert labels == [f"line {number}" for number in range(20)]
    assert len(found.edges) == 2


def test_a_family_is_named_by_the_arguments_that_its_members_do_not_share():
    names = [f"Scale(factor={number}, offset=0.0)" for number in range(20)]
    assert only_different(names)[::19] == ["Scale(factor=0)", "Scale(factor=19)"]
    assert only_different(["f(1)", "f(1, 2)"]) == ["f(1)", "f(1, 2)"]
    assert only_different(["load.cu", "store.cu"]) == ["load.cu", "store.cu"]
