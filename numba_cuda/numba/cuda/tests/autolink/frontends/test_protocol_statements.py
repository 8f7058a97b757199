# SPDX-License-Identifier: BSD-2-Clause
"""The statements of ``docs/protocol.md`` on both front ends, for calls that are not of device callables.

``test_conformance.py`` has those on device callables. Statements that no front end takes part in (T3, R1 to R3, L1 to
L3, K1 to K4) are tested in the folders of the protocol and of external code; those that do not hold on numba-cuda-mlir
are in ``docs/second_front_end.md``.
"""

from __future__ import annotations

import functools
import types as pytypes
from concurrent.futures import ThreadPoolExecutor

import pytest
from autolink_support import build
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.cache.store import reset_store

INTEGERS = "void(int32[::1])"


def source_of(symbol, parameter="int"):
    return autolink.CUDASource(f'extern "C" __device__ int {symbol}({parameter} x) {{ return x + 1; }}')


class Linked:
    """A declared function with a hook that records what it is asked; without it, what a hook elsewhere links."""

    def __init__(self, cuda, symbol, *, has_hook=True):
        self.asked = []
        self.targets = []
        self.source = source_of(symbol)
        self.function = cuda.declare_device(symbol, "int32(int32)", abi="c")
        if has_hook:
            self.function.__numba_cuda_link__ = self.hook

    def hook(self, *argtypes):
        self.asked.append(tuple(map(str, argtypes)))
        self.targets.append(autolink.current_target())
        return self.source

    def is_linked_once(self, linked, argtypes=("int32",)):
        return self.asked == [argtypes] and [each.input.code.decode() for each in linked.inputs] == [self.source.data]


@pytest.fixture
def extending(front_end):
    """The functions that extend the front end."""
    if front_end.name == "numba-cuda":
        from numba.cuda import extending
        from numba.cuda.datamodel.models import OpaqueModel

        return pytypes.SimpleNamespace(**vars(extending), OpaqueModel=OpaqueModel, Base=front_end.types.Opaque)
    from numba_cuda_mlir import extending, models
    from numba_cuda_mlir.numba_cuda import types

    typing, lowering = extending.typing_registry, extending.lowering_registry
    return pytypes.SimpleNamespace(
        overload=functools.partial(extending.overload, typing_registry=typing),
        overload_method=functools.partial(extending.overload_method, typing_registry=typing),
        overload_attribute=functools.partial(
            extending.overload_attribute, typing_registry=typing, lowering_registry=lowering
        ),
        typeof_impl=extending.typeof_impl,
        register_model=functools.partial(extending.register, models.mlir_data_manager),
        OpaqueModel=models.OpaqueModel,
        Base=types.NoneType,  # without a value that functions would get
    )


@pytest.fixture
def typed_class(extending):
    """Makes a class whose instances the front end can type, and their Numba type."""

    def make(name):
        class OwnType(extending.Base):
            def __init__(self, owner):
                super().__init__(f"{name}({id(owner)})")

        made = type(name, (), {"method": lambda self, x: NotImplemented})
        extending.register_model(OwnType)(extending.OpaqueModel)
        extending.typeof_impl.register(made)(lambda value, context: OwnType(value))
        return made, OwnType

    return make


