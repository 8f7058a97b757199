# SPDX-License-Identifier: BSD-2-Clause
"""The files of the shared cache, which are opened while Python imports Numba.

To open them takes 0.3 s of CPU time where they are on S3, and what is needed before they are open is built here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from typing import Any

LARGEST = 256 << 20  # bytes of one file


class SharedFiles:
    """The files below an address of fsspec. Its methods raise what the file system raises."""

    def __init__(self, address: str):
        import fsspec

        is_web = address.startswith(("http://", "https://"))
        self._system, self._root = fsspec.core.url_to_fs(address, **_web_options() if is_web else {})
        protocols = self._system.protocol
        self._is_local = "file" in ((protocols,) if isinstance(protocols, str) else protocols)
        with contextlib.suppress(Exception):  # the first question raises it again
            self.read("connection")  # it connects, which takes longer than a question

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or ``None`` if there is none."""
        try:
            # One request, where opening a file takes another one for its size.
            content: bytes = self._system.cat_file(self._path(name), start=0, end=LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            content = b""  # S3 has no range of an empty file
        if len(content) > LARGEST:
            raise OSError(f"{name} is larger than {LARGEST} bytes")
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all."""
        path = self._path(name)
        if not self._is_local:  # object stores write in one step, and have no folders
            self._system.pipe_file(path, content)
            return
        self._system.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.{os.getpid()}-{threading.get_ident()}.tmp"
        self._system.pipe_file(temporary, content)
        self._system.mv(temporary, path)

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"


def _web_options() -> dict[str, Any]:
    """Return options of fsspec that bound what a web server can make a process read: it may send more than it was asked
    for, or little that unpacks to much."""
    import aiohttp
    import fsspec

    class BoundedResponse(aiohttp.ClientResponse):
        async def read(self) -> bytes:
            parts, size = [], 0
            async for part in self.content.iter_any():
                parts.append(part)
                if (size := size + len(part)) > LARGEST:
                    self.close()
                    parts.clear()  # which the error's traceback would keep
                    raise OSError(errno.EFBIG, f"the server sent more than {LARGEST} bytes")
            return b"".join(parts)

    own = fsspec.config.conf.get("http", {}).get("client_kwargs", {})
    return {"client_kwargs": {**own, "auto_decompress": False, "response_class": BoundedResponse}}


class _Opening(threading.Thread):
    """Opens the files at an address, in a process."""

    def __init__(self, address: str):
        super().__init__(name="numba-cuda-autolink shared cache", daemon=True)
        self.of = address, os.getpid()
        self.files: SharedFiles | None = None

    def run(self) -> None:
        with contextlib.suppress(Exception):  # who needs them opens them again, and gets the error
            self.files = SharedFiles(self.of[0])


_opening: _Opening | None = None


def begin(address: str) -> None:
    """Begin to open the files at *address*."""
    global _opening
    with contextlib.suppress(Exception):  # as above
        import fsspec

        # Not in the thread: each module that it reads would wait there until Numba's next module gives way.
        fsspec.get_filesystem_class(fsspec.core.split_protocol(address)[0])
    _opening = _Opening(address)
    _opening.start()


def opened(address: str) -> SharedFiles:
    """Return the files at *address*; those that were begun to be opened, if they can be. Raises what fsspec raises."""
    opening = _opening
    if opening is not None and opening.of == (address, os.getpid()):
        opening.join()
        if opening.files is not None:
            return opening.files
    return SharedFiles(address)
