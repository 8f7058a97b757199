# SPDX-License-Identifier: BSD-2-Clause
"""The C++ text of one call: an ``extern "C"`` function, and how it asks C++ for the type of its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from numba.cuda.cudadrv.external_code.inputs.link_input import line_marker

from .calls import CALLEE, Call, Parameter, insert_arguments, name_mode
from .prelude import VIEWS
from .structs import Struct

# Begins the names that the text of a call defines, until the call's own symbol takes its place.
_PREFIX = "nca_call"
# How arrays are passed that may be passed in several ways: as a parameter of a template, and as C++ has chosen.
_ANY_MODE, _CHOSEN_MODE = "nca_mode", f"{_PREFIX}_mode"


def write_call(call: Call, *, is_asked_only: bool = False) -> str:
    """Return the text of *call*, which follows that of its head in a translation unit; for a call that *is asked only*,
    about its types, without code."""
    namespace, parameters = call.head.namespace, call.parameters
    lines = [
        *dict.fromkeys(f"#include <{header}>" for each in parameters for header in each.headers),
        *([f"{line_marker('prelude')}{VIEWS}"] if any(each.as_array for each in parameters) else []),
        *(_record(number, struct, namespace) for number, struct in enumerate(call.head.records)),
        *_declare(call),
        *_within(
            namespace,
            [
                *dict.fromkeys(declared for each in parameters for declared in each.inside),
                *_callee(call),
                *(
                    _trials(call)
                    if any(each.as_array or each.is_number or each.by_address for each in parameters)
                    else []
                ),
            ],
        ),
        _mode(call),
        _written(call),
        _referred(call),
        _copied(call),
        *_aliases(call),
        *_within(namespace, [_expression(call)]),
        *_result(call),
        *(() if is_asked_only else _c_function(call)),
    ]
    return "\n".join(lines).replace(_PREFIX, call.symbol) + "\n"


def _declare(call: Call) -> Iterator[str]:
    """Yield what the parameters declare outside of all namespaces: an error in it is the call's."""
    declared = dict.fromkeys(declared for each in call.parameters for declared in each.declarations)
    yield from (f"{line_marker(call.label)}{each}" for each in declared)


def _within(namespace: str, lines: Sequence[str]) -> Sequence[str]:
    return [f"namespace {namespace} {{", *lines, "}"] if namespace and lines else lines


def _path(namespace: str) -> str:
    """Return what leads from outside of all namespaces into this one."""
    return f"::{namespace}::" if namespace else "::"


def _fill(text: str, parameter: Parameter, call: Call, mode: str = _CHOSEN_MODE) -> str:
    """Return a *text* of a parameter with the way its array is passed, and the path to what is declared for it."""
    mode = name_mode(parameter.way) if parameter.way else mode
    return text.replace("{mode}", mode).replace("{inside}", _path(call.head.namespace))


def _called(call: Call, arguments: Sequence[str]) -> str:
    return insert_arguments(call.pattern.text, arguments).replace(CALLEE, f"{_PREFIX}_made()")


def _record(number: int, struct: Struct, namespace: str) -> str:
    """Return an alias of a struct, its number in the code of a result's type, and the assertion for results."""
    alias = struct.alias
    declared = " ".join(_within(namespace, [f"using {alias}_t = {struct.name};"]))
    return "\n".join(
        [
            f"#ifndef {alias.upper()}\n#define {alias.upper()}",
            f"{line_marker(struct.name)}{declared}",
            f"using {alias} = {_path(namespace)}{alias}_t;",
            f"template <> inline constexpr int nca::nca_record_number<{alias}> = {number};",
            f"template <> inline constexpr bool nca::nca_has_members<{alias}> = {struct.has_members:d};",
            f"template <class nca_T> struct nca::nca_record_layout<nca_T, {number}> {{",
            f"{struct.assertion('nca_T')} }};\n#endif",
        ]
    )


def _callee(call: Call) -> Iterator[str]:
    """Yield the function that makes the function object."""
    if call.pattern.callee:
        yield f"{line_marker(call.label)}inline __device__ auto {_PREFIX}_made() {{ return {call.pattern.callee}; }}"


def _trials(call: Call) -> Iterator[str]:
    """Yield functions whose overload resolution shows whether the call is possible, with each argument a variable or a
    temporary."""
    numbers = range(len(call.parameters))
    types = ", ".join(f"class nca_A{i}" for i in numbers)
    declared = ", ".join(f"nca_A{i}&& nca_a{i}" for i in numbers)
    called = _called(call, [f"static_cast<nca_A{i}&&>(nca_a{i}).nca_x" for i in numbers])
    yield (
        f"{line_marker(call.label)}template <{types}> __device__ auto {_PREFIX}_try(int, {declared})"
        f" -> decltype((void)({called}), nca::nca_yes{{}});"
    )
    yield f"template <class... nca_A> __device__ nca::nca_no {_PREFIX}_try(long, nca_A&&...);"


def _trial(call: Call, variables: Iterable[str]) -> str:
    """Return an expression of the type ``nca::nca_yes`` if the call is possible with arguments of these types."""
    held = (each if "nca::nca_bit_field<" in each else f"nca::nca_held<{each}>" for each in variables)
    given = ", ".join(["0", *(f"nca::nca_made<{each}>()" for each in held)])
    return f"{_path(call.head.namespace)}{_PREFIX}_try({given})"


