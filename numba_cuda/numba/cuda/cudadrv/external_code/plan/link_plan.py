# SPDX-License-Identifier: BSD-2-Clause
"""The link plan: the external code that is linked into one kernel, in which order, and where each input comes from."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numba.cuda.cudadrv.driver import LinkerError

from numba_cuda_autolink.printable_texts import bounded
from numba_cuda_autolink.source_locations import shown_file, with_place

from ..diagnostics.messages import shown_log, with_short_first_line
from ..inputs import kinds
from ..inputs.c_prototypes import CalledFunction, CPrototype, prototype_of_llvm
from ..inputs.link_input import LinkInput, VariableSource, line_marker
from ..platform.target import Target
from .python_functions import PythonKernel

# The kernel's own side of a link

_POINTER = re.compile(r"[%\w.\"]+\*+")


class SymbolSite(NamedTuple):
    """A call that references a symbol."""

    prototype: str  # its LLVM prototype
    call: str  # which call it is, for messages
    c_prototype: CPrototype | None = None  # the types that C sees; ``None`` if only LLVM's are known
    asked: tuple[str, ...] = ()  # the calls of objects that it is, as the origins of link inputs

    @property
    def untyped(self) -> str:
        """The prototype without the types that its pointers point to, in which calls of one function may differ."""
        return _POINTER.sub("i8*", self.prototype)

    def called(self, symbol: str) -> CalledFunction:
        return CalledFunction(symbol, self.c_prototype or prototype_of_llvm(self.prototype), self.call)


@dataclass(frozen=True)
class LLVMModules:
    """LLVM IR of a kernel, called *name*: its *texts*, callers before callees, which NVVM compiles to LTO-IR with
    *options*, sorted by name."""

    texts: tuple[str, ...] = field(repr=False)
    options: tuple[tuple[str, Any], ...]
    name: str


@dataclass(frozen=True)
class KernelCode:
    """A kernel's own code (*inputs*): LLVM IR, LTO-IR or PTX; the kernel's name in it (*entry*), the functions that it
    calls and does not define (*undefined*), for those of them that calls in Python reference the *sites* of these
    calls, each with another prototype, and *options* of its link besides those of the target, of
    `cuda.core.LinkerOptions`. *python* describes the functions that it was compiled from, if they are known."""

    inputs: tuple[LinkInput | LLVMModules, ...]
    entry: str = ""
    undefined: tuple[str, ...] = ()
    sites: Mapping[str, tuple[SymbolSite, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    python: PythonKernel | None = field(default=None, compare=False)

    def referenced_by(self, symbol: str) -> str:
        return self.sites[symbol][0].call if symbol in self.sites else "linked code, not by a call in Python"


# The origins of inputs that no call site provides.
NAMED_EXPLICITLY = "link="
COOPERATIVE_LAUNCH = "cooperative launch"
NRT = "numba-cuda's runtime"
DEVICE_RUNTIME = "a call to the device runtime"
_RUNTIMES = frozenset({COOPERATIVE_LAUNCH, NRT, DEVICE_RUNTIME})


@dataclass(frozen=True)
class PlannedInput:
    """A link input and its origins: call sites, or ``link=``. Equal code is planned once. *members* are the sources
    that a translation unit was put together from."""

    input: LinkInput
    origins: tuple[str, ...]
    members: tuple[PlannedInput, ...] = ()

    def __str__(self) -> str:
        return f"{self.input.kind} {self.input.name!r} of {' and of '.join(self.origins)}"

    @property
    def is_runtime(self) -> bool:
        """Whether it is a runtime library that the kernel needs, rather than code that a user provides."""
        return _RUNTIMES.issuperset(self.origins)


@dataclass(frozen=True)
class LinkPlan:
    """The inputs of one link besides the kernel's own code, the callbacks of the module that it makes, and the
    variables that the host sets in it, with an origin of each; each once, in order of first use. The kernel is
    *defined_at* a line of a file."""

    kernel: str  # for messages
    target: Target
    inputs: tuple[PlannedInput, ...]
    setup_callbacks: tuple[Callable[[Any], None], ...]
    teardown_callbacks: tuple[Callable[[Any], None], ...]
    variables: tuple[tuple[str, VariableSource], ...] = ()
    defined_at: tuple[str, int] | None = None

    @functools.cached_property
    def units(self) -> tuple[PlannedInput, ...]:
        """The inputs as they are compiled and linked: sources that share a translation unit are one."""
        return join_units(self.inputs)

    @property
    def named_explicitly(self) -> tuple[LinkInput, ...]:
        """The inputs that ``link=`` names, or callers of the linker."""
        return tuple(planned.input for planned in self.inputs if NAMED_EXPLICITLY in planned.origins)

    @property
    def may_drop_variables(self) -> bool:
        """Whether a link may leave out variables that no linked code uses, but for those that the host sets: not if
        another callback could look them up by name, nor if code is named explicitly in another form than LTO-IR."""
        of_variables = [call for _, each in self.variables for call in (each.setup_callback, each.teardown_callback)]
        return not (
            any(callback not in of_variables for callback in (*self.setup_callbacks, *self.teardown_callbacks))
            or any(planned.input.nrt for planned in self.inputs)
            or any(link_input.kind is not kinds.LTO_IR for link_input in self.named_explicitly)
        )

    @classmethod
    def of(
        cls,
        kernel: str,
        target: Target,
        provided: Iterable[tuple[str, LinkInput]],
        defined_at: tuple[str, int] | None = None,
    ) -> LinkPlan:
        origins: dict[tuple[LinkInput, str], dict[str, None]] = {}
        setup: list[Callable[[Any], None]] = []
        teardown: list[Callable[[Any], None]] = []
        variables: dict[VariableSource, str] = {}
        for origin, link_input in provided:
            origins.setdefault((link_input, _name_in_code(link_input)), {})[origin] = None
            _add_once(setup, link_input.setup_callback)
            _add_once(teardown, link_input.teardown_callback)
            if link_input.variable is not None:
                variables.setdefault(link_input.variable, origin)
        inputs = tuple(PlannedInput(link_input, tuple(named)) for (link_input, _), named in origins.items())
        named_variables = tuple((origin, variable) for variable, origin in variables.items())
        return cls(kernel, target, inputs, tuple(setup), tuple(teardown), named_variables, defined_at)


def _name_in_code(link_input: LinkInput) -> str:
    """Return the name of a source if equal sources of other names may compile to other code: it is in the code, or it
    is a path, next to which headers are looked up."""
    counts = link_input.kind is kinds.CUDA and (b"__FILE__" in link_input.code or os.path.isfile(link_input.name))
    return link_input.name if counts else ""


def _add_once(callbacks: list[Callable[[Any], None]], callback: Callable[[Any], None] | None) -> None:
    # By equality, which is for bound methods of one object what identity is for functions.
    if callback is not None and callback not in callbacks:
        callbacks.append(callback)


# Translation units


def join_units(inputs: Iterable[PlannedInput]) -> tuple[PlannedInput, ...]:
    """Return *inputs* with the sources of one unit and equal options joined, in the place of the first of them."""
    groups: dict[object, list[PlannedInput]] = {}
    for number, planned in enumerate(inputs):
        options = planned.input.options
        is_shared = planned.input.kind is kinds.CUDA and options.unit != ""
        groups.setdefault(options if is_shared else number, []).append(planned)
    return tuple(group[0] if len(group) == 1 else _unit_of(group) for group in groups.values())


def _unit_of(group: list[PlannedInput]) -> PlannedInput:
    origins = dict.fromkeys(origin for planned in group for origin in planned.origins)
    return PlannedInput(join_sources([planned.input for planned in group]), tuple(origins), tuple(group))


def join_sources(sources: Sequence[LinkInput]) -> LinkInput:
    if len(sources) == 1:
        return sources[0]
    options = sources[0].options
    code = "".join(
        f"{line_marker(name)}{source.code.decode()}\n"
        for name, source in zip(_unique_names(sources), sources, strict=True)
    )
    return LinkInput(kinds.CUDA, code.encode(), dataclasses.replace(options, unit=""), f"{options.unit}.cu")


def _unique_names(sources: Sequence[LinkInput]) -> Iterator[str]:
    """Yield the sources' names, with numbers where they are equal: NVRTC's messages then name one source."""
    seen: Counter[str] = Counter()
    for source in sources:
        seen[source.name] += 1
        yield source.name if seen[source.name] == 1 else f"{source.name} ({seen[source.name]})"


@dataclass(frozen=True)
class LinkRequest:
    """A link of a kernel's own code with what is planned, to an *output*, ``"cubin"`` or, with LTO only, ``"ptx"``.

    With *drop_unused_variables*, LTO may assume that no other code reads or sets a variable, or calls another kernel.
    If code is named explicitly, that goes for the variables of headers alone: weak ones with a mangled name.
    """

    plan: LinkPlan
    kernel_code: KernelCode
    output: str = "cubin"
    drop_unused_variables: bool = False


_CALL = re.compile(r"(?:called|with \(.*\)) at (?P<place>(?P<file>\S[^\n]*?):(?P<line>\d+) in [\w.<>]+)")


# What a linker's log says of its own stages.
_OF_LINKER = re.compile(
    r"^\s*(?:ERROR_\w+ \(\d+\)|ERROR NVJITLINK_\w+: [^\n]*)(?:\n|\Z)|^\s*nvJitLink error log: ", re.MULTILINE
)


class LinkError(LinkerError):
    """A kernel's external code could not be compiled or linked.

    ``log`` is all that the compiler or linker printed; its own exception is ``__cause__``. ``source_path`` is the file
    that holds a CUDA C++ source that does not compile, ``None`` if it could not be saved.
    """

    __module__ = "numba.cuda.autolink"  # as tracebacks show it

    def __init__(self, message: str, log: str = "", *, source_path: str | None = None, shown: str | None = None):
        self.log = log.replace("\0", "").strip()
        self.source_path = source_path
        shown = _OF_LINKER.sub("", self.log) if shown is None else shown
        indented = "\n    ".join(line for line in shown_log(shown).splitlines() if line.strip())
        message = bounded(message)
        super().__init__(f"{message}\n  log: {indented}" if indented else message)


_OF_LINK = ("linked: ", "what to do: ")  # begin the last details


def link_error(
    plan: LinkPlan,
    diagnosis: str,
    *details: str,
    log: str = "",
    at: tuple[str, int] | None = None,
    kind: type[LinkError] = LinkError,
    add_place: Callable[[str], str] | None = None,
    **source: str | None,
) -> LinkError:
    """Return the error of a failed link of *plan*: the diagnosis, its place, which is *at* a line of a file, else
    the first call that the *details* name, else the kernel's definition, and one line for each of the details.
    *add_place* puts the place of C++ code before that."""
    first = f"linking {plan.kernel} for {plan.target.arch} failed"
    if diagnosis:
        number = next((n for n, each in enumerate(details) if each.startswith(_OF_LINK)), len(details))
        details = (*details[:number], first, *details[number:])
        first = with_short_first_line(diagnosis.removesuffix(": "))
    message = "\n  ".join((first, *details))
    if at is not None:
        message = with_place(message, f"at: {shown_file(at[0])}:{at[1]}", *at)
    elif call := _CALL.search(message):
        again = re.compile(rf" (?:called )?at {re.escape(call['place'])}(?![\w.<>])")
        message = with_place(again.sub("", message), f"called at: {call['place']}", call["file"], int(call["line"]))
    else:
        message = with_definition(message, plan.defined_at)
    message = add_place(message) if add_place else message
    return kind(message, log, **source)


def calls_kernel(plan: LinkPlan, symbol: str, *details: str) -> LinkError:
    """Return the error of a call in Python to the kernel *symbol*, which only a launch can run."""
    remedy = f"what to do: declare {symbol!r} as __device__, not as __global__ (in PTX: .func, not .entry)"
    return link_error(plan, f"{symbol!r} is called as a function, but it is a kernel", *details, remedy)


def with_definition(message: str, defined_at: tuple[str, int] | None) -> str:
    """Return *message* with the place where its kernel is defined, if that is known."""
    if defined_at is None:
        return message
    filename, line = defined_at
    return with_place(message, f"defined at: {shown_file(filename)}:{line}", filename, line, is_call=False)
