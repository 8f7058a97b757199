# SPDX-License-Identifier: BSD-2-Clause
"""The child process of `link_trial`: links what comes on standard input, and says on standard output how it went.

It is run as a script and imports nothing of this package, so that it starts fast. It announces each trial before it
begins, so that a crash can be put down to one.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import sys
from typing import Any


def main() -> None:
    """Link each trial of the pickled job."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is expected here and leaves no file
    job = pickle.load(sys.stdin.buffer)
    sys.path[:] = job["path"]
    from cuda.bindings import nvjitlink

    nvjitlink.version()  # without the library, no trial begins
    for number, chosen in enumerate(job["trials"]):
        _say(begin=number)
        try:
            log = _link(nvjitlink, [job["inputs"][index] for index in chosen], job["options"])
            _say(end=number, log=log)
        except Exception as error:
            _say(end=number, error=str(error))


def _link(nvjitlink: Any, inputs: list[tuple[str, bytes, str]], options: list[str]) -> str:
    handle = nvjitlink.create(len(options), options)
    try:
        for kind, code, name in inputs:
            nvjitlink.add_data(handle, int(getattr(nvjitlink.InputType, kind)), code, len(code), name)
        nvjitlink.complete(handle)
        return _log(nvjitlink.get_info_log_size, nvjitlink.get_info_log, handle)
    except Exception as error:
        log = _log(nvjitlink.get_error_log_size, nvjitlink.get_error_log, handle)
        raise RuntimeError(f"{error}\nnvJitLink error log: {log}") from None


def _log(size: Any, read: Any, handle: Any) -> str:
    text = bytearray(size(handle))
    if text:
        read(handle, text)
    return text.decode("utf-8", "replace").replace("\0", "").strip()


def _say(**words: Any) -> None:
    # nvJitLink writes to standard error by itself, so what belongs to which trial is told there as well.
    os.write(2, b"" if "begin" not in words else f"\n\x1e{words['begin']}\n".encode())
    os.write(1, json.dumps(words).encode() + b"\n")


if __name__ == "__main__":
    main()
