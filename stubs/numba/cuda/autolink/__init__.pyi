# SPDX-License-Identifier: BSD-2-Clause
# Modules are folders here: pyright then does not report that it finds no source of theirs.
# The argument types that hooks get are Any: the classes of Numba's types are unknown to type checkers.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor
from contextlib import ContextDecorator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    Protocol,
    SupportsIndex,
    TextIO,
    TypeAlias,
    overload,
    runtime_checkable,
)

from numba_cuda_autolink import EmulatedKernel, Kernel
from numba_cuda_autolink.launch.configuration_types import ConfigurationLike, Size
from numpy import dtype, generic, ndarray
from numpy.typing import DTypeLike
from typing_extensions import ParamSpec, TypeVar, Unpack

from numba.cuda import CUSource, LinkableCode
from numba.cuda._arguments import (
    _AnyOptions,
    _Buildable,
    _ComputeCapabilityLike,
    _KernelSignature,
    _ListOf,
    _OptionalComputeCapability,
    _Output,
    _Signature,
)
from numba.cuda._program_options import _ProgramOptions
from numba.cuda.decorators import JitOptions
from numba.cuda.dispatcher import CUDADispatcher

from . import cache as cache, testing as testing
from .cache import CacheMismatchError as CacheMismatchError, CacheWarning as CacheWarning
from .reports.records import KernelReport
from .testing import LinkInput, NotLinkableError as NotLinkableError

__version__: str

_P = ParamSpec("_P")
_KernelP = ParamSpec("_KernelP", default=...)
_PythonP = ParamSpec("_PythonP")
_PythonR = TypeVar("_PythonR")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any])

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
    "Job",
    "LinkError",
    "LinkInputError",
    "LinkItem",
    "LinkedKernel",
    "MissingSeamError",
    "NotLinkableError",
    "Prebuilt",
    "PrebuiltError",
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

class _ObjectCode(Protocol):
    """A cuda.core.ObjectCode."""
    @property
    def code(self) -> bytes | str: ...
    @property
    def code_type(self) -> str: ...

LinkItem: TypeAlias = LinkableCode | _ObjectCode | DeviceFunction | str | PathLike[str]
_LinkItems: TypeAlias = LinkItem | Iterable[LinkItem] | None

@runtime_checkable
class SupportsLink(Protocol):
    def __numba_cuda_link__(self, *argtypes: Any, **named: Any) -> _LinkItems: ...

@runtime_checkable
class SupportsLinkKey(Protocol):
    def __numba_cuda_link_key__(self, *argtypes: Any, **named: Any) -> object: ...

@runtime_checkable
class SupportsCall(Protocol):
    def __numba_cuda_call__(self, *argtypes: Any, **named: Any) -> _Meaning: ...

# Objects

# A type of a front end, or a dtype.
class _NamedType(Protocol):
    @property
    def name(self) -> str: ...

_TypeLike: TypeAlias = _NamedType | str | type[generic] | None

# How an argument is passed.
class _Way: ...

class _Exact(_Way):
    numba_type: Any

class _ByReference(_Way):
    numba_type: Any

class _ArrayView(_Way):
    name: str

span: _ArrayView
mdspan: _ArrayView

class _ByValue(_Way): ...

by_value: _ByValue

class _State(_Way): ...

state: _State

# A sequence of names, which text and a dict are not.
class _NamesInOrder(Protocol):
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __getitem__(self, index: int, /) -> str: ...

_Names: TypeAlias = _NamesInOrder | Set[str] | Iterator[str]

# A dict with values of several types, which mypy joins to object.
class _Dict(Protocol):
    def __iter__(self) -> Iterator[str]: ...
    def __setitem__(self, name: str, value: object, /) -> None: ...

class Extern:
    symbol: str
    returns: Any
    args: tuple[tuple[str, Any], ...] | None
    cooperative: bool
    def __init__(
        self,
        symbol: str,
        *,
        returns: _TypeLike = None,
        args: _Names | Mapping[str, _TypeLike | _Way] | _Dict | None = None,
        cooperative: bool = False,
    ) -> None: ...

def exact(numba_type: _TypeLike) -> _Exact: ...
def by_reference(numba_type: _TypeLike) -> _ByReference: ...

