# SPDX-License-Identifier: BSD-2-Clause
# Modules are folders here: pyright then does not report that it finds no source of theirs.
# The argument types that hooks get are Any: the classes of Numba's types are unknown to type checkers.
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ContextDecorator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import (
    Any,
    Literal,
    Protocol,
    SupportsIndex,
    TextIO,
    TypeAlias,
    overload,
    runtime_checkable,
)

from numba_cuda_autolink import EmulatedKernel, Kernel
from numpy import dtype, ndarray
from typing_extensions import Never, Unpack

from numba.cuda import CUSource, LinkableCode
from numba.cuda.core._stubs.arguments import (  # noqa: F401  # options have some of these types
    GivenByName,
    NoOther,
    NoSuchOption,
    SignatureIsMissing,
    _Buildable,
    _ComputeCapabilityLike,
    _KernelSignature,
    _LaunchBounds,
    _ListOf,
    _MLIRKernel,
    _OptionalComputeCapability,
    _Output,
    _Several,
    _Signature,
)
from numba.cuda.core._stubs.autolink import (
    ArrayView,
    ByReference,
    ByValue,
    Callback,
    CalledFunction,
    CallSite,
    CompiledSource,
    DeviceMethod,
    Dict,
    Exact,
    F,
    JobLike,
    LaunchFacts,
    LinkItems,
    Meaning,
    NamedType,
    Names,
    ObjectCode,
    Paths,
    PlannedInput,
    PrebuiltFile,
    State,
    TypeLike,
    Values,
    Way,
    WayOfCxx,
)
from numba.cuda.core._stubs.cxx_library import CxxLibrary as CxxLibrary
from numba.cuda.core._stubs.program_options import ProgramOptions as ProgramOptions
from numba.cuda.decorators import JitOptions as JitOptions
from numba.cuda.dispatcher import CUDADispatcher

from . import cache as cache, testing as testing
from .cache import CacheMismatchError as CacheMismatchError, CacheWarning as CacheWarning
from .reports.records import KernelReport
from .testing import NotLinkableError as NotLinkableError

__version__: str

__all__ = [
    "Bitcode",
    "BuildManyError",
    "CABIError",
    "CUDASource",
    "CacheMismatchError",
    "CacheWarning",
    "CallError",
    "CompileError",
    "ComputeCapability",
    "CxxError",
    "CxxFunction",
    "CxxLibrary",
    "CxxType",
    "DeviceCallable",
    "DeviceFunction",
    "Extern",
    "HookError",
    "JitOptions",
    "Job",
    "LinkError",
    "LinkInputError",
    "LinkItem",
    "LinkedKernel",
    "MissingSeamError",
    "NotLinkableError",
    "Prebuilt",
    "PrebuiltError",
    "ProgramOptions",
    "RayExecutor",
    "Report",
    "SupportsCall",
    "SupportsLink",
    "SupportsLinkKey",
    "Target",
    "Variable",
    "activate",
    "bind",
    "build",
    "build_many",
    "by_reference",
    "by_value",
    "cache",
    "compiled",
    "current_target",
    "cxx",
    "cxx_type",
    "deactivate",
    "device_function",
    "device_method",
    "emulated",
    "exact",
    "mdspan",
    "report",
    "save",
    "span",
    "state",
    "symbol",
    "testing",
    "write_header",
]

# The hooks

LinkItem: TypeAlias = LinkableCode | ObjectCode | DeviceFunction | str | PathLike[str]

@runtime_checkable
class SupportsLink(Protocol):
    def __numba_cuda_link__(self, *argtypes: Any, **named: Any) -> LinkItems: ...

@runtime_checkable
class SupportsLinkKey(Protocol):
    def __numba_cuda_link_key__(self, *argtypes: Any, **named: Any) -> object: ...

@runtime_checkable
class SupportsCall(Protocol):
    def __numba_cuda_call__(self, *argtypes: Any, **named: Any) -> Meaning: ...

# Objects

span: ArrayView
mdspan: ArrayView

by_value: ByValue

state: State

class Extern:
    symbol: str
    returns: Any
    args: tuple[tuple[str, Any], ...] | None
    cooperative: bool
    def __init__(
        self,
        symbol: str,
        *,
        returns: TypeLike = None,
        args: Names | Mapping[str, TypeLike | Way] | Dict | None = None,
        cooperative: bool = False,
    ) -> None: ...

