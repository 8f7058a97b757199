# SPDX-License-Identifier: BSD-2-Clause
"""What kernel authors meet most says what to do, at the line of the mistake."""

from __future__ import annotations

import linecache
import math
import re
import sys

import numba
import numpy as np
import pytest
from autolink_support import build
from front_ends import front_end_named
from numba import cuda


def failing(function):
    with pytest.raises(Exception) as caught:
        build(cuda.jit(function), "void(float32[:, ::1])")
    return caught.value


def printed(error, capsys):
    sys.excepthook(type(error), error, error.__traceback__)
    return capsys.readouterr().err


def test_a_function_of_math_that_is_not_imported(capsys):
    def kernel(x):
        x[0, 0] = sqrt(x[0, 0])  # noqa: F821

    assert "\n  what to do: import math, and call math.sqrt" in printed(failing(kernel), capsys)


def test_linear_algebra_of_numpy(capsys):
    def kernel(x):
        x[0, 0] = np.linalg.norm(x)

    text = printed(failing(kernel), capsys)
    assert "Error: kernels have no linear algebra of NumPy\n  at: " in text
    assert "what to do: write it with loops" in text


UNSUPPORTED = {
    "print(f'{x[0, 0]}')": "print values, as in print('x:', x[i])",
    "try: x[0, 0] = 1\n    except Exception: pass": "write a condition",
    "yield x[0, 0]": "write a loop, and the values to an array",
    "with x: x[0, 0] = 1": "write its statements without it",
    "import math": "import it before the kernel",
    "global G; G = 1": "write the value to an array",
    "class Q: pass": "define it before the kernel",
}


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize("statement", UNSUPPORTED)
def test_a_statement_that_kernels_do_not_have(front_end, statement, tmp_path, capsys):
    script = tmp_path / "kernel.py"
    script.write_text(f"def kernel(x):\n    {statement}\n")
    names = {}
    exec(compile(script.read_text(), str(script), "exec"), names)
    with pytest.raises(Exception) as caught:
        build(front_end_named(front_end).cuda.jit(names["kernel"]), "void(float32[:, ::1])")
    text = printed(caught.value, capsys)
    assert "kernels " in text and f"\n  at: {script}:" in text, text
    assert UNSUPPORTED[statement] in text and "did you mean" not in text
    assert "site-packages" not in text and "numba_cuda/numba/cuda/autolink" not in text


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize("statement", ["x[0] = 1", "y = x[0]"])
def test_a_number_in_place_of_an_array(front_end, capsys, statement):
    names = {}
    exec(f"def kernel(x):\n    {statement}", names)
    with pytest.raises(Exception) as caught:
        build(front_end_named(front_end).cuda.jit(names["kernel"]), "void(int64)")
    assert "what to do: pass an array: numbers and None have no elements" in printed(caught.value, capsys)


OTHER_COMPILER = "write it with indices, numbers and operators, or compile the kernel with numba-cuda"


@pytest.mark.parametrize(
    ("statement", "first", "todo"),
    [
        ("y = [1.0, 2.0]", "kernels have no lists", "make an array, with cuda.local.array or before the kernel"),
        ("y = (1, 2) == (1, x[0, 0])", "kernels of numba-cuda-mlir do not have the operator == ", OTHER_COMPILER),
        ("y = np.full(4, 1.0)[0]", "kernels of numba-cuda-mlir do not make an array with full()", "make it with cuda."),
        ("y = x.sort()", "kernels of numba-cuda-mlir do not have this method of arrays", OTHER_COMPILER),
        ("y = np.cbrt(x[0, 0])", "kernels of numba-cuda-mlir have no cbrt() for these", OTHER_COMPILER),
        ("y = x.T[0, 0]", "kernels of numba-cuda-mlir have no attribute 'T' of array(", OTHER_COMPILER),
        ("y = sum(x[0])", "numba-cuda-mlir cannot compile a function of Python or NumPy", OTHER_COMPILER),
        ("y = np.linspace(0, 1, 4)[0]", "numba-cuda-mlir cannot compile a function of Python", OTHER_COMPILER),
    ],
)
def test_what_numba_cuda_mlir_calls_a_bug_is_at_its_statement(tmp_path, capsys, statement, first, todo):
    mlir = front_end_named("numba-cuda-mlir").cuda
    script = tmp_path / "kernel.py"
    script.write_text(f"def kernel(x):\n    {statement}\n    x[0, 0] = 1 if y else 2\n")
    names = {"np": np}
    exec(compile(script.read_text(), str(script), "exec"), names)
    with pytest.raises(Exception) as caught:
        build(mlir.jit(names["kernel"]), "void(float32[:, ::1])")
    assert capsys.readouterr().out == ""
    text = printed(caught.value, capsys)
    assert text.startswith("Traceback (most recent call last):") and f"Error: {first}" in text
    assert f"\n  at: {script}:2" in text and f"\n      {statement}\n      " in text
    assert f"\n  what to do: {todo}" in text
    assert len(text.splitlines()) <= 12


