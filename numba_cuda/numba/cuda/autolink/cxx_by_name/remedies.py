# SPDX-License-Identifier: BSD-2-Clause
"""What errors of NVRTC mean for the arguments of a call, and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from numba.cuda.cudadrv.external_code.compile import nvrtc_log
from numba.cuda.cudadrv.external_code.compile.mdspan_indices import EXTENTS
from numba.cuda.cudadrv.external_code.compile.nvrtc_log import Diagnostic
from numba.cuda.cudadrv.external_code.compile.template_deduction import plain_type
from numba.cuda.cudadrv.external_code.inputs.c_numbers import NUMBERS

from .argument_kinds import describe, find_array, find_kind, list_arguments, split_label
from .cxx_errors import CANDIDATE
from .structs import OTHER_LAYOUT, RECORD_OF_WHOLE

_STRIDED = re.compile(
    rf'from "cuda::std::.*mdspan<.*{EXTENTS}.*layout_stride.*"'
    r' to "(?P<pointer>(?:const )?(?P<element>[^"]*?) ?\*(?: ?const)?)"'
)
_NOT_WRITTEN = re.compile(
    r'a reference of type "(?P<type>[\w ]+?) &" \(not const-qualified\) cannot be initialized'
    r' with a value of type "(?P<given>[\w ]+)"'
)
_NOT_AN_ENUMERATOR = re.compile(
    r'of type "(?:bool|float|double|(?:(?:un)?signed )?(?:char|short|int|long|long long))"'
    r' is incompatible with parameter of type "(?P<type>[A-Za-z_][\w:]*)"'
)
_OTHER_ENUMERATION = re.compile(
    r'of type "(?P<given>[A-Za-z_][\w:]*)" is incompatible with parameter of type "(?P<type>[A-Za-z_][\w: ]*)"'
)
_NOT_A_NUMBER = re.compile(
    r'(?:argument of type "(?P<given>[^"]+ \*|std::nullptr_t)" is incompatible with parameter of type'
    r'|conversion function from "(?:const )?cuda::std::(?:mdspan|tuple)<.*>" to)'
    r' "(?:bool|float|double|(?:(?:un)?signed )?(?:char|short|int|long|long long))"'
)
_ASSERTED = re.compile(rf'static assertion failed with "(?P<said>.* {OTHER_LAYOUT})"')
_STAND_IN = re.compile(r"nca::nca_place<(?:const )?(?P<type>[^\"]*)>\"")  # in a template that is instantiated with it
_TUPLE = re.compile(r'(?:from|class) "(?:const )?cuda::std::tuple<.*>" (?:to "(?P<type>[^"]*)"|has no member)')
_OTHER_COMPLEX = re.compile(
    r'"(?:const )?(?P<given>cuda::std::complex<\w+>)(?: [*&])?" [^"]*"(?:const )?(?P<type>cuda::std::complex<\w+>)'
)
_COMPLEX = re.compile(r'conversion function from "(?:const )?cuda::std::complex<\w+>" to "(?P<type>[\w ]*)"')
_VALUE_OF_STRUCT = re.compile(r'of type "(?P<type>[\w:]+) &" .* with a value of type "const record"')
_VALUE_OF_ENUMERATION = re.compile(r'of type "(?P<type>[\w:]+) &" .* with a value of type "const nca::nca_enumerator<')
_POINTED = re.compile(
    r'of type "(?P<type>[\w ]*(?P<kind>\(&\)|\(\*\)(?=\[)|\* ?(?:const ?)?\*)[^"]*)"'
    r'[^"]*(?:with a value of type "[^"]*\*")?$'
)
_READ_ONLY = re.compile(r'of type "const (?P<type>[\w ]+\*)" is incompatible with parameter of type "(?P=type)"')
_READ_ONLY_STRUCT = re.compile(
    r'qualifiers dropped in binding reference .* to initializer of type "(?P<type>const [\w:]+)"'
)
_STRUCT_FOR_POINTER = re.compile(
    r'conversion function from "(?:const )?[A-Za-z_][\w:]*"(?: \(aka "[^"]*"\))?'
    r' to "(?:const )?(?P<type>[\w:]+) \*" exists'
)
_OTHER_STRUCT = re.compile(
    r'"(?:const )?record(?: \*)?" (?:is incompatible with parameter of type|to) "(?:const )?(?P<type>[\w:]+)[^<"]*"'
)
_NOT_A_TEMPLATE = re.compile(
    r'from "const (?:nca_python_\w+|function (?P<name>.*))" to "(?P<type>[^"]*)"'
    r'|type "(?P<reference>[^"]*&\)[^"]*)" .* of type "const (?:nca_python_\w+|function (?P<referred>.*))"'
)
_NO_CLASS = re.compile(r'expression must have class type but it has type "(?P<type>[^"]*)"')
# A member that a span has too.
_OF_SPAN = re.compile(r"\w+ *\. *(?:size|size_bytes|data|begin|end|empty|front|back|first|last|subspan)\b")
_ASSIGNS = re.compile(r"(?:[-+*/%&|^]|<<|>>)?=|\+\+|--")
_OPERATOR = re.compile(r"(?:[\w:]+::)?operator *(?P<sign>[^\w\s()]+)")
_TO_CLASS = re.compile(
    r'no suitable (?:constructor|user-defined conversion) .* to "(?:const )?(?P<type>[A-Za-z_][\w:]*)"'
)
_RETURNED = re.compile(r'conversion function from "(?:const )?what (?P<name>\w+) returns" to "(?P<type>[\w ]*)" exists')
_INCOMPLETE = re.compile(r'incomplete (?:type|class(?: type)?) "(?P<type>[A-Za-z_][\w:]*)"')
NUMPY_TYPES = {
    **{name: f"np.{number.name}" for name, number in NUMBERS.items()},
    "cuda::std::complex<float>": "np.complex64",
    "cuda::std::complex<double>": "np.complex128",
    "__half": "np.float16",
}
TAKE_FUNCTION_OBJECT = "let C++ take any function object: template <class F> ... (F f)"
PASS_OTHERS = "pass arguments of the types that C++ takes"
PASS_AS_MANY = "pass as many arguments as one of these functions has parameters"
PASS_ARRAY = "pass an array, or one element of it as a slice, x[i : i + 1]"
# Types of C++ that have no numbers in Python, which are those of other types of the same size.
_OF_NO_NUMPY_TYPE = ("char", "long", "unsigned long")
_ALIAS = re.compile(r'"[^"]*" \(aka ("[^"]*")\)')
_SIZE = re.compile(r"\b(?:std::)?size_t\b")
_OTHER_POINTER = re.compile(
    r'argument of type "(?P<given>[^"]*?)(?P<is_pointer> \*)?" is .* of type "(?P<type>(?:const )?(?P<element>.*) \*)"'
)
_WRONG_ARGUMENT = re.compile(
    r'function (?P<template>template )?"[^"(]*\((?P<parameters>[^"]*)\)[^"]*" does not match because argument'
    r" #(?P<number>\d+) does not match"
)
_MISFIT = re.compile(r"does not match because argument #(?P<number>\d+) does not match")
_CANDIDATE = re.compile(r'\bfunction "[\w:]+\((?P<parameters>[^"]*)\)[^"]*"')
_GIVEN = re.compile(r"argument types are: \((?P<types>.*)\)")
_FUNCTOR = re.compile(r"object type is: (?P<type>.*)")
# An object is called that is not overloaded, is, or is a lambda with parameters of any type.
_CALLS_OBJECT = re.compile(
    r"(?:function|no instance of (?:overloaded function|function|function template))"
    r' "(?:lambda |[^"]*::operator\(\)).*" (?:cannot be called with|matches)'
)
_OTHER_NUMBER = re.compile(r"number of parameters of function .* does not match the call")
_NAME = re.compile(r"[\w:]+(?:<.*>)?")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_CAST_TO_FUNCTION = re.compile(r'cast to type "(?P<type>[^"]*\([^"*&]*\))" is not allowed')
_CLASS = re.compile(r"[A-Za-z_][\w:]*")
_OF_LIBRARY = re.compile(
    r'(?:constructor|conversion) exists to convert from "(?P<given>.*)" to'
    r' "cuda::(?:std::\w*span<(?:const )?(?P<element>.*?),)?'
)


def explain_error(text: str, called: str = "", with_n: str = "n") -> tuple[str, str]:
    """Return what an error of a call of the function *called*, with this *text*, means, and what to do; empty where
    that is not known. *with_n* are the arguments of the call with n in the place of the one that the error is about."""
    if text.startswith("expression preceding parentheses") and called and not _NAME.fullmatch(called):
        if not called.startswith("["):  # a lambda, in whose body the error is
            return (
                f"{called} cannot be called",
                "write a function or a lambda; lib.eval(...) is the value of a constant",
            )
    elif text.startswith("expression preceding parentheses"):
        name = called.rpartition("::")[2] if _VARIABLE.fullmatch(called.rpartition("::")[2]) else "value"
        constant = f'take it before the kernel, {name} = lib.eval("{called}"), and use it without parentheses'
        return (
            f"{called} is not a C++ function",
            f"if it is a constant, {constant}; if it is a variable, call a function of C++ that returns it",
        )
    if text.startswith("a nonstatic member reference") and "::" in called:
        owner, _, name = called.rpartition("::")
        method = f'lib.type("{owner}").method("{name}"), which takes an object before the arguments'
        data = f'lib.expr("[](const {owner}& x) {{ return x.{name}; }}")'
        return f"{called} belongs to an object", f"for a function, call {method}; for data, {data}"
    if found := _CAST_TO_FUNCTION.fullmatch(text):
        diagnosis = f"{called} is a function of C++, {found['type']}, and not a value"
        return (
            diagnosis,
            f'call it in a kernel; or, if it is constexpr, name the value of a call: lib.eval("{called}(...)")',
        )
    if text == "a namespace name is not allowed":
        return f"{called} is a namespace, which cannot be called", f'name a function in it: lib["{called}::..."]'
    if text.startswith("cannot determine which instance of function template"):
        return text, f'name its template arguments: "{called}<...>"'
    if found := _STRIDED.search(text):
        diagnosis = f"a strided array cannot be passed as {found['pointer']}: C++ reads contiguous memory"
        dtype = NUMPY_TYPES.get(found["element"], "").removeprefix("np.")
        written = f"{dtype}[{':, ' * (found['sizes'].count(',') - 1)}::1]"
        in_signatures = f" (in signatures: {written})" if dtype else ""
        copy = "or a copy of the elements; or let C++ take a cuda::std::mdspan"
        return diagnosis, f"pass a contiguous array{in_signatures}, {copy}"
    if found := _ASSERTED.search(text):
        return found["said"], RECORD_OF_WHOLE
    if found := _STAND_IN.search(text):
        name = found["type"]
        diagnosis = (
            f"whether a template copies {name}, which has packed members, is not known where its result is deduced"
        )
        return diagnosis, f"let C++ take a const {name}&, or declare the type of the result"
    if (found := _OTHER_COMPLEX.search(text)) and found["given"] != found["type"] and " *" not in text:
        given, wanted = NUMPY_TYPES[found["given"]].removeprefix("np."), NUMPY_TYPES[found["type"]]
        diagnosis = f"a {given} cannot be passed as {found['type'].removeprefix('cuda::std::')}"
        return diagnosis, f"convert it in the kernel: {wanted}(z)"
    if found := _COMPLEX.search(text):
        return f"a complex number cannot be passed as {found['type']}", "pass x.real, x.imag or abs(x)"
    if found := _TUPLE.search(text):
        diagnosis = (
            f"a tuple cannot be passed as {found['type']}" if found["type"] else "C++ gets a tuple, a cuda::std::tuple"
        )
        return diagnosis, "let C++ take a tuple or its elements; or let a lambda, lib.expr(...), make what it takes"
    if "uninitialized const or reference member" in text:
        diagnosis = "a struct with const or reference members cannot be made of what Python has of it"
        return diagnosis, "let a lambda, lib.expr(...), make it of its members"
    if found := _VALUE_OF_STRUCT.search(text):
        return text, f"pass an element of an array of lib.record({found['type']!r}), to which C++ can write"
    if found := _VALUE_OF_ENUMERATION.search(text):
        diagnosis = f"C++ writes to a member of an enumeration of Python as {found['type']}&"
        return diagnosis, "let C++ take a value or a const reference, and return what it changes"
    if text.startswith("initial value of reference to non-const must be an lvalue"):
        diagnosis = "C++ refers to a value of Python, and what it writes would be lost"
        return diagnosis, (
            "let C++ take a value or a const reference, and return what it changes; or let a lambda refer to what a"
            " pointer points to: lib.expr('[](auto* p) { return f(reinterpret_cast<T&>(*p)); }')"
        )
    if text.startswith("an rvalue reference cannot be bound to an lvalue"):
        return text, "let C++ take a value or a const reference: the arguments are variables"
    if found := _POINTED.search(text):
        cast = f"reinterpret_cast<{found['type']}>({'*p' if '&' in found['kind'] else 'p'})"
        passed = cast if found["kind"][0] == "(" else "&p"
        return text, f"let a lambda make it of a pointer: lib.expr('[](auto* p) {{ return f({passed}); }}')"
    if found := _NOT_A_TEMPLATE.search(text):
        name, passed = found["name"] or found["referred"], found["type"] or found["reference"]
        if "(" not in passed:  # no pointer or reference to a function
            what = f"{name}, the name of a function or constant of C++," if name else "a Python function"
            last = name.rpartition("::")[2] if name else ""
            constant = f'; a constant of C++ is taken before the kernel: {last} = lib.eval("{name}")' if name else ""
            return f"{what} is passed where C++ takes {passed}", f"call it: {name or 'f'}(...){constant}"
        what = f"the function {name}" if name else "a Python function"
        diagnosis = f"{what} cannot be passed as {passed}, but as a template parameter"
        return diagnosis, TAKE_FUNCTION_OBJECT
    plain = _SIZE.sub("unsigned long", _ALIAS.sub(r"\1", text))
    if (found := _NOT_WRITTEN.search(plain)) and found["type"] in NUMPY_TYPES:
        name = NUMPY_TYPES[found["type"]]
        given = NUMPY_TYPES.get(found["given"], found["given"])
        diagnosis = f"C++ writes to an argument of type {given.removeprefix('np.')} as {found['type']}&"
        cast = f"let a lambda cast it: lib.expr('[](auto& x) {{ f(reinterpret_cast<{found['type']}&>(x)); }}')"
        function = called if _NAME.fullmatch(called) else "f"
        stored = f"n = {name}(v); {function}({with_n}); v = n"
        typed = f"pass an element of an array of {name}; or a variable, and store it after the call: {stored}"
        if found["type"] not in _OF_NO_NUMPY_TYPE:
            return diagnosis, typed
        return diagnosis, cast if given == name else f"{typed}; and {cast}"
    if found := _READ_ONLY.search(text):
        if found["type"] == "char *":  # a string: no array has such elements
            diagnosis = "C++ takes a string to which it can write, and that of a kernel is constant"
            return diagnosis, "let C++ take a const char *"
        return text, f"pass an array that is not read-only; or, where C++ only reads it, take a const {found['type']}"
    if found := _READ_ONLY_STRUCT.search(text):
        remedy = (
            f"pass an element of an array that is not read-only; or, where C++ only reads it, take a {found['type']}&"
        )
        return text, remedy
    if found := _STRUCT_FOR_POINTER.search(text):
        name = found["type"]
        diagnosis = f"a struct cannot be passed as {name} *, but memory that it is in"
        slice_of = f"pass a slice of an array of lib.record({name!r}), x[i : i + 1]"
        return diagnosis, f"{slice_of}, where a struct that C++ returned can be put first, x[i] = ..."
    if found := _OTHER_STRUCT.search(text):
        return text, f"make the records with the dtype that lib.record({found['type']!r}) returns"
    if found := _OTHER_POINTER.search(plain):
        return text, _find_other_pointer(found)
    if found := _OF_LIBRARY.search(text):
        if (element := NUMPY_TYPES.get(found["element"] or "")) and found["given"] != f"{found['element']} *":
            return text, f"pass an array of {element}"
        parameter = "auto* x" if found["given"].endswith("*") else "auto x"
        return text, f"let a lambda make it: lib.expr('[]({parameter}) {{ return f(T{{x, ...}}); }}'), of that type T"
    if found := _NOT_AN_ENUMERATOR.search(text):
        return text, f"make a number an enumerator in the kernel: lib[{found['type']!r}](...)"
    if 'of type "std::nullptr_t" is incompatible' in text:
        return text, "pass a value: None is a null pointer to C++"
    if found := _OTHER_ENUMERATION.search(text):
        is_number = found["type"] in NUMPY_TYPES
        return text, "pass its number, x + 0" if is_number else f"make it one in the kernel: lib[{found['type']!r}](x)"
    if found := _NO_CLASS.search(text):
        is_struct = found["type"].endswith("*") and found["type"].rstrip(" *") not in NUMPY_TYPES
        return text, "write -> for the dot" if is_struct else "pass an object that has the member"
    if text.startswith("static assertion failed"):
        return text, "make the call as the assertion demands"
    if text.startswith("a lambda is not allowed"):
        return text, "write lib.expr(...) for a lambda, not lib[...]"
    if found := _RETURNED.search(text):
        diagnosis = f"the Python function {found['name']} returns a tuple, and C++ takes {found['type']} there"
        return diagnosis, f"let {found['name']} return one value"
    if found := _TO_CLASS.search(text):
        return text, f"pass an element of an array of lib.record({found['type']!r}) or lib.type({found['type']!r})"
    if text.endswith(" is inaccessible"):
        return text, "make it public in its class, or name a public member that uses it"
    if text == "return value type does not match the function type" or text.startswith('a value of type "void" '):
        return text, "return a value of that type from what is called there: a Python function without one gives None"
    if text == "expression must have a constant value":
        return text, "declare what it calls and reads constexpr; or let a kernel compute it"
    if instead := nvrtc_log.what_to_write(text):
        return text, instead
    if found := _INCOMPLETE.search(text):
        return text, f"define {found['type']} in the source, or include the header that does: it is declared alone"
    return text, ""


def find_taken(text: str) -> str:
    """Return the type that C++ takes where a call passes a function, as the *text* of an error says; else nothing."""
    found = _NOT_A_TEMPLATE.search(text)
    return (found["type"] or found["reference"]) if found else ""


def find_object(error: Diagnostic) -> tuple[int, str]:
    """Return which argument of the call an *error* is about, counted from 1, and the class or enumeration that C++
    takes there; 0 and an empty text for another error."""
    number, text = number_of_argument(error), error.text
    found = number and (_TO_CLASS.search(text) or _TUPLE.search(text) or _NOT_A_TEMPLATE.search(text))
    if found:
        groups = found.groupdict()
        return number, plain_type(groups.get("type") or groups.get("reference") or "")
    for misfit in _find_misfits(error):
        return int(misfit["number"]), _parameter(misfit["parameters"], int(misfit["number"]))
    return 0, ""


def _find_misfits(error: Diagnostic) -> list[re.Match[str]]:
    """Return what the lines of an *error* say of the argument that the only candidate with as many parameters does not
    take; nothing if there are several."""
    candidates = "\n".join(error.lines[1:])
    found = list(_WRONG_ARGUMENT.finditer(candidates))
    fitting = len(CANDIDATE.findall(candidates)) - len(_OTHER_NUMBER.findall(candidates))
    return found if len(found) == fitting == 1 else []


def number_of_argument(error: Diagnostic) -> int:
    """Return which argument of the call an *error* is about, counted from 1; 0 if it is about none."""
    marked = re.search(r"\bnca_a(\d+)", error.marked)
    return 0 if marked is None else int(marked[1]) + 1


def explain_kind(text: str, error: Diagnostic, arguments: Sequence[str], objects: int = 0) -> tuple[str, str] | None:
    """Return that one of the *arguments*, as messages write their types, is an array, a string, None or a tuple where
    C++, or every candidate in the lines of an *error* with this *text*, takes a number, and what to do; ``None`` for
    another error. The first *objects* of the arguments, 0 or 1, are none of C++: the object of a method."""
    found = list(_WRONG_ARGUMENT.finditer("\n".join(error.lines)))
    numbers = {int(each["number"]) + objects for each in found}
    types = [_parameter(each["parameters"], int(each["number"])) for each in found]
    if _NOT_A_NUMBER.search(text) and (marked := number_of_argument(error)):
        numbers = {marked}
    elif len(numbers) != 1 or "*" in "".join(types) or not any(each in NUMPY_TYPES for each in types):
        return None
    number = numbers.pop()
    kind = find_kind("".join(arguments[number - 1 : number]))
    return None if kind is None else (f"argument {number} is {kind.name}, where C++ takes a number", kind.remedy)


def explain_candidate(error: Diagnostic, called: str, arguments: Sequence[str], objects: int = 0) -> str:
    """Return what is wrong where one function alone, *called* so, could take the *arguments*, of which the first
    *objects* are none of C++, and one of these is of another type; empty where that is not known."""
    if not (found := _find_misfits(error)):
        return ""
    number = int(found[0]["number"])
    taken, given = _split(found[0]["parameters"])[number - 1 : number], arguments[objects:][number - 1 : number]
    if not taken or not given:
        return ""
    return f"argument {number + objects} is {describe(given[0])}, and {called} takes {taken[0].replace(' *', '*')}"


def explain_misfit(error: Diagnostic, arguments: Sequence[str], objects: int = 0) -> str:
    """Return what to do about the one of the *arguments* that does not fit the candidates in the lines of an *error*,
    of which NVRTC does not say what they take; empty if there are several such arguments, or none. The first *objects*
    of the arguments are none of C++."""
    numbers = {int(each["number"]) + objects for each in _MISFIT.finditer("\n".join(error.lines))}
    if len(numbers) != 1 or not (given := arguments[(number := numbers.pop()) - 1 : number]):
        return ""
    of_struct, kind = "", find_kind(given[0])
    if kind is not None and kind.name == "a tuple":
        of_struct = ": for a struct T, an element of an array with the dtype lib.record('T')"
    return f"pass argument {number} of the type that C++ takes, not {describe(given[0])}{of_struct}"


def explain_pointer(text: str, error: Diagnostic, label: str) -> str:
    """Return what to do where the *error* with this *text* is that a pointer has no members, in a template that
    *label* instantiates with an array as that pointer; empty for another error."""
    found = _NO_CLASS.search(text)
    called, passed = split_label(label)
    if found is None or f"={found['type']}]" not in "\n".join(error.lines).replace(",", "]"):
        return ""
    ways = []
    for each in list_arguments(passed):
        array = find_array(each)
        ways.append(("'span'" if array.ndim == 1 else "'mdspan'") if array else "None")
    if not any(way != "None" for way in ways):
        return ""
    if not _OF_SPAN.match(error.marked):
        ways = [way.replace("'span'", "'mdspan'") for way in ways]
    name = called.rpartition("::")[2] if _VARIABLE.fullmatch(called.rpartition("::")[2]) else "f"
    owner = f"lib.{called}" if _VARIABLE.fullmatch(called) else f"lib[{called!r}]"
    return (
        f"an array is a pointer here: pass a view, {name} = {owner}.passing({', '.join(ways)}) before the kernel and"
        f" {name}(...) in it;\n    or let C++ take a cuda::std::mdspan<T, E, L>"
    )


def explain_functor(error: Diagnostic, label: str) -> tuple[str, str] | None:
    """Return what is wrong and what to do where C++, and not the call *label* itself, calls an object with arguments
    that it does not take; ``None`` for another error."""
    log = "\n".join(error.lines)
    found, given = _FUNCTOR.search(log), _GIVEN.search(log)
    if found is None or given is None or error.place == label or not _CALLS_OBJECT.match(error.text):
        return None
    name, types = found["type"].removeprefix("const "), given["types"]
    if name.startswith("nca_"):  # a Python function
        return None
    what = "the lambda" if name.startswith("lambda") else name
    declared = "the lambda" if name.startswith("lambda") else f"operator() of {name}"
    if "type qualifiers that prevent a match" in error.text:
        return (
            f"C++ calls a const {name}, whose operator() is not const",
            f"declare it const: operator()({types}) const",
        )
    return f"C++ calls {what} with ({types}), and it takes others", f"let {declared} take ({types})"


def explain_operator(called: str, given: Sequence[str]) -> str:
    """Return what to do where no function *called* an operator takes arguments of the types that are *given*, of which
    the first is a class, which may have it as a member; empty for others."""
    found = _OPERATOR.fullmatch(called)
    if found is None or not given or not _CLASS.fullmatch(given[0]) or given[0] in NUMPY_TYPES:
        return ""
    sign, is_unary = found["sign"], len(given) == 1
    first = "auto& a" if _ASSIGNS.fullmatch(sign) else "auto a"
    written = "a[b]" if sign == "[]" else f"{sign}a" if is_unary else f"a {sign} b"
    made = f"lib.expr('[]({first}{'' if is_unary else ', auto b'}) {{ return {written}; }}')"
    method = f"lib.type({given[0]!r}).method('operator{sign}')"
    return f"for an operator that is a member, call {method};\n    or a lambda, which finds either: {made}"


def explain_candidates(lines: Sequence[str], called: str = "") -> str:
    """Return what to do where none of the candidates in the *lines* of an error, or several, take the arguments of the
    function that is *called*. The first line says which."""
    text = "\n".join(lines)
    wrong = [*_WRONG_ARGUMENT.finditer(text)]
    found = [_parameter(each["parameters"], int(each["number"])) for each in wrong]
    is_template = any(each["template"] for each in wrong)
    if found and not is_template and all(_CLASS.fullmatch(each) and each not in NUMPY_TYPES for each in found):
        records = " or ".join(f"lib.record({each!r})" for each in dict.fromkeys(found))
        return f"pass an element of an array of {records}; where that is an enumeration, lib[{found[0]!r}](...)"
    if found and all(each.endswith("*") for each in found):
        given = _GIVEN.search(text)
        if given and (number := _parameter(given["types"], int(wrong[0]["number"]))) in NUMPY_TYPES:
            elements = [each.rstrip("* ") for each in found]
            return _pass_memory(number if number in elements else elements[0])
        arrays = dict.fromkeys(NUMPY_TYPES[name] for each in found if (name := each.rstrip("* ")) in NUMPY_TYPES)
        which = " or ".join(arrays) or "one of these types"
        other = "x.view(...) in the kernel is the same memory with another type"
        return f"pass an array of {which}; {f'or call another one than {called}' if '<' in called else other}"
    if "nca::nca_enumerator<" in text:
        return "make the member of an enumeration an enumerator of C++, lib['...'](x); or pass its number, x + 0"
    is_ambiguous = text.startswith("more than one instance")
    if not found and not is_ambiguous and _OTHER_NUMBER.search(text):
        return PASS_AS_MANY
    return _find_conversion(text) or PASS_OTHERS


def _find_conversion(text: str) -> str:
    """Return which arguments to convert so that a call takes one of the candidates in the *text* of an error: the one
    that needs the fewest; empty if that is not known."""
    given = _GIVEN.search(text)
    passed = _split(given["types"]) if given else []
    conversions = []
    for each in _CANDIDATE.finditer(text):
        taken = [plain_type(name) for name in _split(each["parameters"])]
        pairs = zip(taken, passed, strict=True) if len(taken) == len(passed) else ()
        conversions.append([(n, to, was) for n, (to, was) in enumerate(pairs, 1) if to != was and to in NUMPY_TYPES])
    found = min(
        filter(None, conversions),
        key=lambda each: (len(each), *(_rank(NUMPY_TYPES[to]) for _, to, _ in each)),
        default=[],
    )
    if any("complex" in was and "complex" not in to for _, to, was in found):
        return "pass x.real, x.imag or abs(x): C++ takes no complex number there"
    arguments: dict[str, list[str]] = {}
    for n, to, _ in found:
        arguments.setdefault(f"{NUMPY_TYPES[to]}(x)", []).append(str(n))
    listed = [
        f"{to} for argument{'s' * (len(numbers) > 1)} {' and '.join(numbers)}" if len(passed) > 1 else to
        for to, numbers in arguments.items()
    ]
    convert = "convert arguments in the kernel to the types of one of these functions"
    return f"{convert}, such as {' and '.join(listed)}" if listed else ""


def _rank(numpy_type: str) -> int:
    return ("np.float64", "np.float32", numpy_type).index(numpy_type)


def _parameter(parameters: str, number: int) -> str:
    """Return the type of the parameter with this *number*, without const and references; empty if it has none."""
    return plain_type("".join(_split(parameters)[number - 1 : number]))


def _split(parameters: str) -> list[str]:
    return re.split(r", ?(?![^<(]*[>)])", parameters)


def _pass_memory(element: str) -> str:
    """Return what to do for a number where C++ takes a pointer to an *element*."""
    if (dtype := NUMPY_TYPES.get(element)) is None or element in _OF_NO_NUMPY_TYPE:
        return PASS_ARRAY
    return f"{PASS_ARRAY}; for a variable, make it an array of one element: y = cuda.local.array(1, {dtype})"


def _find_other_pointer(found: re.Match[str]) -> str:
    """Return what to do for an argument of another type than a pointer's."""
    if found["given"] in ("void", "const void"):  # what pointers to structs are in Python
        return (
            f"let a lambda give it its type: lib.expr('[](auto* p) {{ return f(static_cast<{found['type']}>(p)); }}')"
        )
    if found["type"] == "const char *" and not found["is_pointer"]:
        return "pass a constant string, such as 'text'"
    if not found["is_pointer"]:
        return _pass_memory(found["element"])
    if found["given"] == "const char":
        return "let C++ take a const char*"
    element = NUMPY_TYPES.get(found["element"])
    if element and found["element"] not in _OF_NO_NUMPY_TYPE:
        return f"pass an array of {element}"
    cast = f"let a lambda cast it: lib.expr('[](auto* p) {{ return f(reinterpret_cast<{found['type']}>(p)); }}')"
    if element and element != NUMPY_TYPES.get(found["given"].removeprefix("const ")):
        return f"pass an array of {element}, and {cast}"
    if element or not _CLASS.fullmatch(found["element"]):
        return cast
    record = f"pass an array of lib.record({found['element']!r})"
    return f"{record}; where that is an enumeration, {cast}" if found["given"] in NUMPY_TYPES else record
