# SPDX-License-Identifier: BSD-2-Clause
"""An object asked in another process."""

import sys

import pytest
from kernel_cache_support import run_warm
from numba.cuda import autolink, float32
from numba.cuda.autolink.conformance import reproducibility
from numba.cuda.autolink.protocol.callee import find_callee

TARGET = autolink.Target((9, 0), lto=True)

MODULE = """
import os, sys
from numba.cuda import autolink

class Scale:
    def __numba_cuda_link__(self, x):
        BODY
        return autolink.CUDASource("// code", name="scale.cu")
"""


def ask(obj):
    return reproducibility.ask_there(find_callee(obj), (float32,), [TARGET])


@pytest.fixture
def scale(tmp_path, monkeypatch, request):
    """An object whose module is in the working directory, from where it was imported; the test's mark has its body."""
    (tmp_path / "scale_of_theirs.py").write_text(MODULE.replace("BODY", getattr(request, "param", "pass")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    monkeypatch.delitem(sys.modules, "scale_of_theirs", raising=False)
    import scale_of_theirs

    return scale_of_theirs.Scale()


def test_of_the_working_directory_the_object_s_own_module_is_run_and_no_other(scale, tmp_path):
    for name in "json", "numpy", "llvmlite", "cuda":
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')\nraise ImportError")
    assert ask(scale) == reproducibility.ask_here(find_callee(scale), (float32,), [TARGET])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("scale", ["print('{}'); os.write(1, b'\\xff{}'); os.write(2, b'{}')"], indirect=True)
def test_what_a_hook_prints_is_not_its_answer(scale, capfd):
    assert ask(scale).code
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.parametrize("scale", ["os.kill(os.getpid(), 11)"], indirect=True)
def test_a_hook_that_crashes_is_an_error(scale):
    with pytest.raises(reproducibility.AskingError, match=r"^the process ended \(SIGSEGV\)"):
        ask(scale)


@pytest.mark.parametrize("scale", ["__import__('time').sleep(60)"], indirect=True)
def test_a_hook_that_hangs_is_an_error(scale, monkeypatch):
    monkeypatch.setattr(reproducibility, "TIMEOUT", 3)
    with pytest.raises(reproducibility.AskingError, match=r"^the process ended \(no answer within 3 s\)"):
        ask(scale)


def test_a_script_s_own_objects_are_sent(tmp_path, servers):
    (tmp_path / "script.py").write_text(
        MODULE.replace("BODY", "pass")
        + "from numba import float32\n"
        + "from numba.cuda.autolink.testing import check_linkable\n"
        + "from numba.cuda.autolink.conformance import reproducibility\n"
        + "from numba.cuda.autolink.protocol.callee import find_callee\n"
        + "answer = reproducibility.ask_there(find_callee(Scale()), (float32,), [autolink.Target((9, 0))])\n"
        + "print(answer.code[0][0].text)\n"
    )
    done = run_warm(servers, "script.py", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("// code\n", "")