# What a call stands for: a C function, or a function in Python.
_Meaning: TypeAlias = Extern | Callable[..., Any]

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
    function: Callable[..., Any] | CUDADispatcher[..., Any] | _NamedType, *argtypes: _TypeLike, state: Any = ()
) -> DeviceFunction: ...

class DeviceCallable:
    def __numba_cuda_call__(self, *args: Any, **kwargs: Any) -> _Meaning: ...
    # Declared so that the methods of subclasses are checked. A subclass need not have it.
    def __numba_cuda_link__(self, *args: Any, **kwargs: Any) -> _LinkItems: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

# The parameters of a device method, and what its part in Python returns: Any where that part is called _.
class _BoundDeviceMethod(Generic[_P, _R]):
    __self__: Any
    __func__: _DeviceMethod[_P, _R]
    @property
    def __name__(self) -> str: ...
    @property
    def __numba_cuda_call__(self) -> Callable[..., _Meaning]: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

class _DeviceMethod(Generic[_P, _R]):
    def link(self, function: Callable[..., _LinkItems]) -> _DeviceMethod[_P, _R]: ...
    def link_key(self, function: Callable[..., object]) -> _DeviceMethod[_P, _R]: ...
    def python(self, function: Callable[Concatenate[Any, _PythonP], _PythonR]) -> _DeviceMethod[_PythonP, _PythonR]: ...
    @overload
    def __get__(self, instance: None, owner: type | None = None) -> _DeviceMethod[_P, _R]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _BoundDeviceMethod[_P, _R]: ...

@overload
def device_method(function: Callable[Concatenate[Any, _P], _Meaning]) -> _DeviceMethod[_P, Any]: ...
@overload  # one of several functions
def device_method(  # type: ignore[overload-cannot-match]
    function: Callable[..., _Meaning],
) -> _DeviceMethod[..., Any]: ...
def cxx_type(numba_type: _TypeLike, view: _ArrayView | None = None) -> str: ...
def symbol(name: str, *parts: Any) -> str: ...

# C++ by name

_WayOfCxx: TypeAlias = Literal["value", "pointer", "element", "span", "mdspan", "state"]

class CxxFunction(DeviceCallable):
    def passing(self, *ways: _WayOfCxx | None) -> CxxFunction: ...
    def signature(self, *argtypes: _TypeLike, cc: _ComputeCapabilityLike | None = None) -> _Signature: ...
    def python(self, function: _F) -> _F: ...

class CxxType(CxxFunction):
    size: int
    align: int
    alignment: int
    dtype: dtype[Any]
    def method(self, name: str) -> CxxFunction: ...
    def nested(self, name: str) -> CxxType: ...

class CxxLibrary(DeviceCallable):
    def __getattr__(self, name: str) -> CxxFunction: ...
    def __getitem__(self, name: str) -> CxxFunction: ...
    def expr(self, text: str) -> CxxFunction: ...
    def eval(self, text: str, cc: _ComputeCapabilityLike | None = None) -> Any: ...
    def type(self, name: str, cc: _ComputeCapabilityLike | None = None) -> CxxType: ...
    def record(
        self, name: str, dtype: DTypeLike | None = None, cc: _ComputeCapabilityLike | None = None
    ) -> dtype[Any]: ...
    def declare(
        self,
        calls: Iterable[tuple[str | CxxFunction, Iterable[Any]]],
        cc: _ComputeCapabilityLike | None = None,
    ) -> None: ...

def cxx(
    source: str | PathLike[str] = "",
    *,
    include_paths: Iterable[str | PathLike[str]] = (),
    defines: Mapping[str, Any] | Iterable[str | tuple[str, Any]] | None = None,
    options: _ProgramOptions | _AnyOptions | None = None,
    namespace: str = "",
    host_headers: bool = False,
) -> CxxLibrary: ...

# Code

_Callback: TypeAlias = Callable[[Any], object]

