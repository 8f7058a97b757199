# SPDX-License-Identifier: BSD-2-Clause
"""What kernels can depend on: values, names, Python code, hooks, CUDA C++ and what is registered with Numba."""

from __future__ import annotations

from typing import Any

from random_programs import Feature

# Python that runs while the kernel is compiled: it computes AMOUNT.
_OVERLOADED = """
BEFORE
def more$n(x): pass
@overload(more$n, target="cuda")
def ol_more$n(x):
    amount = AMOUNT
    return lambda x: x + amount
"""
# An object that generates C++.
_LINKED = """
BEFORE
class Linked$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f$n", returns=types.int32)
    def __numba_cuda_link__(self, x):
        return CODE
    KEY
linked$n = Linked$n()
"""
_TWO = """
class Pair$n(autolink.DeviceCallable):
    def __init__(self, value):
        self.value = value
    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"f$n_{self.value}", returns=types.int32)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code(f"f$n_{self.value}", self.value))
one$n, two$n = Pair$n(1), Pair$n(2)
"""


def _overload(name: str, amount: str, before: str = "", **others: Any) -> Feature:
    parts = _OVERLOADED.replace("BEFORE", before).replace("AMOUNT", amount)
    return Feature(name, "more$n(x)", parts, is_registered=True, **others)


def _linked(name: str, code: str, before: str = "", key: str = "", **others: Any) -> Feature:
    parts = _LINKED.replace("BEFORE", before).replace("CODE", code)
    return Feature(name, "linked$n(x)", parts.replace("KEY", key), **others)


def _keyed(name: str, amount: str, before: str = "", **others: Any) -> Feature:
    key = "def __numba_cuda_link_key__(self, x): return 'same'"
    return _linked(name, f'autolink.CUDASource(code("f$n", {amount}))', before, key, **others)


def _meaning(name: str, expression: str, parts: str, *variants: str) -> Feature:
    """Which of two objects an expression means."""
    both = f"{expression} + 0 * one$n(x) + 0 * two$n(x)"
    return Feature(name, both, _TWO + parts, variants or ("one$n", "two$n"))


# An object whose C++ calls the Python function that it gets.
_USES = """
class Use$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, function, x):
        found = autolink.device_function(function, x)
        return autolink.Extern("use_" + found.symbol, returns=found.returns)
    def __numba_cuda_link__(self, function, x):
        found = autolink.device_function(function, x)
        yield found
        call = f'{autolink.cxx_type(found.returns)} use_{found.symbol}(int x) {{ return {found.symbol}(x); }}'
        yield autolink.CUDASource(f'{found.declaration} extern "C" __device__ {call}')
    def __numba_cuda_link_key__(self, function, x):
        return 0
use$n = Use$n()
function$n = cuda.jit(device=True)(lambda x: x + $v)
"""
_OF_CXX = """
twice$n = autolink.cxx("template <class T, class F> __device__ T twice(T x, F f) { return f(f(x)); }").twice
class Twice$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        f = autolink.device_function(lambda x: base(x) * $v, x)
        return lambda x: twice$n(x, f)
by_name$n = Twice$n()
"""
_LITERAL = """
class Of$n(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x, by$v):
        return autolink.Extern("f$n", returns=types.int32, args=["x"])
    def __numba_cuda_link__(self, x, by):
        return autolink.CUDASource(code("f$n", getattr(by, "literal_value", 55)))
    def __numba_cuda_link_key__(self, x, by):
        return 0
of$n = Of$n()
"""
_DECLARE = """
def more$n(x): pass
def declare$n(f):
    @overload(more$n, target="cuda")
    def ol_more$n(x):
        return lambda x: f(x)
"""
_SOURCE = 'extern "C" __device__ int f$n(int x) { return x + AMOUNT; }'
_INCLUDES = f"autolink.CUDASource('#include \"h$n.h\"\\n{_SOURCE}', include_paths=[HERE])"
_HELPER = {"helper$n.py": "N = $v\ndef amount(): return N\n"}
_PACKAGE = {"pkg$n/__init__.py": "N = 3\n", "pkg$n/sub.py": "N = $v\n"}