class TestWhichObjectsAreAsked:
    @pytest.mark.parametrize("of", ["the dispatcher", "its Python function"])
    def test_w2_a_device_function(self, cuda, of):
        spy = Linked(cuda, "w2_device_function", has_hook=False)

        def function(x):
            return x + 1

        device_function = cuda.jit(device=True, inline="never")(function)
        (device_function if of == "the dispatcher" else function).__numba_cuda_link__ = spy.hook

        @cuda.jit
        def kernel(x):
            x[0] = device_function(x[1])

        assert spy.is_linked_once(build(kernel, INTEGERS))

    def test_w2_a_bound_method_before_its_owner(self, cuda, extending, typed_class):
        spy = Linked(cuda, "w2_method", has_hook=False)
        external, (Owner, OwnerType) = spy.function, typed_class("Owner")
        asked = []

        @extending.overload_method(OwnerType, "method")
        def _(self, x):
            return lambda self, x: external(x)

        def kernel_of(owner):
            @cuda.jit
            def kernel(x):
                x[0] = owner.method(x[1])

            return kernel

        def hook(who, *argtypes):
            asked.append(who)
            return spy.source

        Owner.__numba_cuda_link__ = lambda self, x: hook("owner")
        first = build(kernel_of(Owner()), INTEGERS)
        Owner.method.__numba_cuda_link__ = lambda x: hook("method")
        second = build(kernel_of(Owner()), INTEGERS)
        assert asked == ["owner", "method"] and len(first.inputs) == len(second.inputs) == 1

    @pytest.mark.parametrize("kind", [classmethod, staticmethod, None])
    def test_w5_a_class(self, cuda, extending, kind):
        spy = Linked(cuda, "w5_class", has_hook=False)
        external = spy.function
        hooks = {
            classmethod: classmethod(lambda cls, x: spy.hook(x)),
            staticmethod: staticmethod(spy.hook),
            None: lambda self, x: spy.hook(x),
        }
        called = type("Called", (), {"__numba_cuda_link__": hooks[kind]})

        @extending.overload(called)
        def _(x):
            return lambda x: external(x)

        @cuda.jit
        def kernel(x):
            x[0] = called(x[1])

        if kind is not None:
            assert spy.is_linked_once(build(kernel, INTEGERS))
            return
        with pytest.raises(Exception, match="w5_class"):
            build(kernel, INTEGERS)
        assert spy.asked == []

    @pytest.mark.parametrize("use", ["owner.method(x[1])", "owner.attribute", "len(owner)", "overloaded(x[1])"])
    def test_w6_calls_in_the_bodies_of_overloads(self, cuda, extending, typed_class, use):
        spy = Linked(cuda, "w6_overload")
        external, (Owner, OwnerType) = spy.function, typed_class("Overloaded")

        def overloaded(x):
            raise NotImplementedError

        extending.overload_method(OwnerType, "method")(lambda self, x: lambda self, x: external(x))
        extending.overload_attribute(OwnerType, "attribute")(lambda self: lambda self: external(5))
        extending.overload(overloaded)(lambda x: lambda x: external(x))

        @extending.overload(len)
        def _(self):
            if isinstance(self, OwnerType):
                return lambda self: external(7)

        names = {"owner": Owner(), "overloaded": overloaded}
        exec(f"def kernel(x):\n    x[0] = {use}", names)
        built = build(cuda.jit(names["kernel"]), INTEGERS)
        assert len(spy.asked) == 1 and len(built.inputs) == 1

    def test_w7_an_object_that_is_only_mentioned(self, cuda):
        mentioned, other = Linked(cuda, "w7_mentioned"), Linked(cuda, "w7_called")
        function, called = mentioned.function, other.function

        @cuda.jit
        def kernel(x):
            if False:
                x[0] = function(x[1])
            x[0] = called(x[1])

        assert other.is_linked_once(build(kernel, INTEGERS)) and mentioned.asked == []


class TestWhatTheHookReceives:
    def test_a1_keywords_defaults_and_star_arguments(self, front_end, cuda, extending):
        front_end.needs("0.6", "calls of overloads with keywords")
        spy = Linked(cuda, "a1_folded", has_hook=False)
        behind = spy.function

        def function(a, b=2, c=None):
            raise NotImplementedError

        def starred(a, *rest):
            raise NotImplementedError

        function.__numba_cuda_link__ = starred.__numba_cuda_link__ = spy.hook
        extending.overload(function)(lambda a, b=2, c=None: lambda a, b=2, c=None: behind(a))
        extending.overload(starred)(lambda a, *rest: lambda a, *rest: behind(a))

        @cuda.jit
        def kernel(x, y):
            x[0] = function(b=y[0], a=x[1])
            x[1] = function(x[1], c=y[0])
            x[2] = starred(x[1], y[0], x[2])

        build(kernel, "void(int32[::1], float64[::1])")
        assert spy.asked == [
            ("int32", "float64", "none"),
            ("int32", "int64", "float64"),
            ("int32", "float64", "int32"),
        ]

    def test_a3_in_a_device_function_the_target_of_the_kernel(self, cuda):
        spy = Linked(cuda, "a3_target")
        function = spy.function

        @cuda.jit(device=True, inline="never")
        def inner(x):
            return function(x)

        @cuda.jit
        def kernel(x):
            x[0] = inner(x[1])

        build(kernel, INTEGERS, cc="9.0a", fastmath=True, max_registers=40, lineinfo=True)
        (target,) = spy.targets
        assert (target.suffix, target.fastmath, target.max_registers, target.lineinfo) == ("a", True, 40, True)

    def test_a4_a_hook_compiles_for_itself_but_no_call_of_itself(self, cuda):
        spy = Linked(cuda, "a4_inner")
        function = spy.function

        @cuda.jit
        def inner(x):
            x[0] = function(x[1])

        class Outer(autolink.DeviceCallable):
            def __init__(self):
                self.compiled = inner

            def __numba_cuda_call__(self, x):
                return autolink.Extern("a4_outer", returns=x)

            def __numba_cuda_link__(self, x):
                build(self.compiled, INTEGERS, cc=(8, 0))
                assert autolink.current_target().compute_capability == (9, 0)
                return source_of("a4_outer")

        def kernel_of(outer):
            @cuda.jit
            def kernel(x):
                x[0] = outer(x[1])

            return kernel

        build(kernel_of(Outer()), INTEGERS)
        assert [each.compute_capability for each in spy.targets] == [(8, 0)]
        itself = Outer()
        itself.compiled = kernel_of(itself)
        with pytest.raises(autolink.CallError, match="compiles a call to itself with the same types"):
            build(kernel_of(itself), INTEGERS, cc=(8, 0))


