# SPDX-License-Identifier: BSD-2-Clause
"""The compatibility matrix covers what the project says it supports, and its page shows the results."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from pathlib import Path

import pytest
from repository import DOCS, PROJECT, module

compatibility = module(DOCS, "compatibility")
COMBINATIONS, CORNERS = compatibility.COMBINATIONS, compatibility.CORNERS
Combination, Result = compatibility.Combination, compatibility.Result

METADATA = (PROJECT / "pyproject.toml").read_text()


class TestCombinations:
    def test_pythons_are_those_of_the_classifiers(self):
        assert list(compatibility.PYTHON) == re.findall(r'"Programming Language :: Python :: (3\.\d+)"', METADATA)

    def test_cudas_are_those_of_the_classifiers(self):
        assert list(compatibility.CUDA) == re.findall(r'"Environment :: GPU :: NVIDIA CUDA :: (\d+)"', METADATA)

    def test_the_oldest_versions_are_the_lower_bounds(self):
        oldest = Combination(compatibility.NUMBA_CUDA[0], "13", "3.10").requirements()
        for name in "numba-cuda", "cuda-core":
            (bound,) = re.findall(rf'"{name}>=([\d.]+)"', METADATA)
            (pinned,) = [r.partition("==")[2] for r in oldest if r.startswith(f"{name}==")]
            assert pinned == bound or pinned.startswith(f"{bound}."), name

    def test_each_two_ends_of_different_axes_meet_in_a_corner(self):
        assert set(CORNERS) <= set(COMBINATIONS)
        pythons = compatibility.PYTHON[0], compatibility.NEWEST_PYTHON
        ends = [(axis[0], axis[-1]) for axis in (compatibility.NUMBA_CUDA, compatibility.CUDA, pythons)]
        corners = [(c.numba_cuda, c.cuda, c.python) for c in CORNERS]
        for one, other in itertools.combinations(range(3), 2):
            assert {(c[one], c[other]) for c in corners} == set(itertools.product(ends[one], ends[other]))

    def test_an_older_minor_version_is_that_of_all_cuda_libraries(self):
        pinned = Combination(compatibility.NEWEST, "12.9", "3.12").requirements()
        assert {"cuda-toolkit==12.9.*", "nvidia-nvjitlink-cu12==12.9.*", "nvidia-nvfatbin-cu12==12.9.*"} <= set(pinned)

    def test_continuous_integration_runs_the_corners_and_nvmath_and_both_ends_of_numba_cuda_mlir(self):
        checked = set(compatibility.CHECKED)
        newest = max(compatibility.NEWEST_PYTHON, compatibility.ONE_PYTHON)
        last = dataclasses.replace(CORNERS[-1], python=newest, mlir=compatibility.MLIR[-1])
        assert {*CORNERS[:-1], last} < checked
        of_mlir = [combination for combination in checked if combination.mlir]
        assert {combination.mlir for combination in of_mlir} == set(compatibility.MLIR)
        (oldest,) = [each for each in of_mlir if each.mlir == compatibility.MLIR[0]]
        assert f"numba-cuda-mlir=={compatibility.MLIR[0]}" in oldest.requirements()
        assert METADATA.count(f">={compatibility.MLIR[0]}; python_version") == len(compatibility.CUDA)
        assert any(set(compatibility.NVMATH) <= set(c.requirements()) for c in compatibility.CHECKED)
        assert "-s corners" in (PROJECT / ".ci" / "run").read_text()


class TestParts:
    """What continuous integration runs of the tests with each of its combinations."""

    def test_what_they_name_is_there(self):
        for combination in compatibility.CHECKED:
            paths = [argument.partition("::")[0] for argument in compatibility.part_of(combination) if "/" in argument]
            assert paths
            assert [path for path in paths if not Path(path).exists()] == []

    def test_with_nvmath_the_tests_of_it_run(self):
        (combination,) = [each for each in compatibility.CHECKED if each.cuda == compatibility.NVMATH_CUDA]
        assert compatibility.part_of(combination)[:2] == ["-k", "(nvmath or mlir) and not NumbaCudaMLIR"]
        assert "def test_nvmath" in (compatibility.TESTS / "examples" / "test_examples.py").read_text()


JUNIT = """<testsuites><testsuite>
<testcase classname="numba.cuda.tests.autolink.test_a.TestB" name="test_one"/>
<testcase classname="numba.cuda.tests.autolink.test_a" name="test_two[x]"><failure message="assert 1 == 2
and more"/></testcase>
<testcase classname="numba.cuda.tests.autolink.test_a" name="third"><skipped message="needs a GPU, so"/></testcase>
<testcase classname="numba.cuda.tests.autolink.test_a" name="test_four"><skipped message="needs a GPU: why"/></testcase>
<testcase classname="numba.cuda.tests.autolink.test_a" name="test_five"><error message="setup"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def result(tmp_path, monkeypatch):
    """One that was counted, saved and loaded."""
    monkeypatch.setattr(compatibility, "RESULTS", tmp_path / "results")
    combination = COMBINATIONS[0]
    (tmp_path / "junit.xml").write_text(JUNIT)
    counted = Result(combination, commit="abc1234", date="2026-01-31", seconds=60)
    counted.add_tests(tmp_path / "junit.xml")
    installed = [{"name": name, "version": f"1.{i}"} for i, name in enumerate(compatibility.LISTED)]
    installed[-1]["name"] += "-cu12"
    counted.add_versions(json.dumps(installed))
    counted.save()
    (saved,) = (tmp_path / "results").iterdir()
    return compatibility.read(json.loads(saved.read_text()))


