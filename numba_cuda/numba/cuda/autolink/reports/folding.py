# SPDX-License-Identifier: BSD-2-Clause
"""Folds a large graph: in columns with many nodes, nodes of one family become one node that names them all."""

from __future__ import annotations

from collections import Counter, defaultdict

from .graph import Graph, Node
from .object_names import only_different

MOST = 12  # nodes of a column that are shown one by one
_FEWEST = 3  # nodes that are folded


def folded(graph: Graph) -> Graph:
    """Return *graph* with the families of its long columns folded, or *graph* itself if no column is long. Every edge
    is kept, with all labels, between what its ends are folded into."""
    columns = Counter(node.layer for node in graph.nodes.values())
    families: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for key, node in graph.nodes.items():
        if columns[node.layer] > MOST and node.family:
            families[node.layer, node.family].append(key)
    homes = {
        key: f"family {layer} {family}"
        for (layer, family), members in families.items()
        for key in members
        if len(members) >= _FEWEST
    }
    if not homes:
        return graph
    drawn = Graph()
    for key, node in graph.nodes.items():
        home = homes.get(key, key)
        if home not in drawn.nodes:
            members = families[node.layer, node.family] if key in homes else [key]
            drawn.nodes[home] = _family([graph.nodes[each] for each in members]) if key in homes else node
    for (tail, head), labels in graph.edges.items():
        ends = homes.get(tail, tail), homes.get(head, head)
        if ends[0] != ends[1]:
            drawn.connect(*ends)
            for label in labels:
                drawn.connect(*ends, label)
    return drawn


def _family(members: list[Node]) -> Node:
    """Return the node that stands for *members*."""
    first = members[0]
    names = only_different(member.title for member in members)
    title, detail = f"{len(members)} {first.family}", f"{names[0]} … {names[-1]}"
    hint = "\n".join(member.title for member in members)
    return Node(first.role, first.layer, title, detail, "", hint, first.family)
