# SPDX-License-Identifier: BSD-2-Clause
"""One link with nvJitLink; and the child process of ``nvjitlink``, which runs such links. It imports nothing of this
package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_inputs: list[tuple[str, bytes, str]] = []


def answer(content: dict[str, Any], blobs: Sequence[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Keep inputs for later links (``inputs``: types and names; their code is in *blobs*), or link some of them
    (``link``: their indices, nvJitLink's options and the output) and return ``ok``, ``log`` and the linked code."""
    if "inputs" in content:
        from cuda.bindings import nvjitlink

        nvjitlink.version()  # without the library, this request fails, and no link does
        _inputs[:] = [(kind, code, name) for (kind, name), code in zip(content["inputs"], blobs, strict=True)]
        return {}, []
    numbers, options, output = content["link"]
    ok, log, code = link([_inputs[number] for number in numbers], options, output)
    return {"ok": ok, "log": log}, [code]


def link(inputs: Sequence[tuple[str, bytes, str]], options: Sequence[str], output: str) -> tuple[bool, str, bytes]:
    """Link *inputs* (type, code and name) to *output* (``"cubin"`` or ``"ptx"``): return whether that succeeds, the
    log, and the linked code."""
    from cuda.bindings import nvjitlink

    handle = None
    try:
        handle = nvjitlink.create(len(options), options)
        for kind, code, name in inputs:
            nvjitlink.add_data(handle, int(getattr(nvjitlink.InputType, kind)), code, len(code), name)
        nvjitlink.complete(handle)
        linked = bytearray(getattr(nvjitlink, f"get_linked_{output}_size")(handle))
        getattr(nvjitlink, f"get_linked_{output}")(handle, linked)
        return True, _log(nvjitlink.get_info_log_size, nvjitlink.get_info_log, handle), bytes(linked)
    except nvjitlink.nvJitLinkError as error:
        if handle is None:
            return False, f"{error}", b""
        log = _log(nvjitlink.get_error_log_size, nvjitlink.get_error_log, handle)
        return False, f"{error}\nnvJitLink error log: {log}", b""
    finally:
        if handle is not None:
            nvjitlink.destroy(handle)


def _log(size: Callable[[int], int], read: Callable[[int, bytearray], None], handle: int) -> str:
    text = bytearray(size(handle))
    if text:
        read(handle, text)
    return text.decode("utf-8", "replace").replace("\0", "").strip()
