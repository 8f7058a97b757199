# SPDX-License-Identifier: BSD-2-Clause
"""Build the package's .cu files for the wheel, ahead of time, with NVRTC. No GPU is needed.

No C++ is read or changed here: the compiler's debug information describes the functions, see ``debug_information.py``.
"""

import ctypes
import difflib
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import textwrap
import typing
from pathlib import Path

from cuda.bindings import nvrtc
from cuda.core import ProgramOptions
from elftools.elf.elffile import ELFFile
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
from debug_information import CONSTANT_MEMORY, NUMBERS, Description, name_in_python, readable

# For each kind of code: the prefix of an architecture, and the NVRTC function that returns the code.
KINDS = {"cubin": ("sm", "CUBIN"), "LTO-IR": ("compute", "LTOIR"), "PTX": ("compute", "PTX")}
SETTINGS = {  # of the hook's section in pyproject.toml, with an example of each
    "architectures": "[75, 80, 90]",
    "include_paths": '["third_party"]',
    "defines": "{ TILE = 16, NDEBUG = true }",
    "options": '{ std = "c++20", use_fast_math = true }',
}
OF_CUDA = {"vprintf", "malloc", "free"}  # and the device runtime, cuda...
OPTIONS_OF_THE_HOOK = {
    **dict.fromkeys(("arch", "name", "relocatable_device_code", "link_time_optimization", "debug"), "the hook sets it"),
    **dict.fromkeys(("extra_sources", "define_macro", "include_path"), "the hook has settings for it"),
}
PYTHON = {".py", ".pyi", ".pyc", ".typed"}
WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    dict: "a table: { NAME = VALUE }",
}
SHARED_MEMORY = 2  # among the attributes of a symbol
# Debug information has the members of a struct where code looks into it: this does, for all that functions point to.
LOOK = """
namespace look_of_the_build {
using Any = const volatile void*;
template <class T> struct To { using Type = T; };
template <class T> struct To<T*> { using Type = T; };
template <class T> __device__ auto look(T* it, int) -> decltype(sizeof(T), (Any)it) { return it + 1; }
template <class T> __device__ Any look(T* it, long) { return it; }
template <class T> struct Look { static __device__ Any at(typename To<T>::Type* it) { return look(it, 0); } };
template <class T> struct Look<T&> : Look<T> {};
template <class T> struct Look<T&&> : Look<T> {};
template <class R, class... A> __device__ void at(R (*)(A...)) { Any each[] = {nullptr, Look<A>::at(nullptr)...}; }
__device__ inline void at(...) {}
}
"""
HOST_HEADERS = r"[a-z_]+|(assert|ctype|errno|locale|setjmp|signal|stdarg|stdio|stdlib|string|time|w?char|wctype)\.h"
# What to do about errors of the compiler.
REMEDIES = {
    "considered a host (function|variable)": (
        "mark functions and variables __device__; or all without a mark are, with options = "
        "{ device_as_default_execution_space = true } in the hook's section of pyproject.toml"
    ),
    '"C" linkage|linkage specification': "choose another name: a function of CUDA, or of the package, has this one",
    r"^nvrtc: error.*--std": 'write std = "c++17" or "c++20" in options in pyproject.toml, or leave it out',
    r"^(nvrtc: error(?!.*--std)|ptxas fatal|Command-line error)": "correct options in pyproject.toml",
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
        self.package = package = re.sub(r"[-.]", "_", self.metadata.core.name)
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
        description = self.described(code, first)
        for function in description.functions.values():
            self.app.display_info(f"{package}: {function['declaration']}")
        self.app.display_info(
            f"{package}: kernels can call these functions; templates, and functions that are inline, static or "
            "members of classes, are not among them"
        )

        for name, each in description.variables.items():
            self.app.display_info(f"{package}: {each['declaration']}, set by {package}.{name}.set(...)")

        in_place = version == "editable"  # Python then imports the package from where it is
        into = source if in_place else Path(self.temporary.name)
        if not in_place:
            build_data["force_include"][str(into)] = package
        folder = into / "device_code"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "all_sources.cu").write_text(code)
        headers = [os.path.relpath(each, source / "device_code") for each in [source, *self.own_include_paths]]
        built: list[dict] = [
            {"name": "all_sources.cu", "kind": "source", "include_paths": headers, "options": self.options}
        ]
        for kind, architecture in [*(("cubin", each) for each in [first, *others]), ("LTO-IR", first), ("PTX", first)]:
            data = self.compiled(code, kind, architecture)
            if kind == "cubin":
                check_symbols(data, self.package, description, architecture)
            if kind == "cubin" and architecture == first:
                for name in constants_of_zeros(data, package):
                    self.app.display_warning(
                        f"{name} is 0 in all kernels: nothing sets it\n  what to do: for the host to set it, "
                        f"declare it extern __constant__ in namespace {package}; or initialize it with its values"
                    )
            name = f"code.sm_{architecture}.{kind.replace('-', '').lower()}"
            (folder / name).write_bytes(data)
            built.append({"name": name, "kind": kind, "architecture": architecture})
        manifest: dict = {"toolkit": list(checked(nvrtc.nvrtcVersion())), "files": built}
        digests = {
            os.path.relpath(file, source / "device_code"): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in self.sources(source, in_place)
        }
        manifest |= {"sources": digests, "functions": description.functions, "structs": description.structs}
        manifest["variables"] = description.variables
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
        (into / "__init__.pyi").write_text(stub_of(description))

    def sources(self, source, in_place):
        """Return the files that the code can come from; of an editable install, the settings, too."""
        files = [file for file in sorted(source.rglob("*")) if file.is_file() and file.suffix not in PYTHON]
        files = [file for file in files if source / "device_code" not in file.parents]
        return [*files, Path(self.root, "pyproject.toml")] if in_place else files

    def read_settings(self, source):
        """Read how to compile from the hook's section of pyproject.toml. Raises `RuntimeError` for what is wrong."""
        if unknown := sorted({*self.config} - {*SETTINGS, "path", "dependencies"}):
            near = difflib.get_close_matches(unknown[0], SETTINGS, n=1)
            raise RuntimeError(
                f"pyproject.toml: the hook has no setting {', '.join(unknown)}, expected {', '.join(SETTINGS)}"
                + "".join(f"\n  what to do: write {each} for {unknown[0]}" for each in near)
            )
        self.options, self.defines = checked_options(self.config), checked_defines(self.config)
        folders = checked_setting("include_paths", self.config.get("include_paths", []), list[str])
        self.own_include_paths = [Path(os.path.abspath(source / each)) for each in folders]
        for each in self.own_include_paths:
            if not each.is_dir() or not each.is_relative_to(source):
                raise RuntimeError(
                    f"include_paths in pyproject.toml: {each} is not a folder in {source}\n"
                    "  what to do: copy it there, since the wheel must have the headers, and name it relative to there"
                )

    def described(self, code, architecture):
        """Return the `Description` of the *code*."""
        cubin = self.compiled(code, "cubin", architecture, debug=True)
        defined, undefined = symbols(cubin)
        description = Description(cubin, defined, undefined, self.root, self.package)
        if description.incomplete:
            looks = [
                f"__device__ void look_{number}_() {{ look_of_the_build::at({function}); }}\n"
                for number, function in enumerate(description.functions)
                if function not in description.overloaded
            ]
            looks += [
                f"__device__ void look_at_{name}_() {{ look_of_the_build::look(&{name}, 0); }}\n"
                for name in description.variables
            ]
            look = f"{code}{LOOK}namespace {self.package} {{\n{''.join(looks)}}}\n"
            cubin = self.compiled(look, "cubin", architecture, debug=True)
            description = Description(cubin, defined, undefined, self.root, self.package)
        for struct, place in description.incomplete.items():
            todo = "define it in the package, with members; or let the functions take void*"
            description.problem(place, f"{struct} has no members, or is not defined", todo)
        if description.problems:
            raise RuntimeError("\n".join(description.problems))
        if not description.functions:
            raise RuntimeError(
                "no .cu file defines a function for kernels\n  what to do: declare those that kernels call __device__, "
                f"in namespace {self.package}, and neither static nor inline; templates are not among them"
            )
        return description

    def compiled(self, code, kind, architecture, **options):
        """Return what NVRTC makes of the *code*. Raises `RuntimeError` with the compiler's errors if it cannot."""
        prefix, get = KINDS[kind]
        program = checked(nvrtc.nvrtcCreateProgram(code.encode(), b"all_sources.cu", 0, [], []))
        options |= {"link_time_optimization": kind == "LTO-IR", "relocatable_device_code": True, "define_macro": None}
        include_path = list(map(str, self.include_paths))
        options |= {"arch": f"{prefix}_{architecture}", "include_path": include_path}
        given = ProgramOptions(**options, **self.options).as_bytes("nvrtc")
        (status,) = nvrtc.nvrtcCompileProgram(program, len(given), given)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = bytes(checked(nvrtc.nvrtcGetProgramLogSize(program)))
            checked(nvrtc.nvrtcGetProgramLog(program, log))
            text = log.decode().rstrip("\0\n ").replace(f"{self.root}/", "")
            what_to_do = "".join(f"\n  what to do: {each}" for each in remedies(text, self.include_paths, self.defines))
            raise RuntimeError(f"the code does not compile for sm_{architecture}:\n{text}{what_to_do}")
        data = bytes(checked(getattr(nvrtc, f"nvrtcGet{get}Size")(program)))
        checked(getattr(nvrtc, f"nvrtcGet{get}")(program, data))
        return data.rstrip(b"\0") if kind == "PTX" else data


