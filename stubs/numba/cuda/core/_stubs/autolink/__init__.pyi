# SPDX-License-Identifier: BSD-2-Clause
# What public functions take and return, and users do not name. jedi sees no names of other stubs that are private.
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias, overload

from numpy import generic, ndarray
from typing_extensions import TypeVar

from numba.cuda import LinkableCode
from numba.cuda.autolink import Extern, Job, LinkItem, Target
from numba.cuda.autolink.testing import LinkInput
from numba.cuda.core._stubs.arguments import _KernelSignature, _OptionalComputeCapability

F = TypeVar("F", bound=Callable[..., Any])

class ObjectCode(Protocol):
    """A cuda.core.ObjectCode."""
    @property
    def code(self) -> bytes | str: ...
    @property
    def code_type(self) -> str: ...

LinkItems: TypeAlias = LinkItem | Iterable[LinkItem] | None

# A type of a front end, or a dtype.
class NamedType(Protocol):
    @property
    def name(self) -> str: ...

TypeLike: TypeAlias = NamedType | str | type[generic] | None

# How an argument is passed.
class Way: ...

class Exact(Way):
    numba_type: Any

class ByReference(Way):
    numba_type: Any

class ArrayView(Way):
    name: str

class ByValue(Way): ...
class State(Way): ...

# A sequence of names, which text and a dict are not.
class NamesInOrder(Protocol):
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __getitem__(self, index: int, /) -> str: ...

Names: TypeAlias = NamesInOrder | Set[str] | Iterator[str]

# A dict with values of several types, which mypy joins to object.
class Dict(Protocol):
    def __iter__(self) -> Iterator[str]: ...
    def __setitem__(self, name: str, value: object, /) -> None: ...

# What a call stands for: a C function, or a function in Python.
Meaning: TypeAlias = Extern | Callable[..., Any]

class BoundDeviceMethod:
    __self__: Any
    __func__: DeviceMethod
    @property
    def __name__(self) -> str: ...
    @property
    def __numba_cuda_call__(self) -> Callable[..., Meaning]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

# Its parts are called _, and so have one type in all classes: checkers compare attributes of one name.
class DeviceMethod:
    def link(self, function: Callable[..., LinkItems]) -> DeviceMethod: ...
    def link_key(self, function: Callable[..., object]) -> DeviceMethod: ...
    def python(self, function: Callable[..., Any]) -> DeviceMethod: ...
    @overload
    def __get__(self, instance: None, owner: type | None = None) -> DeviceMethod: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> BoundDeviceMethod: ...

WayOfCxx: TypeAlias = Literal["value", "pointer", "element", "span", "mdspan", "state"]
Paths: TypeAlias = Iterable[str | PathLike[str]] | PathLike[str]
Callback: TypeAlias = Callable[[Any], object]

class Array(Protocol):
    def __array__(self) -> ndarray[Any, Any]: ...

Values: TypeAlias = complex | Array | list[Any] | tuple[Any, ...] | range

class CompiledSource:
    names: Mapping[str, str]
    target: Target
    log: str
    @property
    def code(self) -> LinkableCode: ...

class PrebuiltFile:
    name: str
    kind: str
    architecture: int
    include_paths: tuple[str, ...]
    options: Mapping[str, Any]

class Callee:
    obj: Any
    @property
    def name(self) -> str: ...

class CallSite:
    callee: Callee
    argtypes: tuple[Any, ...]
    filename: str
    line: int
    function: str
    @property
    def call(self) -> str: ...
    @property
    def place(self) -> str: ...

class PlannedInput:
    input: LinkInput
    origins: tuple[str, ...]

class CalledFunction:
    symbol: str
    @property
    def declaration(self) -> str: ...

class LaunchFacts:
    name: str
    argtypes: tuple[Any, ...]
    parameter_names: tuple[str, ...]
    debug: bool
    cooperative: bool
    carveout: int | None
    setup: tuple[Callback, ...]
    teardown: tuple[Callback, ...]
    needs_nrt: bool

# The kernel may be any object: mypy takes those of a list for such.
JobLike: TypeAlias = Job | tuple[Any, _KernelSignature] | tuple[Any, _KernelSignature, _OptionalComputeCapability]

# Of tests

class Kind:
    @property
    def name(self) -> str: ...

class FailedCheck:
    name: str
    got: str
    expected: str
    todo: str

# What kernels call.
class HasHook(Protocol):
    @property
    def __numba_cuda_link__(self) -> Any: ...
