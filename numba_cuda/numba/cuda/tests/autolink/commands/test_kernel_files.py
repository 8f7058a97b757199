# SPDX-License-Identifier: BSD-2-Clause
"""Files with kernels as commands meet them: compiled as they are imported, listed, printing, exiting, broken."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from autolink_support import symbols

from numba_cuda_autolink.commands.main_command import main

KERNELS = """
from numba import cuda
from numba.cuda import autolink

print("imported")

class Scale(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"scale_{x}", returns=x)
    def __numba_cuda_link__(self, x):
        T = autolink.cxx_type(x)
        code = f'extern "C" __device__ {T} scale_{x}({T} x) {{ return 2 * x; }}'
        return autolink.CUDASource(code, name=f"scale_{x}.cu")

scale = Scale()

@cuda.jit("float32(float32)", device=True)
def twice(x):
    return scale(x)

@cuda.jit("void(float32[::1], int32)")
def eager(x, n):
    x[n] = twice(x[n])

@cuda.jit(["void(float32[:, ::1])", "void(float64[::1, :])"])
def both(x):
    x[0, 0] = scale(x[0, 0])

@cuda.jit
def lazy(x):
    x[0] = scale(x[0])
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "filed.py"
    path.write_text(KERNELS)
    yield path
    sys.modules.pop("filed", None)


def line(text):
    return KERNELS.splitlines().index(text) + 1


def test_a_kernel_that_is_compiled_as_it_is_imported_needs_neither_a_gpu_nor_a_signature(file, tmp_path, capsys):
    out = tmp_path / "eager.cubin"
    assert main(["build", f"{file}:eager", "--cc", "8.0", "-o", str(out)]) == 0
    assert "eager" in symbols(out.read_bytes())
    manifest = json.loads((tmp_path / "eager.cubin.json").read_text())
    assert manifest["kernels"][0]["architecture"] == "sm_80"
    assert manifest["signature"] == "(array(float32, 1d, C), int32)"
    assert capsys.readouterr().err == "imported\n"


def test_of_several_signatures_one_is_chosen(file, capsys):
    assert main(["explain", f"{file}:both", "--cc", "8.0"]) == 2
    assert capsys.readouterr().err.endswith(
        "both is compiled for 2 signatures; pass one as --sig:\n  void(float32[:, ::1])\n  void(float64[::1, :])\n"
    )
    assert main(["explain", f"{file}:both", "--cc", "8.0", "--sig", "void(float64[::1, :])"]) == 0
    assert "scale_float64.cu" in capsys.readouterr().out


