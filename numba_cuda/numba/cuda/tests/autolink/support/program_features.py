# SPDX-License-Identifier: BSD-2-Clause
"""What the kernels of `random_programs` can depend on: values, names, Python code, hooks, CUDA C++ and options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from random_programs import LINK_TO, NO_FILES, Feature

_ONE_OR_TWO = ("1", "2")

# An object with a value, from which AMOUNT is computed when its code is generated.
_KEYED_BY_VALUE = """
class Adds$n(autolink.DeviceCallable):
    def __init__(self, value):
        self.value = value
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f$n", returns=types.int32)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("f$n", AMOUNT))
    def __numba_cuda_link_key__(self, x):
        return KEY
adds$n = Adds$n(VALUE)
"""

# The same, as a constant of the kernel.
_READ = """
class Reads$n(autolink.DeviceCallable):
    def __init__(self, value):
        self.value = value
    @property
    def amount(self):
        return AMOUNT
reads$n = Reads$n(VALUE)
"""


def _value(
    name: str,
    *variants: str,
    amount: str = "self.value",
    value: str = "$v",
    before: str = "",
    key: str = "self.value",
    is_cached: bool | None = True,
) -> Feature:
    """The value of an attribute, which is also the link key, from which *amount* is computed."""
    parts = before + _KEYED_BY_VALUE.replace("AMOUNT", amount).replace("VALUE", value).replace("KEY", key)
    return Feature(name, variants, "adds$n(x)", parts, is_cached=is_cached)


def _read(name: str, *variants: str, amount: str = "self.value", value: str = "$v", before: str = "") -> Feature:
    """The value of an attribute, from which a property computes a constant of the kernel."""
    parts = before + _READ.replace("AMOUNT", amount).replace("VALUE", value)
    return Feature(name, variants, "x + reads$n.amount", parts)


def _code(
    name: str,
    parts: str,
    *variants: str,
    expression: str = "add$n(x)",
    files: Mapping[str, str] = NO_FILES,
    modules: str = "",
    is_cached: bool | None = True,
    is_registered: bool = False,
) -> Feature:
    """Python code that the kernel calls, or something that it reads."""
    return Feature(name, variants or _ONE_OR_TWO, expression, parts, files, modules, is_cached, is_registered)


# Two objects with functions of their own, both of which the kernel reaches.
_TWO_OBJECTS = """
class Pair$n(autolink.DeviceCallable):
    def __init__(self, value):
        self.value = value
    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"f$n_{self.value}", returns=types.int32)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code(f"f$n_{self.value}", self.value))
one$n, two$n = Pair$n(1), Pair$n(2)
"""


def _meaning(
    name: str,
    expression: str,
    parts: str,
    *variants: str,
    files: Mapping[str, str] = NO_FILES,
    modules: str = "",
) -> Feature:
    """Which of two objects an expression means."""
    both = f"{expression} + 0 * one$n(x) + 0 * two$n(x)"
    return _code(
        name, _TWO_OBJECTS + parts, *variants or ("one$n", "two$n"), expression=both, files=files, modules=modules
    )


_HOOKED = """
class Hooked$n(BASE):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("SYMBOL", returns=types.int32)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("f$n_1", AMOUNT) + code("f$n_2", 20))
    def __numba_cuda_link_key__(self, x):
        return "same"
"""


def _hook(
    name: str,
    *variants: str,
    symbol: str = "f$n_1",
    amount: str = "10",
    base: str = "autolink.DeviceCallable",
    before: str = "",
    after: str = "",
    files: Mapping[str, str] = NO_FILES,
) -> Feature:
    """The code of an object's hooks, whose link key stays the same."""
    hooked = _HOOKED.replace("SYMBOL", symbol).replace("AMOUNT", amount).replace("BASE", base)
    parts = f"{before}{hooked}{after}\nhooked$n = Hooked$n()\n"
    return Feature(name, variants or _ONE_OR_TWO, "hooked$n(x)", parts, files)


_ADD_AMOUNT = 'extern "C" __device__ int f$n(int x) { return x + AMOUNT; }\n'
_AMOUNT = "#define AMOUNT $v\n"


def _source(
    name: str,
    source: str,
    files: Mapping[str, str] = NO_FILES,
    *variants: str,
    arguments: str = "include_paths=[HERE]",
    is_cached: bool | None = True,
) -> Feature:
    """CUDA C++ that includes *files*."""
    parts = f"""
class Source$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f$n", returns=types.int32)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource({source!r}, {arguments})
source$n = Source$n()
"""
    return Feature(name, variants or _ONE_OR_TWO, "source$n(x)", parts, files, is_cached=is_cached)


def _declared(name: str, link: str, files: Mapping[str, str] = NO_FILES, *variants: str) -> Feature:
    """A function that ``cuda.declare_device`` declares, and the code that is linked for it."""
    parts = f'\nadd$n = cuda.declare_device("f$n", "int32(int32)", abi="c", link={link})\n'
    return Feature(name, variants or _ONE_OR_TWO, "add$n(x)", parts, files)


def _option(name: str, *variants: str) -> Feature:
    """An option of ``cuda.jit``, which the kernel's own module does not show."""
    return Feature(name, variants, "int(x / np.float32(3))", "\noptions.update($v)\n")


_PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .func (.param .b32 r) f$n(.param .b32 x) {
    .reg .b32 %a<2>;
    ld.param.b32 %a0, [x];
    add.s32 %a1, %a0, $v;
    st.param.b32 [r], %a1;
    ret;
}
"""

VALUES = (
    _value("an integer", "1", "2"),
    _value("an integer or a truth value", "1", "True", amount="int(isinstance(self.value, bool))"),
    _value("a large integer", "1 << 70", "(1 << 70) + 1", amount="self.value % 1000"),
    _value("a float's last bit", "0.5", "0.5000000000000001", amount="int(self.value == 0.5)"),
    _value("a float's sign", "0.0", "-0.0", amount="int(np.signbit(self.value))"),
    _value("the sign of a NaN", "math.nan", "-math.nan", amount="int(np.signbit(self.value))"),
    _value("the sign of a part", "complex(0, 0.0)", "complex(0, -0.0)", amount="int(np.signbit(self.value.imag))"),
    _value("text with a null character", '"a\\0b"', '"a\\0c"', amount='int(self.value.endswith("c"))'),
    _value("text or bytes", '"a"', 'b"a"', amount="int(isinstance(self.value, str))"),
    _value("a decimal", 'decimal.Decimal("1")', 'decimal.Decimal("2")', amount="int(self.value)"),
    _value("digits of a decimal", 'decimal.Decimal("1")', 'decimal.Decimal("1.0")', amount="len(str(self.value))"),
    _value("a fraction", "fractions.Fraction(1, 1)", "fractions.Fraction(2, 1)", amount="int(self.value)"),
    _value("a date", "datetime.date(2000, 1, 1)", "datetime.date(2000, 1, 2)", amount="self.value.day"),
    _value("the fold of a time", "datetime.time(1)", "datetime.time(1, fold=1)", amount="self.value.fold"),
    _value("a standard array", 'array.array("i", [1])', 'array.array("i", [2])', amount="self.value[0]"),
    _value("a deque", "collections.deque([1])", "collections.deque([2])", amount="self.value[0]"),
    _value("a deque's limit", "collections.deque([1], 3)", "collections.deque([1], 4)", amount="self.value.maxlen"),
    _value("a counter", 'collections.Counter("aab")', 'collections.Counter("abb")', amount='self.value["a"]'),
    _value("a simple namespace", "pytypes.SimpleNamespace(a=1)", "pytypes.SimpleNamespace(a=2)", amount="self.value.a"),
    _value(
        "a mapping proxy",
        "pytypes.MappingProxyType({1: 1})",
        "pytypes.MappingProxyType({1: 2})",
        amount="self.value[1]",
    ),
    _value(
        "the factory of a defaultdict",
        "collections.defaultdict(int)",
        "collections.defaultdict(float)",
        amount="int(self.value.default_factory is int)",
    ),
    _value(
        "the order of maps",
        "collections.ChainMap({1: 2}, {1: 3})",
        "collections.ChainMap({1: 3}, {1: 2})",
        amount="self.value[1]",
    ),
    _value("a pattern's flags", 're.compile("a")', 're.compile("a", re.I)', amount='int(bool(self.value.match("A")))'),
    _value("an item getter", "operator.itemgetter(0)", "operator.itemgetter(1)", amount="self.value((1, 2))"),
    _value("an attribute getter", 'operator.attrgetter("real")', 'operator.attrgetter("imag")', amount="self.value(1)"),
    _value("a C number", "ctypes.c_int(1)", "ctypes.c_int(2)", amount="self.value.value"),
    _value("a C array", "(ctypes.c_int * 2)(1, 2)", "(ctypes.c_int * 2)(2, 1)", amount="self.value[0]"),
    _value("a bytearray", 'bytearray(b"a")', 'bytearray(b"b")', amount="self.value[0]"),
    _value("the format of a view", 'memoryview(b"ab")', 'memoryview(b"ab").cast("H")', amount="len(self.value)"),
    _value("a random generator", "random.Random(1)", "random.Random(2)", amount="copy.copy(self.value).randrange(99)"),
    _value(
        "a generator of NumPy",
        "np.random.default_rng(1)",
        "np.random.default_rng(2)",
        amount="copy.deepcopy(self.value).integers(99)",
        is_cached=False,
    ),
    _value("the unit of a date of NumPy", '"s"', '"m"', value="np.datetime64(1, $v)", amount="len(str(self.value))"),
    _value("a range", "range(3)", "range(4)", amount="len(self.value)"),
    _value(
        "what is before a view",
        "1",
        "2",
        value="np.array([$v, 3])[1:]",
        amount="self.value.base[0]",
    ),
    _value(
        "the metadata of a dataclass's field",
        "1",
        "2",
        value="Meta$n()",
        amount='dataclasses.fields(self.value)[0].metadata["amount"]',
        before="""
