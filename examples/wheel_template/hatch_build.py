# SPDX-License-Identifier: BSD-2-Clause
"""Build the package's .cu files for the wheel, ahead of time, with NVRTC. No GPU is needed.

The names in the code begin with that of the package, so that one kernel can call functions of several packages.
"""

import ctypes
import itertools
import json
import keyword
import re
import shutil
import sys
import tempfile
from pathlib import Path

from cuda.bindings import nvrtc
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The numbers that C functions take and return, and their formats in a NumPy dtype.
NUMBERS = {
    **{"bool": "?", "signed char": "i1", "short": "i2", "int": "i4", "long long": "i8"},
    **{"unsigned char": "u1", "unsigned short": "u2", "unsigned int": "u4", "unsigned long long": "u8"},
    **{"__half": "f2", "float": "f4", "double": "f8", "float2": "c8", "double2": "c16"},
}
NOT_THE_TYPE = {"__host__", "__device__", "__noinline__", "const", "__restrict__", "struct"}
TYPE_WORDS = {"bool", "char", "short", "int", "long", "signed", "unsigned", "float", "double", "void"} | NOT_THE_TYPE
OF_CUDA = {"vprintf", "malloc", "free", "__assertfail"}  # and the device runtime, cuda...
OTHER_NAMES = {
    **{"int8_t": "signed char", "int16_t": "short", "int32_t": "int", "int64_t": "long long"},
    **{"uint8_t": "unsigned char", "uint16_t": "unsigned short"},
    **{"uint32_t": "unsigned int", "uint64_t": "unsigned long long"},
    **{"unsigned": "unsigned int", "size_t": "unsigned long long", "half": "__half", "char": "signed char"},
    **{"uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned int"},
    **{"longlong": "long long", "ulonglong": "unsigned long long"},
}
FUNCTION = re.compile(r'extern\s+"C"\s+([^;{}()"]*?)(\w+)\s*\(([^()]*)\)\s*\{')
# Appended to the code, so that a name tells the numbers in its template arguments.
LAYOUT = """
template <unsigned long long...> __global__ void layout_tell() {}
template <class T> struct layout_element { using type = T; };
template <class T, unsigned long long N> struct layout_element<T[N]> : layout_element<T> {};
"""