def exact(numba_type: TypeLike) -> Exact: ...
def by_reference(numba_type: TypeLike) -> ByReference: ...

class DeviceFunction(DeviceCallable):
    @property
    def symbol(self) -> str: ...
    @property
    def declaration(self) -> str: ...
    @property
    def functor(self) -> str: ...
    @property
    def returns(self) -> Any: ...
    @property
    def states(self) -> int: ...
    @property
    def __name__(self) -> str: ...
    def __numba_cuda_call__(self, *args: Any) -> Extern: ...  # type: ignore[override]
    def __numba_cuda_link__(self, *args: Any) -> DeviceFunction: ...  # type: ignore[override]

def device_function(
    function: Callable[..., Any] | CUDADispatcher[..., Any] | NamedType, *argtypes: TypeLike, state: Any = ()
) -> DeviceFunction: ...

class DeviceCallable:
    def __numba_cuda_call__(self, *args: Any, **kwargs: Any) -> Meaning: ...
    # Declared so that the methods of subclasses are checked. A subclass need not have it.
    def __numba_cuda_link__(self, *args: Any, **kwargs: Any) -> LinkItems: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

# Called with values, and its parameters are types.
def device_method(function: Callable[..., Meaning]) -> DeviceMethod: ...
def cxx_type(numba_type: TypeLike, view: ArrayView | None = None) -> str: ...
def symbol(name: str, *parts: Any) -> str: ...

# C++ by name

class CxxFunction(DeviceCallable):
    def passing(self, *ways: WayOfCxx | None) -> CxxFunction: ...
    def signature(self, *argtypes: TypeLike, cc: _ComputeCapabilityLike | None = None) -> _Signature: ...
    def python(self, function: F) -> F: ...
    def __call__(self, *args: Any) -> Any: ...

class CxxType(CxxFunction):
    size: int
    align: int
    alignment: int
    dtype: dtype[Any]
    def method(self, name: str) -> CxxFunction: ...
    def nested(self, name: str) -> CxxType: ...

def cxx(
    source: str | PathLike[str] = "",
    *,
    include_paths: Paths = (),
    defines: Mapping[str, Any] | Iterable[str | tuple[str, Any]] | None = None,
    options: ProgramOptions = ...,
    namespace: str = "",
    host_headers: bool = False,
) -> CxxLibrary: ...

# Code

class CUDASource(CUSource):
    path: str | None
    """The absolute path of the file with the code; ``None`` if the code was given as text."""
    def __init__(
        self,
        code: str | PathLike[str],
        *,
        name: str | None = None,
        include_paths: Paths = (),
        defines: Mapping[str, Any] | Iterable[str | tuple[str, Any]] = (),
        options: ProgramOptions = ...,
        unit: str | None = None,
        prologue: str = "",
        setup_callback: Callback | None = None,
        teardown_callback: Callback | None = None,
        nrt: bool = False,
        host_headers: bool = False,
    ) -> None: ...
    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        name: str | None = None,
        include_paths: Paths = (),
        defines: Mapping[str, Any] | Iterable[str | tuple[str, Any]] = (),
        options: ProgramOptions = ...,
        unit: str | None = None,
        prologue: str = "",
        setup_callback: Callback | None = None,
        teardown_callback: Callback | None = None,
        nrt: bool = False,
        host_headers: bool = False,
    ) -> CUDASource: ...

class Variable(CUDASource):
    def __init__(
        self,
        name: str,
        dtype: Any,
        shape: SupportsIndex | tuple[SupportsIndex, ...] = (),
        *,
        space: Literal["device", "constant", "managed"] = "device",
        value: Values | None = None,
    ) -> None: ...
    @property
    def dtype(self) -> dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def space(self) -> Literal["device", "constant", "managed"]: ...
    @property
    def declaration(self) -> str: ...
    def set(self, value: Values, *, device: int | None = None) -> None: ...
    def get(self, kernel: Any = None, *, device: int | None = None) -> ndarray[Any, Any]: ...

def compiled(source: CUDASource | Iterable[CUDASource], names: Names = ()) -> CompiledSource: ...

class Bitcode(LinkableCode):
    def __init__(
        self,
        data: bytes | bytearray | memoryview,
        name: str | None = None,
        setup_callback: Callback | None = None,
        teardown_callback: Callback | None = None,
    ) -> None: ...

