# SPDX-License-Identifier: BSD-2-Clause
"""Why C++ refuses a call: what NVRTC says of it, without the text that is ours."""

from __future__ import annotations

import difflib
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from numba.cuda.cudadrv.external_code.compile import nvrtc_log
from numba.cuda.cudadrv.external_code.compile.damaged_toolkit import explain_missing_namespace
from numba.cuda.cudadrv.external_code.compile.mdspan_indices import BY_CALL
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.nvrtc_log import Diagnostic
from numba.cuda.cudadrv.external_code.compile.template_deduction import explain_conflict, find_undeduced
from numba.cuda.cudadrv.external_code.compile.translation_unit import KERNEL_MARK
from numba.cuda.cudadrv.external_code.compile.unknown_names import explain_undeclared, explain_unknown
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource
from numba.cuda.cudadrv.external_code.platform.target import Target

from numba_cuda_autolink.printable_texts import did_you_mean

from ..c_abi.c_types import CABIError
from ..linkables.compiled_source import unit_of_sources
from .argument_kinds import as_pointers, explain_kinds, list_arguments, split_label
from .declared_names import find_enumerations, find_members, find_names, find_namespaces, find_template, is_functor
from .enumerators import explain_enumerator, find_near
from .refused_classes import RefusedClass, explain_class
from .refused_views import explain_view
from .remedies import (
    NUMPY_TYPES,
    PASS_ARRAY,
    PASS_OTHERS,
    explain_candidate,
    explain_candidates,
    explain_error,
    explain_kind,
    explain_misfit,
    explain_operator,
    explain_pointer,
    find_taken,
    number_of_argument,
)
from .structs import find_changed

_MOST_LINES = 6
_MOST_DECLARATIONS = 3
_MOST_NAMES = 8
_WRONG_NUMBER = {
    "too few arguments in function call": "pass the arguments that C++ declares: those with = may be left out",
    "too many arguments in function call": "pass no more arguments than C++ declares",
}
_LONGEST = 118
_OWN = ("prelude", "__nv_name_map")
_NOTE = re.compile(r"(?P<place>.*?)\((?P<line>\d+)\): note(?: #[\w-]+)?: (?P<text>.*)")
_BUILT_IN_NOTE = re.compile(r"\s*Note #[\w-]+: (?P<text>.*)")  # of a function of the compiler's own, at no line
_WITH_CALL = re.compile(r"nca_call|nca_T=|cxx_\w+_[0-9a-f]{16}|\bnca::|<error-type>")
NAMESPACE = "namespace of autolink.cxx"  # what NVRTC calls the text that uses it
_USING = re.compile(r"using namespace (?P<whole>[\w: ]+);")
_NAMES_OF_NAMESPACES = re.compile(r"\b(\w+)(?=::)|\bnamespace\s+(\w+)")
_LAMBDA = re.compile(r" *inline __device__ auto cxx_\w+_made\(\) \{ return (?P<text>.*); \}$")
_STRING_FOR = re.compile(r'of type "const char \*" is incompatible with parameter of type "(?P<type>[A-Za-z_][\w:]*)"')
_HALF = re.compile(r"__half|__nv_bfloat16")
_CANDIDATE = re.compile(r'\bfunction (?:template )?"')  # with its declaration
_WARNING = re.compile(r".*\(\d+\): (?:warning|remark)\b")
_SUMMARY = re.compile(r"^\d+ (?:catastrophic )?errors? detected in the compilation of .*", re.MULTILINE)
# Headers with operators of their own types, which NVRTC lists as candidates for all other types.
_OTHER_OPERATORS = re.compile(r"cuda_(?:fp16|bf16)\.hp?p?$")
# Kernels of C++ are not device functions, but NVRTC lets device code call them. So each library's kernels are marked
# as deprecated, and NVRTC warns where overload resolution chooses one. This stands before each library's source;
# NVRTC's own definition is the same without the attribute.
MARKED_KERNELS = f"""#undef __global__
#define __global__ __location__(global) __attribute__((deprecated("{KERNEL_MARK}")))
"""
# The first line of an error: with what messages call the call, and without where there is no room for it.
_CALL_TITLE = "{}: {}", "{}"
_SOURCE_TITLE = "the C++ source of {} does not compile: {}", "the C++ source does not compile: {}"
_SHORTEST_LABEL = 20
_OF_LIBRARIES = ("cuda", "std", "cub", "thrust", "nca")  # namespaces of others
_ALSO_KNOWN = re.compile(r' \(aka "[^"]*"\)')
_TEMPLATE_ARGUMENTS = re.compile(r"<(?!\.\.\.>)(?:[^<>]|<\.\.\.>)+>")
_STRIDED_ARGUMENT = re.compile(r"array\([^()]*, \dd, A\)")
# What a call's text calls a struct that has a dtype, a function that is an argument, and a struct that it declares for
# a record.
_ALIAS = re.compile(r"using (nca_record_[0-9a-f]+)_t = (.*?);")
_FUNCTOR = re.compile(r'#line 1 "(.*)"\nstruct (nca_functor_[0-9a-f]+) ')
_STRUCT = re.compile(r"\bnca_(?:(record|functor)|struct)_[0-9a-f]{12}\b")
_USED = re.compile(
    rf'.*: function "(?P<name>.*)" was declared deprecated \("{KERNEL_MARK}"\)\n(?P<line>.*)\n(?P<caret> *)\^'
)
_WRONG_TEMPLATE_ARGUMENTS = re.compile(
    r'substituting explicit template arguments "(<.*>)" for function template "[\w:]+" failed'
    r'|too (?:many|few) arguments for class template|argument list for class template "[\w:]+" is missing'
    r"|expected a type specifier$|type name is not allowed$",
    re.MULTILINE,
)
# A template that the call gives its arguments, of which NVRTC does not tell the parameters, and a pointer to one.
_NAMELESS = re.compile(r'(?P<whole>function template "(?P<name>[\w:]+)") does not match because argument #')
_FUNCTION = re.compile(r".* \(\*\)\((?P<parameters>.*)\)(?: noexcept)?")
_OVERLOADS = re.compile("no instance of|more than one instance of")
# Of the call of an operator: there is none outside classes, or it does not take these arguments.
_NO_OPERATOR = re.compile(
    r'identifier "operator|.*no member "operator|no instance of|more than one instance of|no suitable .* from "'
)
_DECLARED = re.compile(r" \((?P<what>declared|previous definition) at (?P<place>[^()]*)\)")
_NO_ENUMERATOR = re.compile(r'enum "(?P<name>[^"]*)" has no member "(?P<member>\w+)"')
_NO_MEMBER = re.compile(r'class "(?:const )?(?:\w+::)*(?P<name>\w+).*" has no member')
# The function of the prelude that refers to the object of a call, and that to the memory for one.
_NO_OBJECT = re.compile(r'"nca::nca_(?P<what>self|memory)')
_ARRAY_ARGUMENT = re.compile(r"array\((?P<element>.*?), \dd, [ACF]\)")
_OBJECT_TYPE = re.compile(r"^\s*object type is: ", re.MULTILINE)
_GIVEN_TYPES = re.compile(r"argument types are: \((?:const )?(?P<type>.*)\)")
_LAUNCHED = re.compile(r"[\w:]+\s*(?:<[^<>]*>\s*)?<<<")


