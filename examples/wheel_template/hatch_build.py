# SPDX-License-Identifier: BSD-2-Clause
"""Build the package's .cu files for the wheel, ahead of time, with NVRTC. No GPU is needed.

The names in the code begin with that of the package, so that one kernel can call functions of several packages. No C++
is read here: the compiler's debug information describes the functions, see ``debug_information.py``.
"""

import ctypes
import io
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from cuda.bindings import nvrtc
from elftools.elf.elffile import ELFFile
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
from debug_information import NUMBERS, Description

# For each kind of code: the prefix of an architecture, the compiler's option, and the NVRTC function that returns it.
KINDS = {"cubin": ("sm", "", "CUBIN"), "LTO-IR": ("compute", "-dlto", "LTOIR"), "PTX": ("compute", "", "PTX")}
OF_CUDA = {"vprintf", "malloc", "free"}  # and the device runtime, cuda...
SHARED_MEMORY = 2  # among the attributes of a symbol
# What to do about errors of the compiler.
REMEDIES = {
    "considered a host function": "mark it __device__",
    'has "C" linkage': "give it a name of its own: another function has it, of the package or of CUDA",
    "already been defined|redefinition": "define it once, in a header: the .cu files are compiled as one",
    "complete object type": "define the struct in the package, or take void*",
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
        files = sorted(source.glob("*.cu"))
        if not files:
            raise RuntimeError(f"there is no .cu file in src/{package}, which is named after the project")
        self.include_paths = [source, *build_requirement("include")]
        for library in build_requirement("lib/libnvrtc.so.12"):
            ctypes.CDLL(str(library))  # an enclosing environment may have another NVRTC, which would be found first
        first, *others = checked_architectures(self.config.get("architectures"))
        code = "".join(f'#include "{file.name}"\n' for file in files)
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
        built = [{"name": "all_sources.cu", "kind": "source"}]
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

    def described(self, code, architecture):
        """Return the `Description` of the *code*, and all C names that it defines."""
        cubin = self.compiled(code, "cubin", architecture, "-G")
        functions, names, _ = symbols(cubin)
        description = Description(cubin, functions)
        if description.incomplete:  # structs into which the code does not look: now it does
            looks = [
                f'\n#line {line} "{file}"\n__device__ void* look_{number}({struct}* it) {{ return (char*)(it + 1); }}'
                for number, (struct, (file, line)) in enumerate(description.incomplete.items())
            ]
            description = Description(self.compiled(code + "".join(looks), "cubin", architecture, "-G"), functions)
        for struct, (file, line) in description.incomplete.items():
            raise RuntimeError(f"{file}:{line}: {struct} has no members: let the functions take void*")
        if not description.functions:
            raise RuntimeError(
                'no .cu file defines a function for kernels: extern "C" __device__, and neither static nor inline'
            )
        return description, names

    def compiled(self, code, kind, architecture, *options):
        """Return what NVRTC makes of the *code*. Raises `RuntimeError` with the compiler's errors if it cannot."""
        prefix, option, get = KINDS[kind]
        program = checked(nvrtc.nvrtcCreateProgram(code.encode(), b"all_sources.cu", 0, [], []))
        given = [f"-arch={prefix}_{architecture}", "-rdc=true", "-std=c++17", *option.split(), *options]
        given += [f"-I{folder}" for folder in self.include_paths]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(given), [each.encode() for each in given])
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = bytes(checked(nvrtc.nvrtcGetProgramLogSize(program)))
            checked(nvrtc.nvrtcGetProgramLog(program, log))
            text = log.decode().rstrip("\0\n ")
            what_to_do = remedy(text, self.include_paths, self.prefix)
            raise RuntimeError(f"the code does not compile for sm_{architecture}:\n{text}\n{what_to_do}".rstrip())
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
        raise RuntimeError(f"no .cu file of the package defines {', '.join(sorted(undefined))}, which its code uses")
    if differ := functions ^ {*expected}:
        raise RuntimeError(
            f"the code for sm_{architecture} and that for the oldest architecture do not both define "
            f"{', '.join(sorted(differ))}: define each function for all of them, with #if in its body"
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


def remedy(log, include_paths, prefix):
    """Return what to do about the errors in NVRTC's *log*, as far as that is known."""
    for pattern, what_to_do in REMEDIES.items():
        if re.search(pattern, log):
            return f"what to do: {what_to_do}"
    if clash := re.search(rf"error: .*\b{prefix}(\w+)", log):
        return f"what to do: if CUDA or a member of a struct is called {clash[1]}, too, give the function another name"
    missing = re.search(r'^(.*)\(\d+\): .*cannot open source file "([^"]+)"', log, re.MULTILINE)
    if not missing or not Path(missing[1]).is_relative_to(include_paths[0]):  # the package's own folder
        return ""
    same = "cuda/std/" + re.sub(r"^(\w+)\.h$", r"c\1", missing[2])
    if any((folder / same).is_file() for folder in include_paths):
        return f"what to do: include <{same}>, whose names are in cuda::std"
    return (
        f"what to do: put {missing[2]} into the folder of the .cu files; or a CUDA package that has it, such as "
        "cuda-toolkit[curand], into the requires of pyproject.toml"
    )


def stub_of(description):
    """Return the text of the package's stub, in which editors and type checkers find the functions and the dtypes."""
    lines = ["from typing import Any as _Any", f"__all__ = {sorted([*description.functions, *description.structs])}"]
    if description.structs:
        lines += ["from numpy import dtype as _dtype", *(f"{name}: _dtype[_Any]" for name in description.structs)]
    for name, function in description.functions.items():
        parameters = function["parameters"].items()
        typed = "".join(f"{label}: {NUMBERS.get(format, '_Any')}, " for label, format in parameters)
        result = NUMBERS.get(function["returns"], "None")
        lines += [f"def {name}({typed}{'/' * bool(typed)}) -> {result}:", f'    """``{function["declaration"]}``"""']
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
