# SPDX-License-Identifier: BSD-2-Clause
"""Python functions that calls pass to C++, compiled for the types with which C++ calls them.

C++ gets an object that has a member function for each of these types. For all others it has a template that does not
compile: NVRTC's errors name the types of which it was instantiated. So the C++ text of a call that compiles has all of
them. They are remembered, as a guess that is right as long as the text with them compiles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.cache.entry import CacheKey
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.nvrtc_log import list_errors
from numba.cuda.cudadrv.external_code.platform.target import Target

from numba_cuda_autolink.source_locations import shown_file

from ..c_abi.c_types import CABIError, memory_layout
from ..compilation.context import current_target
from ..device_functions.definition import DeviceFunction, device_function
from .calls import Call, Parameter, Records
from .results import COMPLEX_OF, PLAIN_TYPES

_NOT_COMPILED = "device_function() cannot compile "
_OF_NOTHING = re.compile(
    r'"void"|cannot deduce "auto" type|\bvoid (?:expression|value|type)|return value type does not match the function'
)
_MOST_ROUNDS = 8  # C++ may call a function with what it returned
_COMPLEX = re.compile(r"cuda::std::(?:\w+::)?complex<(float|double)>|(float|double)2")
_POINTER = re.compile(r"(?:const )?(?P<pointee>[\w ]*\w) ?\*")
# Converts to anything: it is never computed.
_ANYTHING = (
    "#ifndef NCA_ANYTHING\n#define NCA_ANYTHING\nnamespace nca { struct nca_anything {"
    " template <class nca_T> __device__ operator nca_T() const; }; }\n#endif"
)

CxxTypes = tuple[str, ...]  # of the arguments of a call, as C++ text


@dataclass(frozen=True)
class Overload:
    """A Python function compiled for arguments of these C++ types."""

    cxx: CxxTypes
    function: DeviceFunction

    def declare(self) -> str:
        """Return the member function that C++ calls."""
        declared = ", ".join(f"{each} nca_a{n}" for n, each in enumerate(self.cxx))
        passed = ", ".join(_without_const(each, f"nca_a{n}") for n, each in enumerate(self.cxx))
        return f"__device__ auto operator()({declared}) const {{ return {self.function.functor}()({passed}); }}"


def _without_const(cxx: str, name: str) -> str:
    """Return the text of an argument of a functor, whose pointers are not to constants: Python has no such types."""
    is_pointer = cxx.startswith("const ") and _POINTER.fullmatch(cxx)
    return f"const_cast<{cxx.removeprefix('const ')}>({name})" if is_pointer else name


@dataclass(frozen=True)
class PythonArgument:
    """The argument at *position* of a call, a Python function called *name*, with its *overloads*, which are
    compiled from this *code* of Python."""

    position: int
    name: str
    overloads: tuple[Overload, ...] = ()
    code: Any = None

    @property
    def functor(self) -> str:
        """The class of which C++ gets an object."""
        symbols = "_".join(each.function.symbol for each in self.overloads)
        return f"nca_python_{self.position}_{re.sub(r'[^A-Za-z0-9]+', '_', f'{self.name}_{symbols}')}"

    def make_parameter(self) -> Parameter:
        """Return how the call passes it."""
        name = self.functor
        members = [each.declare() for each in self.overloads]
        members.append(
            "template <class... nca_A> __device__ auto operator()(nca_A...) const {"
            f' static_assert(sizeof...(nca_A) > 9999, "{name}"); return nca::nca_anything(); }}'
        )
        body = "\n".join(members)
        text = f"#ifndef {name.upper()}\n#define {name.upper()}\nstruct {name} {{\n{body}\n}};\n#endif"
        declared = dict.fromkeys(each.function.declaration for each in self.overloads)
        return Parameter(f"const {name}&", "", f"{name}{{}}", declarations=(_ANYTHING, *declared, text))

    def find_calls(self, log: str) -> list[CxxTypes]:
        """Return the types with which C++ calls it besides those of the overloads, as NVRTC's *log* says."""
        pattern = rf"{self.functor}::operator\(\)\(nca_A\.\.\.\) const \[with nca_A=<(.*?)>\]\""
        packs = dict.fromkeys(re.findall(pattern, log))
        return [tuple(_split(each)) for each in packs if "nca_anything" not in each]  # not yet of its own results


def _split(pack: str) -> Iterator[str]:
    """Yield the types in a template's argument list."""
    depth, start = 0, 0
    for number, character in enumerate(pack):
        depth += (character == "<") - (character == ">")
        if character == "," and not depth:
            yield pack[start:number].strip()
            start = number + 1
    if pack:
        yield pack[start:].strip()


def is_python_function(numba_type: Any) -> bool:
    """Return whether a value of *numba_type* is a Python function, for which C++ decides the types of its arguments."""
    return isinstance(numba_type, types.Dispatcher)


def name_python_function(numba_type: Any) -> str:
    """Return what messages call a Python function."""
    return str(numba_type.dispatcher.py_func.__name__).strip("<>")


