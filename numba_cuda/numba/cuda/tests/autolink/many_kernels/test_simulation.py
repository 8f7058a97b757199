# SPDX-License-Identifier: BSD-2-Clause
"""The simulation of clusters: each program is built once, and what it says is the limit is the limit."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace

import pytest
from repository import PROJECT


@pytest.fixture(scope="module")
def simulation():
    path = PROJECT / "benchmarks" / "prebuild_simulation.py"
    spec = importlib.util.spec_from_file_location("prebuild_simulation", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["prebuild_simulation"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["prebuild_simulation"]


@pytest.mark.parametrize(("workers", "containers"), [(1, 1), (7, 2), (100, 100)])
def test_each_program_is_built_once_wherever_the_workers_are(simulation, workers, containers):
    found = simulation.simulate(simulation.Cluster(300, 40, workers, containers), simulation.Costs())
    assert found.programs == 40 and found.attempts >= 300


def test_nothing_is_built_that_is_stored(simulation):
    found = simulation.simulate(simulation.Cluster(300, 40, 10, 2, stored=1.0), simulation.Costs())
    assert (found.programs, found.attempts) == (0, 300)


def test_few_workers_are_the_limit(simulation):
    costs = simulation.Costs()
    found = simulation.simulate(simulation.Cluster(1000, 100, 4, 1), costs)
    assert found.workers_busy > 0.95
    assert found.seconds == pytest.approx((1000 * costs.kernel + 100 * costs.program) / 4, rel=0.15)


def test_with_many_workers_the_parent_is(simulation):
    """It starts a thousand tasks in a second, of one job each without chunks."""
    costs, cluster = simulation.Costs(), simulation.Cluster(3000, 10, 1000, 1, 1.0)
    single, chunked = (simulation.simulate(cluster, costs, chunks=chunks) for chunks in (False, True))
    assert single.parent_busy > 0.9 and single.seconds == pytest.approx(3000 * costs.parent, rel=0.1)
    assert chunked.seconds < 0.5 * single.seconds
    faster = simulation.simulate(cluster, replace(costs, parent=costs.parent / 4), chunks=False)
    assert faster.seconds < 0.5 * single.seconds


def test_chunks_change_nothing_where_the_parent_has_time(simulation):
    few = simulation.Cluster(1000, 100, 4, 1)
    single, chunked = (simulation.simulate(few, simulation.Costs(), chunks=chunks) for chunks in (False, True))
    assert chunked == single


def test_a_slow_store_is_the_limit_where_each_worker_has_a_cache_of_its_own(simulation):
    costs = replace(simulation.Costs(), store_rate=20.0)
    found = simulation.simulate(simulation.Cluster(400, 400, 50, 50, 1.0), costs)
    assert found.seconds == pytest.approx(400 / 20, rel=0.1) and found.store_busy > 0.9


@pytest.mark.parametrize("number", [0, *(pytest.param(each, marks=pytest.mark.thorough) for each in range(1, 8))])
def test_the_table_in_the_documentation_is_what_it_prints(simulation, number):
    page = (PROJECT / "docs" / "architecture.md").read_text()
    assert len(simulation.CLUSTERS) == 8 and simulation.HEADING in page
    assert simulation.line(simulation.CLUSTERS[number], simulation.Costs()) in page