class CxxError(CABIError):
    """C++ refuses a call, or does not have a name as it is used. ``log`` is all that NVRTC printed."""

    __module__ = "numba.cuda.autolink"  # as tracebacks show it

    def __init__(self, message: str, log: str = ""):
        self.log = log
        self._explained: CxxError | None = None  # with what the types of the arguments tell, once that is known
        super().__init__(message)


def explain_refusal(
    label: str,
    error: CompileError,
    source: CUDASource,
    target: Target,
    ask_type: Callable[[str], str | None] = lambda expression: "",
) -> CxxError:
    """Return the error for what messages call *label*, whose *source* does not compile for *target*. *ask_type* returns
    the type of an expression of C++, empty if it has none or several, ``None`` if C++ does not know a name in it."""
    error = CompileError(label, _name_structs(error.log, source.data))
    for name in find_changed(error.log):
        return CxxError(
            f"the layout of {name} has changed in C++ since Python was told\n  call: {label}\n"
            f"  what to do: call lib.record({name!r}) or lib.type({name!r}) again, and use the new dtype",
            error.log,
        )
    code = source.compile_options.prologue + source.data
    diagnostics = nvrtc_log.list_errors(error.log, code)
    errors = [each for each in diagnostics if each.place not in _OWN]
    errors.sort(key=lambda each: each.is_unclosed and "(" in each.place)  # of a call: it follows from others
    own = ["\n".join(each.lines) for each in diagnostics if each.place in _OWN]
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
        return CxxError(f"{label} does not compile\n{_shortened(error.log)}", error.log)
    first = errors[0]
    if not first.line:  # of the options, of assembly, or of a limit that was reached
        from numba.cuda.cudadrv.external_code.explain.source_errors import places_of_assembly

        remedy = nvrtc_log.remedy(first, source.compile_options)
        places = places_of_assembly(error.log, [unit_of_sources([source])], target)
        title = _write_first_line(("{} does not compile: {}", "{}"), label, first.text)
        given = [f"in Python: {NAMESPACE}"] if first.place == "nvrtc" else []
        return _error(title, [*given, *(f"in C++: {place}" for place in places.values())], remedy, error.log)
    if first.place == NAMESPACE:
        return _no_namespace(first, source, target, error.log)
    # An error of the source itself is no call's, as one in a template that another call instantiates is.
    if not of_call or (first is not of_call[0] and "(" not in first.place and BY_CALL not in "".join(first.lines)):
        from numba.cuda.cudadrv.external_code.explain.source_errors import describe_chain

        options = source.compile_options
        chain = describe_chain(first, code, "the source", options.include_paths)
        text, declared = _split_declared(_readable(first.text))
        details = _details(first.lines, label)
        place = [f"at: {first.place}:{first.line}"]
        if details[1:2] and details[1].strip() == "^":
            place += [f"    {each}" for each in details[:2]]
            del details[:2]
        more = nvrtc_log.list_others((f"{each.place}:{each.line}", _readable(each.text)) for each in errors[1:])
        remedy = nvrtc_log.remedy(first, options, _texts(source, target), diagnostics)
        title = _write_first_line(_SOURCE_TITLE, label, text)
        return _error(title, [*details, *chain, *declared], remedy, error.log, place=place, more=more)
    first = _with_own_candidates(of_call[0], split_label(label)[0], ask_type)
    at = [] if first.place == label else [f"in C++: {first.place}:{first.line}"]
    opening, (called, passed_types) = _find_unclosed(label), split_label(label)
    arguments = list_arguments(passed_types)
    if opening and (opening == "<" or first.text.startswith(("expected", "expression preceding"))):
        text = _readable(first.text) if first.text.startswith("expected") else f"a {opening} is not closed"
        details = [*at, *_details(first.lines, label)]
        return _error(_write_first_line(_CALL_TITLE, label, text), details, f"close what {opening} opens", error.log)
    if surplus := _find_surplus(called):
        text = f"the name has a {surplus} that ends nothing"
        return _error(_write_first_line(_CALL_TITLE, label, text), at, f"leave out the {surplus}", error.log)
    if found := _NO_OBJECT.search(first.text):
        text, remedy = _explain_object(found["what"], label, "\n".join(first.lines))
        return _error(_write_first_line(_CALL_TITLE, label, text), at, remedy, error.log)
    if view := explain_view(first, _readable(first.text), label):
        title = _write_first_line(_CALL_TITLE, label, view.diagnosis)
        return _error(title, [*at, view.takes], view.remedy, error.log)
    for name, _ in _FUNCTOR.findall(source.data):
        if first.unknown and first.unknown != name:
            continue
        if passed := _explain_passed(name, first, label, source, target, ask_type):
            return _error(_write_first_line(_CALL_TITLE, label, passed[0]), at, passed[1], error.log)
    kind = explain_kind(_readable(first.text), first, arguments)
    is_constructor = "nca::nca_memory<" in source.data  # which is called with memory for an object
    refused = None if kind or is_constructor else explain_class(first, called)
    if refused is not None:
        return _refuse_class(refused, called, label, error.log, _texts(source, target))
    if kind:
        details = sorted([*at, *_details(first.lines, label)], key=lambda each: _HALF.search(each) is not None)
        return _error(_write_first_line(_CALL_TITLE, label, kind[0]), details, kind[1], error.log)
    details_of_source: list[str] = []
    text, remedy = explain_error(_readable(first.text).rstrip(":"), called)
    if number := number_of_argument(first):
        text, remedy = _explain_argument(of_call, number, arguments, text, remedy, _texts(source, target))
    remedy = first.explain_standard(source.compile_options) or explain_pointer(text, first, label) or remedy
    if _NO_OPERATOR.match(first.text):
        remedy = explain_operator(called, arguments) or remedy
    remedy = remedy or _explain_name(first, label, source, target)
    if not remedy and "void*" in passed_types:
        remedy = "a pointer to what is not a number is a void*: cast it, lib.expr('[](auto* p) { return f((T*)p); }')"
    if not remedy and (strided := _STRIDED_ARGUMENT.search(label)):
        remedy = f"pass a contiguous array where C++ takes a pointer: a strided one, {strided[0]}, is an mdspan to C++"
    elif "failed deduction" in "\n".join(first.lines) and called.startswith("["):
        remedy = explain_kinds(arguments, takes_pointers=" *" in _CANDIDATE.split("\n".join(first.lines))[-1])
        remedy = remedy or PASS_OTHERS
    elif "failed deduction" in "\n".join(first.lines) and "<" not in (template := called.removesuffix("<>")):
        log = "\n".join(first.lines)
        is_method = _OBJECT_TYPE.search(log) is not None
        given = as_pointers(arguments)[is_method:]  # without the object
        pass_pointer = f"{PASS_ARRAY}; or {_explain_deduction(template, log)}"
        texts = [*_own_texts(source, target), *_texts(source, target)]
        conflict = explain_conflict(log, texts, given, 1 + is_method, pass_pointer)
        if conflict is None and (undeduced := find_undeduced(log, texts)):
            parameters, names = undeduced
            conflict = (
                f"no argument tells {names[-1]} of template <{parameters}>",
                _explain_deduction(template, log, ", ".join(names)),
            )
        text, remedy = conflict or (text, _explain_deduction(template, log))
        remedy = remedy if remedy == pass_pointer else explain_kinds(arguments) or remedy
    elif not remedy and first.text == "type name is not allowed" and "<" not in called:
        remedy = "write a function or a lambda; lib.type(...) is a class"
    elif not remedy and first.text == "type name is not allowed" and (name := _named_before(first)):
        text = f"{name} is not a template"
        of_library = f"lib[{name!r}]" if "::" in name else f"lib.{name}"
        remedy = f"leave out its <...>{f', write {of_library}' if called.startswith(f'{name}<') else ''}"
    elif not remedy and (written := _WRONG_TEMPLATE_ARGUMENTS.search("\n".join(first.lines))):
        text = f"the template arguments {written[1]} do not fit" if written[1] else text
        remedy = _explain_template_arguments(label, source, target)
    elif not remedy and _OVERLOADS.match(first.text):
        text = explain_candidate(first, called, arguments) or text
        remedy = explain_candidates([first.text, *first.lines], called)
        if remedy == PASS_OTHERS:
            details_of_source = [*_find_declarations(label, source, target)]
            remedy = explain_misfit(first, arguments) or remedy
    of_source = [re.sub(r" at line (\d+)$", rf" at {first.place}:\1", each) for each in first.lines]
    details = [*at, *_details(of_source, label)]
    text, declared = _split_declared(text)
    details += [*declared, *details_of_source]
    if first.text in _WRONG_NUMBER:
        details += _find_declarations(label, source, target)
        remedy = _WRONG_NUMBER[first.text]
    elif not remedy and "record of" in label and "cannot be called with" in first.text:
        remedy = "make the records with the dtype that lib.record(...) returns for the type that C++ takes"
    elif not remedy and "number of parameters of function" in "".join(first.lines):
        remedy = explain_candidates([first.text, *first.lines])
    elif not remedy and text.startswith("expected "):
        remedy = "complete the C++ of this call, or correct it"
    if text.endswith("is not a C++ function") and (enumerator := explain_enumerator(called, _texts(source, target))):
        text, remedy = enumerator
    if not first.unknown:
        remedy = _find_other_namespace(called, source, target) or remedy or explain_kinds(arguments)
    return _error(_write_first_line(_CALL_TITLE, label, text), details, remedy, error.log)