class Config:
    n = 3


MISTAKES = {  # statements, with what is said of each
    "x.sort()": ("kernels ", ""),
    "x[0, 0] = sorted(x)[0]": ("", "in a loop|as a loop"),
    "x[0, 0] = any(x)": ("kernels have no any() of Python", "write it as a loop"),
    "x[0, 0] = reversed(x)": ("kernels have no reversed() of Python", "write it as a loop"),
    "x[0, 0] = math.comb(5, 3)": ("kernels have no math.comb", "call a function of C"),
    "x[0, 0] = math.sqroot(5)": ("module 'math' has no attribute 'sqroot'; did you mean sqrt?", ""),
    "x[0, 0] = np.random.rand()": ("kernels have no numpy.random.rand", "draw numbers with numba.cuda.random"),
    "x[0, 0] = max(y for y in (1, 2))": ("kernels have no generator expressions", "write a loop"),
    "del x": ("kernels have no del", "leave out the statement del x"),
    "x[0, 0] = cuda.local.array(4)[0]": ("the array has no dtype", "pass it after the shape"),
    "x[0, 0] = cuda.local.array((4, 4))[0, 0]": ("the array has no dtype", "pass it after the shape"),
    "cuda.atomic.add(x[0, 0], 0, 1)": ("a number is passed where an array belongs", "pass the array, and the index"),
    "x[0, 0] = None": ("an element of array(float32, 2d, C) cannot be set to none", "assign a number"),
    "x[0, 0] = 'a'": ("an element of array(float32, 2d, C) cannot be set to 'a'", "assign a number"),
    "x['a', 0] = 1": ("Unsupported array index type 'a'", "index with an integer, or with a slice"),
    "x[0, 0, 0] = 1": (
        "cannot index array(float32, 2d, C) with 3 indices",
        "give one index for each dimension, 2 here",
    ),
    "x[0, 0] = config.n": (
        "kernels cannot use 'config', an object of the Python class Config",
        "take its values before the kernel",
    ),
    "x[0, 0] = x[0, 0].hex()": ("Unknown attribute 'hex' of type float32", "compute it with operators and math"),
    "x[0, 0] = x[0, 0] + 'a'": ("No implementation of add(float32, 'a')", "use numbers: kernels have text in print"),
    "x[0, 0] = x[0, 0] + (1, 2)": ("No implementation of add(float32, (1, 2))", "use the elements of a tuple"),
    "x[0, 0] = None + x[0, 0]": ("No implementation of add(none, float32)", "use numbers: a value is None here"),
    "x[0, 0] = x[0, 0] & 1": ("No implementation of and_(float32, 1)", "convert to integers with int"),
    "print('%f' % x[0, 0])": ("kernels make no text", "print values, as in print"),
    "if x: x[0, 0] = 1": ("a condition cannot be array(float32, 2d, C)", "test an element, as in x.i. > 0"),
    "if not x: x[0, 0] = 1": ("a condition cannot be array(float32, 2d, C)", "test an element, as in x.i. > 0"),
    "i = cuda.grid(4)": ("a grid has 1, 2 or 3 dimensions", "write cuda.grid"),
    "i = cuda.grid(x.size)": ("", "1, 2 or 3 as a constant|write a number, or a global variable"),
    "i, j, k = cuda.grid(2)": ("2 values are assigned to 3 variables", "give as many variables as there are values"),
    "for i in 3: x[i, 0] = 1": ("3 has no elements to loop over", "loop over range"),
    "for i in range(): x[i, 0] = 1": ("range() takes 1 to 3 arguments, got 0", "pass the end"),
    "x[0, 0] = len(x[0, 0])": ("No implementation of len(float32)", "pass an array or a tuple"),
    "x(0)": ("array(float32, 2d, C) is not a function", "an element is in brackets"),
    "i = cuda.threadIdx()": ("Dim3 is not a function", "write one of its dimensions"),
    "i = cuda.threadIdx.w": ("Unknown attribute 'w' of type Dim3", "write x, y or z"),
    "x[cuda.threadIdx, 0] = 1": ("Unsupported array index type", "cuda.threadIdx.x|with an integer"),
    "x.foo = 3": ("kernels assign to no attribute of array(float32, 2d, C)", "pass a new value as an argument"),
    "x.append(1)": ("Unknown attribute 'append' of type array", "write it with elements"),
    "x[0, 0] = y; y = 1": ("the variable 'y' is used before it is assigned", "assign it first"),
    "y = open('a')": ("kernels have no open() of Python", "call it before the kernel"),
    "y = cuda.local.array(3, float)": ("the dtype of an array is not one of", "give the dtype as a NumPy type"),
    "for v in map(abs, x[0]): x[0, 0] = v": (
        "kernels have no generators: no yield, map() and filter()",
        "write a loop",
    ),
    "FUNCTIONS[0][1, 1](x)": ("kernels launch no kernels: ", "launch both from Python"),
    "cuda.atomic.xor(x, (0, 0), 1)": ("No implementation of xor(array(float32, 2d, C)", "pass an array of integers"),
    "x[0, 0] = 1 if isinstance(x[0, 0], np.ndarray) else 2": (
        "kernels have no numpy.ndarray",
        "write it in the kernel",
    ),
    "cuda.atomic.plus(x, (0, 0), 1)": (
        "type object 'atomic' has no attribute 'plus'",
        "use one of its names: add, and_",
    ),
    "x[0, 0] = math.max(1, 2)": ("module 'math' has no attribute 'max'", "write max"),
    "x[0, 0] = np.float32(x)": ("No implementation of this function(array(float32, 2d, C))", "give it elements"),
    "x[0, 0] = float((1, 2))": ("float() takes one number", "give it an element, such as"),
    "y = dict()": ("kernels have no lists, dictionaries and sets", "make an array"),
    "y = {i for i in range(3)}": ("kernels have no lists, dictionaries and sets", "make an array"),
    "y = '{}'.format(x[0, 0])": ("kernels make no text", "print values, as in print"),
    "yield from x": ("kernels have no generators", "write a loop"),
    "raise ValueError('a', x[0, 0])": ("an exception in a kernel has constant arguments", "raise it with constants"),
    "raise 'a'": ("Directly raising a string constant", "raise an exception with the text"),
    "y = cuda.shfl_sync(1, x, 1)": ("No implementation of shfl_sync(1, array(float32, 2d, C), 1)", "give it elements"),
    "y = cuda.local.array(-1, np.float32)": (
        "an array has a shape that is not positive",
        "give it a shape of positive",
    ),
    "y = cuda.shared.array(4, np.int8, alignment=3)": (
        "Alignment must be a power of 2",
        "give one such as alignment=16",
    ),
    "y = cuda.fma(1, 2)": ("cuda.fma(a, b, c) takes 3 arguments, got 2", "pass c, too"),
    "print(x[0, 0], sep='')": ("print() takes no keyword arguments in kernels", "print values, as in print"),
    "for f in FUNCTIONS: x[0, 0] = f(1.0)": (
        "kernels do not loop over a tuple of device functions",
        "call each in a statement of its own",
    ),
    "for f in other_unroll(FUNCTIONS): x[0, 0] = f(1.0)": (
        "literal_unroll is imported from another package than the kernel's cuda",
        "from numba.cuda import literal_unroll",
    ),
}


