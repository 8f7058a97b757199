# SPDX-License-Identifier: BSD-2-Clause
"""Enumerators of C++ that Python uses as functions, attributes or arguments: how Python has their values, and which one
is meant."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping

from ..c_abi.c_types import KEYWORDS
from .declared_names import Enumeration, find_enumerations

_NEAR = 0.7
# In the text of a call: the members of an enumeration of Python that it passes.
_MEMBERS = re.compile(r"^// members of (?P<name>.*?): (?P<members>.*)$", re.MULTILINE)
_REFUSED = re.compile(
    r'"const nca::nca_enumerator<nca::(?P<struct>\w+), [^">]*>"'
    r' (?:to|is incompatible with parameter of type) "(?:const )?(?P<type>[A-Za-z_][\w:]*)"'
)
_NUMBER = re.compile(r"-?\d+")


def declare_members(name: str, members: Mapping[int, str]) -> tuple[str, str]:
    """Return the struct of C++ for an enumeration of Python called *name* with these *members*, by their numbers, and
    its declaration: its ``nca_agree`` is whether an enumeration of C++ has the same number in each enumerator of the
    name of a member. No enumerator has the name of a keyword or a macro."""
    listed = ", ".join(f"{member} = {number}" for number, member in members.items())
    comment = f"// members of {name}: {listed}".encode("ascii", "backslashreplace").decode()
    struct = f"nca_members_{hashlib.sha256(comment.encode()).hexdigest()[:12]}"
    lines = [f"#ifndef {struct.upper()}", f"#define {struct.upper()}", f"namespace nca {{ struct {struct} {{", comment]
    agree = []
    for each, (number, member) in enumerate(members.items()):
        if member.isascii() and member not in KEYWORDS and not member.startswith("__"):
            of_enumerator = f"template <class nca_E, nca_E nca_V = nca_E::{member}> __device__ static constexpr bool"
            test = f"nca_V == static_cast<nca_E>({number % 2**64}u)"
            lines += [
                f"#ifndef {member}\n{of_enumerator} nca_{each}(int) {{ return {test}; }}\n#endif",
                f"template <class nca_E> __device__ static constexpr bool nca_{each}(...) {{ return true; }}",
            ]
            agree.append(f" && nca_{each}<nca_E>(0)")
    every = f"template <class nca_E> __device__ static constexpr bool nca_agree() {{ return true{''.join(agree)}; }}"
    return struct, "\n".join([*lines, every, "}; }", "#endif"])


def explain_members(
    text: str, code: str, texts: Iterable[str], ask_type: Callable[[str], str | None]
) -> tuple[str, str] | None:
    """Return what is wrong where an enumeration of Python is passed as one of C++ that has other numbers, as the *text*
    of an error says of a call with this *code*, and what to do; ``None`` for another error. *ask_type* returns
    the type of an expression of C++."""
    if (found := _REFUSED.search(text)) is None:
        return None
    declared = _MEMBERS.search(code, code.index(f"struct {found['struct']} {{"))
    if declared is None:
        return None
    taken, of_python = found["type"], f"{declared['name']} of Python"
    members = {
        name: int(number) for name, _, number in (each.rpartition(" = ") for each in declared["members"].split(", "))
    }
    known = _ask_enumerators(taken, find_enumerations(texts), ask_type)
    lacking = {name: number for name, number in members.items() if number not in known.values()}
    other = {name: number for name, number in members.items() if known.get(name, number) != number}
    diagnosis = f"{taken} of C++ has no enumerators with the numbers and names of members of {of_python}"
    if known and lacking:
        diagnosis = f"{taken} of C++ lacks {_list(lacking)} of {of_python}: it has {_list(known)}"
    elif other:
        of_cxx = _list({name: known[name] for name in other})
        diagnosis = f"{taken} of C++ and {of_python} differ: C++ has {of_cxx}, and Python {_list(other)}"
    return diagnosis, f"give the members C++'s numbers; or make a number an enumerator in the kernel: lib[{taken!r}](x)"


def _list(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {number}" for name, number in numbers.items())


def _ask_enumerators(name: str, found: Iterable[Enumeration], ask_type: Callable[[str], str | None]) -> dict[str, int]:
    """Return the numbers of the enumerators of C++'s enumeration *name*, which is one of those *found*; nothing where
    C++ does not tell them."""
    last = name.rpartition("::")[2]
    for each in found:
        if each.name == last and each.enumerators:
            written = ", ".join(f"(long long){name}::{enumerator}" for enumerator in each.enumerators)
            numbers = _NUMBER.findall((ask_type(f"nca::nca_numbers<{written}>{{}}") or "").partition("<")[2])
            if len(numbers) == len(each.enumerators):
                return dict(zip(each.enumerators, map(int, numbers), strict=True))
    return {}


def explain_enumerator(name: str, texts: Iterable[str], enumeration: str = "") -> tuple[str, str] | None:
    """Return what is wrong where *name*, such as ``Mode::slow``, is used as a function or a member is, and what to do,
    if *texts* seem to declare it as an enumerator, or one of nearly that name; ``None`` for any other name.
    *enumeration* is its type where that is known."""
    found = find_enumerations(texts)
    if known := _find_owner(name, found, enumeration):
        return f"{name} is an enumerator of C++", _take(name, enumeration or _name(known, name))
    near = find_near(name, found)
    if known := _find_owner(near, found, enumeration):
        of_enumeration = enumeration or _name(known, near)
        return f"C++ has no enumerator {name}", f"did you mean {near}? Then {_take(near, of_enumeration)}"
    return None


def _take(name: str, enumeration: str) -> str:
    last = name.rpartition("::")[2]
    return f'take its value before the kernel, {last} = lib.eval("{name}"), and pass lib[{enumeration!r}]({last}) in it'


def _find_owner(name: str, found: Iterable[Enumeration], enumeration: str) -> Enumeration | None:
    """Return the one of the enumerations *found* that has the enumerator *name*; ``None`` if none has."""
    scope, _, last = name.rpartition("::")
    having = [each for each in found if last in each.enumerators]
    names = scope.rpartition("::")[2], enumeration.rpartition("::")[2]
    return next((each for each in having if each.name in names or not each.is_scoped), None)


def find_near(name: str, found: Iterable[Enumeration]) -> str:
    """Return the enumerator whose name looks most like *name*; empty if none does."""
    scope, _, last = name.rpartition("::")
    before, _, owner = scope.rpartition("::")
    names = {}
    for each in found:
        for enumerator in each.enumerators:
            if each.name == owner or each.is_scoped:
                names[f"{each.name}::{enumerator}"] = f"{before}::{each.name}::{enumerator}".removeprefix("::")
            if not each.is_scoped and each.name != owner:
                names[f"{owner}::{enumerator}".removeprefix("::")] = f"{scope}::{enumerator}".removeprefix("::")
    near = difflib.get_close_matches(f"{owner}::{last}".removeprefix("::"), names, n=1, cutoff=_NEAR)
    return names[near[0]] if near else ""


def _name(enumeration: Enumeration, enumerator: str) -> str:
    """Return the name of an *enumeration* of which an *enumerator* has this name."""
    scope = enumerator.rpartition("::")[0]
    if scope.rpartition("::")[2] == enumeration.name:
        return scope
    return f"{scope}::{enumeration.name}" if scope else enumeration.name
