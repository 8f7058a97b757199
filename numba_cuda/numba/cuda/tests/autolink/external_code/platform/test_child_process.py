# SPDX-License-Identifier: BSD-2-Clause
"""Child processes: whatever a child prints, raises or dies of, the parent gets an answer or an error."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cache_support import wait_for
from numba.cuda.cudadrv.external_code.platform import child_process
from numba.cuda.cudadrv.external_code.platform.child_process import (
    ChildEndedError,
    ChildProcess,
    ChildStartError,
    RequestError,
)


@pytest.fixture
def script(tmp_path):
    """Write a child's script whose ``answer`` has this body; return its path."""

    def write(body):
        path = tmp_path / "script.py"
        path.write_text(
            f"import os, sys\ndef answer(content, blobs):\n{textwrap.indent(textwrap.dedent(body), '    ')}"
        )
        return str(path)

    return write


def ask(path, content=None, blobs=(), **options):
    with ChildProcess(path) as child:
        return child.request(content or {}, blobs, **options)


def failure(path, **options):
    with ChildProcess(path) as child, pytest.raises(ChildEndedError) as caught:
        child.request({}, **options)
    return caught.value


def test_requests_and_replies_are_json_and_bytes(script):
    path = script("return {'said': content['say'], 'pid': os.getpid()}, [blob[::-1] for blob in blobs]")
    blobs = [b"", b"\0\n\xff" * 100_000, b"x"]
    with ChildProcess(path) as child:
        first = child.request({"say": "\udc80 ü \0"}, blobs)
        second = child.request({"say": [1, None]})
    assert first.content["said"] == "\udc80 ü \0"
    assert first.blobs == [blob[::-1] for blob in blobs]
    assert second.content == {"said": [1, None], "pid": first.content["pid"]}
    assert first.content["pid"] != os.getpid()


