# SPDX-License-Identifier: BSD-2-Clause
"""The driver's functions as C calls them, written in Python: their types, their errors, and what failed last, which
front ends get in place of the driver's code for it."""

from __future__ import annotations

import ctypes
import itertools
import re
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..emulator.errors import LaunchSizeError
from ..errors import at_call
from ..short_tracebacks import print_short, short_traceback

_TYPES: dict[str, Any] = {
    "p": ctypes.c_size_t,  # addresses, handles and sizes
    "d": ctypes.c_int,  # a device: there is one, 0
    "i": ctypes.c_int,
    "u": ctypes.c_uint,
    "h": ctypes.c_ushort,
    "b": ctypes.c_ubyte,
}
SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, NO_DEVICE, INVALID_DEVICE = 0, 1, 2, 100, 101
INVALID_CONTEXT, NO_BINARY_FOR_GPU, FILE_NOT_FOUND, INVALID_HANDLE, NOT_FOUND = 201, 209, 301, 400, 500
ILLEGAL_ADDRESS, COOPERATIVE_LAUNCH_TOO_LARGE = 700, 720
NOT_SUPPORTED, CAPTURE_UNSUPPORTED = 801, 900

_GATE = """
define i32 @{name}(i64 %a, i64 %b) {{
  %ended = load volatile i8, i8* @has_ended
  %is_open = icmp eq i8 %ended, 0
  br i1 %is_open, label %call, label %return
call:
  %code = call i32 inttoptr (i64 {address} to i32 (i64, i64)*)(i64 %a, i64 %b)
  ret i32 %code
return:
  ret i32 0
}}"""

_F = TypeVar("_F", bound=Callable[..., None])
_addresses: dict[str, int] = {}
_failures = threading.local()
_numbers = itertools.count(0x10000, 16)


class Refused(Exception):
    """A function of the driver returns the error *code*."""

    def __init__(self, code: int):
        super().__init__(code)
        self.code = code


def c_function(types: str, *names: str) -> Callable[[_F], _F]:
    """Decorate the functions *names* (default: its own) of the driver, whose first arguments have these *types*.

    It raises `Refused` for an error code; what else it raises is remembered, and `take_failure` returns it.
    """
    devices = [k for k, type in enumerate(types) if type == "d"]

    def register(function: _F) -> _F:
        def call(*args: int) -> int:
            if any(args[k] for k in devices):
                return INVALID_DEVICE
            try:
                function(*args)
                return SUCCESS
            except Refused as error:
                return error.code
            except BaseException as error:  # a callback of C cannot raise it
                _failures.last = error
                return int(getattr(error, "driver_code", ILLEGAL_ADDRESS))

        address = _callback(call, types)
        _addresses.update(dict.fromkeys(names or (function.__name__,), address))
        return function

    return register


def constant_function(name: str, types: str, *values: int) -> None:
    """Define the function *name* of the driver, which always writes the same *values*: in the order of its arguments
    whose type is ``I`` (the address of an int) or ``P`` (of a handle or a size)."""
    targets = [(k, {"I": ctypes.c_int, "P": ctypes.c_size_t}[type]) for k, type in enumerate(types) if type in "IP"]

    def write(*args: int) -> None:
        for (k, kind), value in zip(targets, values, strict=True):
            put(args[k], kind, value)

    c_function(types.replace("I", "p").replace("P", "p"), name)(write)


def address_of(name: str) -> int:
    """Return the address of the driver's function *name*; of one that is not supported if it is not here."""
    if name not in _addresses:

        def refuse() -> int:
            _failures.last = NotImplementedError(f"{name} is not a function of the emulated driver")
            return NOT_SUPPORTED

        _addresses[name] = _callback(refuse, "")
    return _addresses[name]


def addresses() -> dict[str, int]:
    return dict(_addresses)


def close_when_python_ends(names: Iterable[str]) -> None:
    """Let the functions *names*, of at most two integers, succeed without Python after it ended: libraries destroy
    objects when the process ends."""
    import atexit

    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    gates = [_GATE.format(name=name, address=_addresses[name]) for name in names]
    module = binding.parse_assembly("\n".join(["@has_ended = global i8 0", *gates]))
    engine = binding.create_mcjit_compiler(module, binding.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    has_ended = ctypes.c_byte.from_address(engine.get_global_value_address("has_ended"))
    atexit.register(setattr, has_ended, "value", 1)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    _addresses.update((name, engine.get_function_address(name)) for name in names)


def _callback(function: Callable[..., int], types: str) -> int:
    """Return the address of *function* for C, for the life of the process: objects are destroyed when it ends."""
    made = ctypes.CFUNCTYPE(ctypes.c_int, *(_TYPES[each] for each in types))(function)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return ctypes.cast(made, ctypes.c_void_p).value or 0


def take_failure() -> BaseException | None:
    """Return what the last function that failed in this thread raised, once."""
    failure, _failures.last = last_failure(), None
    return failure


def last_failure() -> BaseException | None:
    """Return the same, and keep it."""
    found: BaseException | None = getattr(_failures, "last", None)
    return found


# Values in memory


def put(address: int, kind: Any, value: Any) -> None:
    """Write *value* as a C *kind*, if there is an *address*."""
    if address:
        kind.from_address(address).value = value


def put_handle(address: int, value: int) -> None:
    """Write a pointer, a handle or a size."""
    put(address, ctypes.c_size_t, value)


def put_int(address: int, value: int) -> None:
    put(address, ctypes.c_int, value)


def text_at(address: int) -> str:
    """Return the text at *address*, which ends in a zero."""
    return ctypes.string_at(address).decode()


class Handles:
    """Objects of one kind by the numbers that stand for them in C."""

    def __init__(self, error: int = INVALID_HANDLE):
        self._objects: dict[int, Any] = {}
        self._error = error

    def add(self, value: Any) -> int:
        handle = next(_numbers)
        self._objects[handle] = value
        return handle

    def __getitem__(self, handle: int) -> Any:
        try:
            return self._objects[handle]
        except KeyError:
            raise Refused(self._error) from None

    def remove(self, handle: int) -> Any:
        """Forget *handle*, and return what it stood for."""
        self[handle]
        return self._objects.pop(handle)


_RAISED_IN_KERNEL = re.compile(r"(?:In function .*, file .*, line \d+, )?tid=\[")  # a message of front ends


def raise_failures(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Return what *function* returns. Where a kernel fails in it, raise what was raised there."""
    take_failure()
    with short_traceback():
        try:
            return function(*args, **named)
        except Exception as error:
            failure = take_failure()
            try:
                if isinstance(failure, LaunchSizeError):  # programs may expect the error of a GPU
                    said = str(error).replace(f" ({failure})", "")
                    error.args = (at_call(f"{failure}\n  for the driver: {said}", "launched at"),)
                    print_short(error)
                elif failure is not None:
                    raise failure from None
                elif _RAISED_IN_KERNEL.match(str(error)):
                    print_short(error)
                raise
            finally:
                del failure  # with which its frames would remain, and the arrays of the launch