def _with_own_candidates(error: Diagnostic, called: str, ask_type: Callable[[str], str | None]) -> Diagnostic:
    """Return an *error* without the candidates that are CUDA's own, such as ``norm``, if the source has one; and with
    the parameters of the function that is *called*, where it is a template with all of its arguments."""
    of_source = any((note := _NOTE.match(line)) and _CANDIDATE.search(note["text"]) for line in error.lines)
    lines = [
        line
        for line in error.lines
        if not (of_source and (own := _BUILT_IN_NOTE.match(line)) and _CANDIDATE.search(own["text"]))
    ]
    nameless = [each for each in map(_NAMELESS.search, lines) if each]
    if len(nameless) == 1 and "<" in called and (known := _FUNCTION.fullmatch(ask_type(f"&{called}") or "")):
        shown = f'function "{nameless[0]["name"]}({known["parameters"]})"'
        lines = [line.replace(nameless[0]["whole"], shown) for line in lines]
    return replace(error, lines=tuple(lines))


def _refuse_class(refused: RefusedClass, called: str, label: str, log: str, texts: Iterable[str]) -> CxxError:
    """Return the error for a class that is *called* as a function."""
    if not refused.constructors and is_functor(texts, called):
        text = f"{called} is a class with operator(), not a function"
        remedy = f"call an object of it: lib.expr('[](auto... x) {{ return {called}()(x...); }}')"
        return _error(_write_first_line(_CALL_TITLE, label, text), (), remedy, log)
    title = _write_first_line(_CALL_TITLE, label, refused.diagnosis)
    return _error(title, refused.constructors, refused.remedy, log)