class CUDASource(CUSource):
    path: str | None
    """The absolute path of the file with the code; ``None`` if the code was given as text."""
    def __init__(
        self,
        code: str | PathLike[str],
        *,
        name: str | None = None,
        include_paths: Iterable[str | PathLike[str]] = (),
        defines: Mapping[str, Any] | Iterable[str | tuple[str, Any]] = (),
        options: _ProgramOptions | _AnyOptions | None = None,
        unit: str | None = None,
        prologue: str = "",
        setup_callback: _Callback | None = None,
        teardown_callback: _Callback | None = None,
        nrt: bool = False,
        host_headers: bool = False,
    ) -> None: ...
    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        name: str | None = None,
        include_paths: Iterable[str | PathLike[str]] = (),
        defines: Mapping[str, Any] | Iterable[str | tuple[str, Any]] = (),
        options: _ProgramOptions | _AnyOptions | None = None,
        unit: str | None = None,
        prologue: str = "",
        setup_callback: _Callback | None = None,
        teardown_callback: _Callback | None = None,
        nrt: bool = False,
        host_headers: bool = False,
    ) -> CUDASource: ...

class _Array(Protocol):
    def __array__(self) -> ndarray[Any, Any]: ...

_Values: TypeAlias = complex | _Array | list[Any] | tuple[Any, ...] | range

class Variable(CUDASource):
    def __init__(
        self,
        name: str,
        dtype: Any,
        shape: int | tuple[int, ...] = (),
        *,
        space: Literal["device", "constant", "managed"] = "device",
        value: _Values | None = None,
    ) -> None: ...
    @property
    def dtype(self) -> dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def space(self) -> Literal["device", "constant", "managed"]: ...
    @property
    def declaration(self) -> str: ...
    def set(self, value: _Values, *, device: int | None = None) -> None: ...
    def get(self, kernel: Any = None, *, device: int | None = None) -> ndarray[Any, Any]: ...

class _CompiledSource:
    names: Mapping[str, str]
    target: Target
    log: str
    @property
    def code(self) -> LinkableCode: ...

def compiled(source: CUDASource | Iterable[CUDASource], names: Iterable[str] = ()) -> _CompiledSource: ...

class Bitcode(LinkableCode):
    def __init__(
        self,
        data: bytes | bytearray | memoryview,
        name: str | None = None,
        setup_callback: _Callback | None = None,
        teardown_callback: _Callback | None = None,
    ) -> None: ...

class _PrebuiltFile:
    name: str
    kind: str
    architecture: int

class Prebuilt:
    folder: Path
    prefer: Literal["cubin", "LTO-IR"]
    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        prefer: Literal["cubin", "LTO-IR"] = "cubin",
        include_paths: Iterable[str | PathLike[str]] = (),
    ) -> None: ...
    def code(self, target: Target | None = None) -> LinkableCode: ...
    def choose(self, target: Target) -> _PrebuiltFile: ...

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

class _Callee:
    obj: Any
    @property
    def name(self) -> str: ...

class _CallSite:
    callee: _Callee
    argtypes: tuple[Any, ...]
    filename: str
    line: int
    function: str
    @property
    def call(self) -> str: ...
    @property
    def place(self) -> str: ...

class _PlannedInput:
    input: LinkInput
    origins: tuple[str, ...]

class _CalledFunction:
    symbol: str
    @property
    def declaration(self) -> str: ...

class _LaunchFacts:
    name: str
    argtypes: tuple[Any, ...]
    parameter_names: tuple[str, ...]
    debug: bool
    cooperative: bool
    carveout: int | None
    setup: tuple[_Callback, ...]
    teardown: tuple[_Callback, ...]
    needs_nrt: bool

# With the parameters of the Python function.
class _EmulatedKernel(EmulatedKernel, Generic[_KernelP]):
    def __getitem__(self, how: ConfigurationLike) -> Callable[_KernelP, None]: ...
    def configure(
        self,
        grid: Size,
        block: Size,
        *,
        stream: Any = 0,
        shared: SupportsIndex = 0,
        cooperative: bool = False,
        cluster: Size | None = None,
        programmatic: bool = False,
    ) -> Callable[_KernelP, None]: ...
    def with_checks(self) -> _EmulatedKernel[_KernelP]: ...
    def with_limit(self, most_back_edges: int) -> _EmulatedKernel[_KernelP]: ...

