# SPDX-License-Identifier: BSD-2-Clause
"""Answers on disk: what an object with a ``__numba_cuda_link_key__`` returned is not generated again.

A link key is its author's promise: equal keys, equal code. An answer is stored under the link key, the name of the
object's class and the package that defines it, the argument types, the target and the versions of all tools. Paths are
stored as paths, with the digest of the file. Answers with callbacks are not stored, nor answers for which a Python
function was compiled: nothing in a link key tells what that function calls.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

from numba.cuda.cudadrv.external_code.cache.entry import CacheKey, Facts
from numba.cuda.cudadrv.external_code.cache.settings import logger
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CompileOptions, CUDASource
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput

from ..compilation.context import noting_device_functions, tool_versions
from .answers import CallingCode, Item, Question
from .callee import Callee
from .loaded_modules import UnknownValueError, file_digest
from .value_digest import ValuePickler, value_digest, walk

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_CODE = (LinkInput, CUDASource)
_KINDS = {kind.name: kind for kind in kinds.KINDS}
# Stored in place of an answer that bytes cannot express. The object is asked in each process.
_NOT_STORABLE = b"null"


def stored(
    callee: Callee, package: Any, link_key: Any, question: Question, ask: Callable[[], tuple[Item, ...]]
) -> tuple[tuple[Item, ...], bool]:
    """Return the items that are stored for *link_key* and *package*, and True; else what *ask* returns, and False."""
    asked: list[tuple[Item, ...]] = []
    folder = callee.folder  # whose files the answer may name

    def build() -> bytes:
        with noting_device_functions() as noted:
            asked.append(ask())
        return _NOT_STORABLE if noted else _pack(asked[0], folder)

    try:
        if package is None:
            raise UnknownValueError("the code of its package is in no file, or was written after this process began")
        key = _key(callee, package, link_key, question)
    except UnknownValueError as error:
        logger.info("the answer of %s is not stored: %s", callee.name, error)
        return ask(), False
    data = current_store().fetch(key, build, is_portable=_is_portable).data
    if asked or data == _NOT_STORABLE:
        return asked[0] if asked else ask(), False
    items = _unpack(data, folder)
    if items is not None:
        return items, True
    with noting_device_functions() as noted:
        items = ask()  # it had generated a file, which is gone or edited, or names files of another checkout
    data = _NOT_STORABLE if noted else _pack(items, folder)
    current_store().put(key, data, is_portable=_is_portable(data))
    return items, False


class _LinkKeyPickler(ValuePickler):
    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is dict:  # two are equal in every order
            return "dict", sorted((self._part(key), self._part(value)) for key, value in obj.items())
        return super().persistent_id(obj)

    def _object(self, obj: Any) -> Any:
        counted = super()._object(obj)
        parts = counted[1]  # a list, where pickle writes more of it than a name
        if type(obj).__eq__ is object.__eq__ and isinstance(parts, list) and not any(parts[2:]):
            raise UnknownValueError(f"an object of {type(obj).__name__} without attributes is equal only to itself")
        return counted


def link_key_digest(link_key: Any) -> bytes:
    """Return the digest of a link key, or raise `UnknownValueError` if only this process knows what it is."""
    return walk(link_key, _LinkKeyPickler).digest


def _key(callee: Callee, package: Any, link_key: Any, question: Question) -> CacheKey:
    argtypes, target = question
    digest, package_digest = link_key_digest(link_key), value_digest(package)
    types, tools = f"({', '.join(map(str, argtypes))})", tool_versions()
    shown_key = _ADDRESS.sub("", safe_repr(link_key))

    def facts() -> Facts:
        known = {"architecture": target.arch, "types": types, "link key": shown_key, "package": package_digest.hex()}
        return tuple(("", name, value) for name, value in {**known, **tools}.items())

    return CacheKey(
        "answer",
        callee.name,
        (
            ("format", "8"),
            ("object", ".".join(package[:2])),
            ("package", package_digest),
            ("link key", f"{digest.hex()[:16]} {shown_key}"),
            ("link key's digest", digest),
            ("signature", types),
            ("signature's digest", value_digest(argtypes)),
            ("target", repr(target)),
            *tools.items(),
        ),
        facts=facts,
    )


def _pack(items: tuple[Item, ...], folder: str) -> bytes:
    if any(isinstance(item, _CODE) and (item.setup_callback or item.teardown_callback) for item in items):
        return _NOT_STORABLE
    try:
        described = [_describe(item) for item in items]
        return json.dumps([each if _is_anywhere(each) else {**each, "folder": folder} for each in described]).encode()
    except TypeError:  # of options that JSON cannot express
        return _NOT_STORABLE


def _describe(item: Item) -> dict[str, Any]:
    if isinstance(item, CUDASource):
        described = {"path": item.path, "name": item.name, "nrt": item.nrt, "options": astuple(item.compile_options)}
        return {**described, "digest": file_digest(str(item.path))}
    if isinstance(item, CallingCode):
        raise TypeError("code that calls objects is not stored")
    if not isinstance(item, LinkInput):
        return {"path": os.fsdecode(item), "digest": file_digest(item)}
    code = base64.b64encode(item.code).decode()
    return {"kind": item.kind.name, "name": item.name, "nrt": item.nrt, "code": code, "options": astuple(item.options)}


def _is_portable(data: bytes) -> bool:
    """Whether the answer in *data* is the same on a machine with other folders: it names no file and no folder."""
    return all(map(_is_anywhere, json.loads(data) or ()))


def _is_anywhere(item: dict[str, Any]) -> bool:
    return "path" not in item and not CompileOptions(*_tuples(item["options"])).include_paths


def _unpack(data: bytes, folder: str) -> tuple[Item, ...] | None:
    """Return the items in *data*; None if one is a file that is not as it was, or was found in another working
    directory, or by an object whose module was not in *folder*."""
    items: list[Item] = []
    for item in json.loads(data):
        if item.get("folder", folder) != folder:
            return None
        options = CompileOptions(*_tuples(item.get("options", ())))
        if options.working_directory and not _is_working_directory(options.working_directory):
            return None
        if "path" not in item:
            code = base64.b64decode(item["code"])
            items.append(LinkInput(_KINDS[item["kind"]], code, options, item["name"], nrt=item["nrt"]))
        elif item["digest"] is None or item["digest"] != file_digest(item["path"]):
            return None
        elif "options" in item:
            others = {**vars(options), "include_paths": options.include_paths[1:], "options": dict(options.options)}
            del others["working_directory"]
            items.append(CUDASource.from_file(item["path"], name=item["name"], nrt=item["nrt"], **others))
        else:
            items.append(item["path"])
    return tuple(items)


def _is_working_directory(path: str) -> bool:
    try:
        return os.getcwd() == path
    except OSError:  # it was deleted
        return False


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
