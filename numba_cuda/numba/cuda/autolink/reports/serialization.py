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


def to_json(report: KernelReport, indent: int | None) -> str:
    """Return the report as JSON text."""
    fields = dataclasses.asdict(report)
    return json.dumps({"format": FORMAT, "version": VERSION, **fields}, indent=indent, ensure_ascii=False)


def from_json(kind: type[_Report], text: str) -> _Report:
    """Return the report of class *kind* that *text* contains. Raise `ValueError` if *text* is not a report, or is one
    in another version of the format."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f'the text is not a report: expected a JSON object with "format": "{FORMAT}"')
    if data.get("version") != VERSION:
        raise ValueError(f"the report's format is version {data.get('version')!r}; expected version {VERSION}")
    report: _Report = _record(kind, {name: data[name] for name in data if name not in ("format", "version")})
    return report


def _record(kind: Any, data: Any) -> Any:
    hints = _hints(kind)
    if not isinstance(data, dict) or not set(data) <= set(hints):
        raise ValueError(f"{kind.__name__} has the fields {', '.join(hints)}; got {data!r:.80}")
    try:
        return kind(**{name: _value(hints[name], value) for name, value in data.items()})
    except TypeError as error:  # a field is missing
        raise ValueError(f"{kind.__name__}: {error}") from error


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _value(hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(hint):
        return _record(hint, value)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _value(next(each for each in arguments if each is not type(None)), value)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"expected a list, got {value!r:.80}")
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(_value(each, item) for each, item in zip(kinds, value, strict=True))
    expected: Any = {typing.Literal: str, float: (int, float)}.get(origin or hint, hint)
    if not isinstance(value, expected):
        raise ValueError(f"expected {getattr(hint, '__name__', hint)}, got {value!r:.80}")
    return value
