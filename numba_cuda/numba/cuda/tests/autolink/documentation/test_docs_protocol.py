# SPDX-License-Identifier: BSD-2-Clause
"""docs/protocol.md: each of its statements names its tests, and those that no other file has are here."""

from __future__ import annotations

import re

import pytest
from autolink_support import Linked, build, calling
from numba.cuda import autolink, types
from numba.cuda.autolink.protocol.ask import ask
from numba.cuda.autolink.protocol.callee import find_callee
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.inputs import kinds
from repository import DOCS, TESTS

PAGE = DOCS / "protocol.md"


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text()


def test_every_statement_names_its_tests(page):
    statements = re.findall(r"^\*\*([A-Z]\d+)\.\*\* ", page, re.MULTILINE)
    rows = re.findall(r"^- \*\*([A-Z]\d+)\*\*:((?:.|\n  )*)$", page, re.MULTILINE)
    assert len(statements) > 25
    assert [statement for statement, _ in rows] == statements
    for statement, tests in rows:
        for test in re.findall(r"`([^`]+)`", tests):
            file, _, name = test.partition("::")
            assert re.search(rf"^\s*def {name or 'test_'}", (TESTS / file).read_text(), re.MULTILINE), (statement, test)


def test_the_suffixes_that_the_page_names(page):
    """R2."""
    statement = page[page.index("**R2.**") : page.index("**R3.**")]
    known = [suffix for kind in kinds.KINDS for suffix in kind.suffixes]
    assert re.findall(r"`(\.\w+)`", statement) == known
    classes = {kind.linkable.__name__ for kind in kinds.KINDS} | {"CUDASource"}
    assert classes <= set(re.findall(r"\w+", statement))


def test_an_object_that_refuses_is_asked_before_anything_is_lowered():
    """T1: the kernel's own fault at lowering would come later."""

    def refuse():
        raise ValueError("not these types")

    spy = Linked("refusing", refuse)
    function = spy.function

    with pytest.raises(TypingError, match="not these types"):  # not a LoweringError
        build(calling(function))


@pytest.mark.counted
def test_equal_objects_are_each_asked():
    """T3."""
    asked = []

    class Equal:
        def __eq__(self, other):
            return isinstance(other, Equal)

        def __hash__(self):
            return 1

        def __numba_cuda_link__(self, x):
            asked.append(id(self))

    one, other = Equal(), Equal()
    for _ in range(2):
        for each in one, other:
            ask(find_callee(each), (types.int32,), autolink.Target((9, 0)))
    assert asked == [id(one), id(other)]


@pytest.mark.counted
def test_a_link_key_of_none_is_none():
    """K1: objects that say None are asked, each for itself."""
    asked = []

    class WithoutKey:
        def __numba_cuda_link_key__(self, x):
            return None

        def __numba_cuda_link__(self, x):
            asked.append(self)

    for _ in range(2):
        ask(find_callee(WithoutKey()), (types.int32,), autolink.Target((9, 0)))
    assert len(asked) == 2
