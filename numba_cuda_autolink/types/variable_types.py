# SPDX-License-Identifier: BSD-2-Clause
"""What variables of device code are, as plain data: name, element type, shape, and the memory that they are in."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .parameters import ElementType, RecordType, element_from_json, element_to_json, item_size, type_name

SPACES = ("constant", "device", "managed")
MOST_CONSTANT = 64 << 10  # bytes of constant memory that a module may have


class VariableType(NamedTuple):
    """What a variable is: its name in C++, its element type, its shape, and the memory that it is in."""

    name: str
    element: ElementType
    shape: tuple[int, ...]
    space: str

    @property
    def nbytes(self) -> int:
        return item_size(self.element) * math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        """Its element type as a NumPy dtype."""
        return _dtype(self.element)

    def __str__(self) -> str:
        sizes = "".join(f"[{length}]" for length in self.shape)
        return f"{type_name(self.element)}{sizes} in {self.space} memory"


def variable_to_json(type: VariableType) -> dict[str, Any]:
    """Return *type* as plain data."""
    return {**type._asdict(), "element": element_to_json(type.element)}


def variable_from_json(data: dict[str, Any]) -> VariableType:
    """Return the type of which `variable_to_json` made *data*."""
    return VariableType(data["name"], element_from_json(data["element"]), tuple(data["shape"]), data["space"])


def _dtype(element: ElementType) -> Any:
    import numpy as np

    if not isinstance(element, RecordType):
        return np.dtype(element)
    names = [name for name, *_ in element.fields]
    formats = [np.dtype((_dtype(kind), shape)) if shape else _dtype(kind) for _, _, kind, shape in element.fields]
    offsets = [offset for _, offset, *_ in element.fields]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": element.itemsize})
