# SPDX-License-Identifier: BSD-2-Clause
"""What a function reaches by name."""

from __future__ import annotations

import types as pytypes

from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink.kernel_cache.reachable import Reached


class Thing(autolink.DeviceCallable):
    def __init__(self, **attributes):
        vars(self).update(attributes)

    @autolink.device_method
    def method(self):
        return autolink.Extern("method")

    @property
    def broken(self):
        raise RuntimeError("there is no GPU")

    @property
    def endless(self):
        return Thing()


def reached(function, link=()):
    return Reached(function, link)


def make(**closure):
    """A function that calls *thing*, with *closure*."""
    thing = closure.get("thing")
    other = closure.get("other")

    def function(x):
        return thing(x) + other.size

    return function


def test_objects_are_numbered_in_the_order_in_which_they_are_reached():
    one, two = Thing(), Thing(size=3)
    found = reached(make(thing=one, other=two))
    # Closure variables are in alphabetical order.
    assert (found.number(two), found.number(one)) == (0, 1)
    assert found.things == [two, one]
    assert found.number(Thing()) is None
    assert found.parts["function.other.size"] == "3 int"


def test_only_what_may_bring_code_is_external():
    def plain(x):
        return x + 1

    assert not reached(plain).external_code
    assert reached(plain, ["some.cu"]).external_code
    assert reached(make(thing=Thing(), other=None)).external_code
    declared = cuda.declare_device("f", "int32(int32)")
    assert not reached(make(thing=declared, other=None)).external_code
    declared = cuda.declare_device("f", "int32(int32)", link="f.cu")
    found = reached(make(thing=declared, other=None))
    assert found.external_code
    assert found.linked == ["f.cu"]


def test_attributes_that_no_function_names_are_not_read():
    module = pytypes.ModuleType("module")
    module.thing, module.unrelated = Thing(), Thing()

    def function(x):
        return module.thing(x)

    found = reached(function)
    assert found.number(module.thing) is not None
    assert found.number(module.unrelated) is None


def test_a_global_is_not_taken_for_an_attribute_of_its_name():
    namespace = {"size": Thing(), "thing": Thing(size=2)}
    exec("def function(x): return thing(x.size)", namespace)
    found = reached(namespace["function"])
    assert found.things == [namespace["thing"]]


def test_names_that_a_device_function_uses_count_for_the_objects_that_it_is_given():
    thing = Thing(size=3, other=Thing())

    @cuda.jit(device=True)
    def below(f, x):
        return f.other(x)

    def function(x):
        return below(thing, x)

    assert reached(function).number(thing.other) is not None


def test_methods_are_found_with_their_objects():
    thing = Thing()

    def function(x):
        return thing.method(x)

    found = reached(function)
    assert found.number(thing.method) is not None
    assert found.number(thing) is not None


def test_properties_may_raise_and_may_lead_on_for_ever():
    thing = Thing()

    def function(x):
        return thing.broken + thing.endless

    found = reached(function)
    assert found.parts["function.thing.broken"].startswith("str ")
    assert len(found.things) < 2000
    assert "the kernel reaches more than 1000 objects" in found.unknown


def test_what_a_name_means_counts_also_where_the_objects_are_the_same():
    def make(first, second, third):
        def function(x):
            return first(x) + second(x) + third(x)

        return function

    one, two = Thing(size=1), Thing(size=2)
    parts = [reached(make(one, two, third)).parts for third in (one, two)]
    assert parts[0]["function.third"] == "the same as function.first"
    assert parts[1]["function.third"] == "the same as function.second"


def test_the_body_of_a_plain_function_counts():
    def helper(body):
        namespace = {}
        exec(f"def helper(x): return {body}", namespace)
        return namespace["helper"]

    one, two = (reached(make(thing=helper(body), other=None)).parts for body in ("x + 1", "x + 2"))
    assert one != two


def test_a_value_that_cannot_be_told_apart_is_named():
    thing = Thing(stream=(each for each in ()))
    found = reached(make(thing=thing, other=None))
    assert found.unknown == ("function.thing.stream: a value of type builtins.generator cannot be fingerprinted")
    assert reached(make(thing=Thing(size=3), other=None)).unknown is None


def test_functions_may_refer_to_themselves():
    def function(x):
        return function(x)

    assert reached(function).parts["function.function.function"] == "the same as function.function"


def test_operators_count_although_no_function_names_them():
    def with_length(length):
        return type("Sized", (Thing,), {"__len__": lambda self: length})()

    first, same, other = (reached(make(thing=with_length(n), other=None)).parts for n in (3, 3, 4))
    assert first == same
    assert {label for label in first if first[label] != other[label]} == {"function.thing's operators"}
    assert "function.thing's operators" not in reached(make(thing=Thing(), other=None)).parts