@dataclasses.dataclass
class Meta$n:
    a: int = dataclasses.field(default=0, metadata={"amount": $v})
""",
    ),
    _value(
        "what an enumeration makes of unknown values",
        "1",
        "2",
        value="Unknown$n",
        amount="self.value(7).value + 10 * (self.value(7).name == 'B')",
        before="""
class Unknown$n(enum.Enum):
    A, B = 1, 2
    @classmethod
    def _missing_(cls, value):
        return cls($v)
""",
    ),
    _value("a slice", "slice(3)", "slice(4)", amount="self.value.stop"),
    _value("a path", '"a"', '"ab"', value="pathlib.Path($v)", amount="len(str(self.value))"),
    _value(
        "the fields of a named tuple",
        '"a b"',
        '"b a"',
        amount="self.value.a",
        value="Point$n(1, 2)",
        before='\nPoint$n = collections.namedtuple("Point$n", $v)\n',
    ),
    _value("the order of a dict", '{"a": 1, "b": 2}', '{"b": 2, "a": 1}', amount="list(self.value.values())[0]"),
    _value("the type of a key", "{1: 1}", "{True: 1}", amount="int(type(list(self.value)[0]) is bool)"),
    _value("a set", "{1, 2}", "{1, 3}", amount="max(self.value)"),
    _value("a set or a frozen one", "{1, 2}", "frozenset({1, 2})", amount="int(isinstance(self.value, set))"),
    _value("a set of tuples", '{(1, "a")}', '{("a", 1)}', amount="int(list(self.value)[0][0] == 1)"),
    _value("a list", "[1, 2]", "[2, 1]", amount="self.value[0]"),
    _value("a list or a tuple", "[1]", "(1,)", amount="int(isinstance(self.value, list))"),
    _value("how lists are nested", "[[1], [2, 3]]", "[[1, 2], [3]]", amount="len(self.value[0])"),
    _value(
        "which object is in a list twice",
        "[a$n, a$n, b$n]",
        "[a$n, b$n, b$n]",
        amount="int(self.value[1] is self.value[0])",
        before="\na$n, b$n = [1], [1]\n",
    ),
    _value(
        "a list that contains itself",
        "1",
        "2",
        value="itself$n($v)",
        amount="self.value[0]",
        before="""
def itself$n(amount):
    values = [amount]
    values.append(values)
    return values
""",
    ),
    _value(
        "a subclass of int",
        "1",
        "2",
        value="Big$n(1, $v)",
        amount="self.value.more",
        before="""
class Big$n(int):
    def __new__(cls, value, more):
        self = super().__new__(cls, value)
        self.more = more
        return self
""",
    ),
    _value(
        "a subclass of str",
        "1",
        "2",
        value='Text$n("a")',
        amount="self.value.more",
        before="""
class Text$n(str):
    more = $v
""",
    ),
    _value(
        "a subclass of list",
        "1",
        "2",
        value="Many$n([1], $v)",
        amount="self.value.more",
        before="""
class Many$n(list):
    def __init__(self, values, more):
        super().__init__(values)
        self.more = more
""",
    ),
    _value(
        "a subclass of dict with slots",
        "1",
        "2",
        value="Named$n($v)",
        amount="self.value.more",
        before="""
class Named$n(dict):
    __slots__ = ("more",)
    def __init__(self, more):
        self.more = more
""",
    ),
    _value("an array's content", "np.arange(3)", "np.arange(1, 4)", amount="int(self.value[0])"),
    _value(
        "an array's order",
        '"C"',
        '"F"',
        value="np.asarray([[1, 2], [3, 4]], order=$v)",
        amount="int(self.value.flags.c_contiguous)",
    ),
    _value("an array's shape", "(2, 3)", "(3, 2)", value="np.zeros($v)", amount="self.value.shape[0]"),
    _value(
        "the mask of an array",
        "[0, 1]",
        "[1, 0]",
        value="np.ma.array([1, 2], mask=$v)",
        amount="int(self.value.mask[0])",
    ),
    _value("the objects of an array", "1", "2", value="np.array([[$v], None], object)", amount="self.value[0][0]"),
    _value(
        "an element of a broadcast array",
        "1",
        "2",
        value="np.broadcast_to(np.int64($v), 3)",
        amount="int(self.value[2])",
    ),
    _value(
        "the metadata of a dtype",
        "1",
        "2",
        value='np.dtype("i4", metadata={"k": $v})',
        amount='self.value.metadata["k"]',
    ),
    _value("the byte order of a dtype", '"<i4"', '">i4"', value="np.dtype($v)", amount="int(self.value.isnative)"),
    _value("the names of fields", "a", "b", value='np.dtype([("$v", "i4")])', amount='int(self.value.names[0] == "a")'),
    _value(
        "the titles of fields",
        "t",
        "u",
        value='np.dtype([(("$v", "a"), "i4")])',
        amount='int("t" in self.value.fields)',
    ),
    _value(
        "the offsets of fields",
        "True",
        "False",
        value='np.dtype([("a", "i1"), ("b", "i4")], align=$v)',
        amount='self.value.fields["b"][1]',
    ),
    _value(
        "what lies deep",
        "1",
        "2",
        value="nested$n($v)",
        amount="deepest$n(self.value)",
        before="""
def nested$n(value):
    for _ in range(80):
        value = [value]
    return value
def deepest$n(value):
    while isinstance(value, list):
        value = value[0]
    return value
""",
    ),
    _value("the end of a long list", "1", "2", value="[0] * 20000 + [$v]", amount="self.value[-1]"),
    _value("a lambda", "lambda: 1", "lambda: 2", amount="self.value()"),
    _value("a lambda's default", "lambda x=1: x", "lambda x=2: x", amount="self.value()"),
    _value(
        "a global of a lambda", "1", "2", value="lambda: amount$n", amount="self.value()", before="\namount$n = $v\n"
    ),
    _value("a partial", "functools.partial(int, 1)", "functools.partial(int, 2)", amount="self.value()"),
    _value("a bound method", "[1].count", "[2].count", amount="self.value(1)"),
    _value(
        "the operator of a table", "operator.add", "operator.sub", value='{"f": $v}', amount='self.value["f"](3, 1)'
    ),
    _value(
        "the argument count of a function",
        "lambda a, *b: b",
        "lambda a, b: b",
        amount="int(bool(self.value.__code__.co_flags & 4))",
    ),
    _value(
        "the state that pickling hides",
        "1",
        "2",
        value="Hidden$n($v)",
        key="None",
        amount="self.value.amount",
        before="""
class Hidden$n:
    def __init__(self, amount):
        self.amount = amount
    def __getstate__(self):
        return {}
""",
    ),
    _value(
        "the state of a link key that pickling hides",
        "1",
        "2",
        value="Hiding$n($v)",
        amount="self.value.amount",
        before="""
class Hiding$n:
    def __init__(self, amount):
        self.amount = amount
    def __getstate__(self):
        return {}
""",
    ),
    _value("a class", "int", "float", amount="int(self.value is float)"),
    _value("a Numba type", "types.int32", "types.int64", amount="self.value.bitwidth"),
    _value(
        "a frozen dataclass",
        "1",
        "2",
        value="Frozen$n($v)",
        amount="self.value.amount",
        before="""
