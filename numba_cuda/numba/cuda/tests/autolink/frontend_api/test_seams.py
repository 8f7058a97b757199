# SPDX-License-Identifier: BSD-2-Clause
"""Seams: attributes of a front end are replaced all or none, are given their originals, and are restored."""

import sys
import types

import pytest
from numba.cuda.autolink.frontend_api.seams import MissingSeamError, Seams


@pytest.fixture
def compiler(monkeypatch):
    """A module ``a_compiler`` with a function, and a class whose subclass inherits a method."""
    module = types.ModuleType("a_compiler")

    class Base:
        def link(self):
            return ["linked"]

    class Library(Base):
        pass

    module.Library = Library
    module.build = lambda kernel: f"built {kernel}"
    monkeypatch.setitem(sys.modules, "a_compiler", module)
    return module


@pytest.fixture
def seams(compiler):
    """Seams with both."""
    made = Seams("a-compiler")
    made.in_place_of("a_compiler:build")(lambda original, kernel: original(kernel) + " with ours")
    made.in_place_of("a_compiler:Library.link")(lambda original, library: [*original(library), "ours"])
    return made


def test_what_was_replaced_is_restored(seams, compiler):
    original = compiler.build
    seams.replace([])
    seams.restore()
    assert not seams.active
    assert compiler.build is original
    assert "link" not in vars(compiler.Library)  # it is inherited again
    assert compiler.Library().link() == ["linked"]


def test_nothing_is_replaced_where_one_is_missing(seams, compiler):
    original = compiler.build
    seams.in_place_of("a_compiler:Library.unlink")(lambda original: None)
    with pytest.raises(MissingSeamError, match=r"cannot attach to a-compiler: it has no a_compiler:Library\.unlink\n"):
        seams.replace([])
    assert compiler.build is original and not seams.active
