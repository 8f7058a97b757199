# SPDX-License-Identifier: BSD-2-Clause
"""The link key and the code of an object in another process, where hashes of strings and addresses differ."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
from typing import Any, NamedTuple

from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr, safe_text

from ..many_kernels.pickling import pickle_value, run_time_modules_by_value
from ..protocol.ask import link_key
from ..protocol.stored_answers import link_key_digest
from .records import LinkedCode, SkippedError
from .subject import Subject, ask_again

_LIMIT = 120  # seconds
_START = f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {__name__} import answer; answer()"


class Answered(NamedTuple):
    """A link key, as its *digest* and as *text*, and the *code*."""

    digest: bytes
    text: str
    code: tuple[LinkedCode, ...]


def ask_in_another_process(subject: Subject) -> Answered:
    """Return what the object answers in another process for its first target. Raise `SkippedError` if it cannot be sent
    there, or does not answer there."""
    site = subject.site
    try:
        with run_time_modules_by_value():
            question = pickle_value((site.callee, site.argtypes, subject.targets[0]))
    except Exception as error:
        raise SkippedError(
            f"the object cannot be sent to another process: {type(error).__name__}: {safe_text(error)}"
        ) from error
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    command = [sys.executable, "-c", _START, json.dumps(sys.path)]
    try:
        done = subprocess.run(
            command,
            input=question,
            capture_output=True,
            timeout=_LIMIT,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
    except subprocess.TimeoutExpired:
        raise SkippedError(f"another process did not answer within {_LIMIT} s") from None
    if done.returncode or not done.stdout:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise SkippedError(f"the object does not answer in another process: {last or f'exit code {done.returncode}'}")
    answered: Answered = pickle.loads(done.stdout)
    return answered


def answer() -> None:
    """Answer the question in the standard input: in the other process."""
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # hooks may print
        callee, argtypes, target = pickle.load(io.BytesIO(sys.stdin.buffer.read()))
        key: Any = link_key(callee, argtypes, target)
        code = tuple(map(LinkedCode.of, ask_again(callee, argtypes, target).inputs()))
        output.write(pickle.dumps(Answered(link_key_digest(key), safe_repr(key), code)))
