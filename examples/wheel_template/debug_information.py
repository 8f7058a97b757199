# SPDX-License-Identifier: BSD-2-Clause
"""Read from the debug information of compiled code (DWARF) what its functions and their structs are in C++."""

import ctypes
import io
import keyword
import linecache
import re
from pathlib import Path

from elftools.elf.elffile import ELFFile

# Numbers are named by their formats in NumPy. They have these types in Python.
NUMBERS = {"?": "bool", "f2": "float", "f4": "float", "f8": "float", "c8": "complex", "c16": "complex"}
NUMBERS.update({letter + size: "int" for letter in "iu" for size in "1248"})
STRUCTS_AS_NUMBERS = {"__half": "f2", "float2": "c8", "double2": "c16"}
COMPLEX = {"complex<float>": "c8", "complex<double>": "c16"}  # of cuda::std: passed as float2 and double2 are
FLOATING = 4
CONSTANT_MEMORY = 4  # the address class of a variable, and an attribute of its symbol
LETTERS = {2: "?", 4: "f", 5: "i", 6: "i", 7: "u", 8: "u"}  # for the encodings of DWARF
REFERENCES = {"DW_TAG_reference_type", "DW_TAG_rvalue_reference_type"}
POINTERS = {"DW_TAG_pointer_type", *REFERENCES}
DERIVED = {"const_type": "const {}", "volatile_type": "volatile {}", "pointer_type": "{}*", "reference_type": "{}&"}
DERIVED["rvalue_reference_type"] = "{}&&"
NAMELESS = "a type without a name"
DEMANGLE = ctypes.CDLL("libstdc++.so.6").__cxa_demangle  # CUDA's Python packages need it, too
DEMANGLE.restype, DEMANGLE.argtypes = ctypes.c_void_p, [ctypes.c_char_p, *[ctypes.c_void_p] * 3]
FREE = ctypes.CDLL(None).free
FREE.restype, FREE.argtypes = None, [ctypes.c_void_p]
OTHER_NAMES = {("double", 16): "long double", ("**128-BIT SIGNED INTEGER**", 16): "__int128"}
OTHER_NAMES["**128-BIT UNSIGNED INTEGER**", 16] = "unsigned __int128"


