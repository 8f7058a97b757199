# SPDX-License-Identifier: BSD-2-Clause
"""What C++ does not know: names, namespaces and members, and which the source and its headers have."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from numba.cuda.cudadrv.external_code.compile.damaged_toolkit import explain_missing_namespace
from numba.cuda.cudadrv.external_code.compile.nvrtc_log import Diagnostic
from numba.cuda.cudadrv.external_code.compile.unknown_names import explain_undeclared, explain_unknown
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource
from numba.cuda.cudadrv.external_code.platform.target import Target

from numba_cuda_autolink.printable_texts import did_you_mean

from ..linkables.compiled_source import unit_of_sources
from .argument_kinds import split_label
from .cxx_errors import NAMESPACE, CxxError, make_error
from .declared_names import find_declared, find_enumerations, find_members, find_names, find_namespaces, find_template
from .enumerators import explain_enumerator, find_near
from .remedies import (
    NUMPY_TYPES,
    find_taken,
)

_MOST_DECLARATIONS = 3
_MOST_NAMES = 8
_USING = re.compile(r"using namespace (?P<whole>[\w: ]+);")
_NAMES_OF_NAMESPACES = re.compile(r"\b(\w+)(?=::)|\bnamespace\s+(\w+)")
_OF_LIBRARIES = ("cuda", "std", "cub", "thrust", "nca")  # namespaces of others
_NO_ENUMERATOR = re.compile(r'enum "(?P<name>[^"]*)" has no member "(?P<member>\w+)"')
_NO_MEMBER = re.compile(r'class "(?:const )?(?:\w+::)*(?P<name>\w+).*" has no member')


def no_namespace(error: Diagnostic, source: CUDASource, target: Target, log: str) -> CxxError:
    """Return the error for a library whose names are to be in a namespace that its C++ does not have."""
    written = _USING.search("".join(error.lines))
    namespace = written["whole"] if written else ""
    unknown = error.unknown.rpartition("::")[2] or namespace
    known = {"".join(found) for text in texts_of(source, target) for found in _NAMES_OF_NAMESPACES.findall(text)}
    near = difflib.get_close_matches(unknown, known - {unknown, "nca_check"}, n=1, cutoff=0.6)
    meant = f"did you mean {namespace.replace(unknown, near[0])}? Or " if near else ""
    remedy = f"{meant}include the header that has it, or leave out namespace= and name it in each call"
    remedy = explain_missing_namespace(namespace) or remedy
    return make_error([f"C++ has no namespace {namespace}"], [f"in Python: {NAMESPACE}"], remedy, log)


def find_declarations(label: str, source: CUDASource, target: Target) -> Iterator[str]:
    """Yield the declarations of the function that *label* names, as they are in *source* and its headers."""
    name = re.escape(split_label(label)[0].partition("<")[0].rpartition("::")[2])
    declared = re.compile(rf"^[^\n;{{}}/#=]*\b{name}\s*\([^;{{}}]*?\)(?=[^()]*[;{{])", re.MULTILINE)
    texts = texts_of(source, target)
    found = (" ".join(each.split()) for text in texts for each in declared.findall(text) if "nca_" not in each)
    yield from (f"declared: {each}" for each in itertools.islice(dict.fromkeys(found), _MOST_DECLARATIONS))


def explain_template_arguments(label: str, source: CUDASource, target: Target) -> str:
    """Return what to do about template arguments in *label* whose number or kinds are wrong."""
    names = re.findall(r"(\w+)(?=<)|^[\w:]*?(\w+)$", split_label(label)[0])
    parameters = find_template(texts_of(source, target), "".join(names[0])) if len(names) == 1 else ""
    return (
        f"write the arguments of template {parameters or '<...>'} in its order: types for class and typename,"
        " constants for others"
    )


def texts_of(source: CUDASource, target: Target) -> Iterator[str]:
    from numba.cuda.cudadrv.external_code.compile import programs

    return programs.texts_and_headers(unit_of_sources([source]), target)


def own_texts(source: CUDASource, target: Target) -> Iterator[str]:
    """Yield the text of the library in *source*, and those of the headers that it includes which are not CUDA's."""
    from numba.cuda.cudadrv.external_code.compile import programs

    yield source.compile_options.prologue.partition(NAMESPACE)[0]
    yield from (text for _, text in programs.included_files(unit_of_sources([source]), target, with_toolkit=False))


