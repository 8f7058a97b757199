# SPDX-License-Identifier: BSD-2-Clause
"""Asks an object again: in this process, and in a new interpreter with other hashes of strings and no GPU.

The object is sent there as a pickle, which only the child reads: it has no other form. The answer is JSON.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.platform.child_process import ChildError, ChildProcess
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..compilation.context import without_device
from ..protocol.answers import Answer
from ..protocol.ask import ask_afresh, link_key
from ..protocol.callee import Callee
from ..protocol.value_digest import value_digest
from .records import LinkedCode, SkippedError

TIMEOUT = 300.0  # seconds
_CHILD = os.path.join(os.path.dirname(__file__), "reproducibility_child.py")  # which imports this module


@dataclass(frozen=True)
class AnswerSummary:
    """What an object returned: its code for each target, and the digest of its link key, if it has one."""

    code: tuple[tuple[LinkedCode, ...], ...]
    key: str | None


class AskingError(Exception):
    """An object could not be asked in another process; the message says what happened there."""


def ask_here(callee: Callee, argtypes: tuple[Any, ...], targets: Sequence[Target]) -> AnswerSummary:
    """Ask in this process, without the answers that are remembered. Raise `HookError` as `ask`."""
    code = tuple(tuple(map(LinkedCode.of, fresh(callee, argtypes, target).inputs())) for target in targets)
    value = link_key(callee, argtypes, targets[0])
    return AnswerSummary(code, None if value is None else value_digest(value).hex())


def fresh(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> Answer:
    """Return a new answer of the object. As in a build, its hook can compile for the target."""
    with without_device(target.cc):
        return ask_afresh(callee, argtypes, target)


def ask_there(callee: Callee, argtypes: tuple[Any, ...], targets: Sequence[Target]) -> AnswerSummary:
    """Ask in another process. Raise `SkippedError` if the object or the types cannot be sent there, `AskingError`
    if the process does not start, ends early, or asking fails in it."""
    question = _pickle(callee, argtypes, targets)
    path = [os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)]
    try:
        with ChildProcess(_CHILD, environment={"CUDA_VISIBLE_DEVICES": ""}) as child:
            answer = child.request({"path": path}, [question], timeout=TIMEOUT).content
    except ChildError as error:
        raise AskingError(str(error)) from error
    if "unpickled" in answer:
        raise SkippedError(f"it cannot be sent there ({answer['unpickled']})")
    if "error" in answer:
        raise AskingError(answer["error"])
    return AnswerSummary(tuple(tuple(LinkedCode(**code) for code in each) for each in answer["code"]), answer["key"])


def _pickle(callee: Callee, argtypes: tuple[Any, ...], targets: Sequence[Target]) -> bytes:
    from numba.cuda.cloudpickle import cloudpickle

    # The types of device functions do not keep the functions alive.
    functions = [argtype.dispatcher for argtype in argtypes if isinstance(argtype, types.Dispatcher)]
    question = (callee.obj, argtypes, tuple(targets), functions)
    # The script that runs is another module there: cloudpickle sends along what it defines.
    if type(callee.obj).__module__ != "__main__":
        with contextlib.suppress(Exception):
            return pickle.dumps(question)
    try:
        return cloudpickle.dumps(question)
    except Exception as error:
        raise SkippedError(f"it cannot be sent there ({type(error).__name__}: {error})") from error
