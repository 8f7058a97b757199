# SPDX-License-Identifier: BSD-2-Clause
"""Which arguments of a call have other types than the parameters of the C function, and what to do about each.

The compiler has said that the types differ. Which of them do is read from its declaration of the function; what is not
known of a type counts as equal.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from ..compile.prototype_assertions import WrongFunction
from ..inputs.c_numbers import NUMBERS
from ..inputs.c_prototypes import CType, split_types
from ..plan.declared_functions import abi_of

_MOST_EXCHANGED = 4  # parameters, so that at most 24 orders are tried
_MEMORY = re.compile(r"(?P<to>[^*&]*[^*& ])(?P<sign>\*|&&?)")
_GENERAL = (
    "give the function the types of the call (autolink.cxx_type(x) is the C++ type of a parameter), or let the call"
    " convert them (Extern's args and returns)"
)


def what_to_do(wrong: Sequence[WrongFunction]) -> tuple[list[str], str]:
    """Return which arguments of calls differ from the parameters of the functions that they call, a line for each, and
    what to do."""
    for each in wrong:
        if "char*" in each.declaration and "Literal[str]" in each.called.call:
            return [], (
                "call the function by name, autolink.cxx(...), which passes a constant string as const char*: Extern"
                " passes no strings"
            )
        abi = "" if each.called.prototype.names else abi_of(each.called.symbol)
        differing, remedies = _compare_declared(each, abi) if abi else _compare(each)
        if remedies:
            return differing, "; ".join(dict.fromkeys(remedies))
    return [], _GENERAL


def _compare(wrong: WrongFunction) -> tuple[list[str], list[str]]:
    symbol, prototype = wrong.called.symbol, wrong.called.prototype
    returns, taken = _read(wrong.declaration, symbol)
    passed = prototype.parameters
    names = prototype.names or tuple(f"argument {number}" for number in range(1, len(passed) + 1))
    differing, remedies = [], []
    if _differs(prototype.returns, returns):
        remedies.append(_of_result(symbol, prototype.returns, returns))
    if len(passed) != len(taken):
        differing.append(f"the call passes {len(passed)}, and {symbol} takes {len(taken)}")
        remedies.append(_of_number(symbol, passed, taken, names))
        return differing, remedies
    wrong_numbers = [number for number, pair in enumerate(zip(passed, taken, strict=True)) if _differs(*pair)]
    orders = itertools.permutations(range(len(passed))) if wrong_numbers and len(passed) <= _MOST_EXCHANGED else ()
    fitting = [order for order in orders if not any(map(_differs, (passed[i] for i in order), taken))]
    if len(fitting) == 1:
        listed = ", ".join(repr(names[i]) for i in fitting[0])
        remedies.append(f"pass the arguments in the order of C: Extern({symbol!r}, ..., args=[{listed}])")
        return differing, remedies
    converted: dict[int, str] = {}
    for number in wrong_numbers:
        given, expected, name = passed[number], taken[number], names[number]
        differing.append(f"{name}: got {given.cxx}, expected {expected}")
        remedies += _of_parameter(name, given, expected, converted, number)
    if converted:
        listed = ", ".join(f"{name!r}: {converted.get(number)}" for number, name in enumerate(names))
        cut = [number for number in converted if _drops_fraction(passed[number], taken[number])]
        drops = ", which drops the fraction" if cut else ""
        remedies.append(f"convert what is passed{drops}: Extern({symbol!r}, ..., args={{{listed}}})")
        if cut:
            remedies[-1] += f"; or declare {' and '.join(f'{passed[n].cxx} {names[n]}' for n in cut)} in C++"
    return differing, remedies


def _compare_declared(wrong: WrongFunction, abi: str) -> tuple[list[str], list[str]]:
    """Return the same of a function of ``declare_device``, which is called by this *abi*."""
    symbol, prototype = wrong.called.symbol, wrong.called.prototype
    returns, taken = _read(wrong.declaration, symbol)
    if abi == "c":
        return [], ["give the function the types of declare_device's signature, or the signature those of the function"]
    result, *passed = prototype.parameters
    pointee = result.cxx.removesuffix("*")
    of_result = returns == pointee or (returns == "void" and pointee.endswith("*"))
    fits_c = of_result and len(passed) == len(taken) and not any(map(_differs, passed, taken))
    as_c = f'declare it as the C function that it is, declare_device({symbol!r}, ..., abi="c"); or '
    writes = "leaves the first parameter alone" if pointee.endswith("*") else "writes the result to the first parameter"
    as_numba = f'define it as Numba calls it: extern "C" __device__ {wrong.called.declaration}'
    return [], [f"{as_c if fits_c else ''}{as_numba}, which {writes} and returns 0"]


def _read(declaration: str, symbol: str) -> tuple[str, list[str]]:
    """Return the types of the result and the parameters in a *declaration* of the function *symbol*."""
    returns, _, parameters = declaration.partition(f" {symbol}(")
    listed = split_types(parameters.rpartition(")")[0])
    return returns.strip(), [] if listed == ["void"] else listed


def _of_result(symbol: str, expected: CType, returned: str) -> str:
    if returned == "void":
        return f"leave out returns=, Extern({symbol!r}): it returns nothing"
    number = NUMBERS.get(returned)
    written = repr(number.name) if number else "..."
    return f"write the type that it returns: Extern({symbol!r}, returns={written})"


def _of_number(symbol: str, passed: Sequence[CType], taken: Sequence[str], names: Sequence[str]) -> str:
    """Return what to do where a call passes more or fewer arguments than the function *symbol* takes."""
    if len(passed) < len(taken):
        return f"pass an argument for each parameter of {symbol}, or declare it in C++ with those of the call"
    found = [
        numbers
        for numbers in itertools.islice(itertools.combinations(range(len(passed)), len(taken)), 256)
        if not any(map(_differs, (passed[i] for i in numbers), taken))
    ]
    listed = ", ".join(repr(names[i]) for i in found[0]) if found else "..."
    return f"name the arguments that C takes: Extern({symbol!r}, ..., args=[{listed}])"


def _of_parameter(name: str, given: CType, expected: str, converted: dict[int, str], number: int) -> Iterator[str]:
    """Yield what to do about the argument *name* that is *given* where C++ has *expected* another type, or note in
    *converted* what to convert the argument with this *number* to."""
    memory = _MEMORY.fullmatch(expected)
    pointee = memory["to"].removeprefix("const ") if memory else ""
    target = NUMBERS.get(pointee if memory else expected)
    is_given_number = given.kind in ("int", "uint", "float", "bool", "byte", "word")
    if is_given_number and memory:
        is_read = memory["to"].startswith("const ") or memory["sign"] == "&&"
        if target and is_read:
            converted[number] = f"autolink.by_reference({target.name!r})"
        elif target:
            array = f" of {target.name}" if _differs(given, pointee) else ""
            yield f"pass memory for {name}, to which C++ writes: a slice of an array{array}, such as x[i:i + 1]"
        if given.size == 8 and given.kind in ("int", "uint"):
            address = f"args={{..., {name!r}: types.voidptr}}"
            yield f"where the integer {name} is an address, Extern's {address}"
    elif is_given_number and target:
        converted[number] = repr(target.name)
    elif given.kind == "pointer" and not memory and target:
        yield f"pass a number as {name}: one element of the array, such as x[i]"
    elif given.kind == "pointer" and memory and given.pointee is not None:
        if target and _differs(given.pointee, pointee):
            yield f"pass an array of {target.name} as {name}, or declare {given.cxx} in C++"
        elif given.cxx.startswith("const "):
            yield f"declare {given.cxx} in C++, or pass an array that is not read-only as {name}"


def _drops_fraction(given: CType, expected: str) -> bool:
    number = NUMBERS.get(expected.removeprefix("const "))
    return given.kind == "float" and number is not None and number.kind in ("int", "bool")


def _differs(given: CType, expected: str) -> bool:
    """Return whether a value of the type *given* is known not to be what C++ *expected*."""
    expected = expected.removeprefix("const ") if not re.search("[*&]", expected) else expected
    if given.cxx == expected or given.kind == "unknown":
        return False
    memory = _MEMORY.fullmatch(expected)
    if given.kind == "void" or expected == "void":
        return (given.kind == "void") != (expected == "void")
    if given.kind == "pointer":
        if memory is None:
            return expected in NUMBERS
        if given.cxx.startswith("const ") and not memory["to"].startswith("const "):
            return given.pointee is not None
        return given.pointee is not None and _differs(given.pointee, memory["to"].removeprefix("const "))
    if memory is not None:
        return given.kind != "word"
    number = NUMBERS.get(expected)
    if number is None or given.kind not in ("int", "uint", "float", "bool", "byte", "word"):
        return False
    if given.kind in ("byte", "bool"):
        return number.size != 1 or (given.kind == "bool" and number.kind != "bool")
    if given.kind == "word":
        return (number.kind, number.size) != ("int", 8)
    return (number.kind, number.size) != ("float" if given.kind == "float" else "int", given.size)
