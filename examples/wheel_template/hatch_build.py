# SPDX-License-Identifier: BSD-2-Clause
"""Build the package's .cu files for the wheel, ahead of time, with NVRTC. No GPU is needed."""

import ctypes
import json
import keyword
import re
import shutil
import sys
import tempfile
from pathlib import Path

from cuda.bindings import nvrtc
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NUMBERS = {"bool", "signed char", "short", "int", "long long", "float", "double", "float2", "double2", "__half", "void"}
NUMBERS |= {"unsigned char", "unsigned short", "unsigned int", "unsigned long long"}
NOT_THE_TYPE = {"__device__", "__noinline__", "const", "__restrict__"}
TYPE_WORDS = {"bool", "char", "short", "int", "long", "signed", "unsigned", "float", "double", "void"} | NOT_THE_TYPE
OF_CUDA = {"vprintf", "malloc", "free", "__assertfail"}  # and the device runtime, cuda...
OTHER_NAMES = {
    **{"int8_t": "signed char", "int16_t": "short", "int32_t": "int", "int64_t": "long long"},
    **{"uint8_t": "unsigned char", "uint16_t": "unsigned short"},
    **{"uint32_t": "unsigned int", "uint64_t": "unsigned long long"},
    **{"unsigned": "unsigned int", "size_t": "unsigned long long", "half": "__half", "char": "signed char"},
}


class DeviceCode(BuildHookInterface):
    """Add a folder ``device_code`` to the package: the sources, the code built from them, and ``manifest.json``; and a
    stub with the functions."""

    def initialize(self, version, build_data):
        try:
            self.add_code(version, build_data)
        except RuntimeError as error:
            sys.exit(f"{self.metadata.core.name}: {error}")  # without a traceback of the build's own code

    def add_code(self, version, build_data):
        package = self.metadata.core.name.replace("-", "_").replace(".", "_")
        sources = sorted(Path(self.root, "src", package).glob("*.cu"))
        if not sources:
            raise RuntimeError(
                f"there is no .cu file in src/{package}, the folder of the project {self.metadata.core.name}"
            )
        self.include_paths = [Path(self.root, "src", package), *build_requirement("include")]
        for library in build_requirement("lib/libnvrtc.so.12", "bin/nvrtc64_120_0.dll"):
            ctypes.CDLL(str(library))  # an enclosing environment may have another NVRTC, which would be found first
        first, *_ = architectures = checked_architectures(self.config.get("architectures"))
        in_place = version == "editable"  # Python then imports the package from where it is
        self.temporary = tempfile.TemporaryDirectory(prefix="device_code_")  # removed after an error, too
        into = Path(self.root, "src", package) if in_place else Path(self.temporary.name)
        if not in_place:
            build_data["force_include"][str(into)] = package
        self.folder = into / "device_code"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        code = "\n".join(f'#line 1 "{source.name}"\n{source.read_text()}' for source in sources)
        files = [{"name": "code.cu", "kind": "source"}]
        (self.folder / "code.cu").write_text(code)
        for architecture in architectures:
            files.append(self.built(code, "cubin", architecture))
        files += [self.built(code, "LTO-IR", first), self.built(code, "PTX", first)]
        ptx = (self.folder / files[-1]["name"]).read_text()
        refuse_undefined(ptx)
        symbols = re.findall(r"^\.visible \.func\s+(?:\(.*?\)\s*)?(_Z\w+|[a-zA-Z]\w*)", ptx, re.MULTILINE)
        functions = declared(code, symbols)
        toolkit = list(checked(nvrtc.nvrtcVersion()))
        manifest = {"toolkit": toolkit, "files": files, "functions": functions}
        (self.folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
        (into / "__init__.pyi").write_text(stub_of(functions))

    def finalize(self, version, build_data, artifact_path):
        self.temporary.cleanup()

    def built(self, code, kind, architecture):
        """Build *code* into the folder, and return the file's entry in the manifest."""
        suffix, arch, option, get = {
            "cubin": ("cubin", "sm", [], "CUBIN"),
            "LTO-IR": ("ltoir", "compute", ["-dlto"], "LTOIR"),
            "PTX": ("ptx", "compute", [], "PTX"),
        }[kind]
        name = f"code.sm_{architecture}.{suffix}"
        program = checked(nvrtc.nvrtcCreateProgram(code.encode(), b"code.cu", 0, [], []))
        options = [f"-arch={arch}_{architecture}", "-rdc=true", "-std=c++17", *option]
        options += [f"-I{folder}" for folder in self.include_paths]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [each.encode() for each in options])
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(program))
            checked(nvrtc.nvrtcGetProgramLog(program, log))
            text = log.decode().rstrip("\0\n ")
            raise RuntimeError(f"{name} cannot be built:\n{text}{remedy(text, self.include_paths)}")
        data = b" " * checked(getattr(nvrtc, f"nvrtcGet{get}Size")(program))
        checked(getattr(nvrtc, f"nvrtcGet{get}")(program, data))
        (self.folder / name).write_bytes(data.rstrip(b"\0") if kind == "PTX" else data)
        return {"name": name, "kind": kind, "architecture": architecture}


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


def remedy(log, include_paths):
    """Return what to do about the header that was not found according to NVRTC's *log*, if there is one."""
    if not (missing := re.search(r'cannot open source file "([^"]+)"', log)):
        return ""
    same = "cuda/std/" + re.sub(r"^(\w+)\.h$", r"c\1", missing[1])
    if any((folder / same).is_file() for folder in include_paths):
        return f"\nwhat to do: include <{same}>, whose names are in cuda::std"
    return f"\nwhat to do: put {missing[1]} into the folder of the .cu files"


