# SPDX-License-Identifier: BSD-2-Clause
"""What a front end's error over a signature prints: the nearest type, and the line with the signature."""

import sys

import numpy as np
import pytest
from front_ends import MODULES, front_end_named
from numba.cuda import autolink
from numba.cuda.autolink.frontend_api.placed_messages import placed_error


@pytest.mark.parametrize("front_end", list(MODULES))
@pytest.mark.parametrize(
    ("signature", "kind", "why"),
    [
        ("void(flot32[::1])", NameError, "is not a signature: name 'flot32' is not defined; did you mean float32?"),
        ("void(float[::1])", TypeError, "is not a signature: float is a type of Python, and Numba's has another name"),
        ("void(float32[::1)", SyntaxError, "is not a signature: "),
        ((float,), TypeError, "a signature is text or a tuple of Numba types, got tuple (<class 'float'>,)"),
    ],
)
def test_the_message_of_a_wrong_signature_has_its_line_and_the_nearest_type(front_end, signature, kind, why):
    cuda = front_end_named(front_end).cuda
    with pytest.raises(kind) as failure:
        cuda.jit(signature)(lambda x: None)
    message = placed_error(failure.value)
    first, place, line, *_, todo = message.split("\n")
    assert why in first
    assert place.startswith(f"  at: {__file__}:")
    assert line.strip() == "cuda.jit(signature)(lambda x: None)"
    assert todo.startswith(
        (
            "  what to do: write the types, such as 'void(float32[::1], ",
            "  what to do: write 'void(float64[::1])'",
            "  expected: such as ",
        )
    )


@pytest.mark.parametrize("front_end", list(MODULES))
@pytest.mark.parametrize("signature", ["void(float32[::1]", "void(float32[::1))", "void(float32 int32)"])
def test_a_text_that_is_not_python_is_printed_as_a_signature_at_its_line(front_end, signature, capsys):
    cuda = front_end_named(front_end).cuda
    with pytest.raises(SyntaxError) as failure:
        cuda.jit(signature)(lambda x: None)
    sys.excepthook(SyntaxError, failure.value, failure.value.__traceback__)
    printed = capsys.readouterr().err
    assert f"SyntaxError: {signature!r} is not a signature: " in printed
    assert f"\n  at: {__file__}:" in printed and "\n  what to do: write the types, such as " in printed
    assert "<string>" not in printed and failure.value.lineno == 1


@pytest.mark.parametrize("front_end", list(MODULES))
def test_a_type_of_python_has_one_advice(front_end):
    with pytest.raises(TypeError) as failure:
        front_end_named(front_end).cuda.jit("void(float32[::1], int)")(lambda x, n: None)
    first, *_, todo = placed_error(failure.value).split("\n")
    assert first.endswith(" is not a signature: int is a type of Python, and Numba's has another name")
    assert todo == "  what to do: write 'void(float32[::1], int64)'"


@pytest.mark.parametrize("front_end", list(MODULES))
def test_one_type_is_not_a_signature_and_is_shown_as_it_is_written(front_end):
    front_end = front_end_named(front_end)
    kernel = front_end.cuda.jit(lambda x: None)
    for given in ("float32[:, ::1]", front_end.cuda.types.float32[:, ::1]):
        with pytest.raises((TypeError, ValueError)) as failure:
            autolink.build(kernel, given, cc=(9, 0))
        diagnosis, todo, *_ = str(failure.value).split("\n")
        assert "float32[:, ::1]" in diagnosis
        assert todo == "  what to do: write 'void(float32[:, ::1])' for one argument of that type"


@pytest.mark.parametrize(
    ("given", "meant"), [(float, "float64"), (bool, "boolean"), (np.float32, "float32"), (np.dtype("i1"), "int8")]
)
def test_classes_of_numbers_and_dtypes_have_a_type_of_numba(given, meant):
    with pytest.raises(TypeError) as failure:
        autolink.build(lambda x: None, (given,), cc=(9, 0))
    assert f"expected: such as (types.{meant},): Numba's type for {given!r}" in str(failure.value)


def test_an_error_of_another_function_is_not_one_of_a_signature():
    def normalize_signature(sig):
        raise NameError("x")

    with pytest.raises(NameError) as failure:
        normalize_signature("void(float32)")
    assert placed_error(failure.value) is None
