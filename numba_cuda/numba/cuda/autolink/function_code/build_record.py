# SPDX-License-Identifier: BSD-2-Clause
"""The record of a build: plain data that outlives the compiler's own."""

from __future__ import annotations

import inspect
import linecache
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

from numba.cuda import types
from numba.cuda.compiler import ExternFunction
from numba.cuda.core.errors import NumbaError
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.diagnostics.timeline import Span
from numba.cuda.cudadrv.external_code.formats.symbols import Symbols
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction
from numba.cuda.cudadrv.external_code.inputs.link_input import VariableSource
from numba.cuda.cudadrv.external_code.link.linker_input import LinkRecord
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkPlan, PlannedInput
from numba.cuda.cudadrv.external_code.plan.python_functions import PythonFunction
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, Target
from numba.cuda.np import numpy_support

from numba_cuda_autolink.assigned_names import Assigned
from numba_cuda_autolink.errors import FinishedKernelError
from numba_cuda_autolink.plain_types import Parameter, element_type
from numba_cuda_autolink.source_locations import shown_file

from ..protocol.ask import with_answer
from ..protocol.call_sites import CallSite, origins_of
from ..protocol.callee import Callee, find_callee
from ..protocol.errors import HookError
from ..protocol.kernel_signatures import type_text
from .call_graph import CallGraph, Frame, all_functions, call_graph
from .function_code import FunctionCode
from .object_names import LAMBDA, describe_functions, short_names

_LONGEST_REPR = 4000
_FUNCTION = re.compile(r"type\(\w+\(<function (?:\S+<locals>\.)?(\S+) at 0x([0-9a-f]+)>\)\)")


@dataclass(frozen=True)
class CallRecord:
    """One call of an object that provides code: the call site as text; the object's repr, a short name that no other
    object of the kernel has, its class, and the argument types that it was asked about; the place of the call, and the
    text of that line."""

    site: str
    object: str
    name: str
    type_name: str
    argtypes: tuple[str, ...]
    filename: str
    line: int
    text: str
    # chain, function: the functions from the kernel to the call, each with the line at which it calls the next, or that
    # of the call itself; and the index of the last one among the functions of the call graph
    chain: tuple[Frame, ...]
    function: int
    # seconds, stored: how long the answer took, and whether it had been stored under its link key, so that the object
    # was not asked
    seconds: float | None
    stored: bool
    # expression: of a C++ expression that is called, such as a lambda, its whole text
    expression: str = ""
    # shown_types: the types with what tells functions of one name apart, ``function f at ops.py:3``
    shown_types: tuple[str, ...] = ()

    @property
    def arguments(self) -> str:
        """The types of the arguments in parentheses, as reports show them."""
        return f"({', '.join(self.shown_types or self.argtypes)})"

    @property
    def call(self) -> str:
        return f"{self.object}({', '.join(self.argtypes)})"


@dataclass(frozen=True)
class BuildFacts:
    """A kernel built for one target: its name in the code, its calls, its link
    (``None`` where numba-cuda linked it alone), what the linker printed, the symbols of its own code before the link,
    whether the finished kernel came from the disk cache of ``cuda.jit(cache=True)``, the timeline of the build, the
    Python functions that it and what C++ calls are compiled from, what tells those of one name apart, and the texts of
    libraries that its calls are from, each with the file and line where it was given."""

    entry_name: str
    target: Target
    graph: CallGraph
    calls: tuple[CallRecord, ...]
    link: LinkRecord | None
    log: str
    own_symbols: Symbols
    restored: bool = False
    timeline: tuple[Span, ...] = ()
    python: tuple[PythonFunction, ...] = ()
    details: tuple[tuple[PythonFunction, str], ...] = ()
    given_texts: tuple[tuple[str, tuple[str, int]], ...] = ()


