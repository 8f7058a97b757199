# SPDX-License-Identifier: BSD-2-Clause
"""Random calls of C++: functions as text for NVRTC and for a compiler of the host, and the calls in Python and in C++.

Each function folds its arguments into a number, of which it makes its result and what it writes to references and
pointers. The numbers agree only if every member of every argument arrived with its value and its type.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

MOST_LEAVES = 20  # numbers in a result, each of which is statements of the kernel
LENGTH = 256  # of the arrays that a kernel gets, one of each dtype
# What C++ calls the elements of arrays of these dtypes.
ELEMENTS = {
    "b1": "bool", "i1": "signed char", "u1": "unsigned char", "i2": "short", "u2": "unsigned short", "i4": "int",
    "u4": "unsigned int", "i8": "long long", "u8": "unsigned long long", "f4": "float", "f8": "double", "f2": "__half",
    "c8": "S::complex<float>", "c16": "S::complex<double>",
}  # fmt: skip
_OF_STD = ("f2", "c8", "c16")
# Types of parameters, members and results, with the dtype that has their values.
SCALARS = {
    **{cxx: dtype for dtype, cxx in ELEMENTS.items() if dtype not in _OF_STD},
    "char": "i1", "long": "i8", "unsigned long": "u8", "wchar_t": "i4", "char16_t": "u2", "char32_t": "u4",
}  # fmt: skip
_INTEGERS = [cxx for cxx, dtype in SCALARS.items() if dtype[0] in "iu"]
_CODES = "\n".join(f"template <> struct code<{cxx}> {{ enum {{ is = {n} }}; }};" for n, cxx in enumerate(SCALARS))
PRELUDE = Path(__file__).with_suffix(".hpp").read_text().replace("CODES", _CODES)


@dataclass(frozen=True)
class Member:
    """A member of a struct: an array if it has a *shape*, a bit-field if it has *bits*."""

    name: str
    type: Type
    shape: tuple[int, ...] = ()
    bits: int = 0

    def declare(self, name: str = "") -> str:
        return f"{self.type.cxx} {name or self.name}{''.join(f'[{n}]' for n in self.shape)}"

    def do(self, function: str, assigned: bool = True) -> str:
        """Return C++ that passes a copy of the member, since not all members can be referred to, and assigns it if it
        is to be *assigned*."""
        if self.bits:
            taken, given = f"t = v.{self.name};", f"v.{self.name} = t;"
        else:
            copy = "copy_bytes(&{}, &{}, sizeof t);".format
            taken, given = copy("t", f"v.{self.name}"), copy(f"v.{self.name}", "t")
        return f"{{ {self.declare('t')}; {taken} {function} {given * assigned} }}"


@dataclass(frozen=True)
class Type:
    """A C++ type: a scalar, an enumeration or a number of 16 bits with a *dtype*; a complex number, whose dtype is that
    of its parts; a struct with *members*; or a tuple with *elements*."""

    cxx: str
    kind: str
    dtype: str = ""
    members: tuple[Member, ...] = ()
    elements: tuple[Type, ...] = ()
    before: str = ""  # what stands between "struct" and the name

    @property
    def parts(self) -> Iterator[Type]:
        """The type, and all types in it."""
        for each in (*self.elements, *(member.type for member in self.members)):
            yield from each.parts
        yield self

    @property
    def is_record(self) -> bool:
        """Whether Python is told of the struct."""
        return self.kind == "struct" and self.cxx[0] == "T"

    @property
    def has_bits(self) -> bool:
        return any(member.bits for each in self.parts for member in each.members)

    @property
    def align(self) -> int:
        if self.is_packed:
            return 8 if "aligned" in self.before else 1
        inner = [each.align for each in (*self.elements, *(member.type for member in self.members))]
        own = 32 if self.before.startswith("alignas") else np.dtype(self.dtype or "u1").itemsize
        return max(own * (1 + (self.kind == "complex")), *inner, 1)

    @property
    def is_packed(self) -> bool:
        return self.before.startswith("__")

    def list_offsets(self) -> list[int]:
        """Return the offsets of the members of a struct without bit-fields, and last its size."""
        offsets, end = [], 0
        for member in self.members:
            end += -end % (1 if self.is_packed else member.type.align)
            offsets.append(end)
            end += member.type.size * int(np.prod(member.shape))
        return [*offsets, end + -end % self.align]

    @property
    def size(self) -> int:
        return self.list_offsets()[-1] if self.kind == "struct" else self.align

    def list_numbers(self, at: int = 0) -> Iterator[tuple[int, int]]:
        """Yield where each number is, if it is in an object at this place, and its alignment."""
        if self.kind != "struct":
            yield at, self.align
        for member, offset in zip(self.members, self.list_offsets()):  # noqa: B905
            for n in range(int(np.prod(member.shape))):
                yield from member.type.list_numbers(at + offset + n * member.type.size)

    @property
    def is_cut(self) -> bool | None:
        """Whether numbers in it are not aligned, or need not be, so that CUDA's compiler may lose bytes of a result;
        None where that is not said here: of structs with bit-fields that have packed ones in them, and of packed ones
        beside tuples."""
        packed = [each for each in self.parts if each.is_packed]
        if packed and (self.has_bits or any(each.kind == "tuple" for each in self.parts)):
            return None
        is_loose = any(member.type.align > each.align for each in packed for member in each.members)
        return is_loose or (bool(packed) and any(at % align for at, align in self.list_numbers()))

    @property
    def is_lost(self) -> bool:
        """Whether CUDA's compiler may pass it wrongly by value: numbers that are aligned to no more than it are stored
        where they are, aligned or not, and more than 128 bytes are copied as if they were aligned to 4."""
        if not self.is_cut:
            return False
        is_large = self.size > 128 and self.align < 4
        return is_large or any(at % align for at, align in self.list_numbers() if align <= self.align)

    def list_leaves(self, path: str, named: bool = False) -> Iterator[tuple[str, str]]:
        """Yield the Python expression of each number in a value of Python, and its dtype."""
        if self.kind == "complex":
            yield from ((f"{path}.{part}", self.dtype) for part in ("real", "imag"))
        elif self.kind == "tuple":
            for i, each in enumerate(self.elements):
                yield from each.list_leaves(f"{path}[{i}]", named)
        elif self.kind == "struct":
            for i, each in enumerate(self.members):
                place = f"{path}.{each.name}" if named else f"{path}[{i}]"
                for index in np.ndindex(*each.shape):
                    yield from each.type.list_leaves(place + "".join(f"[{n}]" for n in index), named)
        elif self.kind != "void":
            yield path, self.dtype

    def declare(self) -> str:
        """Return C++ that declares a struct or an enumeration."""
        if self.kind == "enum":
            declared = f"{self.before} {self.cxx} : {self.elements[0].cxx} {{ {self.cxx}_0, {self.cxx}_1 }};"
            code = f"template <> struct code<{self.cxx}> {{ enum {{ is = 10{self.cxx[1:]} }}; }};"
            return f"{declared} {code} inline {self.cxx} keep_{self.cxx}({self.cxx} v) {{ return v; }}"
        if self.kind != "struct":
            return ""
        declared = " ".join(f"{each.declare()}{f' : {each.bits}' if each.bits else ''};" for each in self.members)
        fill = " ".join(each.do("::fill(h, t);") for each in self.members)
        mix, put = (
            " ".join(each.do(f, assigned=False) for each in self.members) for f in ("::mix(h, t);", "::put(t);")
        )
        return (
            f"struct {self.before} {self.cxx} {{ {declared} }}; inline {self.cxx} give_{self.cxx}();\n"
            f"template <> struct fold<{self.cxx}> {{\n"
            f"CALLED static void mix(u64& h, const {self.cxx}& v) {{ {mix} }}\n"
            f"CALLED static void fill(u64& h, {self.cxx}& v) {{ {fill} }}\n}};\n"
            f"{self.cxx} give_{self.cxx}() {{ u64 h = 3; {self.cxx} r; ::fill(h, r); return r; }}\n"
            "#ifndef __CUDACC_RTC__\n"
            f"template <> struct giver<{self.cxx}> {{ static void put(const {self.cxx}& v) {{ {put} }} }};\n#endif"
        )


VOID = Type("void", "void")
HALF = Type("__half", "half", "f2")


def scalar(cxx: str) -> Type:
    return Type(cxx, "scalar", SCALARS[cxx])


def complex_of(part: str) -> Type:
    return Type(f"S::complex<{part}>", "complex", SCALARS[part])


def type_of_element(dtype: str) -> Type:
    if dtype == "f2":
        return HALF
    return complex_of(SCALARS_OF[dtype]) if dtype in ("c8", "c16") else scalar(ELEMENTS[dtype])


SCALARS_OF = {"c8": "float", "c16": "double"}


SCALARS_BY_DTYPE = {dtype: cxx for dtype, cxx in ELEMENTS.items() if dtype in SCALARS.values()}


def _alike(one: Type, other: Type) -> bool:
    """Return whether C cannot tell two types of numbers apart."""
    if "void" in (one.kind, other.kind):
        return one == other
    return (_kind_of(one), one.dtype[1:]) == (_kind_of(other), other.dtype[1:])


def _kind_of(number: Type) -> str:
    """Return what C can tell apart besides sizes: floating-point numbers, integers and bools."""
    return "i" if number.dtype[0] in "iu" else number.dtype[0]


def _as_tuple(one: Type) -> Type:
    """Return a struct as a tuple, arrays in it too; and any other type as it is."""
    if one.kind != "struct":
        return one
    elements = []
    for member in one.members:
        found = _as_tuple(member.type)
        for count in reversed(member.shape):
            found = Type("tuple", "tuple", elements=(found,) * count)
        elements.append(found)
    return Type("tuple", "tuple", elements=tuple(elements))


def list_parts(one: Type) -> list[tuple[int, str, int]]:
    """Return the offset of each number in a tuple, its kind and its size; last those of the tuple: its size and its
    alignment."""
    parts: list[tuple[int, str, int]] = []
    end, most = 0, 1
    for each in one.elements or [one]:
        if each.kind == "tuple":
            *inner, (size, _, align) = list_parts(each)
        else:
            size = align = np.dtype(each.dtype).itemsize
            inner = [(0, _kind_of(each), size)]
        end += -end % align
        parts += [(end + at, *rest) for at, *rest in inner]
        end, most = end + size, max(most, align)
    return [*parts, (end + -end % most, "", most)]


@dataclass(frozen=True)
class Argument:
    """An argument in Python and in C++, and the type of the C++ variable that it is."""

    python: str
    cxx: str
    type: Type | None
    form: str  # such as "element" or "strided": see `Batch.draw_argument`


@dataclass(frozen=True)
class Draw:
    """A call of the function *name*; what *text* declares. *excuses* are the reasons for which the call may be refused
    though C++ accepts it, and it has to be where bytes are *lost*."""

    name: str
    text: str
    arguments: tuple[Argument, ...]
    result: Type
    excuses: tuple[str, ...] = ()
    lost: bool = False
    named: bool = False  # whether the members of its result are read by their names
    # Of a function of C: how the arguments are passed, the type that the call says of the result, the types of the
    # parameters, and whether all that agrees.
    ways: tuple[str, ...] = ()
    returns: Type | None = None
    parameters: tuple[str, ...] = ()
    agrees: bool = True

    def __str__(self) -> str:
        return f"{self.text}\n  {self.python}"

    @property
    def python(self) -> str:
        return f"{self.name}({', '.join(each.python for each in self.arguments)})"


@dataclass
class Batch:
    """The calls of one kernel, and the types that they use."""

    rng: random.Random
    with_std: bool
    types: list[Type] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)

    @classmethod
    def draw(cls, rng: random.Random, count: int, *, of_c: bool = False, with_std: bool = False) -> Batch:
        """Return a batch of *count* calls by name, or of functions *of_c*."""
        batch = cls(rng, with_std)
        batch.draw_types(0 if with_std else 3, 2)  # what a record is costs runs of NVRTC
        draw = batch.draw_c_call if of_c else batch.draw_call
        batch.draws += (draw(number) for number in range(count))
        return batch

    def draw_types(self, records: int, others: int) -> None:
        for number in range(3):
            underlying = scalar(self.rng.choice([*_INTEGERS[:8], "bool"]))
            before = self.rng.choice(["enum", "enum class"])
            self.types.append(Type(f"E{number}", "enum", underlying.dtype, elements=(underlying,), before=before))
        for number in range(records):
            self.types.append(self._draw_struct(f"T{number}"))
        for number in range(others):
            self.types.append(self._draw_struct(f"L{number}"))

    def _draw_struct(self, name: str) -> Type:
        rng, members = self.rng, []
        with_bits = rng.random() < 0.25
        for number in range(rng.randint(1, 5)):
            member = self.draw_value_type(nested=True)
            shapes = [(), (), (2,)] if member.kind == "struct" else [(), (), (), (rng.randint(1, 4),), (2, 2)]
            shape = (33,) if name == "T0" and number == 2 and member.kind != "struct" else rng.choice(shapes)
            bits = 0
            if with_bits and member.cxx in _INTEGERS and rng.random() < 0.7:
                bits, shape = rng.randint(1, 8 * np.dtype(member.dtype).itemsize), ()
            members.append(Member(f"{name}_{number}", member, shape, bits))  # no two structs have one dtype
        packed = f"__attribute__((packed{', aligned(8)' if name in ('T2', 'L1') else ''}))" * (not self.with_std)
        before = rng.choice(["", "", "", "", "alignas(32)", packed])
        return Type(name, "struct", members=tuple(members), before=before)

    def draw_value_type(self, nested: bool = False) -> Type:
        """Return the type of a member or a result."""
        rng = self.rng
        structs = [each for each in self.types if each.kind == "struct"]
        kinds = ["scalar"] * 5 + ["enum"] + ["struct"] * bool(structs) * (1 if nested else 3)
        kinds += ["half", "complex", "tuple", "tuple"] * self.with_std
        kind = rng.choice(kinds)
        if kind == "scalar":
            return scalar(rng.choice(list(SCALARS)))
        if kind == "complex":
            return complex_of(rng.choice(["float", "double"]))
        if kind == "half":
            return HALF
        if kind == "tuple":
            elements = tuple(self.draw_value_type() for _ in range(rng.randint(1, 3)))
            return self.make_tuple(elements)
        return rng.choice([each for each in self.types if each.kind == kind])

    def make_tuple(self, elements: tuple[Type, ...]) -> Type:
        listed = ", ".join(each.cxx for each in elements)
        if len(elements) == 2 and self.rng.random() < 0.4:
            return Type(f"S::pair<{listed}>", "tuple", elements=elements)
        if len(set(elements)) == 1 and self.rng.random() < 0.4:
            return Type(f"S::array<{elements[0].cxx}, {len(elements)}>", "tuple", elements=elements)
        return Type(f"S::tuple<{listed}>", "tuple", elements=elements)

    # What calls pass.

    def draw_argument(self, start: int) -> Argument:
        """Return an argument made of elements from *start* on, which no other argument of the call has."""
        rng, at = self.rng, start + self.rng.randint(0, 3)
        dtype = rng.choice([each for each in ELEMENTS if self.with_std or each not in _OF_STD])
        # Structs that C++ returns, and that Python can name the members of.
        given = [each for each in self.types if each.kind == "struct" and each.is_cut is False and not each.has_bits]
        form = rng.choice(
            ["element"] * 6 + ["constant"] * 3 + ["array"] * 4
            + ["strided", "text", "none", "callable", "enum", "returned"]
            + ["record"] * 4 + ["records"] * 2 + ["given"] * 2 * bool(given) + ["tuple"] * 2 * self.with_std
        )  # fmt: skip
        records = [each for each in self.types if each.is_record and not each.has_bits]
        if form.startswith("record") and not records:
            form = "element"
        if form == "constant":
            return self._draw_constant()
        if form == "array":
            return Argument(f"{dtype}[{at}:{at + 3}]", f"({dtype} + {at})", type_of_element(dtype), form)
        if form == "strided":
            return Argument(f"{dtype}[{at}:{at + 8}:2]", f"({dtype} + {at})", type_of_element(dtype), form)
        if form == "text":
            text = rng.choice(["", "four", 'a"\\b', "1?/", "\u00e9\n"])
            return Argument(repr(text), "".join(f'"\\{byte:o}"' for byte in text.encode()) or '""', None, form)
        if form == "none":
            return Argument("None", "nullptr", None, form)
        if form == "callable":
            name, cxx = rng.choice([("squared", "squared"), ("doubled", "Doubled{}")])
            return Argument(name, cxx, None, form)
        if form in ("enum", "returned"):
            enum = rng.choice([each for each in self.types if each.kind == "enum"])
            value = rng.choice([0, 1])
            keep = f"keep_{enum.cxx}({{}})" if form == "returned" else "{}"
            python, cxx = f"{enum.cxx}.V{value}", f"{enum.cxx}::{enum.cxx}_{value}"
            return Argument(keep.format(python), keep.format(cxx), enum, form)
        if form == "given":
            struct = rng.choice(given)
            return Argument(f"give_{struct.cxx}()", f"give_{struct.cxx}()", struct, form)
        if form == "record":
            struct = rng.choice(records)
            return Argument(f"{struct.cxx}s[{at}]", f"{struct.cxx}s[{at}]", struct, form)
        if form == "records":
            struct = rng.choice(records)
            return Argument(f"{struct.cxx}s[{at}:{at + 2}]", f"({struct.cxx}s + {at})", struct, form)
        if form == "tuple":
            dtypes = [rng.choice(list(ELEMENTS)) for _ in range(rng.randint(1, 3))]
            named = rng.random() < 0.3
            python = ", ".join(f"{each}[{at}]" for each in dtypes)
            whole = Type(
                f"S::tuple<{', '.join(map(ELEMENTS.get, dtypes))}>",
                "tuple",
                elements=tuple(map(type_of_element, dtypes)),
            )
            return Argument(
                f"N{len(dtypes)}({python})" if named else f"({python},)",
                f"{whole.cxx}({', '.join(f'{each}[{at}]' for each in dtypes)})", whole, form,
            )  # fmt: skip
        return Argument(f"{dtype}[{at}]", f"{dtype}[{at}]", type_of_element(dtype), "element")

    def _draw_constant(self) -> Argument:
        rng = self.rng
        dtype = rng.choice(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
        if dtype[0] == "f":
            value = rng.choice([0.5, 2.25, 100.0])
            suffix = "f" if dtype == "f4" else ""
            return Argument(
                f"np.float{8 * int(dtype[1])}({value})", f"{value}{suffix}", type_of_element(dtype), "constant"
            )
        choice = rng.random()
        if choice < 0.4:
            value = rng.choice([0, 3, -7, 2**40])
            return Argument(str(value), f"{value}ll", scalar("long long"), "constant")
        if choice < 0.5:
            return Argument("True", "true", scalar("bool"), "constant")
        if choice < 0.6:
            return Argument("2.5", "2.5", scalar("double"), "constant")
        info = np.iinfo(dtype)
        value = rng.choice([0, 1, info.max, info.min + 1])
        text = f"np.{np.dtype(dtype).name}({value})"
        return Argument(
            text, f"({ELEMENTS[dtype]})({value}{'ull' if dtype == 'u8' else 'll'})", type_of_element(dtype), "constant"
        )

    # What functions take.

    def _draw_parameter(self, argument: Argument) -> tuple[str, str, bool]:
        """Return the C++ type of a parameter, perhaps of a template (``A``), what the function does with the argument
        ``a``, and whether it writes to it."""
        rng, form, own = self.rng, argument.form, argument.type
        mix = "mix(h, a);"
        if form in ("array", "strided", "records"):
            cxx = own.cxx
            other = scalar(rng.choice(list(SCALARS))).cxx
            if form == "records" or own.kind != "scalar":
                other = "int"
            choice = rng.choice(
                [
                    "T*",
                    "T*",
                    "const T*",
                    "const T*",
                    "const T* const&",
                    "A",
                    "A*",
                    "const A*",
                    "void*",
                    "const void*",
                    "U*",
                    "int",
                ]
            )
            if choice in ("T*", "A*"):
                return choice.replace("T", cxx), f"{mix} fill(h, a[1]);", True
            if "void" in choice:
                return choice, "mix(h, (const unsigned char*)a);", False
            return choice.replace("T", cxx).replace("U", other), mix, False
        if form == "text":
            return rng.choice(["const char*", "A", "const A&", "const char (&)[5]"]), "text(h, a);", False
        if form == "none":
            return rng.choice(["const int*", "float*", "const void*", "A", "decltype(nullptr)"]), "mix(h, a);", False
        if form == "callable":
            return rng.choice(["A", "const A&"]), "{ int r = a(21); mix(h, r); }", False
        if form == "given":
            return rng.choice(["T", "const T&", "const T"]).replace("T", own.cxx), mix, False
        if form == "enum":
            return rng.choice(["T", "const T&", "const T"]).replace("T", own.cxx), mix, False
        if form == "returned":
            enums = [each.cxx for each in self.types if each.kind == "enum"]
            choice = rng.choice(["T", "const T&", "const T", "A", "A", "const A&", "T&", "U", "const U&", *enums])
            cxx = choice.replace("T", own.cxx).replace("U", rng.choice(list(SCALARS)))
            writes = choice == "T&"
            return cxx, f"{mix}{' typed(h, a);' * ('A' in choice)}{' fill(h, a);' * writes}", writes
        cxx = own.cxx
        if form == "tuple":
            choice = rng.choice(["T", "const T&", "A", "const A&", "U"])
            elements = tuple(scalar(rng.choice(list(SCALARS))) for _ in own.elements)
            other = f"S::tuple<{', '.join(each.cxx for each in elements)}>"
            if any(each.kind != "scalar" or each.dtype[0] == "f" for each in own.elements):
                other = cxx
            return choice.replace("T", cxx).replace("U", other), mix, False
        others = list(SCALARS) if own.kind == "scalar" else ["int"]
        if own.dtype[:1] == "f":
            others = [each for each in SCALARS if SCALARS[each][0] == "f"]
        choice = rng.choice(
            [
                "T",
                "T",
                "const T&",
                "const T",
                "A",
                "const A&",
                "T&",
                "T&",
                "A&",
                "U",
                "U",
                "U",
                "const U&",
                "U&",
                "T&&",
                "U&&",
                "T*",
            ]
        )
        cxx = choice.replace("T", cxx).replace("U", rng.choice(others))
        writes = choice in ("T&", "A&", "U&")
        typed = " typed(h, a);" if "A" in choice and form in ("element", "constant") else ""
        return cxx, f"{mix}{typed}{' fill(h, a);' if writes else ''}", writes

    def draw_call(self, number: int) -> Draw:
        rng = self.rng
        name = f"g{number}"
        arguments = tuple(self.draw_argument(40 + 20 * n) for n in range(rng.choice([1, 1, 2, 2, 3, 4])))
        parameters = [self._draw_parameter(each) for each in arguments]
        result = VOID if rng.random() < 0.1 else self.draw_value_type()
        if len(list(result.list_leaves("r"))) > MOST_LEAVES:
            result = scalar("short")
        if rng.random() < 0.08 and len(parameters) > 1:
            parameters = parameters[:-1]  # one too few
        templates, declared, body = [], [], []
        excuses = ["packed members"] * (result.is_cut is not False)
        lost = bool(result.is_cut)
        for n, ((cxx, does, writes), argument) in enumerate(zip(parameters, arguments)):  # noqa: B905
            if "A" in cxx:
                templates.append(f"class A{n}")
                cxx = cxx.replace("A", f"A{n}")
            place = cxx.replace("(&)", f"(&a{n})") if "(&)" in cxx else f"{cxx} a{n}"
            declared.append(place)
            body.append(
                does.replace("(h, a)", f"(h, a{n})")
                .replace("a(21)", f"a{n}(21)")
                .replace("a[1]", f"a{n}[1]")
                .replace("char*)a)", f"char*)a{n})")
            )
            if writes and argument.form in ("constant", "returned"):
                excuses.append("which is not a variable or an element of an array")
            if argument.form == "strided":
                excuses.append("strided")
            if argument.form == "given" and any(each.is_record and each.before for each in argument.type.parts):
                excuses.append("has a struct in it that is packed, or aligned to more")
            if argument.form == "record" and argument.type.is_lost:
                by_value = cxx.removeprefix("const ") in (argument.type.cxx, f"A{n}")
                excuses += ["packed members"] * by_value
                lost = lost or by_value
        head = f"template <{', '.join(templates)}> " if templates else ""
        makes = "return;" if result is VOID else f"{result.cxx} r; fill(h, r); return r;"
        text = (
            f"{head}{rng.choice(['CALLED ', 'inline '])}{result.cxx} {name}({', '.join(declared)}) {{"
            f" u64 h = {number}; {' '.join(body)} {makes} }}"
        )
        return Draw(name, text, arguments, result, tuple(excuses), lost, named=rng.random() < 0.5)

    # Functions of C.

    def draw_c_call(self, number: int) -> Draw:
        """Return a call of a function of C, whose types agree with those of the call, or not."""
        rng, name = self.rng, f"g{number}"
        arguments, ways, parameters, fits = [], [], [], []
        for n in range(rng.choice([1, 1, 2, 3])):
            argument, way, parameter, fit = self._draw_c_argument(40 + 20 * n)
            arguments.append(argument)
            ways.append(way)
            parameters.append(parameter)
            fits.append(fit)
        result = rng.choice([VOID, *(scalar(rng.choice(list(SCALARS))) for _ in range(4)), *self._plain_structs])
        returns = result
        if rng.random() < 0.15:
            returns = rng.choice([VOID, scalar(rng.choice(list(SCALARS))), *self._plain_structs])
            kinds = {returns.kind, result.kind}
            if kinds == {"struct"}:
                fits.append(list_parts(_as_tuple(returns)) == list_parts(_as_tuple(result)))
            else:
                fits.append("struct" not in kinds and _alike(returns, result))
        elif result.kind == "struct" and rng.random() < 0.7:
            returns = self._draw_tuple_for(result)
            fits.append(list_parts(returns) == list_parts(_as_tuple(result)))
        declared = ", ".join(f"{cxx} a{n}" for n, cxx in enumerate(parameters))
        mixed = " ".join(
            f"mix(h, {'*' * (way[:3] == 'by_' and cxx[-1] == '*')}{'(const unsigned char*)' * ('void' in cxx)}a{n});"
            for n, (cxx, way) in enumerate(zip(parameters, ways, strict=True))
        )
        makes = "return;" if result is VOID else f"{result.cxx} r; fill(h, r); return r;"
        text = f'extern "C" {result.cxx} {name}({declared}) {{ u64 h = {number}; {mixed} {makes} }}'
        return Draw(
            name, text, tuple(arguments), result, ways=tuple(ways), returns=returns, parameters=tuple(parameters),
            agrees=all(fits),
        )  # fmt: skip

    def _draw_tuple_for(self, struct: Type) -> Type:
        """Return a tuple like a *struct*, perhaps with another number in it, or with its parts in another order."""
        found = _as_tuple(struct)
        elements = list(found.elements)
        choice = self.rng.random()
        if choice < 0.3:
            self.rng.shuffle(elements)
        elif choice < 0.5:
            at = self.rng.randrange(len(elements))
            if elements[at].kind == "scalar":
                others = [each for each in SCALARS if SCALARS[each][1:] == elements[at].dtype[1:]]
                elements[at] = scalar(self.rng.choice([*others, "float"]))
        return Type("tuple", "tuple", elements=tuple(elements))

    @property
    def _plain_structs(self) -> list[Type]:
        """The structs that Python can describe: all parts are where C has them, and none is a bit-field."""
        plain = [each for each in self.types if each.is_record and not each.has_bits]
        plain = [each for each in plain if len(list(each.list_leaves("r"))) <= MOST_LEAVES]
        return [each for each in plain if not any(part.before for part in each.parts if part.kind == "struct")]

    def _draw_c_argument(self, start: int) -> tuple[Argument, str, str, bool]:
        """Return an argument, how it is passed, the type of the parameter, and whether they agree."""
        rng = self.rng
        while True:
            argument = self.draw_argument(start)
            is_plain = not argument.form.startswith("record") or argument.type in self._plain_structs
            if is_plain and argument.form not in ("text", "callable", "enum", "returned", "given", "tuple"):
                break
        own, form = argument.type, argument.form
        others = list(SCALARS)
        other = rng.choice([own, own, own, scalar(rng.choice(others))]) if own else scalar("int")
        if own and own.kind == "struct" and other != own:
            other = scalar("unsigned char")  # which is aligned anywhere
        indirect = rng.choice([f"{other.cxx}*", f"const {other.cxx}*", f"{other.cxx}&", f"const {other.cxx}&"])
        if form == "none":
            return argument, "", rng.choice([indirect.replace("&", "*"), "const void*"]), True
        if form in ("array", "records"):
            cxx = rng.choice([indirect, indirect, "const void*", *[other.cxx] * (form == "array")])
            # An array of records is the address of what C++ declares.
            fit = cxx == "const void*" or (cxx != other.cxx and (form == "records" or _alike(own, other)))
            return argument, "", cxx, fit
        if form == "strided":
            return argument, "", indirect, False
        if form == "record":
            if rng.random() < 0.5:
                cxx = rng.choice([own.cxx, own.cxx, other.cxx])
                return argument, "by_value", cxx, cxx == own.cxx
            return argument, "", rng.choice([f"const {own.cxx}&", f"{own.cxx}*", f"const {other.cxx}*"]), True
        way = rng.choice(["", "", "", "cast", "by_reference"])
        if way:
            target = scalar(rng.choice([each for each in SCALARS if SCALARS[each][0] != "f" or own.dtype[0] == "f"]))
            if own.dtype[0] == "f":
                target = scalar(rng.choice(["float", "double"]))
            way, own = f"{way} {target.dtype}", target
            other = rng.choice([own, own, scalar(rng.choice(others))])
        if way.startswith("by_reference"):
            cxx = rng.choice([f"const {other.cxx}*", f"const {other.cxx}&", other.cxx])
            return argument, way, cxx, cxx != other.cxx and _alike(own, other)
        cxx = rng.choice([other.cxx, other.cxx, other.cxx, indirect])
        return argument, way, cxx, cxx == other.cxx and _alike(own, other)

    # The texts.

    @property
    def text(self) -> str:
        defined = "#define WITH_STD\n" if self.with_std else ""
        types = "\n".join(each.declare() for each in self.types)
        functions = "\n".join(each.text for each in self.draws)
        return f"{defined}{PRELUDE}{types}\n{functions}\n"

    def write_host(self) -> str:
        """Return C++ of the host that makes the calls: ``run(arrays, results, made)`` makes
        those that *made* says, and then it says which of all are valid."""
        structs = [each for each in self.types if each.is_record]
        arrays = [f"auto {dtype} = ({cxx}*)arrays[{n}];" for n, (dtype, cxx) in enumerate(ELEMENTS.items())]
        arrays += [f"auto {each.cxx}s = ({each.cxx}*)arrays[{n}];" for n, each in enumerate(structs, len(ELEMENTS))]
        callers, calls = [], []
        for each in self.draws:
            listed = [f"a{n}" for n in range(len(each.arguments))]
            if each.parameters:  # of a function of C
                target = [
                    f"{SCALARS_BY_DTYPE[way.split()[1]]} b{n} = a{n};" if " " in way else ""
                    for n, way in enumerate(each.ways)
                ]
                listed = [
                    f"given<{cxx}>({'b' if ' ' in way else 'a'}{n})"
                    for n, (cxx, way) in enumerate(zip(each.parameters, each.ways, strict=True))
                ]
                taken = ", ".join(f"A{n}& a{n}" for n in range(len(listed)))
                classes = ", ".join(f"class A{n}" for n in range(len(listed)))
                called = f"{each.name}({', '.join(listed)})"
                put = f"{called};" if each.result is VOID else f"auto&& r = {called}; put(r);"
                body = f"if (made) {{ {' '.join(target)} {put} }} made = true;" if each.agrees else "made = false;"
                callers.append(f"template <{classes}> void call_{each.name}(bool& made, {taken}) {{ {body} }}")
                variables = " ".join(f"auto&& a{n} = {a.cxx};" for n, a in enumerate(each.arguments))
                calls.append(
                    f"{{ {variables} call_{each.name}(*made++, {', '.join(f'a{n}' for n in range(len(listed)))}); }}"
                )
                continue
            put = f"{each.name}(a...);" if each.result is VOID else f"auto&& r = {each.name}(a...); put(r);"
            callers.append(
                f"template <class... A> void call_{each.name}(bool& made, A&... a) {{\n"
                f"if constexpr (requires {{ {each.name}(a...); }}) {{ if (made) {{ {put} }} made = true; }}"
                " else made = false; }"
            )
            variables = " ".join(f"auto&& a{n} = {a.cxx};" for n, a in enumerate(each.arguments))
            given = ", ".join(f"a{n}" for n in range(len(each.arguments)))
            calls.append(f"{{ {variables} call_{each.name}(*made++, {given}); }}")
        return "\n".join(
            [
                self.text, *callers,
                'extern "C" void prepare(void** arrays) {', "u64 h = 1;", *arrays,
                *(f"for (int i = 0; i < {LENGTH}; ++i) fill(h, {each.cxx}s[i]);" for each in structs), "}",
                'extern "C" void run(void** arrays, u64* given_results, bool* made) {', "results = given_results;",
                *arrays, *calls, "}", 'extern "C" unsigned long sizes[] = {',
                *(f"sizeof({each.cxx})," for each in structs), "0};",
            ]
        )  # fmt: skip
