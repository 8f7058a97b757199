# SPDX-License-Identifier: BSD-2-Clause
"""A layered layout: nodes in columns from left to right, with few crossings, each near its neighbours.

The steps are those of Sugiyama, Tagawa and Toda (1981): an edge that passes a column gets a point in it; columns are
ordered by the mean position of their neighbours; then every node moves as near to its neighbours as the order allows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

_SWEEPS = 6


@dataclass(frozen=True)
class Placed:
    """The vertical centres of the nodes, and of the points on each edge, its ends included."""

    nodes: dict[str, float]
    routes: dict[tuple[str, str], list[tuple[int, float]]]
    height: float


def layout(
    layers: Mapping[str, int], edges: Sequence[tuple[str, str]], node_heights: Mapping[str, float], point_height: float
) -> Placed:
    """Place the nodes, whose columns are *layers*. Heights include the gap to the next node."""
    columns: list[list[Hashable]] = [[] for _ in range(max(layers.values(), default=0) + 1)]
    for name, layer in layers.items():
        columns[layer].append(name)
    heights: dict[Hashable, float] = dict(node_heights.items())
    left: dict[Hashable, list[Hashable]] = {}
    right: dict[Hashable, list[Hashable]] = {}
    paths: dict[tuple[str, str], list[tuple[int, Hashable]]] = {}
    for tail, head in edges:
        points = [(layer, (tail, head, layer)) for layer in range(layers[tail] + 1, layers[head])]
        for layer, point in points:
            columns[layer].append(point)
            heights[point] = point_height
        paths[tail, head] = [(layers[tail], tail), *points, (layers[head], head)]
        for (_, one), (_, other) in pairwise(paths[tail, head]):
            right.setdefault(one, []).append(other)
            left.setdefault(other, []).append(one)

    columns = _ordered(columns, left, right)
    centres: dict[Hashable, float] = {}
    for column in columns:
        centres |= _stack(column, [0.0] * len(column), heights)
    for sweep in range(_SWEEPS):
        near = right if sweep % 2 else left
        for column in reversed(columns) if sweep % 2 else columns:
            preferred = [_mean([centres[other] for other in near.get(item, ())], centres[item]) for item in column]
            centres |= _stack(column, preferred, heights)

    top = min((centres[item] - heights[item] / 2 for item in centres), default=0.0)
    bottom = max((centres[item] + heights[item] / 2 for item in centres), default=0.0)
    routes = {edge: [(layer, centres[item] - top) for layer, item in path] for edge, path in paths.items()}
    return Placed({name: centres[name] - top for name in layers}, routes, bottom - top)


def _ordered(
    columns: list[list[Hashable]], left: Mapping[Hashable, list[Hashable]], right: Mapping[Hashable, list[Hashable]]
) -> list[list[Hashable]]:
    """Return the columns in the order with the fewest crossings that a few sweeps find, starting from the given one."""
    best, fewest = columns, _crossings(columns, right)
    current = [list(column) for column in columns]
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        near = right if sweep % 2 else left
        for column in reversed(current) if sweep % 2 else current:
            places = {item: place for each in current for place, item in enumerate(each)}
            column.sort(key=lambda item: _mean([places[other] for other in near.get(item, ())], places[item]))
        crossings = _crossings(current, right)
        if crossings < fewest:
            best, fewest = [list(column) for column in current], crossings
    return best


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _crossings(columns: Sequence[Sequence[Hashable]], right: Mapping[Hashable, list[Hashable]]) -> int:
    """Return how many pairs of edges cross between neighbouring columns."""
    total = 0
    for column, following in pairwise(columns):
        places = {item: place for place, item in enumerate(following)}
        heads = [place for item in column for place in sorted(places[other] for other in right.get(item, ()))]
        total += sum(later < earlier for index, earlier in enumerate(heads) for later in heads[index + 1 :])
    return total


def _stack(
    column: Sequence[Hashable], preferred: Sequence[float], heights: Mapping[Hashable, float]
) -> dict[Hashable, float]:
    """Return the centres of a column's items, in order and without overlap: the least-squares fit to *preferred*. Items
    that would overlap are pooled and share their mean."""
    pools: list[tuple[float, int]] = []  # mean of preferred minus offset, and the number of items
    offsets = []
    end = 0.0
    for item, centre in zip(column, preferred, strict=True):
        offsets.append(end + heights[item] / 2)
        end += heights[item]
        pools.append((centre - offsets[-1], 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (mean, number), (other, more) = pools[-2:]
            pools[-2:] = [((mean * number + other * more) / (number + more), number + more)]
    starts = [start for start, number in pools for _ in range(number)]
    return {item: start + offset for item, start, offset in zip(column, starts, offsets, strict=True)}
