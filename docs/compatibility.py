# SPDX-License-Identifier: BSD-2-Clause
"""The compatibility matrix: its combinations of versions, the results of the tests, and the page compatibility.md."""

from __future__ import annotations

import datetime
import itertools
import json
import re
import shutil
import xml.etree.ElementTree
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent / "compatibility.md"
DATA = PAGE.with_suffix(".json")
RESULTS = PAGE.parents[1] / "build" / "compatibility"
TESTS = PAGE.parents[1] / "numba_cuda" / "numba" / "cuda" / "tests" / "autolink"

NEWEST = "newest"
NUMBA_CUDA = ("0.30.2", NEWEST)
CUDA = ("12", "13")
PYTHON = ("3.10", "3.11", "3.12", "3.13", "3.14")
#: With one Python only: the versions of numba-cuda in between, and older CUDA libraries.
BETWEEN = ("0.30.3",)
OLD_CUDA = ("12.8", "13.0", "13.4")
ONE_PYTHON = "3.12"

#: The oldest and the newest numba-cuda-mlir.
MLIR = ("0.5.2", NEWEST)

#: Constraints that the packages' own metadata lack.
REQUIREMENTS = {
    # With the oldest numba-cuda the oldest of everything else that numba-cuda-autolink names.
    "0.30.2": ("cuda-core==1.0.0", "numba<0.66"),
    "0.30.3": ("numba<0.66",),
}
#: Libraries that examples wrap. Without them the tests of these examples are skipped.
WRAPPED = {
    "12": ("nvidia-curand-cu12",),
    "13": ("nvidia-curand",),
}
#: The oldest CUDA 13. With the headers of one newer than 13.4, this libmathdx does not compile cuBLASDx.
NVMATH_CUDA = "13.0"
# cffi is for nvmath.device where numba-cuda-mlir is installed.
NVMATH = ("nvmath-python==1.0.0", "nvidia-libmathdx-cu13==0.4.1.15", "cffi")

#: The distributions whose versions the page lists.
LISTED = (
    "numba-cuda",
    "cuda-core",
    "numba",
    "numpy",
    "nvidia-cuda-nvrtc",
    "nvidia-nvjitlink",
)


@dataclass(frozen=True)
class Combination:
    """One set of versions. ``cuda`` is a major version, of which the newest libraries are taken, or a minor one. With
    a version of numba-cuda-mlir, ``mlir``, the tests of that front end alone are run."""

    numba_cuda: str
    cuda: str
    python: str
    mlir: str = ""

    def __str__(self) -> str:
        name = f"numba-cuda-mlir {self.mlir}" if self.mlir else self.numba_cuda
        return f"{name}, CUDA {self.cuda}, Python {self.python}"

    @property
    def cuda_major(self) -> str:
        return self.cuda.split(".")[0]

    def requirements(self) -> list[str]:
        """Return what pip installs besides the package itself and its extra for this CUDA."""
        found = [*REQUIREMENTS.get(self.numba_cuda, ()), *WRAPPED[self.cuda_major]]
        if self.mlir not in ("", NEWEST):
            found.append(f"numba-cuda-mlir=={self.mlir}")
        if self.numba_cuda != NEWEST:
            found.append(f"numba-cuda=={self.numba_cuda}")
        if self.cuda == NVMATH_CUDA:
            found.extend(NVMATH)
        if self.cuda != self.cuda_major:
            suffix = "-cu12" if self.cuda_major == "12" else ""
            found.append(f"cuda-toolkit=={self.cuda}.*")
            found.extend(f"nvidia-{library}{suffix}=={self.cuda}.*" for library in ("nvjitlink", "nvfatbin"))
        return found


