# SPDX-License-Identifier: BSD-2-Clause
"""What kernels do not have is underlined where it is made, and calls and operators where they are."""

from __future__ import annotations

import linecache
import math
import pickle
import sys
import textwrap

import numba.core.errors
import numba.cuda.core.errors
import numpy as np
import pytest
from front_ends import front_end_named
from numba import cuda
from numba.cuda import autolink

CONTAINERS, TEXT = "kernels have no lists, dictionaries and sets", "kernels make no text"
LIBRARY = "__device__ float f(float x) { return x; }\n#define SCALE 3\nnamespace n { constexpr int C = 3; }"
MADE = {  # kernels, with the diagnosis and what is underlined
    "with open('a') as f:\n        x[0] = 1": ("kernels have no with", "with open('a') as f:"),
    "x[0] = 1\n    yield x[0]": ("kernels have no generators", "yield x[0]"),
    "try:\n        x[0] = 2\n    except ValueError:\n        x[0] = 3": ("kernels catch no exceptions", "try:"),
    "try:\n        x[0] = 2\n    except ValueError as error:\n        x[0] = 3": (
        "kernels catch no exceptions",
        "try:",
    ),
    "y = [1.0, 2.0]\n    x[0] = y[0]": ("kernels ", "[1.0, 2.0]"),
    "y = []\n    y.append(x[0])": (CONTAINERS, "[]"),
    "y = []\n    if x[0] > 1:\n        for i in range(3):\n            y.append(x[i])": (CONTAINERS, "[]"),
    "y = [x[i] for i in range(3)]\n    x[0] = y[0]": (CONTAINERS, "[x[i] for i in range(3)]"),
    "d = {1: 2.0}\n    x[0] = d[1]": (CONTAINERS, "{1: 2.0}"),
    "d = {'a': 1.0}\n    e = d\n    x[0] = e['a']": (CONTAINERS, "{'a': 1.0}"),
    "d = {1, 2}\n    x[0] = 1 in d": ("kernels have no ", "{1, 2}"),
    "s = f'a{x[0]}'\n    print(s)": (TEXT, "f'a{x[0]}'"),
    "s = f'{x[0]:.2f}'\n    print(s)": (TEXT, "f'{x[0]:.2f}'"),
}


def failure(front_end, body, tmp_path, capsys, signature="void(float32[::1])", **names):
    """Return what is printed of the error of a kernel with *body*, from its diagnosis on."""
    own = front_end_named(front_end).cuda
    script = tmp_path / "kernel.py"
    script.write_text(f"@cuda.jit\ndef kernel(x):\n    {body}\n")
    linecache.checkcache()
    names = {"cuda": own, "math": math, "np": np, **names}
    exec(compile(script.read_text(), str(script), "exec"), names)
    with pytest.raises(Exception) as caught:
        autolink.build(names["kernel"], signature, cc=(9, 0))
    sys.excepthook(type(caught.value), caught.value, caught.value.__traceback__)
    return capsys.readouterr().err.rpartition("Error: ")[2]


