# SPDX-License-Identifier: BSD-2-Clause
"""The search of the documentation: words of the index are answered on their pages, and users' words are in it."""

import re

import pytest
from repository import DOCS

PAGES = sorted(DOCS.glob("*.md"))
INDEX = re.compile(r"^```\{index\} (.*)$", re.MULTILINE)
AMERICAN = {"licence": "license"}
# What users type, and the page that answers.
TYPED = {
    "-O3": "cxx_by_name",
    "-Xptxas": "cxx_by_name",
    "AArch64": "index",
    "AMD": "index",
    "CMake": "how_to_ci",
    "JAX": "faq",
    "Jetson": "index",
    "SIMD": "cxx_by_name",
    "VS Code": "faq",
    "Volta": "index",
    "WSL": "index",
    "__restrict__": "cxx_by_name",
    "bank conflict": "how_to_slow",
    "cuDNN": "faq",
    "cffi": "faq",
    "colab": "faq",
    "fp8": "cxx_by_name",
    "gufunc": "faq",
    "half2": "cxx_by_name",
    "int128": "cxx_by_name",
    "ldg": "cxx_by_name",
    "libnvrtc": "faq",
    "limitations": "faq",
    "macOS": "index",
    "mbarrier": "cxx_by_name",
    "no kernel image": "debugging",
    "out of memory": "debugging",
    "quickstart": "index",
    "racecheck": "debugging",
    "scikit-build": "faq",
    "threadfence": "cxx_by_name",
    "timer": "cxx_by_name",
    "too many resources": "debugging",
    "virtual function": "cxx_by_name",
    "warpsize": "cxx_by_name",
}


def entries_of(page):
    """Yield the entries of the index on a page, in small letters."""
    for line in INDEX.findall(page.read_text()):
        yield from (entry.strip(" !").lower() for entry in line.split(","))


def words_of(text, stem):
    """Return the stems of the words in a text, as the search has them, in one spelling."""
    words = re.findall(r"[a-z0-9_+]+", text.lower().replace("-", " "))
    american = (re.sub(r"is(e|ed|ing|ation)$", r"iz\1", AMERICAN.get(word, word)) for word in words)
    return [stem(word) for word in american]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_word_of_the_index_is_on_its_page(page):
    """Somebody who searches for it and comes to the page finds a sentence with it."""
    stem = pytest.importorskip("snowballstemmer").stemmer("english").stemWord
    text = INDEX.sub("", page.read_text()).replace(
        "```{include} ../CHANGELOG.md", (DOCS.parent / "CHANGELOG.md").read_text()
    )
    on_page, letters = set(words_of(text, stem)), text.lower()
    unanswered = [
        entry
        for entry in entries_of(page)
        if not all(word in on_page or word in letters for word in words_of(entry, stem))
    ]
    assert unanswered == []


@pytest.mark.parametrize("word, page", TYPED.items())
def test_users_words_are_in_the_index(word, page):
    assert word.lower() in set(entries_of(DOCS / f"{page}.md"))
