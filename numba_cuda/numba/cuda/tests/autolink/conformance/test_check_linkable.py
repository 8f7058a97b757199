# SPDX-License-Identifier: BSD-2-Clause
"""`check_linkable` accepts correct objects, those of examples among them, and says what is wrong with others."""

from __future__ import annotations

import importlib.util
import itertools
import math
import os
import re
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from autolink_support import Linked, compiled
from numba import cuda, from_dtype
from numba.cuda import autolink, types
from numba.cuda.autolink.testing import Check, NotLinkableError, check_linkable
from repository import EXAMPLES, SUPPORT, module

LINKS = "links alone, with LTO"
RUNS = "runs in the emulator as in Python, for random arguments"


class Add(autolink.DeviceCallable):
    """A correct object; each other class differs from it in one respect."""

    def __init__(self, amount=1):
        self.amount = amount

    def source(self, x):
        T = autolink.cxx_type(x)
        return f'extern "C" __device__ {T} add_{self.amount}({T} x) {{ return x + {self.amount}; }}'

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"add_{self.amount}", returns=x)

    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(self.source(x), name="add.cu")


def quick(obj, *argtypes, lto=True, **options):
    return check_linkable(obj, *(argtypes or ("float32",)), lto=lto, **options)


def what_is_wrong(obj, *argtypes, **options):
    """The one check that fails, and the message."""
    with pytest.raises(NotLinkableError) as raised:
        quick(obj, *argtypes, **options)
    (wrong,) = raised.value.wrong
    message = str(raised.value)
    name = message.partition(" ")[0]
    diagnosis = wrong.got.partition("\n")[0].removeprefix(f"{name}.").removeprefix(f"{name}: ")
    assert re.match(rf"{name} is not linkable: {re.escape(diagnosis)}\n  call: .*: 1 of \d+ checks failed\n", message)
    for part in ("got: ", "expected: "):
        assert part in message
    assert message.count("what to do: ") == 1
    assert wrong.todo.strip()
    return wrong.name, message


class TestAccepts:
    def test_a_device_callable_with_every_check(self):
        linkable = check_linkable(Add(), "float32")
        assert [str(check) for check in linkable.checks] == [
            "has a __numba_cuda_link__: yes",
            "can be called in a kernel: yes",
            "returns code that links: yes",
            "gives the same answers when asked again: yes",
            "its __numba_cuda_link_key__ identifies its code: not checked: it has none",
            "links alone, with LTO: yes",
            "links in a kernel that calls it twice, with LTO: yes",
            "links alone, without LTO: yes",
            "links in a kernel that calls it twice, without LTO: yes",
            f"{RUNS}: not checked: it runs, and has no Python equivalent to compare with",
        ]
        assert linkable.symbols == ("add_1",)
        assert linkable.argtypes == (types.float32,)
        (code,) = linkable.code
        assert (code.kind, code.name) == ("CUDA C++ source", "add.cu")
        assert str(linkable).startswith("Add(amount=1)(float32) is linkable\n")

    def test_numba_types_names_and_dtypes(self):
        for argtype in types.float64, "float64", np.float64, np.dtype("f8"):
            assert quick(Add(), argtype).argtypes == (types.float64,)

    @pytest.mark.parametrize("kind", ["ltoir", "cubin", "ptx"])
    def test_every_kind_of_code(self, kind):
        class Finished(Add):
            def __numba_cuda_link__(self, x):
                make = {"ltoir": cuda.LTOIR, "cubin": cuda.Cubin, "ptx": cuda.PTXSource}[kind]
                return make(compiled(self.source(x), kind))

        assert quick(Finished(), lto=None).symbols == ("add_1",)

    def test_a_declared_function_with_the_hook(self):
        assert quick(Linked("declared_and_checked").function, "int32").symbols == ("declared_and_checked",)

    def test_defaults_and_constants(self):
        class Scale(Add):
            def __numba_cuda_call__(self, x, axis: types.Literal, by=2.0):
                assert axis.literal_value == 1
                return autolink.Extern("scale", returns=x, args={"x": None, "by": None})

            def __numba_cuda_link__(self, x, axis, by):
                return autolink.CUDASource('extern "C" __device__ float scale(float x, double by) { return x * by; }')

        assert quick(Scale(), "float32", types.literal(1)).argtypes[2] == types.float64

    def test_a_method(self):
        class Steps(Add):
            @autolink.device_method
            def up(self, x):
                return autolink.Extern(f"add_{self.amount}", returns=x)

        assert quick(Steps(3).up).symbols == ("add_3",)

    def test_a_key_that_differs_where_the_code_does(self):
        class Keyed(Add):
            def source(self, x):
                return super().source(x).replace("add_", f"add_{x}_")

            def __numba_cuda_call__(self, x):
                return autolink.Extern(f"add_{x}_{self.amount}", returns=x)

            def __numba_cuda_link_key__(self, x):
                return self.amount

        checks = {check.name: check.skipped for check in quick(Keyed(1), others=[Keyed(2), (Keyed(1), "int32")]).checks}
        assert checks["its symbols name everything that its code depends on"] == ""
        assert checks["its __numba_cuda_link_key__ identifies its code"] == ""


