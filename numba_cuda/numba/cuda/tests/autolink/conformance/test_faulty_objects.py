# SPDX-License-Identifier: BSD-2-Clause
"""`check_linkable` names the fault of an object in its first line, the hook with its line, and what to do. Right
objects pass without a warning."""

from __future__ import annotations

import fractions
import itertools
import re
import time

import numpy as np
import pytest
from numba import cuda, from_dtype
from numba.cuda import autolink, types
from numba.cuda.autolink.testing import NotLinkableError, check_linkable

RECORD = np.dtype([("x", "f4"), ("n", "i8")], align=True)


def object_of(body, returns=None, python=None, **hooks):
    """An object that calls the function ``f`` in the C++ *body*; *hooks* replaces its methods, ``call``, ``link`` and
    so on, or adds some."""

    named = {"call": "__numba_cuda_call__", "link": "__numba_cuda_link__", "key": "__numba_cuda_link_key__"}
    methods = {
        "__numba_cuda_call__": lambda self, x: autolink.Extern("f", returns=x if returns is None else returns),
        "__numba_cuda_link__": lambda self, x: autolink.CUDASource(body, name="f.cu"),
        **({} if python is None else {"__call__": python}),
        **{named.get(name, f"__{name}__"): function for name, function in hooks.items()},
    }
    return type("Faulty", (autolink.DeviceCallable,), methods)()


SAME = 'extern "C" __device__ float f(float x) { return x; }'


async def asynchronous(self, x):
    return None


def raise_error(*_):
    raise OSError("the table is gone")


def call_itself(self, x):
    return self(x)


def once(answer):
    asked = itertools.count()
    return lambda self, x: answer if next(asked) == 0 else raise_error()