@dataclasses.dataclass(frozen=True)
class Frozen$n:
    amount: int
""",
    ),
    _value(
        "the default of a dataclass",
        "1",
        "2",
        value="Frozen$n()",
        amount="self.value.amount",
        before="""
@dataclasses.dataclass(frozen=True, slots=True)
class Frozen$n:
    amount: int = $v
""",
    ),
    _value(
        "a field that is not compared",
        "1",
        "2",
        value="Frozen$n($v)",
        amount="self.value.amount",
        before="""
@dataclasses.dataclass(frozen=True)
class Frozen$n:
    amount: int = dataclasses.field(compare=False, repr=False)
""",
    ),
    _value(
        "a method of an object",
        "1",
        "2",
        value="Thing$n()",
        amount="self.value.amount()",
        before="""
class Thing$n:
    def amount(self):
        return $v
""",
    ),
    _value(
        "a class attribute of an object",
        "1",
        "2",
        value="Thing$n()",
        amount="self.value.amount",
        before="""
class Thing$n:
    amount = $v
""",
    ),
    _value(
        "a base class of an object",
        "1",
        "2",
        value="Thing$n()",
        amount="self.value.amount()",
        before="""
class Base$n:
    def amount(self):
        return $v
class Thing$n(Base$n):
    pass
""",
    ),
    _value(
        "an attribute of a member of an enumeration",
        "1",
        "2",
        value="Color$n.RED",
        amount="self.value.amount",
        before="""
class Color$n(enum.Enum):
    RED = 1
Color$n.RED.amount = $v
""",
    ),
    _value(
        "a method of an enumeration",
        "1",
        "2",
        value="Color$n.RED",
        amount="self.value.amount()",
        before="""
class Color$n(enum.Enum):
    RED = 1
    def amount(self):
        return $v
""",
    ),
    _value(
        "an attribute of a function",
        "1",
        "2",
        value="function$n",
        amount="self.value.amount",
        before="""
def function$n():
    pass
function$n.amount = $v
""",
    ),
    _value(
        "a flag",
        "Flags$n.A",
        "Flags$n.A | Flags$n.B",
        amount="self.value.value",
        before="""
class Flags$n(enum.Flag):
    A = 1
    B = 2
""",
    ),
    _read(
        "a slot",
        "1",
        "2",
        value="Slotted$n($v)",
        amount="self.value.amount",
        before="""
class Slotted$n:
    __slots__ = ("amount",)
    def __init__(self, amount):
        self.amount = amount
""",
    ),
    _read("a number behind a property", "1", "2"),
    _read("a property's own code", "1", "2", value="0", amount="$v"),
)

_LOOP = """
from numba.cuda import literal_unroll
both$n = $v
@cuda.jit(device=True)
def looped$n(x):
    y = 0
    for each in literal_unroll(both$n):
        y = 3 * y + each(x)
    return y
"""

NAMES = (
    _meaning("an alias", "chosen$n(x)", "chosen$n = $v\n"),
    _meaning("the order of a tuple", "both$n[0](x)", "both$n = $v\n", "(one$n, two$n)", "(two$n, one$n)"),
    _meaning("the order of a tuple that is looped over", "looped$n(x)", _LOOP, "(one$n, two$n)", "(two$n, one$n)"),
    _meaning(
        "the elements of a tuple that is looped over", "looped$n(x)", _LOOP, "(one$n,)", "(one$n, two$n)", "(two$n,)"
    ),
    _meaning(
        "the field of a named tuple",
        "both$n.one(x)",
        'both$n = collections.namedtuple("Both$n", "$v")(one$n, two$n)\n',
        "one two",
        "two one",
    ),
    _meaning(
        "an attribute of an object",
        "holder$n.chosen(x)",
        "class Holder$n(autolink.DeviceCallable):\n    pass\nholder$n = Holder$n()\nholder$n.chosen = $v\n",
    ),
    _meaning(
        "an attribute of a class",
        "holder$n.chosen(x)",
        "class Holder$n(autolink.DeviceCallable):\n    chosen = $v\nholder$n = Holder$n()\n",
    ),
    _meaning(
        "what a property returns",
        "holder$n.chosen(x)",
        "class Holder$n(autolink.DeviceCallable):\n    chosen = property(lambda self: $v)\nholder$n = Holder$n()\n",
    ),
    _meaning(
        "a closure",
        "closed$n(x)",
        """
def make$n(function):
    @cuda.jit(device=True)
    def closed(x):
        return function(x)
    return closed
closed$n = make$n($v)
""",
    ),
    _meaning(
        "the order of closures",
        "closed$n(x)",
        """
def make$n(first, second):
    @cuda.jit(device=True)
    def closed(x):
        return first(x) - second(x)
    return closed
closed$n = make$n($v)
""",
        "one$n, two$n",
        "two$n, one$n",
    ),
    _meaning(
        "a global of a device function",
        "closed$n(x)",
        """
chosen$n = $v
@cuda.jit(device=True)
def closed$n(x):
    return chosen$n(x)
""",
    ),
    _meaning(
        "an argument of a device function",
        "apply$n(chosen$n, x)",
        """
chosen$n = $v
@cuda.jit(device=True)
def apply$n(function, x):
    return function(x)
""",
    ),
    _meaning(
        "an attribute of a module",
        "extra$n.chosen(x)",
        "",
        files={"extra$n.py": "import parts\nchosen = parts.$v\n"},
        modules="import extra$n\n",
    ),
    _code(
        "an alias of a bound method",
        """
class Steps$n(autolink.DeviceCallable):
    @autolink.device_method
    def up(self, x):
        return autolink.Extern("up$n", returns=x)
    @up.link
    def up(self, x):
        return autolink.CUDASource(code("up$n", 1))
    @autolink.device_method
    def down(self, x):
        return autolink.Extern("down$n", returns=x)
    @down.link
    def down(self, x):
        return autolink.CUDASource(code("down$n", -1))
steps$n = Steps$n()
step$n = steps$n.$v
""",
        "up",
        "down",
        expression="step$n(x) + 0 * steps$n.up(x) + 0 * steps$n.down(x)",
    ),
    _code("an alias of a function of Python", "\nadd$n = math.$v\n", "floor", "ceil"),
    _code(
        "an alias of a function of libdevice",
        "\nfrom numba.cuda import libdevice\nadd$n = libdevice.$v\n",
        "clz",
        "popc",
    ),
    _code("an alias of an operator", "\nadd$n = operator.$v\n", "add", "sub", expression="add$n(x, 3)"),
    _code("an alias of a type of NumPy", "\nadd$n = np.$v\n", "int8", "int16", expression="int(add$n(x))"),
    _code(
        "an alias of a module",
        "\nimport $v_$n as place$n\n",
        "one",
        "two",
        expression="x + place$n.amount",
        files={"one_$n.py": "amount = 1\n", "two_$n.py": "amount = 2\n"},
    ),
    _code(
        "the alias of an enumeration",
        """
class Color$n(enum.IntEnum):
    RED = 1
    GREEN = 2
    ANY = $v
""",
        expression="x + Color$n.ANY",
    ),
    _code(
        "a variable with a member of an enumeration",
        """
class Color$n(enum.IntEnum):
    RED = 1
    GREEN = 2
any$n = Color$n.$v
""",
        "RED",
        "GREEN",
        expression="x + any$n",
    ),
)

# C++ that calls a Python function.
_CALLED_BY_CXX = """
class Calls$n(autolink.DeviceCallable):
    def __init__(self, function):
        self.function = function
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f$n_" + autolink.device_function(self.function, x).symbol, returns=types.int32)
    def __numba_cuda_link__(self, x):
        found = autolink.device_function(self.function, x)
        yield found
        yield autolink.CUDASource(
            f'{found.declaration} extern "C" __device__ int f$n_{found.symbol}(int x) {{ return {found.symbol}(x); }}'
        )
    KEY