def facts_of(code: FunctionCode, target: Target, output: str, log: str = "") -> BuildFacts:
    """Return the facts of a kernel that was linked for *target* to a ``"cubin"`` or ``"ptx"``; *output* is ``"ltoir"``
    if it was not linked. *log* is what a linker of the front end printed, where that linked it alone."""
    graph, chains = call_graph(code)
    calls = []
    sites = dict.fromkeys((*code.call_sites, *chains))
    names = short_names({site.callee: _names_of(site.callee) for site in sites})
    origins = code.origins if sites.keys() == code.origins.keys() else origins_of(sites)
    compiled = dict.fromkeys(each.calls.function for each in all_functions(code))
    python = tuple(as_written(each) for each in compiled if each is not None)
    passed = {id(each): as_written(PythonFunction.of(each)) for site in sites for each in _functions_of(site.argtypes)}
    details = describe_functions((*python, *passed.values()))
    by_address = {address: details[each] for address, each in passed.items()}
    for site in sites:
        chain, function = chains.get(site, ((Frame(site.function, site.filename, site.line),), 0))
        try:
            answer = with_answer(site, target).answer
            how: tuple[float | None, bool] = answer.seconds, answer.stored
        except HookError:
            how = None, False
        obj = site.callee.obj
        what = origins[site], safe_repr(obj, _LONGEST_REPR), names[site.callee], type(obj).__name__
        where = site.filename, site.line, linecache.getline(site.filename, site.line).strip()
        argtypes, shown_types = (_types_of(site, known) for known in (None, by_address))
        expression, _ = site.callee.expression or ("", None)
        found = CallRecord(*what, argtypes, *where, chain, function, *how, expression)
        calls.append(replace(found, shown_types=shown_types if shown_types != argtypes else ()))
    spans = tuple(code.timeline.spans)
    link, symbols = code.link_record(target, output), Symbols.of((), code.own_undefined())
    if link is not None and output == "cubin":
        log = link.log
    shown = log.replace("\0", "").strip()
    name = code.entry_name or ""
    texts = tuple(dict.fromkeys(text for site in sites if (text := site.callee.given_text) is not None))
    options = {each.calls.function: each.calls.options for each in all_functions(code) if each is not code}
    python = tuple(replace(as_written(each), options=options.get(each, ())) for each in compiled if each is not None)
    known = python, tuple(details.items())
    return BuildFacts(name, target, graph, tuple(calls), link, shown, symbols, code.restored, spans, *known, texts)


def as_written(function: PythonFunction) -> PythonFunction:
    """Return a *function* with the name that Python has for it, if it is a lambda."""
    return replace(function, name=LAMBDA) if function.name == "_lambda_" else function


def _functions_of(argtypes: Iterable[Any]) -> Iterator[FunctionType]:
    """Yield the Python functions among arguments of these types, and in tuples of these."""
    for each in argtypes:
        if isinstance(each, types.BaseTuple):
            yield from _functions_of(each.types)
        elif isinstance(function := getattr(getattr(each, "dispatcher", None), "py_func", None), FunctionType):
            yield function


def _types_of(site: CallSite, details: Mapping[int, str] | None) -> tuple[str, ...]:
    """Return the types of a call's arguments as text, with ``&`` where C++ refers to one; *details* as `_shown_type`
    has them."""
    return tuple(
        f"{_shown_type(getattr(each, 'dtype', each), details)}&"
        if number in site.callee.referred
        else _shown_type(each, details)
        for number, each in enumerate(site.argtypes)
    )


def _shown_type(argtype: Any, details: Mapping[int, str] | None) -> str:
    """Return a type as text, as signatures have it, a Python function's as ``function f`` or ``lambda``: the same in
    each process. With *details* of these by their addresses, with these, and a C++ expression has its name."""
    passed = find_callee(getattr(argtype, "numba_cuda_link_object", None)) if details is not None else None
    if passed is not None and passed.expression is not None:
        return _name_of_expression(*passed.expression)
    details = details or {}
    text = _FUNCTION.sub(lambda found: f"function {found[1]}{details.get(int(found[2], 16), '')}", type_text(argtype))
    return re.sub(r"\bfunction (?:_lambda_|<lambda>)", "lambda", text)


def _names_of(callee: Callee) -> tuple[str, str]:
    if isinstance(callee.obj, ExternFunction):
        return str(callee.obj.name), str(callee.obj.name)
    if callee.expression is not None:
        return _name_of_expression(*callee.expression), "<expression>"
    return callee.name, safe_repr(callee.obj, _LONGEST_REPR)


