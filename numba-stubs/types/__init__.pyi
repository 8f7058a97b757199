# SPDX-License-Identifier: BSD-2-Clause
# The types of numbers, arrays of them and signatures have types here. All other names exist, of unknown types.
from typing import Any as _Any
from typing import overload as _overload

class Type:
    name: str
    def __init__(self, name: str) -> None: ...
    # An array of the type, float32[:, ::1].
    def __getitem__(self, layout: slice | tuple[slice, ...]) -> Type: ...
    # A signature, or a number of the type.
    @_overload
    def __call__(self, *argtypes: Type) -> _Signature: ...
    @_overload
    def __call__(self, value: _Any, /) -> _Any: ...
    def __getattr__(self, name: str) -> _Any: ...

class _Signature:
    args: tuple[_Any, ...]
    return_type: _Any

void: Type
none: Type
boolean: Type
bool_: Type
int8: Type
int16: Type
int32: Type
int64: Type
intp: Type
intc: Type
uint8: Type
uint16: Type
uint32: Type
uint64: Type
uintp: Type
uintc: Type
float16: Type
float32: Type
float64: Type
complex64: Type
complex128: Type

def __getattr__(name: str) -> _Any: ...