def test_a_file_alone_lists_its_kernels(file, capsys):
    assert main(["explain", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{file}:",
        f"  twice(x)     device function, line {line('def twice(x):') - 1}, for float32(float32)",
        f"  eager(x, n)  kernel, line {line('def eager(x, n):') - 1}, for void(float32[::1], int32)",
        f"  both(x)      kernel, line {line('def both(x):') - 1}, for void(float32[:, ::1]), for void(float64[::1, :])",
        f"  lazy(x)      kernel, line {line('def lazy(x):') - 1}",
    ]
    assert main(["explain", str(file), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed["kernels"]] == ["twice", "eager", "both", "lazy"]
    assert listed["kernels"][1]["signatures"] == ["void(float32[::1], int32)"]


def test_a_file_without_kernels_has_none(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "without_kernels.py").write_text("x = 1\n")
    assert main(["explain", str(tmp_path / "without_kernels.py")]) == 0
    assert capsys.readouterr().out.endswith("without_kernels.py: no kernels\n")


def test_the_report_of_a_device_function_is_what_it_brings_to_kernels(file, capsys):
    assert main(["explain", f"{file}:twice", "--cc", "9.0"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"at: {file}:{line('    return scale(x)')}" in text
    assert "scale_float32.cu" in text
    assert "left to the kernels that call it" in text


@pytest.mark.parametrize(
    ("suffix", "start"),
    [
        ("html", "<!DOCTYPE"),
        ("svg", "<svg"),
        ("json", "{"),
        ("dot", "digraph"),
        ("txt", "lazy("),
        ("trace.json", '{"displayTimeUnit"'),
    ],
)
def test_the_suffix_of_a_file_tells_the_form_of_a_report(file, tmp_path, capsys, suffix, start):
    out = tmp_path / f"report.{suffix}"
    assert main(["explain", f"{file}:lazy", "--sig", "void(float32[::1])", "--cc", "9.0", "-o", str(out)]) == 0
    assert out.read_text().startswith(start)
    assert capsys.readouterr().out.startswith(f"{out}: {'timeline' if suffix == 'trace.json' else 'report as'} ")


def test_standard_output_has_the_code_and_nothing_else(file, tmp_path):
    """In a process of its own, whose libraries may print past Python too."""
    file.write_text(KERNELS + "import os; os.write(1, b'printed past Python')\n")
    command = ["build", f"{file}:lazy", "--sig", "void(float32[::1])", "--cc", "9.0"]
    head, out = tmp_path / "lazy.h", tmp_path / "lazy.cubin"
    run = [sys.executable, "-m", "numba.cuda.autolink", *command]
    done = subprocess.run([*run, "--header", str(head), "-o", "-"], cwd=tmp_path, capture_output=True)
    assert main([*command, "-o", str(out)]) == 0
    assert (done.returncode, done.stdout) == (0, out.read_bytes())
    assert b"printed past Python" in done.stderr
    assert f"{head}: ".encode() in done.stderr
    assert not (tmp_path / "-").exists()


FAILING = {
    "x = 1\nraise ValueError\n": "FILE:2: ValueError\n",
    "x = 1\nraise RuntimeError('not today')\n": "FILE:2: RuntimeError: not today\n",
    "x = 1\nx = 2 +\n": "FILE:2: SyntaxError: invalid syntax\n  x = 2 +\n         ^\n",
    "x = 1\n\0": "FILE",
    "import with_a_fault\n": "FOLDER/with_a_fault.py:1: SyntaxError: '(' was never closed\n  y = (\n      ^\n",
    "import sys\nsys.exit(3)\n": "FILE:2: the file exits when it is imported: SystemExit(3)\n  what to do: ",
    "import missing_module_of_theirs\n": "FILE:1: ModuleNotFoundError: No module named 'missing_module_of_theirs'\n",
    "import beside_it\nbeside_it.f()\n": "FILE:2: ValueError: in there\n  raised at: FOLDER/beside_it.py:2 in f\n",
    "from numba import cuda\n\n@cuda.jit('void(int32)')\ndef k(x):\n    y = of_no_such_name\n": (
        "name 'of_no_such_name' is not defined\n  at: FILE:5 in k\n"
    ),
}


@pytest.mark.parametrize("code", FAILING, ids=range(len(FAILING)))
def test_what_is_wrong_with_a_file_is_told_with_its_line(tmp_path, monkeypatch, capsys, code):
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "failing.py"
    path.write_text(code)
    (tmp_path / "beside_it.py").write_text("def f():\n    raise ValueError('in there')\n")
    (tmp_path / "with_a_fault.py").write_text("y = (\n")
    assert main(["explain", f"{path}:k"]) == 1
    expected = FAILING[code].replace("FILE", str(path)).replace("FOLDER", str(tmp_path))
    assert capsys.readouterr().err.startswith(f"numba-cuda-autolink: {expected}")
    for name in ("failing", "beside_it"):
        sys.modules.pop(name, None)


def test_a_file_sees_no_arguments_of_the_command(file, capsys):
    file.write_text(f"import sys\nassert sys.argv == [{str(file)!r}]\n{KERNELS}")
    before = [*sys.argv]
    assert main(["explain", str(file)]) == 0
    assert sys.argv == before


def test_a_file_of_a_package_imports_from_its_package(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = tmp_path / "their_package" / "inner"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "__init__.py").touch()
    (folder.parent / "scales.py").write_text(KERNELS)
    (folder / "kernels.py").write_text("from ..scales import lazy as renamed\n")
    assert main(["explain", str(folder / "kernels.py")]) == 0
    assert "renamed(x)" in capsys.readouterr().out
    for name in [name for name in sys.modules if name.startswith("their_package")]:
        del sys.modules[name]


def test_a_missing_nvrtc_is_told_with_its_remedy(tmp_path, monkeypatch, capsys):
    path = tmp_path / "mine.py"
    path.write_text("from cuda import pathfinder\nraise pathfinder.DynamicLibNotFoundError('no libnvrtc')\n")
    missing = "NVRTC, which compiles CUDA C++, was not found\n  what to do: install it", OSError()
    monkeypatch.setattr("numba_cuda_autolink.commands.kernel_loading.why_missing", lambda library: missing)
    assert main(["explain", str(path)]) == 1
    assert capsys.readouterr().err.endswith(
        "mine.py: NVRTC, which compiles CUDA C++, was not found\n  what to do: install it\n"
    )


def test_without_a_gpu_and_without_a_compute_capability_the_option_is_named(file, capsys, monkeypatch):
    monkeypatch.setattr("numba.cuda.is_available", lambda: False)
    assert main(["explain", f"{file}:eager"]) == 2
    assert (
        "--cc is missing, and there is no GPU here\n  what to do: pass one, such as --cc 9.0" in capsys.readouterr().err
    )


def test_the_version_is_that_of_the_package(capsys):
    from numba.cuda import autolink

    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert (end.value.code, capsys.readouterr().out) == (0, f"numba-cuda-autolink {autolink.__version__}\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_shells_complete_commands_options_and_files(capsys, shell):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("explain", "doctor", "sig", "html"))


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("explain mine", "mine.py"),
        ("explain mine.py : lazy --against jo", "jobs.json"),
        ("build mine.py : lazy -o jo", "jobs.json"),
        ("build mine.py : lazy --header jo", "jobs.json"),
        ("prebuild jo", "jobs.json"),
        ("prebuild jobs.json --save jo", "jobs.json"),
        ("capture -o jo", "jobs.json"),
        ("capture -o jobs.json -- bas", "bash"),
        ("cache export jo", "jobs.json"),
        ("cache import jo", "jobs.json"),
        ("cache import --tr", "--trust"),
        ("doc", "doctor"),
    ],
)
def test_bash_completes_what_is_typed(tmp_path, monkeypatch, capsys, typed, completed):
    monkeypatch.chdir(tmp_path)
    for name in ("mine.py", "jobs.json"):
        (tmp_path / name).touch()
    assert main(["completion", "bash"]) == 0
    words = ["numba-cuda-autolink", *typed.split()]
    script = f"{capsys.readouterr().out}\nCOMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}\n"
    script += '_shtab_numba_cuda_autolink; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True)
    assert completed in done.stdout.split()