def test_a_result_has_what_pytest_wrote_and_the_versions_for_both_cudas(result):
    assert (result.passed, result.skipped) == (1, {"needs a GPU": 2})
    assert result.failed == {"test_a.test_two[x]": "assert 1 == 2 and more", "test_a.test_five": "setup"}
    assert result.versions == {name: f"1.{i}" for i, name in enumerate(compatibility.LISTED)}


class TestPage:
    def test_the_second_front_end_has_a_table_of_its_own(self, result):
        mlir = compatibility.SECOND_FRONT_END[0]
        of_mlir = Result(mlir, "def5678", versions={"numba-cuda-mlir": "0.6.0", "numba-cuda": "0.30.4"}, passed=9)
        page = compatibility.page([result, of_mlir])
        assert f"| 0.6.0 | 0.30.4 | {mlir.cuda} | {mlir.python} | 9 passed | 0 | def5678 |" in page
        assert page.count("9 passed") == 1
        assert all(Path(each.partition("::")[0]).exists() for each in compatibility.tests_of(mlir))
        assert compatibility.tests_of(COMBINATIONS[0]) == []

    def test_the_page_in_the_repository_is_generated_from_the_results(self):
        results = compatibility.kept()
        assert {result.combination for result in results} <= {*COMBINATIONS, *compatibility.SECOND_FRONT_END}
        assert (DOCS / "compatibility.md").read_text() == compatibility.page(results)

    def test_new_results_take_the_place_of_older_ones(self, result, tmp_path, monkeypatch):
        monkeypatch.setattr(compatibility, "DATA", tmp_path / "data.json")
        monkeypatch.setattr(compatibility, "PAGE", tmp_path / "page.md")
        older = [Result(combination, commit="older", passed=7) for combination in COMBINATIONS[1::-1]]
        compatibility.DATA.write_text(json.dumps([dataclasses.asdict(each) for each in older]))
        compatibility.write_page()
        assert [(each.combination, each.commit) for each in compatibility.kept()] == [
            (COMBINATIONS[0], "abc1234"),
            (COMBINATIONS[1], "older"),
        ]
        assert "| 1 passed, 2 failed | 7 passed | not run | not run |" in compatibility.PAGE.read_text()
