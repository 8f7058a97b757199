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
    left: dict[Hashable, list[Hashable]] = {}
    right: dict[Hashable, list[Hashable]] = {}
    paths: dict[tuple[str, str], list[tuple[int, Hashable]]] = {}
    for tail, head in edges:
        path: list[tuple[int, Hashable]] = [(layers[tail], tail)]
        for layer in range(layers[tail] + 1, layers[head]):
            point = (tail, head, layer)
            columns[layer].append(point)
            path.append((layer, point))
        path.append((layers[head], head))
        paths[tail, head] = path
        for (_, one), (_, other) in pairwise(path):
            right.setdefault(one, []).append(other)
            left.setdefault(other, []).append(one)

    columns = _ordered(columns, left, right)
    heights: dict[Hashable, float] = {item: point_height for column in columns for item in column}
    heights.update(node_heights)
    centres = {item: 0.0 for item in heights}
    for column in columns:
        _stack(column, [0.0] * len(column), heights, centres)
    for sweep in range(_SWEEPS):
        forwards = sweep % 2 == 0
        for column in columns if forwards else reversed(columns):
            preferred = []
            for item in column:
                near = [centres[other] for other in (left if forwards else right).get(item, ())]
                near = near or [centres[item]]
                preferred.append(sum(near) / len(near))
            _stack(column, preferred, heights, centres)

    top = min((centres[item] - heights[item] / 2 for item in heights), default=0.0)
    bottom = max((centres[item] + heights[item] / 2 for item in heights), default=0.0)
    routes = {edge: [(layer, centres[item] - top) for layer, item in path] for edge, path in paths.items()}
    return Placed({name: centres[name] - top for name in layers}, routes, bottom - top)


def _ordered(
    columns: list[list[Hashable]],
    left: Mapping[Hashable, list[Hashable]],
    right: Mapping[Hashable, list[Hashable]],
) -> list[list[Hashable]]:
    """Return the columns in the order with the fewest crossings that a few sweeps find, starting from the given one."""
    best, fewest = [list(column) for column in columns], _crossings(columns, right)
    current = [list(column) for column in columns]
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        near = left if sweep % 2 == 0 else right
        for column in current if sweep % 2 == 0 else reversed(current):
            places = {item: place for each in current for place, item in enumerate(each)}
            column.sort(key=lambda item: _mean([places[other] for other in near.get(item, ())], places[item]))
        crossings = _crossings(current, right)
        if crossings < fewest:
            best, fewest = [list(column) for column in current], crossings
    return best


def _mean(values: list[int], otherwise: float) -> float:
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
    column: Sequence[Hashable],
    preferred: Sequence[float],
    heights: Mapping[Hashable, float],
    centres: dict[Hashable, float],
) -> None:
    """Set the centres of a column's items, in order and without overlap, to the least-squares fit to *preferred*: items
    that would overlap are pooled and share their mean."""
    pools: list[tuple[float, int]] = []  # mean of preferred minus offset, and the number of items
    offsets = []
    offset = 0.0
    for item, centre in zip(column, preferred, strict=True):
        offset += heights[item] / 2
        offsets.append(offset)
        offset += heights[item] / 2
        pools.append((centre - offsets[-1], 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (mean, number), (other, more) = pools[-2:]
            pools[-2:] = [((mean * number + other * more) / (number + more), number + more)]
    starts = [start for start, number in pools for _ in range(number)]
    for item, start, offset in zip(column, starts, offsets, strict=True):
        centres[item] = start + offset
