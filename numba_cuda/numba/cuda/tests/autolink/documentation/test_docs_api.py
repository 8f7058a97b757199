# SPDX-License-Identifier: BSD-2-Clause
"""The reference, docs/api.md and its pages, has each public name, and each has a docstring that says something."""

from __future__ import annotations

import inspect
import re
import typing

import pytest
from numba.cuda import autolink
from repository import DOCS

REFERENCE = "".join(page.read_text() for page in sorted(DOCS.glob("api*.md")))


def test_the_reference_has_every_public_name():
    directive = r"^\.\. (?:auto(?!summary)\w+|py:data):: numba\.cuda\.autolink\.(\w+)(?:\(.*\))?$"
    assert sorted(re.findall(directive, REFERENCE, re.MULTILINE)) == sorted(autolink.__all__)


def test_the_tables_of_names_have_all_but_constants_and_errors():
    listed = re.findall(r"^   ~numba\.cuda\.autolink\.(\w+(?:\.\w+)?)$", REFERENCE, re.MULTILINE)
    names = [name for name in autolink.__all__ if not name.endswith(("Error", "Warning"))]
    modules = [f"{module}.{name}" for module in ("cache", "testing") for name in getattr(autolink, module).__all__]
    functions = [
        name
        for name in modules
        if inspect.isfunction(getattr(getattr(autolink, name.split(".")[0]), name.split(".")[1]))
    ]
    assert sorted(listed) == sorted([*(name for name in names if name not in NOT_CALLED), *functions])


@pytest.mark.parametrize("name", ["cache", "testing"])
def test_the_reference_has_every_public_name_of_the_modules(name):
    listed = re.search(rf"automodule:: numba\.cuda\.autolink\.{name}\n   :members: (.*)", REFERENCE)
    assert sorted(listed[1].split(", ")) == sorted(getattr(autolink, name).__all__)


NOT_CALLED = ("LinkItem", "by_value", "cache", "mdspan", "span", "state", "testing")


@pytest.mark.parametrize("name", [name for name in autolink.__all__ if name not in NOT_CALLED])
def test_every_parameter_is_explained(name):
    """In the docstring: by name in a section, or in the text for functions with one or none."""
    public = getattr(autolink, name)
    text = inspect.getdoc(public)
    assert text
    assert len(text.split()) >= 10
    if name in ("Report", "LinkedKernel", "DeviceCallable") or name.startswith(("Supports", "Cxx")):  # made by others
        return
    if name.endswith(("Error", "Warning")):  # raised by us
        return
    keys = typing.get_type_hints(public) if typing.is_typeddict(public) else inspect.signature(public).parameters
    parameters = [parameter for parameter in keys if not parameter.startswith("_")]
    if "`JitOptions` describes" in text:
        text += inspect.getdoc(autolink.JitOptions)
    if len(parameters) > 1:
        assert [parameter for parameter in parameters if not re.search(rf"\b{parameter}\b", text)] == []
