# SPDX-License-Identifier: BSD-2-Clause
"""docs/upstream.md and docs/architecture.md name what is there."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from repository import DOCS, PROJECT

PACKAGES = PROJECT / "numba_cuda" / "numba" / "cuda"


def test_the_list_of_seams_is_complete_and_in_order():
    from numba.cuda.autolink.frontends import numba_cuda as install

    named = re.findall(r"^`([\w.:]+)`\n: ", (DOCS / "upstream.md").read_text(), re.MULTILINE)
    assert named == [seam.path for seam in install.SEAMS]


def modules():
    """Every module and package, as the pages name them: ``protocol``, ``link_plan``, ``reports``."""
    found = set()
    for package in "autolink", "cudadrv":
        for path in (PACKAGES / package).iterdir():
            if path.suffix == ".py" or (path / "__init__.py").is_file():
                found.add(path.stem)
    return found


def test_the_diagram_names_modules_that_are_there():
    root = ElementTree.parse(DOCS / "_static" / "architecture.svg").getroot()
    texts = [e for e in root.iter("{http://www.w3.org/2000/svg}text") if e.get("class") == "module"]
    named = {name.strip() for e in texts for name in "".join(e.itertext()).split(",")}
    assert len(named) > 20
    assert named - modules() == set()


def test_the_page_names_modules_that_are_there():
    page = (DOCS / "architecture.md").read_text()
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert len(named) > 15
    assert named - modules() == set()


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