def underlined(text):
    """Return the text above the carets of a message."""
    lines = text.splitlines()
    carets = next(line for line in lines if set(line.strip()) == {"^"})
    source = lines[lines.index(carets) - 1]
    return source[carets.index("^") : len(carets)]


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize("body", MADE)
def test_what_kernels_do_not_have_is_underlined_where_it_is_made(front_end, body, tmp_path, capsys):
    text = failure(front_end, body, tmp_path, capsys)
    diagnosis, made = MADE[body]
    assert text.startswith(diagnosis)
    assert underlined(text) == made
    line = 3 + body[: body.index(made)].count("\n")
    assert f"\n  at: {tmp_path / 'kernel.py'}:{line}" in text


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
def test_a_list_of_another_function_of_the_file_is_not_what_a_kernel_makes(front_end, tmp_path, capsys):
    body = "x[0] = VALUES['a']\n\ndef other():\n    return [1, 2], {}"
    text = failure(front_end, body, tmp_path, capsys, VALUES={"a": 1})
    assert underlined(text) == "VALUES"


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("x[0] = 1 + cuda.shfl_sync(\n        x[0],\n    )", "cuda.shfl_sync("),
        ("x[0] = (x[1]\n        + math.sqroot(x[2],\n              x[3]))", "math.sqroot"),
        ("x[0] = math.sqrt(x[0]) + 'a'", "math.sqrt(x[0]) + 'a'"),
        ("x[0] = abs(x[0]) + (x[1] & 3)", "x[1] & 3"),
        ("x[0] = abs(x[0]) + x", "x[0] = abs(x[0]) + x"),
        ("x[0] = lib.f(x[0]) * lib.SCALE", "lib.SCALE"),
        ("if lib.SCALE > x[0]: x[0] = lib.f(x[0])", "lib.SCALE"),
        ("x[0] = lib.f(x[0]) + lib.g", "lib.g"),
        ("x[0] = lib['n::C'] + lib.f(x[0])", "lib['n::C']"),
        ("x[0] = lib.f(x[0]) + lib.f", "lib.f"),
        ("n = 2\n    x[0] = lib[f'p<{n}>'](x[0])", "lib[f'p<{n}>']"),
    ],
)
def test_a_call_over_several_lines_and_an_operator_are_underlined_alone(front_end, body, shown, tmp_path, capsys):
    lib = autolink.cxx(LIBRARY)
    assert underlined(failure(front_end, body, tmp_path, capsys, lib=lib)) == shown


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows no columns")
@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize(
    ("launch", "shown"),
    [
        ("emulate[1, 1](np.zeros(3), 2)", "emulate[1, 1](np.zeros(3), 2)"),
        ("emulate[1, 1](np.zeros(3, np.int8))", "emulate[1, 1](np.zeros(3, np.int8))"),
        ("emulate[1, 5000](np.zeros(3))", "emulate[1, 5000]"),
        ("\\\n                emulate[1, 1](3)", 'autolink.build(kernel, "void(float32[::1])", cc=(9, 0)).\\'),
    ],
)
def test_of_chained_calls_the_one_that_fails_is_underlined(front_end, launch, shown, tmp_path, capsys):
    own, script = front_end_named(front_end).cuda, tmp_path / "chained.py"
    script.write_text(
        textwrap.dedent(f"""\
            @cuda.jit
            def kernel(x):
                x[0] = 1

            autolink.build(kernel, "void(float32[::1])", cc=(9, 0)).{launch}
        """)
    )
    linecache.checkcache()
    with pytest.raises(Exception) as caught:
        exec(compile(script.read_text(), str(script), "exec"), {"cuda": own, "np": np, "autolink": autolink})
    assert underlined(str(caught.value)) == shown


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize(
    ("body", "diagnosis", "remedy"),
    [
        ("i = cuda.grid()", "cuda.grid(ndim) takes 1 argument, got 0", "pass ndim, too"),
        ("cuda.syncthreads(1)", "cuda.syncthreads() takes 0 arguments, got 1", "pass no argument"),
        ("cuda.atomic.add(x, 1)", "cuda.atomic.add(ary, idx, val) takes 3 arguments, got 2", "pass val, too"),
        ("x[0] = math.sqrt(x[0], 2)", "math.sqrt(x, /) takes 1 argument, got 2", "pass no more than x"),
        ("x[0] = two(x[0])", "two(a, b) takes 2 arguments, got 1", "pass b, too"),
        (
            "x[0] = two(x[0], c=1)",
            "two(a, b) has no parameter 'c'",
            "pass the arguments by position, or by these names",
        ),
        (
            "for i in enumerate(x, start=1.5): pass",
            "the compiler has no rule for this statement: ",
            "write it with indices",
        ),
    ],
)
def test_a_wrong_number_of_arguments_names_the_parameters(front_end, body, diagnosis, remedy, tmp_path, capsys):
    two = front_end_named(front_end).cuda.jit(lambda a, b: a + b, device=True)
    text = failure(front_end, body, tmp_path, capsys, two=two)
    assert text.replace("sqrt(x)", "sqrt(x, /)").startswith(diagnosis)
    assert f"\n  what to do: {remedy}" in text


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
def test_an_error_that_the_front_end_raises_in_a_class_of_python_is_a_typing_error(front_end, tmp_path):
    def kernel(x):
        yield x[0]

    with pytest.raises(Exception) as caught:
        autolink.build(front_end_named(front_end).cuda.jit(kernel), "void(float32[::1])", cc=(9, 0))
    assert type(caught.value).__name__ == "TypingError"


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
def test_it_is_also_an_error_of_that_class(front_end):
    chosen = front_end_named(front_end).cuda

    def kernel(x):
        chosen.shared.array(4, np.float32, 3)[0] = x[0]

    with pytest.raises(ValueError, match=r"^Alignment must be a power of 2") as caught:
        autolink.build(chosen.jit(kernel), "void(float32[::1])", cc=(9, 0))
    assert type(caught.value).__name__ == "TypingError"
    copied = pickle.loads(pickle.dumps(caught.value))
    assert type(copied).__name__ == "TypingError" and str(copied) == str(caught.value)


