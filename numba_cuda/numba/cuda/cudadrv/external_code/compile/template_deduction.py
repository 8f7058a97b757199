# SPDX-License-Identifier: BSD-2-Clause
"""Why a call does not fit a function template: the arguments give a template parameter two types, one is no pointer, or
a constraint does not hold. NVRTC says the last of concepts alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..inputs.c_numbers import NUMBERS

_HIDDEN = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FAILED = re.compile(
    r'candidate function template "(?P<scope>(?:\w+::)*)(?P<name>\w+)(?:\((?P<takes>[^"]*)\)[^")]*)?" failed deduction'
)
_NOT_DEDUCED = re.compile(
    _FAILED.pattern
    + r'|number of parameters of function template "(?:\w+::)*(?P<other>\w+)(?:\([^"]*)?" does not match'
)
_GIVEN = re.compile(r"argument types are: \((?P<types>.*)\)")
_TYPE_PARAMETER = re.compile(r"(?:class|typename)\s+(\w+)(?:\s*=.*)?")
_LIBRARIES = ("cuda::", "cub::", "thrust::", "std::")  # which users do not change
_COMMA = re.compile(r",(?![^<(]*[>)])")


def explain_conflict(
    log: str,
    texts: Iterable[str],
    given: Sequence[str] = (),
    first: int = 1,
    pass_pointer: str = "pass a pointer",
) -> tuple[str, str] | None:
    """Return what is wrong and what to do where the *log* of an error says that deduction fails for a function
    template of *texts*, and two arguments give one of its parameters different types, or one is no pointer where the
    template takes one, for which *pass_pointer* is what to do; ``None`` where that is not known.

    *given* are the types of the arguments, as ``float *``, unless the log has them; *first* is the number of the first.
    """
    candidates = list(_FAILED.finditer(log))
    if not given and (types := _GIVEN.search(log)):
        given = [each.strip() for each in _COMMA.split(types["types"])]
    failed = {each["name"] for each in candidates}
    if len(failed) != 1:
        return None
    name, texts = failed.pop(), list(texts)
    for candidate in candidates:
        if candidate["takes"] and (explained := _explain_listed(candidate, texts, given, first, pass_pointer)):
            return explained
    if (found := _find_template(name, texts)) is None:
        return None
    parameters, takes = found
    taken = [each.partition("=")[0] for each in _COMMA.split(takes)]
    for parameter in map(str.strip, _COMMA.split(parameters)):
        if (named := _TYPE_PARAMETER.fullmatch(parameter)) is not None:
            of_name = [_form(each, named[1]) for each in taken]
            if explained := _explain(named[1], of_name, given, first, pass_pointer):
                return explained
    return None


_CONCEPT = re.compile(r'concept "(?P<concept>[^"]+)" not satisfied for "<(?P<types>.*)>"')
_CONSTRAINTS = re.compile(
    r'substituting "<(?P<types>.*)>" for function template "(?:\w+::)*(?P<name>\w+)[^"]*" failed constraints'
)
_ENABLE_IF = re.compile(r"\benable_if(?:_t)?\s*(?=<)")
_DECLTYPE = re.compile(r"\bdecltype\s*(?=\()")
_PASS_FITTING = "pass arguments for which it holds: numbers are converted in the kernel, as by np.int32(x)"


def explain_constraint(log: str, texts: Iterable[str], given: Sequence[str] = ()) -> tuple[str, str] | None:
    """Return what is wrong and what to do where the *log* of an error says that a function template does not take the
    arguments of a call, since a constraint of it does not hold: a concept, or what its declaration in *texts* has in
    ``enable_if`` or ``decltype``. ``None`` where there is none, or another reason may be why. *given* are the types of
    the arguments, unless the log has them."""
    if (concept := _CONCEPT.search(log)) and len(_CONSTRAINTS.findall(log)) == 1 and "failed deduction" not in log:
        name = re.sub(r"::__\d+(?=::)", "", concept["concept"])
        return f"{concept['types']} does not satisfy the concept {name}", _PASS_FITTING
    if (failed := _CONSTRAINTS.search(log)) and "failed deduction" not in log:
        return f"{failed['types']} does not satisfy what {failed['name']} requires", _PASS_FITTING
    names = {each["name"] for each in _FAILED.finditer(log)}
    if len(names) != 1 or failed:
        return None
    texts = list(texts)
    if find_undeduced(log, texts) is not None:
        return None
    if not given and (types := _GIVEN.search(log)):
        given = [each.strip() for each in _COMMA.split(types["types"])]
    name = names.pop()
    for text in texts:
        found = [*_list_constraints(_HIDDEN.sub(" ", text), name)] if name in text else []
        if not found:
            continue
        if not all(conditions and _is_deduced(parameters, takes) for parameters, takes, conditions in found):
            return None
        conditions = list(dict.fromkeys(each for *_, conditions in found for each in conditions))
        which = "a constraint" if len(conditions) == 1 else "constraints"
        with_types = _tell_deduced(*found[0][:2], given) if len(found) == 1 else ""
        does = "does" if len(conditions) == 1 else "do"
        return f"{which} of {name} {does} not hold{with_types}: {'; '.join(conditions)}", _PASS_FITTING
    return None


def _list_constraints(code: str, name: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the parameters of each template of a function *name* that *code* declares, those of the function, and the
    conditions and expressions on which its declaration depends."""
    for called in re.finditer(rf"\b{name}\s*(?=\()", code):
        head = code[max(code.rfind(each, 0, called.start()) for each in "{};") + 1 : called.start()]
        begin = re.search(r"\btemplate\s*(?=<)", head)
        if begin is None:
            continue
        parameters = _in_brackets(head[begin.end() :])
        takes = _in_brackets(code[called.end() :])
        rest = re.split("[{;]", code[called.end() + len(takes) + 2 :], maxsplit=1)[0]
        declared = f"{head} {takes} {rest}"
        conditions = [_COMMA.split(_in_brackets(declared[each.end() :]))[0] for each in _ENABLE_IF.finditer(declared)]
        conditions += [_in_brackets(rest[each.end() :]) for each in _DECLTYPE.finditer(rest)]
        yield parameters, takes, [" ".join(each.split()) for each in conditions]