COMBINATIONS = [
    *itertools.starmap(Combination, itertools.product(NUMBA_CUDA, CUDA, PYTHON)),
    *(Combination(numba_cuda, cuda, ONE_PYTHON) for numba_cuda in BETWEEN for cuda in CUDA),
    *(Combination(NEWEST, cuda, ONE_PYTHON) for cuda in OLD_CUDA),
]
#: Of numba-cuda-mlir: the newest with both CUDAs and the two newest Pythons, and the oldest.
SECOND_FRONT_END = [
    *(Combination(NEWEST, cuda, ONE_PYTHON, mlir=MLIR[-1]) for cuda in CUDA),
    *(Combination(NEWEST, CUDA[-1], python, mlir=MLIR[-1]) for python in PYTHON[-2:]),
    Combination(NEWEST, CUDA[-1], ONE_PYTHON, mlir=MLIR[0]),
]
#: The newest Python that is installed, so that no corner is skipped.
NEWEST_PYTHON = next((each for each in reversed(PYTHON) if shutil.which(f"python{each}")), PYTHON[-1])
#: Any two ends of different axes (numba-cuda, CUDA, Python) meet in one of these.
CORNERS = [
    Combination(NUMBA_CUDA[0], CUDA[0], NEWEST_PYTHON),
    Combination(NUMBA_CUDA[0], CUDA[-1], PYTHON[0]),
    Combination(NUMBA_CUDA[-1], CUDA[0], PYTHON[0]),
    Combination(NUMBA_CUDA[-1], CUDA[-1], NEWEST_PYTHON),
]
#: The combinations that continuous integration tests, each with the part of the tests that `part_of` names. The newest
#: numba-cuda-mlir is installed in the last corner, the oldest with nvmath-python.
CHECKED = [
    *CORNERS[:-1],
    Combination(NEWEST, CUDA[-1], max(NEWEST_PYTHON, ONE_PYTHON), mlir=MLIR[-1]),
    Combination(NEWEST, NVMATH_CUDA, ONE_PYTHON, mlir=MLIR[0]),
]

#: What the front end can break: its seams, typing, lowering, and kernels that it caches. What those are looked up by
#: is the same with each front end, so that no random programs are drawn here.
FRONT_END_TESTS = (
    "frontends",
    "protocol",
    "function_code",
    "c_abi",
    "device_callable",
    "kernel_cache/test_kernel_cache.py",
    "kernel_cache/test_start.py",
    "builds/test_ahead_of_time.py",
)
#: Those of them that are run with each CUDA: the seams, and what is asked, compiled and built through them.
SEAM_TESTS = ("frontends", "protocol", "function_code", "builds/test_ahead_of_time.py")
#: What CUDA's libraries and headers can break: compiling, linking, reading code, and two examples.
CUDA_TESTS = (
    "external_code/compile",
    "external_code/formats",
    "external_code/headers",
    "external_code/inputs",
    "external_code/link",
    "external_code/explain",
    "external_code/plan",
    "examples/test_examples.py::TestRunAsAScript::test_succeeds[own_cu_file]",
    "examples/test_curand.py",
)
#: What Python can break: the seams of both front ends, processes, files and locks. What NVRTC says of a source is the
#: same from each Python.
PYTHON_TESTS = (
    "frontends",
    "external_code/cache",
    "external_code/compile/test_nvrtc_processes.py",
    "external_code/platform",
)


def part_of(combination: Combination) -> list[str]:
    """Return the arguments for pytest that choose what continuous integration tests with a combination.

    The oldest numba-cuda runs what a front end can break, with one CUDA all of it, with the other the seams. The
    newest runs what CUDA can break with the oldest CUDA, and what Python can break with the newest Python; with the
    newest CUDA README's command runs all tests. The combination that has nvmath-python runs the tests of what wraps
    it. The oldest and the newest numba-cuda-mlir run the tests of its seams.
    """
    if combination.cuda == NVMATH_CUDA:
        folders = ("examples", "conformance", "frontends")
        return ["-k", "(nvmath or mlir) and not NumbaCudaMLIR", *(str(TESTS / name) for name in folders)]
    names: tuple[str, ...]
    if combination.mlir:
        names = PYTHON_TESTS
    elif combination.numba_cuda != NUMBA_CUDA[0]:
        names = CUDA_TESTS
    elif combination.cuda == CUDA[0]:
        names = FRONT_END_TESTS
    else:
        names = SEAM_TESTS
    return [str(TESTS / name) for name in names]