FUNCTION
"""
_KEY = "def __numba_cuda_link_key__(self, x):\n        return 0"


def _called_by_cxx(name: str, function: str, key: str = "") -> Feature:
    """A Python function that C++ calls, which an object returns with or without a link key."""
    function += "\ncalls$n = Calls$n(function$n)"
    return _code(
        name, _CALLED_BY_CXX.replace("KEY", key).replace("FUNCTION", function), expression="calls$n(types.int32(x))"
    )


PYTHON = (
    _called_by_cxx("a function that C++ calls", "def function$n(x):\n    return x + $v"),
    _called_by_cxx("a function that C++ calls, of a keyed object", "def function$n(x):\n    return x + $v", _KEY),
    _called_by_cxx("a closure that C++ calls", "function$n = (lambda y: lambda x: x + y)($v)", _KEY),
    _called_by_cxx(
        "a device function that a function for C++ calls",
        "@cuda.jit(device=True)\ndef inner$n(x):\n    return x + $v\ndef function$n(x):\n    return inner$n(x)",
        _KEY,
    ),
    _called_by_cxx(
        "an object that a function for C++ calls",
        "class Inner$n(Base):\n"
        "    def __numba_cuda_call__(self, x):\n        return autolink.Extern('inner$n', returns=types.int32)\n"
        "    def __numba_cuda_link__(self, x):\n        return autolink.CUDASource(code('inner$n', $v))\n"
        "inner$n = Inner$n()\n"
        "def function$n(x):\n    return inner$n(x)",
        _KEY,
    ),
    _code(
        "a function for which a call stands",
        """
class Adds$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return lambda x: x + $v
adds$n = Adds$n()
""",
        expression="adds$n(x)",
    ),
    _code(
        "the state of an object that returns a function",
        """
class Adds$n(autolink.DeviceCallable):
    def __init__(self, values):
        self.values = values
    def __numba_cuda_call__(self, x):
        value = self.values["value"]
        return lambda x: x + value
adds$n = Adds$n({"value": $v})
""",
        expression="adds$n(x)",
    ),
    _code("a device function", "\n@cuda.jit(device=True)\ndef add$n(x):\n    return x + $v\n"),
    _code("a device function's default", "\n@cuda.jit(device=True)\ndef add$n(x, y=$v):\n    return x + y\n"),
    _code(
        "a nested device function",
        """
@cuda.jit(device=True)
def inner$n(x):
    return x + $v
@cuda.jit(device=True)
def middle$n(x):
    return inner$n(x)
@cuda.jit(device=True)
def add$n(x):
    return middle$n(x)
""",
    ),
    _code(
        "a function in a device function",
        """
@cuda.jit(device=True)
def add$n(x):
    def inner(y):
        return y + $v
    return inner(x)
""",
    ),
    _code(
        "whether a device function is inlined",
        '\n@cuda.jit(device=True, inline="$v")\ndef add$n(x):\n    return x + 5\n',
        "never",
        "always",
    ),
    _code(
        "a number in a closure",
        """
def make$n(y):
    @cuda.jit(device=True)
    def add(x):
        return x + y
    return add
add$n = make$n($v)
""",
    ),
    _code(
        "the order of numbers in a closure",
        """
def make$n(y, z):
    @cuda.jit(device=True)
    def add(x):
        return (x + y) * z
    return add
add$n = make$n($v)
""",
        "1, 2",
        "2, 1",
    ),
    _code(
        "a device function that text defines",
        """
made$n = {}
exec("def add(x):\\n    return x + $v\\n", made$n)
add$n = cuda.jit(made$n["add"], device=True)
""",
    ),
    _code("a plain function that the kernel calls", "\n@register_jitable\ndef add$n(x):\n    return x + $v\n"),
    _code(
        "a plain function that a device function calls",
        """
@register_jitable
def inner$n(x):
    return x + $v
@cuda.jit(device=True)
def add$n(x):
    return inner$n(x)
""",
    ),
    _code(
        "a global of a plain function",
        """
amount$n = $v
@register_jitable
def add$n(x):
    return x + amount$n
""",
    ),
    _code(
        "a plain function in another module",
        "\nfrom extra$n import add as add$n\n",
        files={
            "extra$n.py": "from numba.cuda.extending import register_jitable\n"
            "@register_jitable\ndef add(x):\n    return x + $v\n"
        },
    ),
    _code(
        "a device function in another module",
        "\nfrom extra$n import add as add$n\n",
        files={"extra$n.py": "from numba import cuda\n@cuda.jit(device=True)\ndef add(x):\n    return x + $v\n"},
    ),
    _code(
        "an overload",
        """
def add$n(x):
    return x
@overload(add$n, target="cuda")
def _overload$n(x):
    return lambda x: x + $v
""",
    ),
    _code(
        "an overload in another module",
        "\ndef add$n(x):\n    return x\n",
        modules="import extra$n\n",
        files={
            "extra$n.py": "import parts\nfrom numba.cuda.extending import overload\n"
            '@overload(parts.add$n, target="cuda")\ndef other(x):\n    return lambda x: x + $v\n'
        },
    ),
    _code(
        "a number in the closure of an overload",
        """
def add$n(x):
    return x
def declare$n(amount):
    @overload(add$n, target="cuda")
    def other(x):
        return lambda x: x + amount
declare$n($v)
""",
    ),
    _code(
        "a function in the closure of an overload",
        """
def add$n(x):
    return x
def declare$n(amount):
    @overload(add$n, target="cuda")
    def other(x):
        added = amount()
        return lambda x: x + added
declare$n(lambda: $v)
""",
    ),
    _code(
        "a generator in the closure of an overload",
        """
def add$n(x):
    return x
def declare$n(amounts):
    @overload(add$n, target="cuda")
    def other(x):
        added = next(amounts)
        return lambda x: x + added
declare$n(each for each in ($v, 7))
""",
        is_cached=False,
    ),
    _code(
        "an attribute that is set on a Numba type's class",
        """
def add$n(x):
    return x
types.Integer.amount$n = $v
@overload(add$n, target="cuda")
def other$n(x):
    amount = x.amount$n
    return lambda x: x + amount
""",
    ),
    _code(
        "which of two overloads comes first",
        """
def add$n(x):
    return x
def one$n(x):
    return lambda x: x + 1
def two$n(x):
    return lambda x: x + 2
for each in $v:
    overload(add$n, target="cuda")(each)
""",
        "(one$n, two$n)",
        "(two$n, one$n)",
    ),
    _code(
        "an overload of what Python defines",
        """
@overload(math.gcd, target="cuda")
def _gcd$n(x, y):
    if isinstance(y, types.UniTuple) and y.count == $n % 1000 + 2:
        return lambda x, y: x + $v
""",
        expression="math.gcd(x, ($n % 1000 + 2) * (1,))",
        is_registered=True,
    ),
    _code(
        "an overloaded method",
        """
@overload_method(types.Array, "more$n", target="cuda")
def _more$n(array, x):
    return lambda array, x: x + $v
""",
        expression="out.more$n(x)",
        is_registered=True,
    ),
    _code(
        "an overloaded attribute",
        """
@overload_attribute(types.Array, "more$n", target="cuda")
def _more$n(array):
    return lambda array: $v
""",
        expression="x + out.more$n",
        is_registered=True,
    ),
    _code(
        "an intrinsic",
        """
@intrinsic
def add$n(context, x):
    def generate(context, builder, signature, arguments):
        return builder.add(arguments[0], context.get_constant(types.int32, $v))
    return types.int32(types.int32), generate
""",
    ),
    _code("an enumeration", "\nclass Color$n(enum.IntEnum):\n    RED = $v\n", expression="x + Color$n.RED"),
    _code("a global number", "\namount$n = $v\n", expression="x + amount$n"),
    _code(
        "the type of a global number",
        "\namount$n = $v\n",
        "np.float32(0.1)",
        "np.float64(0.1)",
        expression="int(x * amount$n * 1000003)",
    ),
    _code("a global that is a number or a truth value", "\namount$n = $v\n", "1", "True", expression="x + ~amount$n"),
    _code(
        "the sign of a global zero", "\namount$n = $v\n", "0.0", "-0.0", expression="int(math.copysign(1, amount$n))"
    ),
    _code("a global tuple", "\namounts$n = $v\n", "(1, 2)", "(2, 1)", expression="x + amounts$n[0]"),
    _code(
        "the fields of a global named tuple",
        '\npoint$n = collections.namedtuple("P$n", "$v")(1, 2)\n',
        "a b",
        "b a",
        expression="x + point$n.a",
    ),
    _code("a global array", "\ntable$n = np.array([$v, 3])\n", expression="x + table$n[0]"),
    _code(
        "the order of a global array",
        '\ntable$n = np.asarray([[1, 2], [3, 4]], order="$v")\n',
        "C",
        "F",
        expression="x + table$n[x & 1, 1]",
    ),
    _code(
        "a global record array",
        '\ntable$n = np.array([($v, 5)], [("a", "i4"), ("b", "i4")])\n',
        expression="x + table$n[0].a",
    ),
    _code(
        "the order of the fields of a global record array",
        '\ntable$n = np.array([(1, 5)], [(each, "i4") for each in "$v"])\n',
        "ab",
        "ba",
        expression="x + table$n[0].a",
    ),
    _code(
        "a constant array", "\ntable$n = np.array([$v, 3])\n", expression="x + cuda.const.array_like(table$n)[x & 1]"
    ),
    _code(
        "the dtype of a local array",
        "\nkind$n = np.dtype($v)\n",
        '"i2"',
        '"i4"',
        expression="x + cuda.local.array(4, kind$n).itemsize",
    ),
    _code(
        "the shape of a local array",
        "\nshape$n = $v\n",
        "(2, 3)",
        "(3, 2)",
        expression="x + cuda.local.array(shape$n, types.int32).shape[0]",
    ),
    _code(
        "a class attribute",
        "\nclass Sized$n(autolink.DeviceCallable):\n    size = $v\nsized$n = Sized$n()\n",
        expression="x + sized$n.size",
    ),
    _code(
        "an attribute of a base class",
        """
