# SPDX-License-Identifier: BSD-2-Clause
"""Make the C functions of the device code callable in kernels."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.cuda import autolink, types

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
    """A C function. Numbers are converted to the types of its parameters; pointer parameters take arrays."""

    def __init__(self, symbol: str, returns: str, parameters: dict[str, str]) -> None:
        self.symbol, self.returns, self.parameters = symbol, returns, parameters

    @property
    def __name__(self) -> str:
        return self.symbol  # in messages

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
        """Return the type that the argument *name* is converted to; None for an array, which is passed as it is."""
        cxx = self.parameters[name]
        if not cxx.endswith("*"):
            return TYPES[cxx]
        known = cxx != "void*" and cxx[:-1] in TYPES and given is not types.none
        if known and autolink.cxx_type(given).removeprefix("const ") != cxx:
            raise autolink.CABIError(f"{self.symbol}: {name}: got {given}, expected an array for {cxx}")
        return None

    def __numba_cuda_link__(self, *args: Any) -> autolink.LinkItem:
        return code.code()


_declared = json.loads((code.folder / "manifest.json").read_text())["functions"]
functions = {symbol: Function(symbol, **declaration) for symbol, declaration in _declared.items()}
