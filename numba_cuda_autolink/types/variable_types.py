# SPDX-License-Identifier: BSD-2-Clause
"""What variables of device code are, as plain data: name, element type, shape, and the memory that they are in."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..errors import KernelFileError
from .parameters import ElementType, RecordType, element_from_json, element_to_json, field, item_size, type_name

SPACES = ("constant", "device", "managed")
MOST_CONSTANT = 64 << 10  # bytes of constant memory that a module may have
_LARGEST = 1 << 40
_MOST_DIMENSIONS = 32


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
    return {**type._asdict(), "element": element_to_json(type.element), "shape": list(type.shape)}


def variable_from_json(data: Any) -> VariableType:
    """Return the type that *data* describes. Raise `KernelFileError` if it describes none."""
    shape = field(data, "shape", list)
    if not all(isinstance(length, int) and 0 < length < _LARGEST for length in shape) or len(shape) > _MOST_DIMENSIONS:
        raise KernelFileError(f"the shape of a variable is {shape!r:.60}")
    space = field(data, "space", str)
    if space not in SPACES:
        raise KernelFileError(f"the memory of a variable is {space!r:.60}")
    found = VariableType(field(data, "name", str), element_from_json(data.get("element")), tuple(shape), space)
    try:
        if isinstance(found.element, str) and found.element[1] not in "biufc":
            raise ValueError
        if found.dtype.itemsize * math.prod(shape) != found.nbytes or found.nbytes > _LARGEST:
            raise ValueError
    except (TypeError, ValueError):
        raise KernelFileError(f"there is no variable of type {data.get('element')!r:.60}") from None
    return found


def _dtype(element: ElementType) -> Any:
    import numpy as np

    if not isinstance(element, RecordType):
        return np.dtype(element)
    names = [name for name, *_ in element.fields]
    formats = [np.dtype((_dtype(kind), shape)) if shape else _dtype(kind) for _, _, kind, shape in element.fields]
    offsets = [offset for _, offset, *_ in element.fields]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": element.itemsize})
