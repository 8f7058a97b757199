# SPDX-License-Identifier: BSD-2-Clause
"""The command line, as a user would type it."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from autolink_support import symbols
from numba import cuda
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.cache.store import reset_store

import numba_cuda_autolink
from numba_cuda_autolink.commands import cache_command, main_command
from numba_cuda_autolink.commands.main_command import main

KERNELS = """
import types
from numba import cuda
from numba.cuda import autolink
from beside import AMOUNT


class Add(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("add", returns=x)

    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(f'extern "C" __device__ int add(int x) {{ return x + {AMOUNT}; }}', name="add.cu")


add = Add()


@cuda.jit
def kernel(x):
    x[0] = add(x[0])


def function(x):
    x[0] = 1


def plain(x):
    x[0] = x[1] + "a"


space = types.SimpleNamespace(kernel=kernel)
unnamed = lambda x: None


@cuda.jit(device=True)
def twice(x):
    return 2 * add(x)


@cuda.jit
def wrong(x):
    x[0] = undeclared(x[0])


@cuda.jit
def image(pixels, out, n):
    for i in range(n):
        out[i] = pixels[i, 0] * out.size
"""
SIGNATURE = "void(int32[::1])"


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    (tmp_path / "commanded.py").write_text(KERNELS)
    (tmp_path / "beside.py").write_text("AMOUNT = 3\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield str(tmp_path / "commanded.py")
    for name in ("commanded", "beside"):
        sys.modules.pop(name, None)


def failing(capsys, *arguments):
    """Return the exit code and the error output of a command that fails."""
    try:
        code = main(arguments)
    except SystemExit as error:
        code = error.code
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.err


def test_explain_prints_the_report(kernels, capsys):
    assert main(["explain", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "9.0"]) == 0
    text = capsys.readouterr().out
    line = KERNELS.splitlines().index("    x[0] = add(x[0])") + 1
    assert f"commanded.py:{line}" in text
    assert "add.cu" in text
    assert "registers" in text


def test_explain_shows_what_changed_since_an_earlier_report(kernels, tmp_path, capsys):
    command = ["explain", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "9.0"]
    earlier = tmp_path / "earlier.json"
    assert main([*command, "--json", "-o", str(earlier)]) == 0
    capsys.readouterr()
    assert main([*command, "--against", str(earlier)]) == 0
    assert capsys.readouterr().out == "nothing changed\n"
    earlier.write_text(re.sub(r'"registers": (?=\d)', '"registers": 9', earlier.read_text()))
    assert main([*command, "--against", str(earlier)]) == 0
    assert "sm_90: registers: 9" in capsys.readouterr().out
    assert main([*command, "--against", str(earlier), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"][0]["what"] == "registers"
    page = tmp_path / "changes.html"
    assert main([*command, "--against", str(earlier), "-o", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}: changes as HTML\n"
    assert "<td><div>registers</div></td>" in page.read_text()
    assert main([*command, "--against", str(earlier), "--svg"]) == 2
    assert "as text, JSON or HTML, got svg" in capsys.readouterr().err
    assert main([*command, "--against", str(kernels)]) == 1
    assert "is not a report" in capsys.readouterr().err


@pytest.mark.skipif(cuda.is_available(), reason="on a GPU, the file is imported for its architecture")
@pytest.mark.parametrize("options", [(), ("--sig", SIGNATURE)])
def test_explain_reports_what_was_built_as_the_file_was_imported(options, tmp_path, monkeypatch, capsys):
    function = f"eager_{os.urandom(8).hex()}"  # which no cache has
    (tmp_path / "eager.py").write_text(
        "from numba import cuda\n"
        "from numba.cuda import autolink\n"
        f'library = autolink.cxx("__device__ int {function}(int x) {{ return x + 1; }}")\n'
        f"@cuda.jit('{SIGNATURE}')\n"
        f"def kernel(x):\n    x[0] = library.{function}(x[0])\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["explain", f"{tmp_path / 'eager.py'}:kernel", "--cc", "9.0", *options]) == 0
    printed = capsys.readouterr().out
    assert "  link for sm_90: built in" in printed
    assert re.search(r"^    hook: .*: 1 built$", printed, re.MULTILINE)
    assert re.search(r"^    NVVM: .*: 1 built$", printed, re.MULTILINE)


def test_explain_builds_a_kernel_that_was_compiled_at_import_for_each_architecture(tmp_path, monkeypatch, capsys):
    (tmp_path / "two.py").write_text(
        "from numba import cuda\n"
        "from numba.cuda import autolink\n"
        "class Number(autolink.DeviceCallable):\n"
        "    def __numba_cuda_call__(self, x):\n"
        "        return autolink.Extern('number', returns=x)\n"
        "    def __numba_cuda_link__(self, x):\n"
        "        arch = autolink.current_target().arch\n"
        "        return autolink.CUDASource(f'extern \"C\" __device__ int number(int x) {{ return x; }} // {arch}')\n"
        "number = Number()\n"
        f"@cuda.jit('{SIGNATURE}')\n"
        "def kernel(x):\n    x[0] = number(x[0])\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    for cc in "8.0", "9.0", "8.0,9.0":
        assert main(["explain", f"{tmp_path / 'two.py'}:kernel", "--cc", cc, "--json"]) == 0
        builds = json.loads(capsys.readouterr().out)["builds"]
        codes = [(build["arch"], build["calls"][0]["returned"][0]["sha256"]) for build in builds]
        text = 'extern "C" __device__ int number(int x) {{ return x; }} // {}'
        arches = [f"sm_{each.replace('.', '')}" for each in cc.split(",")]
        assert codes == [(arch, hashlib.sha256(text.format(arch).encode()).hexdigest()) for arch in arches]


@pytest.mark.parametrize("by_command", [True, False])
def test_an_error_is_at_one_place_whatever_the_path_of_the_file(by_command, tmp_path, monkeypatch, capsys):
    source = (
        "from numba.cuda import autolink\n"
        "library = autolink.cxx('__device__ int f(int x) { return x + }')\n"
        "def kernel(x):\n    x[0] = library.f(x[0])\n"
    )
    (tmp_path / "here").mkdir()
    (tmp_path / "one_place.py").write_text(source)
    monkeypatch.chdir(tmp_path / "here")
    path = "../here/../one_place.py"
    if by_command:
        text = failing(capsys, "explain", f"{path}:kernel", "--sig", SIGNATURE, "--cc", "9.0")[1]
    else:
        names = {}
        exec(compile(source, f"{tmp_path}/here/{path}", "exec"), names)
        with pytest.raises(TypingError) as caught:
            autolink.build(names["kernel"], SIGNATURE, cc="9.0")
        text = str(caught.value)
    assert f"at: {tmp_path / 'one_place.py'}:2\n" in text
    assert f"called from: {tmp_path / 'one_place.py'}:4 in kernel\n" in text
    assert text.count("one_place.py") == 2


@pytest.mark.parametrize(("form", "start"), [("--json", "{"), ("--html", "<"), ("--dot", "digraph")])
def test_explain_prints_other_forms(kernels, capsys, form, start):
    assert main(["explain", f"{kernels}:space.kernel", "--sig", SIGNATURE, "--cc", "9.0", form]) == 0
    text = capsys.readouterr().out
    assert text.lstrip().startswith(start)
    assert "add.cu" in text
    if form == "--json":
        json.loads(text)


@pytest.mark.parametrize(("output", "start"), [("cubin", b"\x7fELF"), ("ptx", b"//"), ("ltoir", b"\xed\x43\x4e\x7f")])
def test_build_writes_code_and_a_manifest(kernels, tmp_path, capsys, output, start):
    out = tmp_path / f"built.{output}"
    assert main(["build", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "9.0", "-o", str(out)]) == 0
    code = out.read_bytes()
    assert code.startswith(start)
    manifest = json.loads((tmp_path / f"built.{output}.json").read_text())
    (kernel,) = manifest["kernels"]
    assert manifest["output"] == output
    assert (kernel["architecture"], kernel["bytes"]) == ("sm_90", len(code))
    assert [planned["name"] for planned in kernel["inputs"]] == ["add.cu"]
    assert manifest["versions"]["numba-cuda"]
    assert kernel["entry_name"] == "kernel"
    if output == "cubin":
        assert "kernel" in symbols(code)
    assert str(out) in capsys.readouterr().out


def test_build_makes_one_fatbin_for_several_architectures(kernels, tmp_path):
    nvfatbin = pytest.importorskip("cuda.bindings.nvfatbin")
    try:
        nvfatbin.version()
    except Exception as error:
        pytest.skip(f"needs nvFatbin of this CUDA version: {error}")
    out = tmp_path / "built.fatbin"
    assert main(["build", f"{kernels}:function", "--sig", SIGNATURE, "--cc", "8.0,9.0a", "-o", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x50\xed\x55\xba")
    manifest = json.loads((tmp_path / "built.fatbin.json").read_text())
    assert [kernel["architecture"] for kernel in manifest["kernels"]] == ["sm_80", "sm_90a"]
    assert {kernel["entry_name"] for kernel in manifest["kernels"]} == {"function"}
    assert out.read_bytes().count(b"\x7fELF") == 2 or len(out.read_bytes()) > 1000  # compressed or not


def test_build_writes_a_header_alone_or_with_the_code(kernels, tmp_path, capsys):
    out, head = tmp_path / "built.cubin", tmp_path / "built.h"
    command = ["build", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "9.0", "--name", "plus", "--header", str(head)]
    assert main(command) == 0
    assert f"{head}: " in capsys.readouterr().out
    assert "static inline CUresult plus_launch(plus_kernel *kernel" in head.read_text()
    assert main([*command, "-o", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x7fELF")


def test_build_writes_finished_kernels(kernels, tmp_path, capsys):
    out = tmp_path / "built.kernels"
    assert main(["build", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "8.0,9.0a", "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: {out.stat().st_size} bytes, kernel for sm_80, sm_90a\n"
    library = numba_cuda_autolink.load(out)
    assert list(library) == ["kernel"] and len(library.kernel.signatures) == 1
    assert [path.name for path in tmp_path.glob("built*")] == ["built.kernels"]


def test_build_adds_ptx_for_the_emulator(kernels, tmp_path, capsys):
    out, x = tmp_path / "built.kernels", np.ones(1, np.int32)
    typed = ["build", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "9.0,8.0", "--ptx", "-o"]
    assert main([*typed, str(out)]) == 0
    assert capsys.readouterr().out.endswith(", and PTX\n")
    assert {each["runs_on"] for each in numba_cuda_autolink.load(out).describe("kernel")} >= {"sm_80", "compute_90"}
    numba_cuda_autolink.load(out, emulate=True).kernel[1, 1](x)
    assert x.tolist() == [4]
    code, printed = failing(capsys, *typed, str(tmp_path / "built.fatbin"))
    assert (code, "--ptx is for .kernels files" in printed) == (2, True)


# By name: the exit code, the arguments (KERNEL stands for those of most), and what is printed.
ERRORS = {
    "no kernel named": (2, "build FILE --cc 9.0 -o out", "write FILE.py:KERNEL"),
    "no such file": (1, "explain missing.py:kernel", "missing.py: no such file"),
    "no such kernel": (1, "explain FILE:kernal", "has no 'kernal'; did you mean kernel?"),
    "not a kernel": (
        1,
        "explain FILE:add --sig SIGNATURE --cc 9.0",
        "add is neither a kernel nor a Python function: Add; kernels in it: kernel, wrong",
    ),
    "no compute capability": (
        2,
        "explain FILE:kernel --cc ninety",
        "'ninety' is not a compute capability, such as 9.0, 9.0a or sm_90; several: 8.0,9.0,10.0",
    ),
    "unknown compute capability": (
        2,
        "explain FILE:kernel --sig SIGNATURE --cc 1.0",
        "--cc 1.0: this CUDA toolkit does not know that compute capability; did you mean 10.0?\n  known: ",
    ),
    "a later compute capability of a generation": (
        2,
        "explain FILE:kernel --sig SIGNATURE --cc 9.9",
        "\n  what to do: pass 9.0, whose code runs on 9.9 too\n",
    ),
    "a compute capability of the future": (
        2,
        "build FILE:kernel --sig SIGNATURE --cc 99.0 -o out",
        "\n  what to do: install a CUDA toolkit that knows it\n",
    ),
    "a compute capability of one number": (2, "explain FILE:kernel --cc 9", "; did you mean 9.0?\n"),
    "a short option alone": (
        2,
        "-x",
        "unrecognized arguments: -x\n  options: -h/--help, -V/--version\n  commands: explain,",
    ),
    "a short option before a command": (2, "-x build", "numba-cuda-autolink: unrecognized arguments: -x\n  options: "),
    "a short option of a command": (
        2,
        "build -x",
        "unrecognized arguments: -x\n  options: -h/--help, --sig, --cc, -o,",
    ),
    "a short option of an action": (
        2,
        "cache -x",
        "unrecognized arguments: -x\n  options: -h/--help\n  commands: info,",
    ),
    "no action": (2, "cache", "are required: ACTION\n  commands: info, clear, prune, export, import, why\n"),
    "an option of a program": (2, "capture python app.py --foo", "are required: -o JOBS.json\n"),
    "bad signature": (2, "explain FILE:kernel --sig 'void(' --cc 9.0", "--sig 'void(' is not a signature: "),
    "a result": (
        2,
        "build FILE:kernel --sig 'float32(float32[::1])' --cc 9.0 -o out.cubin",
        "--sig 'float32(float32[::1])': a kernel returns nothing, but the signature returns float32",
    ),
    "unknown type": (
        2,
        "explain FILE:kernel --sig 'void(float33)' --cc 9.0",
        "is not a signature: name 'float33' is not defined",
    ),
    "typing error": (1, "explain FILE:wrong --sig SIGNATURE --cc 9.0", "undeclared"),
    "several cubins": (
        2,
        "build FILE:kernel --sig SIGNATURE --cc 8.0,9.0 -o out.cubin",
        "a cubin is for one compute capability",
    ),
    "nothing to write": (2, "build KERNEL", "pass -o OUT, --header"),
    "a file as a folder": (1, "build KERNEL -o empty.json/out.ptx", "empty.json is a file, not a folder"),
    "a signature by its place": (
        2,
        "build kernels.py:scale void(float32) --cc 9.0",
        "unrecognized arguments: void(float32)\n  what to do: write the signature after --sig: --sig 'void(float32)'",
    ),
    "an option without a command": (2, "--verzion", "unrecognized arguments: --verzion; did you mean --version?"),
    "an option like no other": (2, "explain FILE:kernel --foo", "unrecognized arguments: --foo\n"),
    "exchanged letters": (2, "explain FILE:kernel --sgi x", "unrecognized arguments: --sgi x; did you mean --sig?"),
    "an option alone": (2, "build --verbose", "unrecognized arguments: --verbose"),
    "another suffix": (2, "build KERNEL -o out.ptx --output cubin", "-o out.ptx: cubin is written there"),
    "a header of PTX": (2, "build KERNEL --header out.h --output ptx", "a header contains cubins"),
    "a header with a name that is not one in C": (
        1,
        "build KERNEL --header out.h --name short",
        "'short' is not a name in C",
    ),
    "a name that is not an identifier": (2, "build KERNEL -o out --name 'a b'", "--name 'a b' is not a C identifier"),
    "a kernel without a name": (
        2,
        "build FILE:unnamed --sig SIGNATURE --cc 9.0 -o out",
        "<lambda> is not a C identifier\n  what to do: pass --name",
    ),
    "no signature": (
        2,
        "build FILE:kernel --cc 9.0 -o out",
        "--sig is missing: kernel(x) is not compiled for a signature yet\n  what to do: pass the types of its",
    ),
    "no such folder": (
        1,
        "build KERNEL -o missing/out.cubin",
        "missing/out.cubin: there is no folder missing\n  what to do: mkdir -p missing",
    ),
    "no folder for the header": (1, "build KERNEL --header missing/out.h", "missing/out.h: there is no folder missing"),
    "a folder": (1, "build KERNEL -o .", ". is a folder"),
    "unknown suffix": (
        2,
        "build KERNEL -o out.exe",
        "out.exe: no kind of output has the suffix .exe\n  what to do: use .cubin, .ptx, .ltoir, .fatbin, .kernels",
    ),
    "unknown form": (2, "explain KERNEL -o out.pdf", "out.pdf: no form of a report has the suffix .pdf"),
    "several on standard output": (
        2,
        "build FILE:kernel --sig SIGNATURE --cc 8.0,9.0 -o -",
        "-o - writes the code for one compute capability",
    ),
    "finished kernels on standard output": (
        2,
        "build KERNEL -o - --output kernels",
        "-o - writes the code for one compute capability",
    ),
    "a folder to list": (1, "explain folder.py", "folder.py is a folder without Python files\n"),
    "no such file to list": (1, "explain missing.py", "missing.py: no such file"),
    "no earlier report": (1, "explain KERNEL --against missing.json", "missing.json: No such file or directory"),
    "listings as text": (
        2,
        "explain KERNEL --listings",
        "--listings shows the code of a kernel in HTML and JSON, got text\n  what to do: pass -o report.html",
    ),
    "a form that is not the file's": (
        2,
        "explain KERNEL --html -o out.json",
        "--html contradicts the suffix of out.json\n  what to do: leave one of the two out",
    ),
    "listings of a graph": (2, "explain KERNEL --listings -o out.dot", "in HTML and JSON, got dot"),
    "listings of a file": (2, "explain FILE --listings --json", "in HTML and JSON, got a file"),
    "a drawing of a file": (2, "explain FILE --svg", "alone lists its kernels, as text or JSON"),
    "a device function": (
        1,
        "build FILE:twice --sig 'int32(int32)' --cc 9.0 -o out",
        "twice is a device function, which is built into the kernels that call it\n"
        "  what to do: see what it brings to them: numba-cuda-autolink explain ",
    ),
    "another result": (
        1,
        "explain FILE:twice --sig 'float32(int32)' --cc 9.0",
        "twice returns int64, but the signature returns float32",
    ),
    "a signature of another kernel": (
        2,
        "explain FILE:kernel --sig 'void(int32[::1], int32)' --cc 9.0",
        "--sig 'void(int32[::1], int32)': the signature has 2 arguments, but the kernel is kernel(x)\n"
        "  what to do: give one type for each parameter of the kernel, such as 'void(float32[::1])'",
    ),
    "no signature of several arguments": (
        2,
        "explain FILE:image --cc 9.0",
        "such as --sig 'void(float32[:, ::1], float32[::1], int32)'",
    ),
    "half a signature": (
        2,
        "explain FILE:image --sig 'void(' --cc 9.0",
        "what to do: write the types, such as 'void(float32[:, ::1], float32[::1], int32)'",
    ),
    "no signature of a device function": (2, "explain FILE:twice --cc 9.0", "such as --sig 'float32(float32)'"),
    "no name like it": (1, "explain FILE:cud", "commanded.py has no 'cud'; kernels in it: kernel, wrong, image\n"),
    "a name like that of a file": (1, "explain commanded.pi:kernel", "no such file; did you mean commanded.py?"),
    "a header of another suffix": (2, "build KERNEL --header out.txt", "what to do: pass --header out.h"),
    "a header on standard output": (2, "build KERNEL --header -", "what to do: pass --header FILE.h"),
    "a header as -o": (2, "build KERNEL -o out.h", "what to do: pass --header out.h"),
    "no compute capability to build for": (2, "build FILE:kernel", "required: --cc 9.0[,10.0]\n"),
    "a folder of a cache as an argument": (
        2,
        "cache info folder.py",
        "what to do: name a cache's folder so: NUMBA_CUDA_AUTOLINK_CACHE_DIR=folder.py numba-cuda-autolink cache info",
    ),
    "a file without its kernel": (
        2,
        "build FILE --cc 9.0",
        "does not name a kernel: write FILE.py:KERNEL; numba-cuda-autolink explain ",
    ),
    "a folder of kernels": (
        1,
        "explain .:kernel --cc 9.0",
        ". is a folder\n  what to do: name a Python file in it: beside.py and commanded.py;\n",
    ),
    "a missing file of entries": (1, "cache import missing", "missing: no such file\n  what to do: write one with"),
    "a folder for entries": (1, "cache export missing/entries", "there is no folder missing"),
    "a full disk": (1, "explain FILE --json -o /dev/full", "/dev/full: No space left on device"),
    "a folder for jobs": (1, "capture -o missing/jobs.json -- false", "there is no folder missing"),
    "nothing captured": (
        3,
        f"capture -o jobs.json -- {sys.executable} -c 'exit(3)'",
        "compiled no kernels: jobs.json is not written",
    ),
    "nothing to prebuild": (1, "prebuild empty.json", "empty.json lists no kernels"),
    "an error of Numba": (
        1,
        "explain FILE:plain --sig SIGNATURE --cc 9.0",
        "No implementation of add(int32, 'a')\n  at: PATH:29 in plain\n      x[0] = x[1] + \"a\"\n"
        "             ^^^^^^^^^^",
    ),
    "a folder of entries to read": (1, "cache import folder.py", "folder.py is a folder\n  what to do: name a file"),
    "not a Python file": (1, "explain empty.json:kernel", "empty.json is not a Python file\n  what to do: name one"),
    "no size": (2, "cache prune much", "'much' is not a size"),
    "no command": (2, "", "COMMAND"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_reported_without_a_traceback(kernels, capsys, monkeypatch, tmp_path, name):
    code, arguments, message = ERRORS[name]
    monkeypatch.chdir(tmp_path)
    Path("empty.json").write_text('{"format": 1, "path": [], "jobs": []}')
    Path("folder.py").mkdir()
    typed = arguments.replace("KERNEL", "FILE:kernel --sig SIGNATURE --cc 9.0").replace("SIGNATURE", f"'{SIGNATURE}'")
    found, printed = failing(capsys, *shlex.split(typed.replace("FILE", kernels)))
    assert message.replace("PATH", kernels) in printed
    assert not Path("jobs.json").exists()
    assert found == code


DECORATED = """
from numba import cuda


@cuda.jit("void(float32[::1])")
def good(x):
    x[0] = 1


@cuda.jit("void(float32)")
def bad(x):
    x[0] = 1


@cuda.jit(["void(float32[::1])", "void(foo)"])
def misspelt(x):
    x[0] = 2


@cuda.jit("float32(float32[::1])", device=True)
def attribute(x):
    return x[0].q


@cuda.jit("void(float32[::1])", fastmaths=True)
def option(x):
    x[0] = 3


@cuda.jit
def later(x):
    x[0] = 4
"""


def test_a_decorator_that_fails_hides_no_other_kernel(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "decorated.py"
    path.write_text(DECORATED)
    assert main(["explain", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    why = "    cannot be compiled: "
    assert [line for line in lines if line.startswith("  ") and line[2] != " "] == [
        "  good(x)       kernel, line 5, for void(float32[::1])",
        "  bad(x)        kernel, line 10",
        "  misspelt(x)   kernel, line 15",
        "  attribute(x)  device function, line 20",
        "  option(x)     kernel, line 25",
        "  later(x)      kernel, line 30",
    ]
    assert [line for line in lines if line.startswith(why)] == [
        f"{why}No implementation of setitem(float32, 0, 1)",
        f"{why}'void(foo)' is not a signature: name 'foo' is not defined",
        f"{why}Unknown attribute 'q' of type float32",
        f"{why}cuda.jit has no option 'fastmaths'; did you mean fastmath?",
    ]
    assert f"      at: {path}:15" in lines
    assert main(["explain", str(path), "--json"]) == 1
    kernels = json.loads(capsys.readouterr().out)["kernels"]
    assert [each["name"] for each in kernels if each["error"]] == ["bad", "misspelt", "attribute", "option"]
    assert main(["explain", f"{path}:good", "--cc", "9.0"]) == 0
    capsys.readouterr()
    assert f"at: {path}:12" in failing(capsys, "explain", f"{path}:bad", "--cc", "9.0")[1]
    # Python cannot import the file, and nothing is built of it.
    assert (
        f"at: {path}:12" in failing(capsys, "build", f"{path}:good", "--cc", "9.0", "-o", str(tmp_path / "good.ptx"))[1]
    )


def test_a_decorator_of_the_second_front_end_that_fails_hides_no_other_kernel(tmp_path, monkeypatch):
    pytest.importorskip("numba_cuda_mlir")
    path = tmp_path / "decorated.py"
    lines = DECORATED.replace("from numba import cuda", "from numba_cuda_mlir import cuda").splitlines()
    annotated = ["@cuda.jit", 'def annotated(x: "foo"):', "    x[0] = 5"]
    path.write_text("\n".join([*lines, "", "", *annotated, ""]))
    done = subprocess.run(
        [sys.executable, "-m", "numba_cuda_autolink", "explain", str(path)], capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    kernels = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line[2] != " "]
    assert kernels == ["good(x)", "bad(x)", "misspelt(x)", "attribute(x)", "option(x)", "later(x)", "annotated(x:"]
    why = [line for line in done.stdout.splitlines() if line.startswith("    cannot be compiled: ")]
    assert len(why) >= 4
    assert "    cannot be compiled: 'void(foo)' is not a signature: name 'foo' is not defined" in why


IN_CLASSES = """
from numba import cuda


def made(number):
    @cuda.jit
    def made(x):
        x[0] = number
    return made


second = made(2)


class Outer:
    @staticmethod
    @cuda.jit
    def first(x):
        x[0] = 1

    class Inner:
        @cuda.jit
        def kernel(x):
            x[0] = 3


def main():
    pass
"""


def test_kernels_are_listed_and_reported_by_the_names_that_the_user_has_for_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "in_classes.py"
    path.write_text(IN_CLASSES)
    assert main(["explain", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  second(x)              kernel, line 6",
        "  Outer.first(x)         kernel, line 16",
        "  Outer.Inner.kernel(x)  kernel, line 22",
        "  made(number)           Python function, line 5",
    ]
    for name in ("second", "Outer.Inner.kernel"):
        assert main(["explain", f"{path}:{name}", "--sig", "void(float32[::1])", "--cc", "9.0"]) == 0
        assert capsys.readouterr().out.startswith(f"{name}(float32[::1]):")
    diagnosis = failing(capsys, "explain", f"{path}:second", "--sig", "float32[::1]", "--cc", "9.0")[1]
    assert "--sig 'float32[::1]' is not a signature: it is one type\n" in diagnosis
    assert "what to do: write 'void(float32[::1])' for one argument of that type" in diagnosis


@pytest.mark.parametrize("action", ["info", "clear", "prune", "why", "export out"])
@pytest.mark.parametrize(
    ("folder", "diagnosis"),
    [
        ("missing", "there is no folder PATH, which NUMBA_CUDA_AUTOLINK_CACHE_DIR names"),
        ("file", "the cache's folder PATH is a file"),
        ("documents", "PATH is not a cache: it has no folder entries"),
        ("shared", "PATH is not used as a cache: it can be written to by any user, who could put code there"),
        ("unreadable", "PATH cannot be read: Permission denied"),
    ],
)
def test_commands_on_what_is_not_a_cache_fail(tmp_path, monkeypatch, capsys, action, folder, diagnosis):
    (tmp_path / "file").write_text("")
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "letter.txt").write_text("")
    for name, mode in (("shared", 0o777), ("unreadable", 0)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    if folder == "unreadable" and os.geteuid() == 0:
        listed = os.listdir

        def refuse(path):
            if path == str(tmp_path / folder):
                raise PermissionError(13, "Permission denied")
            return listed(path)

        monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / folder))
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE", "1")
    before = sorted(tmp_path.rglob("*"))
    reset_store()
    try:
        if folder == "missing" and action != "export out":  # as before the first build
            assert main(["cache", action]) == 0
            said = {"why": "nothing is cached yet", "info": "0 bytes of 1.0 GiB; the first build creates the folder"}
            expected = said.get(action, f"0 entries removed: there is no folder {tmp_path / folder}\n")
            assert expected in capsys.readouterr().out
            return
        code, printed = failing(capsys, "cache", *action.split())
    finally:
        reset_store()
    assert code == 1
    assert printed.startswith(f"numba-cuda-autolink: {diagnosis.replace('PATH', str(tmp_path / folder))}")
    assert "\n  what to do: " in printed
    assert sorted(tmp_path.rglob("*")) == before


def test_commands_on_a_cache_that_is_off_or_not_there_yet(tmp_path, monkeypatch, capsys):
    def run(*arguments):
        reset_store()
        return main(["cache", *arguments]), *capsys.readouterr()

    monkeypatch.delenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", raising=False)
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert (
        run("clear")
        == run("prune")
        == (
            0,
            f"0 entries removed: there is no folder {tmp_path / 'caches' / 'numba-cuda-autolink'}\n",
            "",
        )
    )
    assert run("info")[0] == 0
    assert not (tmp_path / "caches").exists()
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE", "0")
    assert "(off: what is in it is not used)" in run("info")[1]
    code, _, error = run("clear")
    assert (code, "there is no cache on disk: NUMBA_CUDA_AUTOLINK_CACHE=0" in error) == (1, True)
    reset_store()


# Below a file; where nobody can make a folder; where others could put code.
@pytest.mark.parametrize("place", ["FOLDER/file/cache", "/proc/cache", "FOLDER/shared"])
def test_a_cache_that_cannot_be_used(kernels, place, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    place = place.replace("FOLDER", str(tmp_path))
    environment = {**os.environ, "NUMBA_CUDA_AUTOLINK_CACHE_DIR": place}
    environment["NUMBA_CUDA_AUTOLINK_CACHE"] = "1"

    def run(*arguments):
        command = [sys.executable, "-m", "numba_cuda_autolink", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    assert (run("cache", "info").returncode, place in run("cache", "info").stderr) == (1, True)
    diagnosis = run("doctor")
    assert (diagnosis.returncode, f"the cache {place} cannot be used: " in diagnosis.stdout) == (1, True)
    typed = "--sig", SIGNATURE, "--cc", "9.0", "-o", str(tmp_path / "out.cubin")
    warned = [line for line in run("build", f"{kernels}:kernel", *typed).stderr.splitlines() if "cache" in line]
    assert len(warned) == 1 and place in warned[0]


@pytest.mark.parametrize("command", ["--version", "--help", "cache why --help", "doctor"])
@pytest.mark.parametrize("to", [">/dev/full", ">&-"])
def test_output_that_cannot_be_written(command, to):
    line = f"{shlex.quote(sys.executable)} -m numba_cuda_autolink {command} {to}"
    done = subprocess.run(line, shell=True, stderr=subprocess.PIPE, text=True)
    said = "standard output: No space left on device" if "full" in to else "standard output is closed"
    assert (done.returncode, done.stderr) == (1, f"numba-cuda-autolink: {said}\n")


@pytest.mark.parametrize("columns", [1, 2, 3, 30])
def test_help_fits_any_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))

    def commands(program):
        yield program
        for action in program._actions:
            for command in (action.choices or {}) if isinstance(action, argparse._SubParsersAction) else ():
                yield from commands(action.choices[command])

    assert all("usage:" in each.format_help() for each in commands(main_command.parser()))


@pytest.mark.parametrize("command", [("build", "--output", "ptx"), ("explain", "--json")])
def test_an_output_does_not_replace_a_source(command, kernels, capsys):
    text = Path(kernels).read_text()
    code, printed = failing(capsys, *command, f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "9.0", "-o", kernels)
    assert (code, f"{kernels} is a source, which the output would replace" in printed) == (1, True)
    assert Path(kernels).read_text() == text


def test_binary_code_is_not_written_to_a_terminal(kernels, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    typed = "build", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "9.0", "-o", "-"
    code, printed = failing(capsys, *typed)
    assert (code, "-o - writes cubin, which a terminal cannot show" in printed) == (2, True)
    assert main([*typed, "--output", "ptx"]) == 0
    assert ".visible .entry kernel(" in capsys.readouterr().out


def test_the_cache_can_be_shown_and_cleared(kernels, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE", "1")

    def run(*arguments, code=0):
        reset_store()  # as in a process of its own
        assert main(arguments) == code
        return capsys.readouterr().out

    out = str(tmp_path / "out.cubin")
    run("build", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "9.0", "-o", out)
    assert "program: 1 entry, " in run("cache", "info")
    shown = json.loads(run("cache", "info", "--json"))
    assert shown["directory"] == str(tmp_path / "cache")
    assert {each["kind"]: each["entries"] for each in shown["by_kind"]}["program"] == 1
    assert "  add.cu: first build" in run("cache", "why", "add.cu", "--kind", "program")
    assert "program of add.cu" in run("cache", "why", "add.cu", "-v")
    assert main(["cache", "why", "subtract.cu"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "numba-cuda-autolink: nothing is cached under the name 'subtract.cu'\n"
        "  what to do: numba-cuda-autolink cache why lists all entries\n"
    )
    assert main(["cache", "why", "--kind", "soup"]) == 1
    nothing, kinds = capsys.readouterr().err.splitlines()
    assert nothing == "numba-cuda-autolink: nothing of the kind 'soup' is cached"
    assert kinds.startswith("  cached: ") and "'program'" in kinds
    nothing = "0 entries removed, 0 bytes freed; 0 entries left, 0 bytes\n"
    total = run("cache", "info").splitlines()[1].strip().replace(" of 1.0 GiB", "").replace(", ", " left, ")
    assert run("cache", "prune", "1G") == f"0 entries removed, 0 bytes freed; {total}\n"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY", "short")
        assert main(["cache", "export", str(tmp_path / "entries")]) == 1
    error = capsys.readouterr().err
    assert error.endswith("what to do: correct NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY, or unset it\n")
    assert int(run("cache", "prune", "0").split()[0]) >= 3
    assert run("cache", "clear") == run("cache", "clear") == nothing  # it is still a cache
    reset_store()


def test_closing_the_output_early_is_not_an_error():
    command = [sys.executable, "-m", "numba.cuda.autolink", "doctor"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 1
    assert "Broken pipe" not in errors


def test_help_has_examples(capsys):
    for command in ("explain", "build"):
        with pytest.raises(SystemExit) as end:
            main([command, "--help"])
        assert end.value.code == 0
        assert f"numba-cuda-autolink {command} mykernels.py:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("out", "header"),
    [("x.h", "x.h"), ("x.cubin", "x.cubin.json"), ("x.kernels", "./x.kernels"), ("x", "y/../x")],
)
def test_a_header_replaces_no_other_output(capsys, tmp_path, monkeypatch, out, header):
    monkeypatch.chdir(tmp_path)
    code = main(["build", "f.py:k", "--sig", "void(int32)", "--cc", "9.0", "-o", out, "--header", header])
    assert code == 2 and "would be written twice" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_second_signature_is_an_error(capsys):
    with pytest.raises(SystemExit) as end:
        main(["build", "f.py:k", "--sig", "void(int32)", "--sig", "void(int64)", "--cc", "9.0", "-o", "x.kernels"])
    assert end.value.code == 2
    assert "argument --sig: given twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (
            ["bulid"],
            "numba-cuda-autolink: argument COMMAND: invalid choice: 'bulid'; did you mean build?\n  choose from: ",
        ),
        (
            ["build", "a.py:f", "--cc", "9.0", "--hedaer", "x"],
            "numba-cuda-autolink build: unrecognized arguments: --hedaer",
        ),
        (["explain"], "numba-cuda-autolink explain: the following arguments are required: FILE.py[:KERNEL]"),
        (["explain", "a.py:f", "--cc", "9.x"], "numba-cuda-autolink explain: argument --cc: '9.x' is not a compute"),
        (["cache", "info", "--frobnicate"], "numba-cuda-autolink cache info: unrecognized arguments: --frobnicate"),
    ],
)
def test_errors_of_the_command_line_begin_with_what_is_wrong(arguments, first, capsys):
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith(first)
    assert printed.endswith(" --help lists the arguments\n")


def test_without_a_command_it_prints_its_help(capsys):
    assert main([]) == 2
    assert "doctor" in capsys.readouterr().err


def test_a_module_names_its_file_and_a_repeated_architecture_counts_once(kernels, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["build", "commanded:kernel", "--sig", SIGNATURE, "--cc", "9.0,9.0", "-o", "built.cubin"]) == 0
    assert "cubin of kernel for sm_90\n" in capsys.readouterr().out


def test_autolink_that_is_off_is_said(capsys, monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK", "0")
    assert failing(capsys, "explain", "f.py:k") == (
        1,
        "numba-cuda-autolink: autolink is off: NUMBA_CUDA_AUTOLINK=0\n  what to do: unset it\n",
    )


def test_output_that_is_closed_or_has_few_letters(capsys, monkeypatch):
    assert "µ → … ∑".encode("ascii", main_command._PLAIN) == b"u -> ... ?"
    monkeypatch.setattr(sys, "stdout", None)
    assert failing(capsys, "cache", "info") == (1, "numba-cuda-autolink: standard output is closed\n")


def test_a_long_history_is_cut(capsys):
    cache_command._print_history([str(line) for line in range(100)], whole=False)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 41 and printed[-1].startswith("... 60 more lines: --all ")


def test_the_version_needs_little_more_than_python():
    def imported(*arguments):
        command = [sys.executable, "-X", "importtime", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout, {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}

    printed, modules = imported("-m", "numba_cuda_autolink", "--version")
    assert printed == f"numba-cuda-autolink {metadata.version('numba-cuda-autolink')}\n"
    added = modules - imported("-c", "pass")[1]
    assert "numba_cuda_autolink.command_entry" in added
    assert not added & {"numba", "numba.cuda", "numpy", "llvmlite"}