class TestWhen:
    def test_t2_an_object_that_failed_is_asked_again(self, cuda):
        spy = Linked(cuda, "t2_again")
        function, answers = spy.function, [ValueError("once"), spy.source]

        def hook(x):
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        function.__numba_cuda_link__ = hook

        @cuda.jit
        def kernel(x):
            x[0] = function(x[1])

        with pytest.raises(autolink.CallError, match="ValueError: once"):
            build(kernel, INTEGERS)
        assert len(build(kernel, INTEGERS).inputs) == 1 and answers == []

    def test_t2_threads_compile_at_the_same_time(self, cuda):
        spy = Linked(cuda, "t2_threads")
        function = spy.function

        def kernel_of(number):
            @cuda.jit
            def kernel(x):
                x[0] = function(x[1]) + number

            return kernel

        with ThreadPoolExecutor(4) as threads:
            built = list(threads.map(lambda number: build(kernel_of(number), INTEGERS), range(4)))
        assert len(spy.asked) == 1 and [len(each.inputs) for each in built] == [1] * 4

    def test_t4_an_answer_that_changes_is_refused_in_verify_mode(self, cuda, monkeypatch):
        monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE", "verify")
        function, answers = Linked(cuda, "t4_changes").function, []

        def hook(x):
            answers.append(autolink.CUDASource(f"// {len(answers)}"))
            return answers[-1]

        function.__numba_cuda_link__ = hook

        @cuda.jit
        def kernel(x):
            x[0] = function(x[1])

        reset_store()
        try:
            with pytest.raises(Exception, match="changes its answer between calls"):
                build(kernel, INTEGERS)
        finally:
            monkeypatch.undo()
            reset_store()


class TestWhatItReturns:
    def test_r4_a_file_is_read_again_for_each_kernel(self, cuda, tmp_path):
        path, asked = tmp_path / "edited.cu", []
        function = Linked(cuda, "r4_edited").function
        function.__numba_cuda_link__ = lambda x: asked.append(x) or path

        @cuda.jit
        def kernel(x):
            x[0] = function(x[1])

        code = []
        for number in (1, 2):
            path.write_text(f'extern "C" __device__ int r4_edited(int x) {{ return x + {number}; }}')
            code.append(build(kernel, INTEGERS).code)
        assert code[0] != code[1] and len(asked) == 1

    def test_r5_an_error_in_a_device_function_names_the_call_there(self, cuda):
        function = Linked(cuda, "r5_raises").function

        def hook(x):
            raise KeyError("no code")

        function.__numba_cuda_link__ = hook

        @cuda.jit(device=True, inline="never")
        def inner(x):
            return function(x)  # here

        @cuda.jit
        def kernel(x):
            x[0] = inner(x[1])

        with pytest.raises(Exception, match="__numba_cuda_link__ raised KeyError: 'no code'") as raised:
            build(kernel, INTEGERS)
        assert "# here" in str(raised.value)


class TestWhatHappensToTheCode:
    def test_l5_all_ways_of_linking_work_in_one_kernel(self, cuda):
        spy = Linked(cuda, "l5_hook")
        by_hook = spy.function
        declared = cuda.declare_device("l5_declared", "int32(int32)", abi="c", link=[source_of("l5_declared")])
        by_option = cuda.declare_device("l5_option", "int32(int32)", abi="c")

        @cuda.jit(link=[source_of("l5_option")])
        def kernel(x):
            x[0] = by_hook(x[1]) + declared(x[2]) + by_option(x[3])

        assert len(build(kernel, INTEGERS).inputs) == 3

    def test_l5_sources_of_this_project_alone_in_the_option(self, cuda):
        by_option = cuda.declare_device("l5_alone", "int32(int32)", abi="c")

        @cuda.jit(link=[source_of("l5_alone")])
        def kernel(x):
            x[0] = by_option(x[1])

        assert len(build(kernel, INTEGERS).inputs) == 1
