# SPDX-License-Identifier: BSD-2-Clause
"""Why C++ does not take an array as the view that it declares, an `mdspan` or a `span`, and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.compile.nvrtc_log import Diagnostic

from .argument_kinds import Array, find_array, list_arguments, split_label
from .remedies import NUMPY_TYPES, number_of_argument

_VIEW = re.compile(r'to (?:"[^"]*" \(aka )?"(?P<whole>cuda::std::(?P<kind>mdspan|span)<(?P<arguments>[^"]*)>)"')
_COMMA = re.compile(r",\s*(?![^<]*>)")
_EXTENTS = re.compile(r"cuda::std::extents<(?P<index>[\w ]+?)(?:, (?P<sizes>[^<>]*))?>")
_DYNAMIC = "dynamic_extent"
_ORDERS = {"layout_right": "C", "layout_left": "F"}
_INDICES = ("long long", "long", "unsigned long", "unsigned long long")  # that the extents of arrays convert to


@dataclass(frozen=True)
class RefusedView:
    """Why a view is not made of an argument: the *diagnosis*, what C++ *takes*, in short, and the *remedy*."""

    diagnosis: str
    takes: str
    remedy: str


def explain_view(error: Diagnostic, text: str, label: str) -> RefusedView | None:
    """Return why the view that *text* names, of an *error* in the call that messages call *label*, is not made of the
    argument; ``None`` for any other error."""
    view, number = _VIEW.search(text), number_of_argument(error)
    if view is None or not number:
        return None
    called, arguments = split_label(label)
    given = list_arguments(arguments)[number - 1 : number]
    if (array := find_array("".join(given))) is None:
        return None
    parts = [each.replace("cuda::std::", "") for each in _COMMA.split(view["arguments"])]
    extents = _EXTENTS.search(view["arguments"]) if view["kind"] == "mdspan" else None
    layout = next((each for each in parts if each.startswith("layout_")), "layout_right")
    takes = f"C++ takes: {_shorten(view, extents, layout)}"
    element, what = parts[0], f"argument {number} is"
    dtype = NUMPY_TYPES.get(number_type := element.removeprefix("const "))
    explained: tuple[str, str] | None = None
    if dtype and dtype.removeprefix("np.").rstrip("_") != array.element:
        diagnosis = f"{what} an array of {array.element}, and C++ takes one of {number_type}"
        explained = diagnosis, f"pass an array of {dtype}"
    elif view["kind"] == "span":
        explained = _explain_span(parts, array, what, called)
    elif extents is not None:
        explained = _explain_order(element, extents, layout, array, what) or _explain_extents(
            element, extents, layout, called
        )
    return None if explained is None else RefusedView(explained[0], takes, explained[1])


def _explain_span(parts: Sequence[str], array: Array, what: str, called: str) -> tuple[str, str]:
    """Return why a span is not made of an *array*, and what to do."""
    if array.is_strided:
        return f"{what} strided, and C++ takes a contiguous span", _CONTIGUOUS
    size = re.sub(r"\D", "", parts[-1])
    whole = f"cuda::std::span<{parts[0]}, {size}>(x, {size})"
    cast = f"let a lambda make it of the pointer: lib.expr('[](auto* x) {{ return {called}({whole}); }}')"
    return f"C++ takes a span of {size} elements, and an array has any number", cast


def _explain_order(
    element: str, extents: re.Match[str], layout: str, array: Array, what: str
) -> tuple[str, str] | None:
    """Return that an *array* has another number of dimensions than an mdspan, or another order of its elements, and
    what to do; ``None`` if it has neither."""
    sizes = _sizes_of(extents)
    ndim, order = len(sizes), _ORDERS.get(layout, "A")
    if ndim != array.ndim:
        return f"{what} a {array.ndim}d array, and C++ takes a {ndim}d mdspan", f"pass a {ndim}d array"
    if order in ("A", array.layout) or (ndim < 2 and not array.is_strided):
        return None
    given_order = "strided" if array.is_strided else f"in {array.layout} order"
    strided = f"cuda::std::mdspan<{element}, cuda::std::dextents<long long, {ndim}>, cuda::std::layout_stride>"
    todo = f"declare the parameter as {strided}, which takes arrays of any layout"
    if _takes_any_size(extents):
        written = ("::1, :" if order == "F" else ":, ::1") if ndim == 2 else "::1" if ndim == 1 else ""
        written = f" (in signatures: {array.element}[{written}])" if written else ""
        todo = f"pass a contiguous array in {order} order{written};\n    or {todo}"
    return f"{what} {given_order}, and C++ takes a contiguous mdspan in {order} order", todo


def _explain_extents(element: str, extents: re.Match[str], layout: str, called: str) -> tuple[str, str] | None:
    """Return that those of an array are not the *extents* of an mdspan, and what to do; ``None`` if they are."""
    if _takes_any_size(extents):
        return None
    sizes = _sizes_of(extents)
    dextents = f"cuda::std::dextents<long long, {len(sizes)}>"
    declared = f"cuda::std::mdspan<{element}, {dextents}{_written_layout(layout)}>"
    if any(each != _DYNAMIC for each in sizes):
        whole = " x ".join(each.removesuffix("UL") if each != _DYNAMIC else "n" for each in sizes)
        diagnosis = f"C++ takes an mdspan of the fixed size {whole}, and the sizes of arrays vary"
    else:
        diagnosis = f"C++ takes an mdspan with {extents['index']} extents, and those of arrays are long long"
    return diagnosis, (
        f"declare the parameter with {dextents};\n"
        f"    or convert it to that type T: lib.expr('[]({declared} a) {{ return {called}(T(a)); }}')"
    )


def _sizes_of(extents: re.Match[str]) -> list[str]:
    return extents["sizes"].split(", ") if extents["sizes"] else []


def _takes_any_size(extents: re.Match[str]) -> bool:
    return extents["index"] in _INDICES and all(each == _DYNAMIC for each in _sizes_of(extents))


_CONTIGUOUS = "pass a contiguous array; or let C++ take an mdspan with cuda::std::layout_stride"


def _written_layout(layout: str) -> str:
    return "" if layout == "layout_right" else f", cuda::std::{layout}"


def _shorten(view: re.Match[str], extents: re.Match[str] | None, layout: str) -> str:
    """Return the type of a view without what is so by default."""
    element = _COMMA.split(view["arguments"])[0]
    if extents is None:
        size = re.search(r", (\d+)UL$", view["arguments"])
        return f"cuda::std::span<{element}{f', {size[1]}' if size else ''}>"
    sizes = re.sub(r"(\d)UL\b", r"\1", extents["sizes"] or "")
    names = sizes.split(", ")
    dynamic = f"dextents<{extents['index']}, {len(names)}>" if set(names) == {_DYNAMIC} else ""
    shown = dynamic or f"extents<{extents['index']}, {sizes}>"
    return f"cuda::std::mdspan<{element}, {shown}{', ' + layout if layout != 'layout_right' else ''}>"
