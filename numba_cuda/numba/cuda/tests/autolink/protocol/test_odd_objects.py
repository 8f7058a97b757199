# SPDX-License-Identifier: BSD-2-Clause
"""Objects that behave oddly, called in kernels or used there: a clear error or the right code, never a crash."""

import gc
import itertools
import os
import traceback
import types as pytypes
import weakref
from unittest import mock

import pytest
from autolink_support import adder, build
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink.device_callable import base_class
from numba.cuda.autolink.protocol.callee import Callee, find_callee, identity
from numba.cuda.core.errors import NumbaError, TypingError

from numba_cuda_autolink.short_tracebacks import VARIABLE

numbers = itertools.count()


class Add(autolink.DeviceCallable):
    """A well-behaved object; each has code of its own, named after the number that it adds."""

    def __init__(self):
        vars(self)["number"] = next(numbers)

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"add_{vars(self)['number']}", returns=x)

    def __numba_cuda_link__(self, x):
        number = vars(self)["number"]
        return autolink.CUDASource(f'extern "C" __device__ int add_{number}(int x) {{ return x + {number}; }}')


class AnswersWithItself(Add):
    def __getattr__(self, name):
        return self


class AnswersWithNewObjects(Add):
    def __getattr__(self, name):
        return type("New", (), {})()


class AnswersWithMocks(Add):
    def __getattr__(self, name):
        return mock.MagicMock()


class RaisesForUnknownNames(Add):
    def __getattr__(self, name):
        raise RuntimeError(f"there is no {name}")


class Unhashable(Add):
    __hash__ = None


class EqualToEverything(Add):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class EqualToNothing(Add):
    def __eq__(self, other):
        return False

    def __hash__(self):
        return 0


class RaisesWhenCompared(Add):
    def __eq__(self, other):
        raise RuntimeError("not to be compared")

    def __hash__(self):
        raise RuntimeError("not to be hashed")


class RaisesWhenTested(Add):
    def __bool__(self):
        raise RuntimeError("neither true nor false")

    def __len__(self):
        raise RuntimeError("without a length")


class Unprintable(Add):
    def __repr__(self):
        raise RuntimeError("no repr")


ODD = [
    AnswersWithItself,
    AnswersWithNewObjects,
    AnswersWithMocks,
    RaisesForUnknownNames,
    Unhashable,
    EqualToEverything,
    EqualToNothing,
    RaisesWhenCompared,
    RaisesWhenTested,
    Unprintable,
]


FAIL_IN_NUMBA_CUDA = {  # which reads attributes of globals, calls them, tests them and prints them
    AnswersWithItself,
    AnswersWithNewObjects,
    AnswersWithMocks,
    RaisesForUnknownNames,
    RaisesWhenTested,
    Unprintable,
}


@pytest.fixture(autouse=True)
def full_tracebacks(monkeypatch):
    """Keep the frames that `raised_by` reads."""
    monkeypatch.setenv(VARIABLE, "full")


def raised_by(error):
    """The file of the code that raised, or that used the odd object which did."""
    files = [frame.filename for frame in reversed(traceback.extract_tb(error.__traceback__))]
    return next(file for file in files if file not in (__file__, mock.__file__, base_class.__file__))


def code_or_error(kernel):
    """Return the names of the functions that a kernel links, or None if numba-cuda cannot compile it."""
    try:
        return names_of(build(kernel))
    except NumbaError:
        return None
    except Exception as error:
        assert f"{os.sep}autolink{os.sep}" not in raised_by(error), traceback.format_exc()
        return None


def names_of(linked):
    return [planned.input.code.decode().split("(")[0].split()[-1] for planned in linked.inputs]


@pytest.mark.parametrize("kind", ODD)
def test_each_object_gets_its_own_code(kind):
    one, other = kind(), kind()

    @cuda.jit(device=True)
    def indirectly(function, x):
        return function(x)

    def kernel(x):
        x[0] = one(x[1]) + other(x[2])
        x[3] = indirectly(one, x[4]) + indirectly(other, x[5])

    expected = [f"add_{vars(each)['number']}" for each in (one, other)]
    for _ in range(2):
        linked = code_or_error(kernel)
        assert linked == expected or (linked is None and kind in FAIL_IN_NUMBA_CUDA)


@pytest.mark.parametrize("kind", ODD)
def test_of_a_tuple_of_objects_each_gets_its_own_code(kind):
    functions = (kind(), kind())

    def kernel(x):
        x[0] = functions[1](x[1]) + functions[0](x[2])

    linked = code_or_error(kernel)
    expected = [f"add_{vars(each)['number']}" for each in reversed(functions)]
    assert linked == expected or (linked is None and kind is Unprintable)


class Forwards:
    """A proxy: it has the class and the attributes of what it stands for."""

    def __init__(self, target):
        object.__setattr__(self, "target", target)

    @property
    def __class__(self):
        return type(object.__getattribute__(self, "target"))

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "target"), name)


NOT_FOR_KERNELS = {
    "mock": mock.Mock,
    "magic mock": mock.MagicMock,
    "mock of an int": lambda: mock.Mock(spec=int),
    "mock of a device callable": lambda: mock.Mock(spec=Add()),
    "module that raises": lambda: module(RuntimeError("lazy")),
    "proxy of an int": lambda: Forwards(5),
    "object that raises for every name": type("R", (), {"__getattr__": RaisesForUnknownNames.__getattr__}),
    "object that answers to every name": type("A", (), {"__getattr__": lambda self, name: self}),
    "object that raises when compared": type("C", (), {"__eq__": RaisesWhenCompared.__eq__, "__hash__": None}),
}


