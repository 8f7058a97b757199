# SPDX-License-Identifier: BSD-2-Clause
"""The options that CUDA C++ is compiled with: those fields of `cuda.core.ProgramOptions` that a source can set."""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cuda.core import ProgramOptions as _AllOptions

_FROM_TARGET = "it follows from the kernel's target"
# Options that a source cannot set, and what to do instead.
RESERVED_OPTIONS = {
    **dict.fromkeys(("name", "arch", "relocatable_device_code", "link_time_optimization"), _FROM_TARGET),
    "extra_sources": _FROM_TARGET,
    "include_path": "use include_paths=",
    "define_macro": "use defines=",
}
OPTION_TYPES: dict[str, Any] = typing.get_type_hints(_AllOptions)

if TYPE_CHECKING:
    ProgramOptions = Mapping[str, Any]  # the stubs have the keys
else:
    _keys = {name: kind for name, kind in OPTION_TYPES.items() if name not in RESERVED_OPTIONS}
    ProgramOptions = typing.TypedDict("ProgramOptions", _keys, total=False)
NO_OPTIONS: ProgramOptions = {}


def described_options() -> dict[str, str]:
    """Return what cuda.core says of each key of `ProgramOptions`, where Python keeps docstrings."""
    _, _, attributes = (_AllOptions.__doc__ or "").partition("----------\n")
    field = re.compile(r"^    (\w+) ?: .*\n((?:        .*\n?)*)", re.MULTILINE)
    found = {name: " ".join(text.split()) for name, text in field.findall(attributes)}
    return {name: found.get(name, "") for name in OPTION_TYPES if name not in RESERVED_OPTIONS}


ProgramOptions.__doc__ = """The compile options of `cxx` and `CUDASource`, by name: the type of a dict.

``{"std": "c++20", "use_fast_math": True}``. All may be left out. Options have the names and meanings of the fields of
`cuda.core.ProgramOptions`, without those that the link sets itself.

Attributes
----------
""" + "\n".join(f"{name} :\n    {text}" for name, text in described_options().items())
