# SPDX-License-Identifier: BSD-2-Clause
"""Files of finished kernels: plain data, an index first, then descriptions and code that are read when they are used.

A file is a header (magic, version, sizes and SHA-256 of the index and the table), the index, the table, and blocks. The
index and the description of a kernel are JSON. The table holds offset, size and SHA-256 of each block: nothing is read
unchecked, and a file of a thousand kernels opens in milliseconds.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import re
import struct
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import KernelFileError
from ..files import open_regular, replace_whole
from ..launch.arrays import shown
from ..types.parameters import Parameter, field, from_json, place_leaves, to_json
from ..types.variable_types import VariableType, variable_from_json, variable_to_json
from .architecture import CodeFor

_MAGIC = b"\x93CUDA-KERNELS\r\n\x1a"
_VERSION = 1  # raised when a reader of the previous version would misread
_HEADER = struct.Struct("<16sIIQ32s")  # magic, version, number of blocks, size of the index, SHA-256
_PLACE = struct.Struct("<QQ32s")
# In bytes. Anything larger is not a kernel, and is neither written nor read.
_LARGEST_INDEX = 64 << 20
_LARGEST_CODE = 512 << 20
_LARGEST_DESCRIPTION = 64 << 20  # and report
_LARGEST_TEXT = 1 << 20
_ENTRY = re.compile(r"[A-Za-z_$.][A-Za-z0-9_$.]{0,65535}")


class Block(NamedTuple):
    """Bytes of a file: where they are, and their SHA-256."""

    offset: int
    size: int
    sha256: bytes


class Image(NamedTuple):
    """The code of one kernel and signature for one architecture.

    ``code``, ``report`` and the values of ``variables`` (``None`` for zeros) are bytes before they are written, and
    blocks of the file after. ``layout`` is offset and size of each parameter, as the code has them. Sizes are in bytes;
    ``None`` is what the code does not tell.
    """

    runs_on: CodeFor
    entry: str
    code: Any
    layout: tuple[tuple[int, int], ...]
    shared: int | None = None
    registers: int | None = None
    launch_bounds: int | None = None
    cooperative: bool = False
    carveout: int | None = None
    setup: tuple[str, ...] = ()
    teardown: tuple[str, ...] = ()
    report: Any = b""
    variables: tuple[tuple[VariableType, Any], ...] = ()


class Signature(NamedTuple):
    """One signature of a kernel and the code for it. ``text`` names Numba's types."""

    text: str
    parameters: tuple[Parameter, ...]
    images: tuple[Image, ...]


# Writing


def write(
    path: str | bytes | os.PathLike[Any], kernels: Mapping[str, Sequence[Signature]], made_by: Mapping[str, str]
) -> None:
    """Write *kernels* to *path*, which is either the old file or the complete new one. *made_by* names versions."""
    shown = os.fsdecode(path)
    blocks: list[bytes] = []
    known: dict[bytes, int] = {}

    def block(content: bytes, most: int = _LARGEST_DESCRIPTION) -> int:
        if len(content) > most:
            raise KernelFileError(f"{shown} cannot be written: a block of {len(content)} bytes is larger than {most}")
        digest = hashlib.sha256(content).digest()
        if digest not in known:
            known[digest] = len(blocks)
            blocks.append(content)
        return known[digest]

    described = {name: block(_json([_signature_to_json(each, block) for each in kernels[name]])) for name in kernels}
    index = _json({"made_by": dict(made_by), "kernels": described})
    table, at = bytearray(), 0
    for digest, content in zip(known, blocks, strict=True):
        table += _PLACE.pack(at, len(content), digest)
        at += len(content)
    if len(index) + len(table) > _LARGEST_INDEX:
        raise KernelFileError(
            f"{shown} cannot be written: its index is larger than {_LARGEST_INDEX} bytes"
            "\n  what to do: write the kernels to several files"
        )
    digest = hashlib.sha256(index + table).digest()
    header = _HEADER.pack(_MAGIC, _VERSION, len(blocks), len(index), digest)
    if not shown:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown)
    target = os.path.realpath(shown)
    if os.path.lexists(target) and not os.path.isfile(target):
        raise KernelFileError(f"{shown} is not a file\n  what to do: write the kernels to another path")
    with replace_whole(shown) as file:
        file.writelines([header, index, bytes(table), *blocks])


