# SPDX-License-Identifier: BSD-2-Clause
"""Make the C functions of the device code callable in kernels."""

import json
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

    def __numba_cuda_call__(self, *args: Any) -> autolink.Extern:
        if len(args) != len(self.parameters):
            raise TypeError(f"got {len(args)} arguments, expected {len(self.parameters)}: {', '.join(self.parameters)}")
        converted: dict[str, Any] = {}
        for number, (name, cxx) in enumerate(self.parameters.items()):
            given = args[number]
            if not cxx.endswith("*"):
                converted[f"args_{number}"] = TYPES[cxx]
                continue
            converted[f"args_{number}"] = None  # without conversion
            known = cxx != "void*" and cxx[:-1] in TYPES and given is not types.none
            if known and autolink.cxx_type(given).removeprefix("const ") != cxx:
                raise TypeError(f"{name}: got {given}, expected an array for {cxx}")
        return autolink.Extern(self.symbol, returns=TYPES[self.returns], args=converted or None)

    def __numba_cuda_link__(self, *args: Any) -> autolink.LinkItem:
        return code.code()


_declared = json.loads((code.folder / "manifest.json").read_text())["functions"]
functions = {symbol: Function(symbol, **declaration) for symbol, declaration in _declared.items()}
