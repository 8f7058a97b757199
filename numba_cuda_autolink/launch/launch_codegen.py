# SPDX-License-Identifier: BSD-2-Clause
"""The function that packs the arguments of one launch and launches it, generated for the parameters of a kernel.

It writes only what differs from the launch before: for an array that is the same object, nothing; for another array of
the same type, its address and, if it differs, its size. Everything else goes to the writers of `argument_packing`.

An array's own object is remembered by a weak reference, so that no memory is kept alive. What can change in place is
looked at in each launch: the shape of CuPy's arrays, everything of PyTorch's.
"""

from __future__ import annotations

import functools
import textwrap
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import ArgumentError, at_call
from ..plain_types import Leaf, Parameter, end_of
from ..printable_texts import number_of
from .argument_packing import Buffer, limits, writers
from .arrays import library_of
from .driver import Device, bindings, device_count, driver_error

_RUN = """\
def new_run(buffer, put, device, function):
    extra = buffer.extra
    {setup}
    def run(config, arguments):
        {state}
        try:
            {unpack}
        except ValueError:
            raise wrong_count(len(arguments)) from None
        {body}
        error = launch(config, function, 0, extra)[0]
        if error is not success:
            raise driver_error(int(error))
    run.buffer = buffer  # which extra is an address of
    return run
"""

# {n} numbers the parameter: a is its argument, w a weak reference to the last one, k its size, s its shape, x its
# strides; c, t or d is the class of CuPy's, PyTorch's or numba-cuda's arrays if it was one, e and g its dtype.
_ARRAY = """\
if a{n} is None or w{n}() is not a{n} or {moved}:
    kind = type(a{n})
    if kind is c{n} and a{n}.dtype is e{n} and {same_cupy}{on_cupy}:
        {data} = a{n}.data.ptr
        {size}
        w{n} = ref(a{n})
    elif kind is t{n} and a{n}.dtype is g{n} and a{n}.shape == s{n} and a{n}.is_cuda and {same_torch}{on_torch} and (
            not a{n}.is_neg(){conjugate}) and (p := a{n}.data_ptr()):
        {data} = p
    elif kind is d{n} and a{n}.dtype == e{n} and a{n}.shape == s{n} and a{n}.strides == x{n}{on_numba}:
        {data} = a{n}.device_ctypes_pointer.value or 0
    else:
        w{n}, k{n}, s{n} = nobody, -1, None
        c{n} = t{n} = d{n} = None
        put{n}(a{n}, config)
        library = library_of(kind)
        if library:
            s{n} = a{n}.shape
            if library == "torch":
                t{n}, g{n} = kind, a{n}.dtype
                {strides_torch}
            else:
                e{n}, x{n} = a{n}.dtype, a{n}.strides
                if library == "cupy":
                    c{n} = kind if hasattr(kind, "_c_contiguous") else None
                else:
                    d{n} = kind
"""


def run_maker(kernel: str, parameters: Sequence[Parameter], leaves: Sequence[Leaf]) -> Any:
    """Return a function of a device and a handle of the driver, which returns a new ``run(config, arguments)``.
    Two threads must not use one run at a time."""
    api = bindings()
    names = {
        "__name__": __name__,
        "launch": api.cuLaunchKernelEx,
        "success": api.CUresult.CUDA_SUCCESS,
        "driver_error": lambda code: driver_error(api, f"the launch of {kernel}", code),
        "wrong_count": lambda count: wrong_count(kernel, parameters, count),
        "ref": weakref.ref,
        "nobody": object,  # a call returns what is not an argument
        "library_of": library_of,
    }
    exec(_compile(source(parameters, leaves, device_count() > 1)), names)

    def new_run(device: Device, function: Any) -> Any:
        buffer = Buffer(end_of(leaves))
        return names["new_run"](buffer, writers(kernel, parameters, leaves, buffer, device), device, function)

    return new_run


@functools.lru_cache(maxsize=256)
def _compile(text: str) -> Any:
    return compile(text, "<launch>", "exec")


