# SPDX-License-Identifier: BSD-2-Clause
"""Loops over tuples of called objects are unrolled where that means the same as Numba's loop, and else left to it."""

from __future__ import annotations

import random
import textwrap

import numpy as np
import pytest
from numba import cuda
from numba.cuda import autolink, literal_unroll, types
from numba.cuda.autolink.compiling import loop_copies, unrolled_loops
from numba.cuda.autolink.compiling.loop_copies import unroll
from numba.cuda.autolink.compiling.tuple_loops import UnknownFormError
from numba.cuda.compiler import run_frontend
from numba.cuda.core.errors import TypingError
from numba_ir_interpreter import interpret


class Plus(autolink.DeviceCallable):
    """Adds *number*; of *returns*, or of the type of its argument."""

    def __init__(self, number, returns=None):
        self.number = number
        self.returns = returns

    def __numba_cuda_call__(self, x):
        x = types.unliteral(x)
        returns = self.returns or x
        return autolink.Extern(f"plus_{self.number}_{x}", returns=returns)

    def __numba_cuda_link__(self, x):
        given = autolink.cxx_type(x)
        returns = autolink.cxx_type(self.returns or x)
        name = f"plus_{self.number}_{x}"
        return autolink.CUDASource(f'extern "C" __device__ {returns} {name}({given} x) {{ return x + {self.number}; }}')

    def __call__(self, x):
        return x + self.number


FUNCTIONS = Plus(1), Plus(20), Plus(300)
to_float = Plus(5, types.float32)
REVERSED = FUNCTIONS[::-1]
WITH_FLOAT = Plus(1), to_float, Plus(300)
SMALLER = Plus(1, types.int32), Plus(2, types.int32)
EMPTY = ()
NUMBERS = 1, 2.5
OFTEN = FUNCTIONS[:1] * 3


def made(body):
    """Return ``def kernel(x)`` with *body*, in which ``x`` is an array of int64."""
    scope = {**globals(), "literal_unroll": literal_unroll}
    exec("def kernel(x):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    "), scope)
    return scope["kernel"]


BODIES = {
    "a result is carried over": """
        y = x[0]
        for f in literal_unroll(FUNCTIONS):
            y = f(y)
        x[0] = y
    """,
    "a sum begins with a constant": """
        total = 0
        for f in literal_unroll(FUNCTIONS):
            total += f(x[0])
        x[0] = total
    """,
    "two values change places": """
        a = x[0]
        b = x[1]
        for f in literal_unroll(FUNCTIONS):
            a, b = b, f(a)
        x[0] = a
        x[1] = b
    """,
    "the value before last": """
        y = x[0]
        before = x[1]
        for f in literal_unroll(FUNCTIONS):
            before = y
            y = f(y)
        x[0] = before
    """,
    "a variable of the body is used after the loop": """
        for f in literal_unroll(FUNCTIONS):
            last = f(x[0])
        x[0] = last
    """,
    "break": """
        y = x[0]
        for f in literal_unroll(FUNCTIONS):
            y = f(y)
            if y > 20:
                break
        x[0] = y
    """,
    "continue": """
        y = x[0]
        for f in literal_unroll(FUNCTIONS):
            if y == 2:
                y = 1
                continue
            y = f(y)
        x[0] = y
    """,
    "else": """
        y = x[0]
        for f in literal_unroll(FUNCTIONS):
            y = f(y)
            if y == 2:
                break
        else:
            y = -1
        x[0] = y
    """,
    "a loop inside": """
        y = x[0]
        for f in literal_unroll(FUNCTIONS):
            for n in range(3):
                if n == y:
                    continue
                y += f(n)
        x[0] = y
    """,
    "inside a loop": """
        y = x[0]
        for n in range(3):
            for f in literal_unroll(FUNCTIONS):
                if y > 400:
                    continue
                y = f(y) + n
        x[0] = y
    """,
    "while inside and outside": """
        y = x[0]
        while y < 1000:
            for f in literal_unroll(FUNCTIONS):
                z = f(y)
                while y < z:
                    y += 100
        x[0] = y
    """,
    "two loops": """
        y = x[0]
        for f in literal_unroll(FUNCTIONS):
            y = f(y)
        for f in literal_unroll(REVERSED):
            y = f(y) * 2
        x[0] = y
    """,
    "return": """
        for f in literal_unroll(FUNCTIONS):
            if f(x[0]) == 20:
                return
            x[1] += 1
    """,
    "a conditional expression": """
        y = x[0]
        for f in literal_unroll(FUNCTIONS):
            y = f(y) if y < 100 else f(y + 1) if y < 200 else -y
        x[0] = y
    """,
    "attributes of the element": """
        y = x[0]
        for f in literal_unroll(FUNCTIONS):
            y = f(y) * f.number
        x[0] = y
    """,
    "the iterator and the element have other names": """
        y = x[0]
        it = literal_unroll(FUNCTIONS)
        for f in it:
            g = f
            y = g(y)
        x[0] = y
    """,
}


