# SPDX-License-Identifier: BSD-2-Clause
"""Call sites travel with their answers."""

import json
import os
import pathlib
import sys

import pytest
from autolink_support import Linked, adder, build
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.autolink.function_code.function_code import FunctionCode
from numba.cuda.autolink.protocol.ask import AskedCall
from numba.cuda.autolink.protocol.call_sites import CallSite
from numba.cuda.autolink.protocol.errors import CallError
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError


def kernel_calling(function):
    def kernel(x):
        x[0] = function(x[1])

    return kernel


def test_a_build_asks_nothing_after_lowering(monkeypatch):
    """The plan of the link, the report and the facts for a cache take the answer that travels with the call."""
    spy = Linked("travels")
    plan = FunctionCode.plan

    def plan_without_asking(self, target):
        monkeypatch.setattr("numba.cuda.autolink.protocol.ask.ask", None)
        assert all(isinstance(call, AskedCall) for call in self.call_sites)
        return plan(self, target)

    monkeypatch.setattr(FunctionCode, "plan", plan_without_asking)
    linked = build(kernel_calling(spy.function))
    assert [type(call) for call in linked.call_sites] == [CallSite]
    (call,) = linked.report.builds[0].calls
    assert call.seconds is not None


def test_a_file_that_is_gone_when_it_is_linked_is_named_with_its_call(tmp_path, monkeypatch):
    file = tmp_path / "add.cu"
    file.write_text(adder("gone"))
    spy = Linked("gone", file)
    plan = FunctionCode.plan

    def plan_without_file(self, target):
        file.unlink()
        return plan(self, target)

    monkeypatch.setattr(FunctionCode, "plan", plan_without_file)
    with pytest.raises(LinkError) as error:
        build(kernel_calling(spy.function))
    assert f"{file} not found\n  returned by: " in str(error.value)
    assert f"called at {__file__}:" in str(error.value)


def refuse():
    raise TypeError("no numbers")


class Misspelling(autolink.DeviceCallable):
    """An object one of whose hooks uses a name that does not exist."""

    def __init__(self, wrong, hook):
        self.wrong, self.hook = wrong, hook

    def __numba_cuda_call__(self, x):
        return self.wrong() if self.hook == "__numba_cuda_call__" else autolink.Extern("f", returns=x)

    def __numba_cuda_link__(self, x):
        return self.wrong()


@pytest.mark.parametrize("hook", ["__numba_cuda_call__", "__numba_cuda_link__"])
@pytest.mark.parametrize(
    ("wrong", "todo"),
    [
        (lambda: autolink.CUDASourc(""), "did you mean CUDASource?"),
        (lambda: autolnk.CUDASource(""), "did you mean autolink?"),  # noqa: F821
        (lambda: autolink.CUDASource("", nme="f"), "did you mean name?"),
        (lambda: qqqqqq, "change its HOOK where it raised"),  # noqa: F821
        (lambda: autolink.qqqqqq, "change its HOOK where it raised"),
        (lambda: "".qqqqqq, "change its HOOK where it raised"),
        (lambda: "f" + types.float32, "change its HOOK where it raised"),
        (lambda: refuse(), "pass arguments that Misspelling takes, or change its HOOK where it raised"),
        (lambda: types.float32.qqqqqq, "pass arguments that Misspelling takes, or change its HOOK where it raised"),
    ],
)
def test_a_misspelt_name_in_a_hook_is_told_from_those_that_exist(wrong, todo, hook):
    obj = Misspelling(wrong, hook)

    def kernel(r):
        r[r.size] = 1 + obj(r[0])

    with pytest.raises(TypingError, match=rf"Misspelling\.{hook} raised (?:Attribute|Name|Type)Error: ") as error:
        build(kernel, "void(float32[::1])")
    _, at, source, caret, *others = str(error.value).splitlines()
    assert f"at: {__file__}:" in at and source[caret.index("^") : caret.rindex("^") + 1] == "obj(r[0])"
    line = (
        (refuse.__code__.co_firstlineno + 1) if "refuse" in wrong.__code__.co_names else wrong.__code__.co_firstlineno
    )
    assert any(each.startswith(f"  raised at: {__file__}:{line} in ") for each in others)
    shown = "hook" if hook == "__numba_cuda_link__" else hook
    assert f"  what to do: {todo.replace('HOOK', shown)}" in others


