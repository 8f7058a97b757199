# SPDX-License-Identifier: BSD-2-Clause
"""Call sites travel with their answers."""

import pickle

import pytest
from autolink_support import Linked, adder, build
from numba.cuda import autolink, types
from numba.cuda.autolink.function_code.function_code import FunctionCode
from numba.cuda.autolink.protocol.ask import AskedCall, with_answer
from numba.cuda.autolink.protocol.call_sites import CallSite
from numba.cuda.autolink.protocol.callee import find_callee
from numba.cuda.autolink.protocol.errors import CallError
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError

TARGET = autolink.Target((9, 0))
INT32 = (types.int32,)


class Counting:
    """An object that counts how often it is asked."""

    def __init__(self):
        self.asked = 0

    def __numba_cuda_link__(self, x):
        self.asked += 1
        return autolink.CUDASource(adder("counted"))


def site(obj, line=1):
    return CallSite(find_callee(obj), INT32, "kernels.py", line, "kernel")


def test_a_call_with_the_answer_for_a_target_is_not_asked_again(monkeypatch):
    call = with_answer(site(Counting()), TARGET)
    monkeypatch.setattr("numba.cuda.autolink.protocol.ask.ask", None)
    assert with_answer(call, TARGET) is call


@pytest.mark.counted
def test_a_call_is_asked_for_another_target():
    obj = Counting()
    call = with_answer(site(obj), TARGET)
    other = with_answer(call, autolink.Target((8, 0)))
    assert (other.target.arch, obj.asked) == ("sm_80", 2)
    assert other.answer is not call.answer


def test_asked_calls_are_equal_if_their_sites_are():
    obj = Counting()
    call = with_answer(site(obj), TARGET)
    assert call == with_answer(site(obj), autolink.Target((8, 0)))
    assert call != with_answer(site(obj, line=2), TARGET)
    assert call.site == site(obj)
    assert str(call) == str(call.site)


def test_an_asked_call_is_pickled_as_its_site():
    call = with_answer(site(Counting()), TARGET)
    unpickled = pickle.loads(pickle.dumps(call))
    assert type(unpickled) is CallSite
    assert unpickled.place == call.place


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