def _named_before(error: Diagnostic) -> str:
    """Return the name before the ``<`` that an *error* is right after; empty if there is none."""
    before = error.lines[1][: -len(error.marked)] if error.marked else ""
    found = re.search(r"(\w+(?:::\w+)*)\s*<\s*$", before)
    return found[1] if found else ""


def _explain_argument(
    errors: Sequence[Diagnostic], number: int, arguments: Sequence[str], text: str, remedy: str, texts: Iterable[str]
) -> tuple[str, str]:
    """Return the *text* and the *remedy* of the first of *errors* of a call with these *arguments*, about the one with
    this *number*, which the remedy names where it did not; and all that have the same remedy."""
    given = "".join(arguments[number - 1 : number])
    if given == "none" and text.startswith("C++ refers to a value of Python"):
        diagnosis = f"argument {number} is None, and C++ refers to a variable there"
        return diagnosis, "pass a variable or an element of an array, such as x[i], to which C++ can write"
    if (found := _STRING_FOR.search(errors[0].text)) and given.startswith("'"):
        taken = found["type"]
        diagnosis = f"argument {number} is a string, and C++ takes {taken}"
        meant = explain_enumerator(f"{taken}::{given[1:-1]}", texts, taken)
        return diagnosis, meant[1] if meant else f"pass an enumerator of {taken} or an object of it, not a string"
    if not remedy.startswith("pass an array of np."):
        return text, remedy
    of_same = [each for each in errors if explain_error(_readable(each.text).rstrip(":"))[1] == remedy]
    numbers = sorted({number_of_argument(each) for each in of_same} - {0})
    listed = " and ".join(map(str, numbers))
    return text, f"{remedy} as argument{'s' * (len(numbers) > 1)} {listed}"


