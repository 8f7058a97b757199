# SPDX-License-Identifier: BSD-2-Clause
"""Prototypes of device functions as PTX shows them, both where they are called and where they are defined.

PTX shows the C ABI: sizes, structs and their alignment.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.compile import dispatch
from numba.cuda.cudadrv.external_code.formats import containers, defined_symbols
from numba.cuda.cudadrv.external_code.formats.symbols import in_ltoir, ptx_with
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.target import Target

_FUNCTION = re.compile(
    r"\.func\s*(?:\((?P<returns>[^)]*)\)\s*)?(?P<name>[\w$]+)\s*(?:\((?P<parameters>[^)]*)\))?", re.MULTILINE
)
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.[a-z](\d+)\s+[\w$%]+(?:\[(\d+)\])?")


@dataclass(frozen=True)
class Parameter:
    """A parameter or a result: its size in bytes, and the alignment of a struct."""

    size: int
    align: int | None = None

    def __str__(self) -> str:
        return f"{self.size} bytes" if self.align is None else f"a struct of {self.size} bytes aligned to {self.align}"


@dataclass(frozen=True)
class Prototype:
    """The parameters and the result of a function."""

    returns: Parameter | None
    parameters: tuple[Parameter, ...]

    def __str__(self) -> str:
        takes = ", ".join(map(str, self.parameters)) or "nothing"
        return f"takes {takes} and returns {self.returns or 'nothing'}"


def of_ptx(text: str) -> dict[str, Prototype]:
    """Return the prototypes, as far as they can be read, of the functions that PTX declares or defines."""
    found: dict[str, Prototype] = {}
    for function in _FUNCTION.finditer(text):
        returns, parameters = _parameters(function["returns"]), _parameters(function["parameters"])
        if returns is not None and parameters is not None and len(returns) < 2:
            found.setdefault(function["name"], Prototype(returns[0] if returns else None, parameters))
    return found


def _parameters(text: str | None) -> tuple[Parameter, ...] | None:
    found = []
    for part in (text or "").split(","):
        if not part.strip():
            continue
        match = _PARAMETER.search(part)
        if match is None:
            return None
        align, bits, count = match.groups()
        size = int(bits) // 8
        # Numbers of 1 and 2 bytes are passed in 4.
        found.append(Parameter(max(size, 4)) if count is None else Parameter(size * int(count), int(align or 1)))
    return tuple(found)


@dataclass(frozen=True)
class Definitions:
    """What code shows of the symbols that a call references.

    Attributes
    ----------
    defined, prototypes:
        The symbols that it defines, and the prototypes that can be read.
    opaque:
        Whether some of the code does not show what it defines.
    """

    defined: frozenset[str]
    prototypes: dict[str, Prototype]
    opaque: bool


def definitions(inputs: Iterable[LinkInput], names: tuple[str, ...], target: Target) -> Definitions:
    """Return which of the symbols *names* the code in *inputs* defines for *target*, and with which prototypes.

    Raises
    ------
    CompileError
        If a source does not compile.
    """
    defined: set[str] = set()
    found: dict[str, Prototype] = {}
    opaque = False
    for item in inputs:
        kind, code = item.kind, item.code
        if kind.is_compiled:
            # Always to LTO-IR, which shows more than a cubin.
            program = dispatch.compiled(item, dataclasses.replace(target, lto=True))
            kind, code = program.kind, program.code
        if kind is kinds.LTO_IR:
            symbols = in_ltoir(code, names, target.arch)
            opaque = opaque or symbols is None
            here = set(symbols.defined) if symbols is not None else set()
            text = ptx_with(code, tuple(sorted(here)), target.arch) if here else None
        else:
            here = set(defined_symbols.in_code(kind.name, code)) & set(names)
            opaque = opaque or defined_symbols.is_compressed(kind.name, code) or _has_ltoir(kind.name, code)
            text = "\n".join(_ptx_in(kind.name, code))
        defined |= here
        found |= {name: prototype for name, prototype in of_ptx(text or "").items() if name in here}
    return Definitions(frozenset(defined), found, opaque)


def _ptx_in(kind: str, code: bytes) -> list[str]:
    return [text.decode("utf-8", "replace") for piece, text in _pieces(kind, code) if piece == "PTX"]


def _has_ltoir(kind: str, code: bytes) -> bool:
    return any(piece == "LTO-IR" for piece, _ in _pieces(kind, code))


def _pieces(kind: str, code: bytes) -> list[tuple[str, bytes]]:
    try:
        return [(piece.kind, piece.code) for piece in containers.pieces(kind, code) if piece.code is not None]
    except containers.FormatError:
        return []
