# SPDX-License-Identifier: BSD-2-Clause
"""Answers are remembered while the objects live that gave them, and no longer."""

import gc
import sys
import weakref

import pytest
from autolink_support import adder, build
from numba.cuda import autolink, types
from numba.cuda.autolink.device_callable import object_type
from numba.cuda.autolink.protocol import ask as asking
from numba.cuda.autolink.protocol.answers import AnswerMemory
from numba.cuda.autolink.protocol.ask import ask
from numba.cuda.autolink.protocol.callee import find_callee

TARGET = autolink.Target((9, 0))
INT32 = (types.int32,)


class Owner:
    """The owner of methods that are given hooks."""


def method_with(symbol):
    def method(self, x):
        raise NotImplementedError

    method.__numba_cuda_link__ = lambda x: autolink.CUDASource(adder(symbol))
    return method


def symbol_of(obj):
    (code,) = ask(find_callee(obj), INT32, TARGET).inputs()
    return code.code.decode().split("int ")[1].split("(")[0]


def test_a_method_that_is_replaced_on_its_class_never_gets_the_code_of_the_old_one():
    """Both have the same owner, and a function may get the id() of one that died."""
    owner = Owner()
    identities = set()
    for number in range(10):
        Owner.method = method_with(f"symbol_{number}")
        gc.collect()
        assert symbol_of(owner.method) == f"symbol_{number}"
        identities.add(find_callee(owner.method).identity)
    assert len(identities) < 10, "no identity was used twice, so the test shows nothing"


def test_a_device_method_that_is_replaced_on_its_class_gets_its_own_code():
    def replace(number):
        @autolink.device_method
        def method(self, x):
            return autolink.Extern(f"replaced_{number}", returns=x)

        source = f'extern "C" __device__ int replaced_{number}(int x) {{ return x; }}'
        Callable.method = method.link(lambda self, x: autolink.CUDASource(source))

    class Callable(autolink.DeviceCallable):
        pass

    def kernel_calling(obj):
        def kernel(x):
            x[0] = obj.method(x[1])

        return kernel

    obj = Callable()
    for number in range(10):
        replace(number)
        gc.collect()
        (planned,) = build(kernel_calling(obj), output="ltoir").inputs
        assert f"replaced_{number}(" in planned.input.code.decode()


@pytest.mark.parametrize("dies", ["owner", "function"])
def test_what_a_bound_method_answered_is_forgotten_when_a_part_of_it_dies(dies):
    gc.collect()
    parts = {"owner": Owner(), "function": method_with("forgotten")}
    known = len(asking._memory)
    symbol_of(parts["function"].__get__(parts["owner"]))
    assert len(asking._memory) == known + 1
    gone = weakref.ref(parts.pop(dies))
    gc.collect()
    assert gone() is None
    assert len(asking._memory) == known


def test_many_objects_of_one_class_leave_nothing_behind():
    """Nothing accumulates at the function that their methods share."""
    gc.collect()
    Owner.shared = method_with("shared")
    known = len(asking._memory)
    for _ in range(10):
        symbol_of(Owner().shared)
    gc.collect()
    assert len(asking._memory) == known
    assert weakref.getweakrefcount(Owner.shared) == 0


def test_an_object_that_cannot_be_referred_to_weakly_is_kept_alive():
    class Slotted:
        __slots__ = ("asked",)

        def __numba_cuda_link__(self, x):
            return autolink.CUDASource(adder("slotted"))

    obj = Slotted()
    symbol_of(obj)
    _, references = asking._memory[find_callee(obj).identity]
    assert references == [obj]


def test_answers_that_outlive_their_object_are_not_those_of_another():
    """As where a signal handler interrupts what forgets them."""
    memory, callee = AnswerMemory(), find_callee(method_with("first"))
    memory.of(callee)["asked"] = "answer"
    assert memory.of(callee) == {"asked": "answer"}
    memory[callee.identity] = memory[callee.identity][0], [weakref.ref(Owner())]
    assert memory.of(callee) == {}


def test_a_signal_handler_is_not_called_where_an_object_is_forgotten():
    """What it raised there would be lost, and Ctrl-C with it: handlers are called by Python code alone."""
    called = []
    memory, types_before = AnswerMemory(), dict(object_type._types)
    function, obj = method_with("first"), autolink.DeviceCallable()
    memory.of(find_callee(function))["asked"] = "answer"
    kept = object_type.DeviceCallableType.of(obj)  # as by Numba
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code) if event == "call" else None)
    del function, obj
    sys.setprofile(None)
    assert called == []
    assert (memory, object_type._types) == ({}, types_before), kept