class Description:
    """What the debug information of a *cubin* says about the functions in it that kernels call, about the structs that
    they take, and about the variables that it declares ``extern``, which the host sets. *Symbols* are all names that it
    defines for others, *undefined* those that it uses; ``defined_variables`` are among the first.

    The ``problems`` are texts: what kernels cannot call or pass, where it is, and what to do.
    """

    def __init__(self, cubin, symbols, undefined, root, package):
        self.functions: dict[str, dict] = {}
        self.variables: dict[str, dict] = {}
        self.structs, self.incomplete, self.problems = {}, {}, []
        self.root, self.offsets, self.overloaded = root, {}, set()
        dwarf = ELFFile(io.BytesIO(cubin)).get_dwarf_info(relocate_dwarf_sections=False)
        (unit,) = dwarf.iter_CUs()
        header = dwarf.line_program_for_CU(unit).header
        folders = [b"", *header.include_directory]
        self.files = [Path(folders[each.dir_index].decode(), each.name.decode()) for each in header.file_entry]
        functions = by_symbol(unit.get_top_DIE(), "subprogram")
        variables = by_symbol(unit.get_top_DIE(), "variable")
        self.defined_variables = symbols & {*variables}
        names = {symbol: name_in_python(symbol, package) for symbol in sorted(symbols)}
        self.names = {name for symbol, name in names.items() if symbol in functions}
        of_the_host = {symbol: name_in_python(symbol, package) for symbol in sorted(undefined & {*variables})}
        self.names |= {*of_the_host.values()}
        for symbol, name in names.items():
            entry = functions.get(symbol, variables.get(symbol))
            if name is None:
                is_c = symbol in functions and not symbol.startswith("_Z")
                todo = f"put it into namespace {package}{', without the mark' * is_c}"
                todo += "; or into a namespace without a name, if only the package's own code uses it"
                why = 'is extern "C"' if is_c else f"is not in namespace {package}"
                problem = f"{readable(symbol)} {why}, so other packages could have the same name"
                self.problem(self.place(entry), problem, todo)
            elif name in self.functions:
                self.overloaded.add(name)
                self.problem(self.place(entry), f"there are two functions {name}", "kernels call one: rename the other")
            elif name and symbol in functions:
                self.functions[name] = {"symbol": symbol, **self.function(name, entry)}
        for symbol, name in of_the_host.items():
            if name:
                self.variables[name] = {"symbol": symbol, **self.variable(name, variables[symbol])}

    def variable(self, name, entry):
        """Return the declaration of a variable, the format of its elements, its shape and its memory."""
        place, (element, shape) = self.place(entry), array_of(type_of(entry))
        if keyword.iskeyword(name):
            self.problem(place, f"{name} is a word of Python, so the host cannot set the variable", "rename it")
        space = "constant" if value(entry, "address_class") == CONSTANT_MEMORY else "device"
        declaration = f"__{space}__ {cxx(element)} {name}{''.join(f'[{each}]' for each in shape)}"
        format = self.in_memory(element, shape, place, name)
        if not format or 0 in shape:
            todo = (
                "let it be a number or a struct, or an array of them of fixed size; or pass an array to the functions"
            )
            self.problem(place, f"the host cannot set {declaration}, which no dtype describes", todo)
        return {"declaration": declaration, "format": format, "shape": shape, "space": space}

    def function(self, name, entry):
        """Return the declaration of a function, the comment above it, and the formats of its result and parameters."""
        place, returns = self.place(entry), type_of(entry)
        if keyword.iskeyword(name):
            self.problem(place, f"{name} is a word of Python, so kernels cannot call the function", "rename it")
        if (returned := self.format(returns, place)) not in {"void", *NUMBERS}:
            todo = f"return void, and write it to a parameter, {cxx(returns)}* result"
            if value(peeled(returns)[0], "encoding") == FLOATING:
                todo = "return double"
            elif peeled(returns)[0].tag in POINTERS:
                todo = "return an index, or write to memory that the kernel passes"
            self.problem(place, f"{name} returns {cxx(returns)}, expected a number or void", todo)
        if children(entry, "unspecified_parameters"):
            todo = "give it a fixed number of parameters"
            self.problem(place, f"{name} takes any number of arguments, which kernels cannot pass", todo)
        parameters, declared = {}, []
        for position, each in enumerate(children(entry, "formal_parameter"), 1):
            label = value(each, "name", f"arg{position}")
            declared.append(f"{cxx(type_of(each))} {label}")
            while keyword.iskeyword(label) or label in parameters:
                label += "_"
            parameters[label] = self.format(type_of(each), place)
            if not re.fullmatch(r"[^*]+\*", parameters[label]) and parameters[label] not in NUMBERS:
                problem = f"{name} takes {declared[-1]!r}, expected a number or a pointer to numbers, a struct or void"
                self.problem(place, problem, self.instead_of_constant(type_of(each)) or instead_of(type_of(each)))
        return {
            "declaration": f"{cxx(returns)} {name}({', '.join(declared)})",
            "comment": comment_above(*place),
            "returns": returned,
            "parameters": parameters,
        }

    def instead_of_constant(self, entry):
        """Return what a function can take in place of a reference to a constant number; empty for other types."""
        behind = peeled(entry)[0]
        target, _, is_const = peeled(type_of(behind)) if behind.tag in REFERENCES else (behind, [], False)
        return f"take {cxx(target)}" if is_const and (number(target) or self.complex(target)) else ""

    def format(self, entry, place, *names):
        """Return the format of a type: ``f8``, ``const f8*``, ``void``, or the name of a struct; empty for others. The
        *names* are for a struct that has none."""
        behind, aliases, _ = peeled(entry)
        if behind.tag == "DW_TAG_pointer_type":
            pointee = self.format(type_of(behind), place)
            return pointee and f"{'const ' * peeled(type_of(behind))[2]}{pointee}*"
        has_name = value(behind, "name") or aliases or names  # a pointer to a member function has none
        found = number(behind) or self.complex(behind)
        if behind.tag == "DW_TAG_structure_type" and has_name and not found:
            return self.struct(behind, [*aliases, *names], place)
        return "void" if behind.tag == "DW_TAG_unspecified_type" else found

    def complex(self, entry):
        """Return the format of a ``complex`` of ``cuda::std``; empty for other types, also for others of that name."""
        path, _ = self.place(entry) or (Path(), 0)
        return COMPLEX.get(cxx(entry).rpartition("::")[2], "") if "cuda/std" in path.parent.as_posix() else ""

    def struct(self, entry, aliases, place):
        """Describe a struct, and return its name in Python: the last part of its own name, or else an alias."""
        names = [name for name in [cxx(entry), *aliases] if name.rpartition("::")[2].isidentifier()]
        if not names:
            self.problem(place, f"{cxx(entry)} has no name that Python can use", "give it one: using NAME = ...")
            return cxx(entry)
        name = names[0].rpartition("::")[2]
        if name in self.names or self.offsets.setdefault(name, entry.offset) != entry.offset:
            problem = f"the name of {cxx(entry)} is that of another struct or a function"
            self.problem(place, problem, "rename one of them: both would be one name in Python")
        elif name not in self.structs:  # a struct within it comes first
            fields = [(*self.field(member, entry, name, place), offset) for member, offset in members(entry)]
            if not fields:
                self.incomplete[names[0]] = place
                return name
            labels, formats, offsets = zip(*fields, strict=True)
            if len({*labels}) < len(labels):
                self.no_dtype(self.place(entry) or place, f"{cxx(entry)} has two members of one name", entry)
            layout = {"names": labels, "formats": formats, "offsets": offsets, "itemsize": value(entry, "byte_size")}
            self.structs[name] = layout
        return name

    def field(self, member, struct, name_of_struct, place):
        """Return the name of a member, and its format with the shape of an array."""
        place, name = self.place(member) or self.place(struct) or place, value(member, "name", "")
        entry, shape = array_of(type_of(member))
        behind = peeled(entry)[0]
        is_union, is_bits = behind.tag == "DW_TAG_union_type", value(member, "bit_size")
        if name == "__vptr":
            self.no_dtype(place, f"{cxx(struct)} has virtual functions or bases", struct, "; construct it there first")
            return name, ["u8", []]
        element = self.in_memory(entry, shape, place, f"{name_of_struct}_{name}")
        if not element or is_bits or not name or 0 in shape:
            kind = "a bit-field" if is_bits else "a union" if is_union else cxx(type_of(member))
            self.no_dtype(place, f"the member {name or 'without a name'} of {cxx(struct)} is {kind}", struct)
        return name, [element, shape]

    def in_memory(self, entry, shape, place, name):
        """Return the format of a type in memory, as elements of an array with this *shape*. A struct without a name is
        called *name*."""
        element = "u8" if peeled(entry)[0].tag == "DW_TAG_pointer_type" else self.format(entry, place, name)
        return "u1" if element == "?" and shape else element  # Numba has no arrays of bool

    def no_dtype(self, place, problem, struct, more=""):
        name, size = cxx(struct), value(struct, "byte_size")
        todo = (
            f"let the functions take void*, and cast it to {name}*: kernels pass any array with {size} bytes for "
            f"each{more}"
        )
        self.problem(place, f"{problem}, which no dtype describes", todo)

    def problem(self, place, what, todo):
        path, line = place
        shown = path.relative_to(self.root) if path.is_relative_to(self.root) else path
        source = linecache.getline(str(path), line).strip()
        text = f"{what}\n  at: {shown}:{line}\n      {source}\n  what to do: {todo}"
        if text not in self.problems:
            self.problems.append(text)

    def place(self, entry):
        """Return the file and the line of what is not CUDA's own."""
        number = value(entry, "decl_file")
        return number and (self.files[number - 1], value(entry, "decl_line"))