class Sizes$n(autolink.DeviceCallable):
    size = $v
class Sized$n(Sizes$n):
    pass
sized$n = Sized$n()
""",
        expression="x + sized$n.size",
    ),
    _code(
        "which base class comes first",
        """
class A$n(autolink.DeviceCallable):
    size = 1
class B$n(autolink.DeviceCallable):
    size = 2
class Sized$n($v):
    pass
sized$n = Sized$n()
""",
        "A$n, B$n",
        "B$n, A$n",
        expression="x + sized$n.size",
    ),
    _code(
        "an attribute in a slot",
        """
class Sized$n(autolink.DeviceCallable):
    __slots__ = ("size",)
sized$n = Sized$n()
sized$n.size = $v
""",
        expression="x + sized$n.size",
    ),
    _code(
        "an attribute that a descriptor computes",
        """
class Computes$n:
    def __get__(self, owner, cls):
        return $v
class Sized$n(autolink.DeviceCallable):
    size = Computes$n()
sized$n = Sized$n()
""",
        expression="x + sized$n.size",
    ),
    _code(
        "an attribute that a method computes",
        """
class Sized$n(autolink.DeviceCallable):
    def __getattr__(self, name):
        if name == "size":
            return $v
        raise AttributeError(name)
sized$n = Sized$n()
""",
        expression="x + sized$n.size",
    ),
    _code(
        "a cached property",
        """
class Sized$n(autolink.DeviceCallable):
    @functools.cached_property
    def size(self):
        return $v
sized$n = Sized$n()
""",
        expression="x + sized$n.size",
    ),
)

# A Numba type of the user's, whose values are 32-bit integers, and a function that makes one.
_TYPE = """
from llvmlite import ir
from numba.cuda.core.imputils import lower_constant
from numba.cuda.extending import core_models, lower_builtin, lower_cast, register_model, type_callable, typeof_impl
class Type$n(types.Type):
    amount = AMOUNT
    def __init__(self):
        super().__init__("Type$n")
type$n = Type$n()
@register_model(Type$n)
class Model$n(core_models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, ir.IntType(BITS))
@lower_cast(Type$n, types.int32)
def _cast$n(context, builder, source, target, value):
    return builder.add(value, context.get_constant(types.int32, ADDED))
"""
_CAST = """
@intrinsic
def add$n(context, x):
    def generate(context, builder, signature, arguments):
        return context.cast(builder, arguments[0], type$n, types.int32)
    return types.int32(types.int32), generate
"""


def _type(name: str, parts: str, *variants: str, expression: str = "add$n(x)", **settings: str) -> Feature:
    """What is registered with Numba for a type."""
    registered = _TYPE
    for setting in ("AMOUNT", "BITS", "ADDED"):
        registered = registered.replace(setting, settings.get(setting.lower(), "32"))
    return _code(name, registered + parts, *variants, expression=expression)


_OBJECT = """
class Object$n:
    pass
object$n = Object$n()
@typeof_impl.register(Object$n)
def _typeof$n(value, context):
    return TYPE
@lower_constant(Type$n)
def _constant$n(context, builder, numba_type, value):
    return ir.IntType(32)(CONSTANT)
@intrinsic
def _value$n(context, x):
    def generate(context, builder, signature, arguments):
        return arguments[0]
    return types.int32(x), generate
def size$n(value):
    pass
@overload(size$n, target="cuda")
def _size$n(value):
    amount = value.amount
    return lambda value: _value$n(value) + amount
"""

REGISTERED = (
    _type("the lowering of a cast", _CAST, added="$v"),
    _type(
        "a data model",
        """
@intrinsic
def add$n(context, x):
    def generate(context, builder, signature, arguments):
        return builder.add(arguments[0], context.get_constant(types.int32, context.get_value_type(type$n).width))
    return types.int32(types.int32), generate
""",
        "32",
        "64",
        bits="$v",
    ),
    _type(
        "the lowering of a function",
        """
def add$n(x):
    return x
@type_callable(add$n)
def _typed$n(context):
    return lambda x: types.int32
@lower_builtin(add$n, types.int32)
@lower_builtin(add$n, types.int64)
def _lowered$n(context, builder, signature, arguments):
    return context.get_constant(types.int32, $v)
""",
    ),
    _type(
        "the type of a function's result",
        """
def add$n(x):
    return x
@type_callable(add$n)
def _typed$n(context):
    return lambda x: types.$v
@lower_builtin(add$n, types.int32)
@lower_builtin(add$n, types.int64)
def _lowered$n(context, builder, signature, arguments):
    return context.get_constant(signature.return_type, 200)
""",
        "uint8",
        "int8",
    ),
    _type(
        "the type of an object",
        _OBJECT.replace("CONSTANT", "1").replace("TYPE", "$v")
        + "class Other$n(Type$n):\n    amount = 9\nregister_model(Other$n)(Model$n)\nother$n = Other$n()\n",
        "type$n",
        "other$n",
        expression="x + size$n(object$n)",
    ),
    _type(
        "the constant of an object",
        _OBJECT.replace("CONSTANT", "$v").replace("TYPE", "type$n"),
        expression="x + size$n(object$n)",
    ),
    _type(
        "an attribute of a type",
        _OBJECT.replace("CONSTANT", "1").replace("TYPE", "type$n"),
        expression="x + size$n(object$n)",
        amount="$v",
    ),
)

HOOKS = (
    _hook("the symbol of a call", symbol="f$n_$v"),
    _hook("the source of a hook", amount="$v"),
    _hook(
        "a base class of a hook",
        amount="self.amount()",
        base="Base$n",
        before="""
class Base$n(autolink.DeviceCallable):
    def amount(self):
        return $v
""",
    ),
    _hook(
        "a base class in another module",
        amount="self.amount()",
        base="Base$n",
        before="\nfrom extra$n import Base as Base$n\n",
        files={
            "extra$n.py": "from numba.cuda import autolink\nclass Base(autolink.DeviceCallable):\n"
            "    def amount(self):\n        return $v\n"
        },
    ),
    _hook(
        "which method a name of a class means",
        "one",
        "two",
        amount="self.amount()",
        base="Base$n",
        before="""
class Base$n(autolink.DeviceCallable):
    def one(self):
        return 1
    def two(self):
        return 2
    amount = $v
""",
    ),
    _hook(
        "a class attribute that a hook reads",
        amount="self.amount",
        base="Base$n",
        before="""
class Base$n(autolink.DeviceCallable):
    amount = $v
""",
    ),
    _hook(
        "a method that is replaced on its class",
        after="""
Hooked$n.__numba_cuda_link__ = lambda self, x: autolink.CUDASource(code("f$n_1", $v))
""",
    ),
    _hook(
        "a hook that is a partial method",
        after="""
def linked$n(self, amount, x):
    return autolink.CUDASource(code("f$n_1", amount))
Hooked$n.__numba_cuda_link__ = functools.partialmethod(linked$n, $v)
""",
    ),
    _hook(
        "a decorated hook",
        after="""
def decorate$n(hook, amount):
    @functools.wraps(hook)
    def decorated(self, x):
        return autolink.CUDASource(code("f$n_1", amount))
    return decorated
Hooked$n.__numba_cuda_link__ = decorate$n(Hooked$n.__numba_cuda_link__, $v)
""",
    ),
    _hook(
        "a decorator's own code",
        after="""
def decorate$n(hook):
    @functools.wraps(hook)
    def decorated(self, x):
        return autolink.CUDASource(code("f$n_1", $v))
    return decorated
