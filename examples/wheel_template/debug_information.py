# SPDX-License-Identifier: BSD-2-Clause
"""Read from the debug information of compiled code (DWARF) what its functions and their structs are in C++."""

import io
import keyword
import re

from elftools.elf.elffile import ELFFile

# Numbers are named by their formats in NumPy. They have these types in Python.
NUMBERS = {"?": "bool", "f2": "float", "f4": "float", "f8": "float", "c8": "complex", "c16": "complex"}
NUMBERS.update({letter + size: "int" for letter in "iu" for size in "1248"})
STRUCTS_AS_NUMBERS = {"__half": "f2", "float2": "c8", "double2": "c16"}
LETTERS = {2: "?", 4: "f", 5: "i", 6: "i", 7: "u", 8: "u"}  # for the encodings of DWARF
DERIVED = {"const_type": "const {}", "volatile_type": "volatile {}", "pointer_type": "{}*", "reference_type": "{}&"}


class Description:
    """What the debug information of a *cubin* says about these functions, and about the structs that they take."""

    def __init__(self, cubin, symbols):
        self.functions, self.structs, self.incomplete = {}, {}, {}
        self.symbols, self.offsets = symbols, {}
        dwarf = ELFFile(io.BytesIO(cubin)).get_dwarf_info(relocate_dwarf_sections=False)
        (unit,) = dwarf.iter_CUs()
        self.files = [file.name.decode() for file in dwarf.line_program_for_CU(unit).header.file_entry]
        entries = {value(each, "MIPS_linkage_name"): each for each in children(unit.get_top_DIE(), "subprogram")}
        for symbol in sorted(symbols):
            self.functions[symbol] = self.function(symbol, entries[symbol])

    def function(self, symbol, entry):
        """Return the declaration of a function, and the formats of its result and of its parameters."""
        name, place = value(entry, "name"), self.place(entry)
        if symbol != name:
            raise RuntimeError(
                f'{place}: {name} is not extern "C", so kernels cannot call it: declare it extern "C"; or inline, if '
                "only the package's own code calls it"
            )
        if keyword.iskeyword(name):
            raise RuntimeError(f"{place}: {name} is a word of Python, so kernels cannot call it by its name: rename it")
        returns = self.format(type_of(entry), place)
        if returns not in {"void", *NUMBERS}:
            raise RuntimeError(f"{place}: {name} returns {cxx(type_of(entry))}, expected a number or void")
        if children(entry, "unspecified_parameters"):
            raise RuntimeError(f"{place}: {name} takes any number of arguments, which kernels cannot pass")
        parameters, declared = {}, []
        for position, each in enumerate(children(entry, "formal_parameter"), 1):
            label = value(each, "name", f"arg{position}")
            declared.append(f"{cxx(type_of(each))} {label}")
            while keyword.iskeyword(label) or label in parameters:
                label += "_"
            parameters[label] = self.format(type_of(each), place)
            if not re.fullmatch(r"[^*]+\*", parameters[label]) and parameters[label] not in NUMBERS:
                raise RuntimeError(
                    f"{place}: the parameter {declared[-1]!r} of {name} is neither a number nor a pointer to numbers, "
                    "to a struct or to void"
                )
        declaration = f"{cxx(type_of(entry))} {name}({', '.join(declared)})"
        return {"declaration": declaration, "returns": returns, "parameters": parameters}

    def format(self, entry, place, *names):
        """Return the format of a type: ``f8``, ``const f8*``, ``void``, or the name of a struct; empty for others. The
        *names* are for a struct that has none."""
        behind, aliases, _ = peeled(entry)
        if behind.tag == "DW_TAG_pointer_type":
            pointee = self.format(type_of(behind), place)
            return pointee and f"{'const ' * peeled(type_of(behind))[2]}{pointee}*"
        if behind.tag == "DW_TAG_structure_type" and not number(behind):
            return self.struct(behind, [*aliases, *names], place)
        return "void" if behind.tag == "DW_TAG_unspecified_type" else number(behind)

    def struct(self, entry, aliases, place):
        """Describe a struct, and return its name in Python: the last part of its own name, or else an alias."""
        names = [name for name in [cxx(entry), *aliases] if name.rpartition("::")[2].isidentifier()]
        if not names:
            raise RuntimeError(f"{place}: {cxx(entry)} has no name that Python can use: give it one, using NAME = ...")
        name = names[0].rpartition("::")[2]
        if name in self.symbols or self.offsets.setdefault(name, entry.offset) != entry.offset:
            raise RuntimeError(f"{place}: the name of {cxx(entry)} is that of another struct or a function: rename it")
        if not value(entry, "byte_size"):
            self.incomplete[names[0]] = place.rsplit(":", 1)
        elif name not in self.structs:  # a struct within it comes first
            fields = [(*self.field(member, entry, name), offset) for member, offset in members(entry)]
            labels, formats, offsets = zip(*fields, strict=True) if fields else ((), (), ())
            if not labels or len({*labels}) < len(labels):
                problem = "two members of one name" if labels else "no members"
                raise RuntimeError(f"{place}: {cxx(entry)} has {problem}: let the functions take void*")
            layout = {"names": labels, "formats": formats, "offsets": offsets, "itemsize": value(entry, "byte_size")}
            self.structs[name] = layout
        return name

    def field(self, member, struct, name_of_struct):
        """Return the name of a member, and its format with the shape of an array."""
        place, name = self.place(member) or self.place(struct), value(member, "name", "")
        entry, shape = type_of(member), []
        while (behind := peeled(entry)[0]).tag == "DW_TAG_array_type":
            shape += [value(each, "count", 0) for each in children(behind, "subrange_type")]
            entry = type_of(behind)
        element = "u8" if behind.tag == "DW_TAG_pointer_type" else self.format(entry, place, f"{name_of_struct}_{name}")
        if not element or value(member, "bit_size") or name in {"", "__vptr"} or 0 in shape:
            raise RuntimeError(
                f"{place}: the member {name or 'without a name'} of {cxx(struct)} is not a number, a pointer, a "
                "struct or an array of these: let the functions take void*"
            )
        return name, ["u1" if element == "?" and shape else element, shape]  # Numba has no arrays of bool

    def place(self, entry):
        """Return the file and the line of what is not CUDA's own."""
        number = value(entry, "decl_file")
        return number and f"{self.files[number - 1]}:{value(entry, 'decl_line')}"


def value(entry, name, default=None):
    """Return the value of an attribute of an entry of the debug information."""
    found = entry.attributes[f"DW_AT_{name}"].value if f"DW_AT_{name}" in entry.attributes else default
    return found.decode() if isinstance(found, bytes) else found


def children(entry, tag):
    return [child for child in entry.iter_children() if child.tag == f"DW_TAG_{tag}"]


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
    if not name:
        return DERIVED.get(entry.tag.removeprefix("DW_TAG_"), "{} (...)").format(cxx(type_of(entry)))
    parts, rest = [], re.sub("^_ZN?", "", name)
    while name.startswith("_Z") and (length := re.match(r"\d+", rest)):
        end = length.end() + int(length[0])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    if not parts:
        return "long double" if (name, value(entry, "byte_size")) == ("double", 16) else name
    more = {"": "", "E": "", "I": "<...>"}.get(rest[:1], "::(without a name)")
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N_")) + more  # that of no name
