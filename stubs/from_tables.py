# SPDX-License-Identifier: BSD-2-Clause
"""Generate the stubs of what has a table elsewhere: libdevice, vectors, devices and options of NVRTC.

python stubs/from_tables.py            # write the stubs
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_args, get_origin

from cuda.bindings import driver
from numba.cuda.cudadrv.external_code.inputs.program_options import OPTION_TYPES, described_options
from numba.cuda.vector_types import vector_types

from numba.cuda import libdevice, libdevicefuncs, types

FOLDER = Path(__file__).parent / "numba" / "cuda"
PARAMETERS = 24  # of a kernel, whose arguments are checked one by one
ATTRIBUTE = "CU_DEVICE_ATTRIBUTE_"


def stub_of_libdevice() -> str:
    lines = [
        "# Numbers in kernels: those that Numba's types make have its signatures.",
        "from typing import SupportsFloat, TypeAlias",
        "",
        "from numba.cuda.core._stubs.arguments import _Signature",
        "",
        "_Number: TypeAlias = SupportsFloat | _Signature",
        "",
    ]
    for symbol, (returns, args) in libdevicefuncs.functions.items():
        name = symbol.removeprefix("__nv_")
        result = python_type(libdevicefuncs.create_signature(returns, args).return_type)
        names = inspect.signature(getattr(libdevice, name)).parameters
        lines.append(f"def {name}({', '.join(f'{each}: _Number' for each in names)}, /) -> {result}: ...")
    return stub(lines)


def python_type(numba_type: Any) -> str:
    if isinstance(numba_type, types.BaseTuple):
        return f"tuple[{', '.join(map(python_type, numba_type.types))}]"
    return "int" if isinstance(numba_type, types.Integer) else "float"


def stub_of_vectors() -> str:
    lines = ["from typing import Any", ""]
    for name, vector in vector_types.items():
        lines += [
            f"class {name}:",
            f'    """A vector of {vector.num_elements} {vector.base_type}, made of numbers and of shorter vectors."""',
            "",
            *(f"    {attribute}: Any" for attribute in vector.attr_names),
            "    def __init__(self, *parts: Any) -> None: ...",
            "",
            *(f"{alias} = {name}" for alias in vector.user_facing_object.aliases),
            "",
        ]
    return stub(lines[:-1])


def stub_of_device_attributes() -> str:
    names = [name.removeprefix(ATTRIBUTE) for name in driver.CUdevice_attribute.__members__]
    return stub(["class DeviceAttributes:", *(f"    {name}: int" for name in names if name != "MAX")])


def stub_of_program_options() -> str:
    lines = [
        "# ruff: noqa: E501",
        "from os import PathLike",
        "from typing import Any, SupportsIndex, TypedDict",
        "",
        "from numpy import bool_",
        "",
        "class ProgramOptions(TypedDict, total=False):",
        '    """The compile options of ``cxx`` and ``CUDASource``, by name: fields of ``cuda.core.ProgramOptions``."""',
        "",
    ]
    for name, text in described_options().items():
        lines += [f"    {name}: {type_taken(OPTION_TYPES[name])}", f'    """{text}"""']
    return stub(lines)


def type_taken(hint: Any) -> str:
    """Return the type of what is taken for an option with the type *hint*: a number for a flag, a path for text."""
    wider = {bool: "bool | SupportsIndex | bool_", int: "SupportsIndex", str: "str | PathLike[str]"}
    wider |= {list: "list[Any]", tuple: "tuple[Any, ...]", type(None): "None"}
    return " | ".join(dict.fromkeys(wider[get_origin(kind) or kind] for kind in get_args(hint)))


def stub_of_kernel_launch() -> str:
    names = [f"_{number}" for number in range(1, PARAMETERS + 1)]
    more = [*names, "_Next"]
    lines = [
        "# ruff: noqa: E501",
        "# fmt: off",
        "# The parameters of a kernel as it takes them: the first overload has their names. jedi, which would show all",
        "# overloads, does not see private names of other stubs.",
        "from collections.abc import Callable",
        "from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload",
        "",
        "from typing_extensions import Unpack",
        "",
        "from numba.cuda.core._stubs.launches import Given, LaunchOf",
        "",
        '_P = ParamSpec("_P")',
        '_More = ParamSpec("_More")',
        *(f'{name} = TypeVar("{name}")' for name in more),
        "",
        "class _KernelLaunch(Generic[_P]):",
        "    @overload",
        "    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> None: ...",
    ]
    for count in range(1, PARAMETERS + 1):
        lines += launch(f"[{', '.join(names[:count])}]", names[:count])
    lines += launch(f"Concatenate[{', '.join(more)}, _More]", more, "Unpack[tuple[Any, ...]]")
    return stub(lines)


def launch(parameters: str, names: list[str], *rest: str) -> list[str]:
    """Return the overload of a launch of what has *parameters*. Those in a tuple have no names to show."""
    taken = ", ".join([*(f"Given[{name}]" for name in names), *rest])
    return [
        "    @overload",
        "    def __call__(",
        f"        self: LaunchOf[Callable[{parameters}, Any]],",
        f"        *args: Unpack[tuple[{taken}]],",
        "    ) -> None: ...",
    ]


def stub(lines: list[str]) -> str:
    origin = "# Generated by stubs/from_tables.py."
    return "\n".join(["# SPDX-License-Identifier: BSD-2-Clause", origin, *lines, ""])


STUBS = {
    FOLDER / "core" / "_stubs" / "kernel_launch" / "__init__.pyi": stub_of_kernel_launch,
    FOLDER / "core" / "_stubs" / "vectors" / "__init__.pyi": stub_of_vectors,
    FOLDER / "libdevice" / "__init__.pyi": stub_of_libdevice,
    FOLDER / "core" / "_stubs" / "program_options" / "__init__.pyi": stub_of_program_options,
    FOLDER / "cudadrv" / "_device_attributes" / "__init__.pyi": stub_of_device_attributes,
}

if __name__ == "__main__":
    for path, generate in STUBS.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(generate())
