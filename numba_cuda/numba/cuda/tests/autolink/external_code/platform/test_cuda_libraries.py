# SPDX-License-Identifier: BSD-2-Clause
"""What identifies a build of the toolkit's libraries: its content, not where or when it was installed."""

import os
import struct
from types import SimpleNamespace

import pytest
from numba.cuda.cudadrv.external_code.platform import cuda_libraries


def library(build_id=bytes(range(20)), rest=b""):
    """A 64-bit ELF file with one program header, of notes, and *rest*."""
    note = struct.pack("<III4s", 4, 20, 3, b"GNU\0") + build_id
    header = struct.pack("<4s28xQ14xHH6x", b"\x7fELF", 64, 56, 1)
    return header + struct.pack("<I4xQ16xQ16x", 4, 120, len(note)) + note + rest


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Return the identity of a library with this content in this directory."""

    def identity(content, folder="lib"):
        path = tmp_path / folder / "libnvrtc.so"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (len(folder), 1))
        found = SimpleNamespace(abs_path=str(path))
        monkeypatch.setattr(cuda_libraries.pathfinder, "load_nvidia_dynamic_lib", lambda name: found)
        monkeypatch.setattr(cuda_libraries.pathfinder, "locate_bitcode_lib", lambda name: found)
        cuda_libraries.nvrtc_build.cache_clear()
        cuda_libraries.nvvm_build.cache_clear()
        return cuda_libraries.nvrtc_build(), cuda_libraries.nvvm_build()

    yield identity
    cuda_libraries.nvrtc_build.cache_clear()
    cuda_libraries.nvvm_build.cache_clear()


def test_a_library_that_was_installed_again_or_elsewhere_is_the_same(build):
    assert build(library()) == build(library(), "elsewhere")


@pytest.mark.parametrize("other", [library(bytes(20)), library(rest=b"more")])
def test_another_build_is_another(build, other):
    for before, after in zip(build(library()), build(other), strict=True):
        assert before != after


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"MZ" + bytes(200), library()[:100], library()[:140]])
def test_what_has_no_build_id_is_told_apart_by_path_and_time(build, content):
    assert build(content)[0] != build(content, "elsewhere")[0]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("#define CUDART_VERSION  13050\n", (13, 5)),
        ("#define CUDART_VERSION 12090 /* of the runtime */\n", (12, 9)),
        ("#define OTHER 1\n", None),
        (None, None),
    ],
)
def test_headers_name_their_cuda_version(tmp_path, text, version):
    if text is not None:
        (tmp_path / "cuda_runtime_api.h").write_text(text)
    assert cuda_libraries.headers_version(str(tmp_path)) == version


def test_the_libraries_installed_here_have_build_ids():
    assert "build " in cuda_libraries.nvrtc_build()
    assert "build " in cuda_libraries.nvjitlink_build()