def refuse_undefined(ptx):
    """Raise `RuntimeError` if the code uses functions or variables that no .cu file defines."""
    names = re.findall(r"^\.extern \.(?:func\s+(?:\(.*?\)\s*)?|(?:global|const)[^;\[]*\s)(\w+)", ptx, re.MULTILINE)
    undefined = [name for name in names if name not in OF_CUDA and not name.startswith("cuda")]
    if undefined:
        raise RuntimeError(f"no .cu file of the package defines {', '.join(undefined)}, which its code uses")


def declared(code, symbols):
    """Return the result and parameter types of the functions named *symbols*, as the source *code* declares them.

    *symbols* are the functions in the compiled code.
    """
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.DOTALL)
    found = re.findall(r'extern\s+"C"\s+([^;{}()"]*?)(\w+)\s*\(([^()]*)\)\s*\{', code)
    declarations = {symbol: (returns, listed) for returns, symbol, listed in found}
    functions = {}
    for symbol in symbols:
        if symbol.startswith("_Z"):
            raise RuntimeError(
                f'{cxx_name(symbol)} is not extern "C", so kernels cannot call it: declare it extern "C"; or '
                "inline, if only the package's own code calls it"
            )
        if keyword.iskeyword(symbol):
            raise RuntimeError(f"{symbol} is a word of Python, so kernels cannot call it by its name: rename it")
        if symbol not in declarations:
            raise RuntimeError(
                f'the declaration of {symbol} cannot be read: write extern "C" __device__ TYPE {symbol}(TYPE NAME, '
                '...) { without macros, and not in a block extern "C" { }'
            )
        returns, listed = declarations.pop(symbol)
        parameters: dict[str, str] = {}
        for parameter in [] if listed.strip() in ("", "void") else listed.split(","):
            what = f"{symbol}: the parameter {parameter.strip()!r}"
            if "=" in parameter:
                raise RuntimeError(f"{what} has a default, but kernels pass all arguments: leave the default out")
            as_pointer = re.sub(r"(\w+)\s*\[[^][]*\]$", r"* \1", parameter.strip())  # an array is one in C++, too
            cxx, name = type_and_name(as_pointer)
            name = name or f"arg{len(parameters) + 1}"
            while keyword.iskeyword(name) or name in parameters:
                name += "_"
            parameters[name] = plain(cxx, what, pointers=True)
        functions[symbol] = {"returns": plain(returns, f"{symbol}: its result"), "parameters": parameters}
    for symbol, (returns, _) in declarations.items():
        if "inline" in returns:
            raise RuntimeError(f"{symbol} is inline, so the compiler leaves it out: declare it without inline")
    if not functions:
        raise RuntimeError(
            'no .cu file of the package defines an extern "C" __device__ function, which kernels can call'
        )
    return functions


def type_and_name(parameter):
    """Return the C++ type and the name of a *parameter*; an empty name for ``const float*`` or ``unsigned int``."""
    before, name = re.findall(r"^(.*?)(\w*)$", parameter, re.DOTALL)[0]
    return (before, name) if name not in TYPE_WORDS and {*words_of(before)} - {"*"} else (parameter, "")


def words_of(cxx):
    """Return the words and signs of a C++ type, without qualifiers."""
    words = re.findall(r"\w+|\S", re.sub(r"\b(cuda::)?std::", "", cxx))
    return [word for word in words if word not in NOT_THE_TYPE]


def stub_of(functions):
    """Return the text of the package's stub, in which editors and type checkers find the functions."""
    lines = ["from typing import Any as _Any", f"__all__ = {sorted(functions)}"]
    for name, function in functions.items():
        types = function["parameters"].items()
        typed = "".join(f"{parameter}: {python_type(cxx)}, " for parameter, cxx in types) + ("/" if types else "")
        declaration = f"{function['returns']} {name}({', '.join(f'{cxx} {parameter}' for parameter, cxx in types)})"
        lines += [f"def {name}({typed}) -> {python_type(function['returns'])}:", f'    """``{declaration}``"""']
    return "\n".join(lines) + "\n"


def python_type(cxx):
    """Return the type that Python has for a plain C++ type. What a pointer points to is left open."""
    if cxx.endswith("*"):
        return "_Any"
    others = {"bool": "bool", "void": "None", "float2": "complex", "double2": "complex"}
    return others.get(cxx, "float" if cxx in {"float", "double", "__half"} else "int")


def cxx_name(symbol):
    """Return the C++ name of the function with the mangled name *symbol*: ``ours::sum`` for ``_ZN4ours3sumEff``."""
    names, rest = [], symbol.removeprefix("_Z").lstrip("NK")
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        names.append(rest[length.end() : end])
        rest = rest[end:]
    return "::".join(names) or symbol


def plain(cxx, what, pointers=False):
    """Return the plain name of a C++ type: ``int`` for ``const std::int32_t``, ``float*`` for ``float const*``."""
    words = words_of(cxx)
    name = " ".join(word for word in words if word != "*")
    name, stars = OTHER_NAMES.get(name, name), words.count("*")
    if not ((stars == 0 and name in NUMBERS) or (stars == 1 and pointers)):
        expected = "a number or a pointer and a name" if pointers else "a number or void"
        raise RuntimeError(
            f"{what} has the type {' '.join(words)!r}, expected {expected}: a number is float, double, __half, bool, "
            "float2, double2 or an integer of 8 to 64 bits such as long long, without macros and aliases"
        )
    return name + "*" * stars


def build_requirement(*names):
    """Return the paths of the files with these names in the CUDA packages that the build requires."""
    return [path for folder in sys.path for name in names for path in Path(folder).glob(f"nvidia/*/{name}")]


def checked(answer):
    """Return the results of an NVRTC function. Raises `RuntimeError` if it failed."""
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {status.name}")
    return values[0] if len(values) == 1 else tuple(values)
