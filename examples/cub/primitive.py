# SPDX-License-Identifier: BSD-2-Clause
"""The base class of all primitives: objects for one block shape, whose methods are C functions around a CUB class."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numba.cuda import autolink

from .meeting import Meeting

_HEADERS = Path(__file__).resolve().parent / "cxx"
_LARGEST = (1024, 1024, 64)


@dataclass(frozen=True)
class Function:
    """The C function for a call: its `autolink.Extern`, its source and the code that it calls."""

    extern: autolink.Extern
    source: str
    others: tuple = field(default=())

    @property
    def code(self):
        """The code to link.

        All primitives of a kernel are in one translation unit: CUB's headers take nearly all of the compile time, and
        shared memory can be shared only within a translation unit.
        """
        name = f"{self.extern.symbol}.cu"
        return (autolink.CUDASource(self.source, name=name, include_paths=[_HEADERS], unit="cub"), *self.others)


def kernel_method(describe: Any) -> Any:
    """Make a device method of ``describe(self, *types)``, which returns the `Function` for arguments of these types.

    The result has a decorator ``python`` for the method in Python, which the simulator calls.
    """

    @functools.wraps(describe)
    def call(self, *args, **kwargs):
        return describe(self, *args, **kwargs).extern

    @functools.wraps(describe)
    def link(self, *types):
        return describe(self, *types).code

    return autolink.device_method(call).link(link)


class Primitive(autolink.DeviceCallable):
    """A primitive for blocks of shape `block`: an int or a tuple of up to three.

    Attributes
    ----------
    block_dim : tuple of int
        The three dimensions of the block.
    threads : int
        The number of threads in a block.
    """

    __numba_cuda_link_types__ = "numba-cuda"  # the checks of arguments compare types
    header: str

    def __init__(self, block):
        self.block_dim = _block_dim(block)
        self.threads = self.block_dim[0] * self.block_dim[1] * self.block_dim[2]

    def __repr__(self):
        shape = [n for n in self.block_dim if n > 1] or [1]
        shown = {"block": shape[0] if self.block_dim[0] == self.threads else self.block_dim}
        shown.update(self._settings())
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def _settings(self):
        derived = ("block_dim", "threads", "tile")
        return [(name, value) for name, value in vars(self).items() if name not in derived and name[0] != "_"]

    def meet(self, value):
        """Return this thread's rank among those that take part, and the value of each of them, in the simulator."""
        meeting = self.__dict__.get("_meeting")
        if meeting is None:
            # All threads get the one that is stored first.
            meeting = self.__dict__.setdefault("_meeting", Meeting(self.block_dim, vars(self).get("threads_in_warp")))
        return meeting(value)

    def function(self, name, cub_class, parameters, body, *, returns=None, args=(), storage=None, op=None, tags=()):
        """Return a C function whose symbol consists of the class, its settings, *name* and *tags*.

        In *body*, ``Primitive`` is *cub_class* and ``thread`` is the ID of the thread. *storage* is the shared memory
        that it uses: ``"block"``, the number of threads of a logical warp, or None. *op* is its operator, if any.
        """
        settings = [self.block_dim, *(value for _, value in self._settings())]
        words = [_camel_to_snake(type(self).__name__), name, *tags, *map(_word, settings)]
        symbol = "cub_" + "_".join(str(word) for word in words if str(word))
        needs = {
            None: "0, 0, 1",
            "block": f"autolink_cub::block_need<{symbol}_class::TempStorage>::bytes, 0, 1",
        }.get(
            storage,
            f"0, autolink_cub::thread_need<{symbol}_class::TempStorage, {storage}>::bytes, {-(-self.threads // 32)}",
        )
        x, y, z = self.block_dim
        return_type = autolink.cxx_type(returns)
        if op:
            parameters, args = [*parameters, *op.parameters], {**args, **dict(op.args)}
        source = f"""\
#include <{self.header}>
#include "cub_items.cuh"
#include "cub_operators.cuh"
#include "cub_storage.cuh"

{op.declaration if op else ""}
using {symbol}_class = {cub_class};
{reservation(symbol, needs)}

extern "C" __device__ {return_type} {symbol}({", ".join(parameters)}) {{
    using namespace autolink_cub;
    using Primitive = {symbol}_class;
    using Storage = Primitive::TempStorage;
    [[maybe_unused]] const int thread = cub::RowMajorTid({x}, {y}, {z});
{_indent(body)}
}}
"""
        return Function(autolink.Extern(symbol, returns=returns, args=args), source, op.code if op else ())


def reservation(symbol, needs):
    """Return C++ that reserves shared memory for a function: bytes per block, per thread of a warp, warps per block."""
    return f"""\
enum {{ {symbol}_slot = AUTOLINK_CUB_LAST + 1 }};
static_assert({symbol}_slot < autolink_cub::slots, "a kernel can have 1023 different calls of CUB primitives");
template <> struct autolink_cub::reserved<{symbol}_slot>
    : autolink_cub::reserved_too<autolink_cub::reserved<{symbol}_slot - 1>, {needs}> {{}};
#undef AUTOLINK_CUB_LAST
#define AUTOLINK_CUB_LAST {symbol}_slot"""


def items_per_thread(given):
    """Return *given* as an int if it is a valid number of items. Raises `ValueError` otherwise."""
    try:
        count = operator.index(given)
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(f"items_per_thread: got {given!r}, expected an integer from 1")
    return count


def one_of(name, given, choices):
    """Return *given* if it is one of *choices*. Raises `ValueError` otherwise."""
    if given not in choices:
        raise ValueError(f"{name}: got {given!r}, expected {' or '.join(map(repr, choices))}")
    return given


def flag(name, given):
    """Return *given* if it is a bool. Raises `ValueError` otherwise."""
    if not isinstance(given, bool):
        raise ValueError(f"{name}: got {given!r}, expected True or False")
    return given


def threads_in_warp(given, threads):
    """Return *given* if a block of *threads* consists of logical warps of that size. Raises `ValueError` otherwise."""
    one_of("threads_in_warp", given, (2, 4, 8, 16, 32))
    if threads % given:
        raise ValueError(f"block: got {threads} threads, expected a multiple of threads_in_warp, {given}")
    return int(given)


def _block_dim(block):
    shape = block if isinstance(block, tuple) else (block,)
    try:
        numbers = [operator.index(number) for number in shape]
    except TypeError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise ValueError(f"block: got {block!r}, expected a number of threads, or a tuple of up to three")
    x, y, z = block_dim = (*numbers, 1, 1)[:3]
    if x * y * z > 1024 or z > _LARGEST[2]:
        raise ValueError(f"block: got {block!r}, expected at most 1024 threads, and 64 in the third dimension")
    return block_dim


def _camel_to_snake(name):
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _word(value):
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return int(value) if isinstance(value, bool) else value


def _indent(body):
    return "\n".join(f"    {line.strip()}" for line in body.strip().splitlines())
