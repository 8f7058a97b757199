# SPDX-License-Identifier: BSD-2-Clause
"""Every object that typing resolves a call to is asked for its code, however it is reached."""

import operator

import pytest
from autolink_support import Linked, adder, build, calling
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.datamodel.models import OpaqueModel
from numba.cuda.extending import (
    intrinsic,
    overload,
    overload_method,
    register_model,
    typeof_impl,
)


def asked_once(spy, kernel, signature="void(int32[::1])", argtypes=(types.int32,)):
    """Building *kernel* asks *spy* once, with *argtypes*, and links its code."""
    linked = build(kernel, signature)
    assert spy.asked == [argtypes]
    assert [planned.input.code.decode() for planned in linked.inputs] == [spy.answer.data]
    return linked


@pytest.mark.parametrize("options", [{}, {"inline": "always"}, {"forceinline": True}])
def test_calls_in_nested_device_functions(options):
    spy = Linked("nested")
    function = spy.function

    @cuda.jit(device=True, **options)
    def inner(x):
        return function(x)

    @cuda.jit(device=True, **options)
    def outer(x):
        return inner(x) + 1

    def kernel(x):
        x[0] = outer(x[1])

    linked = asked_once(spy, kernel)
    assert [site.line for site in linked.call_sites] == [inner.py_func.__code__.co_firstlineno + 2]


class Owner:
    """An object that exists for Numba through `OwnerType`, one type for each."""

    def __init__(self, functions):
        self.functions = functions


class OwnerType(types.Opaque):
    def __init__(self, owner):
        self.owner = owner
        super().__init__(f"Owner({id(owner)})")

    @property
    def key(self):
        return id(self.owner)


register_model(OwnerType)(OpaqueModel)


@typeof_impl.register(Owner)
def type_of_owner(owner, context):
    return OwnerType(owner)


@overload(operator.add)
def owner_plus(left, right):
    if isinstance(left, OwnerType):
        function = left.owner.functions["plus"]
        return lambda left, right: function(right)


@overload(operator.getitem)
def owner_getitem(self, index):
    if isinstance(self, OwnerType):
        function = self.owner.functions["getitem"]
        return lambda self, index: function(index)


@overload(operator.neg)
def owner_neg(self):
    if isinstance(self, OwnerType):
        function = self.owner.functions["neg"]
        return lambda self: function(7)


@pytest.mark.parametrize(("name", "use"), [("plus", "owner + x[1]"), ("getitem", "owner[x[1]]"), ("neg", "-owner")])
def test_calls_in_the_bodies_of_overloaded_operators(name, use):
    spy = Linked(f"uses_{name}")
    names = {"owner": Owner({name: spy.function})}
    exec(f"def kernel(x):\n    x[0] = {use}", names)
    linked = build(names["kernel"])
    assert len(spy.asked) == 1 and len(linked.inputs) == 1


def test_an_intrinsic_that_compiles_a_python_function():
    spy = Linked("in_intrinsic")
    function = spy.function

    @intrinsic
    def compiles(context, x):
        def codegen(context, builder, signature, arguments):
            return context.compile_internal(builder, lambda x: function(x), signature, arguments)

        return types.int32(types.int32), codegen

    asked_once(spy, calling(compiles))


def test_an_intrinsic_that_asks_the_context_for_a_function():
    spy = Linked("requested")
    function = spy.function

    @intrinsic
    def requests(context, x):
        signature = types.int32(types.int32)

        def codegen(context, builder, signature, arguments):
            function_type = context.typing_context.resolve_value_type(function)
            function_type.get_call_type(context.typing_context, signature.args, {})
            return context.get_function(function_type, signature)(builder, arguments)

        return signature, codegen

    asked_once(spy, calling(requests))


class WithMethods:
    """Methods that are overloaded for its type; the hooks are set by the tests."""

    def method(self, x):
        raise NotImplementedError


class WithMethodsType(types.Opaque):
    def __init__(self):
        super().__init__("WithMethods")


register_model(WithMethodsType)(OpaqueModel)


@typeof_impl.register(WithMethods)
def type_of_with_methods(value, context):
    return WithMethodsType()


external_method = cuda.declare_device("external_method", "int32(int32)")


@overload_method(WithMethodsType, "method")
def with_methods_method(self, x):
    return lambda self, x: external_method(x)


def test_an_owner_that_a_device_function_gets_as_an_argument(monkeypatch):
    source = autolink.CUDASource(adder("external_method"))
    monkeypatch.setattr(WithMethods, "__numba_cuda_link__", lambda self, x: source, raising=False)
    instance = WithMethods()

    @cuda.jit(device=True)
    def apply(owner, x):
        return owner.method(x)

    def kernel(x):
        x[0] = apply(instance, x[1])

    assert len(build(kernel).inputs) == 1


class ArgumentType(types.Opaque):
    """The type of an object that is only a kernel argument, so that the type is asked."""

    def __init__(self, symbol):
        self.symbol = symbol
        super().__init__(f"Argument({symbol})")

    def __numba_cuda_link__(self, *argtypes):
        ArgumentType.asked.append(argtypes)
        return autolink.CUDASource(adder(self.symbol))


register_model(ArgumentType)(OpaqueModel)


@overload_method(ArgumentType, "method")
def argument_method(self, x):
    function = cuda.declare_device(self.symbol, "int32(int32)")
    return lambda self, x: function(x)


@pytest.mark.parametrize(
    ("symbol", "form"), [("by_type", types.void), ("by_type_in_a_tuple", lambda *argtypes: argtypes)]
)
def test_the_type_of_an_object_that_is_only_a_kernel_argument(symbol, form):
    ArgumentType.asked = []

    def kernel(argument, x):
        x[0] = argument.method(x[1])

    linked = build(kernel, form(ArgumentType(symbol), types.int32[::1]))
    assert ArgumentType.asked == [(types.int32,)]
    assert len(linked.inputs) == 1


def test_types_are_final():
    """A variable that is an integer at first and a float later is a float to the hook from the start."""
    spy = Linked("final", signature="float64(float64)")

    spy.answer = autolink.CUDASource('extern "C" __device__ int final(double *out, double x) { *out = x; return 0; }')
    function = spy.function

    def kernel(x):
        total = 0
        for i in range(x.size):
            total = function(total) + x[i]
        x[0] = total

    build(kernel, "void(float32[::1])")
    assert spy.asked == [(types.float64,)]


def test_each_object_signature_and_target_is_asked_once():
    spy = Linked("asked_once")
    function = spy.function

    def kernel(x):
        x[0] = function(x[1]) + function(x[2])

    def other(x):
        x[0] = function(x[1])

    build(kernel)
    build(other)
    build(kernel, cc=(8, 0))
    build(other, cc=(8, 0))
    assert [target.compute_capability for target in spy.targets] == [(9, 0), (8, 0)]
