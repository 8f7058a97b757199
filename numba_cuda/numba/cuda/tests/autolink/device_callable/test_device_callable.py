# SPDX-License-Identifier: BSD-2-Clause
"""The callable base class: how kernels call objects, and what kernels see of them."""

import copy
import enum
import gc
import inspect
import os
import pickle
import pydoc
import re
import subprocess
import sys
import textwrap
import types as pytypes
import weakref
from collections import namedtuple

import numpy as np
import pytest
from autolink_support import build, calling, without_place
from numba import cuda
from numba.cuda import autolink, dispatcher, literal_unroll, types
from numba.cuda.autolink.compilation.context import without_device
from numba.cuda.core.errors import LoweringError, TypingError
from numba.cuda.cudadrv.external_code.diagnostics.messages import shown
from numba.cuda.typing.typeof import Purpose, typeof

FLOATS = (types.float32[::1],)
Dim = namedtuple("Dim", "x y")
Mode = enum.Enum("Mode", "FAST EXACT")


class Scale(autolink.DeviceCallable):
    """``scale(x, by=2, *, plus=0)`` is ``factor * x * by + plus``; it records the questions it is asked."""

    def __init__(self, factor=1, **attributes):
        self.factor = factor
        self.__dict__.update(attributes)
        self.calls, self.links = [], []

    def __repr__(self):
        return f"Scale({self.factor})"

    def __numba_cuda_call__(self, x, by=2, *, plus=0):
        self.calls.append((x, by, plus))
        return autolink.Extern(f"scale_{self.factor}_{x}_{by}_{plus}", returns=x)

    def __numba_cuda_link__(self, x, by, plus):
        self.links.append((x, by, plus))
        a, b, c = map(autolink.cxx_type, (x, by, plus))
        return autolink.CUDASource(
            f'extern "C" __device__ {a} scale_{self.factor}_{x}_{by}_{plus}({a} x, {b} by, {c} plus)'
            f" {{ return {self.factor} * x * by + plus; }}"
        )

    def python_method(self):
        return 1


def refused(kernel, signature=FLOATS, error=TypingError):
    """Return the text of the error for *kernel*, which must show the marked line."""
    with pytest.raises(error) as caught:
        build(kernel, signature)
    text = re.sub(r"\x1b\[\d*m", "", str(caught.value))
    assert "# here" in text
    assert "No implementation of function" not in text
    return text


def folded(kernel, signature=FLOATS):
    """Return the floats that the linked PTX of *kernel* stores as constants."""
    text = build(kernel, signature, output="ptx").code.decode()
    assert "call." not in text
    stored = re.findall(r"mov\.u32\s+%r\d+, (\d+);", text)
    return [float(np.uint32(int(bits)).view(np.float32)) for bits in stored]


in_module = Scale(11)


class TestCalls:
    def test_values_reach_their_parameters(self):
        scale = Scale(3)

        def kernel(x):
            x[0] = scale(np.float32(5))
            x[1] = scale(np.float32(5), 4)
            x[2] = scale(plus=7, x=np.float32(5))
            x[3] = scale(*(np.float32(5), 6), plus=np.int8(9))

        assert folded(kernel) == [30, 60, 37, 99]

    def test_keyword_only_parameters_without_default_may_follow_defaults(self):
        class Function(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x, y=1, *, z):
                return autolink.Extern("f", returns=types.float32)

            def __numba_cuda_link__(self, x, y, z):
                return autolink.CUDASource(
                    'extern "C" __device__ float f(float x, long long y, long long z) { return x + 10 * y + 100 * z; }'
                )

        f = Function()

        def kernel(x):
            x[0] = f(np.float32(2), z=3)
            x[1] = f(np.float32(2), z=3, y=4)

        assert folded(kernel) == [312, 342]

    def test_any_number_of_arguments(self):
        class Sum(autolink.DeviceCallable):
            def __numba_cuda_call__(self, first, *others):
                return autolink.Extern(f"sum_{len(others)}", returns=first)

            def __numba_cuda_link__(self, first, *others):
                declared = "".join(f", float x{i}" for i in range(len(others)))
                added = "".join(f" + x{i}" for i in range(len(others)))
                return autolink.CUDASource(
                    f'extern "C" __device__ float sum_{len(others)}(float first{declared}) {{ return first{added}; }}'
                )

        total = Sum()

        def kernel(x):
            x[0] = total(np.float32(1))
            x[1] = total(np.float32(1), np.float32(2), np.float32(4))

        assert folded(kernel) == [1, 7]