def tests_of(combination: Combination) -> list[str]:
    """Return the arguments for pytest that choose all tests of a combination."""
    if not combination.mlir:
        return []
    page = "documentation/test_docs.py::test_blocks_run_and_print_what_the_page_says[second_front_end]"
    finished = "finished_kernels/test_memrefs.py", "finished_kernels/test_c_header.py"
    examples = "examples/test_examples.py::TestWithNumbaCudaMLIR"
    return [str(TESTS / name) for name in ("frontends", *finished, examples, page)]


@dataclass
class Result:
    """The result of all tests with one combination.

    Attributes
    ----------
    commit : str
        The tested commit.
    date : str
        The day, as in 2026-01-31.
    versions : dict
        The version of each distribution in `LISTED`.
    passed : int
        The number of tests that passed.
    skipped : dict
        The number of skipped tests for each reason.
    failed : dict
        The message of each failed test by its name. A failed installation, or pytest itself, is listed the same way.
    seconds : int
        The duration, with the installation.
    gpu : str
        The name of the GPU; empty without one.
    """

    combination: Combination
    commit: str
    date: str = field(default_factory=lambda: datetime.date.today().isoformat())
    versions: dict[str, str] = field(default_factory=dict)
    passed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    seconds: int = 0
    gpu: str = ""

    def add_versions(self, pip_list: str) -> None:
        """Take the versions from the output of ``pip list --format=json``."""
        listed = [(re.sub("[-_.]+", "-", entry["name"]).lower(), entry["version"]) for entry in json.loads(pip_list)]
        found = {name.removesuffix("-cu12"): version for name, version in listed}
        self.versions = {name: found[name] for name in LISTED}
        if self.combination.mlir:
            self.versions["numba-cuda-mlir"] = found["numba-cuda-mlir"]

    def add_tests(self, junit: Path) -> None:
        """Count the tests in a file written by pytest's ``--junitxml``."""
        reasons: Counter[str] = Counter()
        for test in xml.etree.ElementTree.parse(junit).iter("testcase"):
            name = f"{test.get('classname', '').rpartition('.tests.autolink.')[2]}.{test.get('name')}"
            broken = [*test.iter("failure"), *test.iter("error")]
            skipped = test.find("skipped")
            if broken:
                self.failed[name] = (broken[0].get("message") or "").strip()
            elif skipped is not None:
                reasons[re.split("[,:;]", skipped.get("message") or "no reason")[0]] += 1
            else:
                self.passed += 1
        self.skipped = dict(reasons.most_common())

    def summary(self) -> str:
        """Return one line with the numbers of passed and failed tests."""
        return f"{self.passed} passed" + (f", {len(self.failed)} failed" if self.failed else "")

    def save(self) -> None:
        """Save the result for `write_page`."""
        RESULTS.mkdir(parents=True, exist_ok=True)
        _file_of(self.combination).write_text(json.dumps(asdict(self), indent=1))


def read(record: dict[str, Any]) -> Result:
    """Return the result of which *record* is the `dataclasses.asdict`."""
    return Result(**{**record, "combination": Combination(**record["combination"])})


def _file_of(combination: Combination) -> Path:
    return RESULTS / f"{combination}.json".replace(", ", "-").replace(" ", "")


def kept() -> list[Result]:
    """Return the results behind the page in the repository, in the order of `COMBINATIONS` and `SECOND_FRONT_END`."""
    return [read(record) for record in json.loads(DATA.read_text())]


def write_page() -> None:
    """Replace older results by those of new runs, and write compatibility.md from all of them."""
    results = {result.combination: result for result in kept()}
    known = [*COMBINATIONS, *SECOND_FRONT_END]
    for combination in known:
        if (file := _file_of(combination)).exists():
            results[combination] = read(json.loads(file.read_text()))
    shown = [results[combination] for combination in known if combination in results]
    DATA.write_text(json.dumps([asdict(result) for result in shown], indent=1) + "\n")
    PAGE.write_text(page(shown))


