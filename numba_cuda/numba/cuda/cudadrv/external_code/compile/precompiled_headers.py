# SPDX-License-Identifier: BSD-2-Clause
"""Precompiled headers: what a source begins with, parsed once for all sources of a process that begin the same way.

NVRTC does not notice that a header has changed. So a file stands for the contents that a manifest recorded, and is used
while the states of all these files are as they were; otherwise it is made again. The code is the same bytes as without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..headers.file_state import is_settled
from ..headers.manifest import HeaderManifest, HeaderWatch
from .nvrtc_child import LOOKUPS
from .translation_unit import TranslationUnit, fixed_include_paths, working_directory

VARIABLE = "NUMBA_CUDA_AUTOLINK_PCH"

_MOST = 2  # files of a process: each takes some 300 MB
# Options whose meaning is more than the code that is made, or that precompiled headers do not go with.
_REFUSED = ("create_pch", "debug", "fdevice_time_trace", "lineinfo", "pch", "pch_dir", "pre_include", "time", "use_pch")
_LINES = re.compile(r"(?:[^\\\n]|\\\n|\\.)*\n")
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w+)(?:[ \t]+(.*))?", re.DOTALL)
_LINE = re.compile(r'(\d+)[ \t]*("[^"\n]*")?\s*')
_COMMENT = re.compile(r"[ \t]*(?://.*|/\*(?:(?!\*/)[\s\S])*\*/)?[ \t\r]*\n")
_DEPTHS = {"if": 1, "ifdef": 1, "ifndef": 1, "endif": -1}
_OTHERS = ("include", "define", "undef", "pragma", "else", "elif")


class Beginning(NamedTuple):
    """The directives that a source begins with, up to its last ``#include`` there, and the rest of the source. NVRTC
    precompiles nothing after a ``#line``: the one in effect is moved to the rest."""

    directives: str
    rest: str

    @classmethod
    def of(cls, code: str) -> Beginning | None:
        kept: list[str] = []
        depth, end, line, name, found = 0, 0, 1, "", None
        includes = False
        for text in _lines(code):
            end += len(text)
            line += text.count("\n")
            directive = _DIRECTIVE.match(text)
            if directive is None or "/*" in text:
                if not _COMMENT.fullmatch(text):
                    break
                continue
            word, operand = directive[1], directive[2] or ""
            if word == "line":
                if depth or not (place := _LINE.fullmatch(operand)):
                    break
                line, name = int(place[1]), place[2] or name
                continue
            if word not in _DEPTHS and word not in _OTHERS:
                break
            kept.append(text)
            depth += _DEPTHS.get(word, 0)
            includes |= word == "include"
            if depth == 0 and includes:
                found = cls("".join(kept), f"#line {line} {name}\n{code[end:]}")
                includes = False
        return found


def _lines(code: str) -> Iterator[str]:
    """Yield the lines of *code*, spliced ones and comments of several lines as one."""
    at = 0
    while line := _LINES.match(code, at):
        at = line.end()
        if line[0].lstrip().startswith("/*") and (comment := _COMMENT.match(code, line.start())):
            at = comment.end()
        yield code[line.start() : at]


@dataclass(frozen=True)
class _File:
    """A file of precompiled headers, which may still be in the making."""

    path: str
    manifest: HeaderManifest
    watch: HeaderWatch

    def is_current(self) -> bool:
        """Whether no header was even touched since the manifest was made, and none has appeared."""
        made = self.manifest
        were_settled = all(is_settled(header.state, made.recorded) for header in made.headers)
        return were_settled and self.watch.unchanged() and self.watch.manifest.headers == made.headers

    def remove(self) -> None:
        for path in (self.path, f"{self.path}{LOOKUPS}"):
            with contextlib.suppress(OSError):
                os.unlink(path)


class PrecompiledHeaders:
    """The files of one child process, whose folder is removed with it."""

    def __init__(self, folder: str):
        self._folder = folder
        self._files: dict[object, _File] = {}

    def use(self, unit: TranslationUnit, options: Sequence[str]) -> tuple[str, list[str]]:
        """Return the code and the options with which *unit* is compiled: with a file, if there is one for it."""
        beginning = Beginning.of(unit.code) if self._files else None
        key = None if beginning is None else _key(unit, options, beginning)
        file = self._files.get(key)
        if beginning is None or file is None or not os.path.exists(file.path):
            return unit.code, [*options]
        if not file.is_current():
            self._files.pop(key).remove()
            return unit.code, [*options]
        return beginning.directives + beginning.rest, [*options, f"--use-pch={file.path}"]

    def to_make(
        self, unit: TranslationUnit, options: Sequence[str], manifest: HeaderManifest
    ) -> tuple[str, str] | None:
        """Return the path and the source of a file to make for sources that begin as *unit*, which read the headers of
        *manifest*; ``None`` if there is one, or it is not worth it. The oldest of too many files is removed."""
        if not worth(unit) or (beginning := Beginning.of(unit.code)) is None:
            return None
        key = _key(unit, options, beginning)
        if key in self._files:
            return None
        while len(self._files) >= _MOST:
            self._files.pop(next(iter(self._files))).remove()
        name = hashlib.sha256(f"{key!r} {manifest.digest} {manifest.recorded}".encode("utf-8", "backslashreplace"))
        path = os.path.join(self._folder, f"{name.hexdigest()[:32]}.pch")
        self._files[key] = _File(path, manifest, HeaderWatch(manifest, fixed_include_paths()))
        return path, beginning.directives


def enabled() -> bool:
    return os.environ.get(VARIABLE, "").strip() != "0"


def worth(unit: TranslationUnit) -> bool:
    return enabled() and not any(unit.option(option) for option in _REFUSED)


def _key(unit: TranslationUnit, options: Sequence[str], beginning: Beginning) -> tuple[object, ...]:
    return beginning.directives, tuple(options), os.path.dirname(unit.name), working_directory()
