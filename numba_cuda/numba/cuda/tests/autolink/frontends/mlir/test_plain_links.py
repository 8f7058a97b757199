# SPDX-License-Identifier: BSD-2-Clause
"""What numba-cuda-mlir links without this project: its errors are printed with the call and what to do."""

from __future__ import annotations

import sys

import pytest
from numba.cuda import autolink

cuda = pytest.importorskip("numba_cuda_mlir.cuda", reason="needs numba-cuda-mlir")


@pytest.mark.parametrize(
    ("link", "diagnosis"),
    [
        ("nosuch.cu", "link= of declare_device('absent'): nosuch.cu not found"),
        (None, "'absent' is called but nothing that is linked defines it"),
    ],
)
def test_what_a_declared_function_lacks(link, diagnosis, capsys):
    declared = cuda.declare_device("absent", "float32(float32)", link=link)

    @cuda.jit
    def kernel(x):
        x[0] = declared(x[0])

    line = sys._getframe().f_lineno - 2
    with pytest.raises(Exception) as caught:
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    sys.excepthook(type(caught.value), caught.value, caught.value.__traceback__)
    text = capsys.readouterr().err
    assert f"Error: {diagnosis}\n  called at: {__file__}:{line} in kernel\n      x[0] = declared(x[0])\n" in text
    assert "\n  what to do: " in text


def test_a_file_of_a_kernel_that_is_not_there(capsys):
    @cuda.jit(link=["nosuch.cu"])
    def kernel(x):
        x[0] = 1

    line = sys._getframe().f_lineno - 4
    with pytest.raises(FileNotFoundError) as caught:
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    sys.excepthook(type(caught.value), caught.value, caught.value.__traceback__)
    text = capsys.readouterr().err
    assert "Error: link= of kernel 'kernel': nosuch.cu not found\n" in text
    assert f'\n  defined at: {__file__}:{line}\n      @cuda.jit(link=["nosuch.cu"])\n' in text
    assert "\n  what to do: relative paths begin at the working directory" in text


def test_a_function_that_nothing_defines_and_a_device_function_calls():
    declared = cuda.declare_device("absent", "float32(float32)")
    function = cuda.jit(device=True)(lambda x: declared(x))

    @cuda.jit
    def kernel(x):
        x[0] = function(x[0])

    line = sys._getframe().f_lineno - 4
    with pytest.raises(Exception) as caught:
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    text = str(caught.value)
    assert text.startswith(
        f"'absent' is called but nothing that is linked defines it\n  defined at: {__file__}:{line}\n"
    )
    assert "\n  what to do: define it in code that link= names" in text