def module(error):
    def refuse(name):
        raise error

    made = pytypes.ModuleType("lazy")
    made.__getattr__ = refuse
    return made


def calls(odd):
    def kernel(x):
        x[0] = odd(x[1])

    return kernel


def reads(odd):
    def kernel(x):
        x[0] = odd.size

    return kernel


def branches_on(odd):
    def kernel(x):
        if odd.flag:
            x[0] = 1

    return kernel


def calls_a_method(odd):
    def kernel(x):
        x[0] = odd.method(x[1])

    return kernel


def passes_on(odd):
    add = Add()

    def kernel(x):
        x[0] = add(odd)

    return kernel


def reads_from_a_callable(odd):
    add = Add()
    vars(add)["part"] = odd

    def kernel(x):
        if add.part:
            x[0] = add(x[1])

    return kernel


@pytest.mark.parametrize("use", [calls, reads, branches_on, calls_a_method, passes_on, reads_from_a_callable])
@pytest.mark.parametrize("make", NOT_FOR_KERNELS.values(), ids=NOT_FOR_KERNELS)
def test_what_is_not_for_kernels_is_an_error_and_none_of_our_own_making(make, use):
    """numba-cuda itself fails in many ways with such objects."""
    assert code_or_error(use(make())) is None


@pytest.mark.parametrize("wrap", [Forwards, weakref.proxy], ids=["proxy", "weak proxy"])
def test_a_proxy_of_an_object_is_refused_or_gets_the_objects_code(wrap):
    target = Add()
    proxy = wrap(target)

    def kernel(x):
        x[0] = proxy(x[1])

    assert code_or_error(kernel) in (None, [f"add_{target.number}"])


@pytest.mark.parametrize("name", ["__numba_cuda_link__", "__numba_cuda_link_key__"])
def test_a_hook_that_raises_when_it_is_read_is_an_error_at_the_call(name):
    @property
    def hook(self):
        raise RuntimeError("the generator is not installed")

    lazy = type("Lazy", (Add,), {name: hook})()

    with pytest.raises(TypingError, match=f"{name} raised RuntimeError: the generator is not installed") as caught:
        build(calls(lazy))
    assert f"called at: {__file__}" in str(caught.value)


def test_an_object_that_answers_to_every_name_has_no_hook():
    class Everything:
        def __getattr__(self, name):
            return lambda *_: "code.ltoir"

    assert find_callee(Everything()) is None
    assert find_callee(mock.MagicMock()) is None


def test_a_hook_of_an_object_that_answers_to_every_name_counts_if_it_is_there():
    assert find_callee(AnswersWithItself()).hook(None).name


def test_parts_that_are_made_at_each_access_do_not_identify_an_object():
    """Their ``id()`` would soon be that of something else."""
    odd = AnswersWithNewObjects()
    assert identity(odd) == (id(odd),)


def test_a_callee_holds_what_identifies_it():
    class Method:
        """A bound method whose owner is made when it is asked for."""

        @property
        def __self__(self):
            return Add()

        def __func__(self):
            return None

    callees = [Callee(Method(), print) for _ in range(50)]
    assert len({callee.identity for callee in callees}) == 50


def test_objects_that_die_between_builds_leave_no_code_to_others():
    """A new object may have the address of a dead one."""

    def code_of_a_new_object():
        add = Add()

        def kernel(x):
            x[0] = add(x[1])

        return add.number, names_of(build(kernel, output="ltoir"))

    for _ in range(20):
        number, names = code_of_a_new_object()
        assert names == [f"add_{number}"]
        gc.collect()


def test_an_object_may_die_while_it_answers():
    alive = {}

    class Dying(Add):
        def __numba_cuda_link__(self, x):
            alive.clear()
            gc.collect()
            return super().__numba_cuda_link__(x)

    alive["function"] = Dying()
    number = alive["function"].number
    namespace = pytypes.ModuleType("namespace")
    namespace.__getattr__ = lambda name: alive[name] if name in alive else refuse(name)

    def refuse(name):
        raise AttributeError(name)

    def kernel(x):
        x[0] = namespace.function(x[1])

    assert code_or_error(kernel) in (None, [f"add_{number}"])


def test_a_function_of_a_declared_function_with_an_odd_hook():
    for odd in (mock.MagicMock(), AnswersWithItself(), 5, "code"):
        function = cuda.declare_device("odd_hook", "int32(int32)", link=[cuda.CUSource(adder("odd_hook"))])
        function.__numba_cuda_link__ = odd

        with pytest.raises(TypingError, match="__numba_cuda_link__"):
            build(calls(function))


@pytest.mark.parametrize("hook", ["__numba_cuda_link__", "__numba_cuda_link_key__"])
def test_a_hook_that_is_a_property_is_told_to_be_a_method(hook):
    odd = type("Odd", (Add,), {hook: property(lambda self: 3)})()
    with pytest.raises(TypingError) as raised:
        build(calls(odd.function if hasattr(odd, "function") else odd))
    assert f"Odd.{hook} is not callable\n" in str(raised.value)
    assert "\n  what to do: make it a method, not a property or a value" in str(raised.value)