class TestLiterals:
    class Take(autolink.DeviceCallable):
        """``take(x, axis)``, with the axis in the symbol."""

        def __numba_cuda_call__(self, x, axis: types.Literal = 0, *, mode="fast"):
            assert isinstance(mode, types.StringLiteral)
            return autolink.Extern(f"take_{axis.literal_value}_{mode.literal_value}", returns=x)

        def __numba_cuda_link__(self, x, axis, mode):
            name = f"take_{axis.literal_value}_{mode.literal_value}"
            return autolink.CUDASource(
                f'extern "C" __device__ float {name}(float x, long long axis) {{ return x + axis; }}'
            )

    def test_a_literal_is_given_to_a_parameter_that_requires_one(self):
        take = self.Take()

        def kernel(x):
            x[0] = take(np.float32(1), 5)
            x[1] = take(np.float32(1), mode="exact")

        assert folded(kernel) == [6, 1]

    def test_an_annotation_may_be_a_string(self):
        class Take(self.Take):
            def __numba_cuda_call__(self, x, axis: "types.Literal" = 0, other: "for type checkers" = 0):  # noqa: F722
                return autolink.Extern(f"take_{axis.literal_value}_{other}", args=["x"])

            def __numba_cuda_link__(self, x, axis, other):
                return None

        take = Take()

        def kernel(x):
            take(x[0], 5)

        text, _ = cuda.compile(kernel, FLOATS, cc=(9, 0), device=False, abi="numba", output="ptx")
        assert ".func take_5_int64" in " ".join(text.split())

    def test_an_argument_that_must_be_a_literal_and_is_not(self):
        take = self.Take()

        def kernel(x, n):
            x[0] = take(x[0], n)  # here

        text = refused(kernel, (*FLOATS, types.int64))
        assert "argument 'axis' must be a constant that is known at compile time, got int64" in text


class TestReachedThrough:
    """However an object is reached, the call is typed and its code is linked."""

    def test_each_body_of_a_loop_over_a_tuple_has_one_element(self):
        """numba-cuda's code chooses among all in each: the kernel grows with the square of their number."""
        scales = tuple(map(Scale, range(1, 9)))

        def kernel(x):
            y = 0
            for scale in literal_unroll(scales):
                y = scale(x[0])
            x[0] = y

        with without_device((9, 0, "")):
            library = dispatcher._Kernel(kernel, FLOATS, lto=True)._codelibrary
        text = "".join(library.llvm_strs)
        assert "typed_switch" not in text and text.count("call") < 8 * len(scales)


class TestMethods:
    class Generator(autolink.DeviceCallable):
        def __init__(self, seed):
            self.seed = seed
            self.asked = []

        def __repr__(self):
            return f"Generator({self.seed})"

        @autolink.device_method
        def uniform(self, low, high=1):
            return autolink.Extern(f"uniform_{self.seed}", returns=low)

        @uniform.link
        def uniform(self, low, high):
            self.asked.append(("uniform", low, high))
            return autolink.CUDASource(
                f'extern "C" __device__ float uniform_{self.seed}(float low, long long high)'
                f" {{ return low + high + {self.seed}; }}"
            )

        @autolink.device_method
        def normal(self):
            return autolink.Extern("normal", returns=types.float32)

        def __numba_cuda_link__(self, *argtypes):
            self.asked.append(("object", *argtypes))
            return autolink.CUDASource('extern "C" __device__ float normal() { return 42; }')

    def test_are_called_with_defaults_and_keywords(self):
        generator = self.Generator(100)

        def kernel(x):
            x[0] = generator.uniform(np.float32(10))
            x[1] = generator.uniform(high=5, low=np.float32(10))

        assert folded(kernel) == [111, 115]

    @pytest.mark.counted
    def test_link_their_own_code_or_that_of_their_object(self):
        generator = self.Generator(1)

        def kernel(x):
            x[0] = generator.uniform(x[0]) + generator.normal()

        linked = build(kernel, FLOATS)
        assert generator.asked == [("uniform", types.float32, types.int64), ("object",)]
        assert [str(site.callee) for site in linked.call_sites] == ["Generator(1).uniform", "Generator(1)"]

    def test_may_have_a_link_key_of_their_own(self):
        class Keyed(self.Generator):
            uniform = TestMethods.Generator.uniform.link_key(lambda self, low, high: (self.seed, str(low)))

        assert Keyed(7).uniform.__numba_cuda_link_key__(types.int8, types.int8) == (7, "int8")
        assert not hasattr(self.Generator(7).uniform, "__numba_cuda_link_key__")

    def test_errors_name_their_parameters(self):
        generator = self.Generator(1)

        def kernel(x):
            x[0] = generator.uniform()  # here

        expected = "Generator.uniform: missing a required argument: 'low'; its parameters are (low, high=1)"
        assert expected in without_place(refused(kernel))

    def test_python_methods_cannot_be_called(self):
        scale = Scale()

        def kernel(x):
            x[0] = scale.python_method()  # here

        text = refused(kernel)
        assert "Scale.python_method is a Python method\n  object: Scale(1)\n" in without_place(text)
        assert "what to do: decorate it with @autolink.device_method" in text

    def test_are_equal_for_the_same_object(self):
        first, second = self.Generator(1), self.Generator(1)
        assert first.uniform == first.uniform != second.uniform
        assert hash(first.uniform) == hash(first.uniform)
        assert repr(first.uniform) == "Generator(1).uniform"