def page(results: list[Result]) -> str:
    """Return the text of compatibility.md."""
    second = [result for result in results if result.combination.mlir]
    results = [result for result in results if result not in second]
    by_combination = {result.combination: result for result in results}
    rows = []
    for numba_cuda, cuda in dict.fromkeys((c.numba_cuda, c.cuda) for c in COMBINATIONS):
        cells = [_cell(Combination(numba_cuda, cuda, python), by_combination) for python in PYTHON]
        rows.append([numba_cuda, cuda, *cells])
    tested = [python for python in PYTHON if any(result.combination.python == python for result in results)]
    untested = [python for python in PYTHON if python not in tested]
    introduction = _INTRODUCTION.format(
        tested=_listed(tested),
        untested=f"Python {_listed(untested)} was not among these runs.\n" * bool(untested),
        dates=_listed(sorted({result.date for result in results})),
        nvmath_cuda=NVMATH_CUDA,
    )
    parts = [
        introduction,
        _table(["numba-cuda", "CUDA", *(f"Python {python}" for python in PYTHON)], rows),
        _gpus(results),
        _second_front_end(second),
        _not_green([*results, *second]),
        _skipped(results),
        _versions(results),
    ]
    return "\n".join(parts)


_INTRODUCTION = """\
# Compatibility

All tests with the oldest and the newest numba-cuda, the newest libraries of CUDA 12 and 13, and Python {tested};
with one Python also the versions of numba-cuda in between and older CUDA libraries.
{untested}The oldest numba-cuda runs with the oldest supported cuda-core. `nox` in a checkout runs the tests with
each Python that is installed, and writes this page, here from runs on {dates}, on Linux.

Each change is tested in four corners of the table, in which any two ends of different axes meet, and with CUDA
{nvmath_cuda}, for which the examples that use nvmath-python are built: with the oldest numba-cuda what a front end can
break, with the newest what CUDA and Python can break. These shorter runs are not in the table.
"""


def _cell(combination: Combination, results: dict[Combination, Result]) -> str:
    if combination not in COMBINATIONS:
        return ""
    result = results.get(combination)
    if result is None:
        return "not run"
    return result.summary() + (" (GPU)" if result.gpu else "")


def _gpus(results: list[Result]) -> str:
    names = _listed(result.gpu for result in results if result.gpu)
    return f"GPU: {names}. Runs without the mark had no GPU and skipped the tests that launch kernels.\n"


def _second_front_end(results: list[Result]) -> str:
    head = ["numba-cuda-mlir", "numba-cuda", "CUDA", "Python", "passed", "skipped", "this project's commit"]
    rows = []
    for result in results:
        versions = [result.versions.get(name, "") for name in ("numba-cuda-mlir", "numba-cuda")]
        skipped = str(sum(result.skipped.values()))
        marked = result.summary() + (" (GPU)" if result.gpu else "")
        with_versions = [*versions, result.combination.cuda, result.combination.python]
        rows.append([*with_versions, marked, skipped, result.commit])
    introduction = "The tests that run with numba-cuda-mlir: `nox -s mlir`."
    return f"## The second front end\n\n{introduction}\n\n{_table(head, rows)}"


def _not_green(results: list[Result]) -> str:
    lines = [
        f"- {result.combination}: {name}: {message.splitlines()[0] if message else 'no message'}"
        for result in results
        for name, message in result.failed.items()
    ]
    return "## Failed tests\n\n" + "\n".join(lines or ["None."]) + "\n"


def _skipped(results: list[Result]) -> str:
    counts: dict[str, list[int]] = {}
    for result in results:
        for reason, count in result.skipped.items():
            counts.setdefault(reason, []).append(count)
    rows = [
        [reason, str(max(found)) if min(found) == max(found) else f"{min(found)} to {max(found)}", str(len(found))]
        for reason, found in sorted(counts.items(), key=lambda item: -max(item[1]))
    ]
    return "## Skipped tests\n\n" + _table(["reason", "tests", "combinations"], rows)


def _versions(results: list[Result]) -> str:
    rows: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.versions:
            rows.setdefault((result.combination.numba_cuda, result.combination.cuda), []).append(result)
    cells = [
        [*row, *(_listed(r.versions[name] for r in same) for name in LISTED), _listed(r.commit for r in same)]
        for row, same in rows.items()
    ]
    return "## Versions\n\n" + _table(["numba-cuda", "CUDA", *LISTED, "this project's commit"], cells)


def _listed(words: Iterable[str]) -> str:
    *others, last = dict.fromkeys(words) or ("none",)
    return f"{', '.join(others)} and {last}" if others else last


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rows])