class Prebuilt:
    folder: Path
    prefer: Literal["cubin", "LTO-IR"]
    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        prefer: Literal["cubin", "LTO-IR"] = "cubin",
        include_paths: Paths = (),
    ) -> None: ...
    def code(self, target: Target | None = None) -> LinkableCode: ...
    def choose(self, target: Target) -> PrebuiltFile: ...

# The target

class ComputeCapability(tuple[Any, ...]):
    def __new__(cls, major: SupportsIndex, minor: SupportsIndex, suffix: str = "") -> ComputeCapability: ...
    @classmethod
    def parse(cls, value: _ComputeCapabilityLike) -> ComputeCapability: ...
    @property
    def major(self) -> int: ...
    @property
    def minor(self) -> int: ...
    @property
    def suffix(self) -> str: ...
    @property
    def parts(self) -> tuple[int, int, str]: ...
    @property
    def base(self) -> ComputeCapability: ...
    @property
    def as_launched(self) -> ComputeCapability: ...
    @property
    def arch(self) -> str: ...

class Target:
    def __init__(
        self,
        compute_capability: _ComputeCapabilityLike,
        suffix: str = "",
        lto: bool = False,
        debug: bool = False,
        lineinfo: bool = False,
        fastmath: bool = False,
        max_registers: int | None = None,
    ) -> None: ...
    @property
    def compute_capability(self) -> ComputeCapability: ...
    @property
    def suffix(self) -> str: ...
    @property
    def lto(self) -> bool: ...
    @property
    def debug(self) -> bool: ...
    @property
    def lineinfo(self) -> bool: ...
    @property
    def fastmath(self) -> bool: ...
    @property
    def max_registers(self) -> int | None: ...
    @property
    def cc(self) -> tuple[int, int, str]: ...
    @property
    def arch(self) -> str: ...
    @property
    def nvrtc_version(self) -> tuple[int, int] | None: ...
    @property
    def nvjitlink_version(self) -> tuple[int, int] | None: ...
    @property
    def nvvm_version(self) -> tuple[int, int] | None: ...

def current_target() -> Target: ...

# Building and reporting

@dataclass(frozen=True)
class LinkedKernel:
    code: bytes
    entry_name: str
    cc: ComputeCapability
    output: str
    @property
    def call_sites(self) -> tuple[CallSite, ...]: ...
    @property
    def inputs(self) -> tuple[PlannedInput, ...]: ...
    prototypes: Mapping[str, str]
    signature: str
    launch_facts: LaunchFacts
    @property
    def called_functions(self) -> tuple[CalledFunction, ...]: ...
    @property
    def report(self) -> Report: ...
    @property
    def emulate(self) -> EmulatedKernel: ...
    def save(self, path: str | bytes | PathLike[Any]) -> None: ...

class emulated(ContextDecorator):
    def __init__(self, cc: _ComputeCapabilityLike = (9, 0), *, checks: bool = False) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: Any) -> None: ...

# jedi takes the first that fits, and any for an argument that it does not know.
@overload
def build(
    kernel: _Buildable,
    signature: _KernelSignature,
    cc: list[_ComputeCapabilityLike] | _ListOf[_ComputeCapabilityLike],
    *,
    output: _Output = "cubin",
    entry_name: str | None = None,
    **jit_options: Unpack[JitOptions],
) -> list[LinkedKernel]: ...
@overload
def build(
    kernel: _Buildable,
    signature: _KernelSignature,
    cc: _OptionalComputeCapability = None,
    *,
    output: _Output = "cubin",
    entry_name: str | None = None,
    **jit_options: Unpack[JitOptions],
) -> LinkedKernel: ...

# For what checkers say of a wrong call: these take no others.
@overload
def build(
    kernel: _Buildable | NoOther,
    signature: _KernelSignature | NoOther,
    cc: _OptionalComputeCapability | NoOther = None,
    *_only_by_name: GivenByName[Never],
    output: _Output | NoOther = "cubin",
    entry_name: str | NoOther | None = None,
    **_no_such_option: Unpack[JitOptions],
) -> LinkedKernel: ...
@overload
def build(
    kernel: _Buildable | NoOther,
    signature: _KernelSignature | NoOther,
    cc: list[_ComputeCapabilityLike] | _ListOf[_ComputeCapabilityLike],
    *_only_by_name: GivenByName[Never],
    output: _Output | NoOther = "cubin",
    entry_name: str | NoOther | None = None,
    **_no_such_option: Unpack[JitOptions],
) -> list[LinkedKernel]: ...
@overload
def build(kernel: SignatureIsMissing[Never], **_no_such_option: Any) -> Any: ...

