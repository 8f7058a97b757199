# SPDX-License-Identifier: BSD-2-Clause
"""The statements of the protocol that hold on every front end.

A statement that does not hold on one has a test in ``test_numba_cuda_mlir.py`` that says what happens instead.
"""

from __future__ import annotations

import importlib
import types as pytypes
from collections import namedtuple

import numpy as np
import pytest
from autolink_support import build
from numba.cuda import autolink
from numba.cuda.autolink.testing import ask, check_linkable
from numba.cuda.cudadrv.external_code.platform import cuda_libraries

FLOATS = "void(float32[::1], float32[::1])"


class Inc(autolink.DeviceCallable):
    """``inc(x)`` is ``x + amount``; it records what it is asked."""

    size, shape, flag, name = 4, (2, 3), True, "inc"

    def __init__(self, amount=1):
        self.amount = amount
        self.asked = []
        self.targets = []

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"inc{self.amount}_{x}", returns=x)

    def __numba_cuda_link__(self, x):
        self.asked.append((x,))
        self.targets.append(autolink.current_target())
        T = autolink.cxx_type(x)
        return autolink.CUDASource(
            f'extern "C" __device__ {T} inc{self.amount}_{x}({T} x) {{ return x + {self.amount}; }}'
        )

    @autolink.device_method
    def times(self, x):
        return autolink.Extern(f"times{self.amount}_{x}", returns=x)

    @times.link
    def times(self, x):
        T = autolink.cxx_type(x)
        return autolink.CUDASource(
            f'extern "C" __device__ {T} times{self.amount}_{x}({T} x) {{ return x * {self.amount}; }}'
        )


def called(kernel, signature=FLOATS):
    """The objects that the calls of a kernel reach, in order, with the argument types as text."""
    return [(site.callee.obj, *map(str, site.argtypes)) for site in build(kernel, signature).call_sites]


def typeof(front_end, value):
    """The front end's Numba type of a value."""
    module = importlib.import_module(f"{front_end.types.Type.__module__.rpartition('.types')[0]}.typing.typeof")
    return module.typeof(value)


a, b = Inc(1), Inc(2)
pair = a, b
Named = namedtuple("Named", "first second")
named = Named(a, b)
module = pytypes.ModuleType("module")
module.inc = Inc(5)  # type: ignore[attr-defined]


class TestWhoIsAsked:
    def test_globals_closure_variables_elements_of_tuples_attributes_of_modules(self, cuda):
        closure = Inc(3)

        @cuda.jit
        def kernel(r, x):
            r[0] = a(x[0]) + closure(x[0])
            r[1] = pair[1](x[1]) + named.first(x[1])
            r[2] = module.inc(x[2])

        assert [obj for obj, _ in called(kernel)] == [a, closure, b, a, module.inc]

    def test_attributes_of_other_objects_and_methods(self, cuda):
        class Outer(autolink.DeviceCallable):
            inner = a

        outer = Outer()

        @cuda.jit
        def kernel(r, x):
            times = b.times
            r[0] = outer.inner(x[0])
            r[1] = b.times(x[0])
            r[2] = times(x[1])

        assert [str(obj) for obj, _ in called(kernel)] == [str(a), f"{b}.times", f"{b}.times"]

    def test_calls_in_device_functions_that_objects_are_passed_to(self, cuda):
        @cuda.jit(device=True, inline="never")
        def apply(f, x):
            return f(x)

        @cuda.jit(device=True)
        def first_of(functions, x):
            return functions[0](x)

        @cuda.jit
        def kernel(r, x):
            r[0] = apply(a, x[0]) + apply(b, x[1]) + first_of(pair, x[2])

        assert {obj for obj, _ in called(kernel)} == {a, b}

    def test_a_kernel_that_reuses_a_compiled_device_function_links_what_it_calls(self, cuda):
        @cuda.jit(device=True, inline="never")
        def between(x):
            return a(x)

        def make():
            @cuda.jit
            def kernel(r, x):
                r[0] = between(x[0])

            return kernel

        assert called(make()) == called(make()) == [(a, "float32")]

    def test_a_variable_that_is_assigned_twice_and_the_variable_of_a_loop(self, front_end, cuda):
        front_end.needs("0.6", "tuples with None as arguments of device functions, as objects are there")
        if front_end.name == "numba-cuda":
            from numba.cuda import literal_unroll
        else:
            from numba_cuda_mlir.cuda import literal_unroll

        @cuda.jit
        def kernel(r, x):
            f = a
            if x[0] > 0:
                f = a
            r[0] = f(x[0])
            for each in literal_unroll(pair):
                r[1] += each(x[1])

        assert {obj for obj, _ in called(kernel)} == {a, b}

    def test_a_declared_function(self, cuda):
        function = cuda.declare_device("declared", "float32(float32)", abi="c")
        source = autolink.CUDASource('extern "C" __device__ float declared(float x) { return x; }')
        function.__numba_cuda_link__ = lambda x: source

        @cuda.jit
        def kernel(r, x):
            r[0] = function(x[0])

        assert called(kernel) == [(function, "float32")]