def value(entry, name, default=None):
    """Return the value of an attribute of an entry of the debug information."""
    found = entry.attributes[f"DW_AT_{name}"].value if f"DW_AT_{name}" in entry.attributes else default
    return found.decode() if isinstance(found, bytes) else found


def children(entry, tag):
    return [child for child in entry.iter_children() if child.tag == f"DW_TAG_{tag}"]


def by_symbol(entry, tag):
    return {value(child, "MIPS_linkage_name"): child for child in children(entry, tag)}


def type_of(entry):
    return entry.get_DIE_from_attribute("DW_AT_type")


def peeled(entry):
    """Return the type behind aliases and qualifiers, the aliases' names, and whether it is constant."""
    aliases, is_const = [], False
    while entry.tag in {"DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type"}:
        aliases += [cxx(entry)] if entry.tag == "DW_TAG_typedef" else []
        is_const |= entry.tag == "DW_TAG_const_type"
        entry = type_of(entry)
    return entry, aliases, is_const


def array_of(entry):
    """Return the type of an array's elements, and its shape; of another type, itself and an empty one."""
    shape = []
    while (behind := peeled(entry)[0]).tag == "DW_TAG_array_type":
        shape += [value(each, "count", 0) for each in children(behind, "subrange_type")]
        entry = type_of(behind)
    return entry, shape