class TestAttributes:
    def test_are_shapes_and_dtypes(self):
        scale = Scale(
            length=np.int32(4),
            shape=(2, np.int64(3)),
            dim=Dim(3, np.uint8(3)),
            numpy_class=np.complex64,
            dtype=np.dtype("float64"),
            numba_type=types.int16,
            record=np.dtype([("a", "f4"), ("b", "i4")]),
        )

        def kernel(x):
            a = cuda.local.array(scale.length, scale.numpy_class)
            b = cuda.shared.array(scale.shape, scale.dtype)
            c = cuda.shared.array(shape=scale.dim, dtype=scale.numba_type)
            d = cuda.local.array(scale.dim.x, dtype=scale.record)
            i = cuda.threadIdx.x
            a[i] = b[1, i] = c[2, i] = d[i].b = x[0]
            x[i] = a[0].real + b[1, 0] + c[2, 0] + d[0].b

        text = build(kernel, FLOATS, output="ptx").code.decode()
        sizes = [int(size) for size in re.findall(r"\.shared .*\[(\d+)\];", text)]
        assert sorted(sizes) == [3 * 3 * 2, 2 * 3 * 8]

    def test_are_constants_of_every_kind(self):
        scale = Scale(
            number=0.5,
            single=np.float32(0.25),
            flag=np.bool_(True),
            nothing=None,
            dim=Dim(3, 4),
            mixed=Dim(1, 0.5),
            table=np.arange(4.0)[::2],
            text="fast",
            mode=Mode.FAST,
            offset=1 + 2j,
        )

        def kernel(x):
            x[0] = scale.number + scale.single + scale.flag + scale.dim.y + scale.mixed.y + scale.offset.imag
            x[1] = len(scale.dim) + (scale.text == "fast") + (scale.mode is Mode.FAST) + (scale.nothing is None)
            x[2] = scale.table[1]

        assert folded(kernel)[:2] == [8.25, 5]
        text = build(kernel, FLOATS, output="ptx").code.decode()
        assert re.search(r"\.const .*\[16\] = \{(0, ){15}64\};", text)  # 0.0 and 2.0

    def test_decide_branches_before_typing(self):
        scale = Scale(5, on=True, off=np.bool_(False), mode="forward", other=None, inner=Scale(2, on=True))
        module = pytypes.ModuleType("module")
        module.scale = scale

        def kernel(x):
            if scale.off:
                x[0] = "no number"
            if scale.on:
                x[0] = 1
            else:
                x[0] = "no number"
            if scale.mode == "inverse":
                x[0] = "no number"
            if scale.other is not None:
                x[0] = "no number"
            if scale.factor != 5:
                x[0] = "no number"
            if scale.inner.on and not module.scale.on:
                x[0] = "no number"

        build(kernel, FLOATS)

    def test_of_an_argument_of_a_device_function(self):
        scale = Scale(5, shape=(2, 2), flag=True)

        @cuda.jit(device=True)
        def filled(scale, x):
            a = cuda.local.array(scale.shape, types.float32)
            a[1, 1] = x + scale.factor
            return a[1, 1]

        def kernel(x):
            x[0] = filled(scale, np.float32(1))

        assert folded(kernel) == [6]

    def test_a_missing_one(self):
        scale = Scale(1, size=3)

        def kernel(x):
            x[0] = scale.sise  # here

        expected = (
            "Scale has no attribute 'sise'\n  object: Scale(1)\n  attributes: calls, factor, links, python_method, size"
        )
        assert expected in without_place(refused(kernel))

    def test_one_that_cannot_be_a_constant(self):
        scale = Scale(1, values=[1, 2])

        def kernel(x):
            x[0] = scale.values[0]  # here

        diagnosis = "Scale.values is of type list, which cannot be a constant of a kernel"
        assert f"{diagnosis}\n  object: Scale(1)\n  expected: a number, " in without_place(refused(kernel))

    def test_one_that_raises(self):
        class Broken(Scale):
            @property
            def size(self):
                raise ValueError("not configured")

        scale = Broken()

        def kernel(x):
            x[0] = scale.size  # here

        assert "Broken.size raised ValueError: not configured\n  object: Scale(1)" in without_place(refused(kernel))

    def test_one_that_is_a_new_object_each_time(self):
        class Parent(Scale):
            @property
            def child(self):
                return Scale(2)

        scale = Parent()

        def kernel(x):
            x[0] = scale.child(x[0])  # here

        text = refused(kernel)
        assert "Parent.child makes a new object each time it is read" in text
        assert "what to do: keep the object" in text

    def test_cannot_be_assigned(self):
        scale = Scale(7)

        def kernel(x):
            scale.factor = 8

        with pytest.raises(LoweringError, match=r"cannot assign to the attribute 'factor' in a kernel") as caught:
            build(kernel, FLOATS)
        line = kernel.__code__.co_firstlineno + 1
        assert f"at: {__file__}:{line} in " in str(caught.value)
        assert "object: Scale(7)" in str(caught.value)


