# SPDX-License-Identifier: BSD-2-Clause
from dataclasses import dataclass
from typing import Literal

@dataclass(frozen=True)
class _Frame:
    function: str
    filename: str | None
    line: int | None

@dataclass(frozen=True)
class _Function:
    name: str
    filename: str | None
    line: int | None

@dataclass(frozen=True)
class _FunctionCall:
    caller: int
    callee: int
    line: int | None

@dataclass(frozen=True)
class _PythonFunction:
    name: str
    path: str
    line: int
    places: str
    digest: str
    parameters: str
    values: tuple[tuple[str, str], ...]
    homes: tuple[tuple[str, str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()

@dataclass(frozen=True)
class CallGraph:
    @property
    def functions(self) -> tuple[_Function, ...]: ...
    @property
    def calls(self) -> tuple[_FunctionCall, ...]: ...

@dataclass(frozen=True)
class Span:
    kind: str
    name: str
    start: float
    seconds: float
    process: int
    thread: int
    origin: str = "built"
    program: str = ""
    @property
    def end(self) -> float: ...

@dataclass(frozen=True)
class CompiledCode:
    kind: str
    size: int
    sha256: str
    origin: Literal["memory", "disk", "image", "remote", "built"]
    seconds: float

@dataclass(frozen=True)
class CodeReport:
    kind: str
    name: str
    size: int
    sha256: str
    brought_by: tuple[str, ...] = ()
    compiled: CompiledCode | None = None
    defines: tuple[str, ...] | None = None
    undefined: tuple[str, ...] | None = None
    content: str | None = None
    source: str | None = None
    functions: tuple[tuple[str, str], ...] = ()
    unit: str | None = None
    @property
    def parts(self) -> tuple[CodeReport, ...]: ...
    options: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    detail: str = ""
    definitions: tuple[tuple[str, str, str], ...] = ()
    @property
    def title(self) -> str: ...
    @property
    def own(self) -> bool: ...
    @property
    def is_python(self) -> bool: ...
    @property
    def linked_kind(self) -> str: ...

@dataclass(frozen=True)
class CallReport:
    site: str
    object: str
    name: str
    type_name: str
    argtypes: tuple[str, ...]
    filename: str
    line: int
    text: str
    @property
    def chain(self) -> tuple[_Frame, ...]: ...
    function: int
    seconds: float | None
    stored: bool
    expression: str = ""
    shown_types: tuple[str, ...] = ()
    @property
    def arguments(self) -> str: ...
    @property
    def returned(self) -> tuple[CodeReport, ...]: ...
    inlined: bool | None = None
    called: tuple[str, ...] = ()
    left: tuple[int, int] | None = None
    @property
    def may_be_left(self) -> bool: ...
    @property
    def call(self) -> str: ...

@dataclass(frozen=True)
class LinkReport:
    lto: bool
    why: str
    options: tuple[str, ...] | None
    @property
    def inputs(self) -> tuple[CodeReport, ...]: ...
    log: str
    origin: str
    seconds: float | None

@dataclass(frozen=True)
class FunctionReport:
    name: str
    size: int
    sha256: str = ""
    calls: int | None = None
    registers: int | None = None
    stack: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    @property
    def code(self) -> tuple[str, int, str]: ...

@dataclass(frozen=True)
class LineReport:
    number: int
    text: str
    sass: tuple[str, ...] = ()

@dataclass(frozen=True)
class ListingReport:
    name: str
    @property
    def lines(self) -> tuple[LineReport, ...]: ...
    ptx: str | None = None
    sass: str | None = None
    note: str = ""
    @property
    def has_lines(self) -> bool: ...
    @property
    def has_machine_code(self) -> bool: ...

@dataclass(frozen=True)
class OccupancyReport:
    threads: int
    blocks: int
    share: float
    limit: str

@dataclass(frozen=True)
class ResultReport:
    kind: str
    size: int
    sha256: str
    registers: int | None = None
    shared: int | None = None
    stack: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    constant_memory: int | None = None
    global_memory: int | None = None
    data: str | None = None
    @property
    def functions(self) -> tuple[FunctionReport, ...]: ...
    @property
    def occupancy(self) -> tuple[OccupancyReport, ...]: ...

@dataclass(frozen=True)
class BuildReport:
    arch: str
    entry_name: str
    restored: bool
    @property
    def calls(self) -> tuple[CallReport, ...]: ...
    link: LinkReport
    result: ResultReport
    @property
    def timeline(self) -> tuple[Span, ...]: ...
    @property
    def listings(self) -> tuple[ListingReport, ...]: ...
    listings_with_lineinfo: bool = False
    options: tuple[tuple[str, str], ...] = ()
    python: tuple[_PythonFunction, ...] = ()

@dataclass(frozen=True)
class KernelReport:
    kernel: str
    filename: str | None
    line: int | None
    signature: str
    graph: CallGraph
    @property
    def builds(self) -> tuple[BuildReport, ...]: ...
    versions: tuple[tuple[str, str], ...]
