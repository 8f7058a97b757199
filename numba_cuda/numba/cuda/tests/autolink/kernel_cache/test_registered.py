# SPDX-License-Identifier: BSD-2-Clause
"""What is registered with Numba, besides what Numba itself registers."""

from __future__ import annotations

import math

from autolink_support import build
from llvmlite import ir
from numba.cuda import types
from numba.cuda.autolink.kernel_cache.registered import registered, registered_codes
from numba.cuda.autolink.value_fingerprint import fingerprint
from numba.cuda.extending import (
    core_models,
    intrinsic,
    lower_builtin,
    lower_cast,
    make_attribute_wrapper,
    overload,
    register_jitable,
    register_model,
    type_callable,
    typeof_impl,
)


class Kind(types.Type):
    def __init__(self):
        super().__init__("Kind")


class Thing:
    pass


def called(x):
    return x


def found(text):
    return {label: fingerprint(value) for label, value in registered() if text in label and "__main__" not in label}


def test_each_kind_of_registration_is_found():
    before = found("")
    register_model(Kind)(core_models.OpaqueModel)
    make_attribute_wrapper(Kind, "inner", "outer")

    @lower_cast(Kind, types.int32)
    def cast(context, builder, source, target, value):
        return ir.IntType(32)(1)

    @typeof_impl.register(Thing)
    def typeof_thing(value, context):
        return Kind()

    @type_callable(called)
    def typed(context):
        return lambda x: types.int32

    @lower_builtin(called, types.int32)
    def lowered(context, builder, signature, arguments):
        return arguments[0]

    new = found("").keys() - before.keys()
    name = f"{__name__}."
    assert new == {
        f"data model registered with Numba for {name}Kind",
        f"attributes registered with Numba for {name}Kind",
        "getattrs registered with Numba for outer",
        f"casts registered with Numba for {name}Kind, int32",
        f"typeof registered with Numba for {name}Thing",
        f"functions registered with Numba for {name}called",
        f"functions registered with Numba for {name}called (2)",
    }
    assert {cast.__code__, typeof_thing.__code__, typed.__code__, lowered.__code__} <= registered_codes()


def overloaded(x):
    return x


def declared(amount):
    @overload(overloaded, target="cuda")
    def implementation(x):
        return lambda x: x + amount


def test_what_it_closes_over_and_its_order_count():
    def plain(x):
        return x

    digests = []
    for amount in 1, 2, 1:
        before = found("overloaded")
        declared(amount)
        (label,) = found("overloaded").keys() - before.keys()
        digests.append(found("overloaded")[label])
    assert digests[0] == digests[2] != digests[1]
    register_jitable(plain)
    assert plain.__code__ in registered_codes()


def test_an_intrinsic_counts_alike_before_and_after_it_is_compiled():
    @intrinsic
    def doubled(context, x):
        def generate(context, builder, signature, arguments):
            return builder.fadd(arguments[0], arguments[0])

        return types.float32(types.float32), generate

    def kernel(x):
        x[0] = doubled(x[0])

    before = found("")
    build(kernel, "void(float32[::1])")
    assert found("") == before


def test_what_numba_registers_is_left_out():
    assert not any(f"registered with Numba for {each}" in label for label in found("") for each in ("math.", "len"))
    assert math.sqrt.__name__ not in {code.co_name for code in registered_codes()}
