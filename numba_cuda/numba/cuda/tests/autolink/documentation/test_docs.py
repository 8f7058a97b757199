# SPDX-License-Identifier: BSD-2-Clause
"""The documentation: every code block runs and prints what the page says, and Sphinx builds it without a warning."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest
from docs_runner import MARKS, blocks_of, run_page
from numba.cuda import autolink
from repository import DOCS, EXAMPLES, module

import numba_cuda_autolink

MODULES = ("cache", "testing")
GENERATED = {"errors.md", "command_line.md"}  # compared with what makes them, by test_errors.py and below
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name not in GENERATED)
# Those of other pages run with --thorough, as in .ci/run's step of the documentation.
SHORT = ("index.md", "how_to_cu_file.md")

DRAWN = "result_own_cu_file.png"


def named(path):
    return path.stem


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[] if page.name in SHORT else [pytest.mark.thorough]) for page in PAGES],
    ids=map(named, PAGES),
)
def test_blocks_run_and_print_what_the_page_says(page, tmp_path):
    run_page(page, tmp_path, gpu=False)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(b.mark == "gpu" for b in blocks_of(page.read_text()))], ids=named
)
def test_blocks_run_with_a_gpu(page, tmp_path):
    run_page(page, tmp_path, gpu=True)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_says_what_it_is(page):
    """Code that is neither Python, nor a file, nor run would be run by nobody."""
    for block in blocks_of(page.read_text()):
        where = f"{page.name}:{block.line}"
        assert block.mark in ("", *MARKS), where
        assert bool(block.argument) == (block.mark in ("needs", "raises", "file", "replace")), where
        assert block.language in ("python", "text", "sh") or block.mark in ("file", "replace"), f"{where}: not run"
        assert (block.language == "python") or block.mark not in ("gpu", "needs", "raises", "fresh"), where


def test_the_wheel_of_the_page_has_all_its_files(tmp_path):
    blocks = [block for block in blocks_of((DOCS / "wheels.md").read_text()) if block.mark == "file"]
    for block in blocks:
        (tmp_path / block.argument).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / block.argument).write_text(block.code)
    (tmp_path / "mypackage" / "scale.kernels").touch()
    (tmp_path / ".gitignore").write_text("*.kernels\n")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=tmp_path, check=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    files = {block.argument for block in blocks if block.argument.startswith("mypackage/")}
    assert files | {"mypackage/scale.kernels"} <= packed
    assert any(file.endswith(".cuh") for file in files)


def test_the_cmake_file_of_the_page_builds_a_kernel_once(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("needs CMake")
    files = {block.argument: block.code for block in blocks_of((DOCS / "how_to_ci.md").read_text())}
    for name in "kernels.py", "CMakeLists.txt":
        (tmp_path / name).write_text(files[name])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    def cmake(*arguments):
        command = ["cmake", *arguments]
        return subprocess.run(command, cwd=tmp_path, env={**os.environ, "PATH": path}, check=True, stdout=-1, text=True)

    cmake("-S", ".", "-B", "build")
    assert "Generating roots.h" in cmake("--build", "build").stdout
    assert (tmp_path / "build" / "roots.h").stat().st_size > 1000
    assert "Generating" not in cmake("--build", "build").stdout


def test_a_python_operator_for_a_template_takes_at_most_twelve_lines():
    """From the library to the end of the object's class, with its docstring."""
    page = (DOCS / "library_code.md").read_text()
    section = page.partition("## Python functions in C++\n")[2].partition("\n## ")[0]
    counts = []
    for block in blocks_of(section):
        if "autolink.device_function(" in block.code:
            end = next(each.end_lineno for each in ast.parse(block.code).body if isinstance(each, ast.ClassDef))
            counts.append(sum(bool(line.strip()) for line in block.code.splitlines()[:end]))
    assert len(counts) == 2
    assert max(counts) <= 12, counts


class TestTheRunnerItself:
    """It can fail."""

    def run(self, tmp_path, text, gpu=False):
        page = tmp_path / "page.md"
        page.write_text(text)
        run_page(page, tmp_path, gpu=gpu)

    def test_a_page_in_order_in_one_process(self, tmp_path):
        self.run(
            tmp_path,
            "```python\nx = 1\n```\n\n<!-- test: file y.txt -->\n```text\n2\n```\n\n"
            "```python\nprint(x, open('y.txt').read())\n```\n<!-- test: output -->\n```text\n1 ...\n```\n"
            "<!-- test: run -->\n```sh\npython -c 'print(3)'\n```\n<!-- test: output -->\n```text\n3\n```\n"
            "<!-- test: gpu -->\n```python\nraise SystemExit('only with a GPU')\n```\n"
            "<!-- test: raises KeyError -->\n```python\n{}['k']\n```\n"
            "<!-- test: output -->\n```text\nKeyError: 'k'\n```\n",
        )

    @pytest.mark.parametrize(
        "text, message",
        [
            ("```python\n1 / 0\n```", "the block raises ZeroDivisionError"),
            ("<!-- test: gpu -->\n```python\n1 / 0\n```", "the block raises ZeroDivisionError"),
            ("<!-- test: raises KeyError -->\n```python\n1\n```", "the block does not raise KeyError"),
            ("```python\nprint(1)\n```\n<!-- test: output -->\n```text\n2\n```", "and the page says\n2"),
            ("<!-- test: run -->\n```sh\nfalse\n```", "exit code 1"),
        ],
    )
    def test_says_what_is_wrong_and_where(self, tmp_path, text, message):
        with pytest.raises(AssertionError, match=message) as failure:
            self.run(tmp_path, text, gpu=True)
        assert "page.md:" in str(failure.value)


