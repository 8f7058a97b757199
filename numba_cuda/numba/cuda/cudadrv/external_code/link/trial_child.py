# SPDX-License-Identifier: BSD-2-Clause
"""The child process of ``trial``: link what it is sent with nvJitLink. It imports nothing of this package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_inputs: list[tuple[str, bytes, str]] = []


def answer(content: dict[str, Any], blobs: Sequence[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Keep inputs for later links (``inputs``: types and names; their code is in *blobs*), or link some of them
    (``link``: their indices; ``options``: nvJitLink's; ``output``: ``"cubin"`` or ``"ptx"``) and return ``ok``,
    ``log`` and the linked code."""
    from cuda.bindings import nvjitlink

    if "inputs" in content:
        nvjitlink.version()  # without the library, this request fails, and no link does
        _inputs[:] = [(kind, code, name) for (kind, name), code in zip(content["inputs"], blobs, strict=True)]
        return {}, []
    try:
        log, code = _link(
            nvjitlink, [_inputs[index] for index in content["link"]], content["options"], content["output"]
        )
    except Exception as error:
        return {"ok": False, "log": str(error)}, []
    return {"ok": True, "log": log}, [code]


def _link(nvjitlink: Any, inputs: list[tuple[str, bytes, str]], options: list[str], output: str) -> tuple[str, bytes]:
    handle = nvjitlink.create(len(options), options)
    try:
        for kind, code, name in inputs:
            nvjitlink.add_data(handle, int(getattr(nvjitlink.InputType, kind)), code, len(code), name)
        nvjitlink.complete(handle)
        log = _log(nvjitlink.get_info_log_size, nvjitlink.get_info_log, handle)
        linked = bytearray(getattr(nvjitlink, f"get_linked_{output}_size")(handle))
        getattr(nvjitlink, f"get_linked_{output}")(handle, linked)
        return log, bytes(linked)
    except nvjitlink.nvJitLinkError as error:
        log = _log(nvjitlink.get_error_log_size, nvjitlink.get_error_log, handle)
        raise RuntimeError(f"{error}\nnvJitLink error log: {log}") from None
    finally:
        nvjitlink.destroy(handle)


def _log(size: Callable[[int], int], read: Callable[[int, bytearray], None], handle: int) -> str:
    text = bytearray(size(handle))
    if text:
        read(handle, text)
    return text.decode("utf-8", "replace").replace("\0", "").strip()