def number(entry):
    """Return the format of the type of a number; empty for others."""
    found, size = STRUCTS_AS_NUMBERS.get(value(entry, "name"), ""), value(entry, "byte_size")
    if entry.tag == "DW_TAG_base_type":
        letter = LETTERS.get(value(entry, "encoding"), "")
        found = letter if letter == "?" else f"{letter}{size}"
    elif entry.tag == "DW_TAG_enumeration_type":
        values = [value(each, "const_value") for each in children(entry, "enumerator")]
        found = f"{'i' if all(each < 1 << 8 * size - 1 for each in values) else 'u'}{size}"
    return found if found in NUMBERS else ""


def instead_of(entry):
    """Return what a function can take in place of a type that no argument has."""
    behind = peeled(entry)[0]
    is_pointer = behind.tag in POINTERS
    target = peeled(type_of(behind))[0] if is_pointer else behind
    if target.tag == "DW_TAG_subroutine_type" or cxx(entry) == NAMELESS:
        return "take a number that selects the function: kernels have no pointers to functions of C++"
    if value(target, "encoding") == FLOATING and not number(target):
        return f"take double{'*' * is_pointer}"
    if behind.tag == "DW_TAG_structure_type":
        return f"take const {cxx(entry)}*"
    if behind.tag in REFERENCES:
        return f"take {cxx(type_of(behind))}*"
    if behind.tag == "DW_TAG_base_type":
        return "take two numbers of 64 bits"
    return "take void*, and cast it in the function"


def members(entry, at=0):
    """Yield the members of a struct and of its bases, with their offsets."""
    for member in children(entry, "inheritance") + children(entry, "member"):
        encoded = value(member, "data_member_location")[1:]  # in groups of seven bits
        offset = at + sum((byte & 127) << 7 * index for index, byte in enumerate(encoded))
        if member.tag == "DW_TAG_inheritance" or value(member, "name", "").startswith("__b_"):
            yield from members(peeled(type_of(member))[0], offset)
        else:
            yield member, offset


def cxx(entry):
    """Return the C++ name of a type: ``ours::Box`` for ``_ZN4ours3BoxE``."""
    name = value(entry, "name")
    if not name and "DW_AT_type" not in entry.attributes:
        return NAMELESS
    if not name:
        return DERIVED.get(entry.tag.removeprefix("DW_TAG_"), "{} (...)").format(cxx(type_of(entry)))
    return OTHER_NAMES.get((name, value(entry, "byte_size")), readable(name))


def name_in_python(symbol, package):
    """Return what kernels call a symbol by, ``f`` for *package*``::f``; empty for what is the package's own code's;
    ``None`` for what other packages could have, too."""
    parts, rest = parts_of(symbol)
    if not parts:
        return "" if symbol.startswith(f"{package}_") else None
    if parts[0] != package or not symbol.startswith("_ZN"):
        return None
    is_own = len(parts) > 2 or not rest.startswith("E") or parts[1].startswith("_")
    return "" if is_own else parts[1]


def parts_of(name):
    """Return the parts of a mangled name, ``["ours", "Box"]`` for ``_ZN4ours3BoxE``, and what follows them in it. What
    marks a member function, as const and &, is before them."""
    parts, rest = [], re.sub("^_Z(N[rVK]*[RO]?)?", "", name)
    while name.startswith("_Z") and (length := re.match(r"\d+", rest)):
        end = length.end() + int(length[0])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    return parts, rest


def readable(name):
    """Return a mangled name as C++ spells it, without namespaces that no one writes; others unchanged."""
    found = DEMANGLE(name.encode(), None, None, None) if name.startswith("_Z") else None
    if not found:
        return name
    text = ctypes.string_at(found).decode()
    FREE(found)
    return re.sub(r"\(anonymous namespace\)::|\b_INTERNAL_\w+?::|(?<=cuda::std::)__\d+::", "", text)


def comment_above(path, line):
    """Return the text of the comment directly above a line of a file: of lines ``//``, or of one ``/* */``."""
    above = linecache.getlines(str(path))[: line - 1]
    found: list[str] = []
    is_block = bool(above) and above[-1].rstrip().endswith("*/")
    while above and (is_block or above[-1].lstrip().startswith("//")):
        found.insert(0, above.pop().strip())
        if is_block and "/*" in found[0]:
            break
    if is_block and not found[0].startswith("/*"):
        return ""  # it begins behind code
    text = [re.sub(r"^(//[/!]*|/\*[*!]*|\*(?!/)) ?", "", each).removesuffix("*/").rstrip() for each in found]
    return "\n".join(text).strip()