def explain_name(error: Diagnostic, label: str, source: CUDASource, target: Target) -> str:
    """Return what to do about a name in a call that C++ does not know; empty for another error."""
    name, called = error.unknown.rpartition("::")[2], split_label(label)[0]
    if not name:
        return ""
    options, texts = source.compile_options, list(texts_of(source, target))
    if of_enumeration := _NO_ENUMERATOR.match(error.text):
        meant = find_near(f"{of_enumeration['name']}::{of_enumeration['member']}", find_enumerations(texts))
        return f"did you mean {meant}?" if meant else f"name an enumerator of {of_enumeration['name']}, or add it there"
    if of_class := _NO_MEMBER.match(error.text):
        near = difflib.get_close_matches(name, sorted(find_members(texts, of_class["name"])), n=1)
        return f"did you mean {near[0]}?" if near else f"name a public member of {of_class['name']}, or add it there"
    used = {"", *_USING.findall(options.prologue.partition(NAMESPACE)[2])}
    scope = error.unknown.rpartition("::")[0]
    namespaces = {f"{each}::{scope}".strip(":") for each in used}  # a scope as it is written there
    own = [*own_texts(source, target)]
    declared = sorted({each for namespace in namespaces for each in _names_for_users(own, namespace)})
    written = {scope, *namespaces}
    if "class or namespace name" in error.text and called.startswith(f"{name}::"):
        name = called.partition("<")[0].rpartition("::")[2]
    found = [each for each in find_namespaces(texts, name) if each not in written]
    if found and not error.unknown.startswith("std::"):
        return f"write its namespace: {' or '.join(f'{namespace}::{name}' for namespace in found)}"
    macros = [macro for macro, _ in options.defines]
    if name not in declared and (alike := did_you_mean(name, declared)):
        return alike.removeprefix("; ").replace(" mean ", f" mean {scope}::" if scope else " mean ")
    others = {each for namespace in namespaces for each in find_names(texts, namespace)}
    if known := explain_unknown(error.unknown, texts, options.include_paths, macros, known=others):
        return known
    if called.startswith("["):
        return (
            f"for a variable of Python, give the lambda a parameter: [](..., auto {name}); or declare it in the source"
        )
    if re.search(rf"<.*\b{name}\b", called):
        if alike := did_you_mean(name, NUMPY_TYPES):
            return alike.removeprefix("; ")
        return f"write the value of a variable of Python into the name: lib[f{called.replace(name, f'{{{name}}}')!r}]"
    if name in declared:  # after the place
        return explain_undeclared(name)
    more = ", ..." if len(declared) > _MOST_NAMES else ""
    shown = [f"{scope}::{each}" if scope else each for each in declared[:_MOST_NAMES]]
    listed = f"; the source has {', '.join(shown)}{more}" if declared else ""
    return f"declare it in the source, include the header that does, or write its namespace{listed}"


def _names_for_users(texts: Sequence[str], namespace: str) -> set[str]:
    """Return the names that *texts* seem to declare in *namespace*, with those of constants."""
    constants = (each.name for each in find_declared(texts, namespace) if each.is_constant)
    return find_names(texts, namespace).union(name for name in constants if "::" not in name)


def explain_passed(
    name: str, error: Diagnostic, label: str, source: CUDASource, target: Target, ask_type: Callable[[str], str | None]
) -> tuple[str, str] | None:
    """Return what is wrong where a call passes *name*, which C++ does not know or which is a constant, and what to do;
    ``None`` for a function, and for a lambda."""
    if not re.fullmatch(r"(?:\w+::)*[A-Za-z_]\w*", name):
        return None
    if enumerator := explain_enumerator(name, texts_of(source, target), find_taken(error.text)):
        return enumerator
    last, known = name.rpartition("::")[2], ask_type(name)
    if known is None:
        unknown = replace(error, text=f'identifier "{last}" is undefined')
        return f"C++ has no {name!r}", explain_name(unknown, label, source, target)
    if known.startswith("const ") and not known.endswith(("]", ")")):
        taken = f'take it before the kernel: {last} = lib.eval("{name}")'
        return f"{name!r} is a constant of C++, which kernels do not read by its name", taken
    if known and not known.endswith(")"):
        return f"{name} is a variable of C++, not a function", "call a function of C++ that reads it"
    return None


def find_other_namespace(called: str, source: CUDASource, target: Target) -> str:
    """Return what to do where the source declares what is *called* in a namespace alone, and not where the call looks:
    CUDA has functions of its own, such as ``norm``, which C++ finds there. Empty for another name."""
    name, texts = called.partition("<")[0], list(texts_of(source, target))
    used = {"", *_USING.findall(source.compile_options.prologue.partition(NAMESPACE)[2])}
    if not name.isidentifier() or any(name in find_names(texts, each) for each in used):
        return ""
    own = [each for each in find_namespaces(texts, name) if each.partition("::")[0] not in _OF_LIBRARIES]
    written = " or ".join(f"lib[{f'{each}::{called}'!r}]" for each in own)
    return f"write its namespace, {written}: without it, {name} is a function of CUDA" if own else ""