Hooked$n.__numba_cuda_link__ = decorate$n(Hooked$n.__numba_cuda_link__)
""",
    ),
    _hook(
        "a hook with a default",
        after="""
def linked$n(self, x, amount=$v):
    return autolink.CUDASource(code("f$n_1", amount))
Hooked$n.__numba_cuda_link__ = linked$n
""",
    ),
    _hook(
        "a hook with a closure",
        after="""
def make$n(amount):
    def linked(self, x):
        return autolink.CUDASource(code("f$n_1", amount))
    return linked
Hooked$n.__numba_cuda_link__ = make$n($v)
""",
    ),
    _hook(
        "a hook that text defines",
        after="""
made$n = dict(autolink=autolink, code=code)
exec("def linked(self, x):\\n    return autolink.CUDASource(code('f$n_1', $v))\\n", made$n)
Hooked$n.__numba_cuda_link__ = made$n["linked"]
""",
    ),
    _hook("a function of the hook's module", amount="amount$n()", before="\ndef amount$n():\n    return $v\n"),
    _hook("a global of the hook's module", amount="amount$n", before="\namount$n = $v\n"),
    _hook("the value of an attribute beside the key", amount="self.amount", after="\nHooked$n.amount = $v\n"),
    _hook(
        "a lambda in a class's dict",
        amount='self.table["f"]()',
        base="Base$n",
        before="""
class Base$n(autolink.DeviceCallable):
    table = {"f": lambda: $v}
""",
    ),
    _hook(
        "a function with cases for types",
        amount="amount$n(1)",
        before="""
@functools.singledispatch
def amount$n(x):
    return 0
@amount$n.register
def _(x: int):
    return $v
""",
    ),
    _hook(
        "a function that replaces one of another module",
        amount="extra$n.amount()",
        before="\nimport extra$n\nextra$n.amount = lambda: $v\n",
        files={"extra$n.py": "def amount():\n    return 0\n"},
    ),
    _hook(
        "a hook of one instance",
        after="""
def linked$n(x):
    return autolink.CUDASource(code("f$n_1", $v))
class Hooked$n(Hooked$n):
    def __init__(self):
        self.__numba_cuda_link__ = linked$n
""",
    ),
    _hook(
        "a hook that is a static partial",
        after="""
def linked$n(amount, x):
    return autolink.CUDASource(code("f$n_1", amount))
Hooked$n.__numba_cuda_link__ = staticmethod(functools.partial(linked$n, $v))
""",
    ),
    _hook("a generator that a hook uses", amount="next(amounts$n())", before="\ndef amounts$n():\n    yield $v\n"),
    Feature(
        "a path under a link key",
        _ONE_OR_TWO,
        "hooked$n(x)",
        """
class Hooked$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f$n", returns=types.int32)
    def __numba_cuda_link__(self, x):
        return os.path.join(HERE, "f$n.ptx")
    def __numba_cuda_link_key__(self, x):
        return "same"
hooked$n = Hooked$n()
""",
        {"f$n.ptx": _PTX},
    ),
    Feature(
        "the header of a source under a link key",
        _ONE_OR_TWO,
        "hooked$n(x)",
        f"""
class Hooked$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f$n", returns=types.int32)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource({'#include "h$n.cuh"' + chr(10) + _ADD_AMOUNT!r}, include_paths=[HERE])
    def __numba_cuda_link_key__(self, x):
        return "same"
hooked$n = Hooked$n()
""",
        {"h$n.cuh": _AMOUNT},
    ),
    Feature(
        "whether a call is cooperative",
        ("False", "True"),
        "hooked$n(x)",
        """
class Hooked$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f$n", returns=types.int32, cooperative=$v)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("f$n", 1))
hooked$n = Hooked$n()
""",
    ),
    Feature(
        "what a call passes",
        ("int32", "int16"),
        "hooked$n(x)",
        """
class Hooked$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f$n", returns=types.int32, args={"x": "$v"})
    def __numba_cuda_link__(self, x):
        c_type = {"int32": "int", "int16": "short"}["$v"]
        return autolink.CUDASource('extern "C" __device__ int f$n(%s x) { return x + 1; }' % c_type)
hooked$n = Hooked$n()
""",
    ),
    Feature(
        "which argument a call passes",
        ('["x"]', '["y"]'),
        "hooked$n(x, out[7])",
        """
class Hooked$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x, y):
        return autolink.Extern("f$n", returns=types.int32, args=$v)
    def __numba_cuda_link__(self, x, y):
        return autolink.CUDASource(code("f$n", 1))
    def __numba_cuda_link_key__(self, x, y):
        return "same"
hooked$n = Hooked$n()
""",
    ),
    Feature(
        "the order of the arguments of a call",
        ('{"x": "int32", "y": None}', '{"y": "int32", "x": None}'),
        "hooked$n(x, x + 7)",
        """
class Hooked$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x, y):
        return autolink.Extern("f$n", returns=types.int32, args=$v)
    def __numba_cuda_link__(self, x, y):
        c_type = {"int32": "int", "int64": "long long"}
        first, second = (c_type[str({"x": x, "y": y}.get(name)) if kind is None else kind] for name, kind in $v.items())
        return autolink.CUDASource(
            'extern "C" __device__ int f$n(%s x, %s y) { return x - 3 * y; }' % (first, second)
        )
hooked$n = Hooked$n()
""",
    ),
    Feature(
        "what a call returns",
        ("int32", "uint32"),
        "hooked$n(x) / 3",
        """