class TestRejects:
    def test_an_object_without_the_hook(self):
        class Nothing:
            pass

        name, message = what_is_wrong(Nothing())
        assert name == "has a __numba_cuda_link__"
        assert "got: Nothing has no __numba_cuda_link__" in message

    def test_an_object_that_numba_cannot_call(self):
        class Untyped:
            def __numba_cuda_link__(self, x):
                return autolink.CUDASource("")

        name, message = what_is_wrong(Untyped())
        assert name == "can be called in a kernel"
        assert "Untyped has __numba_cuda_link__, but no Numba type" in message and "autolink.DeviceCallable" in message

    def test_types_that_every_kind_of_callable_rejects(self):
        class Picky(Add):
            def __numba_cuda_call__(self, x):
                raise TypeError("x: got an unsupported type")

            @autolink.device_method
            def method(self, x):
                raise TypeError("x: got an unsupported type")

        for obj in (Picky(1), Picky(1).method):
            name, message = what_is_wrong(obj)
            assert name == "can be called in a kernel"
            assert "x: got an unsupported type" in message
            assert "takes, or change its __numba_cuda_call__ where it raised" in message

    def test_a_function_of_cxx_that_is_misspelt(self):
        lib = autolink.cxx("__device__ float distance(float x) { return x; }")
        _, message = what_is_wrong(lib.distnace)
        assert "what to do: did you mean distance?" in message and "__numba_cuda_call__ accept" not in message

    def test_one_symbol_for_different_code(self):
        class Same(Add):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("same", returns=x)

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource(f'extern "C" __device__ float same(float x) {{ return x + {self.amount}; }}')

        assert quick(Same(1), others=[Same(1)])
        name, message = what_is_wrong(Same(1), others=[Same(2)])
        assert name == "its symbols name everything that its code depends on"
        assert "got: two objects define same with different code" in message and "Same(amount=2)(float32)" in message

    @pytest.mark.parametrize("others", ["same types", "other types"])
    def test_a_helper_that_another_object_defines_otherwise(self, others):
        class Helped(Add):
            def source(self, x):
                helper = f"__device__ float helper(float x) {{ return x * {self.amount}; }}\n"
                return helper + super().source(x).replace(f"return x + {self.amount}", "return helper(x)")

        other = Helped(2) if others == "same types" else (Helped(2), "float64")
        name, message = what_is_wrong(Helped(1), others=[other])
        assert name == "its symbols name everything that its code depends on"
        assert "'helper(float)' is defined twice" in message and "Helped(amount=2)" in message
        assert quick(Helped(1), others=[Helped(1), Add(2)])

    def test_a_weak_symbol_for_different_code(self):
        """Of which the linker takes the first."""

        class Weak(Add):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("weak", returns=x)

            def source(self, x):
                return (
                    f'extern "C" __device__ __attribute__((weak)) float weak(float x) {{ return x + {self.amount}; }}'
                )

        assert "got: two objects define weak with different code" in what_is_wrong(Weak(1), others=[Weak(2)])[1]

    def test_an_error_with_lto_and_without_is_shown_once(self):
        class Misspelt(Add):
            def source(self, x):
                return super().source(x).replace("return", "retrun")

        name, message = what_is_wrong(Misspelt(), lto=None)
        assert name == LINKS and message.count("at fault: ") == 1
        assert f"links alone, without LTO: not checked: the error of the check {LINKS!r}" in message

    def test_a_hook_that_raises(self):
        class Raises(Add):
            def __numba_cuda_link__(self, x):
                raise KeyError("no table for this type")

        name, message = what_is_wrong(Raises())
        assert name == "returns code that links"
        assert "raised KeyError: 'no table for this type'" in message
        assert f"raised at: {__file__}:" in message

    def test_a_hook_that_requires_lto(self):
        class ForLTO(Add):
            def __numba_cuda_link__(self, x):
                if not autolink.current_target().lto:
                    raise RuntimeError("LTO only")
                return super().__numba_cuda_link__(x)

        assert quick(ForLTO())
        name, message = what_is_wrong(ForLTO(), lto=None)
        assert name == "returns code that links"
        assert "asked for: code for sm_90, without LTO" in message and "lto=True" in message

    @pytest.mark.parametrize(
        ("answer", "got"),
        [
            (None, "nothing"),
            (b"code", "got: bytes b'code'"),
            (cuda.Cubin(b"\x7fELF" + b"x" * 99), "cannot be linked as cubin"),
        ],
    )
    def test_answers_without_code(self, answer, got):
        class Answers(Add):
            def __numba_cuda_link__(self, x):
                return answer

        name, message = what_is_wrong(Answers())
        assert name == "returns code that links"
        assert got in message

    def test_a_mangled_symbol(self):
        class Mangled(Add):
            def source(self, x):
                return "__device__ float add_1(float x) { return x; }"

        name, message = what_is_wrong(Mangled())
        assert name == LINKS
        assert "defines add_1(float), as C++: _Z5add_1f" in message and 'declare it extern "C" __device__' in message

    def test_different_code_each_time(self):
        count = itertools.count()

        class Counts(Add):
            def source(self, x):
                return f"{super().source(x)}\n// {next(count)}"

        name, message = what_is_wrong(Counts())
        assert name == "gives the same answers when asked again"
        assert re.search(r"line 2 first: // \d+\n +line 2 then: // \d+\n", message)

    @pytest.mark.parametrize(
        ("answer", "first", "then"),
        [
            (lambda x, n: autolink.Extern(f"f{n}", returns=x), "Extern('f0', returns=", "Extern('f1', returns="),
            (
                lambda x, n: autolink.Extern("f1", returns=(types.float32, types.float64)[n % 2]),
                "Extern('f1', returns=float32)",
                "Extern('f1', returns=float64)",
            ),
            (lambda x, n: lambda x: x * n, "the function <lambda> with n = 0", "the function <lambda> with n = 1"),
            (lambda x, n: eval(f"lambda x: x + {n}"), "the function <lambda>", "the function <lambda>"),
        ],
    )
    def test_another_call_each_time(self, answer, first, then):
        count = itertools.count()

        class Changes(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return answer(x, next(count))

        class Brings(Changes):
            def __numba_cuda_link__(self, x):
                functions = (f'extern "C" __device__ float f{i}(float x) {{ return x; }}' for i in range(9))
                return autolink.CUDASource("".join(functions))

        name, message = what_is_wrong((Brings if "Extern" in first else Changes)())
        assert name == "gives the same answers when asked again"
        assert f"got: __numba_cuda_call__ changes its answer: first {first}" in message
        assert f", then {then}" in message

    @pytest.mark.parametrize("hook", ["__numba_cuda_call__", "__numba_cuda_link__"])
    def test_a_hook_that_answers_at_first_only(self, hook):
        class Tires(Add):
            pass

        asked = itertools.count()

        def answer(self, x):
            if next(asked) > 3:
                raise OSError("closed")
            return getattr(Add, hook)(self, x)

        setattr(Tires, hook, answer)
        name, message = what_is_wrong(Tires())
        assert name == "gives the same answers when asked again"
        assert f"got: {hook} answers once only, and then " in message and "raised OSError: closed" in message

    @pytest.mark.parametrize("hook", ["__numba_cuda_call__", "__numba_cuda_link__", "__call__"])
    def test_a_hook_that_exits(self, hook):
        exits = type("Exits", (Add,), {hook: lambda self, x: sys.exit(3)})
        message = what_is_wrong(exits())[1]
        assert f"{hook} raises SystemExit: 3" in message or "raised SystemExit: 3" in message

    def test_a_class_instead_of_an_instance(self):
        message = what_is_wrong(Add)[1]
        assert (
            "Add is not linkable: it is a class" in message and "pass an instance: check_linkable(Add(...)" in message
        )

    @pytest.mark.parametrize(
        ("given", "meant"), [(float, "float64"), (int, "int64"), (bool, "boolean"), (complex, "complex128")]
    )
    def test_numbers_of_python_as_types(self, given, meant):
        with pytest.raises(TypeError, match=f"{given.__name__} is not a Numba type.*\n.*write '{meant}'"):
            quick(Add(), given)

    def test_a_class_of_python_as_a_type(self):
        with pytest.raises(TypeError, match="str is not a Numba type"):
            quick(Add(), str)

    def test_a_different_key_each_time(self):
        count = itertools.count()

        class Counts(Add):
            def __numba_cuda_link_key__(self, x):
                return next(count)

        name, message = what_is_wrong(Counts())
        assert name == "its __numba_cuda_link_key__ identifies its code"
        assert re.search(r"first \d+, then \d+", message)

    @pytest.mark.parametrize(
        "key",
        [
            lambda: id(object()),
            lambda: repr(object()),
            lambda: (each for each in ()),
            object,
            lambda: (1, type("Token", (), {})()),
        ],
    )
    def test_keys_that_are_no_values(self, key):
        class Keyed(Add):
            def __numba_cuda_link_key__(self, x):
                return key()

        name, message = what_is_wrong(Keyed())
        assert name == "its __numba_cuda_link_key__ identifies its code"
        assert "make the key of values" in message

    def test_a_key_that_does_not_change_with_the_code(self):
        class Same(Add):
            def __numba_cuda_link_key__(self, x):
                return "add"

        assert quick(Same(1), others=[Same(1)])
        name, message = what_is_wrong(Same(1), others=[Same(2)])
        assert name == "its __numba_cuda_link_key__ identifies its code"
        assert "got: __numba_cuda_link_key__ returns 'add' for different code" in message
        assert re.search(r"also the key of: .*Same\(amount=2\)\(float32\)\n", message)

    def test_a_link_that_fails(self):
        class Differs(Add):
            def __numba_cuda_link__(self, x):
                other = self.source(x).replace("return", "return 2 *")
                return [cuda.LTOIR(compiled(source, "ltoir")) for source in (self.source(x), other)]

        name, message = what_is_wrong(Differs())
        assert name == LINKS
        assert "is defined twice" in message

    def test_several_failed_checks_at_once(self):
        count = itertools.count()

        class Bad(Add):
            def source(self, x):
                return 'extern "C" __device__ float add_1(double x) { return x; }'

            def __numba_cuda_link_key__(self, x):
                return next(count)

        with pytest.raises(NotLinkableError, match=r"Bad\(amount=1\)\(float32\): 2 of \d+ checks failed") as raised:
            quick(Bad())
        assert len(raised.value.wrong) == 2
        assert isinstance(raised.value, AssertionError)

    def test_an_unknown_type_or_compute_capability(self):
        with pytest.raises(TypeError, match="'float33' is not the name of a Numba type"):
            quick(Add(), "float33")
        with pytest.raises(ValueError, match="not known to this CUDA toolkit"):
            quick(Add(), cc=(1, 0))


def example(name):
    try:
        return module(EXAMPLES, name)
    except SystemExit:
        pytest.skip(f"{name} exits with a message about what it needs")


class TestExamples:
    def test_fft(self):
        FFT = example("fft").FFT
        quick(FFT(128), "complex64[::1]", "complex64[::1]", others=[FFT(256)], length=4096)

    @pytest.mark.parametrize(
        "call",
        [
            'example("nvmath_fft").ffts((9, 0))[0].execute, "complex64[::1]", "complex64[::1]"',
            'example("nvmath_gemm").tiles((9, 0))[0][0].execute,'
            ' "int64", "float32[::1]", "float32[::1]", "int64", "float32[::1]"',
        ],
    )
    def test_nvmath(self, call, driver_stub):
        if importlib.util.find_spec("nvmath") is None:
            pytest.skip("needs nvmath-python")
        script = f"""
            import sys; sys.path[:0] = [{os.path.dirname(__file__)!r}, {str(SUPPORT)!r}]
            from test_check_linkable import check_linkable, example
            check_linkable({call}, lto=True, length=1 << 14)
        """
        command = [sys.executable, "-c", textwrap.dedent(script)]
        done = subprocess.run(command, env={**os.environ, **driver_stub}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


class TestBodiesInPython:
    """Objects without code of their own, whose calls stand for Python functions."""

    def test_kernels_that_call_it_link(self):
        twice = autolink.cxx("template <class T, class F> __device__ T twice(T x, F f) { return f(f(x)); }").twice

        class Twice(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                f = autolink.device_function(lambda x: x + x, x)
                return lambda x: twice(x, f)

        found = check_linkable(Twice(), "float32")
        assert [check.name for check in found.checks] == [
            "can be called in a kernel",
            "gives the same answers when asked again",
            "links alone, with LTO",
            "links in a kernel that calls it twice, with LTO",
            "links alone, without LTO",
            "links in a kernel that calls it twice, without LTO",
            RUNS,
        ]
        assert len(found.code) == 2

    def test_a_kernel_that_calls_another_one_too_links(self):
        class Scaled(autolink.DeviceCallable):
            def __init__(self, factor):
                self.factor = factor

            def __numba_cuda_call__(self, x):
                return lambda x: self.times(x)

            @autolink.device_method
            def times(self, x):
                return autolink.Extern("times", returns=x)

            @times.link
            def _(self, x):
                code = f'extern "C" __device__ float times(float x) {{ return {self.factor} * x; }}'
                return autolink.CUDASource(code)

        assert quick(Scaled(2), others=[Scaled(2)])
        assert "'times' is defined twice" in what_is_wrong(Scaled(2), others=[Scaled(3)])[1]

    def test_a_body_that_does_not_compile_is_a_failure(self):
        class Wrong(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return lambda x: x.nothing

        with pytest.raises(NotLinkableError, match="can be called in a kernel"):
            check_linkable(Wrong(), "float32")


class TestRuns:
    """The linked code and the Python equivalent."""

    class Adds(Add):
        def __call__(self, x):
            return x + self.amount

    def test_an_array_that_must_be_in_shared_memory(self):
        """Which the check cannot give: the pointer becomes one of 32 bits, for instructions of shared memory alone."""

        class InShared(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("store_in_shared")

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource("""extern "C" __device__ void store_in_shared(float* x) {
                    unsigned address = (unsigned)__cvta_generic_to_shared(x);
                    asm volatile("st.shared.f32 [%0], %1;" :: "r"(address), "f"(1.0f));
                }""")

        assert "not checked: an array must be in shared memory" in str(check_linkable(InShared(), "float32[::1]"))

    @pytest.mark.parametrize("argtype", ["bool", "complex64"])
    def test_scalars(self, argtype):
        class Same(Add):
            def source(self, x):
                T, header = autolink.cxx_type(x), "#include <cuda/std/complex>\n" * (argtype == "complex64")
                return f'{header}extern "C" __device__ {T} add_{self.amount}({T} x) {{ return x; }}'

            def __call__(self, x):
                return x

        assert quick(Same(), argtype).checks[-1] == Check(RUNS)

    def test_another_result(self):
        class Rounds(self.Adds):
            def __call__(self, x):
                return x + 1 + 1e-2

        name, message = what_is_wrong(Rounds())
        assert name == RUNS
        assert re.search(r"got: the result of \(0\.\d+\) is np\.float32\(\d\.\d+\) in the emulator", message)

    def test_arrays_that_it_changes(self):
        class Put(Add):
            def __numba_cuda_call__(self, x, i):
                return autolink.Extern("put", returns=None)

            def __numba_cuda_link__(self, x, i):
                code = f'extern "C" __device__ void put(float* x, long long i) {{ x[i] = {self.amount}; }}'
                return autolink.CUDASource(code)

            def __call__(self, x, i):
                x[i] = 1

        assert quick(Put(), "float32[::1]", "int64").checks[-1] == Check(RUNS)
        _, message = what_is_wrong(Put(2), "float32[::1]", "int64")
        assert re.search(
            r"argument 1 after the call \[\d\] of \(array\(float32, 1d, C\), \d\) is np.float32\(2.0\)", message
        )

    @pytest.mark.parametrize("same", range(1, 8))
    def test_an_error_for_one_small_integer(self, same):
        class Sum(Add):
            def __numba_cuda_call__(self, x, n):
                return autolink.Extern("sum", returns=x.dtype, args={"x": None, "n": types.int32})

            def __numba_cuda_link__(self, x, n):
                body = f"float s = 0; for (int i = 0; i < n; ++i) s += x[i]; return n == {same} ? -1 : s;"
                code = f'extern "C" __device__ float sum(const float* x, int n) {{ {body} }}'
                return autolink.CUDASource(code)

            def __call__(self, x, n):
                return x[:n].sum()

        _, message = what_is_wrong(Sum(), "float32[::1]", "int32")
        assert f"the result of (array(float32, 1d, C), {same}) is np.float32(-1.0) in the emulator" in message

    @pytest.mark.parametrize("of", ["calls", "launches"])
    def test_state_between_calls(self, of):
        class Counts(self.Adds):
            def source(self, x):
                count = "calls++" if of == "calls" else "(calls++ + 2) / 4"
                return f"""
                    static __device__ int calls;
                    extern "C" __device__ float add_1(float* x) {{ return *x + 1 + {count}; }}
                """

            def __numba_cuda_call__(self, x):
                return autolink.Extern("add_1", returns=types.float32)

            def __call__(self, x):
                return x[0] + 1

        _, message = what_is_wrong(Counts(), "float32[::1]")
        assert ("called again" in message) == (of == "calls"), message

    def test_a_record_that_it_changes(self):
        pair = from_dtype(np.dtype([("x", "f4"), ("n", "i4")]))

        class Grow(Add):
            def __numba_cuda_call__(self, pair):
                return autolink.Extern("grow", returns=None)

            def __numba_cuda_link__(self, pair):
                code = 'struct Pair { float x; int n; }; extern "C" __device__ void grow(Pair* p) { p->n += 1; }'
                return autolink.CUDASource(code)

            def __call__(self, pair):
                pair["n"] += self.amount

        assert quick(Grow(), pair).checks[-1] == Check(RUNS)
        assert "argument 1 after the call" in what_is_wrong(Grow(2), pair)[1]

    @pytest.mark.parametrize(
        ("body", "fault"),
        [
            ("x[1 << 20] = 1; return *x;", "A write of 4 bytes out of bounds"),
            ("return *x + x[64];", "A read of 4 bytes out of bounds"),
            ("if (*x > 0) __trap(); return *x;", "The kernel executed a trap"),
            ("return *(float*)((char*)x + 1);", "A misaligned read of 4 bytes"),
        ],
    )
    def test_faults(self, body, fault):
        class Fails(Add):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("first", returns=types.float32)

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource(f'extern "C" __device__ float first(float* x) {{ {body} }}')

            def __call__(self, x):
                return x[0]

        name, message = what_is_wrong(Fails(), "float32[::1]")
        assert name == RUNS and f"got: {fault}" in message

    @pytest.mark.parametrize("has_equivalent", [False, True])
    @pytest.mark.parametrize(
        ("body", "fault"),
        [
            ("x[threadIdx.x + 40] = 1;", "A write of 4 bytes out of bounds"),
            ("if (threadIdx.x > 0) __trap();", "The kernel executed a trap"),
            (
                "__shared__ float last; last = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = last;",
                "A race: this write of 4 bytes",
            ),
            ("if (threadIdx.x == 0) __syncthreads();", "Threads of a block wait at different barriers"),
        ],
    )
    def test_faults_of_several_threads_with_one_array(self, body, fault, has_equivalent):
        class Fails(Add):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("of_threads")

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource(f'extern "C" __device__ void of_threads(float* x) {{ {body} }}')

        if has_equivalent:
            Fails.__call__ = lambda self, x: x.__setitem__(slice(40, 41), 1) if "40" in body else None
        name, message = what_is_wrong(Fails(), "float32[::1]")
        assert name == RUNS and f"got: {fault}" in message and "threads=" in message
        assert quick(Fails(), "float32[::1]", threads=1)

    def test_a_race(self):
        class Races(self.Adds):
            def source(self, x):
                body = "__shared__ float last; last = x; __syncthreads(); return last + 1;"
                return f'extern "C" __device__ float add_1(float x) {{ {body} }}'

        assert "got: A race: this write of 4 bytes" in what_is_wrong(Races())[1]

    @pytest.mark.parametrize("threads", [128, (16, 2), (4, 4, 2)])
    def test_a_function_that_a_block_calls_together(self, threads):
        """The whole block is one call in Python, and all its threads pass the same arguments."""

        class Sum(Add):
            def __numba_cuda_call__(self, x, n):
                return autolink.Extern("block_sum", returns=types.float32, args={"x": None, "n": types.int32})

            def __numba_cuda_link__(self, x, n):
                return autolink.CUDASource("""extern "C" __device__ float block_sum(float* x, int n) {
                    __shared__ float sum;
                    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
                    int size = blockDim.x * blockDim.y * blockDim.z;
                    float own = 0;
                    if (thread == 0) sum = 0;
                    for (int turn = 0; turn < n; ++turn) {
                        __syncthreads();
                        for (int i = thread; i < 64; i += size) own += x[i];
                    }
                    atomicAdd(&sum, own);
                    __syncthreads();
                    return thread == 0 ? sum : -1;
                }""")

            def __call__(self, x, n):
                return self.amount * x.sum() * n

        arguments = "float32[::1]", "int32"
        assert quick(Sum(), *arguments, threads=threads).checks[-1] == Check(RUNS)
        assert re.search(r"the result of \(array\(float32, 1d, C\), 1\)", what_is_wrong(Sum(2), *arguments)[1])

    @pytest.mark.parametrize("threads", [0, 1025, (32, 33)])
    def test_a_block_that_no_gpu_has(self, threads):
        with pytest.raises(ValueError, match=r"threads: got .*, expected 1 to 1024"):
            quick(Add(), threads=threads)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"threads": "a"}, "threads: got 'a', expected 1 to 1024"),
            ({"others": Add(2)}, r"others: got Add\(amount=2\), expected a list of objects"),
            ({"length": 2.5}, "length: got 2.5, expected the number of elements"),
            ({"rtol": "1e-3"}, "rtol: got '1e-3', expected a relative tolerance"),
            ({"samples": 1.0}, "samples: got 1.0, expected a list of tuples"),
            ({"samples": [1.0]}, "samples: got 1.0, expected a tuple of arguments for each call"),
            ({"samples": [(1.0, 2.0)]}, r"samples\[0\]: got \(1.0, 2.0\), expected 1 argument, without constants"),
            ({"samples": [(1.0,), ("a",)]}, r"samples\[1\]: got 'a', expected a value for float32"),
            ({"samples": [([1.0, 2.0],)]}, r"samples\[0\]: got \[1.0, 2.0\], expected a value for float32"),
        ],
    )
    def test_options_of_a_wrong_type(self, options, message):
        with pytest.raises(TypeError, match=message):
            quick(Add(), **options)

    def test_a_barrier_that_integers_decide_on(self):
        """They may have to be the same in all threads, as in one sample they are not."""

        class Turns(Add):
            def __numba_cuda_call__(self, n):
                return autolink.Extern("turns", returns=n)

            def __numba_cuda_link__(self, n):
                body = "for (int i = 0; i < n; ++i) __syncthreads(); return n;"
                return autolink.CUDASource(f'extern "C" __device__ long long turns(long long n) {{ {body} }}')

            def __call__(self, n):
                return n

        with pytest.warns(UserWarning, match="barrier.*; integers differ in each thread"):
            quick(Turns(), "int64")
        assert quick(Turns(), types.literal(3)).checks[-1] == Check(RUNS)

    def test_state_between_calls_without_an_equivalent_is_a_warning(self):
        class Counts(Add):
            def source(self, x):
                return (
                    'extern "C" __device__ float add_1(float x) { static int calls; return x + atomicAdd(&calls, 1); }'
                )

        with pytest.warns(UserWarning, match=r"of \(0\.\d+\) it returns .*, and .* when it is called again"):
            quick(Counts())

    def test_longer_arrays(self):
        class Last(Add):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("last", returns=types.float32)

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource('extern "C" __device__ float last(float* x) { return x[127]; }')

        assert "the length= of arrays" in what_is_wrong(Last(), "float32[::1]")[1]
        quick(Last(), "float32[::1]", length=128)

    def test_arguments_that_python_refuses_too_are_a_warning(self):
        class Table(self.Adds):
            def source(self, x):
                T = autolink.cxx_type(x)
                return f'__constant__ int table[2]; extern "C" __device__ {T} add_1({T} i) {{ return table[i]; }}'

            def __call__(self, i):
                raise ValueError(f"{i}: 0 or 1 is in the table")

        with pytest.warns(UserWarning, match="out of bounds; in Python raises ValueError: .: 0 or 1 is in the table"):
            quick(Table(), "int32")
        quick(type("Other", (Table,), {"__call__": Add.__call__})(), types.literal(1))

    def test_a_run_that_fails_otherwise_is_a_warning(self):
        class Endless(self.Adds):
            def source(self, x):
                body = "volatile int turns = 0; while (x > 0) ++turns; return x;"
                return f'extern "C" __device__ float add_1(float x) {{ {body} }}'

        with pytest.warns(UserWarning, match="is not checked to the end") as warned:
            found = quick(Endless())
        skipped = found.checks[-1].skipped
        assert re.search(r"^A thread goes back in loops more than \d+ times\n  at: .*:\d+\n", skipped)
        assert "  thread: (0, 0, 0) of block" in skipped and re.search(r"  with: \(0\.\d+\)", skipped)
        assert warned[0].filename == __file__

    def test_an_equivalent_for_the_simulator_is_not_compared(self):
        class OfThreads(self.Adds):
            def __call__(self, x):
                if cuda.threadIdx != 0:
                    raise ValueError(f"got {cuda.threadIdx}, expected the threads of the simulator")

        assert "for the simulator, uses numba.cuda" in quick(OfThreads()).checks[-1].skipped

    @pytest.mark.parametrize("name", ["1 // 0", "[][0]"])
    def test_python_that_raises_is_a_warning(self, name):
        class Raises(Add):
            def __call__(self, x):
                return eval(name)

        with pytest.warns(UserWarning, match="it runs, and in Python raises (ZeroDivision|Index)Error: "):
            quick(Raises())

    @pytest.mark.parametrize("name", ["nosuchname", "x.nothing", "len(2)"])
    def test_python_with_a_mistake(self, name):
        class Mistaken(Add):
            def __call__(self, x):
                return eval(name)

        assert re.search("got: its __call__ raises (Name|Attribute|Type)Error: ", what_is_wrong(Mistaken())[1])


class TestSamples:
    """The numbers that code is compared for, and how closely."""

    @staticmethod
    def object_of(body, equivalent, header=""):
        class Computes(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("computes", returns=getattr(x, "dtype", x))

            def __numba_cuda_link__(self, x):
                T = autolink.cxx_type(getattr(x, "dtype", x))
                parameter = f"{T}* x" if isinstance(x, types.Array) else f"{T} x"
                return autolink.CUDASource(
                    f'{header}extern "C" __device__ {T} computes({parameter}) {{ {body} }}', name="computes.cu"
                )

            def __call__(self, x):
                return equivalent(x)

        return Computes()

    @pytest.mark.parametrize(
        ("argtype", "body", "equivalent"),
        [
            ("float32", "return x;", abs),
            ("float64", "return x < 0 ? 0 : x;", lambda x: min(max(x, 0), 1)),
            ("float32", "return x > 0 ? 1.0f : -1.0f;", np.sign),
            ("float64", "return round(x);", np.round),
            ("complex64", "return x;", lambda x: complex(abs(x.real), x.imag)),
            ("int32", "return x;", abs),
            ("int64", "return x / 2;", lambda x: x // 2),
            ("float32[::1]", "return max(max(x[0], x[1]), 0.0f);", lambda x: x[:2].max()),
        ],
    )
    def test_numbers_that_are_not_small_and_positive(self, argtype, body, equivalent):
        header = "#include <cuda/std/complex>\n" * (argtype == "complex64")
        name, message = what_is_wrong(self.object_of(body, equivalent, header=header), argtype)
        assert name == RUNS and "or pass samples=" in message

    @pytest.mark.parametrize(
        ("argtype", "body", "equivalent"),
        [
            ("float64", "return acosh(x);", math.acosh),  # from 1 on
            ("float64", "return sqrt(x);", np.sqrt),  # NaN of negative ones
            ("float64", "return pow(x, 0.3);", lambda x: float(x) ** 0.3),  # complex
            ("float32", "return 1 / x;", lambda x: 1 / x),
            ("float32", "return expf(expf(x));", lambda x: np.exp(np.exp(x))),
            ("int32", "return 100 / x;", lambda x: int(100 / int(x))),
            ("uint32", "return x * 2;", lambda x: x * 2),
            ("float64[::1]", "double s = 0; for (int i = 0; i < 64; ++i) s += x[i]; return s;", np.sum),
        ],
    )
    def test_numbers_that_the_equivalent_does_not_take_are_left_out(self, argtype, body, equivalent, recwarn):
        assert quick(self.object_of(body, equivalent), argtype).checks[-1] == Check(RUNS)
        assert not recwarn.list

    def test_an_equivalent_that_does_not_end_for_some_numbers(self, recwarn):
        def steps_to_one(n):
            steps = 0
            while n != 1:
                n, steps = (3 * n + 1 if n % 2 else n // 2), steps + 1
            return steps

        body = "int steps = 0; for (; x != 1; ++steps) x = x % 2 ? 3 * x + 1 : x / 2; return steps;"
        trace = sys.gettrace()
        assert quick(self.object_of(body, steps_to_one), "int32").checks[-1] == Check(RUNS)
        assert sys.gettrace() is trace and not recwarn.list

    def test_a_fault_for_numbers_that_are_not_small_and_positive_is_a_warning(self):
        code = self.object_of("if (x < 0) __trap(); return x;", lambda x: x)
        with pytest.warns(UserWarning, match=r"executed a trap; in Python it does not fail\n(?s:.*)  with: \(-\d"):
            quick(code)

    def test_given_numbers(self):
        code = self.object_of("return (int)x;", lambda x: x)
        assert quick(code, "int64").checks[-1] == Check(RUNS)
        name, message = what_is_wrong(code, "int64", samples=[(7,), (1 << 40,)])
        assert name == RUNS.replace("random arguments", "the arguments of samples=")
        assert f"the result of ({1 << 40}) of samples[1] is np.int64(0)" in message
        assert quick(code, "int64", samples=[(1000,)]).checks[-1] == Check(name)

    def test_given_arrays(self):
        code = self.object_of("return x[2];", lambda x: x[2])
        samples = [(np.array([1, 2, np.inf]),), ([1, 2, 3, 4],)]
        assert not quick(code, "float64[::1]", samples=samples).checks[-1].skipped
        assert "out of bounds" in what_is_wrong(self.object_of("return x[3];", max), "float64[::1]", samples=samples)[1]

    def test_given_arguments_that_python_refuses_are_a_warning(self):
        code = self.object_of("return x;", lambda x: [x, x][x])
        with pytest.warns(UserWarning, match="in Python raises IndexError"):
            quick(code, "int64", samples=[(1,), (2,)])

    @pytest.mark.parametrize("factor", ["0.1f", "0.1000000001"])
    def test_doubles_of_few_digits(self, factor):
        code = self.object_of(f"return x * {factor};", lambda x: x * 0.1)
        assert "pass rtol= if they may differ by more than 1.0e-12" in what_is_wrong(code, "float64")[1]
        assert quick(code, "float64", rtol=1e-7).checks[-1] == Check(RUNS)
        assert quick(code, "float32").checks[-1] == Check(RUNS)

    def test_an_equivalent_of_fewer_digits_than_the_result(self):
        code = self.object_of("return sinf(x);", lambda x: np.sin(np.float32(x)))
        assert quick(code, "float64").checks[-1] == Check(RUNS)
        assert what_is_wrong(self.object_of("return sinf(x);", math.sin), "float64")[0] == RUNS

    def test_small_results(self):
        assert "e-3" in what_is_wrong(self.object_of("return 0;", lambda x: x * 6.6e-34), "float64")[1]

    def test_an_equivalent_with_a_complex_number(self):
        assert "as its __call__ returns" in what_is_wrong(self.object_of("return 1;", lambda x: 1j))[1]

    @pytest.mark.parametrize("result", [None, "text", [1.0], np.ones(2), (1, (2, 3))])
    def test_an_equivalent_with_no_number(self, result):
        message = what_is_wrong(self.object_of("return 1;", lambda x: result))[1]
        assert f"got: its __call__ returns {result!r} for (" in message


class TestWarnings:
    def test_those_of_the_compiler_appear_once(self):
        class Warns(Add):
            def source(self, x):
                return super().source(x).replace("return", "unsigned never_used = -1; return")

        with pytest.warns(UserWarning, match="never_used") as warned:
            check_linkable(Warns(), "float32")
        assert len(warned) == 1 and warned[0].filename == __file__

    def test_ptx_has_none(self, recwarn):
        class Finished(Add):
            def __numba_cuda_link__(self, x):
                return cuda.PTXSource(compiled(self.source(x), "ptx"))

            def __call__(self, x):
                return x + self.amount

        assert check_linkable(Finished(), "float32").checks[-1] == Check(RUNS)
        assert not recwarn.list
        assert what_is_wrong(type("Other", (Finished,), {"__call__": lambda self, x: x})())[0] == RUNS

    def test_a_read_of_what_nobody_wrote_is_at_its_line(self):
        class Reads(Add):
            def source(self, x):
                return """extern "C" __device__ float add_1(float x) {
                    __shared__ float written_by_none[64];
                    return written_by_none[threadIdx.x + 1];
                }"""

        place = f"    at: {re.escape(__file__)}:\\d+\n"
        with pytest.warns(UserWarning, match=f"never written\n{place}(?s:.*)    thread: (?s:.*)    address: "):
            quick(Reads())


class NoneWithoutLto(Add):
    def __numba_cuda_link__(self, x):
        return super().__numba_cuda_link__(x) if autolink.current_target().lto else None


def test_a_hook_that_returns_nothing_without_lto_is_told_what_was_asked_for():
    _, message = what_is_wrong(NoneWithoutLto(), lto=None)
    assert "asked for: code for sm_90, without LTO\n" in message
    assert "for code that requires LTO, pass lto=True to check_linkable" in message
    quick(NoneWithoutLto(), lto=True)


IN_ANOTHER_PROCESS = "gives the same key and code in another process"


class WithKey(Add):
    def __numba_cuda_link_key__(self, x):
        return self.amount


class KeyOfId(WithKey):
    def __numba_cuda_link_key__(self, x):
        return id(self)


class KeyOfHash(WithKey):
    def __numba_cuda_link_key__(self, x):
        return hash("generator")


class KeyOfRepr(WithKey):
    def __numba_cuda_link_key__(self, x):
        return object.__repr__(self)


class CodeOfSet(WithKey):
    def source(self, x):
        names = {f"name_{number}" for number in range(20)}
        return "".join(f"__device__ int {name}();\n" for name in names) + super().source(x)


class Unsendable(WithKey):
    def __reduce__(self):
        raise TypeError("it has a lock")


@pytest.mark.parametrize("faulty", [KeyOfId, KeyOfHash, KeyOfRepr])
def test_a_key_that_differs_between_processes(faulty):
    name, message = what_is_wrong(faulty())
    assert name == IN_ANOTHER_PROCESS
    assert "__numba_cuda_link_key__ differs between processes: here " in message


def test_code_that_differs_between_processes():
    name, message = what_is_wrong(CodeOfSet())
    assert name == IN_ANOTHER_PROCESS
    assert "__numba_cuda_link__ differs between processes in line 1" in message


class SlowKey(WithKey):
    def __numba_cuda_link_key__(self, x):
        time.sleep(0.15)
        return self.amount


def test_a_slow_key_warns():
    with pytest.warns(
        UserWarning, match=r"SlowKey.__numba_cuda_link_key__ takes .* s, in each process(?s:.*)what to do: make"
    ):
        quick(SlowKey())


class CallIsProperty(Add):
    @property
    def __numba_cuda_call__(self):
        return autolink.Extern("add_1", returns="float32")


def test_a_call_that_is_a_property_is_told_to_be_a_method():
    _, message = what_is_wrong(CallIsProperty())
    assert "what to do: make it a method, def __numba_cuda_call__(self, ...), and no property" in message


def test_an_object_that_cannot_be_sent_to_another_process_is_not_checked_there():
    skipped = {check.name: check.skipped for check in quick(Unsendable()).checks}
    assert skipped[IN_ANOTHER_PROCESS] == "the object cannot be sent to another process: TypeError: it has a lock"
    assert {check.name: check.skipped for check in quick(WithKey()).checks}[IN_ANOTHER_PROCESS] == ""


def test_an_object_of_a_class_of_cxx_is_zero_bytes():
    counter = autolink.cxx("""
        class Last {
            float kept[4]; int next;
        public:
            __device__ float push(float x) {
                if (next < 0 || next > 3) __trap();
                kept[next] = x; next = (next + 1) % 4; return kept[0] - x;
            }
        };
    """).type("Last", cc=(9, 0))

    class Last(autolink.DeviceCallable):
        @autolink.device_method
        def push(self, state, x):
            push = counter.method("push")
            return lambda state, x: push(state, x)

    check_linkable(Last().push, counter.dtype, "float32")


class TestNumbersByReference:
    """C++ functions that refer to numbers: kernels call them with the places of these."""

    lib = autolink.cxx("""
        __device__ float split(float x, int& whole) { whole = int(x); return x - whole; }
        __device__ void count(int& n, int by) { n += by; }
        template <class T> __device__ void exchange(T& a, T& b) { T c = a; a = b; b = c; }
        template <class T> __device__ T next(T&& x) { return x += 1; }
        __device__ float f(float x) { return x; }
        __device__ float f(float x, float& y) { return y = x; }
        __device__ float grow(float& x) { x = x * 1.5f; return x; }
        struct V { float x, y; };
        __device__ V operator*(V v, float by) { return {v.x * by, v.y * by}; }
        __device__ void operator*=(V& v, float by) { v = v * by; }
    """)

    @pytest.mark.parametrize(
        ("name", "argtypes"),
        [
            ("split", ("float32", "int32")),
            ("count", ("int32", types.literal(2))),
            ("count", ("int32", "int32")),
            ("exchange", ("float64", "float64")),
            ("next", ("int32",)),
            ("f", ("float32",)),
            ("f", ("float32", "float32")),
            ("grow", ("float32",)),
        ],
    )
    @pytest.mark.filterwarnings("error")
    def test_they_are_linkable(self, name, argtypes):
        assert quick(self.lib[name], *argtypes).code

    def test_an_element(self):
        assert quick(self.lib.split.passing(None, "element"), "float32", "int32[::1]").code

    def test_operators_of_a_class(self):
        vector = self.lib.record("V")
        assert quick(self.lib["operator*"], vector, "float32").code
        assert quick(self.lib["operator*="], vector, "float32").code

    def test_each_call_gets_the_numbers_that_were_given(self):
        lib = autolink.cxx("__device__ int count(int& n, int by) { n += by; return n; }")
        lib.count.python(lambda n, by: n + by)
        assert quick(lib.count, "int32", "int32").checks[-1] == Check(RUNS)
        lib.count.python(lambda n, by: n + by + 1)
        assert what_is_wrong(lib.count, "int32", "int32")[0] == RUNS


class TestTuples:
    """Results that are structs and tuples are compared part by part."""

    CODE = """
        #include <cuda/std/tuple>
        enum class Kind { even, odd };
        struct Inner { float x; double y; };
        struct Outer { Inner inner; int n[2]; bool is_large; Kind kind; };
        __device__ Outer make(float x, int i) { return {{x, 2.0 * x}, {i, i + 1}, i > 3, Kind(i & 1)}; }
        __device__ cuda::std::tuple<float, int> pair(float x, int i) { return {x, i}; }
        __device__ float* same(float* x) { return x; }
    """
    ARGTYPES = "float32", "int32"

    @pytest.mark.parametrize("is_record", [False, True])
    def test_structs(self, is_record):
        lib = autolink.cxx(self.CODE)
        if is_record:
            lib.record("Outer")
        lib.make.python(lambda x, i: ((x, 2 * x), np.array([i, i + 1]), i > 3, i & 1))
        assert quick(lib.make, *self.ARGTYPES).checks[-1] == Check(RUNS)
        place = r"\.inner\.y" if is_record else r"\[0\]\[1\]"
        for wrong, said in [
            (lambda x, i: ((x, 3 * x), (i, i + 1), i > 3, i & 1), f"the result{place} of "),
            (lambda x, i: ((x, 2 * x), (i, i + 1, 0), i > 3, i & 1), "its __call__ returns "),
            (lambda x, i: "nonsense", "its __call__ returns 'nonsense' for "),
            (lambda x, i: x, "its __call__ returns "),
        ]:
            lib.make.python(wrong)
            assert re.search(f"got: {said}", what_is_wrong(lib.make, *self.ARGTYPES)[1])

    def test_tuples(self):
        lib = autolink.cxx(self.CODE)
        lib.pair.python(lambda x, i: (x, i))
        assert quick(lib.pair, *self.ARGTYPES).checks[-1] == Check(RUNS)
        lib.pair.python(lambda x, i: (x, i + 0.5))
        assert "got: the result[1] of " in what_is_wrong(lib.pair, *self.ARGTYPES)[1]

    @pytest.mark.parametrize("is_wrong", [False, True])
    def test_a_dtype_of_an_extern(self, is_wrong):
        class Divide(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return autolink.Extern("divide", returns=np.dtype([("q", "f4"), ("r", "f4")]))

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource("""
                    struct P { float q, r; };
                    extern "C" __device__ P divide(float x) { return {x / 2, x}; }
                """)

            def __call__(self, x):
                return x / 2, x + is_wrong

        if is_wrong:
            assert "got: the result.r of " in what_is_wrong(Divide())[1]
        else:
            assert quick(Divide()).checks[-1] == Check(RUNS)

    def test_of_a_body_in_python(self):
        class Twice(Add):
            __numba_cuda_link__ = None

            def __numba_cuda_call__(self, x):
                return lambda x: (x, (2 * x, 1))

            def __call__(self, x):
                return x, (2 * x, self.amount)

        assert quick(Twice()).checks[-1] == Check(RUNS)
        assert "got: the result[1][1] of " in what_is_wrong(Twice(2))[1]

    def test_others_run_with_a_warning(self):
        lib = autolink.cxx(self.CODE)
        lib.same.python(lambda x: x)
        with pytest.warns(UserWarning, match=r"it runs, and the check does not compare results of the type float32\*"):
            check_linkable(lib.same, "float32[::1]", lto=True)