def source(parameters: Sequence[Parameter], leaves: Sequence[Leaf], several_devices: bool) -> str:
    """Return the source of ``new_run``."""
    setup, state, body, at = [], [], [], 0
    for number, parameter in enumerate(parameters):
        own = leaves[at : at + len(list(parameter.codes))]
        at += len(own)
        setup.append(f"put{number} = put[{number}]")
        if parameter.form is not None:
            for letter, initial in (*zip("ctdesgx", ["None"] * 7, strict=True), ("k", "-1"), ("w", "nobody")):
                setup.append(f"{letter}{number} = {initial}")
                state.append(f"{letter}{number}")
            body.append(_array(number, parameter, own, several_devices))
        elif parameter.kind == "number" and own[0].code != "e":
            setup.append(f"b{number} = nobody")
            state.append(f"b{number}")
            body.append("\n".join(_number(number, own[0])))
        else:
            body.append(f"put{number}(a{number}, config)")
    setup += [
        f'{code} = buffer.views["{code}"]' for code in sorted({leaf.code for leaf in leaves} - {"e"} | {"Q", "q"})
    ]
    names = [f"a{number}" for number in range(len(parameters))]
    return _RUN.format(
        setup=_indent(setup, 4),
        state=f"nonlocal {', '.join(state)}" if state else "pass",
        unpack=f"({', '.join(names)},) = arguments" if names else "() = arguments",
        body=_indent(body, 8),
    )


def _array(number: int, parameter: Parameter, own: Sequence[Leaf], several_devices: bool) -> str:
    ndim, layout = parameter.ndim, parameter.layout
    a, is_vector = f"a{number}", ndim == 1 and layout == "C"
    flags = {"C": f"{a}._c_contiguous", "F": f"{a}._f_contiguous", "A": f"{a}.strides == x{number}"}
    torch = {"C": f"{a}.is_contiguous()", "F": f"{a}.stride() == x{number}", "A": f"{a}.stride() == x{number}"}
    form = parameter.form
    assert form is not None
    counts = [index for index in (form.items, len(form.codes)) if is_vector and index is not None]
    size = f"if {a}.size != k{number}:\n    k{number} = {_words('q', own, counts)} = {a}.size"
    return _ARRAY.format(
        n=number,
        data=_words("Q", own, form.addresses),
        # The shape of CuPy's arrays can be assigned to, but not their size.
        moved=f"{a}.ndim != 1" if is_vector else f"{a}.shape != s{number}",
        same_cupy=(f"{a}.ndim == 1" if is_vector else f"{a}.shape == s{number}") + f" and {flags[layout]}",
        same_torch=torch[layout],
        conjugate=f" and not {a}.is_conj()" if str(parameter.dtype)[1] == "c" else "",
        size=textwrap.indent(size, " " * 8).strip() if is_vector else "pass",
        strides_torch="pass" if layout == "C" else f"x{number} = {a}.stride()",
        on_cupy=f" and {a}.data.device_id == device.ordinal" if several_devices else "",
        on_torch=f" and {a}.get_device() == device.ordinal" if several_devices else "",
        on_numba=f" and {a}.gpu_data.context.device.id == device.ordinal" if several_devices else "",
    )


def _words(view: str, own: Sequence[Leaf], which: Sequence[int]) -> str:
    """Return the assignment of one number to several values of 8 bytes, up to the number."""
    return " = ".join(f"{view}[{own[index].offset // 8}]" for index in which)


def _number(number: int, leaf: Leaf) -> Iterator[str]:
    a, b = f"a{number}", f"b{number}"
    test = f"type({a}) is float"
    if leaf.code not in "fd":
        low, high = limits(leaf.code)
        test = f"type({a}) is int and {low} <= {a} <= {high}"
    yield f"if {a} is not {b}:"
    yield f"    if {test}:"
    yield f"        {leaf.code}[{leaf.offset // leaf.size}] = {b} = {a}"
    yield "    else:"
    yield f"        put{number}({a}, config)"
    # NumPy's numbers do not change; others might.
    yield f"        {b} = {a} if type({a}).__module__ == 'numpy' else nobody"


def _indent(parts: Sequence[str], spaces: int) -> str:
    return textwrap.indent("\n".join(parts), " " * spaces).strip() or "pass"


def wrong_count(kernel: str, parameters: Sequence[Parameter], count: int) -> ArgumentError:
    names = ", ".join(f"{parameter.name}: {parameter}" for parameter in parameters)
    takes = number_of(len(parameters), "argument")
    return ArgumentError(at_call(f"{kernel} takes {takes}, got {count}\n  expected: {names or 'none'}"))