class Hooked$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f$n", returns=types.$v)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("f$n", 1))
hooked$n = Hooked$n()
""",
    ),
)

_HEADER = {"h$n.cuh": _AMOUNT}
_BOTH_FOLDERS = {"a$n/h$n.cuh": "#define AMOUNT 1\n", "b$n/h$n.cuh": "#define AMOUNT 2\n"}
_IF_IT_EXISTS = "#define AMOUNT 1\n#else\n#define AMOUNT 2\n#endif\n" + _ADD_AMOUNT
_IN_TWO = 'include_paths=[os.path.join(HERE, each) for each in "$v".split()]'

SOURCES = (
    _source("a header", '#include "h$n.cuh"\n' + _ADD_AMOUNT, _HEADER),
    _source(
        "a header in the working directory",
        '#include "h$n.cuh"\n' + _ADD_AMOUNT,
        {"a$n/h$n.cuh": "#define AMOUNT 1\n", "b$n/h$n.cuh": "#define AMOUNT 2\n"},
        "a",
        "b",
        arguments='**(os.chdir(os.path.join(HERE, "$v$n")) or {})',
    ),
    _source("a header in angle brackets", "#include <h$n.cuh>\n" + _ADD_AMOUNT, _HEADER),
    _source(
        "a header of a header",
        '#include "h$n.cuh"\n' + _ADD_AMOUNT,
        {"h$n.cuh": '#include "g$n.cuh"\n', "g$n.cuh": _AMOUNT},
    ),
    _source(
        "a header that a header includes from below",
        '#include "a$n/h$n.cuh"\n' + _ADD_AMOUNT,
        {"a$n/h$n.cuh": '#include "../g$n.cuh"\n', "g$n.cuh": _AMOUNT},
    ),
    _source("a header that a macro names", '#define NAME "h$n.cuh"\n#include NAME\n' + _ADD_AMOUNT, _HEADER),
    _source(
        "which header a macro names",
        "#include NAME\n" + _ADD_AMOUNT,
        {"h1_$n.cuh": "#define AMOUNT 1\n", "h2_$n.cuh": "#define AMOUNT 2\n"},
        arguments="""include_paths=[HERE], defines={"NAME": '"h$v_$n.cuh"'}""",
    ),
    _source(
        "a header whose name is made of an argument",
        "#define TEXT(x) #x\n#include TEXT(h$n.cuh)\n" + _ADD_AMOUNT,
        _HEADER,
        is_cached=None,
    ),
    _source(
        "a header that a macro of a header names",
        '#include "g$n.cuh"\n#include NAME\n' + _ADD_AMOUNT,
        {
            "g$n.cuh": '#define NAME "h$v_$n.cuh"\n',
            "h1_$n.cuh": "#define AMOUNT 1\n",
            "h2_$n.cuh": "#define AMOUNT 2\n",
        },
    ),
    _source(
        "whether a header exists",
        '#if __has_include("there$n.cuh")\n' + _IF_IT_EXISTS,
        {"$v$n.cuh": "\n"},
        "there",
        "gone",
    ),
    _source(
        "whether a macro finds a header",
        '#define EXISTS(x) __has_include(x)\n#if EXISTS("there$n.cuh")\n' + _IF_IT_EXISTS,
        {"$v$n.cuh": "\n"},
        "there",
        "gone",
    ),
    _source(
        "whether a macro of a header finds a header",
        '#include "g$n.cuh"\n#if EXISTS("there$n.cuh")\n' + _IF_IT_EXISTS,
        {"g$n.cuh": "#define EXISTS(x) __has_include(x)\n", "$v$n.cuh": "\n"},
        "there",
        "gone",
    ),
    _source(
        "whether a macro of an option finds a header",
        '#if EXISTS("there$n.cuh")\n' + _IF_IT_EXISTS,
        {"$v$n.cuh": "\n"},
        "there",
        "gone",
        arguments='include_paths=[HERE], defines={"EXISTS(x)": "__has_include(x)"}',
    ),
    _source(
        "whether a header that an option names exists",
        "#if __has_include(NAME)\n" + _IF_IT_EXISTS,
        {"$v$n.cuh": "\n"},
        "there",
        "gone",
        is_cached=None,
        arguments="""include_paths=[HERE], defines={"NAME": '"there$n.cuh"'}""",
    ),
    _source(
        "a header that takes the place of another",
        "#include <h$n.cuh>\n" + _ADD_AMOUNT,
        {"$v$n/h$n.cuh": "#define AMOUNT 1\n", "b$n/h$n.cuh": "#define AMOUNT 2\n"},
        "a",
        "c",
        arguments='include_paths=[os.path.join(HERE, "a$n"), os.path.join(HERE, "b$n")]',
    ),
    _source(
        "the folder of a header", '#include "h$n.cuh"\n' + _ADD_AMOUNT, _BOTH_FOLDERS, "a$n", "b$n", arguments=_IN_TWO
    ),
    _source(
        "the order of include paths",
        '#include "h$n.cuh"\n' + _ADD_AMOUNT,
        _BOTH_FOLDERS,
        "a$n b$n",
        "b$n a$n",
        arguments=_IN_TWO,
    ),
    _source(
        "the order of include paths below a header",
        '#include "g$n.cuh"\n' + _ADD_AMOUNT,
        {"g$n.cuh": "#include <h$n.cuh>\n", **_BOTH_FOLDERS},
        "a$n b$n",
        "b$n a$n",
        arguments='include_paths=[HERE, *(os.path.join(HERE, each) for each in "$v".split())]',
    ),
    _source(
        "the next header of a name",
        '#include "h$n.cuh"\n' + _ADD_AMOUNT,
        {"a$n/h$n.cuh": "#include_next <h$n.cuh>\n", "b$n/h$n.cuh": _AMOUNT},
        arguments='include_paths=[os.path.join(HERE, "a$n"), os.path.join(HERE, "b$n")]',
    ),
    _source(
        "a header that is a link",
        '#include "h$n.cuh"\n' + _ADD_AMOUNT,
        {"h$n.cuh": LINK_TO + "$v$n.cuh", "one$n.cuh": "#define AMOUNT 1\n", "two$n.cuh": "#define AMOUNT 2\n"},
        "one",
        "two",
    ),
    _source(
        "a folder that is a link",
        '#include "now$n/h$n.cuh"\n' + _ADD_AMOUNT,
        {"now$n": LINK_TO + "$v$n", **_BOTH_FOLDERS},
        "a",
        "b",
    ),
    _source(
        "a header that is reached by two names",
        '#include "a$n/h$n.cuh"\n#include "now$n/h$n.cuh"\n' + _ADD_AMOUNT,
        {
            "now$n": LINK_TO + "$v$n",
            "a$n/h$n.cuh": "#pragma once\n#define A 1\n#define AMOUNT B\n#ifndef B\n#define B 1\n#endif\n",
            "b$n/h$n.cuh": "#undef B\n#define B 2\n",
        },
        "a",
        "b",
    ),
    _source(
        "a header before the source",
        _ADD_AMOUNT,
        _HEADER,
        arguments='options={"pre_include": os.path.join(HERE, "h$n.cuh")}',
    ),
    _source("a macro", _ADD_AMOUNT, arguments='defines={"AMOUNT": "$v"}'),
    _source(
        "the order of macros",
        _ADD_AMOUNT,
        NO_FILES,
        '("A$n", 1), ("AMOUNT", 1), ("AMOUNT", 2)',
        '("A$n", 1), ("AMOUNT", 2), ("AMOUNT", 1)',
        arguments="defines=[$v]",
    ),
    _source(
        "a macro that only a condition reads",
        "#ifdef FAST\n" + _IF_IT_EXISTS,
        NO_FILES,
        "FAST",
        "SLOW",
        arguments='defines=["$v"]',
    ),
    _source(
        "an option of the compiler",
        "#if __cplusplus > 201703L\n" + _IF_IT_EXISTS,
        NO_FILES,
        "c++17",
        "c++20",
        arguments='options={"std": "$v"}',
    ),
    _source(
        "the name of a source",
        _ADD_AMOUNT.replace("AMOUNT", "sizeof(__FILE__)"),
        NO_FILES,
        "a",
        "ab",
        arguments='name="$v.cu"',
    ),
    _source("the line of a source", "$v" + _ADD_AMOUNT.replace("AMOUNT", "__LINE__"), NO_FILES, "", "\\n"),
    _source("a directive with a digraph", '%:include "h$n.cuh"\n' + _ADD_AMOUNT, _HEADER),
    _source(
        "a directive with a trigraph",
        '??=include "h$n.cuh"\n' + _ADD_AMOUNT,
        _HEADER,
        arguments='include_paths=[HERE], options={"std": "c++14"}',
        is_cached=None,
    ),
    _source("comments in a directive", '/* */ # /* */ include /* " */ "h$n.cuh" // "\n' + _ADD_AMOUNT, _HEADER),
    _source("a form feed in a directive", '#\finclude\v"h$n.cuh"\n' + _ADD_AMOUNT, _HEADER),
    _source("a directive on two lines", '#inc\\\nlude \\\n "h$n.cuh"\n' + _ADD_AMOUNT, _HEADER),
    _source("a directive after a comment on two lines", '/* a\n */ #include "h$n.cuh"\n' + _ADD_AMOUNT, _HEADER),
    _source(
        "a directive after what looks like a comment",
        '__device__ const char a[] = "/*";\n#include "h$n.cuh"\n__device__ const char b[] = "*/";\n' + _ADD_AMOUNT,
        _HEADER,
    ),
)

FILES = (
    _declared("a file that is linked", 'os.path.join(HERE, "f$n.cu")', {"f$n.cu": _ADD_AMOUNT.replace("AMOUNT", "$v")}),
    _declared(
        "a header beside a file that is linked",
        'os.path.join(HERE, "f$n.cu")',
        {"f$n.cu": '#include "h$n.cuh"\n' + _ADD_AMOUNT, **_HEADER},
    ),
    _declared(
        "which file is linked",
        'os.path.join(HERE, "f$v_$n.cu")',
        {"f1_$n.cu": _ADD_AMOUNT.replace("AMOUNT", "1"), "f2_$n.cu": _ADD_AMOUNT.replace("AMOUNT", "2")},
    ),
    _declared(
        "a linked file that is a link",
        'os.path.join(HERE, "f$n.cu")',
        {
            "f$n.cu": LINK_TO + "f$v_$n.cu",
            "f1_$n.cu": _ADD_AMOUNT.replace("AMOUNT", "1"),
            "f2_$n.cu": _ADD_AMOUNT.replace("AMOUNT", "2"),
        },
    ),
    _declared("PTX in a file", 'os.path.join(HERE, "f$n.ptx")', {"f$n.ptx": _PTX}),
    _declared("source in memory", 'cuda.CUSource(code("f$n", $v))'),
    _declared("PTX in memory", f"cuda.PTXSource({_PTX!r}.encode())"),
    Feature(
        "a file that an option links",
        _ONE_OR_TWO,
        "add$n(x)",
        """
