# SPDX-License-Identifier: BSD-2-Clause
"""A finished kernel as a header for C and C++ programs, which need neither Python nor a compiler for CUDA.

The header contains the code for each architecture, a struct for the arguments, and functions that load and launch the
kernel through the CUDA driver. It is C99 and C++17, and includes ``cuda.h``, ``stddef.h``, ``stdint.h`` and
``string.h`` alone.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from numba.cuda.cudadrv.external_code.diagnostics import messages

from numba_cuda_autolink.errors import FinishedKernelError
from numba_cuda_autolink.finished.kernel_file import Image
from numba_cuda_autolink.plain_types import ArrayForm, Leaf, Parameter, end_of, item_size, place_leaves, type_name

from ..c_abi import c_types
from .saving import as_built, image_of

if TYPE_CHECKING:
    from ..function_code.build_record import BuildRecord

_C_TYPES = {"b": "int8_t", "h": "int16_t", "i": "int32_t", "q": "int64_t", "B": "uint8_t", "H": "uint16_t"}
_C_TYPES |= {"I": "uint32_t", "Q": "uint64_t", "e": "uint16_t", "f": "float", "d": "double"}
_WORDS_IN_LINE = 5


def write_header(path: str | bytes | os.PathLike[Any], kernels: BuildRecord | Iterable[BuildRecord]) -> None:
    """Write one kernel, built for one or several architectures, to a header for C and C++ programs.

    The names in the header begin with that of the Python function, or the ``entry_name`` that the kernel was built
    with: ``axpy_load``, ``axpy_launch``, ``axpy_arguments``.

    Parameters
    ----------
    path:
        The file, usually with the suffix ``.h``.
    kernels:
        What `build` returned for one kernel and signature, as cubins: one, or one for each architecture.

    Raises
    ------
    FinishedKernelError
        If the kernel needs what a C program cannot give it: numba-cuda's runtime, callbacks, variables, exceptions,
        extensions. If its name is not a name in C, or *kernels* are not one kernel with one signature, as cubins.
    TypeError
        If *kernels* are not what `build` returned.
    OSError
        If the file cannot be written.
    """
    kernels = as_built("write_header()", kernels)
    if not kernels:
        raise FinishedKernelError("there are no kernels to write")
    text = _header(kernels[0].launch_facts.name, kernels)
    with open(messages.path("write_header()", path), "w", encoding="utf-8") as file:
        file.write(text)


def _header(name: str, kernels: Sequence[BuildRecord]) -> str:
    if not (name.isascii() and name.isidentifier()) or name in c_types.RESERVED:
        raise FinishedKernelError(
            f"{name!r} is not a name in C\n  what to do: build it with another entry_name=, or another --name"
        )
    first = kernels[0]
    facts = first.launch_facts
    parameters = facts.parameters
    images = []
    for linked in kernels:
        if linked.output != "cubin" or (linked.launch_facts.name, linked.signature) != (name, first.signature):
            raise FinishedKernelError("a header is made of the cubins of one kernel with one signature")
        if linked.launch_facts.variables:
            names = ", ".join(repr(variable.memory.name) for variable in linked.launch_facts.variables)
            raise FinishedKernelError(
                f"kernel {name!r} cannot be in a header: Python sets its variables {names}\n"
                "  what to do: pass the values as arguments"
            )
        if linked.launch_facts.setup or linked.launch_facts.teardown:
            raise FinishedKernelError(
                f"kernel {name!r} cannot be in a header: it has callbacks, which are Python functions\n"
                "  what to do: load it in Python, with numba_cuda_autolink.load"
            )
        try:
            images.append(image_of(linked, linked.launch_facts, parameters))
        except FinishedKernelError as error:
            raise FinishedKernelError(f"kernel {name!r} cannot be in a header: {error}") from error.__cause__
    if len({linked.cc for linked in kernels}) < len(kernels):
        raise FinishedKernelError("a header has one cubin for each architecture, and two are for the same")
    places = place_leaves(parameters, images[0].layout)
    if places is None or any(image.layout != images[0].layout for image in images):
        raise FinishedKernelError(f"the architectures of kernel {name!r} take their parameters at different offsets")
    return _text(name, first.signature, parameters, places, images)


def _text(
    name: str, signature: str, parameters: Sequence[Parameter], places: Sequence[Leaf], images: Sequence[Image]
) -> str:
    import jinja2  # which a process that writes no header does without

    template = resources.files(__package__).joinpath("c_header.h.jinja").read_text("utf-8")
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return environment.from_string(template, {"words": _words}).render(
        name=name,
        signature=signature.replace("*/", "* /"),
        images=images,
        best_first=sorted(images, key=lambda image: image.runs_on.preference, reverse=True),
        cooperative=images[0].cooperative,
        carveout=images[0].carveout,
        members="\n".join(_members(parameters)) or "char none; /* the kernel takes no arguments */",
        used=end_of(places),
        writes="\n".join(_writes(parameters, places)) or "(void)arguments;",
    )


def _words(code: bytes) -> str:
    """Return *code* as a list of words: cubins are aligned, and hosts of CUDA little-endian."""
    padded = code + bytes(-len(code) % 8)
    words = [f"0x{word:x}u" for (word,) in struct.iter_unpack("<Q", padded)]
    lines = (words[at : at + _WORDS_IN_LINE] for at in range(0, len(words), _WORDS_IN_LINE))
    return ",\n    ".join(map(", ".join, lines))


# Arguments


def _names(parameters: Sequence[Parameter]) -> Iterator[str]:
    return c_types.members(parameter.name for parameter in parameters)


def _members(parameters: Sequence[Parameter]) -> Iterator[str]:
    """Yield the lines that declare the members of a struct for *parameters*."""
    for name, parameter in zip(_names(parameters), parameters, strict=True):
        yield from _declaration(name, parameter)


def _declaration(name: str, parameter: Parameter) -> Iterator[str]:
    kind, dtype = parameter.kind, parameter.dtype
    if parameter.form is not None:
        members = "CUdeviceptr data;"
        if parameter.ndim:
            members += f" int64_t shape[{parameter.ndim}];"
            if parameter.layout == "A":
                members += f" int64_t strides[{parameter.ndim}];"
        in_bytes = ", strides in bytes" if parameter.layout == "A" else ""
        yield f"struct {{ {members} }} {name}; /* {parameter}{in_bytes} */"
    elif kind == "tuple":
        yield "struct {"
        yield from (f"    {line}" for line in _members(parameter.items))
        if not parameter.items:
            yield "    char none;"
        yield f"}} {name};"
    elif kind == "none":
        yield f"char {name}; /* None */"
    elif kind == "complex":
        part = "float" if dtype == "<c8" else "double"
        yield f"struct {{ {part} real, imag; }} {name}; /* {type_name(dtype)} */"
    elif kind in ("record", "pointer"):
        yield f"CUdeviceptr {name};{f' /* {type_name(dtype)} */' if dtype is not None else ''}"
    else:
        code = next(iter(parameter.codes))
        note = {"e": "the bits of a float16", "B": "0 or 1" if kind == "bool" else ""}.get(code, "")
        note = type_name(dtype) if kind == "datetime" else note
        yield f"{_C_TYPES[code]} {name};{f' /* {note} */' if note else ''}"


def _writes(parameters: Sequence[Parameter], places: Sequence[Leaf]) -> Iterator[str]:
    rest = iter(places)
    for name, parameter in zip(_names(parameters), parameters, strict=True):
        yield from _write(f"arguments->{name}", parameter, rest)


def _write(value: str, parameter: Parameter, rest: Iterator[Leaf]) -> Iterator[str]:
    if parameter.kind == "tuple":
        for name, item in zip(_names(parameter.items), parameter.items, strict=True):
            yield from _write(f"{value}.{name}", item, rest)
        return
    own = [next(rest) for _ in parameter.codes]
    if parameter.form is not None:
        yield from _write_array(value, parameter, parameter.form, own)
    elif parameter.kind == "complex":
        yield from (_copy(place, f"{value}.{part}") for place, part in zip(own, ("real", "imag"), strict=True))
    elif parameter.kind != "none":
        yield _copy(own[0], value)


def _write_array(value: str, parameter: Parameter, form: ArrayForm, own: Sequence[Leaf]) -> Iterator[str]:
    """Write an array as its front end passes it, without memory of a runtime."""
    ndim = parameter.ndim
    assert parameter.dtype is not None
    shape = [f"{value}.shape[{axis}]" for axis in range(ndim)]
    yield "{"
    size, unit = item_size(parameter.dtype), parameter.stride_unit
    if form.items is not None and form.item_size is not None:
        yield f"    const int64_t items = {' * '.join(shape) or '1'}, item_size = {size};"
        yield f"    {_copy(own[form.items], 'items')}"
        yield f"    {_copy(own[form.item_size], 'item_size')}"
    for index in form.addresses:
        yield f"    {_copy(own[index], f'{value}.data')}"
    lengths = len(form.codes)
    for place, length in zip(own[lengths:], shape, strict=False):
        yield f"    {_copy(place, length)}"
    strides = own[lengths + ndim :]
    if parameter.layout == "A":
        for axis, place in enumerate(strides):
            stride = f"{value}.strides[{axis}]"
            if unit == 1:
                yield f"    {_copy(place, stride)}"
            else:
                yield f"    const int64_t stride{axis} = {stride} / {unit};"
                yield f"    if ({shape[axis]} > 1 && {stride} % {unit}) return CUDA_ERROR_INVALID_VALUE;"
                yield f"    {_copy(place, f'stride{axis}')}"
    elif ndim:
        yield f"    int64_t stride = {size // unit};"
        order = list(range(ndim) if parameter.layout == "F" else range(ndim - 1, -1, -1))
        for inner, axis in zip([None, *order], order, strict=False):
            if inner is not None:
                yield f"    stride *= {shape[inner]};"
            yield f"    {_copy(strides[axis], 'stride')}"
    yield "}"


def _copy(place: Leaf, value: str) -> str:
    return f"memcpy(buffer + {place.offset}, &{value}, {place.size});"