def _explain_object(what: str, label: str, log: str) -> tuple[str, str]:
    """Return the diagnosis for the first argument of the call *label*, which is no object of its class, and no memory
    for one; and what to do."""
    called, arguments = split_label(label)
    of_class = _class_of(called) if what == "self" else called
    expected = f"takes {'an object' if what == 'self' else 'memory for an object'} of {of_class}"
    array, given = _ARRAY_ARGUMENT.match(arguments), _GIVEN_TYPES.search(log)
    if array and array["element"] == of_class:
        return f"{expected}, got an array of them", "pass an element of the array, such as x[0]"
    got = array[0] if array else given["type"] if given else ""
    remedy = f"pass an element of an array of lib.type({of_class!r}).dtype"
    return f"{expected}{got and ', got '}{got}", remedy


def _class_of(method: str) -> str:
    """Return the class of a *method*: ``a::B<c::D>`` of ``a::B<c::D>::get``, and of ``a::B<c::D>::operator()``."""
    of_class, operator, _ = method.partition("::operator")
    if not operator:
        of_class = of_class.rpartition("::")[0]
        while of_class.count("<") != of_class.count(">"):  # that was within the brackets of a template
            of_class = of_class.rpartition("::")[0]
    return of_class


def _explain_deduction(template: str, log: str, names: str = "...") -> str:
    """Return what to do where C++ does not find out the arguments of a *template*, with these *names*, as the *log* of
    the error says."""
    if re.search(r"\bmdspan<.*\b(?:d?extents<|dims<)", log):
        return (
            "let the template take the extents and layouts of all arrays: template <class T, class E, class L> ..."
            " (cuda::std::mdspan<T, E, L> x)"
        )
    is_method = _OBJECT_TYPE.search(log) is not None
    scope, _, name = template.rpartition("::")
    named = f'lib.type("{scope}").method("{name}<{names}>")' if is_method else f'lib["{template}<{names}>"]'
    of_user = "" if names == "..." else f", with a value or type for {names}"
    return f"name the template arguments that C++ cannot deduce: {named}{of_user}"


def _split_declared(text: str) -> tuple[str, list[str]]:
    """Return the *text* of an error without the place of a declaration, and a line with that, if it has one."""
    found = _DECLARED.search(text)
    return (text, []) if found is None else (text.replace(found[0], ""), [f"{found['what']} at: {found['place']}"])


def _find_unclosed(label: str) -> str:
    """Return what a call opens and does not close; empty if there is nothing."""
    called = re.sub(r"operator\W+", "", label.partition("(")[0])
    called = called.partition("operator")[0]
    pairs = [("<", ">", called), ("(", ")", label), ("[", "]", label), ("{", "}", label)]
    return next((opening for opening, closing, text in pairs if text.count(opening) > text.count(closing)), "")


