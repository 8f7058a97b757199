# SPDX-License-Identifier: BSD-2-Clause
"""The layout of the source tree: every module says what it is, imports run one way, and names stay where
they belong. The rules themselves are tried on small trees, where each of them can fail."""

from __future__ import annotations

import ast
import collections
import textwrap

import pytest
from layout import SourceTree, circles, out_of_order
from numba.cuda import autolink
from repository import PROJECT

CUDA = PROJECT / "numba_cuda" / "numba" / "cuda"
AUTOLINK = "numba.cuda.autolink"
EXTERNAL_CODE = "numba.cuda.cudadrv.external_code"
START = "numba_cuda_autolink"

OURS = SourceTree(
    {AUTOLINK: CUDA / "autolink", EXTERNAL_CODE: CUDA / "cudadrv" / "external_code", START: PROJECT / START}
)


# The floors of each root, lowest first: a folder or module imports from lower floors alone.
FLOORS = {
    EXTERNAL_CODE: [
        "diagnostics",
        "formats",
        "headers platform",
        "inputs",
        "cache",
        "plan",
        "compile link",
        "explain link_facts",
        "pipeline",
    ],
    AUTOLINK: [
        "__main__ compilation",
        "frontend_api",
        "protocol",
        "c_abi function_code",
        "device_callable reports",
        "device_functions finished_kernels",
        "builds linkables",
        "cache cxx_by_name frontends many_kernels",
        "conformance kernel_cache",
        "testing",
    ],
}


def assert_empty(found) -> None:
    """Fail with a line for each thing in *found*."""
    assert not found, "\n" + "\n".join(map(str, found))


class TestOurs:
    def test_every_module_says_in_a_sentence_what_it_is(self):
        """The list of modules in the documentation consists of these sentences."""
        texts = {name: ast.get_docstring(module.tree) or "" for name, module in OURS.modules.items()}
        assert_empty([name for name, text in texts.items() if not text.partition("\n\n")[0].endswith(".")])

    def test_there_is_no_package_above_ours(self):
        """Its ``__init__.py`` would shadow numba-cuda's own package."""
        above = [CUDA.parents[1], CUDA.parent, CUDA, CUDA / "cudadrv"]
        assert [str(folder) for folder in above if (folder / "__init__.py").exists()] == []

    def test_no_files_import_each_other(self):
        assert_empty(circles(OURS.imports()))

    @pytest.mark.parametrize("root", FLOORS)
    def test_folders_import_from_lower_floors_alone(self, root):
        assert_empty(out_of_order(OURS.imports_within(root), FLOORS[root]))

    def test_there_are_few_floors(self):
        assert all(len(floors) <= 10 for floors in FLOORS.values())

    def test_external_code_knows_nothing_of_autolink(self):
        lower = {name: targets for name, targets in OURS.imports().items() if name.startswith(EXTERNAL_CODE)}
        assert {name: targets for name, targets in lower.items() if any(t.startswith(AUTOLINK) for t in targets)} == {}

    def test_private_names_stay_in_their_package(self):
        assert_empty(OURS.private_names_across_packages())

    def test_no_module_has_the_name_of_a_public_function(self):
        """Importing ``autolink.build`` as a module would put it in the place of the function."""
        functions = {name for name in autolink.__all__ if not isinstance(getattr(autolink, name), type(autolink))}
        assert "build" in functions
        for package in AUTOLINK, START:
            inside = {name.removeprefix(f"{package}.") for name in OURS.modules}
            assert inside & {*functions, "load"} == set()

    def test_no_two_files_of_tests_have_the_same_name(self):
        """They are in no packages, so that pytest imports each under its own name alone."""
        names = collections.Counter(path.name for path in (CUDA / "tests" / "autolink").rglob("test_*.py"))
        assert [name for name, count in names.items() if count > 1] == []


@pytest.fixture
def tree(tmp_path):
    """Makes the tree of a package ``p`` from the texts of its files."""

    def make(files: dict[str, str]) -> SourceTree:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return SourceTree({"p": tmp_path})

    return make


class TestRules:
    """On small trees."""

    @pytest.mark.parametrize(
        "statement",
        [
            "import p.b",
            "from p import b",
            "from .b import name",
            "def f():\n    from . import b",
            "if TYPE_CHECKING:\n    from . import b",
        ],
    )
    def test_two_files_that_import_each_other_are_a_circle(self, tree, statement):
        files = {"__init__.py": "", "a.py": f"{statement}\n", "b.py": "from . import a\n"}
        assert circles(tree(files).imports()) == [["p.a", "p.b"]]

    @pytest.mark.parametrize(
        ("floors", "fault"),
        [
            (["low top", "middle beside"], "top imports middle, which is not below it"),
            (["low", "middle beside top"], "top imports middle, which is not below it"),
            (["low", "middle", "top"], "beside is on no floor"),
            (["low", "middle beside", "top gone"], "gone is on a floor, but not there"),
            (["low", "middle beside", "top low"], "low is on 2 floors"),
        ],
    )
    def test_a_folder_on_a_wrong_floor_is_a_fault(self, floors, fault):
        edges = {"low": set(), "middle": {"low"}, "beside": {"low"}, "top": {"middle", "low"}}
        assert fault in out_of_order(edges, floors)

    @pytest.mark.parametrize(
        ("code", "found"),
        [
            ("from ..q.a import _x", ["b.py:1: _x of p.q.a"]),
            ("from ..q import a as other\nother._x()", ["b.py:2: _x of p.q.a"]),
            ("from ..q import a\na.x, a.__name__, self._x", []),
            ("from . import c\nc._x", []),
        ],
    )
    def test_private_names_are_found_in_other_packages(self, tree, code, found):
        files = {"__init__.py": "", "q/__init__.py": "", "q/a.py": "_x = 1", "r/__init__.py": "", "r/c.py": "_x = 1"}
        assert tree({**files, "r/b.py": code}).private_names_across_packages() == found