def symbols(cubin):
    """Return the names of the functions and variables that a cubin defines for others, and of what it lacks."""
    elf = ELFFile(io.BytesIO(cubin))
    defined, undefined = set(), set()
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        name, info = symbol.name, symbol["st_info"]
        is_kernel = elf.get_section_by_name(f".nv.constant0.{name}")
        if info["bind"] == "STB_LOCAL" or is_kernel or name.startswith(("__", ".")):
            continue
        if symbol["st_shndx"] != "SHN_UNDEF":
            defined |= {name} if info["bind"] == "STB_GLOBAL" else set()
        elif symbol["st_other"]["local"] != SHARED_MEMORY and name not in OF_CUDA and not name.startswith("cuda"):
            undefined.add(name)
    return defined, undefined


def constants_of_zeros(cubin, package):
    """Yield the ``__constant__`` variables of the *package* that a cubin defines as 0, which no kernel can change."""
    elf = ELFFile(io.BytesIO(cubin))
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        name, section, start = readable(symbol.name), symbol["st_shndx"], symbol["st_value"]
        is_constant = symbol["st_other"]["local"] == CONSTANT_MEMORY and section != "SHN_UNDEF"
        if is_constant and name.startswith(f"{package}::"):
            value = elf.get_section(section).data()[start : start + symbol["st_size"]]
            if not any(value):
                yield name


