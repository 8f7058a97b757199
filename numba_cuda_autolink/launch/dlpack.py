# SPDX-License-Identifier: BSD-2-Clause
"""DLPack capsules: the structure ``DLTensor`` of the DLPack standard, as ctypes reads it."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple


class Tensor(NamedTuple):
    """A tensor of a capsule. Strides count elements; ``None`` for C-contiguous ones."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    code: int
    bits: int
    lanes: int


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def read_capsule(capsule: Any) -> Tensor:
    """Return the tensor of an unversioned *capsule*, which its producer frees when the capsule goes."""
    tensor = _DLTensor.from_address(_pointer(capsule, b"dltensor"))
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    address = (tensor.data or 0) + tensor.byte_offset
    return Tensor(address, tuple(tensor.shape[: tensor.ndim]), strides, tensor.code, tensor.bits, tensor.lanes)