def test_a_misspelt_option_is_placed_where_the_kernel_is_decorated():
    from numba import cuda

    @cuda.jit(fasthmath=True)
    def kernel(x):
        x[0] = 1

    with pytest.raises(TypeError) as caught:
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    text = str(caught.value)
    assert text.startswith("cuda.jit has no option 'fasthmath'; did you mean fastmath?\n  decorated at: ")
    assert underlined(text) == "cuda.jit(fasthmath=True)"


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
def test_a_recursion_with_other_types_is_underlined_at_its_call(front_end, tmp_path, capsys):
    body = "x[0] = fact(x[0])\n\n@cuda.jit(device=True)\ndef fact(n):\n    return 1 if n <= 1 else n * fact(n - 1)"
    text = failure(front_end, body, tmp_path, capsys)
    assert text.startswith("kernels have no recursion ")
    assert underlined(text) == "fact(n - 1)"
    assert "\n  what to do: write a loop" in text and "insert_unresolved_ref" not in text


@pytest.mark.parametrize("call", ["np.convolve(x, x)[0]", "np.median(x)", "np.interp(x[0], x, x)", "np.cumsum(x)[0]"])
def test_a_function_of_numpy_that_allocates_is_named(call, tmp_path, capsys):
    text = failure("numba-cuda", f"x[0] = {call}", tmp_path, capsys)
    name = call[len("np.") : call.index("(")]
    assert text.startswith(f"kernels have no numpy.{name}, which allocates memory\n")
    assert underlined(text) == call.removesuffix("[0]") and "Only accept" not in text


