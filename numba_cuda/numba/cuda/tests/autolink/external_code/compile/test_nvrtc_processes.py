# SPDX-License-Identifier: BSD-2-Clause
"""NVRTC in child processes: what no source and no signal may do to this process, and the headers kept there."""

import dataclasses
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cache_support import wait_for
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.cache.store import CacheMismatchError, reset_store
from numba.cuda.cudadrv.external_code.compile import nvrtc, nvrtc_child, nvrtc_processes, precompiled_headers, programs
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.nvrtc_processes import compile_unit, processes
from numba.cuda.cudadrv.external_code.compile.precompiled_headers import Beginning
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item

TARGET = autolink.Target((9, 0), lto=True)
SMALL = 'extern "C" __device__ int f() { return 42; }'
# A macro that expands to nothing, 2**50 times: it takes time alone.
ENDLESS = "\n".join(
    [
        "#define A0",
        *(f"#define A{i + 1} A{i} A{i}" for i in range(50)),
        'A50 extern "C" __device__ int f() { return 42; }',
    ]
)
# A template for each of 2**40 numbers: it takes memory too.
MANY_TEMPLATES = """
template <unsigned long long A, unsigned long long B> struct S { S<A, (A + B) / 2> a; S<(A + B) / 2 + 1, B> b; };
template <unsigned long long A> struct S<A, A> { char c; };
extern "C" __device__ unsigned long long f() { return sizeof(S<0, (1ull << 40)>); }
"""
LIMITS = r"\nIt may take 1 GiB of memory \(.*COMPILE_MEMORY\) and 2 s \(.*COMPILE_TIME\)\.$"


def unit_of(code, **options):
    return TranslationUnit.of(from_item(autolink.CUDASource(code, name="f.cu", **options)), TARGET)


@pytest.fixture
def fresh():
    """End the child that is kept, before and after: it is started with the limits of the environment."""
    processes.close()
    yield
    processes.close()


def kept_after(code=SMALL):
    compile_unit(unit_of(code))
    return processes.kept


def test_one_child_compiles_all_units_and_the_errors_are_the_same_as_in_this_process(fresh):
    unit, pids = unit_of(SMALL), []
    for wrong in False, True, False:
        each = dataclasses.replace(unit, code="not C++") if wrong else unit
        if wrong:
            with pytest.raises(CompileError) as there:
                compile_unit(each)
            options = nvrtc_processes.nvrtc_options(each)
            with pytest.raises(RuntimeError) as here:
                nvrtc.run_nvrtc(b"not C++", name=each.name, options=options, output="ltoir")
            assert there.value.log == f"{here.value}"
        else:
            compile_unit(each)
        pids.append(processes.kept.pid)
    assert len(set(pids)) == 1


def test_a_child_compiles_in_the_directory_of_now(fresh, tmp_path, monkeypatch):
    kept_after()
    (tmp_path / "here.h").write_text("#define HERE 1")
    monkeypatch.chdir(tmp_path)
    compile_unit(unit_of('#include "here.h"\n__device__ int f() { return HERE; }'))


@pytest.mark.parametrize(
    "body, message",
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", r"ended \(SIGKILL\)"),
        ("raise SystemExit('no room')", r"ended \(exit code 1\): no room"),
        ("def answer(*_): raise OSError('no room')", "failed: no room$"),
    ],
)
def test_a_process_that_does_not_answer(fresh, tmp_path, monkeypatch, body, message):
    (tmp_path / "child.py").write_text(body)
    with monkeypatch.context() as patches:
        patches.setattr(nvrtc_child, "__file__", str(tmp_path / "child.py"))
        with pytest.raises(CompileError, match=f"NVRTC {message}"):
            compile_unit(unit_of(SMALL))
    compile_unit(unit_of(SMALL))


