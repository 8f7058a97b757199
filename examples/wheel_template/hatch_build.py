# SPDX-License-Identifier: BSD-2-Clause
"""Build the package's .cu files for the wheel, ahead of time, with NVRTC. No GPU is needed.

The names in the code begin with that of the package, so that one kernel can call functions of several packages. No C++
is read here: the compiler's debug information describes the functions, see ``debug_information.py``.
"""

import ctypes
import io
import json
import os
import re
import shutil
import sys
import tempfile
import textwrap
from pathlib import Path

from cuda.bindings import nvrtc
from cuda.core import ProgramOptions
from elftools.elf.elffile import ELFFile
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
from debug_information import NUMBERS, Description, parts_of

# For each kind of code: the prefix of an architecture, and the NVRTC function that returns the code.
KINDS = {"cubin": ("sm", "CUBIN"), "LTO-IR": ("compute", "LTOIR"), "PTX": ("compute", "PTX")}
SETTINGS = ("architectures", "include_paths", "defines", "options")  # of the hook's section in pyproject.toml
OF_CUDA = {"vprintf", "malloc", "free"}  # and the device runtime, cuda...
SHARED_MEMORY = 2  # among the attributes of a symbol
# The names of the structs into which the code does not look; of those that it only declares, nothing is known.
LOOK = """
template <class T> __device__ auto look(T* it, int) -> decltype(sizeof(T), (void*)it) { return it + 1; }
template <class T> __device__ void* look(T* it, long) { return it; }
"""
HOST_HEADERS = r"[a-z_]+|(assert|ctype|errno|locale|setjmp|signal|stdarg|stdio|stdlib|string|time|w?char|wctype)\.h"
# What to do about errors of the compiler.
REMEDIES = {
    "considered a host (function|variable)": (
        "mark functions and variables __device__; or all without a mark are, with options = "
        "{ device_as_default_execution_space = true } in the hook's section of pyproject.toml"
    ),
    '"C" linkage|linkage specification': "choose another name: a function of CUDA, or of the package, has this one",
    "already been defined|redefinition": "define it once, in a header: the .cu files are compiled as one",
}


