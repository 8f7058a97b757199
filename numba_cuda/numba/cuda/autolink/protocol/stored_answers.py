# SPDX-License-Identifier: BSD-2-Clause
"""Answers on disk: what an object with a ``__numba_cuda_link_key__`` returned need not be generated again.

The key stands for all that has an influence on the generated code beside the object's class, the file of its source,
the argument types, the target and the versions of the toolkit. Paths are stored as such, answers with callbacks not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numba.cuda.cudadrv.external_code import toolkit
from numba.cuda.cudadrv.external_code.cache.key import CacheKey
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CompileOptions
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.safe_repr import safe_repr
from numba.cuda.cudadrv.external_code.target import Target

from ..value_fingerprint import UnknownValueError, fingerprint

if TYPE_CHECKING:
    from .callee import Callee

# What an answer consists of: link inputs and paths.
Items = tuple[Any, ...]

_KINDS = {kind.name: kind for kind in kinds.KINDS}


class _NotStorableError(Exception):
    """An answer that bytes cannot tell."""

    def __init__(self, items: Items):
        self.items = items
        super().__init__("an answer with callbacks, or with options that JSON cannot tell")


def stored(callee: Callee, value: Any, argtypes: tuple[Any, ...], target: Target, ask: Callable[[], Items]) -> Items:
    """The items that *ask* returns, or returned when it was called for the same key *value* before, in whichever
    process."""

    def build() -> bytes:
        items = ask()
        packed = _packed(items)
        if packed is None:
            raise _NotStorableError(items)
        return packed

    try:
        key = _key(callee, value, argtypes, target)
    except UnknownValueError:
        return ask()
    try:
        items = _unpacked(current_store().fetch(key, build).data)
    except _NotStorableError as error:
        return error.items
    if any(isinstance(item, str) and not os.path.isfile(item) for item in items):
        items = ask()  # a file that was generated, and is gone
        if (packed := _packed(items)) is not None:
            current_store().put(key, packed)
    return items


def _key(callee: Callee, value: Any, argtypes: tuple[Any, ...], target: Target) -> CacheKey:
    owner = callee.obj if hasattr(callee.obj, "__qualname__") else type(callee.obj)
    return CacheKey(
        "answer",
        callee.name,
        (
            ("object", f"{getattr(owner, '__module__', '')}.{owner.__qualname__}"),
            ("source", callee.source_stamp),
            ("link key", f"{fingerprint(value).hex()[:16]} {safe_repr(value)}"),
            ("link key's digest", fingerprint(value)),
            ("signature", f"({', '.join(map(str, argtypes))})"),
            ("signature's digest", fingerprint(argtypes)),
            ("target", repr(target)),
            ("NVRTC", toolkit.nvrtc_build()),
            ("NVVM", toolkit.nvvm_build()),
            ("nvJitLink", toolkit.nvjitlink_build()),
        ),
    )


def _packed(items: Items) -> bytes | None:
    described: list[dict[str, Any]] = []
    codes = []
    for item in items:
        if not isinstance(item, LinkInput):
            described.append({"path": os.fsdecode(item)})
            continue
        if item.setup_callback is not None or item.teardown_callback is not None:
            return None
        options = item.options
        described.append(
            {
                "kind": item.kind.name,
                "name": item.name,
                "nrt": item.nrt,
                "size": len(item.code),
                "options": [options.include_paths, options.defines, options.options, options.unit],
            }
        )
        codes.append(item.code)
    try:
        header = json.dumps(described).encode()
    except TypeError:
        return None
    return b"".join((len(header).to_bytes(8, "little"), header, *codes))


def _unpacked(data: bytes) -> Items:
    start = 8 + int.from_bytes(data[:8], "little")
    items: list[Any] = []
    for item in json.loads(data[8:start]):
        if "path" in item:
            items.append(item["path"])
            continue
        code = data[start : start + item["size"]]
        start += item["size"]
        options = CompileOptions(*_tuples(item["options"]))
        items.append(LinkInput(_KINDS[item["kind"]], code, options, item["name"], nrt=item["nrt"]))
    return tuple(items)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