add$n = cuda.declare_device("f$n", "int32(int32)", abi="c")
options["link"] = [*options.get("link", ()), os.path.join(HERE, "f$n.cu")]
""",
        {"f$n.cu": _ADD_AMOUNT.replace("AMOUNT", "$v")},
    ),
)

OPTIONS = (
    _option("fast mathematics", "fastmath=False", "fastmath=True"),
    _option("the number of registers", "max_registers=32", "max_registers=64"),
    _option("launch bounds", "launch_bounds=64", "launch_bounds=128"),
)

_BY_NAME = "template <int N> __device__ int f$n(int x) { return x + N; }"

CXX_BY_NAME = (
    _code("a name of C++", f"add$n = autolink.cxx({_BY_NAME!r})['f$n<$v>']"),
    _code("the source of a name of C++", "add$n = autolink.cxx('__device__ int f$n(int x) { return x + $v; }').f$n"),
    _code("a lambda of C++", "add$n = autolink.cxx('// f$n').expr('[](auto x) { return x + $v; }')"),
    _code("a constant of C++", "value$n = autolink.cxx('enum { f$n = $v };').eval('f$n')", expression="x + value$n"),
    _code(
        "a header of a name of C++",
        "add$n = autolink.cxx('#include <h$n.cuh>\\n' + '__device__ int f$n(int x) { return x + AMOUNT; }',"
        " include_paths=[HERE]).f$n",
        files=_HEADER,
    ),
    _code(
        "the file of a name of C++",
        "add$n = autolink.cxx(os.path.join(HERE, 'h$n.cuh')).f$n",
        files={"h$n.cuh": "__device__ int f$n(int x) { return x + $v; }\n"},
    ),
    _code(
        "the type of a result of C++",
        "add$n = autolink.cxx('#include <h$n.cuh>\\n', include_paths=[HERE]).f$n",
        "int",
        "short",
        files={"h$n.cuh": "__device__ $v f$n(int x) { return 70000 + x; }\n"},
    ),
)

_ADDS = "__device__ int f$n(int x) { return x + AMOUNT; }"
_OF_HEADER = "autolink.cxx('#include <h$n.cuh>\\n', include_paths=[HERE])"
_CLASS_OF_HEADER = f"""
Class$n = {_OF_HEADER}.type("C$n")
get$n = Class$n.method("get")
@cuda.jit(device=True)
def add$n(x):
    object = cuda.local.array(1, Class$n.dtype)
    Class$n(object[0], types.int32(x))
    return get$n(object[0])
"""
_TYPE_OF_HEADER = f"""
type$n = {_OF_HEADER}.type("C$n")
@cuda.jit(device=True)
def add$n():
    return cuda.local.array(3, type$n.dtype).itemsize
"""
_RECORD_OF_HEADER = f"""
lib$n = {_OF_HEADER}
record$n, first$n = lib$n.record("P$n"), lib$n.first$n
@cuda.jit(device=True)
def add$n(x):
    record = cuda.local.array(1, record$n)
    record[0].a = x
    return int(first$n(record[0]))
"""
_TWO_OF_A_LIBRARY = f"""
lib$n = autolink.cxx('#include <h$n.cuh>\\n' + {_ADDS + " __device__ int g$n(int x) { return 3 * x; }"!r},
                     include_paths=[HERE])
f$n, g$n = lib$n.f$n, lib$n.g$n
"""

CXX_BY_NAME_AND_PYTHON = (
    _code("a macro of a library of C++", f"add$n = autolink.cxx({_ADDS!r}, defines={{'AMOUNT': '$v'}}).f$n"),
    _code(
        "the order of include paths of a library of C++",
        f"add$n = autolink.cxx('#include <h$n.cuh>\\n' + {_ADDS!r},"
        " include_paths=[os.path.join(HERE, each) for each in '$v'.split()]).f$n",
        "a$n b$n",
        "b$n a$n",
        files=_BOTH_FOLDERS,
    ),
    _code(
        "the namespace of a name of C++",
        "add$n = autolink.cxx('__device__ int f$n(int x) { return x; } namespace b$n {'"
        "'__device__ int f$n(int x) { return x + 2; } }', namespace='$v').f$n",
        "",
        "b$n",
    ),
    _code(
        "an overload in a header of C++",
        f"add$n = {_OF_HEADER}.f$n",
        "",
        "__device__ inline int f$n(int x) { return x + 5; }",
        files={"h$n.cuh": "__device__ inline int f$n(double x) { return x + 1; }\n$v\n"},
    ),
    _code(
        "the state of a functor in a header of C++",
        f"add$n = {_OF_HEADER}['A$n{{}}']",
        files={
            "h$n.cuh": "struct A$n { int n = $v; __device__ int operator()(int x) const { return x + n; } };\n",
        },
    ),
    _code(
        "the constructor of a class in a header of C++",
        _CLASS_OF_HEADER,
        files={
            "h$n.cuh": "struct C$n { int n; __device__ C$n(int x) : n(x + $v) {} __device__ int get() { return n; } };",
        },
    ),
    _code(
        "the type of a member of a record of C++",
        _RECORD_OF_HEADER,
        "int",
        "float",
        files={
            "h$n.cuh": "struct P$n { $v a; }; __device__ inline int first$n(const P$n& p) { return p.a * 1.5; }\n",
        },
    ),
    _code(
        "a header of two functions of C++",
        _TWO_OF_A_LIBRARY,
        expression="f$n(g$n(types.int32(x))) + g$n(types.int32(x))",
        files=_HEADER,
    ),
    *(
        _code(f"{what} of C++", _TYPE_OF_HEADER, files={"h$n.cuh": text}, expression="x + add$n()")
        for what, text in (
            ("the size of a class", "struct C$n { int n[$v]; };"),
            ("the alignment of a class", "struct alignas(8 * $v) C$n { int n; };"),
        )
    ),
    _code(
        "a constant of C++ that a hook asks for",
        f"""
lib$n = {_OF_HEADER}
class Asks$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f$n", returns=types.int32)
    def __numba_cuda_link_key__(self, x):
        return "same"
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("f$n", lib$n.eval("AMOUNT")))
asks$n = Asks$n()
""",
        expression="asks$n(x)",
        files=_HEADER,
    ),
    _code(
        "a library of C++ as a link key",
        f"""
lib$n = {_OF_HEADER}
class Keyed$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f$n", returns=types.int32)
    def __numba_cuda_link_key__(self, x):
        return lib$n
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("f$n", lib$n.eval("AMOUNT")))
keyed$n = Keyed$n()
""",
        expression="keyed$n(x)",
        files=_HEADER,
    ),
    _called_by_cxx(
        "a name of C++ in a function that C++ calls",
        f"add$n = autolink.cxx({_ADDS!r}, defines={{'AMOUNT': $v}}).f$n\ndef function$n(x):\n    return add$n(x)",
        _KEY,
    ),
    _code(
        "a lambda in a kernel",
        """
GLOBAL$n = $v
@cuda.jit(device=True)
def inner$n(x):
    return x + GLOBAL$n
class Apply$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x, function):
        found = autolink.device_function(function, x)
        return autolink.Extern("f$n_" + found.symbol, returns=types.int32, args=["x"])
    def __numba_cuda_link__(self, x, function):
        found = autolink.device_function(function, x)
        yield found
        yield autolink.CUDASource(
            f'{found.declaration} extern "C" __device__ int f$n_{found.symbol}(int x) {{ return {found.symbol}(x); }}'
        )
apply$n = Apply$n()
""",
        expression="apply$n(types.int32(x), lambda y: inner$n(y))",
    ),
)

_VARIABLE = """
class Variable$n(autolink.DeviceCallable):
    def __init__(self):
        self.variable = autolink.Variable("variable$n", $v)
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f$n", returns=types.int32)
    def __numba_cuda_link_key__(self, x):
        return KEY
    def __numba_cuda_link__(self, x):
        yield self.variable
        text = 'extern "C" __device__ int f$n(int x) { return x + sizeof(variable$n) + ((const char*)&variable$n)[x]; }'
        yield autolink.CUDASource(self.variable.declaration + text)
variable$n = Variable$n()
"""


def _variable(name: str, *variants: str) -> Iterable[Feature]:
    """What a variable is, of an object with and without a link key."""
    for key, where in (("None", ""), ("0", ", of a keyed object")):
        yield _code(name + where, _VARIABLE.replace("KEY", key), *variants, expression="variable$n(x)")


VARIABLES = (
    *_variable("the dtype of a variable", "np.int32", "np.int64"),
    *_variable("the shape of a variable", "np.int32, 4", "np.int32, 5"),
    *_variable("the space of a variable", "np.int32, 4", "np.int32, 4, space='constant'"),
)

FEATURES: tuple[Feature, ...] = (
    *VALUES, *NAMES, *PYTHON, *REGISTERED, *HOOKS, *SOURCES, *CXX_BY_NAME, *CXX_BY_NAME_AND_PYTHON, *VARIABLES,
    *FILES, *OPTIONS
)  # fmt: skip
