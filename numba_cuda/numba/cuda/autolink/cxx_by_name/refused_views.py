# SPDX-License-Identifier: BSD-2-Clause
"""Why C++ does not take an array as the view that it declares, an `mdspan` or a `span`, and what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.compile.nvrtc_log import Diagnostic

from .remedies import NUMPY_TYPES

_VIEW = re.compile(r'to (?:"[^"]*" \(aka )?"(?P<whole>cuda::std::(?P<kind>mdspan|span)<(?P<arguments>[^"]*)>)"')
_COMMA = re.compile(r",\s*(?![^<]*>)")
_ARGUMENT = re.compile(r"nca_a(?P<number>\d+)")
_ARRAY = re.compile(r"array\((?P<dtype>[\w ]+), (?P<ndim>\d)d, (?P<layout>[ACF])\)")
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
    view, marked = _VIEW.search(text), _ARGUMENT.search(error.marked)
    if view is None or marked is None:
        return None
    called, _, arguments = label.partition("(")
    number = int(marked["number"]) + 1
    given = re.split(r", (?![^(]*\))", arguments.removesuffix(")"))[number - 1 : number]
    if not (array := _ARRAY.search("".join(given))):
        return None
    parts = [each.replace("cuda::std::", "") for each in _COMMA.split(view["arguments"])]
    extents = _EXTENTS.search(view["arguments"]) if view["kind"] == "mdspan" else None
    layout = next((each for each in parts if each.startswith("layout_")), "layout_right")
    takes = f"C++ takes: {_shorten(view, extents, layout)}"
    what, element = f"argument {number} is", parts[0].removeprefix("const ")
    dtype = NUMPY_TYPES.get(element)
    kind = view["kind"]
    if dtype and dtype.removeprefix("np.").rstrip("_") != array["dtype"]:
        return RefusedView(
            f"{what} an array of {array['dtype']}, and C++ takes one of {element}", takes, f"pass an array of {dtype}"
        )
    if extents is None and kind == "span":
        if array["layout"] == "A":
            return RefusedView(f"{what} strided, and C++ takes a contiguous span", takes, _CONTIGUOUS)
        size = re.sub(r"\D", "", parts[-1])
        whole = f"cuda::std::span<{parts[0]}, {size}>(x, {size})"
        cast = f"let a lambda make it of the pointer: lib.expr('[](auto* x) {{ return {called}({whole}); }}')"
        return RefusedView(f"C++ takes a span of {size} elements, and an array has any number", takes, cast)
    if extents is None:
        return None
    sizes = extents["sizes"].split(", ") if extents["sizes"] else []
    ndim, order = len(sizes), _ORDERS.get(layout, "A")
    if ndim != int(array["ndim"]):
        diagnosis = f"{what} a {array['ndim']}d array, and C++ takes a {ndim}d mdspan"
        return RefusedView(diagnosis, takes, f"pass a {ndim}d array")
    if order != "A" and order != array["layout"] and (ndim > 1 or array["layout"] == "A"):
        given_order = "strided" if array["layout"] == "A" else f"in {array['layout']} order"
        strided = f"cuda::std::mdspan<{parts[0]}, cuda::std::dextents<long long, {ndim}>, cuda::std::layout_stride>"
        todo = f"declare the parameter as {strided}, which takes arrays of any layout"
        written = ("::1, :" if order == "F" else ":, ::1") if ndim == 2 else "::1" if ndim == 1 else ""
        written = f" (in signatures: {array['dtype']}[{written}])" if written else ""
        takes_arrays = extents["index"] in _INDICES and all(each == _DYNAMIC for each in sizes)
        contiguous = f"pass a contiguous array in {order} order{written};\n    or " if takes_arrays else ""
        return RefusedView(
            f"{what} {given_order}, and C++ takes a contiguous mdspan in {order} order", takes, contiguous + todo
        )
    dextents = f"cuda::std::dextents<long long, {ndim}>"
    fixed = any(each != _DYNAMIC for each in sizes)
    if not fixed and extents["index"] in _INDICES:
        return None
    declared = f"cuda::std::mdspan<{parts[0]}, {dextents}{_written_layout(layout)}>"
    sizes_of_view = " x ".join(re.sub(r"UL$", "", each) if each != _DYNAMIC else "n" for each in sizes)
    diagnosis = (
        f"C++ takes an mdspan of the fixed size {sizes_of_view}, and the sizes of arrays vary"
        if fixed
        else f"C++ takes an mdspan with {extents['index']} extents, and those of arrays are long long"
    )
    return RefusedView(
        diagnosis,
        takes,
        f"declare the parameter with {dextents};\n"
        f"    or convert it to that type T: lib.expr('[]({declared} a) {{ return {called}(T(a)); }}')",
    )


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
