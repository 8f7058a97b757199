# SPDX-License-Identifier: BSD-2-Clause
"""Where files of the toolkit are missing or damaged, a failed compile says which package to install again."""

from __future__ import annotations

import base64
import hashlib

import pytest
from numba.cuda.autolink.frontend_api.placed_messages import placed_error
from numba.cuda.cudadrv.external_code.compile import translation_unit
from numba.cuda.cudadrv.external_code.compile.damaged_toolkit import explain_missing_namespace
from numba.cuda.cudadrv.external_code.compile.nvrtc_log import Diagnostic, remedy
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CompileOptions
from numba.cuda.cudadrv.external_code.platform import cuda_libraries

from numba_cuda_autolink import installed_packages
from numba_cuda_autolink.missing_parts import missing_library

FILES = ("nvidia/include/soup/soup.h", "nvidia/include/soup/inner.h", "nvidia/lib/libnvrtc-builtins.so.13.5")
CONTENTS = (b"abcd", b"abcd", b"\x7fELF\x01\x01" + bytes(58))  # the library is whole, as far as is checked
REPAIR = "pip install --force-reinstall --no-deps 'nvidia-soup=="


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    """The folder of an installed package of a toolkit, whose headers have 4 bytes."""
    folder = tmp_path / "nvidia_soup-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: nvidia-soup\nVersion: 1.0\n")
    rows = []
    for name, content in zip(FILES, CONTENTS, strict=True):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        rows.append(f"{name},sha256={digest},{len(content)}\n")
    (folder / "RECORD").write_text("".join(rows))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(installed_packages, "toolkit_packages", lambda: ["nvidia-soup"])
    return tmp_path


def what_to_do(text, place="", **of_diagnostic):
    return remedy(Diagnostic(text, place, **of_diagnostic), CompileOptions())


def test_a_header_that_is_missing(toolkit):
    missing = 'cannot open source file "soup/inner.h"'
    assert "include_paths" in what_to_do(missing)
    (toolkit / FILES[1]).unlink()
    assert what_to_do(missing).startswith(REPAIR) and f"({FILES[1]} is missing)" in what_to_do(missing)
    assert "include_paths" in what_to_do('cannot open source file "soup/of_the_user.h"')


def test_a_header_that_is_cut(toolkit):
    """NVRTC may find the error in another header."""
    in_toolkit = "the #endif for this directive is missing", str(toolkit / FILES[0])
    in_source = "the #endif for this directive is missing", "source.cu"
    assert what_to_do(*in_toolkit).startswith("fix the source at that line")
    (toolkit / FILES[1]).write_text("ab")
    assert f"({FILES[1]} has 2 bytes, and had 4)" in what_to_do(*in_toolkit)
    assert what_to_do(*in_source) == "fix the source at that line"


def test_a_header_of_another_cuda(tmp_path, monkeypatch):
    (tmp_path / "cuda_runtime_api.h").write_text("#define CUDART_VERSION  12090\n")
    monkeypatch.setattr(translation_unit, "toolkit_include_paths", lambda: (f"{tmp_path}/cccl", str(tmp_path)))
    monkeypatch.setattr(cuda_libraries, "_load", lambda library: ((13, 5), None))
    undefined = 'identifier "__NV_SOUP" is undefined'
    for header in ("cuda_fp6.hpp", "cccl/cuda/cmath"):
        folder = f"{tmp_path}/{header}".removesuffix("/cuda_fp6.hpp").removesuffix("/cuda/cmath")
        what = f"(the headers in {folder} are of CUDA 12.9, NVRTC is of CUDA 13.5)"
        assert what in what_to_do(undefined, f"{tmp_path}/{header}")
        assert what_to_do(undefined, f"{tmp_path}/{header}").startswith("pip install 'numba-cuda-autolink[cu")
    assert "NVRTC is" not in what_to_do(undefined, "source.cu")
    monkeypatch.setattr(cuda_libraries, "_load", lambda library: ((12, 4), None))
    assert "NVRTC is" not in what_to_do(undefined, f"{tmp_path}/cuda_fp6.hpp")