class TestErrors:
    @pytest.mark.parametrize(
        "call, message",
        [
            ("scale()", "missing a required argument: 'x'; its parameters are (x, by=2, *, plus=0)"),
            ("scale(1, 2, 3)", "too many positional arguments; its parameters are (x, by=2, *, plus=0)"),
            ("scale(1, to=2)", "there is no parameter 'to'; its parameters are (x, by=2, *, plus=0)"),
            (
                "scale(1, plu=2)",
                "there is no parameter 'plu'; did you mean 'plus'? its parameters are (x, by=2, *, plus=0)",
            ),
            ("scale(1, x=2)", "multiple values for argument 'x'; its parameters are (x, by=2, *, plus=0)"),
        ],
    )
    def test_arguments_that_do_not_fit(self, call, message):
        with pytest.raises(TypingError) as caught:
            build(in_file(f"def kernel(x):\n    x[0] = {call}\n", scale=Scale()), FLOATS)
        assert str(caught.value).startswith(f"Scale: {message}")
        assert "\n  object: Scale(1)" in str(caught.value)
        if "there is no" not in message:
            assert f"\n  __numba_cuda_call__ is defined at: {__file__}:" in str(caught.value)
            assert "\n  what to do: pass one argument for each; or give" in str(caught.value)

    def test_a_hook_that_needs_a_constant(self):
        class Function(Scale):
            def __numba_cuda_call__(self, x):
                return autolink.Extern(f"scale_{x.literal_value}", returns=x)

        f = Function(4)

        def kernel(x):
            f(x[0])  # here

        assert "  what to do: write a constant in the call: a variable has no value while" in refused(kernel)

    def test_a_symbol_that_is_not_an_identifier(self):
        scale = Scale(4)

        def kernel(x):
            scale(x)  # here

        text = refused(kernel)
        assert text.splitlines()[0].endswith("must be a C identifier, not 'scale_4_array(float32, 1d, C)_int64_int64'")
        assert f"raised at: {__file__}:" in text

    @pytest.mark.parametrize("returned", [None, "symbol", autolink.Extern])
    def test_a_hook_that_returns_something_else(self, returned):
        class Function(Scale):
            def __numba_cuda_call__(self, x):
                return returned

        f = Function(4)

        def kernel(x):
            f(x[0])  # here

        text = refused(kernel)
        assert (
            "Function.__numba_cuda_call__ returned neither an autolink.Extern nor a function\n  object: Scale(4)\n"
            in without_place(text)
        )
        assert f"got: {shown(returned)}" in text
        remedy = "return what it makes" if returned is None else "return an autolink.Extern, or a Python function"
        remedy = f"return autolink.Extern({returned!r}, returns=...)" if isinstance(returned, str) else remedy
        assert f"  what to do: {remedy}" in text

    def test_hooks_with_unsupported_parameters(self):
        class Keywords(Scale):
            def __numba_cuda_call__(self, x, **options):
                return autolink.Extern("f")

        class Default(Scale):
            def __numba_cuda_call__(self, x, options=[]):  # noqa: B006
                return autolink.Extern("f")

        class NoFunction(Scale):
            __numba_cuda_call__ = 3

        class NoHook(autolink.DeviceCallable):
            pass

        keywords, default, no_function, no_hook = Keywords(), Default(), NoFunction(), NoHook()

        def with_keywords(x):
            keywords(x[0])  # here

        def with_default(x):
            default(x[0])  # here

        def with_no_function(x):
            no_function(x[0])  # here

        def with_no_hook(x):
            no_hook(x[0])  # here

        assert "the parameter **options is not supported: keywords need names" in refused(with_keywords)
        assert "the default of parameter 'options' cannot be a constant of a kernel: []" in refused(with_default)
        assert "__numba_cuda_call__ is not a function with parameters: 3" in refused(with_no_function)
        assert "kernels cannot call NoHook: it does not define __numba_cuda_call__" in refused(with_no_hook)

    def test_a_repr_that_raises(self):
        class Function(Scale):
            def __repr__(self):
                raise ValueError

            def __numba_cuda_call__(self, x):
                raise TypeError("no")

        f = Function()

        def kernel(x):
            f(x[0])  # here

        text = refused(kernel)
        assert "Function.__numba_cuda_call__ raised TypeError: no\n" in text
        assert "object whose repr raises ValueError>" in text

    @pytest.mark.parametrize("argument", [Scale(9), (Scale(9), 1), TestMethods.Generator(9).uniform])
    def test_an_object_as_an_argument_of_a_kernel(self, argument):
        @cuda.jit
        def kernel(scale, x):
            x[0] = scale(x[0])

        with pytest.raises(TypeError, match=r"(?s)cannot be an argument of a kernel.*(Scale|Generator)\(9\).*global"):
            kernel.typeof_pyval(argument)