@pytest.mark.parametrize(
    ("wrong", "todo"),
    [
        (lambda: json.loads("{bad"), "change its HOOK where it raised"),
        (lambda: pathlib.Path("none").read_text(), f"correct the path: a relative one begins in {os.getcwd()}"),
    ],
)
@pytest.mark.parametrize("hook", ["__numba_cuda_call__", "__numba_cuda_link__"])
def test_what_python_raises_in_its_library_is_raised_at_the_users_own_line(hook, wrong, todo):
    obj = Misspelling(wrong, hook)

    def kernel(r):
        r[r.size] = 1 + obj(r[0])

    with pytest.raises(TypingError, match=r"raised (JSONDecode|FileNotFound)Error") as error:
        build(kernel, "void(float32[::1])")
    lines = str(error.value).splitlines()
    raised = lines.index(f"  raised at: {__file__}:{wrong.__code__.co_firstlineno} in <lambda>")
    assert lines[raised + 2].startswith(f"      called at: {__file__}:")
    shown = "hook" if hook == "__numba_cuda_link__" else hook
    assert f"  what to do: {todo.replace('HOOK', shown)}" in lines


class C(autolink.DeviceCallable):
    """Objects of it are called in one line, as variables with one letter, one of them that of the class."""

    def __init__(self, number, code=None):
        self.number, self.code = number, code

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"one_of_a_line_{self.number}", returns=x, args={"x": x})

    def __numba_cuda_link__(self, x):
        if self.code is None:
            raise ValueError("no")
        return autolink.CUDASource(
            f'extern "C" __device__ float one_of_a_line_{self.number}(float x) {{ {self.code} }}'
        )


def _underlined(error):
    _, _, call = str(error).partition("  called at: ")
    _, source, caret, *_ = call.splitlines()
    return source[caret.index("^") : caret.rindex("^") + 1]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python knows no columns of calls")
def test_of_several_objects_in_a_line_the_call_of_the_one_whose_hook_raised_is_underlined():
    a, b, c = C(1), C(2, "return x;"), C(3, "return x;")

    def kernel(r):
        r[0] = c(r[0]) + a(r[0]) + b(r[0])

    with pytest.raises(TypingError, match="raised ValueError: no") as error:
        build(kernel, "void(float32[::1])")
    assert _underlined(error.value) == "a(r[0])"


def test_of_several_objects_in_a_line_none_is_underlined_where_it_is_not_known_which_is_meant():
    a, b, c = C(1, "return x + bad;"), C(2, "return x;"), C(3, "return x;")

    def kernel(r):
        r[0] = c(r[0]) + a(r[0]) + b(r[0])

    with pytest.raises(LinkError, match='identifier "bad" is undefined') as error:
        build(kernel, "void(float32[::1])")
    assert _underlined(error.value) == "r[0] = c(r[0]) + a(r[0]) + b(r[0])"


def test_the_error_of_a_call_names_call_object_and_hook_in_this_order():
    def refuse():
        raise ValueError("only float32 is supported")

    spy = Linked("refusing", refuse)
    with pytest.raises(CallError) as error:
        build(kernel_calling(spy.function))
    lines = error.value.hook_error.describe(error.value.call_site).splitlines()
    assert lines[0] == "ExternFunction.__numba_cuda_link__ raised ValueError: only float32 is supported"
    assert lines[1].startswith(f"  called at: {__file__}:")
    assert lines[4:6] == [f"  object: {spy.function!r}", "  argument types: (int32)"]
    assert lines[6].startswith(f"  raised at: {__file__}:")


class WithoutSelf(autolink.DeviceCallable):
    def __numba_cuda_call__(x, y=1):
        return autolink.Extern("f", returns=types.float32)

    def __numba_cuda_link__(self, x):
        return ""


class NoIdentifier(autolink.DeviceCallable):
    def __init__(self, symbol):
        self.symbol = symbol

    def __numba_cuda_call__(self, x):
        return autolink.Extern(self.symbol, returns=types.float32)

    def __numba_cuda_link__(self, x):
        return ""


@pytest.mark.parametrize(
    ("obj", "diagnosis", "todo"),
    [
        (WithoutSelf(), "self is missing: 'x' stands for", "write def __numba_cuda_call__(self, x, y)"),
        (NoIdentifier("pow er"), "must be a C identifier", "write its name in C;"),
        (
            NoIdentifier("f_array(float32)"),
            "must be a C identifier",
            "write its name in C; for an array type, put the dtype into it",
        ),
    ],
)
def test_a_hook_without_self_and_a_symbol_that_is_no_name(obj, diagnosis, todo):
    f = cuda.jit(device=True)((lambda r: obj(r[0], r[1], r[2])) if todo.endswith("y)") else (lambda r: obj(r[0])))

    def call(r):
        f(r)

    with pytest.raises(TypingError) as error:
        build(call, "void(float32[::1])")
    assert diagnosis in str(error.value).partition("\n")[0]
    assert f"\n  what to do: {todo}" in str(error.value)
