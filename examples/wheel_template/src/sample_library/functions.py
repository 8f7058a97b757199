# SPDX-License-Identifier: BSD-2-Clause
"""Make the C functions of the device code callable in kernels, and their structs known as dtypes."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba.cuda import autolink, types
from numba.cuda.np.numpy_support import as_dtype

HERE = Path(__file__).parent
code = autolink.Prebuilt(HERE / "device_code", prefer="LTO-IR", include_paths=(HERE,))  # the functions are small

TYPES = {
    "bool": types.boolean,
    "signed char": types.int8,
    "short": types.int16,
    "int": types.int32,
    "long long": types.int64,
    "unsigned char": types.uint8,
    "unsigned short": types.uint16,
    "unsigned int": types.uint32,
    "unsigned long long": types.uint64,
    "__half": types.float16,
    "float": types.float32,
    "double": types.float64,
    "float2": types.complex64,
    "double2": types.complex128,
    "void": types.none,
}


class Function(autolink.DeviceCallable):
    """A C function. Numbers are converted to the types of its parameters; pointer parameters take arrays and records
    of what they point to."""

    def __init__(self, name: str, symbol: str, returns: str, parameters: dict[str, str]) -> None:
        self.name, self.symbol, self.returns, self.parameters = name, symbol, returns, parameters

    @property
    def __name__(self) -> str:
        return self.name  # in messages

    @property
    def __numba_cuda_call__(self) -> Callable[..., autolink.Extern]:  # pyright: ignore
        """A function with the parameters of the C function, by which calls are checked."""

        def call(*args: Any) -> autolink.Extern:
            passed = {name: self.passed(name, given) for name, given in zip(self.parameters, args, strict=True)}
            return autolink.Extern(self.symbol, returns=TYPES[self.returns], args=passed)

        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in self.parameters]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return call

    def passed(self, name: str, given: Any) -> Any:
        """Return the type that the argument *name* is converted to; None if it is passed as it is."""
        cxx = self.parameters[name]
        if not cxx.endswith("*"):
            return TYPES[cxx]
        if given == types.none:
            return None  # a null pointer
        pointee = cxx.removeprefix("const ").removesuffix("*")
        name_in_python = pointee.rpartition(":")[2]
        if name_in_python in structs:
            element = given if isinstance(given, types.Record) else getattr(given, "dtype", None)
            fits = isinstance(element, types.Record) and as_dtype(element) == structs[name_in_python]
            fits = fits and getattr(given, "layout", "C") in "CF"
            is_const = not getattr(given, "mutable", True)
            passed, expected = (
                types.voidptr,
                f"a record of {__package__}.{name_in_python}, or a contiguous array of them",
            )
        else:
            found = autolink.cxx_type(given)
            fits = found.endswith("*") and pointee in ("void", found.removeprefix("const ").removesuffix("*"))
            is_const = found.startswith("const ")
            passed, expected = None, "an array" if pointee == "void" else f"an array of {TYPES[pointee]}"
        if not fits or (is_const and not cxx.startswith("const ")):
            raise autolink.CABIError(
                f"{self.name}: the argument {name!r} does not fit {cxx}\n  got: {given}\n"
                f"  expected: {expected}{', not read-only' if fits else ''}"
            )
        return passed

    def __numba_cuda_link__(self, *args: Any) -> autolink.LinkItem:
        return code.code()


_manifest = json.loads((code.folder / "manifest.json").read_text())
functions = {name: Function(name, **declared) for name, declared in _manifest["functions"].items()}
structs: dict[str, np.dtype[Any]] = {}
for _name, _fields in _manifest["structs"].items():  # a struct in another one comes first
    _fields["formats"] = [(structs.get(element, element), tuple(shape)) for element, shape in _fields["formats"]]
    structs[_name] = np.dtype(_fields)