@dataclass(frozen=True)
class PythonArguments:
    """Finds out with which types C++ calls the Python functions among *argtypes*, the types of a call's arguments.

    *make_call* makes the call with them, and *compile_call* compiles it; *records* are the structs that the library
    knows, whose names resolve in a *namespace*.
    """

    argtypes: Sequence[types.Type]
    make_call: Callable[[Mapping[int, PythonArgument]], Call]
    compile_call: Callable[[Call, Target], None]
    records: Records
    namespace: str

    def resolve(self) -> Call:
        """Return the call. It is one that does not compile, if C++ refuses it for another reason. Raise `CABIError` if
        a function does not compile for the types that C++ passes."""
        found: dict[str, list[CxxTypes]] = {}
        key = self._key()
        guessed = json.loads(current_store().fetch(key, lambda: json.dumps(self._find({})[1]).encode()).data)
        found = {position: [tuple(each) for each in listed] for position, listed in guessed.items()}
        return self._find(found)[0]

    def _key(self) -> CacheKey:
        call = self.make_call(self._arguments({}))
        parts = (("library", call.head.identity), ("call", call.symbol), ("types", call.label))
        return CacheKey("python arguments", call.label, parts)

    def _arguments(self, found: Mapping[str, Sequence[CxxTypes]]) -> dict[int, PythonArgument]:
        python = [(n, each) for n, each in enumerate(self.argtypes) if is_python_function(each)]
        return {
            n: PythonArgument(
                n,
                name_python_function(each),
                tuple(self._compile(each, cxx) for cxx in found.get(str(n), ())),
                each.dispatcher.py_func.__code__,
            )
            for n, each in python
        }

    def _find(self, found: Mapping[str, Sequence[CxxTypes]]) -> tuple[Call, dict[str, list[CxxTypes]]]:
        """Return the call, and the types by the positions of the functions, of which *found* are known."""
        known = {position: list(listed) for position, listed in found.items()}
        for _ in range(_MOST_ROUNDS):
            arguments = self._arguments(known)
            call = self.make_call(arguments)
            try:
                self.compile_call(call, current_target())
            except CompileError as error:
                further = {n: calls for n, each in arguments.items() if (calls := each.find_calls(error.log))}
                if not further:
                    _require_results(arguments.values(), error.log)
                    break
                for n, calls in further.items():
                    known.setdefault(str(n), []).extend(calls)
            else:
                break
        return call, known

    def _compile(self, function: Any, cxx: CxxTypes) -> Overload:
        name = name_python_function(function)
        argtypes = [self._read_type(name, each) for each in cxx]
        try:
            return Overload(cxx, device_function(function, *argtypes))
        except TypeError as error:
            why = str(error).replace("\n  at: ", "\n  in the function: ")
            if why.startswith(_NOT_COMPILED):
                raise CABIError(f"C++ calls the Python function {why.removeprefix(_NOT_COMPILED)}") from error
            raise CABIError(f"C++ {why.removeprefix('device_function() ')}") from error

    def _read_type(self, name: str, text: str) -> types.Type:
        """Return the Numba type of what C++ calls *text*."""
        if text in PLAIN_TYPES:
            return PLAIN_TYPES[text]
        if part := _COMPLEX.fullmatch(text):
            return COMPLEX_OF[PLAIN_TYPES[part[1] or part[2]]]
        if (pointer := _POINTER.fullmatch(text)) and pointer["pointee"] in PLAIN_TYPES:
            pointee = PLAIN_TYPES[pointer["pointee"]]
            return types.voidptr if pointee == types.none else types.CPointer(pointee)
        for numba_type, struct in self.records.items():
            if text in (struct.name, struct.alias, f"{self.namespace}::{struct.name}"):
                return _require_layout(name, numba_type, struct.name)
        pointee = text.removeprefix("const ").removesuffix("*").rstrip()
        if text.endswith("*") and any(pointee == struct.name for struct in self.records.values()):
            raise CABIError(
                f"C++ calls the Python function {name} with a pointer to a struct, {text}, which Python has no type for"
                "\n  what to do: let C++ pass the struct itself, or a reference to it: f(*p)"
            )
        raise CABIError(
            f"C++ calls the Python function {name} with an argument that Python does not know: {text}\n"
            f"  what to do: pass numbers or pointers; a struct of numbers is known after lib.record({text!r})"
        )


def _require_results(arguments: Iterable[PythonArgument], log: str) -> None:
    """Raise `CABIError` if one of the functions returns nothing, and NVRTC's *log* is about that."""
    if (first := next(iter(list_errors(log)), None)) is None or not _OF_NOTHING.search(first.text):
        return
    for argument in arguments:
        if argument.overloads and all(each.function.returns == types.none for each in argument.overloads):
            code = argument.code
            raise CABIError(
                f"{argument.name} returns None, and C++ uses its result\n"
                f"  in Python: {shown_file(code.co_filename)}:{code.co_firstlineno}\n"
                "  what to do: return a value: a Python function that ends without return gives None"
            )


def _require_layout(name: str, numba_type: types.Type, struct: str) -> types.Type:
    """Return the type of records that C++ passes to the Python function *name*. Raise `CABIError` if the *struct* has
    its members, or its end, elsewhere than a struct of C."""
    try:
        memory_layout(numba_type)
    except CABIError:
        raise CABIError(
            f"C++ calls the Python function {name} with {struct}, which is packed, or aligned to more than its members"
            "\n  what to do: let C++ pass the members that the function needs"
        ) from None
    return numba_type
