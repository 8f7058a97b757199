# SPDX-License-Identifier: BSD-2-Clause
"""A layered layout: nodes in columns from left to right, with few crossings, each near its neighbours.

As in Sugiyama, Tagawa and Toda (1981), an edge that passes a column gets a point in it, columns are ordered by the mean
position of their neighbours, and every node moves as near to its neighbours as the order allows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

_SWEEPS = 14
_ORDERING_SWEEPS = 10  # with equal heights; later ones keep the order


@dataclass(frozen=True)
class Placed:
    """The vertical centres of the nodes, and of the points on each edge, its ends included."""

    nodes: dict[str, float]
    routes: dict[tuple[str, str], list[tuple[int, float]]]
    height: float


def layout(
    layers: Mapping[str, int], edges: Iterable[tuple[str, str]], node_heights: Mapping[str, float], point_height: float
) -> Placed:
    """Place the nodes, whose columns are *layers*. Heights include the gap to the next node."""
    columns: list[list[Hashable]] = [[] for _ in range(max(layers.values(), default=0) + 1)]
    for name, layer in layers.items():
        columns[layer].append(name)
    heights: dict[Hashable, float] = dict(node_heights.items())
    left, right = defaultdict[Hashable, list[Hashable]](list), defaultdict[Hashable, list[Hashable]](list)
    paths: dict[tuple[str, str], list[tuple[int, Hashable]]] = {}
    for tail, head in edges:
        points = [(layer, (tail, head, layer)) for layer in range(layers[tail] + 1, layers[head])]
        for layer, point in points:
            columns[layer].append(point)
            heights[point] = point_height
        paths[tail, head] = [(layers[tail], tail), *points, (layers[head], head)]
        for (_, one), (_, other) in pairwise(paths[tail, head]):
            right[one].append(other)
            left[other].append(one)

    centres: dict[Hashable, float] = {item: float(place) for column in columns for place, item in enumerate(column)}
    for sweep in range(_SWEEPS):
        near = right if sweep % 2 else left
        for column in reversed(columns) if sweep % 2 else columns:
            preferred = {item: fmean([centres[other] for other in near[item]] or [centres[item]]) for item in column}
            if ordering := sweep < _ORDERING_SWEEPS:
                column.sort(key=preferred.__getitem__)
            centres |= _stack(column, preferred, dict.fromkeys(column, 1.0) if ordering else heights)

    top = min((centres[item] - heights[item] / 2 for item in centres), default=0.0)
    bottom = max((centres[item] + heights[item] / 2 for item in centres), default=0.0)
    routes = {edge: [(layer, centres[item] - top) for layer, item in path] for edge, path in paths.items()}
    return Placed({name: centres[name] - top for name in layers}, routes, bottom - top)


def _stack(
    column: Sequence[Hashable], preferred: Mapping[Hashable, float], heights: Mapping[Hashable, float]
) -> dict[Hashable, float]:
    """Return the centres of a column's items, in order and without overlap: the least-squares fit to *preferred*. Items
    that would overlap are pooled and share their mean."""
    pools: list[tuple[float, int]] = []  # mean of preferred minus offset, and the number of items
    offsets = []
    end = 0.0
    for item in column:
        offsets.append(end + heights[item] / 2)
        end += heights[item]
        pools.append((preferred[item] - offsets[-1], 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (mean, number), (other, more) = pools[-2:]
            pools[-2:] = [((mean * number + other * more) / (number + more), number + more)]
    starts = [start for start, number in pools for _ in range(number)]
    return {item: start + offset for item, start, offset in zip(column, starts, offsets, strict=True)}