def test_a_name_that_a_damaged_header_lacks(toolkit):
    unknown = 'namespace "cuda::std" has no member "hypot"'
    (toolkit / FILES[1]).write_text("abcx")
    assert f"({FILES[1]} has other content)" in what_to_do(unknown)
    assert REPAIR not in what_to_do('namespace "mine" has no member "hypot"')
    assert explain_missing_namespace("cuda::std").startswith(REPAIR)
    assert explain_missing_namespace("cudamine") == ""


@pytest.mark.parametrize(
    ("text", "place"), [("failed to open libnvrtc-builtins.so.13.5.", "nvrtc"), ("NVRTC ended (SIGBUS)", "")]
)
def test_a_library_of_nvrtc(toolkit, text, place):
    assert REPAIR not in what_to_do(text, place)
    (toolkit / FILES[2]).unlink()
    assert f"({FILES[2]} is missing)" in what_to_do(text, place)


def test_a_toolkit_that_is_in_no_package(toolkit):
    assert what_to_do("failed to open libnvrtc-builtins.so.13.5.", "nvrtc").startswith("install the CUDA toolkit again")
    assert what_to_do("unrecognized option --nothing found", "nvrtc") == "correct the options"


def test_a_library_that_is_missing(toolkit, monkeypatch):
    monkeypatch.setattr(cuda_libraries, "_load", lambda library: (None, RuntimeError("no libnvrtc")))
    assert "pip install 'numba-cuda-autolink[cu" in cuda_libraries.why_missing("NVRTC")[0]
    (toolkit / FILES[2]).unlink()
    message, _ = cuda_libraries.why_missing("NVRTC")
    assert message.startswith("NVRTC, which compiles CUDA C++, was not found\n  what to do: " + REPAIR)


@pytest.mark.parametrize(
    ("header", "whose", "always"),
    [
        ("cub/block/block_reduce.cuh", "CCCL", "cuda/std/version"),
        ("cuda/std/cmath", "CCCL", "cuda/std/version"),
        ("cuda_fp16.h", "the CUDA runtime", "cuda_runtime_api.h"),
        ("cooperative_groups/reduce.h", "the CUDA runtime", "cuda_runtime_api.h"),
        ("crt/mma.h", "nvcc", "crt/host_defines.h"),
    ],
)
def test_headers_of_a_package_that_is_missing(tmp_path, monkeypatch, header, whose, always):
    monkeypatch.setattr(translation_unit, "toolkit_include_paths", lambda: (str(tmp_path),))
    text = f'cannot open source file "{header}"'
    remedy = what_to_do(text)
    assert remedy.startswith("pip install 'numba-cuda-autolink[cu")
    assert remedy.endswith(f" (the headers of {whose} were not found); numba-cuda-autolink doctor checks all packages")
    (tmp_path / always).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / always).touch()
    assert "pip install" not in what_to_do(text)
    assert "pip install" not in what_to_do('cannot open source file "cuda_of_mine/soup.h"')


@pytest.mark.parametrize(
    ("searched", "what", "fix"),
    [
        ("libcudart.so.13 or libcudart.so.12", "cudart was not found", "pip install 'numba-cuda-autolink[cu"),
        ("nvvm64_40_0.dll", "NVVM was not found", "pip install 'numba-cuda-autolink[cu"),
        ("libsoup.so.1", "libsoup.so.1 was not found", "install the CUDA toolkit, or NVIDIA's package that has it"),
    ],
)
def test_a_library_that_pathfinder_does_not_find(searched, what, fix):
    error = type("DynamicLibNotFoundError", (RuntimeError,), {})(f'Failure finding "{searched}": No such file: x')
    assert missing_library(str(error))[0] == what and missing_library(str(error))[1].startswith(fix)
    first, *_, last = placed_error(error).splitlines()
    assert first == what and last.startswith(f"  what to do: {fix}")
    assert last.endswith("; numba-cuda-autolink doctor checks all packages")
    assert missing_library("no such thing") is None


def test_where_cuda_core_falls_back_to_the_driver_nvjitlink_is_missing(monkeypatch):
    error = type("DynamicLibNotFoundError", (RuntimeError,), {})('"cuda" is an NVIDIA driver library and can only be')
    monkeypatch.setattr(cuda_libraries, "_load", lambda library: (None, RuntimeError("no soup")))
    first, *_, last = placed_error(error).splitlines()
    assert first == "nvJitLink, which links kernels with external code, was not found"
    assert last.startswith("  what to do: install it with this package: pip install 'numba-cuda-autolink[cu")
