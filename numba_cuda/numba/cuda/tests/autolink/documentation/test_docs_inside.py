# SPDX-License-Identifier: BSD-2-Clause
"""Pages about the inside, CONTRIBUTING.md too, name seams, packages and modules that exist."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from repository import DOCS, PROJECT

PACKAGES = PROJECT / "numba_cuda" / "numba" / "cuda"
ROOTS = PACKAGES / "autolink", PACKAGES / "cudadrv" / "external_code"
PAGE = DOCS / "architecture.md"


def test_the_list_of_seams_is_complete_and_in_order():
    from numba.cuda.autolink.frontends.numba_cuda import activation as install

    named = re.findall(r"^`([\w.:]+)`\n: ", (DOCS / "upstream.md").read_text(), re.MULTILINE)
    assert named == list(install.SEAMS)


def exists(name):
    """Whether a package or module such as ``reports`` or ``link/plan`` is in one of the two packages."""
    paths = [root / name for root in ROOTS]
    return any(path.with_suffix(".py").is_file() or (path / "__init__.py").is_file() for path in paths)


def test_the_diagram_names_packages_and_modules_that_exist():
    root = ElementTree.parse(DOCS / "_static" / "architecture.svg").getroot()
    texts = [e for e in root.iter("{http://www.w3.org/2000/svg}text") if e.get("class") == "module"]
    named = {name.strip() for e in texts for name in "".join(e.itertext()).split(",")}
    assert len(named) > 20
    assert [name for name in sorted(named) if not exists(name)] == []


def test_the_page_names_packages_and_modules_that_exist():
    page = PAGE.read_text()
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    paths = re.findall(r"`(\w+/\w+)`", page)
    assert len(rows) > 15
    assert len(paths) > 8
    assert [name for name in [*rows, *paths] if not exists(name)] == []


def test_the_page_has_one_row_for_each_package():
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    packages = {init.parent.name for root in ROOTS for init in root.glob("*/__init__.py")}
    assert len(packages) > 10
    assert packages <= set(rows)
    assert len(rows) == len(set(rows))


def test_the_places_for_a_change_exist():
    table = (PROJECT / "CONTRIBUTING.md").read_text().partition("| To change | Edit |")[2].partition("\n\n")[0]
    places = re.findall(r"`([\w/]+/[\w.]*)`", table)
    assert len(places) > 15
    assert [place for place in places if not any((root / place).exists() for root in (PROJECT, PACKAGES))] == []


def test_the_questions_name_their_threads():
    page = (DOCS / "faq.md").read_text()
    assert len(re.findall(r"^### ", page, re.MULTILINE)) >= 15
    links = re.findall(r"\[([^\]]+)\]\((https?://[^)]+)\)", page)
    assert len(links) >= 15
    for text, link in links:
        thread = re.fullmatch(r"https://github\.com/[\w-]+/([\w-]+)/(?:issues|pull)/(\d+)", link)
        assert thread, link
        name, _, number = text.rpartition("#")
        assert number == thread[2]
        assert name.strip() in ("", thread[1])