def test_the_page_of_the_command_line_is_what_its_parsers_say():
    commands = module(DOCS, "commands")
    assert commands.page() == commands.PAGE.read_text(), "run python docs/commands.py"


@pytest.mark.thorough
@pytest.mark.parametrize("name", module(DOCS, "pictures").EXAMPLES)
def test_the_pictures_of_the_gallery_are_what_the_examples_report(name):
    pictures = module(DOCS, "pictures")
    drawn = pictures.comparable(pictures.picture(name))
    assert drawn == pictures.comparable(pictures.path_of(name).read_text()), "run python docs/pictures.py"
    assert f"_static/{pictures.path_of(name).name}" in (DOCS / "gallery.md").read_text()


def test_the_gallery_shows_each_picture_of_a_result():
    pictures = module(DOCS, "result_pictures")
    shown = set(re.findall(r"_static/(result_[\w.]+)", (DOCS / "gallery.md").read_text()))
    assert shown == set(pictures.PICTURES) == {path.name for path in (DOCS / "_static").glob("result_*")}


@pytest.mark.thorough
def test_a_picture_of_a_result_is_drawn_without_a_gpu(tmp_path):
    """The one whose kernels take a second in the simulator; it differs by rounding from that in the gallery."""
    code = f"import result_pictures as made; made.FOLDER = made.Path({str(tmp_path)!r}); made.main([{DRAWN!r}])"
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(DOCS)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=300)
    assert (tmp_path / DRAWN).stat().st_size > 0.8 * (DOCS / "_static" / DRAWN).stat().st_size


def test_every_example_is_in_the_gallery():
    page = (DOCS / "gallery.md").read_text()
    examples = [path for path in EXAMPLES.glob("*.py") if not path.name.startswith("_")]
    assert len(examples) > 5
    assert [path.name for path in examples if f"examples/{path.name}" not in page] == []


def test_the_page_of_versions_has_each_release_and_what_it_supports():
    project, changelog = ((DOCS.parent / name).read_text() for name in ("pyproject.toml", "CHANGELOG.md"))
    pythons = re.findall(r"Python :: (3\.\d+)\"", project)
    oldest = re.search(r'"numba-cuda>=([\d.]+)"', project)[1]
    row = r"^\| (\S+) \| (\S*) ?\| (.*) \| 12, 13 \| (.*) \|$"
    rows = re.findall(row, (DOCS / "versions.md").read_text(), re.MULTILINE)
    releases = re.findall(r"^## \[(.*?)\](?: - (\S+))?$", changelog, re.MULTILINE)
    assert [(version.lower(), date) for version, date in releases] == [row[:2] for row in rows]
    assert rows[0][2:] == (f"{oldest} and later", f"{pythons[0]}–{pythons[-1]}")  # noqa: RUF001
    assert re.search(r'^version = "(.*)"$', project, re.MULTILINE)[1] in dict(releases)


def test_scripts_that_pages_name_exist():
    named = {each for page in PAGES for each in re.findall(r"\bbenchmarks/\w+\.py", page.read_text())}
    assert len(named) > 4
    assert [each for each in sorted(named) if not (DOCS.parent / each).is_file()] == []


def has_anchor(page, name):
    """Whether a page has an anchor for a Python name: of its own, of a module, or of a label."""
    label = re.sub(r"[^a-z0-9]+", "-", name.lower())
    return any(f'id="{anchor}"' in page for anchor in (name, f"module-{name}", label))


def dead_links(site):
    """Return the links of a built site to files and anchors that it does not have."""
    pages = {page: page.read_text() for page in site.rglob("*.html")}
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    for page, text in pages.items():
        for path, anchor in re.findall(r'<a\b[^>]*\bhref="([^"#:?]*)(?:#([^"]*))?"', text):
            target = (page.parent / unquote(path)).resolve() if path else page
            if not target.exists() or (anchor and target in anchors and unquote(anchor) not in anchors[target]):
                yield f"{page.relative_to(site)}: {path}#{anchor}"


@pytest.mark.thorough
def test_sphinx_builds_it_without_a_warning(site):
    page = (site / "tutorial_library_authors.html").read_text()
    assert re.search(r"code-block-caption.*tiny/ease.hpp", page), "files have their names as captions"
    page = "".join(each.read_text() for each in site.glob("api*.html"))
    names = [f"numba.cuda.autolink.{name}" for name in autolink.__all__]
    names += [f"numba_cuda_autolink.{name}" for name in numba_cuda_autolink.__all__]
    names += [f"numba.cuda.autolink.{each}.{name}" for each in MODULES for name in getattr(autolink, each).__all__]
    hooks = {"Link": "__numba_cuda_link__", "LinkKey": "__numba_cuda_link_key__", "Call": "__numba_cuda_call__"}
    names += [f"numba.cuda.autolink.Supports{name}.{hook}" for name, hook in hooks.items()]
    names += [hook.strip("_") for hook in hooks.values()]
    assert len(names) > 60
    assert [name for name in names if not has_anchor(page, name)] == []
    assert list(dead_links(site.resolve())) == []