def _in_brackets(text: str) -> str:
    """Return what is in the brackets with which *text* begins; ``<`` and ``>`` in round ones are signs."""
    depth = 0
    opening, closing = text[0], {"<": ">", "(": ")"}[text[0]]
    round_ = 0
    for number, character in enumerate(text):
        round_ += (character == "(") - (character == ")") if opening == "<" else 0
        if round_ == 0:
            depth += (character == opening) - (character == closing)
        if depth == 0:
            return text[1:number]
    return text[1:]


def _is_deduced(parameters: str, takes: str) -> bool:
    """Return whether the parameters *takes* of a function have types from which any argument tells those *parameters*
    of its template that are types: ``T``, or a pointer or a reference to it."""
    named = [each[1] for each in map(_TYPE_PARAMETER.fullmatch, map(str.strip, _COMMA.split(parameters))) if each]
    taken = [each.partition("=")[0] for each in _COMMA.split(takes)]
    return all(
        _form(each, name) in ("", "&", "&&", "*") for each in taken for name in named if re.search(rf"\b{name}\b", each)
    )


def _tell_deduced(parameters: str, takes: str, given: Sequence[str]) -> str:
    """Return with which types, as far as these are read from the arguments that are *given*."""
    told: dict[str, str] = {}
    for each in map(_TYPE_PARAMETER.fullmatch, map(str.strip, _COMMA.split(parameters))):
        for taken, argument in zip(_COMMA.split(takes), given, strict=False):
            if each and _form(taken.partition("=")[0], each[1]) is not None:
                plain = plain_type(argument)
                told.setdefault(each[1], plain.rstrip("* ") if "*" in taken else plain)
    return f" with {', '.join(f'{name} = {each}' for name, each in told.items())}" if told else ""


def plain_type(cxx: str) -> str:
    """Return a type of C++ without const and references."""
    return re.sub(r"\bconst\b|&", "", cxx).strip()


def find_undeduced(log: str, texts: Iterable[str]) -> tuple[str, list[str]] | None:
    """Return the parameters of the function template of *texts* for which the *log* of an error says that deduction
    fails or that it has another number of parameters, and the names of the first of them, up to the last that no
    parameter of the function has; ``None`` where all are in the function's parameters, or that is not known."""
    failed = {each["name"] or each["other"] for each in _NOT_DEDUCED.finditer(log)}
    found = _find_template(failed.pop(), list(texts)) if len(failed) == 1 else None
    if found is None or "..." in found[0]:
        return None
    declared = [each.strip() for each in _COMMA.split(found[0])]
    names = [re.findall(r"\w+", each.partition("=")[0])[-1:] for each in declared]
    if not all(names):
        return None
    missing = [
        number
        for number, (name,) in enumerate(names, 1)
        if "=" not in declared[number - 1] and not re.search(rf"\b{name}\b", found[1])
    ]
    return (", ".join(declared), [name for (name,) in names[: missing[-1]]]) if missing else None


def find_taken_form(log: str, texts: Iterable[str]) -> str:
    """Return what the function template for which the *log* of an error says that deduction fails takes, where its
    parameters are made of those of the template, as ``V<T> x`` is; empty where that is not known."""
    failed = {each["name"] for each in _FAILED.finditer(log)}
    found = _find_template(failed.pop(), list(texts)) if len(failed) == 1 else None
    return "" if found is None or _is_deduced(*found) else " ".join(found[1].split())