def check_symbols(cubin, package, description, architecture):
    """Raise `RuntimeError` if a cubin uses what nothing defines, or has other functions than are described."""
    defined, undefined = symbols(cubin)
    if undefined := undefined - {each["symbol"] for each in description.variables.values()}:
        names = sorted(map(readable, undefined))
        raise RuntimeError(
            f"no .cu file of the package defines {', '.join(names)}, which its code uses\n"
            "  what to do: define it in a .cu file or a header of the package"
        )
    described = {each["symbol"] for each in description.functions.values()}
    if (
        differ := described
        ^ {each for each in defined if name_in_python(each, package)} - description.defined_variables
    ):
        names = sorted(name_in_python(each, package) for each in differ)
        raise RuntimeError(
            f"the code for sm_{architecture} and that for the oldest architecture do not both define "
            f"{', '.join(names)}\n  what to do: define each function for all of them, with #if in its body"
        )


def checked_setting(name, value, *kinds):
    """Return a *value* of pyproject.toml. Raises `RuntimeError` if it is of none of these *kinds*."""
    if not any(is_of_kind(value, each) for each in kinds):
        expected = " or ".join(dict.fromkeys(filter(None, map(shown_kind, kinds))))
        raise RuntimeError(f"{name} in pyproject.toml: got {value!r}, expected {expected}{example_of(name)}")
    return value


def example_of(name):
    """Return what to do about a setting in pyproject.toml; empty for a part of one."""
    return f"\n  what to do: write it as in {name} = {SETTINGS[name]}" if name in SETTINGS else ""