@pytest.mark.filterwarnings("ignore:First-class function")
@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize("statement", MISTAKES)
def test_a_mistake_has_a_diagnosis_its_statement_and_what_to_do(front_end, statement, tmp_path, capsys):
    own = front_end_named(front_end).cuda
    script = tmp_path / "kernel.py"
    script.write_text(f"def kernel(x):\n    {statement.replace('other_unroll', 'literal_unroll')}\n")
    functions = own.jit(lambda x: x + 1, device=True), own.jit(lambda x: x + 2, device=True)
    names = {
        "np": np,
        "math": math,
        "cuda": own,
        "FUNCTIONS": functions,
        "config": Config(),
        "literal_unroll": numba.literal_unroll,
    }
    exec(compile(script.read_text(), str(script), "exec"), names)
    with pytest.raises(Exception) as caught:
        build(own.jit(names["kernel"]), "void(float32[:, ::1])")
    text = printed(caught.value, capsys)
    first, remedy = MISTAKES[statement]
    assert f"Error: {first}" in text and f"\n  at: {script}:2" in text and "^^" in text
    assert "Literal[" not in text
    assert not remedy or re.search(f"\n  what to do: .*(?:{remedy})", text)


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize(
    ("given", "first"),
    [
        ("class kernel: pass", "cuda.jit makes a kernel of a function, got the class kernel"),
        (
            "def kernel(x, y=3): pass",
            "the signature has another number of types than the function has parameters: 1 and",
        ),
    ],
)
def test_what_is_not_a_kernel_is_shown_without_frames_of_the_front_end(front_end, given, first, tmp_path, capsys):
    script = tmp_path / "decorated.py"
    script.write_text(f"@cuda.jit\n{given}\n\nbuild(kernel, 'void(float32[::1])')\n")
    linecache.checkcache()
    with pytest.raises(Exception) as caught:
        exec(
            compile(script.read_text(), str(script), "exec"), {"cuda": front_end_named(front_end).cuda, "build": build}
        )
    text = printed(caught.value, capsys)
    assert f"Error: {first}" in text and "\n  what to do: " in text
    assert re.search(rf"\n  at: {re.escape(str(script))}:[12]\n", text)  # Python 3.10 is at the class
    assert "site-packages" not in text and "Did you mean" not in text
