# SPDX-License-Identifier: BSD-2-Clause
"""Files of finished kernels: plain data, an index first, then descriptions and code that are read when they are used.

A file is a header (magic, version, sizes and SHA-256 of the index and the table), the index, the table, and blocks. The
index and the description of a kernel are JSON. The table holds offset, size and SHA-256 of each block: what is read is
what was written, and a file of a thousand kernels opens in milliseconds.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import struct
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import KernelFileError
from ..files import missing_file, open_regular, replace_whole
from ..launch.arrays import shown
from ..plain_types import Parameter, VariableType, from_json, to_json, variable_from_json, variable_to_json

_MAGIC = b"\x93CUDA-KERNELS\r\n\x1a"
_VERSION = 1  # raised when a reader of the previous version would misread
_HEADER = struct.Struct("<16sIIQ32s")  # magic, version, number of blocks, size of the index, SHA-256
_PLACE = struct.Struct("<QQ32s")
_LARGEST_INDEX = 64 << 20  # bytes; a larger one is neither written nor read


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

    def block(content: bytes) -> int:
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
        data = {**image._asdict(), "code": block(image.code), "report": block(image.report)}
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
        try:
            self._file = open(self.path, "rb", opener=open_regular)  # noqa: SIM115
        except FileNotFoundError:
            raise missing_file("load()", self.path) from None
        try:
            self._size = os.fstat(self._file.fileno()).st_size
            self._read_index()
        except BaseException:
            self._file.close()
            raise

    def _read_index(self) -> None:
        header = self._file.read(_HEADER.size)
        if not header.startswith(_MAGIC[: max(len(header), 1)]):
            found = "a cubin or object" if header.startswith(b"\x7fELF") else f"it begins with {header[:4]!r}"
            raise KernelFileError(
                f"{self.path} is not a file of finished kernels: {found}"
                "\n  what to do: load what autolink.build(kernel, signature).save('NAME.kernels') writes"
            )
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
        index = json.loads(text)
        self._kernels: dict[str, int] = index["kernels"]
        self.made_by: dict[str, str] = index["made_by"]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its kernels, in the order in which they were saved."""
        return tuple(self._kernels)

    def signatures(self, name: str) -> tuple[Signature, ...]:
        """Return the signatures of the kernel *name*. Raise `KernelFileError` if their description is damaged."""
        return tuple(map(self._signature, self.json_of(self._block(self._kernels[name]))))

    def read(self, block: Block) -> bytes:
        """Return the bytes of *block*. Raise `KernelFileError` if they are not those that were written."""
        with self._lock:
            if self._file.closed:
                raise KernelFileError(f"{self.path} was closed\n  what to do: load it again")
            self._file.seek(self._start + block.offset)
            content = self._file.read(block.size)
        if hashlib.sha256(content).digest() != block.sha256:
            raise self.damaged("a part of it has another checksum")
        return content

    def json_of(self, block: Block) -> Any:
        """Return what the JSON of *block* says. Raise `KernelFileError` if it is not what was written."""
        return json.loads(self.read(block))

    def close(self) -> None:
        self._file.close()

    def damaged(self, what: str) -> KernelFileError:
        return KernelFileError(f"{self.path} is damaged: {what}\n  what to do: copy or save it again")

    def _block(self, number: int) -> Block:
        return Block(*_PLACE.unpack_from(self._table, number * _PLACE.size))

    def _signature(self, data: dict[str, Any]) -> Signature:
        return Signature(
            data["text"], tuple(map(from_json, data["parameters"])), tuple(map(self._image, data["images"]))
        )

    def _image(self, data: dict[str, Any]) -> Image:
        facts = {name: data[name] for name in Image._fields}
        facts |= {
            "runs_on": CodeFor(*data["runs_on"]),
            "code": self._block(data["code"]),
            "layout": tuple(map(tuple, data["layout"])),
            "setup": tuple(data["setup"]),
            "teardown": tuple(data["teardown"]),
            "report": self._block(data["report"]),
            "variables": tuple(map(self._variable, data["variables"])),
        }
        return Image(**facts)

    def _variable(self, data: dict[str, Any]) -> tuple[VariableType, Block | None]:
        return variable_from_json(data), None if data["value"] is None else self._block(data["value"])


class CodeFor(NamedTuple):
    """What code was built for: a compute capability, its suffix (``a``, ``f`` or none), and ``cubin`` or ``ptx``."""

    major: int
    minor: int
    suffix: str
    kind: str

    def __str__(self) -> str:
        return f"{'compute' if self.kind == 'ptx' else 'sm'}_{self.major}{self.minor}{self.suffix}"

    def runs_on(self, device: tuple[int, int]) -> bool:
        """Return whether it runs on a GPU of compute capability *device*.

        Cubins run on later minor versions of their major version, PTX on all later ones; what is architecture-specific
        (``a``) runs on its own compute capability alone, and what is family-specific (``f``) on its major version.
        """
        own = self.major, self.minor
        if self.suffix == "a":
            return own == device
        if self.suffix == "f" or self.kind == "cubin":
            return self.major == device[0] and own <= device
        return own <= device

    @property
    def preference(self) -> tuple[bool, int, int, int]:
        """The higher, the better a GPU is used, of code that runs on it."""
        return self.kind == "cubin", self.major, self.minor, ("", "f", "a").index(self.suffix)


def best(codes: Iterable[CodeFor], device: tuple[int, int]) -> int | None:
    """Return the index of the best of *codes* for a GPU of compute capability *device*, ``None`` if none runs on it."""
    fitting = [(code.preference, -index) for index, code in enumerate(codes) if code.runs_on(device)]
    return -max(fitting)[1] if fitting else None
