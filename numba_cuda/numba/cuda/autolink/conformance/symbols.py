# SPDX-License-Identifier: BSD-2-Clause
"""The symbols that the call references: whether the code defines them, with the parameters that the call passes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.compile import diagnostics, dispatch
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.formats.bounds import FormatError
from numba.cuda.cudadrv.external_code.formats.pieces import pieces
from numba.cuda.cudadrv.external_code.formats.ptx import Prototype
from numba.cuda.cudadrv.external_code.formats.symbols import defined_in
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link.probes import ptx_of_ltoir, symbols_of_ltoir
from numba.cuda.cudadrv.external_code.target import Target

from .cxx_prototypes import mismatches
from .records import Findings, LinkedCode
from .subject import Subject, prototypes_in

_DEFINED = "defines the symbols that the call references"
_PARAMETERS = "the parameters match the call"
_SAME_PARAMETERS = (
    "give the definition and the call the same number, types and order of parameters:"
    " autolink.cxx_type(x) is the C++ type of a parameter whose Numba type is x"
)
_COMPILES = "code that compiles"


def check_symbols(subject: Subject, findings: Findings) -> bool:
    """Check that the code for each target defines the symbols, with the right parameters where they can be seen."""
    called = subject.symbols
    if not called:
        return findings.skip(_DEFINED, "the PTX of the call names none")
    with_prototype: set[str] = set()
    unseen: set[str] = set()
    for target in subject.targets:
        try:
            found = _definitions(subject.answers[target], tuple(called), target)
        except CompileError as error:
            return findings.fail(_DEFINED, diagnostics.errors_in(error.log), _COMPILES, diagnostics.remedy(error.log))
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
            return findings.fail(_DEFINED, got, _COMPILES, "fix the source where the log says")
        missing = set(called) - found.defined
        if missing and not found.opaque:
            names, code = ", ".join(sorted(missing)), ", ".join(map(str, map(LinkedCode.of, subject.answers[target])))
            return findings.fail(
                _DEFINED,
                f"no {names} in {code}\n{subject.build_error(target)}",
                f"a definition of {names}",
                'check its spelling, and declare it extern "C" __device__, so that C++ does not mangle the name',
            )
        if not _has_parameters(called, found.prototypes, findings):
            return False
        sources = [item for item in subject.answers[target] if item.kind is kinds.CUDA]
        wrong = [each for item in sources for each in mismatches(item, subject.function_types, target)]
        if wrong:
            return findings.fail(_PARAMETERS, "\n".join(wrong), "the types that the call passes", _SAME_PARAMETERS)
        unseen |= missing
        with_prototype |= set(found.prototypes)
    if unseen:
        findings.skip(_DEFINED, f"the code that defines {', '.join(sorted(unseen))} cannot be read; see the links")
    else:
        findings.ok(_DEFINED)
    if with_prototype:
        return findings.ok(_PARAMETERS)
    return findings.skip(_PARAMETERS, "this kind of code does not show parameters")


def _has_parameters(
    called: Mapping[str, Prototype | None], defined: Mapping[str, Prototype], findings: Findings
) -> bool:
    for symbol, prototype in called.items():
        if prototype is not None and symbol in defined and defined[symbol] != prototype:
            return findings.fail(
                _PARAMETERS,
                f"the definition of {symbol} {defined[symbol]}",
                f"as in the call, which {prototype}",
                _SAME_PARAMETERS,
            )
    return True


@dataclass(frozen=True)
class _Definitions:
    """What code shows of the symbols that a call references: those that it defines, the prototypes that can be read,
    and whether some of the code does not show what it defines."""

    defined: frozenset[str]
    prototypes: dict[str, Prototype]
    opaque: bool


def _definitions(inputs: Iterable[LinkInput], names: tuple[str, ...], target: Target) -> _Definitions:
    """Return which of the symbols *names* the code in *inputs* defines for *target*, and with which prototypes. Raise
    `CompileError` if a source does not compile."""
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
            held = []
            with contextlib.suppress(FormatError):
                held = list(pieces(kind.name, code))
            opaque = opaque or any(piece.code is None or piece.kind == "LTO-IR" for piece in held)
            texts = [piece.code for piece in held if piece.kind == "PTX" and piece.code is not None]
        defined |= here
        found |= {name: prototype for ptx in texts for name, prototype in prototypes_in(ptx).items() if name in here}
    return _Definitions(frozenset(defined), found, opaque)