def some(first, *others):
    """Parameters of a test: *first*, and with ``--thorough`` also *others*."""
    return [first, *(pytest.param(each, marks=pytest.mark.thorough) for each in others if each != first)]


# Programs that are left to Numba, and how.
UNKNOWN = {
    "no elements": "for f in literal_unroll(EMPTY):\n    x[0] = f(x[0])",
    "elements that are not called objects": "for n in literal_unroll(NUMBERS):\n    x[0] += n",
    "an object many times": "for f in literal_unroll(OFTEN):\n    x[0] = f(x[0])",
    "a loop over indices": "fs = literal_unroll(FUNCTIONS)\nfor n in range(len(fs)):\n    x[0] = fs[n](x[0])",
    "a tuple made in the kernel": "for f in literal_unroll((FUNCTIONS[0], FUNCTIONS[1])):\n    x[0] = f(x[0])",
    "one inside another": """
        for f in literal_unroll(FUNCTIONS):
            for g in literal_unroll(REVERSED):
                x[0] = g(f(x[0]))
    """,
    "two loops, of which one is not known": """
        for f in literal_unroll(FUNCTIONS):
            x[0] = f(x[0])
        for n in literal_unroll(NUMBERS):
            x[0] += n
    """,
    "a variable has a value on some ways only": """
        for f in literal_unroll(FUNCTIONS):
            if x[0] > 3:
                y = f(x[0])
        x[0] = y
    """,
}
# Programs in which a variable has several types in the rounds.
TYPES_DIFFER = {
    "a result of another type": "y = x[0]\nfor f in literal_unroll(WITH_FLOAT):\n    y = f(y)\nx[0] = y",
    "it is read after the loop": "for f in literal_unroll(WITH_FLOAT):\n    y = f(x[0])\nx[0] = y",
    "a constant of another type": "y = 0\nfor f in literal_unroll(SMALLER):\n    x[1] = y\n    y = f(y)\nx[0] = y",
    "a float after an integer": "y = 0\nfor f in literal_unroll(FUNCTIONS):\n    y = f(x[0]) * 0.5\nx[0] = y",
}


@pytest.fixture
def unrolled(monkeypatch):
    """The names of the functions whose loops are unrolled, each time that they are."""
    names = []

    def noting(func_ir):
        between = unroll(func_ir)
        names.extend([func_ir.func_id.func_name] * (between is not None))
        return between

    monkeypatch.setattr(loop_copies, "unroll", noting)
    return names


@pytest.fixture
def refused(monkeypatch):
    """The variables whose types differ in the rounds of unrolled loops, each time that this is found."""
    found = []
    check = unrolled_loops.types_to_infer_again

    def checking(state):
        try:
            return check(state)
        except unrolled_loops.TypesDifferError:
            found.append(state.func_id.func_name)
            raise

    monkeypatch.setattr(unrolled_loops, "types_to_infer_again", checking)
    return found


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_copies_do_what_the_loop_does(body):
    kernel = made(body)
    func_ir = run_frontend(kernel)
    assert unroll(func_ir) is not None
    for start in ([0, 5], [1, -3], [2, 0], [19, 1], [500, 2]):
        expected, got = list(start), list(start)
        kernel(expected)
        interpret(func_ir, got)
        assert got == expected


def calls_of(kernel):
    """Return the calls of objects in *kernel*: the object, the types that it gets, and the line."""
    linked = autolink.build(kernel, "void(int64[::1])", cc=(9, 0))
    return {(site.callee.obj, site.argtypes, site.line) for site in linked.call_sites}


def without_unrolling(monkeypatch, function, *args):
    with monkeypatch.context() as patched:
        patched.setattr(unrolled_loops, "unroll_loops", lambda state: False)
        return function(*args)


@pytest.mark.parametrize("name", some("a sum begins with a constant", *BODIES))
def test_objects_get_the_types_that_they_get_in_numbas_loop(name, unrolled, refused, monkeypatch):
    kernel = made(BODIES[name])
    calls = calls_of(kernel)
    assert unrolled == ["kernel"]
    assert refused == []
    assert calls == without_unrolling(monkeypatch, calls_of, kernel)
    assert len(calls) >= 3


@pytest.mark.parametrize("name", some("a result of another type", *TYPES_DIFFER))
def test_numba_compiles_a_loop_whose_variables_have_several_types(name, unrolled, refused, monkeypatch):
    kernel = made(TYPES_DIFFER[name])
    calls = calls_of(kernel)
    assert unrolled == refused == ["kernel"]
    assert calls == without_unrolling(monkeypatch, calls_of, kernel)


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN)
def test_other_loops_are_left_as_they_are(body):
    func_ir = run_frontend(made(body))
    text = [str(each) for block in func_ir.blocks.values() for each in block.body]
    with pytest.raises(UnknownFormError):
        unroll(func_ir)
    assert [str(each) for block in func_ir.blocks.values() for each in block.body] == text