class DeviceCode(BuildHookInterface):
    """Add to the package a folder ``device_code``, with what is built of its sources, and a stub with the functions."""

    def initialize(self, version, build_data):
        self.temporary = tempfile.TemporaryDirectory(prefix="device_code_")  # removed after an error, too
        try:
            self.add_code(version, build_data)
        except RuntimeError as error:
            sys.exit(f"{self.metadata.core.name}: {error}")  # without a traceback of the build's own code

    def finalize(self, version, build_data, artifact_path):
        self.temporary.cleanup()

    def add_code(self, version, build_data):
        package = re.sub(r"[-.]", "_", self.metadata.core.name)
        self.prefix = f"{package}_"
        source = Path(self.root, "src", package)
        self.read_settings(source)
        folders = [source / "device_code", *self.own_include_paths]
        files = sorted(each for each in source.rglob("*.cu") if not any(map(each.is_relative_to, folders)))
        if not files:
            raise RuntimeError(
                f"there is no .cu file in src/{package}\n"
                "  what to do: name the folder after the project, with _ for - and ., and put .cu files into it"
            )
        self.include_paths = [source, *self.own_include_paths, *build_requirement("include")]
        for library in build_requirement("lib/libnvrtc.so.12"):
            ctypes.CDLL(str(library))  # an enclosing environment may have another NVRTC, which would be found first
        first, *others = checked_architectures(self.config.get("architectures"))
        code = "".join(f'#include "{file.relative_to(source).as_posix()}"\n' for file in files)
        code = "".join(f"#define {name} {macro_text(text)}\n" for name, text in self.defines.items()) + code
        description, names = self.described(code, first)
        for function in description.functions.values():
            self.app.display_info(f"{package}: {function['declaration']}")

        in_place = version == "editable"  # Python then imports the package from where it is
        into = source if in_place else Path(self.temporary.name)
        if not in_place:
            build_data["force_include"][str(into)] = package
        folder = into / "device_code"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        code = "".join(f"#define {name} {self.prefix}{name}\n" for name in sorted(names)) + code
        (folder / "all_sources.cu").write_text(code)
        headers = [os.path.relpath(each, source / "device_code") for each in [source, *self.own_include_paths]]
        built = [{"name": "all_sources.cu", "kind": "source", "include_paths": headers, "options": self.options}]
        for kind, architecture in [*(("cubin", each) for each in [first, *others]), ("LTO-IR", first), ("PTX", first)]:
            data = self.compiled(code, kind, architecture)
            if kind == "cubin":
                check_symbols(data, self.prefix, description.functions, architecture)
            name = f"code.sm_{architecture}.{kind.replace('-', '').lower()}"
            (folder / name).write_bytes(data)
            built.append({"name": name, "kind": kind, "architecture": architecture})
        manifest = {"toolkit": list(checked(nvrtc.nvrtcVersion())), "files": built, "prefix": self.prefix}
        manifest |= {"functions": description.functions, "structs": description.structs}
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
        (into / "__init__.pyi").write_text(stub_of(description))

    def read_settings(self, source):
        """Read how to compile from the hook's section of pyproject.toml. Raises `RuntimeError` for what is wrong."""
        if unknown := {*self.config} - {*SETTINGS, "path", "dependencies"}:
            raise RuntimeError(
                f"pyproject.toml: the hook has no setting {', '.join(sorted(unknown))}, expected {', '.join(SETTINGS)}"
            )
        self.options, self.defines = self.config.get("options", {}), self.config.get("defines", {})
        self.own_include_paths = [Path(os.path.abspath(source / each)) for each in self.config.get("include_paths", [])]
        for each in self.own_include_paths:
            if not each.is_dir() or not each.is_relative_to(source):
                raise RuntimeError(
                    f"include_paths in pyproject.toml: {each} is not a folder in {source}\n"
                    "  what to do: copy it there, since the wheel must have the headers, and name it relative to there"
                )

    def described(self, code, architecture):
        """Return the `Description` of the *code*, and all C names that it defines."""
        cubin = self.compiled(code, "cubin", architecture, debug=True)
        functions, names, _ = symbols(cubin)
        description = Description(cubin, functions, self.root)
        if description.incomplete:  # structs into which the code does not look: now it does
            looks = [
                f'#line {line} "{path}"\n__device__ void* look_{number}({struct}* it) {{ return look(it, 0); }}\n'
                for number, (struct, (path, line)) in enumerate(description.incomplete.items())
            ]
            cubin = self.compiled(code + LOOK + "".join(looks), "cubin", architecture, debug=True)
            description = Description(cubin, functions, self.root)
        for struct, place in description.incomplete.items():
            todo = "define it in the package, with members; or let the functions take void*"
            description.problem(place, f"{struct} has no members, or is not defined", todo)
        if description.problems:
            raise RuntimeError("\n".join(description.problems))
        if not description.functions:
            raise RuntimeError(
                "no .cu file defines a function for kernels\n  what to do: declare those that kernels call extern "
                '"C" __device__, and neither static nor inline'
            )
        return description, names

    def compiled(self, code, kind, architecture, **options):
        """Return what NVRTC makes of the *code*. Raises `RuntimeError` with the compiler's errors if it cannot."""
        prefix, get = KINDS[kind]
        program = checked(nvrtc.nvrtcCreateProgram(code.encode(), b"all_sources.cu", 0, [], []))
        options |= {"link_time_optimization": kind == "LTO-IR", "relocatable_device_code": True, "define_macro": None}
        include_path = list(map(str, self.include_paths))
        try:
            given = ProgramOptions(
                arch=f"{prefix}_{architecture}", include_path=include_path, **options, **self.options
            ).as_bytes("nvrtc")
        except TypeError as error:
            raise RuntimeError(
                f"options in pyproject.toml: {str(error).partition(') ')[2]}\n  what to do: name other fields of "
                "cuda.core.ProgramOptions"
            ) from None
        (status,) = nvrtc.nvrtcCompileProgram(program, len(given), given)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = bytes(checked(nvrtc.nvrtcGetProgramLogSize(program)))
            checked(nvrtc.nvrtcGetProgramLog(program, log))
            text = log.decode().rstrip("\0\n ").replace(f"{self.root}/", "")
            what_to_do = "".join(f"\n  what to do: {each}" for each in remedies(text, self.include_paths, self.prefix))
            raise RuntimeError(f"the code does not compile for sm_{architecture}:\n{text}{what_to_do}")
        data = bytes(checked(getattr(nvrtc, f"nvrtcGet{get}Size")(program)))
        checked(getattr(nvrtc, f"nvrtcGet{get}")(program, data))
        return data.rstrip(b"\0") if kind == "PTX" else data


def symbols(cubin, prefix=""):
    """Return the functions that a cubin defines for others, all C names that it defines, and those that it lacks."""
    elf = ELFFile(io.BytesIO(cubin))
    functions, names, undefined = set(), set(), set()
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        name, info = symbol.name.removeprefix(prefix), symbol["st_info"]
        is_kernel = elf.get_section_by_name(f".nv.constant0.{symbol.name}")
        if info["bind"] == "STB_LOCAL" or is_kernel or name.startswith(("__", ".")):
            continue
        if symbol["st_shndx"] == "SHN_UNDEF":
            if symbol["st_other"]["local"] != SHARED_MEMORY and name not in OF_CUDA and not name.startswith("cuda"):
                undefined.add(name)
            continue
        if not name.startswith("_Z"):
            names.add(name)
        if info["bind"] == "STB_GLOBAL" and info["type"] == "STT_FUNC" and not re.match("_[^Z]", name):
            functions.add(name)
    return functions, names, undefined