def _signature_to_json(signature: Signature, block: Any) -> dict[str, Any]:
    images = []
    for image in signature.images:
        data = image._asdict()
        data |= {
            "code": block(image.code, _LARGEST_CODE),
            "report": block(image.report),
            "layout": list(map(list, image.layout)),
        }
        data |= {"runs_on": list(image.runs_on), "setup": list(image.setup), "teardown": list(image.teardown)}
        data["variables"] = [
            {**variable_to_json(variable), "value": None if value is None else block(value)}
            for variable, value in image.variables
        ]
        images.append(data)
    parameters = list(map(to_json, signature.parameters))
    return {"text": signature.text, "parameters": parameters, "images": images}


def _json(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


# Reading


class KernelFile:
    """An open file of finished kernels. Kernels are described, and their code is read, when they are asked for.

    Raises `KernelFileError` if *path* is not a file of finished kernels, is damaged or truncated, or was written by a
    later version; `OSError` if it cannot be opened, or is not a regular file.
    """

    def __init__(self, path: str | bytes | os.PathLike[Any]):
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise TypeError(f"load() takes the path of a file of finished kernels, got {shown(path)}")
        self.path = os.fsdecode(path)
        self._lock = threading.Lock()
        self._file = open(self.path, "rb", opener=open_regular)  # noqa: SIM115
        try:
            self._size = os.fstat(self._file.fileno()).st_size
            self._read_index()
        except BaseException:
            self._file.close()
            raise

    def _read_index(self) -> None:
        header = self._file.read(_HEADER.size)
        if not header.startswith(_MAGIC[: max(len(header), 1)]):
            raise KernelFileError(f"{self.path} is not a file of finished kernels\n  it begins with: {header[:4]!r}")
        if len(header) < _HEADER.size:
            raise self.damaged(f"it has {len(header)} bytes, fewer than its header")
        _, version, count, size, digest = _HEADER.unpack(header)
        if version != _VERSION:
            raise KernelFileError(
                f"{self.path} has version {version} of the format; this installation reads version {_VERSION}"
                "\n  what to do: update numba-cuda-autolink, or save the kernels with this version"
            )
        size_of_all = size + count * _PLACE.size
        if size_of_all > min(_LARGEST_INDEX, self._size - _HEADER.size):
            raise self.damaged(f"its index takes {size_of_all} bytes of {self._size}")
        content = self._file.read(size_of_all)
        if hashlib.sha256(content).digest() != digest:
            raise self.damaged("its index has another checksum")
        text, self._table = content[:size], content[size:]
        self._start = _HEADER.size + size_of_all
        index = self._parse(text)
        try:
            self._kernels: dict[str, Any] = field(index, "kernels", dict)
            self.made_by: dict[str, str] = field(index, "made_by", dict)
            for name in self.made_by:
                field(self.made_by, name, str)
        except KernelFileError as error:
            raise self.damaged(str(error)) from None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its kernels, in the order in which they were saved."""
        return tuple(self._kernels)

    def signatures(self, name: str) -> tuple[Signature, ...]:
        """Return the signatures of the kernel *name*. Raise `KernelFileError` if their description is damaged."""
        try:
            data = self.json_of(self._block(self._kernels[name]))
            if not isinstance(data, list) or not data:
                raise KernelFileError("it has no signatures")
            return tuple(map(self._signature, data))
        except KernelFileError as error:
            if str(error).startswith(self.path):
                raise
            raise self.damaged(f"in the description of {name!r}, {error}") from None

    def read(self, block: Block) -> bytes:
        """Return the bytes of *block*. Raise `KernelFileError` if they are not those that were written."""
        with self._lock:
            if self._file.closed:
                raise KernelFileError(f"{self.path} was closed\n  what to do: load it again")
            self._file.seek(self._start + block.offset)
            content = self._file.read(block.size)
        if hashlib.sha256(content).digest() != block.sha256:
            raise self.damaged(f"the {block.size} bytes at {self._start + block.offset} have another checksum")
        return content

    def json_of(self, block: Block) -> Any:
        """Return what the JSON of *block* says. Raise `KernelFileError` if it is not JSON."""
        return self._parse(self.read(block))

    def close(self) -> None:
        self._file.close()

    def damaged(self, what: str) -> KernelFileError:
        return KernelFileError(f"{self.path} is damaged: {what}\n  what to do: copy or save it again")

    def _parse(self, text: bytes) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.damaged(f"it is not JSON where it must be ({type(error).__name__})") from None

    def _block(self, number: Any, most: int = _LARGEST_DESCRIPTION) -> Block:
        if not isinstance(number, int) or not 0 <= number < len(self._table) // _PLACE.size:
            raise KernelFileError(f"there is no block {number!r:.40}")
        block = Block(*_PLACE.unpack_from(self._table, number * _PLACE.size))
        if block.size > most:
            raise KernelFileError(f"block {number} has {block.size} bytes, more than {most}")
        end = self._start + block.offset + block.size
        if end > self._size:
            raise KernelFileError(f"block {number} ends at byte {end} of {self._size}")
        return block

    def _signature(self, data: Any) -> Signature:
        parameters = tuple(map(from_json, field(data, "parameters", list)))
        images = tuple(self._image(image, parameters) for image in field(data, "images", list))
        if not images:
            raise KernelFileError("a signature has no code")
        return Signature(field(data, "text", str), parameters, images)

    def _image(self, data: Any, parameters: tuple[Parameter, ...]) -> Image:
        pairs = field(data, "layout", list)
        if any(not isinstance(pair, list) or [type(number) for number in pair] != [int, int] for pair in pairs):
            raise KernelFileError("the layout of the parameters is not one")
        layout = tuple((offset, size) for offset, size in pairs)
        in_order = all(a + size <= b for (a, size), (b, _) in itertools.pairwise([(0, 0), *layout]))
        largest = max((offset + size for offset, size in layout), default=0)
        if place_leaves(parameters, layout) is None or not in_order or largest > 1 << 16:
            raise KernelFileError("the layout of the parameters does not fit them")
        runs_on = field(data, "runs_on", list)
        known = [type(part) for part in runs_on] == [int, int, str, str] and runs_on[3] in ("cubin", "ptx")
        if not known or runs_on[2] not in ("", "a", "f"):
            raise KernelFileError(f"the architecture is {runs_on!r:.60}")
        entry = field(data, "entry", str)
        if not _ENTRY.fullmatch(entry):
            raise KernelFileError(f"the entry name is {entry!r:.60}")
        sizes_of = ("shared", "registers", "launch_bounds", "carveout")
        numbers: dict[str, Any] = {name: field(data, name, (int, type(None))) for name in sizes_of}
        callbacks: dict[str, Any] = {name: tuple(field(data, name, list)) for name in ("setup", "teardown")}
        if not all(isinstance(text, str) and len(text) < _LARGEST_TEXT for text in sum(callbacks.values(), ())):
            raise KernelFileError("a callback is not a name")
        return Image(
            CodeFor(*runs_on),
            entry,
            self._block(data.get("code"), _LARGEST_CODE),
            layout,
            **numbers,
            cooperative=field(data, "cooperative", bool),
            **callbacks,
            report=self._block(data.get("report")),
            variables=tuple(map(self._variable, field(data, "variables", list))),
        )

    def _variable(self, data: Any) -> tuple[VariableType, Block | None]:
        described = variable_from_json(data)
        value = None if data.get("value") is None else self._block(data["value"])
        if value is not None and value.size != described.nbytes:
            raise KernelFileError(f"the value of {described.name!r} has {value.size} bytes, not {described.nbytes}")
        return described, value