FEATURES = (
    # Values; test_kernel_values.py has others
    Feature("a property of an object", "x + reads$n.amount$n",
            "class Reads$n(autolink.DeviceCallable):\n    def __init__(self, value): self.value = value\n"
            "    @property\n    def amount$n(self): return self.value\nreads$n = Reads$n($v)"),
    # Names
    Feature("a global", "x + N$n", "N$n = $v"),
    Feature("a global of a device function", "f$n(x)",
           "N$n = $v\n@cuda.jit(device=True)\ndef f$n(x): return x + N$n"),
    Feature("a closure", "f$n(x)", "def make$n(n):\n    @cuda.jit(device=True)\n    def f(x): return x + n\n"
           "    return f\nf$n = make$n($v)"),
    Feature("a device function", "f$n(x)", "@cuda.jit(device=True)\ndef f$n(x): return x + $v"),
    Feature("an attribute of a module", "x + helper$n.N", "import helper$n", files=_HELPER),
    Feature("a module of a package", "x + pkg$n.sub.N", "import pkg$n.sub", files=_PACKAGE),
    Feature("a named tuple of constants", "x + P$n.a", "P$n = collections.namedtuple('P$n', 'a b')(*$v)", ("(1, 2)",
           "(2, 1)")),
    Feature("an enumeration", "x + E$n.A.value", "class E$n(enum.IntEnum):\n    A = $v"),
    Feature("an alias's array", "x + T$n[0]", "T$n = np.array([$v, 2, 3])"),
    _meaning("an alias", "f$n(x)", "f$n = $v"),
    _meaning("the order of a tuple", "t$n[0](x)", "t$n = $v", "(one$n, two$n)", "(two$n, one$n)"),
    _meaning("an attribute of an object", "h$n.f(x)", "h$n = Pair$n(3)\nh$n.f = $v"),
    _meaning("the field of a named tuple", "t$n.f(x)", "t$n = collections.namedtuple('t', 'f g')($v)", "one$n, two$n",
           "two$n, one$n"),
    Feature("the module of a name", "x + N$n", "", ("helper$n", "other$n"), modules="from $v import N as N$n\n",
           files={"helper$n.py": "N = 1\n", "other$n.py": "N = 2\n"}),
    *(Feature(name, "f$n(x)", "import helper$n\n@cuda.jit(device=True)\ndef f$n(x): return x + helper$n.N",
              files={"n$n": "$v", "helper$n.py": "import os, sys, types\ndef read(self=None):\n"
                     "    return int(open(os.path.join(os.path.dirname(__file__), 'n$n')).read())\n" + text})
      for name, text in (
          ("an attribute that a module makes when asked",
           "def __getattr__(name):\n    if name == 'N': return read()\n    raise AttributeError(name)\n"),
          ("a property of a module",
           "class Module(types.ModuleType): N = property(read)\nsys.modules[__name__].__class__ = Module\n"),
      )),
    Feature("an option", "int(x / np.float32(3))", "options.update($v)", ("fastmath=True", "fastmath=False")),
    # Python that runs while the kernel is compiled
    _overload("an overload", "$v"),
    _overload("a global of an overload", "N$n", "N$n = $v"),
    _overload("a function that an overload calls", "h$n()", "def h$n(): return $v"),
    _overload("a default in a class body", "C$n().n", "N$n = $v\nclass C$n:\n    n = N$n"),
    _overload("a class body in an overload's helper", "h$n()",
           "N$n = $v\ndef h$n():\n    class C:\n        n = N$n\n    return C.n"),
    _overload("a method of a held object's class", "held$n[0].n()",
           "class H$n:\n    def n(self): return $v\nheld$n = [H$n()]"),
    _overload("a class in a dict", "table$n['a'].n", "class H$n:\n    n = $v\ntable$n = {'a': H$n}"),
    _overload("a base class's method", "B$n().n()", "class A$n:\n    def n(self): return $v\nclass B$n(A$n): pass"),
    _overload("a metaclass", "B$n.n", "class M$n(type):\n    n = $v\nclass B$n(metaclass=M$n): pass"),
    _overload("a descriptor", "B$n().n",
           "class D$n:\n    def __get__(self, obj, cls): return $v\nclass B$n:\n    n = D$n()"),
    _overload("a decorated helper", "h$n()",
           "def by$n(n):\n    return lambda f: functools.wraps(f)(lambda: n)\n@by$n($v)\ndef h$n(): pass"),
    _overload("a memoised helper", "h$n()", "N$n = $v\n@functools.lru_cache\ndef h$n(): return N$n",
           is_cached=False),
    _overload("what a memoised helper remembers", "h$n()",
           "N$n = $v\n@functools.lru_cache\ndef h$n(): return N$n\nh$n()", is_cached=False),
    _overload("a memo", "m$n.get(1)", "m$n = {}\nm$n[1] = $v"),
    _overload("the order of annotations", "ord(list(h$n.__annotations__)[0])", "def h$n($v): pass",
           variants=("a: int, b: int", "b: int, a: int")),
    _overload("a docstring", "len(h$n.__doc__)", "def h$n():\n    $v", variants=("'a'", "'ab'")),
    _overload("the order of an enumeration", "list(E$n)[0].value", "E$n = enum.Enum('E$n', $v)",
           variants=("{'A': 1, 'B': 2}", "{'B': 2, 'A': 1}")),
    _overload("an imported module's function", "h$n()", "from helper$n import amount as h$n", files=_HELPER),
    _overload("an import in an overload", "h$n()", "def h$n():\n    import helper$n\n    return helper$n.amount()",
           files=_HELPER),
    _overload("a relative import", "h$n()", "from pkg$n.mod import amount as h$n", files={**_PACKAGE,
           "pkg$n/mod.py": "def amount():\n    from .sub import N\n    return N\n"}),
    _overload("a relative import at the top", "h$n()", "from pkg$n.mod import amount as h$n", files={**_PACKAGE,
           "pkg$n/mod.py": "from . import sub\ndef amount(): return sub.N\n"}),
    # Beside a feature with a module, it is not cached.
    _overload("a getattr of a text", "getattr(C$n, 'n')", "class C$n:\n    n = $v", is_cached=False),
    _overload("a generator's constant", "sum(each for each in (1, N$n))", "N$n = $v"),
    _overload("a keyword default", "h$n()", "def h$n(*, n=$v): return n"),
    _overload("a registered class", "int(isinstance(1j, A$n))", "import abc\nclass A$n(abc.ABC): pass\n$v",
           variants=("pass", "A$n.register(complex)")),
    _overload("what is set on a type", "own$n.amount",
              "class Own$n(types.Type): pass\nown$n = Own$n('Own$n')\nown$n.amount = $v"),
    Feature("an object in the closure of an overload", "more$n(x) + 0 * one$n(x) + 0 * two$n(x)",
            _TWO + _DECLARE + "declare$n($v)", ("one$n", "two$n"), is_registered=True),
    Feature("a file that only an overload names", "more$n(x)",
            _DECLARE + "declare$n(cuda.declare_device('f$n', 'int32(int32)', abi='c', link=HERE + '/f$n.cu'))",
            files={"f$n.cu": _SOURCE.replace("AMOUNT", "$v")}, is_registered=True),
    Feature("an intrinsic", "raw$n(x)",
           "@intrinsic\ndef raw$n(typing, x):\n"
           "    def codegen(context, builder, signature, args):\n"
           "        return builder.add(args[0], context.get_constant(types.int32, $v))\n"
           "    return types.int32(x), codegen", is_registered=True),
    # Hooks
    _linked("what a hook reads from a file", "autolink.CUDASource(code('f$n', open(HERE + '/n$n').read()))",
           files={"n$n": "$v"}),
    _linked("a template beside the module", "autolink.CUDASource((pathlib.Path(HERE) / 't$n.cu').read_text())",
           files={"t$n.cu": _SOURCE.replace("AMOUNT", "$v")}),
    _linked("a header", _INCLUDES, files={"h$n.h": "#define AMOUNT $v\n"}),
    _linked("a header of a header", _INCLUDES, files={"h$n.h": '#include "i$n.h"\n', "i$n.h": "#define AMOUNT $v\n"}),
    _linked("which header is found first", _INCLUDES.replace("[HERE]", "[HERE + '/a', HERE + '/b']"), variants=("a",
           "c"), files={"b/h$n.h": "#define AMOUNT 1\n", "$v/h$n.h": "#define AMOUNT 2\n"}),
    _linked("a macro", "autolink.CUDASource(code('f$n', 'N'), defines={'N': $v})"),
    _linked("a hook's helper module", "autolink.CUDASource(code('f$n', helper$n.amount()))", "import helper$n",
           files=_HELPER),
    _linked("a dynamic import in a hook", "autolink.CUDASource(code('f$n', __import__('helper$n').N))",
           files=_HELPER),
    _linked("a bytes template", "cuda.PTXSource(PTX$n)",
           'PTX$n = b"""\n.version 7.8\n.target sm_80\n'
           '.address_size 64\n' ".visible .func (.param .b32 r) f$n(.param .b32 x) {\n.reg .b32 %a<2>;\n"
           "ld.param.b32 %a0, [x];\n" 'add.s32 %a1, %a0, $v;\nst.param.b32 [r], %a1;\nret;\n}\n"""'),
    _keyed("a hook beside the same key", "$v"),
    _keyed("a global beside the same key", "N$n", "N$n = $v"),
    _keyed("a text that is executed beside the same key", "made$n()", "exec('def made$n(): return $v')"),
    _linked("a class attribute beside the same key", "autolink.CUDASource(code('f$n', self.size))", "",
            "size = $v\n    def __numba_cuda_link_key__(self, x): return 'same'"),
    _linked("a link key", "autolink.CUDASource(code('f$n', N$n))", "N$n = $v",
           "def __numba_cuda_link_key__(self, x): return N$n"),
    Feature("a declared function", "f$n(x)",
           'f$n = cuda.declare_device("f$n", "int32(int32)", abi="c", link=cuda.CUSource(code("f$n", $v)))'),
    Feature("a body in Python", "b$n(x)",
           "class B$n(autolink.DeviceCallable):\n    def __numba_cuda_call__(self, x):\n"
           "        return lambda x: x + $v\nb$n = B$n()"),
    _meaning("an object that a body in Python calls", "outer$n(x)",
             "hidden$n = [$v]\nclass Outer$n(autolink.DeviceCallable):\n    def __numba_cuda_call__(self, x):\n"
             "        inner = hidden$n[0]\n        return lambda x: inner(x)\nouter$n = Outer$n()"),
    Feature("which arguments are literals", "of$n(x, 7)", _LITERAL, ("", ": types.Literal")),
    Feature("a Python function that C++ calls, an argument", "use$n(function$n, x)", _USES),
    Feature("a Python function that C++ by name calls", "by_name$n(x)", _OF_CXX),
    Feature("a function of C++ by name", "f$n(x)",
            "f$n = autolink.cxx('template <int N> __device__ int f(int x) { return x + N; }')['f<$v>']"),
    _linked("a number of a library of C++ beside the same key",
            "autolink.CUDASource(code('f$n', self.library.eval('N')))", "",
            "library = autolink.cxx(HERE + '/h$n.h')\n    def __numba_cuda_link_key__(self, x): return 'same'",
            files={"h$n.h": "enum { N = $v };"}),
    Feature("the length of an object", "x + len(b$n)",
           "class B$n(autolink.DeviceCallable):\n    def __len__(self): return $v\nb$n = B$n()"),
    Feature("a method's function", "b$n.f(x)",
           "class B$n(autolink.DeviceCallable):\n    @autolink.device_method\n"
           "    def f(self, x): return autolink.Extern('f$n_$v', returns=types.int32)\n"
           "    def __numba_cuda_link__(self, x):\n"
           "        return autolink.CUDASource(code('f$n_1', 1) + code('f$n_2', 2))\nb$n = B$n()"),
)  # fmt: skip