def test_an_array_that_numpy_makes_is_made_in_another_way(tmp_path, capsys):
    text = failure("numba-cuda", "y = np.zeros(4)", tmp_path, capsys)
    assert text.startswith("kernels do not allocate memory for arrays\n")
    assert "what to do: make the array with cuda.local.array" in text


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize(("arguments", "number"), [("x, x[0]", 1), ("x[0], x", 2)])
def test_an_array_where_overloads_of_cxx_take_numbers(front_end, arguments, number, tmp_path, capsys):
    lib = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std")
    text = failure(front_end, f"x[0] = lib.hypot({arguments})", tmp_path, capsys, lib=lib)
    first, *others = text.splitlines()
    assert first.endswith(f": argument {number} is an array, where C++ takes a number")
    assert "  what to do: pass one element of it, such as x[i]" in others
    assert "__half" not in text.partition("(double, double)")[0]


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize(
    ("source", "call", "number"),
    [
        ("__device__ float f(float x, float y) { return x; }", "f(x[0], '3')", 2),
        ("__device__ float f(float x, float y) { return x; }", "f('3, (4', x[0])", 1),
        (
            "__device__ float f(float x, double y) { return x; } __device__ float f(float x, float y) { return x; }",
            "f(x[0], '3')",
            2,
        ),
        ("#include <cuda/std/cmath>", "hypot(x[0], '3')", 2),
    ],
)
def test_a_string_where_cxx_takes_a_number(front_end, source, call, number, tmp_path, capsys):
    namespace = "cuda::std" if call.startswith("hypot") else ""
    text = failure(front_end, f"x[0] = lib.{call}", tmp_path, capsys, lib=autolink.cxx(source, namespace=namespace))
    assert text.partition("\n")[0].endswith(f": argument {number} is a string, where C++ takes a number")
    assert "\n  what to do: pass a number, not a string" in text


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
def test_a_pointer_that_cxx_returns_is_not_an_element(front_end, tmp_path, capsys):
    lib = autolink.cxx("__device__ float* of(float* x) { return x; }")
    text = failure(front_end, "x[0] = lib.of(x)", tmp_path, capsys, lib=lib)
    assert text.startswith("an element of array(float32, 1d, C) cannot be set to the pointer float32*\n")
    assert "\n  what to do: assign what it points to: x[i] = pointer[0]" in text


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
@pytest.mark.parametrize(
    ("argument", "element"),
    [
        ("x[i]", "x[i, j]: x[i] is a row of a 2d array"),
        ("x[0, :]", "such as x[0, i]"),
        ("x", "such as x[i, j]"),
        ("x[i + 1]", "x[i + 1, j]: x[i + 1] is a row of a 2d array"),
    ],
)
def test_the_element_of_an_array_is_written_with_its_own_name(front_end, argument, element, tmp_path, capsys):
    lib = autolink.cxx("__device__ float f(float x) { return x; }")
    statement = f"i = 0\n    x[0, 0] = lib.f({argument})"
    text = failure(front_end, statement, tmp_path, capsys, "void(float32[:, ::1])", lib=lib)
    assert text.partition("\n")[0].endswith("argument 1 is an array, where C++ takes a number")
    assert f"\n  what to do: pass one element of it, {element}\n" in text + "\n"


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
def test_an_index_past_the_end_of_a_tuple_says_what_to_do(front_end, tmp_path, capsys):
    text = failure(front_end, "t = (x[0], x[1])\n    x[0] = t[5]", tmp_path, capsys)
    assert text.startswith("tuple index out of range\n")
    assert "\n  what to do: give an index that the tuple has" in text


def test_a_typing_error_of_numba_is_caught_as_numba_raises_it_with_what_numba_said():
    @cuda.jit
    def kernel(x):
        cuda.shared.array(shape=x[0], dtype=np.float32)

    with pytest.raises(numba.core.errors.TypingError, match=r"^the shape of an array is a variable") as caught:
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    assert isinstance(caught.value, numba.cuda.core.errors.TypingError)
    assert "No implementation of function Function(<function shared.array" in str(caught.value)
    copied = pickle.loads(pickle.dumps(caught.value))
    assert type(copied) is type(caught.value) and str(copied) == str(caught.value)


def test_a_list_from_outside_the_kernel_is_to_be_a_tuple(tmp_path, capsys):
    text = failure("numba-cuda", "x[0] = WEIGHTS[0]", tmp_path, capsys, WEIGHTS=[1.0, 2.0])
    assert text.startswith(f"{CONTAINERS}\n")
    assert "\n  what to do: make a tuple or an array of it before the kernel" in text


@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
def test_the_elements_of_an_array_are_no_arguments(front_end, tmp_path, capsys):
    lib = autolink.cxx("__device__ float f(float x, float y) { return x; }")
    text = failure(front_end, "x[0] = lib.f(*x)", tmp_path, capsys, lib=lib)
    assert "*args in function call should be a tuple" in text
    assert "\n  what to do: pass a tuple, whose length is known, or write the arguments: f(x[0], x[1])" in text
