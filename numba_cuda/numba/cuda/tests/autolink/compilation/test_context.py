# SPDX-License-Identifier: BSD-2-Clause
"""What is in progress belongs to the thread or task that it runs in, and ends with its ``with`` block."""

from __future__ import annotations

import contextlib

import pytest
from autolink_support import Linked, adder, build
from numba.cuda import autolink
from numba.cuda.autolink.compilation import context

OUTER, INNER = autolink.Target((8, 0)), autolink.Target((9, 0))


def in_progress():
    """What is in progress here, as values that can be compared."""
    compiled = context.compilation()
    target = None if compiled is None else compiled.target
    state = context.current_state()
    return target, state.cc, state.questions, state.put_off, state.call


NOTHING = (None, None, (), None, None)


def everything(stack, target):
    """Begin one of each."""
    stack.enter_context(context.without_device(target.cc))
    stack.enter_context(context.compiling(target))
    stack.enter_context(context.answering(target.arch))
    stack.enter_context(context.inside(put_off={}))
    stack.enter_context(context.inside(call=("type", target.arch)))
    return in_progress()


@pytest.mark.parametrize("fails", [False, True])
def test_a_block_ends_with_what_was_there_before_it(fails):
    with contextlib.ExitStack() as outer:
        before = everything(outer, OUTER)
        with contextlib.suppress(ZeroDivisionError), contextlib.ExitStack() as inner:
            nested = everything(inner, INNER)
            assert nested == (OUTER, INNER.cc, ("sm_80", "sm_90"), {}, ("type", "sm_90"))
            if fails:
                1 / 0  # noqa: B018
        assert in_progress() == before
    assert in_progress() == NOTHING


def test_a_hook_that_builds_a_kernel_has_a_compilation_of_its_own():
    inside = Linked("context_inside").function
    seen = []

    def kernel(x):
        x[0] = inside(x[1])

    def build_another():
        before = context.current_state().questions
        seen.append((context.compilation(), len(before), len(build(kernel).call_sites)))
        assert context.current_state().questions == before
        return autolink.CUDASource(adder("context_outside"))

    outside = Linked("context_outside", build_another).function

    def calling(x):
        x[0] = outside(x[1]) + inside(x[2])

    assert len(build(calling).call_sites) == 2
    assert seen == [(None, 1, 1)]
    assert in_progress() == NOTHING