@dataclass(frozen=True)
class LinkedKernel(Generic[_KernelP]):
    code: bytes
    entry_name: str
    cc: ComputeCapability
    output: str
    @property
    def call_sites(self) -> tuple[_CallSite, ...]: ...
    @property
    def inputs(self) -> tuple[_PlannedInput, ...]: ...
    prototypes: Mapping[str, str]
    signature: str
    launch_facts: _LaunchFacts
    @property
    def called_functions(self) -> tuple[_CalledFunction, ...]: ...
    @property
    def report(self) -> Report: ...
    @property
    def emulate(self) -> _EmulatedKernel[_KernelP]: ...
    def save(self, path: str | bytes | PathLike[Any]) -> None: ...

class emulated(ContextDecorator):
    def __init__(self, cc: _ComputeCapabilityLike = (9, 0), *, checks: bool = False) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: Any) -> None: ...

@overload
def build(
    kernel: _Buildable,
    signature: _KernelSignature,
    *,
    cc: list[_ComputeCapabilityLike] | _ListOf[_ComputeCapabilityLike],
    output: _Output = "cubin",
    entry_name: str | None = None,
    **jit_options: Unpack[JitOptions],
) -> list[LinkedKernel]: ...
@overload
def build(  # type: ignore[overload-overlap]
    kernel: CUDADispatcher[_P, Any],
    signature: _KernelSignature,
    *,
    cc: _OptionalComputeCapability = None,
    output: _Output = "cubin",
    entry_name: str | None = None,
    **jit_options: Unpack[JitOptions],
) -> LinkedKernel[_P] | Any: ...  # mypy then lets a variable be bound to one kernel and then to another one
@overload
def build(
    kernel: _Buildable,
    signature: _KernelSignature,
    *,
    cc: _OptionalComputeCapability = None,
    output: _Output = "cubin",
    entry_name: str | None = None,
    **jit_options: Unpack[JitOptions],
) -> LinkedKernel: ...

@dataclass(frozen=True)
class Job:
    kernel: Any
    signature: _KernelSignature
    cc: _ComputeCapabilityLike | None = None
    output: _Output = "cubin"
    entry_name: str | None = None
    options: JitOptions | _AnyOptions = ...
    for_launch: bool = False
    @classmethod
    def of(cls, given: _JobLike) -> Job: ...

# The kernel may be any object: mypy takes those of a list for such.
_JobLike: TypeAlias = Job | tuple[Any, _KernelSignature] | tuple[Any, _KernelSignature, _OptionalComputeCapability]

@overload
def build_many(
    jobs: Iterable[_JobLike],
    *,
    cc: _ComputeCapabilityLike | None = None,
    executor: Executor | Callable[[], Executor] | None = None,
    on_error: Literal["raise"] = "raise",
    progress: bool | Callable[[str, int, int], None] | None = None,
    time_limit: float | None = None,
    attempts: int = 1,
) -> list[LinkedKernel]: ...
@overload
def build_many(
    jobs: Iterable[_JobLike],
    *,
    cc: _ComputeCapabilityLike | None = None,
    executor: Executor | Callable[[], Executor] | None = None,
    on_error: Literal["return"],
    progress: bool | Callable[[str, int, int], None] | None = None,
    time_limit: float | None = None,
    attempts: int = 1,
) -> list[LinkedKernel | BaseException]: ...

class BuildManyError(RuntimeError):
    jobs: tuple[str, ...]
    results: tuple[LinkedKernel | BaseException, ...]
    errors: dict[int, BaseException]
    def __init__(self, jobs: Sequence[str], results: Iterable[LinkedKernel | BaseException]) -> None: ...

class RayExecutor(Executor):
    def __init__(self, **options: Any) -> None: ...

def save(path: str | bytes | PathLike[Any], kernels: LinkedKernel | Iterable[LinkedKernel]) -> None: ...
def write_header(path: str | bytes | PathLike[Any], kernels: LinkedKernel | Iterable[LinkedKernel]) -> None: ...
def bind(kernel: Any, *what: Any) -> Kernel: ...

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
    raised_at: str | None
    def describe(self, call_site: _CallSite, last_column: int | None = None) -> str: ...

class CallError(Exception):
    call_site: _CallSite
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