def is_of_kind(value, kind):
    """Return whether a *value* is of a type, or is a list of such."""
    if typing.get_origin(kind) is list:
        return type(value) is list and all(is_of_kind(each, typing.get_args(kind)[0]) for each in value)
    return type(value) is kind  # True is not a number here


def shown_kind(kind):
    """Return a type in words; empty for one that no value in TOML has."""
    return f"a list, each {WORDS[typing.get_args(kind)[0]]}" if typing.get_origin(kind) is list else WORDS.get(kind, "")


def checked_defines(config):
    """Return the macros of pyproject.toml. Raises `RuntimeError` for what is not one."""
    defines = checked_setting("defines", config.get("defines", {}), dict)
    for name, text in defines.items():
        if not re.fullmatch(r"[A-Za-z_]\w*(\([\w, .]*\))?", name):
            raise RuntimeError(
                f"defines in pyproject.toml: got the name {name!r}, expected that of a macro{example_of('defines')}"
            )
        checked_setting(f"defines.{name}", text, str, int, float, bool)
        if "\n" in str(text) or str(text).endswith("\\"):
            raise RuntimeError(f"defines.{name} in pyproject.toml: got {text!r}, expected one line, whole")
    return defines


def checked_options(config):
    """Return the options of pyproject.toml. Raises `RuntimeError` for what the compiler's options cannot be."""
    options = checked_setting("options", config.get("options", {}), dict)
    kinds = typing.get_type_hints(ProgramOptions)
    for name, value in options.items():
        if name not in kinds or name in OPTIONS_OF_THE_HOOK:
            why = OPTIONS_OF_THE_HOOK.get(name, "cuda.core.ProgramOptions has no such field")
            near = difflib.get_close_matches(name, {*kinds} - {*OPTIONS_OF_THE_HOOK}, n=1)
            todo = f"write {near[0]}" if near else "name other fields of cuda.core.ProgramOptions"
            todo = todo if name not in OPTIONS_OF_THE_HOOK else "leave it out"
            raise RuntimeError(f"options.{name} in pyproject.toml: {why}\n  what to do: {todo}")
        checked_setting(f"options.{name}", value, *typing.get_args(kinds[name]))
    return options


def checked_architectures(given):
    """Return the architectures of pyproject.toml in order. Raises `RuntimeError` unless NVRTC knows each of them."""
    known = checked(nvrtc.nvrtcGetSupportedArchs())
    expected = f"expected a list of numbers out of {', '.join(map(str, known))}"
    example = example_of("architectures")
    if given is None:
        raise RuntimeError(f"pyproject.toml: the hook's section has no architectures, {expected}{example}")
    if not isinstance(given, list) or not given:
        raise RuntimeError(f"architectures in pyproject.toml: got {given!r}, {expected}{example}")
    for each in given:
        if type(each) is not int or each not in known:  # 90.0 equals 90
            raise RuntimeError(f"architectures in pyproject.toml: got {each!r} in {given!r}, {expected}{example}")
    return sorted(set(given))


def remedies(log, include_paths, defines):
    """Yield what to do about the errors in NVRTC's *log*, which shows their lines, as far as that is known."""
    used = [name for name in defines if re.search(rf"\b{re.escape(name.partition('(')[0])}\b", log)]
    if used:
        values = ", ".join(f"{name} is {macro_text(defines[name])}" for name in used)
        yield f"if a macro is wrong, correct it in defines in pyproject.toml: {values}"
    unknown = dict.fromkeys(re.findall(r'error: identifier "(\w+)" is undefined', log))
    if named := [each for each in unknown if each not in map(str, defines.values())]:
        yield (
            f"declare {', '.join(named)} in front of the use, or include the header that does; a macro: write "
            f"defines = {{ {' = ..., '.join(named)} = ... }} into the hook's section of pyproject.toml"
        )
    for pattern, what_to_do in REMEDIES.items():
        if re.search(pattern, log):
            yield what_to_do
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
    lines = [
        "from typing import Any as _Any",
        f"__all__ = {sorted([*description.functions, *description.structs, *description.variables])}",
    ]
    if description.variables:
        lines += ["from numba.cuda.autolink import Variable as _Variable"]
        lines += [f"{name}: _Variable" for name in description.variables]
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