@dataclass(frozen=True)
class Job:
    kernel: Any
    signature: _KernelSignature
    cc: _ComputeCapabilityLike | None = None
    output: _Output = "cubin"
    entry_name: str | None = None
    options: JitOptions = ...
    for_launch: bool = False
    @classmethod
    def of(cls, given: JobLike) -> Job: ...

@overload
def build_many(
    jobs: Iterable[JobLike],
    cc: _ComputeCapabilityLike | None = None,
    *,
    executor: Executor | Callable[[], Executor] | None = None,
    on_error: Literal["raise"] = "raise",
    progress: bool | Callable[[str, int, int], None] | None = None,
    time_limit: float | None = None,
    attempts: int = 1,
) -> list[LinkedKernel]: ...
@overload
def build_many(  # type: ignore[overload-overlap]  # the last takes what is misspelled
    jobs: Iterable[JobLike],
    cc: _ComputeCapabilityLike | None = None,
    *,
    executor: Executor | Callable[[], Executor] | None = None,
    on_error: Literal["return"],
    progress: bool | Callable[[str, int, int], None] | None = None,
    time_limit: float | None = None,
    attempts: int = 1,
) -> list[LinkedKernel | BaseException]: ...
@overload
def build_many(
    jobs: Iterable[JobLike] | NoOther,
    cc: _ComputeCapabilityLike | NoOther | None = None,
    *_only_by_name: GivenByName[Never],
    executor: Executor | Callable[[], Executor] | NoOther | None = None,
    on_error: Literal["raise", "return"] | NoOther = "raise",
    progress: bool | Callable[[str, int, int], None] | NoOther | None = None,
    time_limit: float | NoOther | None = None,
    attempts: int | NoOther = 1,
    **_no_such_option: NoSuchOption[Never],
) -> list[LinkedKernel]: ...

class BuildManyError(RuntimeError):
    jobs: tuple[str, ...]
    results: tuple[LinkedKernel | BaseException, ...]
    errors: dict[int, BaseException]
    def __init__(self, jobs: Sequence[str], results: Iterable[LinkedKernel | BaseException]) -> None: ...

class RayExecutor(Executor):
    def __init__(self, **options: Any) -> None: ...

def save(path: str | bytes | PathLike[Any], kernels: LinkedKernel | Iterable[LinkedKernel]) -> None: ...
def write_header(path: str | bytes | PathLike[Any], kernels: LinkedKernel | Iterable[LinkedKernel]) -> None: ...
def bind(kernel: CUDADispatcher[..., Any] | _MLIRKernel, *what: Any) -> Kernel: ...

class Report(KernelReport):
    def show(self, file: TextIO | None = None) -> None: ...
    def to_json(self, *, indent: int | None = 2) -> str: ...
    @classmethod
    def from_json(cls, text: str) -> Report: ...
    def to_dot(self) -> str: ...
    def to_svg(self) -> str: ...
    def to_html(self) -> str: ...
    def to_trace(self) -> str: ...
    def changes_since(self, before: KernelReport, form: Literal["text", "html", "json"] = "text") -> str: ...

def report(
    kernel: Any,
    signature: _KernelSignature | None = None,
    cc: _ComputeCapabilityLike | _ListOf[_ComputeCapabilityLike] | None = None,
    *,
    listings: bool = False,
) -> Report: ...

# Attaching

def activate() -> None: ...
def deactivate() -> None: ...

# Errors. numba-cuda's own classes, which CallError and LinkError derive from, have no types.

class HookError(Exception):
    argtypes: tuple[Any, ...]
    said: str
    raised_at: str | None
    hook: str
    def describe(self, call_site: CallSite, last_column: int | None = None) -> str: ...

class CallError(Exception):
    call_site: CallSite
    hook_error: HookError

class CABIError(TypeError): ...

class CxxError(CABIError):
    log: str
    def __init__(self, message: str, log: str = "") -> None: ...

class CompileError(RuntimeError):
    log: str

class LinkError(RuntimeError):
    log: str
    source_path: str | None

class LinkInputError(ValueError): ...
class PrebuiltError(ValueError): ...
class MissingSeamError(ImportError): ...