def in_file(source, **variables):
    """Return the function *kernel* of some source text."""
    exec(source, variables)
    return variables["kernel"]


class TestObjects:
    def test_are_ordinary_python_objects(self):
        for made in (pickle.loads(pickle.dumps(in_module)), copy.deepcopy(in_module)):
            assert made is not in_module
            assert vars(made).keys() == vars(in_module).keys()
        method = pickle.loads(pickle.dumps(pickled_generator.uniform))
        assert method.__self__.seed == pickled_generator.seed
        assert copy.copy(pickled_generator).uniform.__self__ is not pickled_generator

    def test_have_one_type_each(self):
        first, second = Scale(), Scale()
        numba_type = typeof(first, Purpose.constant)
        assert numba_type is typeof(first, Purpose.constant)
        assert numba_type is copy.deepcopy(numba_type)
        assert numba_type != typeof(second, Purpose.constant)
        assert numba_type.numba_cuda_link_object is first
        method = TestMethods.Generator(1).uniform
        assert typeof(method, Purpose.constant).numba_cuda_link_object == method

    def test_have_symbols_without_addresses(self):
        name, (number,) = typeof(Scale(), Purpose.constant).mangling_args
        assert (name, type(number)) == ("DeviceCallableType", int)

    def test_are_freed_with_the_kernels_that_call_them(self):
        scale = Scale(2, inner=Scale(3))

        def kernel(x):
            x[0] = scale(x[0]) + scale.inner(x[0]) + scale.factor

        build(kernel, FLOATS)
        watched = weakref.ref(scale), weakref.ref(scale.inner)
        scale = kernel = None
        gc.collect()
        assert [watch() for watch in watched] == [None, None]

    def test_show_their_simple_attributes(self):
        class Transform(autolink.DeviceCallable):
            def __init__(self):
                self.size = 8
                self.dtype = np.dtype("f4")
                self.shape = 8, (2, types.int32)
                self.buffer = [0] * 8
                self.buffers = 0, [0] * 8

        assert repr(Transform()).endswith("Transform(size=8, dtype=dtype('float32'), shape=(8, (2, int32)))")


