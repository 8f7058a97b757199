# SPDX-License-Identifier: BSD-2-Clause
"""Makes the C functions of the device code callable in kernels."""

import re
from pathlib import Path

from numba.cuda import autolink, types

HERE = Path(__file__).parent
code = autolink.Prebuilt(HERE / "device_code", include_paths=(HERE,))

TYPES = {
    "bool": types.boolean,
    "signed char": types.int8,
    "short": types.int16,
    "int": types.int32,
    "long long": types.int64,
    "unsigned char": types.uint8,
    "unsigned short": types.uint16,
    "unsigned": types.uint32,
    "unsigned int": types.uint32,
    "unsigned long long": types.uint64,
    "float": types.float32,
    "double": types.float64,
    "void": types.none,
}
_FUNCTION = re.compile(r'extern\s+"C"\s+__device__\s+([\w\s]+?)\s+(\w+)\s*\(([^)]*)\)\s*\{')


class Function(autolink.DeviceCallable):
    """A C function. Numbers are converted to its parameters' types; arrays are passed where it takes pointers."""

    def __init__(self, returns, symbol, parameters):
        self.returns, self.symbol, self.parameters = returns, symbol, parameters

    def __numba_cuda_call__(self, *args):
        if len(args) != len(self.parameters):
            raise TypeError(f"got {len(args)} arguments, expected {len(self.parameters)}: {', '.join(self.parameters)}")
        converted = {}
        for number, (name, cxx) in enumerate(self.parameters.items()):
            given = args[number]
            if "*" in cxx and autolink.cxx_type(given).removeprefix("const ") != cxx.removeprefix("const "):
                raise TypeError(f"{name}: got {given}, expected an array for {cxx}")
            converted[f"args_{number}"] = None if "*" in cxx else TYPES[cxx]
        return autolink.Extern(self.symbol, returns=TYPES[self.returns], args=converted or None)

    def __numba_cuda_link__(self, *args):
        return code.code()


def declared(source):
    """The functions of a CUDA C++ source by name."""
    found = {}
    for returns, symbol, listed in _FUNCTION.findall(source):
        parameters = {}
        for parameter in listed.replace("*", "* ").split(","):
            cxx, _, name = parameter.strip().rpartition(" ")
            if cxx:
                parameters[name] = " ".join(cxx.split()).replace(" *", "*")
        found[symbol] = Function(" ".join(returns.split()), symbol, parameters)
    return found


functions = declared((code.folder / "code.cu").read_text())