def _name_of_expression(text: str, given: Assigned) -> str:
    """Return the variable that holds a C++ expression, or what it is, with the line that gave it."""
    kind = "lambda" if text.startswith("[") else "expression"
    return given.variable or f"{kind} at {os.path.basename(shown_file(given.filename))}:{given.line}"


@dataclass(frozen=True)
class LaunchFacts:
    """What a launch must know of a built kernel besides its code. *argtypes* are numba-cuda's types."""

    name: str
    argtypes: tuple[Any, ...]
    parameter_names: tuple[str, ...]
    debug: bool
    extensions: bool
    cooperative: bool
    carveout: int | None
    setup: tuple[Callable[[Any], None], ...]
    teardown: tuple[Callable[[Any], None], ...]
    needs_nrt: bool
    variables: tuple[VariableSource, ...] = ()
    front_end: str = "numba-cuda"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What a launch takes. Raises `FinishedKernelError` for a type whose values cannot be passed at run time."""
        return kernel_parameters(self.parameter_names, self.argtypes, self.front_end)


def callbacks(plan: LinkPlan) -> tuple[tuple[Callable[[Any], None], ...], tuple[Callable[[Any], None], ...]]:
    """Return what is called when a kernel is loaded and unloaded; without what sets its variables."""
    own = [each for _, variable in plan.variables for each in (variable.setup_callback, variable.teardown_callback)]
    setup = tuple(callback for callback in plan.setup_callbacks if callback not in own)
    return setup, tuple(callback for callback in plan.teardown_callbacks if callback not in own)


def check_only_overload(name: str, signatures: Sequence[str]) -> None:
    """Raise `ValueError` unless the kernel called *name* is compiled for exactly one of *signatures*, texts."""
    if not signatures:
        raise ValueError(
            f"kernel {name} is not compiled yet\n  what to do: launch it, or pass the signature to build it for, for"
            f' example report({name}, "void(float32[::1])", cc=(9, 0))'
        )
    if len(signatures) > 1:
        listed = "".join(f"\n  {each}" for each in signatures)
        raise ValueError(f"kernel {name} is compiled for {len(signatures)} signatures; pass one of them:{listed}")


_OTHERWISE_SHOWN = ("link", "extensions", "device", "cache", "cc", "chip", "signature")


def given_options(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return those *options* of ``cuda.jit`` that are not the *defaults* and can change code, as pairs of a name and a
    text."""
    known = {name: value for name, value in options.items() if name not in _OTHERWISE_SHOWN and name[:1] != "_"}
    return tuple(
        (name, getattr(value, "__qualname__", None) or str(value))
        for name, value in known.items()
        if value is not None and value != defaults.get(name)
    )


def parameter_names(function: Any, count: int) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)[:count]


@dataclass(frozen=True)
class FunctionRecord:
    """A function that was compiled for one signature and target: what a report reads. ``code`` is of the kind
    ``output``, ``"cubin"``, ``"ptx"`` or ``"ltoir"``, in which the function is called ``entry_name``; ``signature`` are
    the types of its arguments as text; ``inputs`` the code that is linked besides its own; ``options`` those that
    ``cuda.jit`` was given besides the defaults, as pairs of a name and a text."""

    code: bytes
    entry_name: str
    output: str
    signature: str
    inputs: tuple[PlannedInput, ...]
    facts: BuildFacts = field(compare=False)
    options: tuple[tuple[str, str], ...] = field(compare=False, kw_only=True, default=())


@dataclass(frozen=True)
class BuildRecord(FunctionRecord):
    """A kernel that was built, as plain data: what launches, reports, saved files and workers read. ``call_sites`` are
    the calls whose objects provided code; ``prototypes`` and ``called_functions`` the functions that its calls
    reference, with their LLVM function types, and as C sees them; ``emulated_texts`` make the PTX for the emulator, in
    the process that built the kernel."""

    cc: ComputeCapability
    call_sites: tuple[CallSite, ...]
    prototypes: Mapping[str, str] = field(compare=False)
    launch_facts: LaunchFacts = field(compare=False)
    called_functions: tuple[CalledFunction, ...] = field(compare=False)
    emulated_texts: Callable[[], list[str]] | None = field(compare=False)