pickled_generator = TestMethods.Generator(5)


class TestInTheSimulator:
    """The same kernel source runs in Python, without a compiler."""

    PREAMBLE = """
        import sys
        import numpy as np
        from numba import cuda
        from numba.cuda import autolink, types

        class Scale(autolink.DeviceCallable):
            def __init__(self, factor):
                self.factor = factor
                self.shape = (2,)
                self.dtype = np.dtype("float32")

            def __numba_cuda_call__(self, x):
                return autolink.Extern("scale", returns=x)

            @autolink.device_method
            def inverse(self, x):
                return autolink.Extern("inverse", returns=x)

        scale = Scale(3)

        @cuda.jit
        def kernel(x):
            a = cuda.local.array(scale.shape, scale.dtype)
            a[1] = x[0]
            x[0] = scale(a[1])
            x[1] = scale.inverse(a[1])

        x = np.array([6, 0], np.float32)
        """

    def run(self, script):
        script = textwrap.dedent(self.PREAMBLE) + textwrap.dedent(script)
        environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
        return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)

    def test_the_python_counterparts_are_called_and_their_lack_is_an_error(self):
        done = self.run("""
            def failure():
                try:
                    kernel[1, 1](x)
                except Exception as error:
                    print(error)

            failure()
            Scale.__call__ = lambda self, x: x * self.factor
            failure()
            Scale.inverse = Scale.inverse.python(lambda self, x: x / self.factor)
            x[:] = 6, 0
            kernel[1, 1](x)
            assert x.tolist() == [18, 2]
            compiling = {"device_callable.object_type", "frontends.numba_cuda"}
            assert not {f"numba.cuda.autolink.{name}" for name in compiling} & {*sys.modules}
            # Code objects work outside kernels; functions that need a GPU's compiler raise a clear error.
            assert autolink.CUDASource("code", name="a.cu").name == "a.cu"
            assert autolink.Bitcode(b"BC\\xc0\\xde").data and autolink.Prebuilt
            assert autolink.Target("9.0a").arch == "sm_90a"
            testing = autolink.testing
            for use in (
                lambda: autolink.build, lambda: testing.check_linkable(scale, "float32"), lambda: testing.ask(len),
                lambda: testing.compile_cached(len, (), 90),
            ):
                try:
                    use()
                except RuntimeError as error:
                    print(error)
            """)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("the simulator (NUMBA_ENABLE_CUDASIM=1) does not") == 4
        assert "Scale is device code, which the simulator cannot run" in done.stdout
        assert "what to do: define Scale.__call__" in done.stdout
        assert "define the method in Python, decorated with @inverse.python" in done.stdout

    def test_an_object_of_another_module_sees_the_simulated_gpu(self, tmp_path):
        (tmp_path / "their_library.py").write_text(
            textwrap.dedent("""
                from numba import cuda
                from numba.cuda import autolink, types

                class ThreadNumber(autolink.DeviceCallable):
                    def __numba_cuda_call__(self):
                        return autolink.Extern("thread_number", returns=types.int32)

                    def __call__(self):
                        return cuda.threadIdx.x

                    @autolink.device_method
                    def doubled(self):
                        return autolink.Extern("doubled", returns=types.int32)

                    @doubled.python
                    def doubled(self):
                        return 2 * cuda.threadIdx.x
                """)
        )
        done = self.run(f"""
            sys.path.insert(0, {str(tmp_path)!r})
            from their_library import ThreadNumber

            number = ThreadNumber()

            @cuda.jit
            def numbers(x):
                x[cuda.threadIdx.x] = number() + number.doubled()

            numbers[1, 2](x)
            assert x.tolist() == [0, 3]
            """)
        assert done.returncode == 0, done.stderr