def _find_template(name: str, texts: Iterable[str]) -> tuple[str, str] | None:
    """Return the parameters of the one template of a function *name*, and those of the function, in the first of
    *texts* that declares one: the source is before the headers, which have functions of that name too. ``None`` where
    there are several."""
    for text in texts:
        if name in text and (found := {*_find_declarations(_HIDDEN.sub(" ", text), name)}):
            return found.pop() if len(found) == 1 else None
    return None


def _explain_listed(
    candidate: re.Match[str], texts: Sequence[str], given: Sequence[str], first: int, pass_pointer: str
) -> tuple[str, str] | None:
    """Return what `explain_conflict` does for a *candidate* whose parameters the log lists, as it does for overloads:
    those of its types that *texts* have as parameters of templates."""
    taken = _COMMA.split(candidate["takes"])
    if len(taken) != len(given):
        return None
    for word in dict.fromkeys(re.findall(r"\b[A-Za-z_]\w*", candidate["takes"])):
        explained = _explain(word, [_form(each, word) for each in taken], given, first, pass_pointer)
        if explained and any(re.search(rf"\b(?:class|typename)\s+{word}\b\s*[,>=]", each) for each in texts):
            diagnosis, remedy = explained
            return diagnosis, remedy.partition(";")[0] if candidate["scope"].startswith(_LIBRARIES) else remedy
    return None


def _find_declarations(code: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters of each template of a function *name* that *code* declares, and those of the function."""
    for called in re.finditer(rf"\b{name}\s*\(", code):
        start = max(code.rfind(each, 0, called.start()) for each in "{};)") + 1
        _, template, head = code[start : called.start()].partition("template")
        takes = code[called.end() : code.find(")", called.end())]
        if template and head.lstrip().startswith("<") and not re.search(r"[(){};]|\btemplate\b", head + takes):
            depth = 0
            for sign in re.finditer("[<>]", head):
                depth += 1 if sign[0] == "<" else -1
                if depth == 0:
                    yield head[head.index("<") + 1 : sign.start()], takes
                    break


def _form(taken: str, parameter: str) -> str | None:
    """Return what stands after the template *parameter* in the type of a function's parameter: ``*`` of
    ``const T* x``; ``None`` where that type is made otherwise."""
    plain = re.sub(r"\bconst\b|\b__restrict(?:__)?\b", " ", taken)
    found = re.fullmatch(rf"\s*{parameter}\s*(\*|&&?)?\s*\w*\s*", plain)
    return None if found is None else found[1] or ""


def _explain(
    parameter: str, forms: Sequence[str | None], given: Sequence[str], start: int, pass_pointer: str
) -> tuple[str, str] | None:
    deduced: dict[str, list[int]] = {}
    for number, (form, argument) in enumerate(zip(forms, given, strict=False), start):
        plain = re.sub(r"\bconst\b", "", argument).strip()
        if form == "*" and not plain.endswith(("*", "]", ")")):  # arrays and functions become pointers
            return f"argument {number} is {plain}, where C++ takes a pointer, {parameter}*", pass_pointer
        if form is not None:
            deduced.setdefault(plain.removesuffix("*").strip() if form == "*" else plain, []).append(number)
    if len(deduced) > 1:
        (one, first), *others = [(each, _list(numbers)) for each, numbers in deduced.items()]
        said = [f"{each} in {numbers}" for each, numbers in others]
        return (
            f"{parameter} is {' and '.join([f'{one} in {first}', *said])}",
            f"{_convert(deduced)}; or give each a template parameter of its own:"
            f" class {parameter}, class {_next(parameter)}",
        )
    if deduced and len(forms) > 1 and set(forms) == {"&&"}:
        return (
            f"{parameter}&& takes a variable and a value, for which {parameter} is two types",
            f"take const {parameter}&, or give each a template parameter of its own: class {parameter}, class"
            f" {_next(parameter)}",
        )
    return None


def _convert(deduced: Mapping[str, Sequence[int]]) -> str:
    """Return which arguments to convert, so that all have the type that most of them have; of which types have as many,
    that is for the user to say."""
    most = sorted(deduced, key=lambda each: -len(deduced[each]))
    if len(deduced[most[0]]) == len(deduced[most[1]]):
        of_two = sum(map(len, deduced.values())) == 2
        return f"convert {'one of the two, so that both' if of_two else 'them, so that all'} have one type"
    others = sorted(number for each in most[1:] for number in deduced[each])
    name = NUMBERS[most[0]].name if most[0] in NUMBERS else most[0]
    is_number = re.fullmatch(r"(?:u?int|float|complex)\d+", name)
    return f"convert {_list(others)} in the kernel, {f'np.{name}(...)' if is_number else f'to {name}'}"


def _list(numbers: Sequence[int]) -> str:
    *before, last = map(str, numbers)
    return f"arguments {', '.join(before)} and {last}" if before else f"argument {last}"


def _next(parameter: str) -> str:
    return "U" if parameter == "T" else f"{parameter}2"
