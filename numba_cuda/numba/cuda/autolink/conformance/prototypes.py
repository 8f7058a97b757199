# SPDX-License-Identifier: BSD-2-Clause
"""What a call passes to a symbol, and what the symbol's definition takes: both as PTX declares it.

The C ABI shows there: sizes, structs and their alignment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.compile import dispatch
from numba.cuda.cudadrv.external_code.formats.bounds import FormatError
from numba.cuda.cudadrv.external_code.formats.pieces import Piece, pieces
from numba.cuda.cudadrv.external_code.formats.ptx import Prototype, ptx_symbols
from numba.cuda.cudadrv.external_code.formats.symbols import defined_in
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link.probes import ptx_of_ltoir, symbols_of_ltoir
from numba.cuda.cudadrv.external_code.target import Target


def of_ptx(code: bytes) -> dict[str, Prototype]:
    """Return the prototypes of the functions that PTX declares or defines, as far as they can be read."""
    return {
        symbol.name: symbol.prototype
        for symbol in ptx_symbols(code)
        if symbol.prototype is not None and symbol.prototype.is_known
    }


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
            symbols = symbols_of_ltoir(code, names, target.arch)
            opaque = opaque or symbols is None
            here = set(symbols.defined) if symbols is not None else set()
            ptx = ptx_of_ltoir(code, tuple(sorted(here)), target.arch) if here else None
            texts = [ptx] if ptx is not None else []
        else:
            here = set(defined_in(kind.name, code)) & set(names)
            held = _pieces(kind.name, code)
            opaque = opaque or any(piece.code is None or piece.kind == "LTO-IR" for piece in held)
            texts = [piece.code for piece in held if piece.kind == "PTX" and piece.code is not None]
        defined |= here
        found |= {name: prototype for ptx in texts for name, prototype in of_ptx(ptx).items() if name in here}
    return Definitions(frozenset(defined), found, opaque)


def _pieces(kind: str, code: bytes) -> list[Piece]:
    try:
        return list(pieces(kind, code))
    except FormatError:
        return []