class DeviceCode(BuildHookInterface):
    """Add a folder ``device_code`` to the package: the sources, the code built from them, and ``manifest.json``; and a
    stub with the functions."""

    def initialize(self, version, build_data):
        try:
            self.add_code(version, build_data)
        except RuntimeError as error:
            sys.exit(f"{self.metadata.core.name}: {error}")  # without a traceback of the build's own code

    def add_code(self, version, build_data):
        package = re.sub(r"[-.]", "_", self.metadata.core.name)
        sources = sorted(Path(self.root, "src", package).glob("*.cu"))
        if not sources:
            raise RuntimeError(
                f"there is no .cu file in src/{package}, the folder of the project {self.metadata.core.name}"
            )
        self.include_paths = [Path(self.root, "src", package), *build_requirement("include")]
        for library in build_requirement("lib/libnvrtc.so.12"):
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
        readable = without_comments(marked(sources))
        self.prefix = f"{package}_"
        self.names = sorted({name for _, name, _ in FUNCTION.findall(readable)})
        lines = [*(f"#define {name} {self.prefix}{name}" for name in self.names)]
        code = "\n".join([*lines, *(f'#include "{source.name}"' for source in sources)]) + "\n"
        files = [{"name": "all_sources.cu", "kind": "source"}]
        (self.folder / "all_sources.cu").write_text(code)
        for architecture in architectures:
            files.append(self.built(code, "cubin", architecture))
        files += [self.built(code, "LTO-IR", first), self.built(code, "PTX", first)]
        ptx = (self.folder / files[-1]["name"]).read_text()
        refuse_undefined(ptx)
        symbols = re.findall(r"^\.visible \.func\s+(?:\(.*?\)\s*)?(_Z\w+|[a-zA-Z]\w*)", ptx, re.MULTILINE)
        functions = declared(readable, symbols, self.prefix)
        headers = [each for each in sorted(sources[0].parent.rglob("*")) if each.suffix in {".h", ".cuh", ".hpp"}]
        structs = described(functions, without_comments(marked([*sources, *headers])))
        layouts = self.layouts(code, structs, first) if structs else {}
        toolkit = list(checked(nvrtc.nvrtcVersion()))
        manifest = {"toolkit": toolkit, "files": files, "functions": functions, "structs": layouts}
        (self.folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
        (into / "__init__.pyi").write_text(stub_of(functions, layouts))

    def finalize(self, version, build_data, artifact_path):
        self.temporary.cleanup()

    def built(self, code, kind, architecture):
        """Build the *code* into the folder, and return the file's entry in the manifest."""
        suffix, arch, option, get = {
            "cubin": ("cubin", "sm", [], "CUBIN"),
            "LTO-IR": ("ltoir", "compute", ["-dlto"], "LTOIR"),
            "PTX": ("ptx", "compute", [], "PTX"),
        }[kind]
        name = f"code.sm_{architecture}.{suffix}"
        program = self.compiled(code, name, [f"-arch={arch}_{architecture}", *option])
        data = b" " * checked(getattr(nvrtc, f"nvrtcGet{get}Size")(program))
        checked(getattr(nvrtc, f"nvrtcGet{get}")(program, data))
        (self.folder / name).write_bytes(data.rstrip(b"\0") if kind == "PTX" else data)
        return {"name": name, "kind": kind, "architecture": architecture}

    def compiled(self, code, what, options, expressions=()):
        """Return NVRTC's program. Raises `RuntimeError` with the compiler's errors if *what* cannot be compiled."""
        program = checked(nvrtc.nvrtcCreateProgram(code.encode(), b"all_sources.cu", 0, [], []))
        for expression in expressions:
            checked(nvrtc.nvrtcAddNameExpression(program, expression))
        options = [*options, "-rdc=true", "-std=c++17", *(f"-I{folder}" for folder in self.include_paths)]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [each.encode() for each in options])
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(program))
            checked(nvrtc.nvrtcGetProgramLog(program, log))
            text = re.sub(rf"\b{self.prefix}({'|'.join(self.names)})\b", r"\1", log.decode().rstrip("\0\n "))
            raise RuntimeError(f"{what} cannot be built:\n{text}{remedy(text, self.include_paths)}")
        return program

    def layouts(self, code, structs, architecture):
        """Return the fields of a NumPy dtype for each of the `described` structs, as the compiler lays them out."""
        code, expressions = code + LAYOUT, []
        for number, (cxx, members) in enumerate(structs.values()):
            code += f"using layout_{number} = {cxx};\n"
            numbers = [f"sizeof(layout_{number})"]
            for name, _, dimensions in members:
                member = f"((layout_{number}*)0)->{name}"
                numbers.append(f"__INTADDR__(&{member})")
                numbers += [f"sizeof({member}{'[0]' * index})" for index in range(dimensions + 1)]
            expressions.append(f"&layout_tell<{', '.join(numbers)}>".encode())
        program = self.compiled(code, "the layout of structs", [f"-arch=compute_{architecture}"], expressions)
        layouts = {}
        for (struct, (_, members)), expression in zip(structs.items(), expressions, strict=True):
            lowered = checked(nvrtc.nvrtcGetLoweredName(program, expression)).decode()
            itemsize, *rest = map(int, re.findall(r"Ly(\d+)E", lowered))
            names, formats, offsets = [], [], []
            for name, element, dimensions in members:
                offset, *sizes = [rest.pop(0) for _ in range(dimensions + 2)]
                names.append(name)
                formats.append([element, [whole // part for whole, part in itertools.pairwise(sizes)]])
                offsets.append(offset)
            layouts[struct] = {"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize}
        return layouts


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
    """Return what to do about the errors in NVRTC's *log*, as far as that is known."""
    if 'has "C" linkage' in log:
        return "\nwhat to do: give each overload a name of its own: a kernel calls a function by its C name"
    if re.search("already been defined|redefinition", log):
        return "\nwhat to do: define it once, in a header that several .cu files include: they are compiled as one"
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


def marked(files):
    """Return the text of the files, each with its name before it."""
    return "\n".join(f'#line 1 "{file.name}"\n{file.read_text()}' for file in files)


def without_comments(code):
    """Return the *code* without comments, with the same lines."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda comment: " " + "\n" * comment[0].count("\n"), code, flags=re.DOTALL)


def place(code, position):
    """Return the file and the line of a *position* in the code of all files."""
    file, _, before = code[:position].rpartition('#line 1 "')[2].partition('"\n')
    return f"{file}:{1 + before.count(chr(10))}"


def found(code, name):
    """Return where the function *name* is in the code, before a message; empty if its name is not in it."""
    match = re.search(rf"\b{name}\s*\(", code)
    return f"{place(code, match.start())}: " if match else ""


def declared(code, symbols, prefix):
    """Return the symbol, the result and the parameter types of the functions in the compiled code, whose names there
    are *symbols*, as the source *code* declares them."""
    declarations: dict[str, re.Match[str]] = {}
    for match in FUNCTION.finditer(code):
        first = declarations.setdefault(match[2], match)
        if first is not match:
            raise RuntimeError(
                f"{place(code, match.start(2))}: {match[2]} is defined again, after {place(code, first.start(2))}: "
                "give each a name of its own; what is between #if and #endif is read, whether it is compiled or not"
            )
    functions = {}
    for symbol in symbols:
        if symbol.startswith("_Z"):
            name = cxx_name(symbol)
            where = found(code, name.rpartition(":")[2])
            raise RuntimeError(
                f'{where}{name} is not extern "C", so kernels cannot call it: declare it extern "C"; or '
                "inline, if only the package's own code calls it"
            )
        name = symbol.removeprefix(prefix)
        if name.startswith("_"):
            continue
        if symbol == name or name not in declarations:
            raise RuntimeError(
                f'{found(code, name)}the declaration of {name} cannot be read: write extern "C" __device__ TYPE '
                f'{name}(TYPE NAME, ...) {{ without macros, and not in a block extern "C" {{ }}'
            )
        declaration = declarations.pop(name)
        where = f"{place(code, declaration.start(2))}: {name}"
        if keyword.iskeyword(name):
            raise RuntimeError(f"{where} is a word of Python, so kernels cannot call it by its name: rename it")
        returns, listed = declaration[1], declaration[3]
        parameters: dict[str, str] = {}
        for parameter in [] if listed.strip() in ("", "void") else listed.split(","):
            what = f"{where}: the parameter {parameter.strip()!r}"
            if "=" in parameter:
                raise RuntimeError(f"{what} has a default, but kernels pass all arguments: leave the default out")
            as_pointer = re.sub(r"(\w+)\s*\[[^][]*\]$", r"* \1", parameter.strip())  # an array is one in C++, too
            cxx, label = type_and_name(as_pointer)
            label = label or f"arg{len(parameters) + 1}"
            while keyword.iskeyword(label) or label in parameters:
                label += "_"
            parameters[label] = plain(cxx, what, pointers=True)
        functions[name] = {
            "symbol": symbol,
            "returns": plain(returns, f"{where}: its result"),
            "parameters": parameters,
        }
    for name, declaration in declarations.items():
        where = f"{place(code, declaration.start(2))}: {name}"
        if "inline" in declaration[1]:
            raise RuntimeError(f"{where} is inline, so the compiler leaves it out: declare it without inline")
        if not name.startswith("_") and "__global__" not in declaration[1]:
            raise RuntimeError(
                f"{where} is not in the code that is compiled for the oldest architecture: write it without static, "
                "and not between #if and #endif"
            )
    if not functions:
        raise RuntimeError(
            'no .cu file of the package defines an extern "C" __device__ function, which kernels can call'
        )
    return functions


def described(functions, code):
    """Return the structs that parameters of the *functions* point to, and those in them, by their names: what C++ calls
    each, and its members. They are read in the *code*, which has no comments."""
    structs: dict[str, tuple[str, list[tuple[str, str, int]]]] = {}

    def describe(name, cxx):
        members = []
        for member, element, dimensions in members_of(name, code):
            if element not in NUMBERS:
                inner = f"layout_element<decltype({cxx}::{member})>::type"
                element = describe(element.rpartition(":")[2], inner)
            else:
                element = "u1" if element == "bool" and dimensions else NUMBERS[element]  # Numba has no arrays of bool
            members.append((member, element, dimensions))
        if name in functions or keyword.iskeyword(name):
            raise RuntimeError(f"the struct {name} has the name of a function or a word of Python: rename it")
        structs.setdefault(name, (cxx, members))
        return name

    for function in functions.values():
        for parameter in function["parameters"].values():
            pointee = parameter.removeprefix("const ").removesuffix("*")
            if parameter.endswith("*") and pointee not in {*NUMBERS, "void"}:
                describe(pointee.rpartition(":")[2], pointee)
    return structs


def members_of(struct, code):
    """Return the members of a *struct*: the name of each, its type or that of its elements, and its dimensions."""
    if vector := re.fullmatch(r"(\w+?)([1-4])", struct):  # of CUDA
        cxx = OTHER_NAMES.get(vector[1], vector[1])
        if cxx in NUMBERS:
            return [(name, cxx, 0) for name in "xyzw"[: int(vector[2])]]
    starts = [each.end() for each in re.finditer(rf"\b(?:struct|class)\b[\w\s()]*\b{struct}\s*\{{", code)]
    where = "".join(f"{place(code, start)}: " for start in starts[-1:])
    cannot = RuntimeError(
        f"{where}the members of the struct {struct} cannot be read: write struct {struct} {{ TYPE NAME; ... }}; once, "
        "in a .cu file or a header of the package, with numbers, pointers, arrays and such structs; or let functions "
        "take void*"
    )
    if len(starts) != 1:
        raise cannot
    body = body_at(code, starts[0])
    for pair in r"\([^()]+\)", r"\{[^{}]*\}":
        while re.search(pair, body):
            body = re.sub(pair, "()" if "(" in pair[:3] else ";", body)
    members = []
    for line in body.split(";"):
        line = re.sub(r"^\s*(public|private|protected)\s*:|=[^,]*", "", line)
        if not line.strip() or "(" in line or re.search(r"\b(operator|static|using|typedef|friend)\b", line):
            continue
        kind = ""
        for declarator in line.split(","):
            match = re.fullmatch(r"(.*?)(\w+)((?:\s*\[[^][]*\])*)\s*", declarator.strip(), re.DOTALL)
            if match is None:
                raise cannot
            words = words_of(f"{kind} {match[1]}")
            kind = kind or " ".join(words).replace("*", "")
            name = "unsigned long long" if "*" in words else joined(words)
            if not re.fullmatch(r"[\w:]+( \w+)*", name):
                raise cannot
            members.append((match[2], OTHER_NAMES.get(name, name), match[3].count("[")))
    if not members:
        raise cannot
    return members


def body_at(code, start):
    """Return the *code* from *start* to the brace that ends it."""
    depth = 1
    for brace in re.finditer("[{}]", code[start:]):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return code[start : start + brace.start()]
    return ""


def type_and_name(parameter):
    """Return the C++ type and the name of a *parameter*; an empty name for ``const float*`` or ``unsigned int``."""
    before, name = re.findall(r"^(.*?)(\w*)$", parameter, re.DOTALL)[0]
    return (before, name) if name not in TYPE_WORDS and {*words_of(before)} - {"*"} else (parameter, "")


def words_of(cxx):
    """Return the words and signs of a C++ type, without qualifiers."""
    words = re.findall(r"\w+|\S", re.sub(r"\b(cuda::)?std::", "", cxx))
    return [word for word in words if word not in NOT_THE_TYPE]


def joined(words):
    """Return the name of a type: ``long long`` or ``ours::Box``."""
    return re.sub(r" ?: ?: ?", "::", " ".join(words))


def stub_of(functions, structs):
    """Return the text of the package's stub, in which editors and type checkers find the functions and the dtypes."""
    lines = ["from typing import Any as _Any", f"__all__ = {sorted([*functions, *structs])}"]
    if structs:
        lines += ["from numpy import dtype as _dtype", *(f"{name}: _dtype[_Any]" for name in structs)]
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
    """Return the plain name of a C++ type: ``int`` for ``const std::int32_t``, ``const int*`` for ``int const*``."""
    words = words_of(cxx)
    name = joined(word for word in words if word != "*")
    name, stars = OTHER_NAMES.get(name, name), words.count("*")
    is_number = stars == 0 and (name in NUMBERS or (name == "void" and not pointers))
    if not (is_number or (stars == 1 and pointers and re.fullmatch(r"[\w:]+( \w+)*", name))):
        expected = "a number or a pointer and a name" if pointers else "a number or void"
        raise RuntimeError(
            f"{what} has the type {' '.join(words)!r}, expected {expected}: a number is float, double, __half, bool, "
            "float2, double2 or an integer of 8 to 64 bits such as long long, without macros and aliases"
        )
    is_const = stars and re.search(r"\bconst\b", cxx.partition("*")[0])
    return ("const " if is_const else "") + name + "*" * stars


def build_requirement(*names):
    """Return the paths of the files with these names in the CUDA packages that the build requires."""
    return [path for folder in sys.path for name in names for path in Path(folder).glob(f"nvidia/*/{name}")]


def checked(answer):
    """Return the results of an NVRTC function. Raises `RuntimeError` if it failed."""
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {status.name}")
    return values[0] if len(values) == 1 else tuple(values)