def record_build(
    function: FunctionCode,
    code: bytes,
    output: str,
    signature: str,
    plan: LinkPlan,
    facts: BuildFacts,
    launch: LaunchFacts,
) -> BuildRecord:
    """Return the record of the kernel *function*, which is linked as *plan* says to *code*, an *output*."""
    capability, sites = ComputeCapability(*facts.target.cc), tuple(call.site for call in function.call_sites)
    how = code, facts.entry_name, output, signature, plan.inputs, facts, capability, sites
    return BuildRecord(*how, function.prototypes, launch, function.called_functions, None)


_ARRAYS = {"numba-cuda": "array", "numba-cuda-mlir": "memref"}


def kernel_parameters(
    names: Iterable[str], argtypes: Iterable[Any], front_end: str = "numba-cuda"
) -> tuple[Parameter, ...]:
    """Return the parameters *names* of the types *argtypes*, numba-cuda's, as kernels of the *front_end* take them.
    Raise `FinishedKernelError` for a type whose values cannot be passed to a kernel at run time."""
    return tuple(_parameter(name, each, front_end) for name, each in zip(names, argtypes, strict=True))


def _parameter(name: str, numba_type: Any, front_end: str) -> Parameter:
    if isinstance(numba_type, types.Array):
        dtype = _element_type(name, numba_type.dtype)
        if front_end != "numba-cuda":
            _check_elements(name, numba_type, front_end)
        return Parameter(_ARRAYS[front_end], name, dtype, numba_type.ndim, numba_type.layout, not numba_type.mutable)
    if isinstance(numba_type, types.EnumMember):
        return _parameter(name, numba_type.dtype, front_end)
    if isinstance(numba_type, types.Boolean):
        return Parameter("bool", name, "|b1")
    if isinstance(numba_type, types.BaseTuple):
        fields = getattr(numba_type, "fields", None) or map(str, range(len(numba_type)))
        return Parameter("tuple", name, items=kernel_parameters(fields, numba_type.types, front_end))
    if isinstance(numba_type, (types.CPointer, types.RawPointer)):
        return Parameter("pointer", name)
    if numba_type == types.none:
        if front_end != "numba-cuda":
            raise _refusal(name, numba_type, f"a kernel of {front_end} has no parameter for it")
        return Parameter("none", name)
    kinds = {
        "complex": types.Complex,
        "datetime": (types.NPDatetime, types.NPTimedelta),
        "record": types.Record,
        "number": (types.Integer, types.Float),
    }
    for kind, classes in kinds.items():
        if isinstance(numba_type, classes) and not isinstance(numba_type, types.Literal):
            return Parameter(kind, name, _element_type(name, numba_type))
    if isinstance(numba_type, types.Literal):
        raise _refusal(name, numba_type, "its value is part of the code")
    has_none = isinstance(numba_type, (types.Dummy, types.Callable, types.DTypeSpec, types.Omitted))
    raise _refusal(name, numba_type, "it has no value at run time" if has_none else "finished kernels do not take it")


def _check_elements(name: str, array: types.Array, front_end: str) -> None:
    """Raise `FinishedKernelError` for an array that kernels of the second front end do not read by its strides."""
    if isinstance(array.dtype, types.Record):
        if (array.ndim, array.layout) != (1, "C"):
            raise _refusal(name, array, f"kernels of {front_end} do not use the strides of arrays of records")
    elif not isinstance(array.dtype, (types.Number, types.Boolean)):
        raise _refusal(name, array, "finished kernels do not take it")


def _element_type(name: str, numba_type: Any) -> Any:
    try:
        return element_type(numpy_support.as_dtype(numba_type))
    except (NotImplementedError, NumbaError):
        raise _refusal(name, numba_type, "NumPy has no such type") from None


def _refusal(name: str, numba_type: Any, why: str) -> FinishedKernelError:
    return FinishedKernelError(
        f"parameter {name!r} cannot be passed: {why}\n  type: {numba_type}\n"
        "  what to do: make it a global or closure variable of the kernel, or give it a type that has values"
    )