def check_symbols(cubin, prefix, expected, architecture):
    """Raise `RuntimeError` if a cubin uses what nothing defines, or has other functions than *expected*."""
    functions, _, undefined = symbols(cubin, prefix)
    if undefined:
        names = sorted("::".join(parts_of(name)[0]) or name for name in undefined)
        raise RuntimeError(
            f"no .cu file of the package defines {', '.join(names)}, which its code uses\n"
            "  what to do: define it in a .cu file or a header of the package"
        )
    if differ := functions ^ {*expected}:
        raise RuntimeError(
            f"the code for sm_{architecture} and that for the oldest architecture do not both define "
            f"{', '.join(sorted(differ))}\n  what to do: define each function for all of them, with #if in its body"
        )


def checked_architectures(given):
    """Return the architectures of pyproject.toml in order. Raises `RuntimeError` unless NVRTC knows each of them."""
    known = checked(nvrtc.nvrtcGetSupportedArchs())
    expected = f"expected a list of numbers out of {', '.join(map(str, known))}"
    if not isinstance(given, list) or not given:
        raise RuntimeError(f"architectures in pyproject.toml: got {given!r}, {expected}")
    for each in given:
        if type(each) is not int or each not in known:  # 90.0 equals 90
            raise RuntimeError(f"architectures in pyproject.toml: got {each!r} in {given!r}, {expected}")
    return sorted(set(given))


def remedies(log, include_paths, prefix):
    """Yield what to do about the errors in NVRTC's *log*, as far as that is known."""
    for pattern, what_to_do in REMEDIES.items():
        if re.search(pattern, log):
            yield what_to_do
    if clash := re.search(rf"error: .*\b{prefix}(\w+)", log):
        yield f"if CUDA or a member of a struct is called {clash[1]}, too, give the function another name"
    missing = re.search(r'^(.*)\(\d+\): .*cannot open source file "([^"]+)"', log, re.MULTILINE)
    if not missing or Path(missing[1]).is_absolute():  # in a header that is not the package's
        return
    same = "cuda/std/" + re.sub(r"^(\w+)\.h$", r"c\1", missing[2])
    if any((folder / same).is_file() for folder in include_paths):
        yield (
            f"include <{same}>, whose names are in cuda::std; for headers of others, put a file {missing[2]} that does "
            "so, with namespace std { using namespace cuda::std; }, into a folder of include_paths"
        )
    elif re.fullmatch(HOST_HEADERS, missing[2]):
        yield (
            f"do without {missing[2]}, which is the host's: devices have <cuda/std/array> and others of cuda/std, and "
            "printf, assert and malloc without a header"
        )
    else:
        yield (
            f"copy {missing[2]} into the package, and name its folder in include_paths in pyproject.toml; a header of "
            "CUDA: name the package that has it, such as cuda-toolkit[curand], in requires"
        )


def macro_text(value):
    return int(value) if isinstance(value, bool) else value


def stub_of(description):
    """Return the text of the package's stub, in which editors and type checkers find the functions and the dtypes."""
    lines = ["from typing import Any as _Any", f"__all__ = {sorted([*description.functions, *description.structs])}"]
    if description.structs:
        lines += ["from numpy import dtype as _dtype", *(f"{name}: _dtype[_Any]" for name in description.structs)]
    for name, function in description.functions.items():
        parameters = function["parameters"].items()
        typed = "".join(f"{label}: {NUMBERS.get(format, '_Any')}, " for label, format in parameters)
        result = NUMBERS.get(function["returns"], "None")
        doc = f"``{function['declaration']}``\n\n{function['comment']}".strip()
        doc = textwrap.indent(doc.replace("\\", r"\\").replace('"', r"\""), "    ").lstrip()
        lines += [f"def {name}({typed}{'/' * bool(typed)}) -> {result}:", f'    """{doc}"""']
    return "\n".join(lines) + "\n"


def build_requirement(*names):
    """Return the paths of the files with these names in the CUDA packages that the build requires."""
    return [path for folder in sys.path for name in names for path in Path(folder).glob(f"nvidia/*/{name}")]


def checked(answer):
    """Return the results of an NVRTC function. Raises `RuntimeError` if it failed."""
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {status.name}")
    return values[0] if len(values) == 1 else tuple(values)
