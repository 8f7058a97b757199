# SPDX-License-Identifier: BSD-2-Clause
"""The symbols that the call references: whether the code defines them, with the parameters that the call passes."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.compile import nvrtc_log, programs
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.prototype_assertions import PrototypeError
from numba.cuda.cudadrv.external_code.explain.source_errors import find_defined_among
from numba.cuda.cudadrv.external_code.formats.containers import pieces
from numba.cuda.cudadrv.external_code.formats.symbols import find_defined
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link.ltoir_symbols import ptx_of_ltoir, symbols_of_ltoir
from numba.cuda.cudadrv.external_code.platform.target import Target

from numba_cuda_autolink.errors import FormatError
from numba_cuda_autolink.ptx import Prototype

from .records import FailedError, LinkedCode, SkippedError
from .subject import Subject, prototypes_in


@dataclass(frozen=True)
class _Definitions:
    """What code shows of the symbols that a call references: those that it defines, the prototypes that can be read,
    and whether some of the code does not show what it defines."""

    defined: frozenset[str]
    prototypes: dict[str, Prototype]
    opaque: bool


def check_symbols(subject: Subject) -> bool:
    """Return whether the code for each target defines the symbols, with the right parameters where they can be seen."""
    found: dict[Target, _Definitions] = {}
    with subject.findings.check("its source compiles"):
        if not any([_compile(target, subject) for target in subject.targets]):
            raise SkippedError("it returns none")
    if subject.findings.wrong:
        return False
    with subject.findings.check("defines the symbols that the call references"):
        if not subject.symbols:
            raise SkippedError("the PTX of the call names none")
        found |= {target: _definitions_for(target, subject) for target in subject.targets}
        unseen = set(subject.symbols) - frozenset.intersection(*(each.defined for each in found.values()))
        if unseen:
            raise SkippedError(f"the code that defines {', '.join(sorted(unseen))} cannot be read; see the links")
    if found:
        with subject.findings.check("the parameters match the call"):
            for target, each in found.items():
                _check_parameters(subject, target, each.prototypes)
            if not any(each.prototypes for each in found.values()):
                raise SkippedError("this kind of code does not show parameters")
    return not subject.findings.wrong


def _compile(target: Target, subject: Subject) -> bool:
    """Compile the sources, as for `_definitions`, and return whether there are any."""
    sources = [item for item in subject.answers[target] if item.kind.is_compiled]
    try:
        for item in sources:
            programs.compiled(item, dataclasses.replace(target, lto=True))
    except CompileError as error:
        todo = nvrtc_log.remedy(error.log)
        raise FailedError(nvrtc_log.errors_in(error.log), "code that compiles", todo) from error
    except Exception as error:
        todo = "fix the source where the log says"
        raise FailedError(f"{type(error).__name__}: {error}", "code that compiles", todo) from error
    return bool(sources)


def _definitions_for(target: Target, subject: Subject) -> _Definitions:
    inputs = subject.answers[target]
    found = _definitions(inputs, tuple(subject.symbols), target)
    missing = ", ".join(sorted(set(subject.symbols) - found.defined))
    if missing and not found.opaque:
        code = ", ".join(str(LinkedCode.of(item)) for item in inputs)
        near = re.search(r"near miss: .* (defines .*)", subject.build_error(target))
        got = f"no {missing} in {code}{f', which {near[1]}' if near else ''}"
        todo = 'check its spelling, and declare it extern "C" __device__, so that C++ does not mangle the name'
        raise FailedError(got, f"a definition of {missing}", todo)
    return found


def _check_parameters(subject: Subject, target: Target, defined: Mapping[str, Prototype]) -> None:
    todo = (
        "give the definition and the call the same number, types and order of parameters:"
        " autolink.cxx_type(x) is the C++ type of a parameter whose Numba type is x"
    )
    for source in (item for item in subject.answers[target] if item.kind is kinds.CUDA):
        try:
            programs.compiled(source, dataclasses.replace(target, lto=True), called=subject.called)
        except PrototypeError as error:
            if wrong := find_defined_among(source, error.wrong, target):
                got = [each.declaration or ", ".join(map(str, each.members)) for each in wrong]
                expected = [each.called.declaration for each in wrong]
                raise FailedError("\n".join(got), "\n".join(expected), todo) from None
    for symbol, called in subject.symbols.items():
        if called is not None and defined.get(symbol, called) != called:
            raise FailedError(f"the definition of {symbol} {defined[symbol]}", f"as in the call, which {called}", todo)


def _definitions(inputs: Iterable[LinkInput], names: tuple[str, ...], target: Target) -> _Definitions:
    """Return what *inputs*, whose sources compile, show of the symbols *names*."""
    defined: set[str] = set()
    found: dict[str, Prototype] = {}
    opaque = False
    for item in inputs:
        kind, code = item.kind, item.code
        if kind.is_compiled:
            # Always to LTO-IR, which shows more than a cubin.
            program = programs.compiled(item, dataclasses.replace(target, lto=True))
            kind, code = program.kind, program.code
        if kind is kinds.LTO_IR:
            (symbols,) = symbols_of_ltoir([code], names, target.arch)
            opaque = opaque or symbols is None
            here = set(symbols.defined) if symbols is not None else set()
            ptx = ptx_of_ltoir([code], tuple(sorted(here)), target.arch) if here else None
            texts = [ptx] if ptx is not None else []
        else:
            here = set(find_defined(kind.name, code)) & set(names)
            held = []
            with contextlib.suppress(FormatError):
                held = list(pieces(kind.name, code))
            opaque = opaque or any(piece.code is None or piece.kind == "LTO-IR" for piece in held)
            texts = [piece.code for piece in held if piece.kind == "PTX" and piece.code is not None]
        defined |= here
        found |= {name: prototype for ptx in texts for name, prototype in prototypes_in(ptx).items() if name in here}
    return _Definitions(frozenset(defined), found, opaque)
