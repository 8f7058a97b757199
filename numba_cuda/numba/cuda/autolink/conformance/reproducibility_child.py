# SPDX-License-Identifier: BSD-2-Clause
"""The child process of ``reproducibility``: activate this project, and ask a pickled object for its code."""

from __future__ import annotations

import dataclasses
import pickle
import sys
import traceback
from collections.abc import Sequence
from typing import Any


def answer(content: dict[str, Any], blobs: Sequence[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Answer the pickled question in *blobs* with ``code`` and ``key``, or the error under ``unpickled`` or ``error``.
    ``path`` lists where else its modules may be."""
    from numba.cuda.autolink.conformance.reproducibility import ask_here
    from numba.cuda.autolink.protocol.callee import HOOK, find_callee
    from numba.cuda.autolink.protocol.errors import HookError

    # The object's own module may be in the working directory, which is searched last, and only now: a module there
    # would be found before a namespace package such as "cuda".
    sys.path += [entry for entry in content["path"] if entry not in sys.path]
    try:
        obj, argtypes, targets, _functions = pickle.loads(blobs[0])
    except Exception as error:
        return {"unpickled": f"{type(error).__name__}: {error}"}, []
    try:
        callee = find_callee(obj)
        if callee is None:
            return {"error": f"{obj!r} no longer has a {HOOK}"}, []
        return dataclasses.asdict(ask_here(callee, argtypes, targets)), []
    except HookError as error:
        return {"error": f"{HOOK} {error}\nraised at: {error.raised_at or 'the call to the hook'}"}, []
    except Exception:
        return {"error": traceback.format_exc()}, []