def _find_surplus(called: str) -> str:
    """Return what the name *called* has too much of, at its end; empty if there is nothing."""
    if called.endswith(";"):
        return ";"
    is_name = re.fullmatch(r"[\w:<>, *&]+", called) is not None and "operator" not in called
    return ">" if is_name and called.count(">") > called.count("<") else ""


def refuse_call(label: str, diagnosis: str, remedy: str) -> CxxError:
    """Return the error for what messages call *label*, which C++ accepts and which is wrong."""
    return _error(_write_first_line(_CALL_TITLE, label, diagnosis), (), remedy, "")


def _no_namespace(error: Diagnostic, source: CUDASource, target: Target, log: str) -> CxxError:
    """Return the error for a library whose names are to be in a namespace that its C++ does not have."""
    written = _USING.search("".join(error.lines))
    namespace = written["whole"] if written else ""
    unknown = error.unknown.rpartition("::")[2] or namespace
    known = {"".join(found) for text in _texts(source, target) for found in _NAMES_OF_NAMESPACES.findall(text)}
    near = difflib.get_close_matches(unknown, known - {unknown, "nca_check"}, n=1, cutoff=0.6)
    meant = f"did you mean {namespace.replace(unknown, near[0])}? Or " if near else ""
    remedy = f"{meant}include the header that has it, or leave out namespace= and name it in each call"
    remedy = explain_missing_namespace(namespace) or remedy
    return _error([f"C++ has no namespace {namespace}"], [f"in Python: {NAMESPACE}"], remedy, log)


def _name_structs(log: str, text: str) -> str:
    """Return *log* with the names that C++ has for structs; the *text* of a call declares what it calls them."""
    names = dict(_ALIAS.findall(text)) | {functor: f"function {name}" for name, functor in _FUNCTOR.findall(text)}
    return _STRUCT.sub(lambda found: names.get(found[0], found[0]) if found[1] else "record", log)


def is_named_in(log: str, label: str) -> bool:
    """Whether an error in NVRTC's *log* is in the text that *label* names, or in a template that this instantiates."""
    log = _SUMMARY.sub("", log)  # which has the name of the whole unit: that of its first call
    return re.search(rf'(?:^|(?<=["\s])){re.escape(label)}(?=\(\d+\): |"|$)', log, re.MULTILINE) is not None


def is_at_fault(log: str, label: str) -> bool:
    """Return whether an error in NVRTC's *log*, not only a warning, names the text of *label*."""
    blocks = re.split(r"\n\s*\n", log)
    return is_named_in("\n\n".join(block for block in blocks if not _WARNING.match(block.lstrip("\n"))), label)


def find_called_kernel(label: str, log: str) -> CxxError | None:
    """Return the error for what messages call *label*, if NVRTC's *log* of it says that it calls a kernel."""
    for block in log.split("\n\n") if KERNEL_MARK in log else ():
        used = _USED.match(block.lstrip("\n"))
        if used and is_named_in(block, label) and not _LAUNCHED.match(used["line"], len(used["caret"])):
            name = used["name"].partition("(")[0]
            return CxxError(
                f"{name} is a kernel (__global__), which device code cannot call\n  call: {label}\n"
                "  what to do: move its body into a __device__ function, which the kernel and this call share",
                log,
            )
    return None


def _error(
    first_lines: Sequence[str],
    details: Sequence[str],
    remedy: str,
    log: str,
    place: Sequence[str] = (),
    more: Sequence[str] = (),
) -> CxxError:
    """Return the error with these lines: *place* is below the first, and *more* above what to do. Of many others, the
    first are shown."""
    first, *details = *first_lines, *details
    if len(details) > _MOST_LINES + 1:
        details = [*details[:_MOST_LINES], f"and {len(details) - _MOST_LINES} more lines: see the exception's .log"]
    lines = [first, *(f"  {_readable(each)}" for each in [*place, *details, *more])]
    return CxxError("\n".join([*lines, *([f"  what to do: {remedy}"] if remedy else [])]), log)