def test_a_function_without_such_a_loop_is_not_looked_at():
    assert unroll(run_frontend(made("for n in range(3):\n    x[n] = 1"))) is None


def test_errors_are_those_of_numbas_loop(monkeypatch):
    kernel = made("for f in literal_unroll(FUNCTIONS):\n    x[0] = f(x[0]) + undefined_name")
    with pytest.raises(TypingError) as ours:
        calls_of(kernel)
    with pytest.raises(TypingError) as numbas:
        without_unrolling(monkeypatch, calls_of, kernel)
    assert str(ours.value) == str(numbas.value)


def test_a_debug_build_keeps_the_loop(unrolled):
    kernel = made(BODIES["a result is carried over"])
    with pytest.warns(Warning, match="source"):
        autolink.build(kernel, "void(int64[::1])", cc=(9, 0), debug=True, opt=False)
    assert unrolled == []


def test_a_loop_in_a_device_function_is_unrolled(unrolled):
    called = cuda.jit(device=True)(made("for f in literal_unroll(FUNCTIONS):\n    x = f(x)\nreturn x"))

    def kernel(x):
        x[0] = called(x[0])

    assert {obj for obj, _, _ in calls_of(kernel)} == set(FUNCTIONS)
    assert unrolled == ["kernel"]  # the function that `made` makes


class Programs:
    """Random bodies with a loop over `FUNCTIONS`."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def expression(self, depth=0):
        choices = ["y", "z", "total", "x[0]", "x[1]", str(self.random.randrange(-3, 30))]
        if depth < 2:
            choices += [f"{self.expression(depth + 1)} {op} {self.expression(depth + 1)}" for op in "+-"]
        return self.random.choice(choices)

    def condition(self):
        return f"{self.expression()} {self.random.choice(['<', '>', '==', '!='])} {self.expression()}"

    def statements(self, in_tuple_loop, depth):
        lines = []
        for _ in range(self.random.randrange(1, 4)):
            lines += self.statement(in_tuple_loop, depth)
        return lines

    def statement(self, in_tuple_loop, depth):
        simple = [f"{self.random.choice('yz')} = {self.expression()}", f"total += {self.expression()}"]
        simple += [f"x[{self.random.randrange(2)}] = {self.expression()}"]
        if in_tuple_loop:
            simple += [f"{self.random.choice('yzw')} = f({self.expression()})"] * 4
        kind = self.random.choice(["simple"] * 4 + ["if", "for", "leave"] * (depth < 2))
        inner = lambda: ["    " + line for line in self.statements(in_tuple_loop, depth + 1)]  # noqa: E731
        if kind == "if":
            either = ["else:", *inner()] if self.random.random() < 0.5 else []
            return [f"if {self.condition()}:", *inner(), *either]
        if kind == "for":
            return [f"for n in range({self.random.randrange(1, 3)}):", *inner()]
        if kind == "leave" and in_tuple_loop and depth < 2:
            how = self.random.choice(["break", "continue", "continue", "return"])
            return [f"if {self.condition()}:", f"    {how}"]
        return [self.random.choice(simple)]

    def body(self):
        loop = ["    " + line for line in ["w = f(y)", *self.statements(True, 0)]]
        otherwise = ["else:", "    y += 1000"] if self.random.random() < 0.3 else []
        lines = ["for f in literal_unroll(FUNCTIONS):", *loop, *otherwise]
        if self.random.random() < 0.3:
            lines = ["for m in range(2):", *("    " + line for line in [*self.statements(False, 1), *lines])]
        after = ["x[0] = y + total", "x[1] += z"] + ["x[1] -= w"] * (self.random.random() < 0.3)
        return "\n".join(["y = x[0]", "z = x[1]", "total = 0", *lines, *self.statements(False, 0), *after])


@pytest.mark.parametrize("seed", range(4))
def test_the_copies_of_random_loops_do_what_the_loops_do(seed, request):
    unknown = 0
    number = 250 if request.config.getoption("--thorough") else 20
    for each in range(number):
        body = Programs(f"{seed}/{each}").body()
        kernel = made(body)
        func_ir = run_frontend(kernel)
        try:
            assert unroll(func_ir) is not None
        except UnknownFormError:
            unknown += 1
            continue
        for start in ([0, 5], [1, -3], [19, 1]):
            expected, got = list(start), list(start)
            kernel(expected)
            interpret(func_ir, got)
            assert got == expected, body
    assert unknown <= number // 5


@pytest.mark.gpu
@pytest.mark.parametrize("body", [*BODIES.values(), *TYPES_DIFFER.values()], ids=[*BODIES, *TYPES_DIFFER])
def test_a_gpu_computes_what_python_does(body):
    kernel = made(body)
    compiled = cuda.jit(kernel)
    for start in ([0, 5], [1, -3], [2, 0], [19, 1], [500, 2]):
        expected, got = np.array(start), np.array(start)
        kernel(expected)
        compiled[1, 1](got)
        assert got.tolist() == expected.tolist()
