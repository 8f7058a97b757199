# SPDX-License-Identifier: BSD-2-Clause
"""Make the functions of the device code callable in kernels, its structs dtypes, and its variables settable."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba.cuda import autolink, types
from numba.cuda.np.numpy_support import as_dtype, from_dtype

HERE = Path(__file__).parent
if not (HERE / "device_code").is_dir():
    raise ImportError(
        f"{__package__} has no device code: its build ran no hook\n  what to do: write the hook's section into "
        "pyproject.toml, [tool.hatch.build.targets.wheel.hooks.custom], and build and install the package again"
    )
code = autolink.Prebuilt(HERE / "device_code", prefer="LTO-IR")  # the functions are small


class Function(autolink.DeviceCallable):
    """A function of the device code. Numbers are converted to the types of its parameters; pointer parameters take
    arrays and records of what they point to."""

    __numba_cuda_link_types__ = "numba-cuda"  # whichever front end compiles the kernel

    def __init__(
        self, name: str, symbol: str, declaration: str, comment: str, returns: str, parameters: dict[str, str]
    ) -> None:
        self.name, self.symbol, self.declaration = name, symbol, declaration
        self.returns, self.parameters = returns, parameters
        self.__doc__ = f"{declaration}\n\n{comment}".strip()
        self.__module__ = __package__

    def __repr__(self) -> str:
        return f"{__package__}.{self.name}"  # in messages and reports

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in self.parameters]
        )

    @property
    def __numba_cuda_call__(self) -> Callable[..., autolink.Extern]:  # pyright: ignore
        """A function with the parameters of the C++ function, by which calls are checked."""

        def call(*args: Any) -> autolink.Extern:
            passed = {name: self.passed(name, given) for name, given in zip(self.parameters, args, strict=True)}
            return autolink.Extern(self.symbol, returns=numba_type(self.returns), args=passed)

        call.__signature__ = self.__signature__  # type: ignore[attr-defined]
        return call

    def passed(self, name: str, given: Any) -> Any:
        """Return the type that the argument *name* is converted to; None if it is passed as it is."""
        format = self.parameters[name]
        if not format.endswith("*"):
            expected = numba_type(format)
            is_number = isinstance(given, (types.Number, types.Boolean, types.EnumMember))
            is_real = expected not in types.complex_domain
            if not is_number or (is_real and given in types.complex_domain):
                kind = f"a {'real ' * is_real}number, which becomes {expected}"
                raise self.error(name, given, kind, "pass such a number; an element of an array is x[i]")
            return expected
        if given == types.none:
            return None  # a null pointer
        pointee = format.removeprefix("const ").removesuffix("*")
        dtype = f"{__package__}.{pointee}" if pointee in structs else f"numpy.{np.dtype(pointee)}"
        expected = "a contiguous array" if pointee == "void" else f"a contiguous array of {dtype}"
        if format.startswith("const ") and pointee not in {"void", *structs}:
            expected += ", or a tuple of such numbers"
        element = given if isinstance(given, types.Record) else getattr(given, "dtype", None)
        if not isinstance(given, (types.Array, types.Record, types.BaseTuple)):
            raise self.error(name, given, expected, "pass the array itself; for an element x[i], x[i : i + 1]")
        if pointee != "void" and not is_of(element, pointee):
            raise self.error(name, given, expected, self.instead(given, dtype))
        if getattr(given, "layout", "C") not in "CF":
            raise self.error(
                name, given, expected, "make it contiguous before the launch, with numpy.ascontiguousarray"
            )
        is_const = isinstance(given, types.BaseTuple) or not getattr(given, "mutable", True)
        if is_const and not format.startswith("const "):
            raise self.error(name, given, f"{expected}, not read-only", "pass an array that C++ may write to")
        return types.voidptr

    def instead(self, given: Any, dtype: str) -> str:
        if isinstance(given, types.BaseTuple):
            return f"convert each element: ({dtype}(x), {dtype}(y)) for (x, y)"
        return f"make the array with dtype={dtype}"

    def error(self, name: str, given: Any, expected: str, todo: str) -> Exception:
        return autolink.CABIError(
            f"{self.name}: the argument {name!r} does not fit\n  got: {given}\n  expected: {expected}\n"
            f"  declared: {self.declaration}\n  what to do: {todo}"
        )

    def __numba_cuda_link__(self, *args: Any) -> list[autolink.LinkItem]:
        return [*variables.values(), code.code()]


def numba_type(format: str) -> Any:
    return types.none if format == "void" else from_dtype(np.dtype(format))


def is_of(element: Any, pointee: str) -> bool:
    """Return whether an array of these elements is what the pointer points to."""
    if pointee in structs:
        return isinstance(element, types.Record) and bool(as_dtype(element) == structs[pointee])
    return bool(element == numba_type(pointee))


_manifest = json.loads((code.folder / "manifest.json").read_text())
structs: dict[str, np.dtype[Any]] = {}
for _name, _fields in _manifest["structs"].items():  # a struct in another one comes first
    _fields["formats"] = [(structs.get(element, element), tuple(shape)) for element, shape in _fields["formats"]]
    structs[_name] = np.dtype(_fields)
variables = {
    name: autolink.Variable(
        each["symbol"], structs.get(each["format"], each["format"]), tuple(each["shape"]), space=each["space"]
    )
    for name, each in _manifest["variables"].items()
}
named = {**structs, **variables, **{name: Function(name, **each) for name, each in _manifest["functions"].items()}}
