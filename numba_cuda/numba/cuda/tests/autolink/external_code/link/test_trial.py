# SPDX-License-Identifier: BSD-2-Clause
"""Links tried in a child process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from autolink_support import adder, compiled
from code_samples import LINKABLE
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item
from numba.cuda.cudadrv.external_code.link import trial as link_trial

TARGET = autolink.Target((9, 0), lto=True)


def item(kind, code, name="code"):
    return from_item(LINKABLE[kind](code, name=name))


def test_a_trial_that_succeeds():
    trial = link_trial.try_link([item("cubin", compiled(adder("f"), "cubin"))], TARGET)
    assert trial.ok
    assert trial.signal is None
    assert trial.culprit is None


def test_a_trial_compiles_source():
    trial = link_trial.try_link([from_item(cuda.CUSource(adder("f")))], TARGET)
    assert trial.ok


def test_a_trial_names_the_input_that_the_linker_refuses():
    sound = item("LTO-IR", compiled(adder("f"), "ltoir"), "sound")
    bad = item("LTO-IR", compiled(adder("g"), "ltoir")[:-200], "bad")
    trial = link_trial.try_link([sound, bad], TARGET)
    assert not trial.ok
    assert trial.culprit is bad
    assert trial.signal is None
    assert "the LTO-IR 'bad' is at fault" in trial.message
    assert trial.log


def test_a_trial_survives_a_crash_and_names_the_signal(monkeypatch, tmp_path):
    """The linker is made to crash on one input, as it does on some damage that differs between its versions."""
    child = tmp_path / "child.py"
    text = Path(link_trial.trial_child.__file__).read_text()
    call = "            nvjitlink.add_data("
    assert call in text
    child.write_text(text.replace(call, "            if name == 'bad': os.abort()\n" + call))
    monkeypatch.setattr(link_trial.trial_child, "__file__", str(child))
    sound = item("cubin", compiled(adder("f"), "cubin"), "sound")
    bad = item("cubin", compiled(adder("g"), "cubin"), "bad")
    trial = link_trial.try_link([sound, bad, sound], TARGET)
    assert not trial.ok
    assert trial.culprit is bad
    if sys.platform != "win32":
        assert trial.signal == "SIGABRT"
    assert "does not survive it" in trial.message


def test_a_trial_that_hangs_ends(monkeypatch, tmp_path):
    child = tmp_path / "child.py"
    text = Path(link_trial.trial_child.__file__).read_text()
    call = "            nvjitlink.add_data("
    child.write_text(text.replace(call, "            __import__('time').sleep(60)\n" + call))
    monkeypatch.setattr(link_trial.trial_child, "__file__", str(child))
    trial = link_trial.try_link([item("cubin", compiled(adder("f"), "cubin"))], TARGET, timeout=1)
    assert not trial.ok
    assert "no answer within 1 s" in trial.message


def test_without_a_child_process_nothing_is_tried(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(link_trial.TrialError, match="no child process can be started"):
        link_trial.try_link([item("cubin", compiled(adder("f"), "cubin"))], TARGET)