def _write_first_line(titles: tuple[str, str], label: str, diagnosis: str) -> list[str]:
    """Return the first of *titles* with what messages call a call and the *diagnosis*, and lines with what it leaves
    out.

    Where it would be too long, other names of types and the template arguments in the diagnosis are left out, and the
    label is shortened, or the second title has none. The diagnosis is never cut.
    """
    with_label, without = titles
    if len(whole := with_label.format(label, diagnosis)) <= _LONGEST:
        return [whole]
    shown, shorter = _ALSO_KNOWN.sub("", diagnosis), ""
    while len(with_label.format("", shown)) > _LONGEST - _SHORTEST_LABEL and shorter != shown:
        shorter, shown = shown, _TEMPLATE_ARGUMENTS.sub("<...>", shown)
    others = [f"call: {label}", *([diagnosis] if shown != diagnosis else [])]
    if len(without.format(shown)) > _LONGEST:
        return [without.format(diagnosis), f"call: {label}"]
    room = _LONGEST - len(with_label.format("", shown))
    if room < _SHORTEST_LABEL:
        return [without.format(shown), *others]
    if len(label) <= room:
        return [with_label.format(label, shown), *others[1:]]
    without_types = f"{label.partition('(')[0]}(...)"
    if len(without_types) > room:
        return [without.format(shown), *others]
    return [with_label.format(without_types, shown), *others]


def _details(block: Sequence[str], label: str) -> list[str]:
    """Return what follows the first line of an error: candidates, notes, and lines of the library's own source."""
    found = []
    has_source = not block[0].startswith(f"{label}(")  # a line of the library, below its note
    of_half = any("operand types are" in line and re.search("__half|__nv_bfloat16", line) for line in block)
    for line in block[1:] if has_source else (re.sub(r" at line \d+$", "", each) for each in block[1:]):
        if note := _NOTE.match(line):
            is_other = not of_half and _OTHER_OPERATORS.search(note["place"]) is not None
            is_own = line.startswith((f"{label}(", *_OWN))
            has_source = not (is_own or is_other or _CANDIDATE.search(note["text"]))
            if not is_other and not _WITH_CALL.search(note["text"]):
                place = "" if is_own else f" ({os.path.basename(note['place'])}:{note['line']})"
                found.append(f"{note['text']}{place}")
        elif re.fullmatch(r"\s*\^\s*", line) or (not has_source and re.match("  [^ ]", line)):
            continue
        elif built_in := _BUILT_IN_NOTE.match(line):
            if _CANDIDATE.search(built_in["text"]) and not _WITH_CALL.search(line):
                found.append(built_in["text"])
        elif not _WITH_CALL.search(line):
            found.append(line.strip())
    found = [each for each in dict.fromkeys(found) if each and each != f"{BY_CALL}:"]
    if len(block) > 2 and block[2].strip() == "^":
        lambda_text = _LAMBDA.match(block[1])
        shown = lambda_text["text"] if lambda_text else block[1].strip()
        column = block[2].index("^") - block[1].index(shown)
        if lambda_text and 0 <= column < len(shown):
            found = [shown, *found]
        if found[:1] == [shown]:
            found.insert(1, f"{' ' * column}^")
    return found


def _readable(text: str) -> str:
    text = re.sub(r'"[^"]*\b(?:nca::|nca_|cxx_\w+_[0-9a-f]{16})[^"]*" \(aka "([^"]*)"\)', r'"\1"', text)
    text = re.sub(r"\bnca_python_\d+_(\w+)_\1_[0-9a-f]{16}\b", r"\1", text)
    text = re.sub(r"\b(\w+)_[0-9a-f]{16}_struct\d+\b", r"what \1 returns", text)
    text = re.sub(r"\b(cuda::std|cub|thrust)::(?:__\d+|(?:CUB|THRUST|_V)_\w+)::", r"\1::", text)
    return text.replace("18446744073709551615UL", "dynamic_extent").replace("__nv_bool", "bool")


def _find_declarations(label: str, source: CUDASource, target: Target) -> Iterator[str]:
    """Yield the declarations of the function that *label* names, as they are in *source* and its headers."""
    name = re.escape(split_label(label)[0].partition("<")[0].rpartition("::")[2])
    declared = re.compile(rf"^[^\n;{{}}/#=]*\b{name}\s*\([^;{{}}]*?\)(?=[^()]*[;{{])", re.MULTILINE)
    texts = _texts(source, target)
    found = (" ".join(each.split()) for text in texts for each in declared.findall(text) if "nca_" not in each)
    yield from (f"declared: {each}" for each in itertools.islice(dict.fromkeys(found), _MOST_DECLARATIONS))


def _explain_template_arguments(label: str, source: CUDASource, target: Target) -> str:
    """Return what to do about template arguments in *label* whose number or kinds are wrong."""
    names = re.findall(r"(\w+)(?=<)|^[\w:]*?(\w+)$", split_label(label)[0])
    parameters = find_template(_texts(source, target), "".join(names[0])) if len(names) == 1 else ""
    return (
        f"write the arguments of template {parameters or '<...>'} in its order: types for class and typename,"
        " constants for others"
    )