class TestWithWhat:
    def test_several_types_of_one_object_in_a_kernel(self, cuda):
        @cuda.jit
        def kernel(r, x, y):
            r[0] = a(x[0]) + a(y[0]) + a(1)

        signature = "void(float32[::1], float32[::1], float64[::1])"
        assert [argtype for _, argtype in called(kernel, signature)] == ["float32", "float64", "int64"]

    def test_keywords_defaults_several_and_constant_arguments(self, front_end, cuda):
        asked = []

        class Call(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x, axis, scale=2.0, *, bias=1):
                args = {"x": None, "scale": "float32", "bias": "int32"}
                return autolink.Extern(f"axis{axis.literal_value}", returns=x, args=args)

            def __numba_cuda_link__(self, x, axis, scale, bias):
                asked.append([str(each) for each in (x, axis, scale, bias)])
                return autolink.CUDASource(
                    f'extern "C" __device__ float axis{axis.literal_value}(float x, float s, int b) {{ return x; }}'
                )

        Call.__numba_cuda_call__.__annotations__["axis"] = front_end.types.Literal
        call = Call()

        @cuda.jit
        def kernel(r, x):
            r[0] = call(x[0], 3) + call(x[0], 3, x[1]) + call(axis=4, x=x[0], bias=5)

        build(kernel, FLOATS)
        assert asked == [
            ["float32", "Literal[int](3)", "float64", "int64"],
            ["float32", "Literal[int](3)", "float32", "int64"],
            ["float32", "Literal[int](4)", "float64", "int64"],
        ]

    def test_hooks_are_given_the_types_of_the_front_end(self, front_end, cuda):
        inc = Inc(7)

        @cuda.jit
        def kernel(r, x):
            r[0] = inc(x[0])

        build(kernel, FLOATS)
        assert inc.asked == [(front_end.types.float32,)]
        assert type(inc.asked[0][0]) is type(front_end.types.float32)

    def test_a_class_can_ask_for_numba_cudas_types_in_any_case(self, cuda):
        from numba.cuda import types

        asked = []

        class Strict(autolink.DeviceCallable):
            __numba_cuda_link_types__ = "numba-cuda"

            def __numba_cuda_call__(self, array, n):
                asked.append((array, n))
                return autolink.Extern("strict", returns=types.float32)

            def __numba_cuda_link__(self, array, n):
                asked.append((array, n))
                source = 'extern "C" __device__ float strict(float* a, long long n) { return a[n]; }'
                return autolink.CUDASource(source)

        strict = Strict()

        @cuda.jit
        def kernel(r, x):
            r[0] = strict(x, 1)

        build(kernel, FLOATS)
        assert set(asked) == {(types.float32[::1], types.int64)}


class TestConstants:
    def test_attributes_are_constants_as_shapes_and_dtypes_and_in_branches(self, front_end, cuda):
        inc = Inc(1)
        inc.dtype = front_end.types.float32

        @cuda.jit
        def kernel(r, x):
            local = cuda.local.array(inc.size, inc.dtype)
            shared = cuda.shared.array(inc.shape, dtype=inc.dtype)
            local[0] = shared[0, 0] = x[0]
            if inc.flag:
                r[0] = local[0] + shared[0, 0] + inc.amount
            else:
                r[0] = inc.missing

        build(kernel, FLOATS)

    def test_length_elements_and_comparisons(self, cuda):
        class Shape(autolink.DeviceCallable):
            def __len__(self):
                return 3

            def __getitem__(self, index):
                return 2 * index

            def __eq__(self, other):
                return self is other

            __hash__ = None

        one, other = Shape(), Shape()

        @cuda.jit(device=True, inline="never")
        def length(shape):
            return len(shape)

        @cuda.jit
        def kernel(r, x):
            r[0] = len(one) + one[2] + length(one)
            if one == other:
                r[1] = one.missing

        build(kernel, FLOATS)


