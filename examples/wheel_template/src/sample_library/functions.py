# SPDX-License-Identifier: BSD-2-Clause
"""Make the C functions of the device code callable in kernels, and their structs known as dtypes."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba.cuda import autolink, types
from numba.cuda.np.numpy_support import as_dtype, from_dtype

HERE = Path(__file__).parent
code = autolink.Prebuilt(HERE / "device_code", prefer="LTO-IR", include_paths=(HERE,))  # the functions are small


class Function(autolink.DeviceCallable):
    """A C function. Numbers are converted to the types of its parameters; pointer parameters take arrays and records
    of what they point to."""

    def __init__(self, name: str, symbol: str, declaration: str, returns: str, parameters: dict[str, str]) -> None:
        self.name, self.symbol, self.declaration = name, symbol, declaration
        self.returns, self.parameters = returns, parameters

    @property
    def __name__(self) -> str:
        return self.name  # in messages

    @property
    def __numba_cuda_call__(self) -> Callable[..., autolink.Extern]:  # pyright: ignore
        """A function with the parameters of the C function, by which calls are checked."""

        def call(*args: Any) -> autolink.Extern:
            passed = {name: self.passed(name, given) for name, given in zip(self.parameters, args, strict=True)}
            return autolink.Extern(self.symbol, returns=numba_type(self.returns), args=passed)

        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in self.parameters]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return call

    def passed(self, name: str, given: Any) -> Any:
        """Return the type that the argument *name* is converted to; None if it is passed as it is."""
        format = self.parameters[name]
        if not format.endswith("*"):
            return numba_type(format)
        if given == types.none:
            return None  # a null pointer
        pointee = format.removeprefix("const ").removesuffix("*")
        element = given if isinstance(given, types.Record) else getattr(given, "dtype", None)
        if pointee in structs:
            expected = f"array of {__package__}.{pointee}"
            fits = isinstance(element, types.Record) and as_dtype(element) == structs[pointee]
        else:
            expected = "array" if pointee == "void" else f"array of {numba_type(pointee)}"
            fits = pointee == "void" or element == numba_type(pointee)
        has_address = isinstance(given, (types.Array, types.Record, types.BaseTuple))
        fits = fits and has_address and getattr(given, "layout", "C") in "CF"
        is_const = isinstance(given, types.BaseTuple) or not getattr(given, "mutable", True)
        if not fits or (is_const and not format.startswith("const ")):
            raise autolink.CABIError(
                f"{self.name}: the argument {name!r} does not fit\n  got: {given}\n  expected: a contiguous {expected}"
                f"{', not read-only' if fits else ''}\n  declared: {self.declaration}"
            )
        return types.voidptr

    def __numba_cuda_link__(self, *args: Any) -> autolink.LinkItem:
        return code.code()


def numba_type(format: str) -> Any:
    return types.none if format == "void" else from_dtype(np.dtype(format))


_manifest = json.loads((code.folder / "manifest.json").read_text())
structs: dict[str, np.dtype[Any]] = {}
for _name, _fields in _manifest["structs"].items():  # a struct in another one comes first
    _fields["formats"] = [(structs.get(element, element), tuple(shape)) for element, shape in _fields["formats"]]
    structs[_name] = np.dtype(_fields)
functions = {
    name: Function(name, _manifest["prefix"] + name, **described) for name, described in _manifest["functions"].items()
}
