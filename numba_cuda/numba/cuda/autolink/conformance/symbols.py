# SPDX-License-Identifier: BSD-2-Clause
"""The symbols that the call references: whether the code defines them, with the parameters that the call passes."""

from __future__ import annotations

from collections.abc import Mapping

from numba.cuda.cudadrv.external_code.compile import diagnostics
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.formats.ptx import Prototype
from numba.cuda.cudadrv.external_code.target import Target

from .findings import Findings
from .prototypes import Definitions, definitions
from .repetition import describe
from .subject import Subject

_DEFINED = "defines the symbols that the call references"
_PARAMETERS = "the parameters match the call"
_COMPILES = "code that compiles"


def check_symbols(subject: Subject, findings: Findings) -> bool:
    """Check that the code for each target defines the symbols, with the right parameters where they can be seen."""
    called = subject.symbols
    if not called:
        return findings.skip(_DEFINED, "the PTX of the call names none")
    with_prototype: set[str] = set()
    unseen: set[str] = set()
    for target in subject.targets:
        found = _definitions(subject, tuple(called), target, findings)
        if found is None:
            return False
        missing = set(called) - found.defined
        if missing and not found.opaque:
            names, code = ", ".join(sorted(missing)), ", ".join(map(describe, subject.answers[target]))
            return findings.fail(
                _DEFINED,
                f"no {names} in {code}\n{subject.build_error(target)}",
                f"a definition of {names}",
                'check its spelling, and declare it extern "C" __device__, so that C++ does not mangle the name',
            )
        if not _has_parameters(called, found.prototypes, findings):
            return False
        unseen |= missing
        with_prototype |= set(found.prototypes)
    if unseen:
        findings.skip(_DEFINED, f"the code that defines {', '.join(sorted(unseen))} cannot be read; see the links")
    else:
        findings.ok(_DEFINED)
    if with_prototype:
        return findings.ok(_PARAMETERS)
    return findings.skip(_PARAMETERS, "this kind of code does not show parameters")


def _definitions(subject: Subject, names: tuple[str, ...], target: Target, findings: Findings) -> Definitions | None:
    try:
        return definitions(subject.answers[target], names, target)
    except CompileError as error:
        findings.fail(_DEFINED, diagnostics.errors_in(error.log), _COMPILES, diagnostics.remedy(error.log))
    except Exception as error:
        findings.fail(_DEFINED, f"{type(error).__name__}: {error}", _COMPILES, "fix the source where the log says")
    return None


def _has_parameters(
    called: Mapping[str, Prototype | None], defined: Mapping[str, Prototype], findings: Findings
) -> bool:
    for symbol, prototype in called.items():
        if prototype is not None and symbol in defined and defined[symbol] != prototype:
            return findings.fail(
                _PARAMETERS,
                f"the definition of {symbol} {defined[symbol]}",
                f"as in the call, which {prototype}",
                "give the definition and the call the same number, sizes and order of parameters:"
                " autolink.cxx_type(x) is the C++ type of a parameter whose Numba type is x",
            )
    return True