FAULTS = {
    "a link key that raises": (
        dict(key=raise_error),
        r"__numba_cuda_link_key__ raised OSError: the table is gone",
        "raise_error",
        "let it return a value for this signature, or None for no key",
    ),
    "a link key with other parameters": (
        dict(key=lambda self: 1),
        r"__numba_cuda_link_key__ raised TypeError: .* takes 1 positional argument but 2 were given",
        "defined at",
        "let the hook take one parameter for each argument type",
    ),
    "an asynchronous link key": (
        dict(key=asynchronous),
        r"__numba_cuda_link_key__ returned a coroutine",
        "defined at",
        "make the method an ordinary one, without async",
    ),
    "a hook that raises": (
        dict(link=raise_error),
        r"__numba_cuda_link__ raised OSError: the table is gone",
        "raise_error",
        "let it return code for this signature, or let __numba_cuda_call__ reject the signature",
    ),
    "a misspelt option": (
        dict(link=lambda self, x: autolink.CUDASource(SAME, options={"max_register_cuont": 32})),
        r"__numba_cuda_link__ raised ValueError: compile option 'max_register_cuont' is not a field",
        "raised at",
        "did you mean max_register_count?",
    ),
    "a result of a misspelt type": (
        dict(call=lambda self, x: autolink.Extern("f", returns="float33")),
        r"Extern's returns: 'float33' is not the name of a Numba type",
        "raised at",
        "did you mean float32?",
    ),
    "a hook that answers once": (
        dict(link=once(autolink.CUDASource(SAME))),
        r"__numba_cuda_link__ answers once only, and then raised OSError: the table is gone",
        "defined at",
        "make the answer depend on nothing but",
    ),
    "an asynchronous hook": (
        dict(link=asynchronous),
        r"__numba_cuda_link__ returned what cannot be linked: coroutine is not code",
        "defined at",
        "make the method an ordinary one, without async",
    ),
    "a hook that returns nothing": (
        dict(link=lambda self, x: None),
        r"__numba_cuda_link__ returns nothing",
        "defined at",
        "return the code; an object without code to link needs no hook",
    ),
    "a call hook that answers once": (
        dict(call=once(autolink.Extern("f", returns=types.float32))),
        r"__numba_cuda_call__ answers once only, and then .*raised OSError: the table is gone",
        "raise_error",
        "change its __numba_cuda_call__ where it raised",
    ),
    "an asynchronous call hook": (
        dict(call=asynchronous),
        r"__numba_cuda_call__ returned neither an autolink.Extern nor a function",
        "__numba_cuda_call__ is defined at",
        "make the method an ordinary one, without async",
    ),
    "a call hook with other parameters": (
        dict(call=lambda self: autolink.Extern("f")),
        r"too many positional arguments",
        "__numba_cuda_call__ is defined at",
        "pass one argument for each; or give __numba_cuda_call__ other parameters",
    ),
    "a repr that raises": (
        dict(repr=raise_error),
        r"its raise_error raises OSError: the table is gone",
        "raise_error",
        "correct raise_error: the compiler uses it",
    ),
    "attributes that raise": (
        dict(getattr=raise_error),
        r"its raise_error raises OSError: the table is gone",
        "raise_error",
        "correct raise_error: the compiler uses it",
    ),
    "a kernel": (
        dict(body='extern "C" __global__ void f(float* x) { *x = 1; }'),
        r"'f' is called as a function, but it is a kernel",
        "__numba_cuda_link__ is defined at",
        "declare 'f' as __device__, not as __global__",
    ),
    "a function of another width": (
        dict(body='extern "C" __device__ double f(double x) { return x; }'),
        r"'f' is called with other types than it has",
        "__numba_cuda_link__ is defined at",
        "write the type that it returns: Extern('f', returns='float64'); convert what is passed: ",
    ),
    "a result without a type": (
        dict(body=SAME, call=lambda self, x: autolink.Extern("f")),
        r"'f' is called with other types than it has",
        "__numba_cuda_link__ is defined at",
        "write the type that it returns: Extern('f', returns='float32')",
    ),
    "an equivalent with other parameters": (
        dict(python=lambda self, x, y: x),
        r"its __call__ does not take the arguments of the call: missing a required argument: 'y'",
        "defined at",
        "give it the parameters of __numba_cuda_call__, or leave it out",
    ),
    "an equivalent that does not end": (
        dict(python=call_itself),
        r"its __call__ calls itself without an end",
        "defined at",
        "let it end, or leave __call__ out",
    ),
    "an asynchronous equivalent": (
        dict(python=asynchronous),
        r"its __call__ returns a coroutine",
        "defined at",
        "make the method an ordinary one, without async",
    ),
    "an equivalent that is not a number": (
        dict(python=lambda self, x: float("nan")),
        r"the result of \(0\.\d+\) is np\.float32\(0\.\d+\) in the emulator, and nan in Python",
        "defined at",
        "let the linked code and __call__ compute the same, at each call",
    ),
    "an equivalent with a mistake": (
        dict(python=lambda self, x: x.nothing),
        r"its __call__ raises AttributeError: .*no attribute 'nothing'",
        "raised at",
        "correct it, or leave __call__ out",
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("fault", FAULTS)
def test_the_first_line_names_the_fault(fault):
    methods, first, place, todo = FAULTS[fault]
    with pytest.raises(NotLinkableError) as raised:
        check_linkable(object_of(**{"body": SAME, **methods}), "float32", lto=True)
    diagnosis, *lines = str(raised.value).split("\n")
    assert re.fullmatch(f"Faulty is not linkable: {first}.*", diagnosis)
    assert "a kernel of check_linkable" not in str(raised.value)
    assert any(place in line for line in lines) and any(f"{__file__}:" in line for line in lines)
    remedies = [line.strip() for line in lines if "what to do: " in line]
    assert len(remedies) == 1 and remedies[0].startswith(f"what to do: {todo}")


@pytest.mark.parametrize(
    ("argtypes", "body", "returns", "python", "got"),
    [
        (["int8"], "signed char f(signed char x) { return x / 2; }", None, lambda self, x: x // 2, r"\(-\d\)"),
        (["bool"], "bool f(bool x) { return x; }", None, lambda self, x: not x, r"\(False\)|\(True\)"),
        (["float16"], "__half f(__half x) { return x; }", None, lambda self, x: x + 1, r"\(0\.\d+\)"),
        (["float32[:,::1]"], "float f(float* x) { return x[1]; }", types.float32, lambda self, x: x[1, 0], "2d, C"),
        (["float32[::1,:]"], "float f(float* x) { return x[1]; }", types.float32, lambda self, x: x[0, 1], "2d, F"),
        (
            [from_dtype(RECORD)],
            "float f(Pair* x) { return x->n; }",
            types.float32,
            lambda self, x: x["x"],
            r"\(\(0\.\d+, 1\)\)",
        ),
    ],
)
def test_values_of_every_kind_are_compared(argtypes, body, returns, python, got):
    body = f'#include <cuda_fp16.h>\nstruct Pair {{ float x; long long n; }}; extern "C" __device__ {body}'
    with pytest.raises(NotLinkableError, match=f"^Faulty is not linkable: the result of .*{got}") as raised:
        check_linkable(object_of(body, returns, python), *argtypes, lto=True)
    assert "let the linked code and __call__ compute the same" in str(raised.value)


RIGHT = {
    "half": (["float16"], "__half f(__half x) { return __hmul(x, __float2half(2)); }", None, lambda self, x: x + x),
    "int8": (["int8"], "signed char f(signed char x) { return x + 1; }", None, lambda self, x: x + 1),
    "bool": (["bool"], "bool f(bool x) { return !x; }", None, lambda self, x: not x),
    "rows": (["float32[:,::1]"], "float f(float* x) { return x[1]; }", types.float32, lambda self, x: x[0, 1]),
    "columns": (["float32[::1,:]"], "float f(float* x) { return x[1]; }", types.float32, lambda self, x: x[1, 0]),
    "a record": (
        [from_dtype(RECORD)],
        "float f(Pair* x) { return x->n; }",
        types.float32,
        lambda self, x: np.float32(x["n"]),
    ),
    "a fraction": (
        ["int64"],
        "double f(long long x) { return x / 3.0; }",
        types.float64,
        lambda self, x: fractions.Fraction(int(x), 3),
    ),
    "not a number": (
        ["float64"],
        'double f(double x) { return x > 0.5 ? nan("") : x; }',
        None,
        lambda self, x: np.nan if x > 0.5 else x,
    ),
    "a pointer": ([types.CPointer(types.float32)], "float f(float* x) { return *x; }", types.float32, None),
    "shared memory": (
        ["float32[::1]"],
        """float f(float* x) {
            __shared__ float kept[32];
            kept[threadIdx.x] = x[threadIdx.x];
            __syncthreads();
            return kept[0];
        }""",
        types.float32,
        lambda self, x: x[0],
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", RIGHT)
def test_right_objects_pass_without_a_warning(name):
    argtypes, body, returns, python = RIGHT[name]
    body = f'#include <cuda_fp16.h>\nstruct Pair {{ float x; long long n; }}; extern "C" __device__ {body}'
    checks = check_linkable(object_of(body, returns, python), *argtypes).checks
    assert checks[-1].skipped == (
        "it does not make up arguments of the type float32*, which is neither a number nor a record"
        if name == "a pointer"
        else ""
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "key", [{"b": 1, "a": (2, {"c": 3})}, [1, {2, 3}], ("fft", 128, 2.5, b"x", None, True), {("x", 1): "y"}]
)
def test_keys_that_are_values(key):
    """Dicts that are equal are equal keys, in whichever order they were filled."""
    orders = itertools.cycle([dict, lambda items: dict(reversed(items))])

    def in_another_order(self, *argtypes):
        return next(orders)([*key.items()]) if isinstance(key, dict) else key

    (check,) = [
        each
        for each in check_linkable(object_of(SAME, key=in_another_order), "float32", lto=True).checks
        if "link_key" in each.name
    ]
    assert check.skipped == ""


@pytest.mark.parametrize(
    ("hook", "remedy"),
    [
        ("call", "leave what takes long to __numba_cuda_link__"),
        ("link", "give it a __numba_cuda_link_key__, under which its answers are stored on disk"),
    ],
)
def test_a_slow_hook_is_asked_again_once_and_is_a_warning(hook, remedy):
    asked = []

    def take_long(self, x):
        asked.append(x)
        time.sleep(0.15)
        return autolink.Extern("f", returns=x) if hook == "call" else autolink.CUDASource(SAME)

    with pytest.warns(UserWarning, match=rf"^Faulty\.__numba_cuda_{hook}__ takes 0\.\d s, in each process") as warned:
        check_linkable(object_of(SAME, **{hook: take_long}), "float32", lto=True)
    (warning,) = warned
    assert f"what to do: {remedy}" in str(warning.message) and warning.filename == __file__
    assert len(asked) == 2


@pytest.mark.filterwarnings("error")
def test_a_slow_hook_with_a_link_key_is_no_warning():
    def take_long(self, x):
        time.sleep(0.15)
        return autolink.CUDASource(SAME)

    check_linkable(object_of(SAME, link=take_long, key=lambda self, x: 1), "float32", lto=True)


@pytest.mark.filterwarnings("error")
def test_warnings_are_errors_where_a_test_wants_them():
    body = 'extern "C" __device__ float f(float x) { static int calls; return x + atomicAdd(&calls, 1); }'
    with pytest.raises(UserWarning, match="is not checked to the end"):
        check_linkable(object_of(body), "float32", lto=True)


def test_a_kernel_in_ptx_is_named():
    ptx = b".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry f(.param .f32 x) { ret; }\n"
    with pytest.raises(NotLinkableError, match=r"^Faulty is not linkable: 'f' is called as a function, but it is a k"):
        check_linkable(object_of(SAME, link=lambda self, x: cuda.PTXSource(ptx)), "float32", lto=True)