def _mode(call: Call) -> str:
    """Return a constant: how C++ takes arrays that may be passed in several ways."""
    if not any(each.as_array and not each.way for each in call.parameters):
        return f"enum {{ {_CHOSEN_MODE} = 0 }};"
    trial = _trial(call, [_fill(each.cxx, each, call, _ANY_MODE) for each in call.parameters])
    possible = f"sizeof({_PREFIX}_with<nca::{{}}>) == sizeof(nca::nca_yes)"
    return "\n".join(
        [
            f"template <int {_ANY_MODE}> using {_PREFIX}_with = decltype({trial});",
            f"enum {{ {_CHOSEN_MODE} = {possible.format('nca_by_pointer')} ? 0",
            f"#ifdef NCA_MDSPAN\n: {possible.format('nca_by_mdspan')} ? 1\n#endif",
            f"#ifdef NCA_SPAN\n: {possible.format('nca_by_span')} ? 2\n#endif",
            ": 0 };",
        ]
    )


def _written(call: Call) -> str:
    """Return a constant: the numbers that C++ can only take as variables, to write to them, as bits."""
    temporaries = {n: f"nca::nca_plain<{each.cxx}>&&" for n, each in enumerate(call.parameters) if each.is_number}
    return _refused(call, "written", temporaries)


def _referred(call: Call) -> str:
    """Return a constant: the integers to which C++ may write, if they are variables, as bits."""
    fields = {
        n: f"nca::nca_bit_field<nca::nca_plain<{each.cxx}>, {each.bits}>&"
        for n, each in enumerate(call.parameters)
        if each.bits
    }
    return _refused(call, "referred", fields)


def _refused(call: Call, name: str, others: Mapping[int, str], *, if_possible: bool = False) -> str:
    """Return a constant: the arguments in whose places C++ does not take *others*, of these types, as bits; none
    *if_possible* and the call itself is not."""
    variables = [_fill(each.cxx, each, call) for each in call.parameters]
    condition = f"sizeof(decltype({_trial(call, variables)})) == sizeof(nca::nca_yes) && " if if_possible else ""
    bits = []
    for number, other in others.items():
        trial = _trial(call, [*variables[:number], other, *variables[number + 1 :]])
        bits.append(f"({condition}sizeof(decltype({trial})) == sizeof(nca::nca_no) ? {1 << number}ull : 0ull)")
    return f"enum : unsigned long long {{ {_PREFIX}_{name} = {' | '.join(bits) or 0} }};"


def _copied(call: Call) -> str:
    """Return a constant: the structs that C++ copies, and that CUDA's compiler passes wrongly by value, as bits."""
    referred = {
        number: f"nca::nca_referred<{_fill(each.cxx, each, call)}>"
        for number, each in enumerate(call.parameters)
        if each.by_address
    }
    return _refused(call, "copied", referred, if_possible=True)


def _expression(call: Call) -> str:
    """Return the function in whose body names resolve as in the library."""
    declared = ", ".join(f"{_PREFIX}_a{i}&& nca_a{i}" for i in range(len(call.parameters)))
    body = f"{{ return {_called(call, _arguments(call))}; }}"
    return f"{line_marker(call.label)}inline __device__ decltype(auto) {_PREFIX}_expr({declared}) {body}"


def _aliases(call: Call) -> Iterator[str]:
    """Yield names of the types of the arguments. A macro would take a comma in a type for the end of its argument."""
    for i, each in enumerate(call.parameters):
        yield f"using {_PREFIX}_a{i} = {_fill(each.cxx, each, call)};"


def _arguments(call: Call) -> list[str]:
    return [
        f"static_cast<{_PREFIX}_a{i}&&>(nca_a{i})" if each.is_temporary else f"nca_a{i}"
        for i, each in enumerate(call.parameters)
    ]


def _result(call: Call) -> Iterator[str]:
    """Yield the type that the C function returns, and its code."""
    returned = f"decltype(nca::nca_result(&{_path(call.head.namespace)}{_PREFIX}_expr))"
    yield f"using {_PREFIX}_r = nca::nca_plain<{returned}>;"
    yield f"enum {{ {_PREFIX}_cut = nca::nca_is_cut<{returned}> }};"
    yield f"using {_PREFIX}_out = nca::nca_returned<{_PREFIX}_r>;"
    yield f"using {_PREFIX}_code = nca::nca_form_t<{_PREFIX}_r>::nca_code;"


def _c_function(call: Call) -> Iterator[str]:
    parameters = list(enumerate(call.parameters))
    declared = ", ".join(f"{_fill(each.passed, each, call)} nca_p{i}" for i, each in parameters if each.is_passed)
    yield f'extern "C" __device__ {_PREFIX}_out {_PREFIX}({declared}) {{'
    for i, each in parameters:
        yield f"    decltype(auto) nca_a{i} = {_fill(each.value, each, call).replace('{p}', f'nca_p{i}')};"
    called = f"{_path(call.head.namespace)}{_PREFIX}_expr({', '.join(_arguments(call))})"
    yield f"    return nca::nca_cast_t<{_PREFIX}_r>({called});\n}}"
