# SPDX-License-Identifier: BSD-2-Clause
"""Why C++ refuses a call: what NVRTC says of it, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from numba.cuda.cudadrv.external_code.compile import nvrtc_log
from numba.cuda.cudadrv.external_code.compile.mdspan_indices import BY_CALL
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.nvrtc_log import Diagnostic
from numba.cuda.cudadrv.external_code.compile.translation_unit import toolkit_include_paths
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..linkables.compiled_source import unit_of_sources
from .call_refusals import RefusedCall, explain_call
from .cxx_errors import (
    NAMESPACE,
    OWN_TEXTS,
    CxxError,
    find_details,
    make_error,
    name_structs,
    readable,
    shorten_log,
    split_declared,
    write_first_line,
)
from .log_of_calls import is_named_in
from .refused_names import no_namespace, texts_of
from .structs import find_changed

_INSTANTIATED = re.compile(r'\binstantiation of .* at line (?P<line>\d+) of "?(?P<file>[^"\n]+)"?$', re.MULTILINE)
_SOURCE_TITLE = "the C++ source of {} does not compile: {}", "the C++ source does not compile: {}"


def explain_refusal(
    label: str,
    error: CompileError,
    source: CUDASource,
    target: Target,
    ask_type: Callable[[str], str | None] = lambda expression: "",
) -> CxxError:
    """Return the error for what messages call *label*, whose *source* does not compile for *target*. *ask_type* returns
    the type of an expression of C++, empty if it has none or several, ``None`` if C++ does not know a name in it."""
    error = CompileError(label, name_structs(error.log, source.data))
    for name in find_changed(error.log):
        return CxxError(
            f"the layout of {name} has changed in C++ since Python was told\n  call: {label}\n"
            f"  what to do: call lib.record({name!r}) or lib.type({name!r}) again, and use the new dtype",
            error.log,
        )
    code = source.compile_options.prologue + source.data
    diagnostics = nvrtc_log.list_errors(error.log, code)
    errors = [each for each in diagnostics if each.place not in OWN_TEXTS]
    errors.sort(key=lambda each: each.is_unclosed and "(" in each.place)  # of a call: it follows from others
    own = ["\n".join(each.lines) for each in diagnostics if each.place in OWN_TEXTS]
    of_call = [each for each in errors if is_named_in("\n".join(each.lines), label)]
    if not of_call and any("nca::nca_bound<" in each and (not errors or is_named_in(each, label)) for each in own):
        return CxxError(
            f"{label}: a struct has a base class or an anonymous member, as no tuple or dtype has\n"
            "  what to do: let a lambda, lib.expr(...), return its numbers; or keep it in memory of a lib.type(...)",
            error.log,
        )
    if "taking the address of a bit field is not allowed" in error.log and "(" not in label:
        return CxxError(
            f"{label} has a bit-field, as no dtype has\n"
            "  what to do: C++ returns such structs, as tuples; or keep them in memory of a lib.type(...)",
            error.log,
        )
    if not errors:
        return CxxError(f"{label} does not compile\n{shorten_log(error.log)}", error.log)
    first = errors[0]
    if not first.line:
        return _refuse_options(first, label, source, target, error.log)
    if first.place == NAMESPACE:
        return no_namespace(first, source, target, error.log)
    # An error of the source itself is no call's, as one in a template that another call instantiates is.
    if not of_call or (first is not of_call[0] and "(" not in first.place and BY_CALL not in "".join(first.lines)):
        return _refuse_source(errors, diagnostics, label, source, target, error.log)
    return explain_call(RefusedCall(label, tuple(of_call), source, target, error.log), ask_type)


def _refuse_options(first: Diagnostic, label: str, source: CUDASource, target: Target, log: str) -> CxxError:
    """Return the error whose *first* diagnostic is at no line: of the options, of assembly, or of a limit that was
    reached."""
    from numba.cuda.cudadrv.external_code.explain.source_errors import places_of_assembly

    remedy = nvrtc_log.remedy(first, source.compile_options)
    places = places_of_assembly(log, [unit_of_sources([source])], target)
    title = write_first_line(("{} does not compile: {}", "{}"), label, first.text)
    given = [f"in Python: {NAMESPACE}"] if first.place == "nvrtc" else []
    return make_error(title, [*given, *(f"in C++: {place}" for place in places.values())], remedy, log)


def _refuse_source(
    errors: Sequence[Diagnostic],
    diagnostics: Sequence[Diagnostic],
    label: str,
    source: CUDASource,
    target: Target,
    log: str,
) -> CxxError:
    """Return the error for *errors* of the *source* itself, which are among all *diagnostics* of it."""
    from numba.cuda.cudadrv.external_code.explain.source_errors import describe_chain

    first, options = errors[0], source.compile_options
    code = options.prologue + source.data
    chain = describe_chain(first, code, "the source", options.include_paths)
    text, declared = split_declared(readable(first.text))
    details = find_details(first.lines, label)
    place = [f"at: {first.place}:{first.line}"]
    if user := _find_instantiation(first):
        place = [f"at: {user}"]
        details.insert(0, f"in the header: {first.place}:{first.line}")
    elif details[1:2] and details[1].strip() == "^":
        place += [f"    {each}" for each in details[:2]]
        del details[:2]
    others = nvrtc_log.other_errors(errors)
    more = nvrtc_log.list_others((f"{each.place}:{each.line}", readable(each.text)) for each in others)
    remedy = nvrtc_log.remedy(first, options, texts_of(source, target), diagnostics)
    title = write_first_line(_SOURCE_TITLE, label, text)
    return make_error(title, [*details, *chain, *declared], remedy, log, place=place, more=more)


def _find_instantiation(error: Diagnostic) -> str:
    """Return the place in the user's code that instantiates what an *error* in a header of CUDA is about; empty where
    the error is in the user's code, or that is not known."""
    toolkit = toolkit_include_paths()
    if not error.place.startswith(toolkit):
        return ""
    found = [*_INSTANTIATED.finditer("\n".join(error.lines))]
    return next((f"{each['file']}:{each['line']}" for each in found if not each["file"].startswith(toolkit)), "")