def examples():
    """Yield the code in the docstrings of the public names."""
    for public in (autolink.DeviceCallable, autolink.device_method):
        _, _, after = textwrap.dedent(" " * 4 + public.__doc__).partition("::\n\n")
        lines = after.splitlines()
        ends = [i for i, line in enumerate(lines) if line and not line.startswith(" " * 4)]
        yield textwrap.dedent("\n".join(lines[: ends[0] if ends else None]))


def test_the_examples_in_docstrings_run():
    names = {"autolink": autolink}
    for example in examples():
        exec(example, names)
    scale, steps = names["Scale"](3), names["Steps"](0.5)
    assert scale(2) == 6
    assert steps.up(2) == 2.5

    def kernel(x):
        x[0] = scale(np.float32(2))
        x[1] = steps.up(np.float32(2))

    assert folded(kernel) == [6, 2.5]


@pytest.mark.parametrize("hook", ["__numba_cuda_call__", "__numba_cuda_link__"])
def test_an_error_whose_text_raises_is_named(hook):
    class WithoutTextError(Exception):
        def __str__(self):
            raise ZeroDivisionError

    def refuse(self, x):
        raise WithoutTextError

    class Odd(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("odd", returns=x)

        def __numba_cuda_link__(self, x):
            return autolink.CUDASource('extern "C" __device__ float odd(float x) { return x; }')

    setattr(Odd, hook, refuse)
    odd = Odd()

    message = rf"Odd.{hook} raised WithoutTextError: <an error whose text raises ZeroDivisionError>"
    with pytest.raises(TypingError, match=message):
        autolink.build(calling(odd), "void(float32[::1])", cc=(9, 0))


def test_a_method_that_a_function_makes_has_the_name_of_its_attribute():
    def doubled():
        def call(self, x):
            return lambda x: x + x

        return autolink.device_method(call)

    class Numbers(autolink.DeviceCallable):
        twice = doubled()

    assert Numbers().twice.__name__ == "twice"
    assert "twice" in repr(Numbers().twice)


class TestHelp:
    """``help`` and the tooltips of notebooks show what the author of an object wrote."""

    class Steps(autolink.DeviceCallable):
        """Steps of a size."""

        def __init__(self, size: int = 1):
            self.size = size

        def __numba_cuda_call__(self, x, n=2) -> autolink.Extern:
            return autolink.Extern("steps", returns=x)

        @autolink.device_method
        def up(self, x, by=1):
            """Go up by *by*."""
            return autolink.Extern("steps_up", returns=x)

    def test_a_device_method_has_the_docstring_and_the_parameters_of_its_function(self):
        up = self.Steps().up
        assert inspect.getdoc(up) == "Go up by *by*."
        assert str(inspect.signature(up)) == "(x, by=1)"
        assert "up(x, by=1)\n    Go up by *by*." in pydoc.render_doc(up, renderer=pydoc.plaintext)

    def test_an_object_has_the_parameters_of_its_call(self):
        assert str(inspect.signature(self.Steps())) == "(x, n=2)"
        assert inspect.getdoc(self.Steps()) == "Steps of a size."

    def test_classes_and_objects_with_a_call_of_their_own_have_what_python_finds(self):
        class Own(self.Steps):
            def __call__(self, a, b):
                return a

        class Bare(autolink.DeviceCallable):
            pass

        assert str(inspect.signature(Own())) == "(a, b)"
        assert str(inspect.signature(self.Steps)) == "(size: int = 1)"
        assert [*inspect.signature(Bare()).parameters] == ["args", "kwargs"]


def test_an_abi_error_has_the_line_of_the_hook_and_is_printed_alone(capsys):
    class Own(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            raise autolink.CABIError("x does not fit\n  what to do: pass another")

    class Passed(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern(autolink.cxx_type("no type"), returns=x)

    class Misspelt(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("scale", returns="flot32")

    for function in (Own(), Passed(), Misspelt()):
        with pytest.raises(TypingError) as caught:
            build(calling(function))
        assert f"raised at: {__file__}:" in str(caught.value)
        sys.excepthook(type(caught.value), caught.value, caught.value.__traceback__)
        assert "direct cause" not in capsys.readouterr().err
