# SPDX-License-Identifier: BSD-2-Clause
"""Uses of called objects that kernels cannot have are errors that say so, at their line, and other errors stay as they
are."""

from __future__ import annotations

import functools
import types as pytypes

import pytest
from numba import cuda
from numba.cuda import autolink, literal_unroll
from numba.cuda.compiler import run_frontend
from numba.cuda.core.errors import TypingError


class Scale(autolink.DeviceCallable):
    def __init__(self, factor):
        self.factor = factor
        self.table = "x" * 500
        self._private = 1

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"scale_{self.factor}", returns=x)

    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(f'extern "C" __device__ float scale_{self.factor}(float x) {{ return x; }}')


class Nothing(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("nothing", returns=None)

    def __numba_cuda_link__(self, x):
        return autolink.CUDASource('extern "C" __device__ void nothing(float x) {}')


class Misspelt(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f", returns=x)

    def __numba_cuda_lnk__(self, x):
        return ""


class OtherArgs(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f", returns=x, args={"y": "float32"})

    def __numba_cuda_link__(self, x):
        return None


class OnlyHook:
    def __numba_cuda_link__(self, x):
        return None


class OnlyCall:
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f", returns=x)


class MisspeltLink(OnlyCall):
    def __numba_cuda_links__(self, x):
        return None


class CutHook:
    def __numba_cuda_link(self, x):
        return None


only_call, misspelt_link, cut_hook = OnlyCall(), MisspeltLink(), CutHook()
double, triple, nothing, only = Scale(2), Scale(3), Nothing(), OnlyHook()
misspelt, other_args = Misspelt(), OtherArgs()
in_list, in_dict, in_tuple = [double], {"a": double}, (double, triple)
of_python = lambda x: double(x)  # noqa: E731
library = autolink.cxx("#define LANES 4\n__device__ void f(float x) {}")
variable = autolink.Variable("variable", "float32", 4)
partial = functools.partial(double)
module = pytypes.ModuleType("module")
module.in_list, module.Scale, module.only, module.of_python = in_list, Scale, only, of_python


@cuda.jit
def device(x):
    return in_dict["a"](x)


MISUSES = {
    "module.in_list[0](x[0])": ("kernels cannot call objects in a list: 'in_list'", "make it a tuple"),
    "in_dict['a'](x[0])": ("kernels cannot call objects in a dict: 'in_dict'", "give each object a name of its own"),
    "{1: double}[1](x[0])": ("kernels cannot call objects in a dict", "give each object a name of its own"),
    "module.Scale(2)(x[0])": ("kernels cannot make objects: Scale is called in one", "make the object before"),
    "module.of_python(x[0])": ("kernels cannot call the Python function 'of_python'", "@cuda.jit(device=True)"),
    "partial(x[0])": ("kernels cannot call functools.partial: 'partial'", "write a device function"),
    "module.only(x[0])": ("kernels cannot call 'only': OnlyHook has __numba_cuda_link__", "DeviceCallable"),
    "only_call(x[0])": (
        "kernels cannot call 'only_call': OnlyCall has __numba_cuda_call__, but no __numba_cuda_link__",
        "derive OnlyCall from autolink.DeviceCallable, and define __numba_cuda_link__",
    ),
    "misspelt_link(x[0])": (
        "kernels cannot call 'misspelt_link': MisspeltLink has __numba_cuda_call__, but no __numba_cuda_link__",
        "derive MisspeltLink from autolink.DeviceCallable, and rename __numba_cuda_links__ to __numba_cuda_link__",
    ),
    "cut_hook(x[0])": (
        "kernels cannot call 'cut_hook': CutHook has __numba_cuda_link, which is no hook",
        "derive CutHook from autolink.DeviceCallable, rename __numba_cuda_link to __numba_cuda_link__, and define",
    ),
    "device(x[0])": ("kernels cannot call objects in a dict: 'in_dict'", "give each object a name of its own"),
    "double": (
        "kernels can call the object 'double', and cannot store it or calculate with it",
        "call it: double(...)",
    ),
    "library.f + x[0]": (
        "kernels can call the object 'f', and cannot store it or calculate with it",
        "call it: f(...)",
    ),
    "variable[0]": ("kernels cannot use the autolink.Variable 'variable' by its name", "declare it extern in C++"),
    "double + 1": ("kernels can call the object 'double'", "call it: double(...)"),
    "nothing(x[0])": (
        "Extern('nothing') has no returns=, and the kernel uses the result of 'nothing'",
        "write the type that C returns, Extern('nothing', returns=...)",
    ),
    "library.f(x[0])": ("'f' returns nothing, and its result is used", "as a statement of its own"),
    "x[0] + library.f(x[0])": ("'f' returns nothing, and its result is used", "as a statement of its own"),
    "cuda.local.array(1, library.f)[0]": (
        "the dtype of an array is an object to call, not a type",
        "a type of C++ by name is lib.type('f')",
    ),
    "cuda.shared.array(1, dtype=library.f)[0]": ("the dtype of an array is an object to call, not a type", "lib.type"),
    "[f(x[0]) for f in (double, triple)][0]": (
        "a loop over a tuple of called objects must be unrolled",
        "literal_unroll",
    ),
    "nothing(x[0]) + 1": ("Extern('nothing') has no returns=", "\n  __numba_cuda_call__ is defined at: "),
    "min(3, library.f)": (
        "kernels can call the object 'f', and cannot store it",
        "call it: f(...)",
    ),
    "x[library.f]": ("kernels can call the object 'f', and cannot store it", "call it: f(...)"),
    "library['f'] + x[0]": ("kernels can call the object 'f', and cannot store it", "call it: lib['f'](...)"),
    "x[0] + library.LANES": ("'LANES' is a constant of C++", 'before the kernel: LANES = lib.eval("LANES")'),
    "library.g + x[0]": ("C++ has no 'g'", "declare it in the source"),
    "library.f[3](x[0])": ("f is a C++ function, which has no index", 'part of its name: lib["f<3>"]'),
    "library.f[x[0]](x[0])": ("f is a C++ function, which has no index", 'part of its name: lib["f<...>"]'),
    "double[1](x[0])": ("double is an object to call, which has no index and no elements", "call it: double(...)"),
    "autolink.cxx('').f(x[0])": ("kernels cannot call cxx() of numba-cuda-autolink", "call it before the kernel"),
    "autolink.Extern('f')(x[0])": ("kernels cannot make objects: Extern is called in one", "make the object before"),
    "misspelt(x[0])": (
        "Misspelt has no __numba_cuda_link__, but __numba_cuda_lnk__",
        "did you mean __numba_cuda_link__",
    ),
    "other_args(x[0])": ("Extern's args name 'y', but the parameters of the call are x", "name these parameters"),
    "double(x[0], y=2)": ("Scale: there is no parameter 'y'; its parameters are (x)", ""),
    "double.halve(x[0])": ("Scale has no attribute 'halve'", "attributes: factor"),
}


def made(text, tmp_path):
    """Return the kernel with this text, from a file."""
    path = tmp_path / "misused.py"
    path.write_text(text)
    names = {**globals(), "__name__": "misused"}
    exec(compile(text, str(path), "exec"), names)
    return names["kernel"]


@pytest.mark.parametrize("call", MISUSES)
def test_the_first_line_is_the_diagnosis(call, tmp_path):
    diagnosis, remedy = MISUSES[call]
    kernel = made(f"def kernel(x):\n    x[0] = {call}\n", tmp_path)
    with pytest.raises(TypingError) as caught:
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    text = str(caught.value)
    first = text.splitlines()[0]
    assert first.startswith(diagnosis) and len(first) < 120
    assert remedy in text
    place, source, caret = text.splitlines()[1:4]
    assert place.endswith("misused.py:2 in kernel") or call.startswith("device(")
    assert source.strip() in (f"x[0] = {call}", 'return in_dict["a"](x)') and set(caret.strip()) == {"^"}


@pytest.mark.parametrize(
    ("body", "diagnosis"),
    [
        ("fs = [double, double]\n    x[0] = fs[0](x[0])", "kernels cannot call objects in a list"),
        ("fs = [double, triple]\n    x[0] = fs[int(x[1])](x[0])", "kernels cannot call objects in a list"),
        ("for f in in_tuple:\n        x[0] = f(x[0])", "a loop over a tuple of called objects must be unrolled"),
        (
            "if x[1]:\n        f = double\n    else:\n        f = triple\n    x[0] = f(x[0])",
            "the variable 'f' stands for one called object or another, chosen while the kernel runs",
        ),
    ],
)
def test_statements_have_their_diagnosis_too(body, diagnosis, tmp_path):
    with pytest.raises(TypingError) as caught:
        autolink.build(made(f"def kernel(x):\n    {body}\n", tmp_path), "void(float32[::1])", cc=(9, 0))
    assert str(caught.value).splitlines()[0] == diagnosis


def test_the_advice_for_tuples_and_choices_works():
    def kernel(x):
        for f in literal_unroll(in_tuple):
            x[0] = f(x[0])
        x[1] = double(x[1]) if x[0] else triple(x[1])

    linked = autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    assert len(linked.inputs) == 2


def test_other_errors_have_their_place_and_what_to_do():
    def kernel(x):
        x[0] = double(x[0]) + undefined_name  # noqa: F821

    with pytest.raises(TypingError) as caught:
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    assert str(caught.value).startswith("name 'undefined_name' is not defined\n  at: ")


def test_a_function_that_cannot_be_read_again_keeps_numbas_error(monkeypatch):
    def fail(function):
        raise RuntimeError("unreadable")

    assert run_frontend(lambda x: x).blocks
    monkeypatch.setattr("numba.cuda.autolink.protocol.typing_diagnosis.run_frontend", fail)

    def kernel(x):
        x[0] = in_dict["a"](x[0])

    with pytest.raises(TypingError, match="Cannot determine Numba type of <class 'dict'>"):
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))


def test_assigning_to_an_attribute_is_told_first():
    def kernel(x):
        double.factor = 3

    with pytest.raises(Exception) as caught:
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    assert str(caught.value).startswith("cannot assign to the attribute 'factor' in a kernel")


def test_assigning_to_a_name_of_a_library_is_told_in_both_front_ends():
    mlir = pytest.importorskip("numba_cuda_mlir.cuda")
    library = autolink.cxx("__device__ int n;")

    def kernel(x):
        library.n = 3

    for decorate in (lambda function: function, mlir.jit):
        with pytest.raises(Exception) as caught:
            autolink.build(decorate(kernel), "void(float32[::1])", cc=(9, 0))
        diagnosis, place, *_, remedy = str(caught.value).splitlines()
        assert diagnosis.startswith("cannot assign to the attribute 'n' in a kernel")
        assert place.startswith(f"  at: {__file__}:") and remedy.startswith("  what to do: let a function of C++ set")


def test_the_default_repr_leaves_out_private_attributes_and_long_texts():
    assert repr(double) == "Scale(factor=2)"


@cuda.jit(device=True)
def inner_without(x):
    y = x + 1
    return y * NOT_THERE  # noqa: F821


@cuda.jit(device=True)
def outer_without(x):
    return inner_without(x) + 1


def test_a_misspelt_name_of_the_module_gets_the_one_that_is_meant():
    def kernel(x):
        x[0] = inner_wihtout(x[0])  # noqa: F821

    assert "what to do: did you mean inner_without?\n" in _refused(kernel)


def test_a_name_that_is_not_defined_is_shown_where_a_device_function_has_it():
    def kernel(x):
        x[0] = outer_without(x[0])

    text = _refused(kernel)
    line = inner_without.py_func.__code__.co_firstlineno + 3
    assert text.startswith("name 'NOT_THERE' is not defined\n")
    places = [each for each in text.splitlines() if each.startswith(("  at: ", "  called from: "))]
    assert places[0].endswith(f"test_typing_diagnosis.py:{line} in inner_without")
    assert "^^^^^^^^^" in text.splitlines()[3]
    assert [each.rpartition(" in ")[2] for each in places[1:]] == ["outer_without", _name_of(kernel)]


class Returning(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        def body(x):
            y = x + 1
            return NOT_THERE(y)  # noqa: F821

        return body


returning = Returning()


def test_a_name_that_is_not_defined_is_shown_in_the_function_that_a_hook_returned():
    def kernel(x):
        x[0] = returning(x[0])

    text = _refused(kernel)
    line = Returning.__numba_cuda_call__.__code__.co_firstlineno + 3
    assert f"test_typing_diagnosis.py:{line} in Returning.__numba_cuda_call__.<locals>.body\n" in text
    assert "\n  in: the function that Returning.__numba_cuda_call__ returned\n" in text
    assert "\n  called from: " in text


def _name_of(function):
    return function.__name__


def _refused(function):
    with pytest.raises(TypingError) as caught:
        autolink.build(cuda.jit(function), "void(float32[::1])", cc=(9, 0))
    return str(caught.value)


@pytest.mark.parametrize("values", ["scale(x[0]) * nothing", "nothing * scale(x[0])"])
def test_a_function_is_not_said_to_return_nothing_where_another_value_is_none(values, tmp_path):
    kernel = made(f"def kernel(x, nothing):\n    x[0] = {values}\n", tmp_path)
    kernel.__globals__["scale"] = autolink.cxx("__device__ float scale(float x) { return x; }").scale
    with pytest.raises(TypingError) as caught:
        autolink.build(kernel, "void(float32[::1], none)", cc=(9, 0))
    assert str(caught.value).startswith("No implementation of mul(")
