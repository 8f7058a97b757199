# SPDX-License-Identifier: BSD-2-Clause
"""Reports as JSON: one object with the fields of the records, a ``format`` and its ``version``."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from typing import Any, TypeVar

from .records import KernelReport

FORMAT = "numba-cuda-autolink report"
VERSION = 2  # raised when a reader of the previous version would misread
_Report = TypeVar("_Report")
_hints = functools.cache(typing.get_type_hints)


def to_json(report: KernelReport, *, indent: int | None = 2) -> str:
    """Return the report as JSON, from which `from_json` makes an equal one."""
    fields = dataclasses.asdict(report)
    return json.dumps({"format": FORMAT, "version": VERSION, **fields}, indent=indent, ensure_ascii=False)


def from_json(kind: type[_Report], text: str) -> _Report:
    """Return the report of class *kind* that *text* contains, or raise `ValueError`."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise ValueError(f'the text is not a report: expected a JSON object with "format": "{FORMAT}"')
    if (version := data.pop("version", None)) != VERSION:
        raise ValueError(f"the report's format is version {version!r}; expected version {VERSION}")
    report: _Report = _value(kind, data)
    return report


def _value(hint: Any, value: Any) -> Any:
    """Return the *value* of a field with the type *hint*."""
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = _hints(hint)
        if not isinstance(value, dict) or not value.keys() <= hints.keys():
            raise ValueError(f"{hint.__name__} has the fields {', '.join(hints)}; got {value!r:.80}")
        try:
            return hint(**{name: _value(hints[name], each) for name, each in value.items()})
        except TypeError as error:  # a field is missing
            raise ValueError(f"{hint.__name__}: {error}") from error
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _value(arguments[0], value)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"expected a list, got {value!r:.80}")
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(_value(each, item) for each, item in zip(kinds, value, strict=True))
    expected: Any = {typing.Literal: str, float: (int, float)}.get(origin, hint)
    if not isinstance(value, expected):
        raise ValueError(f"expected {getattr(hint, '__name__', hint)}, got {value!r:.80}")
    return value