@pytest.mark.parametrize("name", ["json", "numpy", "cuda", "site", "sitecustomize", "usercustomize", "not_installed"])
@pytest.mark.parametrize("entry", ["", ".", "absolute"])
def test_modules_in_the_working_directory_are_not_run(script, tmp_path, monkeypatch, name, entry):
    folder = tmp_path / "working"
    folder.mkdir()
    (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", f"{os.pathsep}{folder}")
    monkeypatch.setenv("PYTHONSTARTUP", str(folder / f"{name}.py"))
    monkeypatch.setattr(sys, "path", [str(folder) if entry == "absolute" else entry, *sys.path])
    path = script(
        f"""
        import importlib, json
        try:
            importlib.import_module({name!r})
        except ImportError:
            pass
        return {{"path": sys.path, "in": os.getcwd()}}, []
        """
    )
    found = ask(path).content
    assert not (tmp_path / "run").exists()
    assert found["in"] == str(folder)
    assert not {"", ".", str(folder)} & set(found["path"])
    assert set(found["path"]) <= set(sys.path)


def test_the_working_directory_may_have_been_removed(script, tmp_path, monkeypatch):
    folder = tmp_path / "working"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    folder.rmdir()
    assert ask(script("return {'value': 42}, []")).content == {"value": 42}


def test_the_parent_s_other_directories_are_searched(script, tmp_path, monkeypatch):
    (tmp_path / "some_module_of_theirs.py").write_text("value = 42")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert ask(script("import some_module_of_theirs as m\nreturn {'value': m.value}, []")).content == {"value": 42}


def test_a_package_installed_from_the_working_directory_is_found(script, tmp_path, monkeypatch):
    """An editable install lies in the isolated interpreter's own path, wherever one happens to stand."""
    editable = [entry for entry in child_process.absolute_path() if "site-packages" in entry]
    monkeypatch.chdir(editable[0])
    assert editable[0] in ask(script("return {'path': sys.path}, []")).content["path"]


def test_the_environment_is_the_parent_s_and_more(script, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/some/where")
    path = script("return {name: os.environ[name] for name in ('LD_LIBRARY_PATH', 'EXTRA')}, []")
    with ChildProcess(path, environment={"EXTRA": "1"}) as child:
        assert child.request({}).content == {"LD_LIBRARY_PATH": "/some/where", "EXTRA": "1"}


NOISE = """
print("print")
print("error", file=sys.stderr)
sys.stdout.flush()
os.write(1, b"\\0\\xff one ")
os.write(2, b"two ")
os.system("echo three; echo four >&2")
assert sys.stdin.read() == ""
return {"number": content["number"]}, [b"code"]
"""


def test_a_child_has_neither_the_key_of_a_shared_cache_nor_credentials_of_a_cloud(script, monkeypatch):
    secrets = (
        "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY AWS_PROFILE GOOGLE_APPLICATION_CREDENTIALS HF_TOKEN OS_PASSWORD"
        " ALIBABA_CLOUD_ACCESS_KEY_ID B2_APPLICATION_KEY aws_secret_access_key"
    )
    for name in secrets.split():
        monkeypatch.setenv(name, "secret")
    assert "secret" not in ask(script("return dict(os.environ), []")).content.values()


def test_what_a_child_prints_corrupts_nothing_and_is_returned(script, capfd):
    with ChildProcess(script(NOISE)) as child:
        for number in range(3):
            reply = child.request({"number": number})
            assert (reply.content, reply.blobs) == ({"number": number}, [b"code"])
            for text in "print", "error", "one", "two", "three", "four":
                assert reply.printed.count(text) == 1
    assert capfd.readouterr() == ("", "")


def test_output_is_bounded_and_its_end_is_kept(script):
    path = script("os.write(1, b'x' * 10_000_000)\nprint('the end')\nreturn {}, []")
    printed = ask(path).printed
    assert len(printed) <= 1 << 16
    assert printed.endswith("xxx\nthe end") or printed.endswith("xxxthe end")


def test_an_exception_is_raised_here_and_the_child_survives(script):
    path = script("if content: raise ValueError('no such ü')\nreturn {'pid': os.getpid()}, []")
    with ChildProcess(path) as child:
        pid = child.request({}).content
        with pytest.raises(RequestError, match=r"^no such ü$"):
            child.request({"bad": True})
        assert child.request({}).content == pid


@pytest.mark.parametrize(
    "body, how",
    [
        ("os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("os.kill(os.getpid(), 40)", "signal 40"),
        ("os.abort()", "SIGABRT"),
        ("sys.exit(3)", "exit code 3"),
        ("os._exit(0)", "exit code 0"),
        ("os.closerange(3, 100); import time; time.sleep(100)", "it closed its pipes or garbled a reply"),
    ],
)
def test_a_crash_is_one_error_that_says_how_it_ended(script, tmp_path, monkeypatch, body, how):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    path = script(f"os.write(2, b'last words')\n{body}")
    with ChildProcess(path) as child:
        for _ in range(2):  # later requests fail with the same error
            with pytest.raises(ChildEndedError) as caught:
                child.request({})
            assert (caught.value.how, caught.value.printed) == (how, "last words")
        assert str(caught.value) == f"the process ended ({how}): last words"
    assert not [file for file in set(tmp_path.iterdir()) - before if file.name.startswith("core")]


def test_a_script_that_cannot_be_loaded_is_shown(tmp_path):
    (tmp_path / "script.py").write_text("import not_to_be_found")
    error = failure(str(tmp_path / "script.py"))
    assert error.how == "exit code 1"
    assert "No module named 'not_to_be_found'" in error.printed


def test_a_child_that_hangs_is_killed_with_all_that_it_started(script, tmp_path):
    started = tmp_path / "started"
    path = script(
        f"""
        import subprocess, time
        sleeper = subprocess.Popen(["sleep", "1000"])
        open({str(started)!r}, "w").write(str(sleeper.pid))
        print("sleeping", flush=True)
        time.sleep(1000)
        """
    )
    error = failure(path, timeout=2)
    assert (error.how, error.printed) == ("no answer within 2 s", "sleeping")
    wait_until(lambda: not is_running(int(started.read_text())))


def test_a_child_that_does_not_read_is_killed_too(script):
    path = script("import signal, time\nos.kill(os.getpid(), signal.SIGSTOP)")
    with ChildProcess(path) as child, pytest.raises(ChildEndedError, match="no answer within 1 s"):
        child.request({}, [bytes(1 << 20)], timeout=1)


@pytest.mark.parametrize("held", [False, True], ids=["", "while a fork of the parent has the pipe"])
def test_a_child_ends_with_its_parent_however_that_ends(script, tmp_path, held):
    """It is killed with all that it started, whatever it is doing."""
    path = script(
        """
        import subprocess, time
        print("what is printed meanwhile")
        open(content["told"] + ".part", "w").write(f"{os.getpid()} {subprocess.Popen(['sleep', '1000']).pid}")
        os.rename(content["told"] + ".part", content["told"])
        time.sleep(1000)
        """
    )
    told = tmp_path / "told"
    parent = os.fork()
    if parent == 0:
        try:
            child = ChildProcess(path)
            if held and os.fork() == 0:
                wait_until(lambda: not is_running(child.pid))
                os._exit(0)
            child.request({"told": str(told)})
        finally:
            os._exit(1)
    try:
        wait_until(told.exists)
    finally:
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
    for pid in map(int, told.read_text().split()):
        wait_until(lambda pid=pid: not is_running(pid))


def wait_until(holds, seconds=60):
    for _ in range(seconds * 20):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")


def is_running(pid):
    """Whether the process is there, and has not ended without being asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_threads_may_share_a_child_or_have_their_own(script):
    path = script("print(content['number'])\nreturn content, blobs * 2")

    def work(number):
        own = ask(path, {"number": number}, [b"%d" % number])
        shared = child.request({"number": -number}, [b"%d" % number])
        return own, shared

    with ChildProcess(path) as child, ThreadPoolExecutor(8) as pool:
        for number, (own, shared) in enumerate(pool.map(work, range(8))):
            assert own == ({"number": number}, [b"%d" % number] * 2, str(number))
            assert shared == ({"number": -number}, [b"%d" % number] * 2, str(-number))


def test_a_closed_child_is_gone(script):
    path = script("return {'pid': os.getpid()}, []")
    with ChildProcess(path) as child:
        pid = child.request({}).content["pid"]
    child.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_interrupt_in_the_start_of_a_child_leaves_none(script, monkeypatch):
    started, popen, start = [], subprocess.Popen, threading.Timer.start

    def interrupted(timer):
        start(timer)
        raise KeyboardInterrupt

    monkeypatch.setattr(
        subprocess, "Popen", lambda *given, **named: started.append(popen(*given, **named)) or started[0]
    )
    monkeypatch.setattr(threading.Timer, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ChildProcess(script("return {}, []"))
    assert started[0].poll() is not None and not [
        each for each in threading.enumerate() if isinstance(each, threading.Timer)
    ]


@pytest.mark.parametrize(
    "executable, message",
    [
        ("", "this Python is embedded (sys.executable is empty)"),
        ("/nowhere/python", "/nowhere/python"),
        ("/bin/false", "/bin/false: the process ended (exit code 1)"),
    ],
)
def test_an_interpreter_that_does_not_start_is_an_error(script, monkeypatch, executable, message):
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(ChildStartError) as caught:
        ask(script("return {}, []"))
    assert str(caught.value).startswith("no child process can be started: ")
    assert message in str(caught.value)


def test_a_script_may_close_its_output(script):
    path = script("sys.stdout.close()\nsys.stderr = None\nreturn content, []")
    with ChildProcess(path) as child:
        for number in range(2):
            assert child.request({"number": number}).content == {"number": number}


def test_what_is_not_json_is_refused_before_it_is_sent(script):
    with ChildProcess(script("return content, []")) as child:
        with pytest.raises(TypeError, match="not JSON serializable"):
            child.request({"object": object()})
        assert child.request({"number": 1}).content == {"number": 1}


def test_a_startup_file_that_prints_does_no_harm(script, tmp_path, monkeypatch):
    """As any .pth file in an environment may."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    (site_packages,) = (tmp_path / "env").rglob("site-packages")
    (site_packages / "loud.pth").write_text("import sys; print('loud', flush=True); print('later', end='')\n")
    python = next(path for path in (tmp_path / "env").rglob("python*") if path.stem == "python" and path.is_file())
    monkeypatch.setattr(sys, "executable", str(python))
    assert ask(script("return {'prefix': sys.prefix}, []")).content == {"prefix": str(tmp_path / "env")}


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_leaves_a_child_to_its_parent_with_its_folder_and_what_is_unwritten(script):
    with ChildProcess(script("return content, []"), has_folder=True) as child:
        folder = Path(child.folder)
        message = child_process.packed({"said": 1})
        child._requests.write(message[:10])  # as another thread of the parent may have done when it was forked

        def end():
            child_process.kill_all()
            child._requests.flush()
            weakref.finalize._exitfunc()  # as at the end of a Python process

        wait_for(end)
        child._requests.write(message[10:])
        child._requests.flush()
        reply, _ = child_process.receive(child._replies)
        assert reply["answer"] == {"said": 1}
        assert folder.is_dir()
    assert not folder.exists()
