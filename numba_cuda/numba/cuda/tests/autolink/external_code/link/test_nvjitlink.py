# SPDX-License-Identifier: BSD-2-Clause
"""Links tried in a child process."""

import sys
from pathlib import Path

import pytest
from autolink_support import adder, compiled
from numba import cuda
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item
from numba.cuda.cudadrv.external_code.link import nvjitlink, nvjitlink_child
from numba.cuda.cudadrv.external_code.link.nvjitlink import Outcome, TrialError, run_trials


def item(kind, code, name="code"):
    return from_item({"LTO-IR": cuda.LTOIR, "cubin": cuda.Cubin}[kind](code, name=name))


@pytest.fixture
def faulty_child(monkeypatch, tmp_path):
    """Run *statement* before the linker gets an input called ``name``, as a fault of the linker's would."""

    def replace(statement):
        text = Path(nvjitlink_child.__file__).read_text()
        call = "            nvjitlink.add_data("
        assert call in text
        (tmp_path / "child.py").write_text(text.replace(call, f"            {statement}\n{call}"))
        monkeypatch.setattr(nvjitlink_child, "__file__", str(tmp_path / "child.py"))

    return replace


def test_what_is_printed_belongs_to_its_own_link(faulty_child, capfd):
    faulty_child("print('about', name); __import__('os').write(2, b'@E@error of ' + name.encode())")
    code = compiled(adder("f"), "cubin")
    inputs = [item("cubin", code, name) for name in ("first", "second")]
    first, second = run_trials(inputs, [[0], [1]], "sm_90")
    assert (first.ok, first.log) == (True, "@E@error of firstabout first")
    assert (second.ok, second.log) == (True, "@E@error of secondabout second")
    assert capfd.readouterr() == ("", "")


def test_links_after_a_crash_are_tried_in_another_process(faulty_child):
    faulty_child("name == 'bad' and __import__('os')._exit(7)")
    code = compiled(adder("f"), "cubin")
    inputs = [item("cubin", code, name) for name in ("good", "bad")]
    outcomes = run_trials(inputs, [[0], [1], [0], [1]], "sm_90")
    assert outcomes == [Outcome(True), Outcome(False, crash="exit code 7")] * 2


def test_without_nvjitlink_nothing_is_tried(monkeypatch, tmp_path):
    text = Path(nvjitlink_child.__file__).read_text()
    (tmp_path / "child.py").write_text(text.replace("nvjitlink.version()", "raise RuntimeError('no such library')"))
    monkeypatch.setattr(nvjitlink_child, "__file__", str(tmp_path / "child.py"))
    with pytest.raises(TrialError, match="no such library"):
        run_trials([item("cubin", compiled(adder("f"), "cubin"))], [[0]], "sm_90")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_link_takes_no_more_memory_than_its_limit():
    """Of a damaged size in machine code, nvJitLink takes as much as it says."""
    with nvjitlink.helpers.child() as child:
        child.request({"inputs": []})
        (limit,) = (line for line in Path(f"/proc/{child.pid}/limits").read_text().splitlines() if "data size" in line)
    assert 0 < int(limit.split()[3]) <= 8 << 30
