# SPDX-License-Identifier: BSD-2-Clause
"""Of several calls in a statement, an error underlines the one that is refused, also of one object."""

from __future__ import annotations

import re
import sys

import pytest
from front_ends import MODULES, front_end_named

SOURCE = """
import numpy as np
from {package} import cuda
from numba.cuda import autolink
lib = autolink.cxx('''
    __device__ float f(float x, int n) {{ return x * n; }}
    struct Counter {{ int n; __device__ Counter() : n(0) {{}} private: __device__ int hidden() {{ return n; }} }};
''')
Counter = lib.type("Counter")
hidden = Counter.method("hidden")
@cuda.jit(device=True)
def inner(x):
    return lib.f(x, 2) + lib.f(x)
@cuda.jit
def kernel(x):
    c = cuda.local.array(1, Counter.dtype)
    {statement}
autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
"""
AT_CALL = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python knows no columns of calls")


@pytest.fixture(params=list(MODULES))
def refused(request, tmp_path):
    """Return the error of a statement in a kernel of each front end in turn, and the path of its file."""
    package = front_end_named(request.param).cuda.__name__.partition(".")[0]

    def refuse(statement):
        path = tmp_path / "kernels.py"
        path.write_text(SOURCE.format(package=package, statement=statement))
        with pytest.raises(Exception) as raised:
            exec(compile(path.read_text(), str(path), "exec"), {"__name__": "kernels"})
        return str(raised.value), path

    return refuse


def underlined(text):
    _, _, source, caret, *_ = text.splitlines()
    return source[caret.index("^") : caret.rindex("^") + 1]


@AT_CALL
@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ("x[0] = lib.f(x[0], 1) + lib.f(x[0])", "lib.f(x[0])"),
        ("x[0] = lib.f(x[0]) + lib.f(x[0], 1)", "lib.f(x[0])"),
        ("x[0] = lib.f(lib.f(x[0]), 1)", "lib.f(x[0])"),
        ("x[0] = lib.f(lib.f(x[0], 2))", "lib.f(lib.f(x[0], 2))"),
        ("y = 0 if x[0] > 1 else len('\u00fc'); x[0] = lib.f(x[0], 1) + lib.f(x[y])", "lib.f(x[y])"),
        ("Counter(c[0]); x[0] = hidden(c[0])", "hidden(c[0])"),
    ],
)
def test_the_refused_call_is_underlined(refused, statement, call):
    assert underlined(refused(statement)[0]) == call


def test_an_error_in_a_device_function_names_it_and_its_caller(refused):
    text, path = refused("x[0] = inner(x[0]) + lib.f(x[0], 1)")
    lines = path.read_text().splitlines()
    inner, kernel = (number for number, line in enumerate(lines, 1) if "lib.f(x" in line)
    assert f"\n  at: {path}:{inner} in inner\n" in text
    assert f"\n  called from: {path}:{kernel} in kernel" in text
    if sys.version_info >= (3, 11):
        assert underlined(text) == "lib.f(x)"


def test_a_kernel_in_one_line_is_named_after_another_one(refused):
    text, _ = refused("pass\ndef before(x): x[0] = lib.f(x[0], 1)\ndef kernel(x): x[0] = lib.f(x[0])")
    assert re.search(r"\n  at: .*:\d+ in kernel\n", text) and "called from" not in text


@pytest.mark.parametrize("name", ["float32", "types.float64"])
def test_a_type_of_the_other_front_end_has_a_remedy(tmp_path, name):
    front_end_named("numba-cuda-mlir")
    path = tmp_path / "kernels.py"
    source = SOURCE.replace("import autolink\n", "import autolink, float32, types\n", 1)
    path.write_text(source.format(package="numba_cuda_mlir", statement=f"cuda.shared.array(10, {name})"))
    with pytest.raises(Exception) as raised:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "kernels"})
    from numba.cuda.autolink.frontend_api.placed_messages import placed_error

    remedy = (
        "\n  what to do: kernels of numba-cuda-mlir take the types of NumPy, such as np.float32, and of numba_cuda_mlir"
    )
    assert remedy in placed_error(raised.value)