class TestTheCABI:
    def test_values_of_every_kind_are_passed_and_returned_and_all_is_inlined(self, front_end, cuda):
        class Every(autolink.DeviceCallable):
            def __numba_cuda_call__(self, z, h, flag, short, pair, out, none):
                args = {name: None for name in ("z", "h", "flag", "short", "out", "none")}
                return autolink.Extern("every", returns=z, args={**args, "pair": autolink.by_value})

            def __numba_cuda_link__(self, z, h, flag, short, pair, out, none):
                return autolink.CUDASource("""
                    #include <cuda_fp16.h>
                    struct Pair { long long n; double x; };
                    extern "C" __device__ float2 every(
                        float2 z, __half h, bool flag, signed char s, float* out, int* none, Pair pair
                    ) {
                        out[0] = none == nullptr ? pair.x : pair.n;
                        return make_float2(z.x + __half2float(h), flag ? z.y : s);
                    }""")

        every = Every()

        @cuda.jit
        def kernel(z, h, flag, short, out):
            z[0] = every(z[0], h[0], flag[0], short[0], (out.size, 2.5), out, None)

        signature = "void(complex64[::1], float16[::1], boolean[::1], int8[::1], float32[::1])"
        text = build(kernel, signature, output="ptx").code.decode()
        entry = text[text.index(".entry") :]
        # The linkers of CUDA 12 and 13.0 keep calls with structs.
        if cuda_libraries.nvrtc_version() >= (13, 1) or front_end.name != "numba-cuda":
            assert "call" not in entry
            assert ".local" not in entry

    def test_a_struct_that_is_returned_is_a_tuple(self, cuda):
        class Divide(autolink.DeviceCallable):
            def __numba_cuda_call__(self, pair):
                return autolink.Extern("divide", returns=pair, args={"pair": autolink.by_value})

            def __numba_cuda_link__(self, pair):
                return autolink.CUDASource(
                    "struct Pair { int a; double b; };"
                    'extern "C" __device__ Pair divide(Pair p) { return {p.a / 2, p.b / 2}; }'
                )

        divide = Divide()

        @cuda.jit
        def kernel(r, n):
            halves = divide((n, r[0]))
            r[0] = halves[0] + halves[1]

        assert "div" not in build(kernel, "void(float64[::1], int32)", output="ptx").code.decode().split(".entry")[1]

    def test_one_symbol_with_two_prototypes_is_an_error(self, cuda):
        class Wide(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("wide", returns=x)

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource('extern "C" __device__ float wide(float x) { return x; }')

        wide = Wide()

        @cuda.jit
        def kernel(r, x, y):
            r[0] = wide(x[0]) + wide(y[0])

        with pytest.raises(Exception, match=r"'wide' is .* prototype"):
            build(kernel, "void(float32[::1], float32[::1], float64[::1])")


class TestBodies:
    def test_a_call_may_stand_for_a_function_in_python(self, cuda):
        class Twice(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return lambda x: a(x) + a(x)

        twice = Twice()

        @cuda.jit
        def kernel(r, x):
            r[0] = twice(x[0])

        assert {obj for obj, _ in called(kernel)} == {a}

    def test_cxx_by_name_cannot_write_to_a_temporary_value(self, cuda):
        split = autolink.cxx("__device__ inline float split(float x, int& whole) { return whole = int(x); }").split

        @cuda.jit
        def kernel(r, x, n):
            r[0] = split(x[0], n[0] + n[1])  # here

        with pytest.raises(Exception, match=r"split\(float32, int64\)") as raised:
            build(kernel, "void(float32[::1], float32[::1], int64[::1])")
        assert "# here" in str(raised.value)

    def test_lambdas_constants_and_records_of_cxx(self, front_end, cuda):
        my = autolink.cxx(
            """
            namespace my {
            constexpr int lanes = 4;
            struct Particle { float x[3]; double mass; };
            __device__ inline double momentum(const Particle& p, double v) { return p.mass * v; }
            __device__ inline Particle heavy(double mass) { return {{1, 2, 3}, mass}; }
            }
            """,
            namespace="my",
        )
        least_and_most = my.expr(
            "[](float a, float b) { struct { float least, most; } r{min(a, b), max(a, b)}; return r; }"
        )
        particle, lanes, momentum, heavy = my.record("Particle"), my.eval("lanes"), my.momentum, my.heavy

        @cuda.jit
        def kernel(r, x, particles):
            local = cuda.local.array(lanes, np.float32)
            local[0] = x[0]
            both = least_and_most(local[0], x[1])
            made = heavy(x[2])
            r[0] = both[0] + both[1] + momentum(particles[0], 3.0) + momentum(made, 2.0) + made.mass + made.x[1]

        record = typeof(front_end, np.zeros(1, particle)).dtype
        signature = (*[front_end.types.float32[::1]] * 2, front_end.types.Array(record, 1, "C"))
        text = build(kernel, signature, output="ptx").code.decode()
        assert "call" not in text[text.index(".entry") :]

    def test_a_variable_that_python_sets(self, cuda):
        class Table(autolink.DeviceCallable):
            values = autolink.Variable("table", np.float32, 4, space="constant")

            def __numba_cuda_call__(self, i):
                return autolink.Extern("look_up", returns="float32", args={"i": "int32"})

            def __numba_cuda_link__(self, i):
                source = "extern __constant__ float table[4];"
                function = 'extern "C" __device__ float look_up(int i) { return table[i]; }'
                return [self.values, autolink.CUDASource(f"{source}\n{function}")]

        table = Table()

        @cuda.jit
        def kernel(r, x):
            r[0] = table(1)

        built = build(kernel, FLOATS)
        assert "variable table" in [planned.input.name for planned in built.inputs]
        assert built.launch_facts.variables == (table.values,)
        assert built.launch_facts.setup == ()

    @pytest.mark.thorough
    def test_an_object_is_checked_with_the_types_of_either(self, front_end):
        source = 'extern "C" __device__ float inc(float x) { return x + 1; }'

        class One(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("inc", returns=x)

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource(source)

        checked = check_linkable(One(), front_end.types.float32, lto=True)
        assert checked.symbols == ("inc",)
        (given,) = ask(One(), front_end.types.float32)
        assert given.code == source.encode()

    def test_a_python_function_that_cxx_calls(self, cuda):
        class Apply(autolink.DeviceCallable):
            def __numba_cuda_call__(self, op, x):
                return autolink.Extern("apply", returns=x, args=["x"])

            def __numba_cuda_link__(self, op, x):
                compiled = autolink.device_function(op, x)
                source = f'extern "C" __device__ float apply(float x) {{ return {compiled.symbol}(x); }}'
                return [compiled, autolink.CUDASource(f"{compiled.declaration}\n{source}")]

        apply = Apply()

        @cuda.jit(device=True)
        def triple(x):
            return 3 * x

        @cuda.jit
        def kernel(r, x):
            r[0] = apply(triple, x[0])

        assert [obj for obj, *_ in called(kernel)] == [apply]


class TestLinks:
    def test_equal_code_is_linked_once_in_the_order_of_first_use_after_link(self, cuda):
        class Same(Inc):
            pass

        one, other, last = Same(1), Same(1), Inc(4)
        by_option = cuda.CUSource('extern "C" __device__ int unused() { return 1; }', name="option.cu")

        @cuda.jit(link=[by_option])
        def kernel(r, x):
            r[0] = last(x[0]) + one(x[0]) + other(x[0])

        inputs = build(kernel, FLOATS).inputs
        own = [planned.input.name for planned in inputs if "by_address" not in planned.input.name]
        assert sorted(own) == ["Inc.cu", "Same.cu", "option.cu"]
        assert own.index("Inc.cu") < own.index("Same.cu")

    @pytest.mark.parametrize("options", [{"lto": False}, {"debug": True, "opt": False}, {"lineinfo": True}], ids=str)
    def test_without_lto_and_for_debugging(self, cuda, options):
        @cuda.jit(**options)
        def kernel(r, x):
            r[0] = a(x[0])

        built = build(kernel, FLOATS)
        assert built.report.builds[0].link.lto is ("lineinfo" in options)

    def test_a_build_for_another_gpu_leaves_nothing_behind(self, cuda):
        @cuda.jit(device=True, inline="never")
        def between(x):
            return a(x)

        @cuda.jit
        def kernel(r, x):
            r[0] = between(x[0])

        built = [build(kernel, FLOATS, cc=cc) for cc in ((8, 0), (9, 0), "9.0a")]
        assert [each.report.builds[0].arch for each in built] == ["sm_80", "sm_90", "sm_90a"]
        assert not kernel.overloads
        assert not between.overloads


class TestErrors:
    def test_an_object_that_refuses_a_signature_is_an_error_at_the_line_of_the_call(self, cuda):
        class Refuses(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                raise ValueError(f"no {x}")

        refuses = Refuses()

        @cuda.jit
        def kernel(r, x):
            r[0] = refuses(x[0])  # here

        with pytest.raises(Exception, match=r"^Refuses.__numba_cuda_call__ raised ValueError: no float32") as raised:
            build(kernel, FLOATS)
        assert "# here" in str(raised.value)

    def test_a_hook_that_raises_is_a_call_error(self, cuda):
        class Refuses(Inc):
            def __numba_cuda_link__(self, x):
                raise ValueError("no code")

        refuses = Refuses()

        @cuda.jit
        def kernel(r, x):
            r[0] = refuses(x[0])  # here

        with pytest.raises(autolink.CallError, match=r"__numba_cuda_link__ raised ValueError: no code") as raised:
            build(kernel, FLOATS)
        assert "# here" in str(raised.value)
        assert isinstance(raised.value.__cause__, ValueError)

    @pytest.mark.parametrize("hook", ["__numba_cuda_call__", "__numba_cuda_link__"])
    def test_an_object_that_refuses_is_asked_once_in_a_compilation_and_again_in_the_next(self, front_end, hook):
        front_end.needs("0.6", "tuples with None as arguments of device functions, as objects are there")
        cuda, asked = front_end.cuda, []

        class Refuses(Inc):
            pass

        def refuse(self, x):
            asked.append(self.amount)
            raise ValueError("not yet" if len(asked) < 2 else "never")

        setattr(Refuses, hook, refuse)
        both = Refuses(61), Inc(62)
        unroll = cuda.literal_unroll

        @cuda.jit
        def kernel(r, x):
            for f in unroll(both):
                r[0] = f(x[0])

        for answer in ("not yet", "never"):
            with pytest.raises(Exception, match=f"{hook} raised ValueError: {answer}"):
                build(kernel, FLOATS)
        assert asked == [61, 61]

    def test_an_undefined_symbol_names_the_call(self, cuda):
        class Missing(Inc):
            def __numba_cuda_link__(self, x):
                return autolink.CUDASource('extern "C" __device__ float other(float x) { return x; }')

        missing = Missing(77)

        @cuda.jit
        def kernel(r, x):
            r[0] = missing(x[0])

        with pytest.raises(autolink.LinkError, match="'inc77_float32' is called but nothing") as raised:
            build(kernel, FLOATS)
        assert "referenced by: the call with (float32)\n" in str(raised.value)
        assert f"\n  called at: {__file__}:" in str(raised.value)

    def test_an_array_that_a_call_does_not_pass_as_state_is_an_error_at_its_line(self, cuda):
        class Own(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x, table):
                return autolink.Extern("own", returns=x)

            def __numba_cuda_link__(self, x, table):
                function = autolink.device_function(lambda a, t: a + t[0], x, state=table)
                source = f'extern "C" __device__ float own(float x, float* t) {{ return {function.functor}(t)(x); }}'
                return [function, autolink.CUDASource(f"{function.declaration}\n{source}")]

        own = Own()

        @cuda.jit
        def kernel(r, x):
            r[0] = own(x[0], x)  # here

        with pytest.raises(autolink.CallError, match="a function with an array as state, and the call") as raised:
            build(kernel, FLOATS)
        assert "# here" in str(raised.value)


class TestReports:
    def test_a_report_shows_calls_inputs_link_and_result(self, cuda):
        inc = Inc(11)

        @cuda.jit(device=True, inline="never")
        def between(x):
            return inc(x)

        @cuda.jit
        def kernel(r, x):
            r[0] = between(x[0]) + a(x[0])

        report = autolink.report(kernel, FLOATS, cc=(9, 0))
        (made,) = report.builds
        assert {call.object for call in made.calls} == {repr(a), repr(inc)}
        (deep,) = [call for call in made.calls if call.object == repr(inc)]
        assert len(deep.chain) == 2
        assert deep.text == "return inc(x)"
        assert made.link.inputs[0].own
        assert made.result.registers
        assert made.link.why
