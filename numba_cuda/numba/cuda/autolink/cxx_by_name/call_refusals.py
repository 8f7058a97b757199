# SPDX-License-Identifier: BSD-2-Clause
"""What is wrong with a call that C++ refuses, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from numba.cuda.cudadrv.external_code.compile.nvrtc_log import Diagnostic
from numba.cuda.cudadrv.external_code.compile.template_deduction import (
    explain_conflict,
    explain_constraint,
    find_taken_form,
    find_undeduced,
)
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource
from numba.cuda.cudadrv.external_code.platform.target import Target

from numba_cuda_autolink.printable_texts import number_of

from .argument_kinds import (
    as_pointers,
    ask_parameters,
    describe,
    explain_kinds,
    find_array,
    find_kind,
    list_arguments,
    split_label,
)
from .cxx_errors import (
    BUILT_IN_NOTE,
    CALL_TITLE,
    CANDIDATE,
    FUNCTOR,
    NOTE,
    CxxError,
    find_details,
    make_error,
    readable,
    split_declared,
    write_first_line,
)
from .declared_names import is_functor
from .enumerators import explain_enumerator, explain_members
from .refused_classes import RefusedClass, explain_class
from .refused_names import (
    explain_name,
    explain_passed,
    explain_template_arguments,
    find_declarations,
    find_other_namespace,
    own_texts,
    texts_of,
)
from .refused_objects import explain_object
from .refused_views import explain_view
from .remedies import (
    NUMPY_TYPES,
    PASS_ARRAY,
    PASS_AS_MANY,
    PASS_OTHERS,
    explain_candidate,
    explain_candidates,
    explain_error,
    explain_functor,
    explain_kind,
    explain_misfit,
    explain_operator,
    explain_pointer,
    number_of_argument,
)

_WRONG_NUMBER = {
    "too few arguments in function call": "pass the arguments that C++ declares: those with = may be left out",
    "too many arguments in function call": "pass no more arguments than C++ declares",
}
_PYTHON_LAMBDA = re.compile(r"lambda\b(?P<parameters>[\w, ]*):(?!:)")
_STRING_FOR = re.compile(r'of type "const char \*" is incompatible with parameter of type "(?P<type>[A-Za-z_][\w:]*)"')
_HALF = re.compile(r"__half|__nv_bfloat16")
_WRONG_TEMPLATE_ARGUMENTS = re.compile(
    r'substituting explicit template arguments "(<.*>)" for function template "[\w:]+" failed'
    r'|too (?:many|few) arguments for class template|argument list for class template "[\w:]+" is missing'
    r"|expected a type specifier$|type name is not allowed$",
    re.MULTILINE,
)
# A template that the call gives its arguments, of which NVRTC does not tell the parameters, and a pointer to one.
_NAMELESS = re.compile(r'(?P<whole>function template "(?P<name>[\w:]+)") does not match because argument #')
_OTHER_PARAMETERS = re.compile(
    r'number of parameters of function (?:template )?"[^"(]*\((.*?)\)(?: \[with [^"]*)?" does not match'
)
_NOT_NAMED = re.compile("number of parameters|failed deduction")
_OVERLOADS = re.compile("no instance of|more than one instance of")
# Of the call of an operator: there is none outside classes, or it does not take these arguments.
_NO_OPERATOR = re.compile(
    r'identifier "operator|.*no member "operator|no instance of|more than one instance of|no suitable .* from "'
)
# The function of the prelude that refers to the object of a call, and that to the memory for one.
_NO_OBJECT = re.compile(r'"nca::nca_(?P<what>self|memory)')
_COPIES = re.compile(
    r'function "[^"(]*?(?P<name>\w+)(?:<[^"(]*>)?::(?P=name)\((?:const )?[^,"(]*\b(?P=name)(?:<[^"(]*>)? &&?\)'
)
_PYTHON_ARGUMENT = re.compile(r"^struct nca_python_(\d+)_", re.MULTILINE)
_GIVEN_TYPES = re.compile(r"argument types are: \((?:const )?(?P<type>.*)\)")


@dataclass(frozen=True)
class RefusedCall:
    """A call that C++ refuses, which messages call *label*, with its *errors*, of which the first is told."""

    label: str
    errors: tuple[Diagnostic, ...]
    source: CUDASource
    target: Target
    log: str

    @property
    def first(self) -> Diagnostic:
        return self.errors[0]

    @property
    def called(self) -> str:
        return split_label(self.label)[0]

    @property
    def types(self) -> str:
        return split_label(self.label)[1]

    @property
    def arguments(self) -> list[str]:
        return list_arguments(self.types)

    @property
    def is_constructor(self) -> bool:
        """Whether an object is made in memory, which is the first of the arguments."""
        return "nca::nca_memory<" in self.source.data

    @property
    def is_method(self) -> bool:
        """Whether a method is called, with its object as the first of the arguments."""
        return "nca::nca_self<" in self.source.data

    @property
    def objects(self) -> int:
        """How many of the arguments are none of C++: the object of a method, or the memory for one."""
        return int(self.is_constructor or self.is_method)

    @property
    def place(self) -> list[str]:
        return [] if self.first.place == self.label else [f"in C++: {self.first.place}:{self.first.line}"]

    @property
    def details(self) -> list[str]:
        return [*self.place, *find_details(self.first.lines, self.label)]

    def texts(self) -> Iterator[str]:
        """Yield the texts of the source and its headers."""
        return texts_of(self.source, self.target)

    def error(self, diagnosis: str, details: Sequence[str], remedy: str) -> CxxError:
        return make_error(write_first_line(CALL_TITLE, self.label, diagnosis), details, remedy, self.log)


def explain_call(call: RefusedCall, ask_type: Callable[[str], str | None]) -> CxxError:
    """Return the error for a *call*. *ask_type* returns the type of an expression of C++, as `explain_refusal` has
    it."""
    first = _with_own_candidates(call.first, call.called, ask_type)
    first = _without_copies(first) if call.is_constructor else first
    call = replace(call, errors=(first, *call.errors[1:]))
    return (
        _explain_unfinished(call)
        or _explain_kind_of_argument(call, ask_type)
        or _explain_kind_of_callee(call)
        or _explain_object_argument(call, ask_type)
        or _explain_functor(call)
        or _explain_rest(call)
    )


def _explain_unfinished(call: RefusedCall) -> CxxError | None:
    """Return the error for a call whose text is Python, or has too few or too many brackets; ``None`` for another."""
    if found := _PYTHON_LAMBDA.match(call.called):
        parameters = ", ".join(f"auto {each.strip()}" for each in found["parameters"].split(",") if each.strip())
        remedy = (
            f"write C++, []({parameters}) {{ return ...; }}; or pass the lambda itself, without quotes, to a function"
            " of C++ that calls it"
        )
        return call.error("this is a lambda of Python, and C++ is expected", (), remedy)
    opening, text = _find_unclosed(call.label), call.first.text
    if opening and (opening == "<" or text.startswith(("expected", "expression preceding"))):
        text = readable(text) if text.startswith("expected") else f"a {opening} is not closed"
        return call.error(text, call.details, f"close what {opening} opens")
    if surplus := _find_surplus(call.called):
        return call.error(f"the name has a {surplus} that ends nothing", call.place, f"leave out the {surplus}")
    return None


def _explain_kind_of_argument(call: RefusedCall, ask_type: Callable[[str], str | None]) -> CxxError | None:
    """Return the error for an object, a view or a function that is passed where C++ takes another; ``None`` for another
    error."""
    first, label, source = call.first, call.label, call.source
    if found := _NO_OBJECT.search(first.text):
        text, remedy = _explain_no_object(found["what"], label, "\n".join(first.lines))
        return call.error(text, call.place, remedy)
    if array := _explain_array_for_number(call, ask_type):
        return array
    if view := explain_view(first, readable(first.text), label):
        return call.error(view.diagnosis, [*call.place, view.takes], view.remedy)
    if lacking := explain_members(first.text, source.data, call.texts(), ask_type):
        return call.error(lacking[0], call.place, lacking[1])
    for name, _ in FUNCTOR.findall(source.data):
        if first.unknown and first.unknown != name:
            continue
        if passed := explain_passed(name, first, label, source, call.target, ask_type):
            return call.error(passed[0], call.place, passed[1])
    return None


def _explain_object_argument(call: RefusedCall, ask_type: Callable[[str], str | None]) -> CxxError | None:
    """Return the error for an argument that is no object of the class that C++ takes; ``None`` for another error."""
    functors = [name for name, _ in FUNCTOR.findall(call.source.data)]
    python = [int(each) + 1 for each in _PYTHON_ARGUMENT.findall(call.source.data)]
    refused = explain_object(call.first, call.called, call.arguments, functors, python, ask_type)
    return refused and call.error(refused.diagnosis, call.details, refused.remedy)


def _explain_array_for_number(call: RefusedCall, ask_type: Callable[[str], str | None]) -> CxxError | None:
    """Return the error for an array that is passed where C++ refers to a number; ``None`` for another error."""
    number = number_of_argument(call.first)
    given = "".join(call.arguments[number - 1 : number]) if number else ""
    if not call.first.text.startswith("initial value of reference to non-const") or not find_array(given):
        return None
    known = ask_parameters(call.called, ask_type)
    taken = known[number - 1].rstrip("& ") if known else ""
    kind = find_kind(given)
    if taken not in NUMPY_TYPES or kind is None:
        return None
    return call.error(f"argument {number} is {describe(given)}, and C++ refers to one {taken}", call.place, kind.remedy)


def _explain_kind_of_callee(call: RefusedCall) -> CxxError | None:
    """Return the error for what is called and is no function, and for values of another kind than C++ takes; ``None``
    for another error."""
    kind = explain_kind(readable(call.first.text), call.first, call.arguments, call.objects)
    if kind:
        details = sorted(call.details, key=lambda each: _HALF.search(each) is not None)
        return call.error(kind[0], details, kind[1])
    refused = None if call.is_constructor else explain_class(call.first, call.called)
    return None if refused is None else _refuse_class(refused, call)


def _explain_functor(call: RefusedCall) -> CxxError | None:
    """Return the error for an object of the user that C++ calls with other arguments than it takes; ``None`` for
    another error."""
    explained = explain_functor(call.first, call.label)
    return explained and call.error(explained[0], call.details, explained[1])


def _explain_rest(call: RefusedCall) -> CxxError:
    first, called, arguments = call.first, call.called, call.arguments
    log = "\n".join(first.lines)
    details_of_source: list[str] = []
    number = number_of_argument(first)
    with_n = ", ".join([*["..."] * (number > 1), "n", *["..."] * (number < len(arguments))]) if number else "n"
    text, remedy = explain_error(readable(first.text).rstrip(":"), called, with_n)
    if number:
        text, remedy = _explain_argument(call, number, text, remedy)
    remedy = first.explain_standard(call.source.compile_options) or explain_pointer(text, first, call.label) or remedy
    if _NO_OPERATOR.match(first.text):
        remedy = explain_operator(called, arguments) or remedy
    remedy = remedy or explain_name(first, call.label, call.source, call.target)
    if not remedy and "void*" in call.types:
        remedy = "a pointer to what is not a number is a void*: cast it, lib.expr('[](auto* p) { return f((T*)p); }')"
    if not remedy and (strided := [each for each in arguments if (array := find_array(each)) and array.is_strided]):
        remedy = f"pass a contiguous array where C++ takes a pointer: a strided one, {strided[0]}, is an mdspan to C++"
    elif "failed deduction" in log and called.startswith("["):
        remedy = explain_kinds(arguments, takes_pointers=" *" in CANDIDATE.split(log)[-1]) or PASS_OTHERS
    elif "failed constraints" in log and (constraint := _explain_constraint(call)):
        text, remedy = constraint
    elif "failed deduction" in log and "<" not in (template := called.removesuffix("<>")):
        text, remedy = _explain_failed_deduction(call, template, text)
    elif "failed deduction" in log and (constraint := _explain_constraint(call)):
        text, remedy = constraint
    elif not remedy and first.text == "type name is not allowed" and (of_type := _explain_type(call, text)):
        text, remedy = of_type
    elif not remedy and (written := _WRONG_TEMPLATE_ARGUMENTS.search(log)):
        text = f"the template arguments {written[1]} do not fit" if written[1] else text
        remedy = explain_template_arguments(call.label, call.source, call.target)
    elif not remedy and _OVERLOADS.match(first.text):
        text, remedy = _explain_overloads(call, text)
        if remedy == PASS_OTHERS:
            details_of_source = [*find_declarations(call.label, call.source, call.target)]
            remedy = explain_misfit(first, arguments, call.objects) or remedy
    of_source = [re.sub(r" at line (\d+)$", rf" at {first.place}:\1", each) for each in first.lines]
    text, declared = split_declared(text)
    details = [*call.place, *find_details(of_source, call.label), *declared, *details_of_source]
    if first.text in _WRONG_NUMBER:
        details += find_declarations(call.label, call.source, call.target)
        remedy = _WRONG_NUMBER[first.text]
    elif not remedy and "record of" in call.label and "cannot be called with" in first.text:
        remedy = "make the records with the dtype that lib.record(...) returns for the type that C++ takes"
    elif not remedy and "number of parameters of function" in log:
        text, remedy = _explain_number(call, text, explain_candidates([first.text, *first.lines]))
    elif not remedy and call.is_constructor and first.text == 'expected a ")"':
        text = f"{called} has no constructor that takes {number_of(len(arguments) - 1, 'argument')}"
        remedy = "where it has no constructors, construct it without arguments, and assign to its members"
    elif not remedy and text.startswith("expected "):
        remedy = "complete the C++ of this call, or correct it"
    if text.endswith("is not a C++ function") and (enumerator := explain_enumerator(called, call.texts())):
        text, remedy = enumerator
    if not first.unknown and not first.text.startswith("static assertion failed"):
        remedy = find_other_namespace(called, call.source, call.target) or remedy or explain_kinds(arguments)
    return call.error(text, details, remedy)


def _explain_type(call: RefusedCall, text: str) -> tuple[str, str] | None:
    """Return the diagnosis, *text* if nothing more is known, and what to do where the name of a type stands in the
    place of a value; ``None`` where that is a template argument of what has some."""
    if "<" not in call.called:
        return text, "write a function or a lambda; lib.type(...) is a class"
    if not (name := _named_before(call.first)):
        return None
    of_library = f"lib[{name!r}]" if "::" in name else f"lib.{name}"
    written = f", write {of_library}" if call.called.startswith(f"{name}<") else ""
    return f"{name} is not a template", f"leave out its <...>{written}"


def _explain_overloads(call: RefusedCall, text: str) -> tuple[str, str]:
    """Return the diagnosis, *text* if nothing more is known, and what to do where no overload, or more than one, takes
    the arguments."""
    first, log = call.first, "\n".join(call.first.lines)
    text = explain_candidate(first, call.called, call.arguments, call.objects) or text
    remedy = explain_candidates([first.text, *first.lines], call.called)
    name, _, written = call.called.removesuffix(">").partition("<")
    named = list_arguments(written) if written else []
    if _NOT_NAMED.search(log):
        undeduced = find_undeduced(log, own_texts(call.source, call.target))
        if undeduced and len(named) < len(undeduced[1]):
            missing = undeduced[1][len(named) :]
            remedy = _explain_deduction(call, name, ", ".join([*named, *missing]), ", ".join(missing))
    return _explain_number(call, text, remedy)


def _explain_constraint(call: RefusedCall) -> tuple[str, str] | None:
    """Return what `explain_constraint` does for the template that is called."""
    log = "\n".join(call.first.lines)
    texts = [*own_texts(call.source, call.target), *call.texts()]
    if "<" in call.called:  # the arguments do not tell the types
        return explain_constraint(_GIVEN_TYPES.sub("", log), texts)
    return explain_constraint(log, texts, as_pointers(call.arguments)[call.objects :])


def _explain_number(call: RefusedCall, text: str, remedy: str) -> tuple[str, str]:
    """Return the diagnosis, *text*, and the *remedy* of a call for which no function has as many parameters; where
    there is one function alone, its parameters are told."""
    if remedy != PASS_AS_MANY:
        return text, remedy
    besides = ", besides the object, which is the first" if call.objects else ""
    found = _OTHER_PARAMETERS.findall("\n".join(call.first.lines))
    if len(found) == 1:
        passed = number_of(len(call.arguments) - call.objects, "argument")
        return f"{call.called} takes ({found[0]}), and the call passes {passed}", f"pass those{besides}"
    return text, f"{remedy}{besides}"


def _explain_failed_deduction(call: RefusedCall, template: str, text: str) -> tuple[str, str]:
    """Return the diagnosis, *text* if nothing more is known, and what to do where C++ does not find out the arguments
    of the *template* that is called."""
    log = "\n".join(call.first.lines)
    given = as_pointers(call.arguments)[call.objects :]  # without the object
    pass_pointer = f"{PASS_ARRAY}; or {_explain_deduction(call, template)}"
    texts = [*own_texts(call.source, call.target), *call.texts()]
    conflict = explain_conflict(log, texts, given, 1 + call.objects, pass_pointer)
    if conflict is None and (undeduced := find_undeduced(log, texts)):
        parameters, names = undeduced
        remedy = _explain_deduction(call, template, ", ".join(names))
        conflict = f"no argument tells {names[-1]} of template <{parameters}>", remedy
    if conflict is None and (constraint := explain_constraint(log, texts, given)):
        return constraint
    text, remedy = conflict or (text, _explain_deduction(call, template))
    if conflict is None and remedy.startswith("name ") and (taken := find_taken_form(log, texts)):
        text, remedy = f"C++ takes ({taken}), which the arguments are not", f"{PASS_OTHERS}; or {remedy}"
    return text, remedy if remedy == pass_pointer else explain_kinds(call.arguments) or remedy


def _with_own_candidates(error: Diagnostic, called: str, ask_type: Callable[[str], str | None]) -> Diagnostic:
    """Return an *error* without the candidates that are CUDA's own, such as ``norm``, if the source has one; and with
    the parameters of the function that is *called*, where it is a template with all of its arguments."""
    of_source = any((note := NOTE.match(line)) and CANDIDATE.search(note["text"]) for line in error.lines)
    lines = [
        line
        for line in error.lines
        if not (of_source and (own := BUILT_IN_NOTE.match(line)) and CANDIDATE.search(own["text"]))
    ]
    nameless = [each for each in map(_NAMELESS.search, lines) if each]
    if len(nameless) == 1 and "<" in called and (known := ask_parameters(called, ask_type)) is not None:
        shown = f'function "{nameless[0]["name"]}({", ".join(known)})"'
        lines = [line.replace(nameless[0]["whole"], shown) for line in lines]
    return replace(error, lines=tuple(lines))


def _without_copies(error: Diagnostic) -> Diagnostic:
    """Return an *error* of a constructor without the candidates that copy or move an object, if it has others."""
    lines = [line for line in error.lines if not _COPIES.search(line)]
    return replace(error, lines=tuple(lines)) if any(CANDIDATE.search(line) for line in lines) else error


def _refuse_class(refused: RefusedClass, call: RefusedCall) -> CxxError:
    """Return the error for a class that is called as a function."""
    if not refused.constructors and is_functor(call.texts(), call.called):
        remedy = f"call an object of it: lib.expr('[](auto... x) {{ return {call.called}()(x...); }}')"
        return call.error(f"{call.called} is a class with operator(), not a function", (), remedy)
    return call.error(refused.diagnosis, refused.constructors, refused.remedy)


def _named_before(error: Diagnostic) -> str:
    """Return the name before the ``<`` that an *error* is right after; empty if there is none."""
    before = error.lines[1][: -len(error.marked)] if error.marked else ""
    found = re.search(r"(\w+(?:::\w+)*)\s*<\s*$", before)
    return found[1] if found else ""


def _explain_argument(call: RefusedCall, number: int, text: str, remedy: str) -> tuple[str, str]:
    """Return the *text* and the *remedy* of the first error of a *call*, about the argument with this *number*, which
    the remedy names where it did not; and all that have the same remedy."""
    errors, given = call.errors, "".join(call.arguments[number - 1 : number])
    if given == "none" and text.startswith("C++ refers to a value of Python"):
        diagnosis = f"argument {number} is None, and C++ refers to a variable there"
        return diagnosis, "pass a variable or an element of an array, such as x[i], to which C++ can write"
    if (found := _STRING_FOR.search(errors[0].text)) and given.startswith("'"):
        taken = found["type"]
        diagnosis = f"argument {number} is a string, and C++ takes {taken}"
        meant = explain_enumerator(f"{taken}::{given[1:-1]}", call.texts(), taken)
        return diagnosis, meant[1] if meant else f"pass an enumerator of {taken} or an object of it, not a string"
    if not remedy.startswith("pass an array of np."):
        return text, remedy
    of_same = [each for each in errors if explain_error(readable(each.text).rstrip(":"))[1] == remedy]
    numbers = sorted({number_of_argument(each) for each in of_same} - {0})
    listed = " and ".join(map(str, numbers))
    which = f"as argument{'s' * (len(numbers) > 1)} {listed}"
    return text, re.sub(r"^pass an array of np\.\w+", rf"\g<0> {which}", remedy)


def _explain_no_object(what: str, label: str, log: str) -> tuple[str, str]:
    """Return the diagnosis for the first argument of the call *label*, which is no object of its class, and no memory
    for one; and what to do."""
    called, passed = split_label(label)
    of_class = _class_of(called) if what == "self" else called
    expected = f"takes {'an object' if what == 'self' else 'memory for an object'} of {of_class}"
    first, given = list_arguments(passed)[0], _GIVEN_TYPES.search(log)
    array = find_array(first)
    if array and array.element == of_class:
        return f"{expected}, got an array of them", "pass an element of the array, such as x[0]"
    got = first if array else given["type"] if given else ""
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


def _explain_deduction(call: RefusedCall, template: str, names: str = "...", missing: str = "") -> str:
    """Return what to do where C++ does not find out the arguments of a *template*, with these *names*; those that are
    *missing*, by default all."""
    if re.search(r"\bmdspan<.*\b(?:d?extents<|dims<)", "\n".join(call.first.lines)):
        return (
            "let the template take the extents and layouts of all arrays: template <class T, class E, class L> ..."
            " (cuda::std::mdspan<T, E, L> x)"
        )
    scope, _, name = template.rpartition("::")
    named = f'lib.type("{scope}").method("{name}<{names}>")' if call.is_method else f'lib["{template}<{names}>"]'
    of_user = "" if names == "..." else f", with a value or type for {missing or names}"
    return f"name the template arguments that C++ cannot deduce: {named}{of_user}"


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