HOSTILE = {
    "200 kB of comment openers": ("/*" * 100_000, "error|ended"),
    "200 kB of open parentheses": ("int f() { return " + "(" * 200_000, "error|ended"),
    "a recursion of templates": (
        "template <int N> struct S : S<N + 1> {}; __device__ int f() { return sizeof(S<0>); }",
        "error|ended",
    ),
    "memory without end": (
        "template <int N> struct S { S<N * 2> a[1000]; S<N * 2 + 1> b; };"
        " template <int N> constexpr int g() { return sizeof(S<N>) + g<N + 1>(); }"
        " __device__ int f() { return g<0>(); }",
        "error|ended",
    ),
    "a macro that takes for ever": (ENDLESS, r"no answer within 2 s.*" + LIMITS),
    "a constant of many templates": (MANY_TEMPLATES, r"(no answer within 2 s|out of memory)(.|\n)*" + LIMITS),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_source_takes_this_process_down(fresh, monkeypatch, kind):
    monkeypatch.setenv(nvrtc_processes.TIME, "2")
    monkeypatch.setenv(nvrtc_processes.MEMORY, "1G")
    code, message = HOSTILE[kind]
    with pytest.raises(CompileError, match=message) as caught:
        compile_unit(unit_of(code))
    assert len(f"{caught.value}") < 1 << 20
    monkeypatch.delenv(nvrtc_processes.TIME)
    compile_unit(unit_of(SMALL))


def test_a_source_that_reaches_a_limit_is_compiled_once(fresh, monkeypatch):
    """With the checks of the functions that are called: not again without them."""
    monkeypatch.setenv(nvrtc_processes.TIME, "2")
    runs = []
    request = nvrtc_processes.run_in_child
    monkeypatch.setattr(nvrtc_processes, "run_in_child", lambda *given: runs.append(given) or request(*given))

    class Endless(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("f", returns=x)

        def __numba_cuda_link__(self, x):
            return autolink.CUDASource(ENDLESS, name="f.cu")

    endless = Endless()

    @cuda.jit
    def kernel(x):
        x[0] = endless(x[0])

    with pytest.raises(autolink.LinkError, match="no answer within 2 s"):
        autolink.build(kernel, "void(int32[::1])", cc=(9, 0))
    assert len(runs) == 1


def test_a_child_that_is_killed_in_the_middle_is_an_error_of_that_source_alone(fresh):
    child = kept_after()
    threading.Timer(0.3, os.kill, (child.pid, signal.SIGKILL)).start()
    with pytest.raises(CompileError, match=r"NVRTC ended \(SIGKILL\)"):
        compile_unit(unit_of(ENDLESS))
    assert kept_after().pid != child.pid


def test_a_child_that_was_killed_while_it_was_idle_is_replaced(fresh):
    child = kept_after()
    child.kill()
    child._process.wait()
    assert kept_after() is not child


def interrupt_after(seconds, call):
    """Call, and return whether a signal handler, as Ctrl-C has, raised meanwhile."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


def test_an_interrupt_ends_a_compile_and_no_other(fresh):
    """Another thread's goes on; its child is not the one that is killed."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(compile_unit, unit_of("#include <cuda/std/cstdint>\n" + SMALL))
        start = time.process_time()
        assert interrupt_after(0.5, lambda: compile_unit(unit_of(ENDLESS)))
        assert time.process_time() - start < 1
        assert other.result().code
    assert kept_after() is not None


def test_an_interrupt_ends_all_of_a_concurrent_compile(fresh, monkeypatch):
    monkeypatch.setenv(nvrtc_processes.JOBS, "2")
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.compile.programs.CachedUnit.is_slow", lambda *_: True)
    sources = [from_item(autolink.CUDASource(ENDLESS + f"// {n}", name=f"f{n}.cu")) for n in range(3)]
    assert interrupt_after(1.5, lambda: programs.all_compiled(sources, TARGET))
    compile_unit(unit_of(SMALL))


def test_builds_succeed_after_interrupts_at_random_moments(fresh, thorough):
    """300 with --thorough, of those that come before the build has ended."""
    draw, before = random.Random(5), len(children())
    remaining, number = 300 if thorough else 15, 0
    while remaining:
        source = from_item(autolink.CUDASource(f'extern "C" __device__ int f() {{ return {number}; }}', name="f.cu"))
        if draw.random() < 0.5:
            processes.close()  # so that the start of a child is interrupted too
        remaining -= interrupt_after(draw.random() * 0.1, lambda source=source: programs.compiled(source, TARGET))
        assert programs.compiled(source, TARGET).code
        number += 1
    assert len(children()) <= before + 1


def children():
    """Return the child processes of this process, of any kind."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, parent = path.read_text(), int(path.read_text().rpartition(")")[2].split()[1])
            command = (path.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and b"child_main.py" in command and " Z " not in name:
            found.append(int(path.parent.name))
    return found


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_has_a_child_of_its_own(fresh):
    child = kept_after()

    def work():
        assert processes.kept is None
        assert kept_after().pid != child.pid
        processes.close()

    wait_for(work)
    assert kept_after() is child


def test_an_ending_interpreter_and_one_that_cannot_start_children_compile_in_this_process(fresh, monkeypatch, caplog):
    code = compile_unit(unit_of(SMALL)).code
    processes.close()
    with monkeypatch.context() as patches:
        patches.setattr(sys, "executable", "")
        assert compile_unit(unit_of(SMALL)).code == code
    with monkeypatch.context() as patches:
        patches.setattr(sys, "executable", "/nowhere/python")
        assert compile_unit(unit_of(SMALL)).code == code
    assert processes.kept is None


# Precompiled headers


CUB = "#include <cub/block/block_reduce.cuh>\n"


def cub(number):
    return from_item(autolink.CUDASource(f'{CUB}extern "C" __device__ int f() {{ return {number}; }}', name="f.cu"))


def wait_until_made(child, count=1):
    for _ in range(1200):
        if len(list(Path(child.folder).glob("*.pch"))) == count:
            return
        time.sleep(0.05)
    raise AssertionError("no headers were precompiled within a minute")


@pytest.fixture
def uses(monkeypatch):
    """List, for each compile in a child, whether it uses precompiled headers."""
    found = []
    request = nvrtc_processes.run_in_child

    def noted(child, unit, code, options, *others, **how):
        found.append(any(option.startswith("--use-pch") for option in options))
        return request(child, unit, code, options, *others, **how)

    monkeypatch.setattr(nvrtc_processes, "run_in_child", noted)
    return found


@pytest.fixture
def headers(tmp_path, monkeypatch):
    """A folder with a header that counts as large."""
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.compile.program_cache.MANY_HEADERS", 0)
    header = tmp_path / "include" / "big.h"
    header.parent.mkdir()
    header.write_text("template <class T> __device__ T twice(T x) { return x + x; }\n#define NUMBER 1\n")
    long_ago = time.time() - 1000
    os.utime(header, (long_ago, long_ago))
    # Its status changed just now, and a change from now on has to show.
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.headers.file_state._TIME_MARGIN", 0)
    time.sleep(0.02)
    return header


def source_of(header, text, first="#include <big.h>\n"):
    return from_item(
        autolink.CUDASource(
            f'{first}extern "C" __device__ int f(int x) {{ return twice(x) + {text}; }}',
            name="f.cu",
            include_paths=[str(header.parent)],
        )
    )


def plain_code(source):
    unit = TranslationUnit.of(source, TARGET)
    options = nvrtc_processes.nvrtc_options(unit)
    return nvrtc.run_nvrtc(unit.code.encode(), name=unit.name, options=options, output=unit.output).code


@pytest.mark.counted
def test_headers_are_precompiled_after_the_first_compile_and_give_the_same_bytes(fresh, headers, uses, monkeypatch):
    programs.compiled(source_of(headers, "1"), TARGET)
    wait_until_made(processes.kept)
    second = source_of(headers, "2")
    assert programs.compiled(second, TARGET).code == plain_code(second)
    assert uses == [False, True]
    # A line directive, which C++ by name sets, is kept for what follows.
    third = source_of(headers, "__LINE__", '#line 7 "their.cu"\n#include <big.h>\n')
    assert programs.compiled(third, TARGET).code == plain_code(third)
    with pytest.raises(CompileError, match=r'their.cu\(8\): error: identifier "nothing" is undefined'):
        programs.compiled(source_of(headers, "nothing", '#line 7 "their.cu"\n#include <big.h>\n'), TARGET)
    quoted = dataclasses.replace(
        unit_of("#include <big.h>\nnothing;\n", include_paths=[headers.parent]), name='say("no")'
    )
    with pytest.raises(CompileError) as caught:
        compile_unit(quoted)
    assert "precompiled header" not in caught.value.log and 'say("no")(2): error' in caught.value.log
    assert uses == [False, True, True, True, True]
    folder = processes.kept.folder
    monkeypatch.setenv(precompiled_headers.VARIABLE, "0")
    programs.compiled(source_of(headers, "4", "#define OTHER\n#include <big.h>\n"), TARGET)
    assert len(list(Path(folder).glob("*.pch"))) == 1
    processes.close()
    assert not os.path.exists(folder)


def test_headers_are_precompiled_when_no_request_comes_or_one_more_was_answered(monkeypatch):
    begun = []
    monkeypatch.setattr(nvrtc_child, "_begin", begun.append)
    monkeypatch.setattr(os, "waitpid", lambda *_: (0, 0))
    for asked, is_idle, expected in [(["a"], True, ["a"]), (["b"], False, ["a"]), ([], False, ["a", "b"])]:
        nvrtc_child._asked.extend(asked)
        nvrtc_child.after_answer(lambda _, is_idle=is_idle: is_idle)
        assert begun == expected


@pytest.mark.counted
def test_a_changed_header_is_read_again_though_its_time_is_set_back(fresh, headers, uses):
    programs.compiled(source_of(headers, "NUMBER"), TARGET)
    wait_until_made(processes.kept)
    status = headers.stat()
    headers.write_text(headers.read_text().replace("NUMBER 1", "NUMBER 2"))
    os.utime(headers, ns=(status.st_atime_ns, status.st_mtime_ns))
    second = source_of(headers, "NUMBER + 0")
    assert programs.compiled(second, TARGET).code == plain_code(second)
    assert uses == [False, False]


@pytest.mark.counted
def test_a_folder_that_was_just_written_to_may_be_searched(fresh, headers, uses, tmp_path):
    other = tmp_path / "other"
    other.mkdir()

    def source(number):
        (other / "unrelated.txt").write_text(str(number))
        text = f'#include <big.h>\nextern "C" __device__ int f(int x) {{ return twice(x) + {number}; }}'
        return from_item(autolink.CUDASource(text, name="f.cu", include_paths=[str(other), str(headers.parent)]))

    programs.compiled(source(1), TARGET)
    wait_until_made(processes.kept)
    programs.compiled(source(2), TARGET)
    (other / "big.h").write_text("template <class T> __device__ T twice(T x) { return x * 2; }\n")
    programs.compiled(source(3), TARGET)
    assert uses == [False, True, False]


@pytest.mark.counted
def test_two_beginnings_are_kept_and_the_oldest_goes(fresh, headers, uses):
    for number in range(3):
        programs.compiled(source_of(headers, "1", f"#define N{number}\n#include <big.h>\n"), TARGET)
        wait_until_made(processes.kept, min(number + 1, 2))
    programs.compiled(source_of(headers, "2", "#define N0\n#include <big.h>\n"), TARGET)
    programs.compiled(source_of(headers, "2", "#define N2\n#include <big.h>\n"), TARGET)
    assert uses == [False] * 4 + [True]


@pytest.fixture
def kept_store():
    """The store of other tests, put back after the test."""
    before = reset_store()
    yield
    reset_store(before)


@pytest.mark.counted
def test_verify_mode_compiles_without_them_too(fresh, headers, uses, monkeypatch, kept_store):
    programs.compiled(source_of(headers, "11"), TARGET)
    wait_until_made(processes.kept)
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE", "verify")
    reset_store()
    programs.compiled(source_of(headers, "12"), TARGET)
    assert uses == [False, True, False]
    unit = unit_of(SMALL)
    one = compile_unit(unit)
    with pytest.raises(CacheMismatchError, match="from precompiled headers differs from what is built now"):
        nvrtc_processes._verify(unit, one, dataclasses.replace(one, code=b""))


@pytest.mark.parametrize(
    "code, directives, rest",
    [
        ("#include <a>\nint x;\n", "#include <a>\n", "#line 2 \nint x;\n"),
        (
            "// a\n\n#define A\n#include <a>\n#define B\nint x;\n",
            "#define A\n#include <a>\n",
            "#line 5 \n#define B\nint x;\n",
        ),
        ('#line 3 "b"\n#include <a>\nint x;\n', "#include <a>\n", '#line 4 "b"\nint x;\n'),
        ("#if A\n#include <a>\n#endif\nint x;\n", "#if A\n#include <a>\n#endif\n", "#line 4 \nint x;\n"),
        ("/* a\n#include <b>\n*/\n#include <a>\nx\n", "#include <a>\n", "#line 5 \nx\n"),
        ("#define A \\\n 1\n#include <a>\nx\n", "#define A \\\n 1\n#include <a>\n", "#line 4 \nx\n"),
        ("#if A\n#include <a>\nint x;\n#endif\n", None, None),
        ("int x;\n#include <a>\n", None, None),
        ("#error a\n#include <a>\n", None, None),
        ("#define A /* a\n*/ 1\n#include <a>\n", None, None),
        ("", None, None),
    ],
)
def test_what_a_source_begins_with(code, directives, rest):
    assert Beginning.of(code) == (None if directives is None else (directives, rest))


ORPHAN = """
import os, signal, sys, time
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.compile import nvrtc_processes, program_cache, programs
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item
program_cache.MANY_HEADERS = 0
source = autolink.CUDASource("#include <cuda/std/cstdint>\\n#include <cuda_fp16.h>\\n__device__ int f() { return 1; }")
programs.compiled(from_item(source), autolink.Target((9, 0), lto=True))
child = nvrtc_processes.processes.kept
while not os.listdir(child.folder):
    time.sleep(0.01)
print(child.pid, child.folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_child_and_no_file_is_left_of_a_process_that_is_killed_while_headers_are_precompiled(tmp_path):
    done = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True, timeout=300)
    pid, folder = done.stdout.split()
    for _ in range(600):
        if not os.path.exists(folder) and not any(_in_session(int(pid))):
            return
        time.sleep(0.05)
    raise AssertionError(f"left: {folder if os.path.exists(folder) else [*_in_session(int(pid))]}")


def _in_session(leader):
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            yield path.parent.name
