# SPDX-License-Identifier: BSD-2-Clause
"""Asking an object in another process: a new interpreter, with other hashes of strings, that sees no GPU."""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.target import Target

from ..compilation import without_device
from ..frontends.numba_cuda import isolated_device_functions
from ..protocol.answers import Answer
from ..protocol.asking import ask_afresh, link_key
from ..protocol.callee import HOOK, Callee, find_callee
from ..protocol.errors import HookError
from ..value_fingerprint import fingerprint

TIMEOUT = 300.0
_START = (
    "import json, sys\n"
    "job = json.loads(sys.stdin.buffer.read())\n"
    "sys.path[:] = job['path']\n"
    "from numba.cuda.autolink.conformance import reproducibility\n"
    "reproducibility.answer(job)\n"
)


@dataclass(frozen=True)
class ToldCode:
    """A piece of code: what to call it, its digest, and of source and PTX its text."""

    shown: str
    digest: str
    text: str | None = None

    @classmethod
    def of(cls, item: LinkInput) -> ToldCode:
        """The record of a link input."""
        readable = item.kind in (kinds.CUDA, kinds.PTX)
        text = item.code.decode("utf-8", "replace") if readable else None
        return cls(f"{item.kind} {item.name!r} ({len(item.code)} bytes, SHA-256 {item.digest[:12]})", item.digest, text)


@dataclass(frozen=True)
class Told:
    """What an object told: its code, for each target, and the fingerprint of its key, if it has one."""

    code: tuple[tuple[ToldCode, ...], ...]
    key: str | None


class NotPicklableError(Exception):
    """An object cannot be sent to another process."""


class AskingError(Exception):
    """An object could not be asked in another process; the message tells what happened there."""


def ask_here(callee: Callee, argtypes: tuple[Any, ...], targets: Sequence[Target]) -> Told:
    """Ask anew, and remember nothing of it.

    Raises
    ------
    HookError
        As `ask`.
    """
    code = tuple(tuple(map(ToldCode.of, fresh(callee, argtypes, target).inputs())) for target in targets)
    value = link_key(callee, argtypes, targets[0])
    return Told(code, None if value is None else fingerprint(value).hex())


def fresh(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> Answer:
    """The object's answer, whatever it answered before. As in a build, the hook can compile for the target."""
    with without_device(target.cc), isolated_device_functions():
        return ask_afresh(callee, argtypes, target)


def ask_there(callee: Callee, argtypes: tuple[Any, ...], targets: Sequence[Target]) -> Told:
    """Ask in another process.

    Raises
    ------
    NotPicklableError
        If the object or the types cannot be sent there.
    AskingError
        If they cannot be had there, or asking fails.
    """
    job = {"path": sys.path, "question": base64.b64encode(_pickled(callee, argtypes, targets)).decode()}
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = {**os.environ, "PYTHONHASHSEED": seed, "CUDA_VISIBLE_DEVICES": ""}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _START],
            input=json.dumps(job).encode(),
            env=environment,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AskingError(f"no answer within {TIMEOUT:g} s") from None
    for line in reversed(done.stdout.decode("utf-8", "replace").splitlines()):
        if not line.startswith("{"):
            continue
        told = json.loads(line)
        if "unpickled" in told:
            raise NotPicklableError(told["unpickled"])
        if "error" in told:
            raise AskingError(told["error"])
        return Told(tuple(tuple(ToldCode(*code) for code in each) for each in told["code"]), told["key"])
    raise AskingError(f"exit code {done.returncode}\n{done.stderr.decode('utf-8', 'replace').strip()[-2000:]}")


def _pickled(callee: Callee, argtypes: tuple[Any, ...], targets: Sequence[Target]) -> bytes:
    from numba.cuda.cloudpickle import cloudpickle

    # The types of device functions do not keep these alive.
    functions = [argtype.dispatcher for argtype in argtypes if isinstance(argtype, types.Dispatcher)]
    question = (callee.obj, argtypes, tuple(targets), functions)
    problem: Exception | None = None
    for module in (pickle, cloudpickle):
        try:
            # What lies in the script that runs is another module there: cloudpickle sends it along.
            if module is pickle and type(callee.obj).__module__ == "__main__":
                continue
            return module.dumps(question)
        except Exception as error:
            problem = error
    raise NotPicklableError(f"{type(problem).__name__}: {problem}")


def answer(job: dict[str, Any]) -> None:
    """The other process: ask, and print as JSON what the object told."""
    try:
        obj, argtypes, targets, _functions = pickle.loads(base64.b64decode(job["question"]))
    except Exception as error:
        print(json.dumps({"unpickled": f"{type(error).__name__}: {error}"}))
        return
    try:
        callee = find_callee(obj)
        if callee is None:
            print(json.dumps({"error": f"{obj!r} has no {HOOK} any more"}))
            return
        told = ask_here(callee, argtypes, targets)
        print(json.dumps({"code": [list(map(astuple, each)) for each in told.code], "key": told.key}))
    except HookError as error:
        print(json.dumps({"error": f"{HOOK} {error}\nraised at: {error.raised_at or 'the call of the hook'}"}))
    except Exception:
        print(json.dumps({"error": traceback.format_exc()}))