def _texts(source: CUDASource, target: Target) -> Iterator[str]:
    from numba.cuda.cudadrv.external_code.compile import programs

    return programs.texts_and_headers(unit_of_sources([source]), target)


def _own_texts(source: CUDASource, target: Target) -> Iterator[str]:
    """Yield the text of the library in *source*, and those of the headers that it includes which are not CUDA's."""
    from numba.cuda.cudadrv.external_code.compile import programs

    yield source.compile_options.prologue.partition(NAMESPACE)[0]
    yield from (text for _, text in programs.included_files(unit_of_sources([source]), target, with_toolkit=False))


def _explain_name(error: Diagnostic, label: str, source: CUDASource, target: Target) -> str:
    """Return what to do about a name in a call that C++ does not know; empty for another error."""
    name, called = error.unknown.rpartition("::")[2], split_label(label)[0]
    if not name:
        return ""
    options, texts = source.compile_options, list(_texts(source, target))
    if of_enumeration := _NO_ENUMERATOR.match(error.text):
        meant = find_near(f"{of_enumeration['name']}::{of_enumeration['member']}", find_enumerations(texts))
        return f"did you mean {meant}?" if meant else f"name an enumerator of {of_enumeration['name']}, or add it there"
    if of_class := _NO_MEMBER.match(error.text):
        near = difflib.get_close_matches(name, sorted(find_members(texts, of_class["name"])), n=1)
        return f"did you mean {near[0]}?" if near else f"name a public member of {of_class['name']}, or add it there"
    namespaces = {"", *_USING.findall(options.prologue.partition(NAMESPACE)[2])}
    own = [*_own_texts(source, target)]
    declared = sorted({each for namespace in namespaces for each in find_names(own, namespace)})
    written = {error.unknown.rpartition("::")[0], *namespaces}
    found = [each for each in find_namespaces(texts, name) if each not in written]
    if found and not error.unknown.startswith("std::"):
        return f"write its namespace: {' or '.join(f'{namespace}::{name}' for namespace in found)}"
    macros = [macro for macro, _ in options.defines]
    if name not in declared and (alike := did_you_mean(name, declared)):
        return alike.removeprefix("; ")
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
    listed = f"; the source has {', '.join(declared[:_MOST_NAMES])}{more}" if declared else ""
    return f"declare it in the source, include the header that does, or write its namespace{listed}"


def _explain_passed(
    name: str, error: Diagnostic, label: str, source: CUDASource, target: Target, ask_type: Callable[[str], str | None]
) -> tuple[str, str] | None:
    """Return what is wrong where a call passes *name*, which C++ does not know or which is a constant, and what to do;
    ``None`` for a function, and for a lambda."""
    if not re.fullmatch(r"(?:\w+::)*[A-Za-z_]\w*", name):
        return None
    if enumerator := explain_enumerator(name, _texts(source, target), find_taken(error.text)):
        return enumerator
    last, known = name.rpartition("::")[2], ask_type(name)
    if known is None:
        unknown = replace(error, text=f'identifier "{last}" is undefined')
        return f"C++ has no {name!r}", _explain_name(unknown, label, source, target)
    if known.startswith("const ") and not known.endswith(("]", ")")):
        taken = f'take it before the kernel: {last} = lib.eval("{name}")'
        return f"{name!r} is a constant of C++, which kernels do not read by its name", taken
    if known and not known.endswith(")"):
        return f"{name} is a variable of C++, not a function", "call a function of C++ that reads it"
    return None


def _find_other_namespace(called: str, source: CUDASource, target: Target) -> str:
    """Return what to do where the source declares what is *called* in a namespace alone, and not where the call looks:
    CUDA has functions of its own, such as ``norm``, which C++ finds there. Empty for another name."""
    name, texts = called.partition("<")[0], list(_texts(source, target))
    used = {"", *_USING.findall(source.compile_options.prologue.partition(NAMESPACE)[2])}
    if not name.isidentifier() or any(name in find_names(texts, each) for each in used):
        return ""
    own = [each for each in find_namespaces(texts, name) if each.partition("::")[0] not in _OF_LIBRARIES]
    written = " or ".join(f"lib[{f'{each}::{called}'!r}]" for each in own)
    return f"write its namespace, {written}: without it, {name} is a function of CUDA" if own else ""


def _shortened(log: str) -> str:
    lines = [line for line in log.strip("\0\n ").splitlines() if line.strip()]
    return "\n".join(f"  {line.strip()}" for line in lines[:_MOST_LINES])
