# SPDX-License-Identifier: BSD-2-Clause
"""Modules as callbacks are given them."""

from types import SimpleNamespace


def test_callbacks_are_given_one_object_for_each_loaded_module(mlir):
    from numba.cuda.autolink.frontends.mlir.linker import SetUp, TearDown

    given = []
    loaded = SimpleNamespace(handle=12345)
    for callback in (SetUp, SetUp, TearDown, TearDown, SetUp):
        callback(given.append)(loaded)
    first, second, third, fourth, fifth = given
    assert first is second is third is fourth
    assert fifth is not first
    assert SetUp(print) == SetUp(print)
