# SPDX-License-Identifier: BSD-2-Clause
"""Compiled kernels: kept on disk by what they are made of, and made without Numba."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from emulator_support import kernel_of, kernel_text, launch

from numba_cuda_autolink.emulator import Checks, compiler, module, native
from numba_cuda_autolink.emulator.native import u32, u64

BODY = "ld.param.u64 %rd0, [p0]; st.global.u32 [%rd0], {};"


@pytest.fixture
def compiled(monkeypatch, tmp_path) -> list[str]:
    """Return the texts that are compiled from now on, with an empty cache."""
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path))
    texts: list[str] = []

    def compile_text(text: str) -> bytes:
        texts.append(text)
        return compiler.compile_text(text)

    monkeypatch.setattr(module, "compile_text", compile_text)
    return texts


def run(value: int, checks: Checks | None = None) -> int:
    x = np.zeros(1, np.uint32)
    launch(kernel_of(kernel_text(BODY.format(value), "u64"), checks=checks), 1, 1, x)
    return int(x[0])


class TestCache:
    def test_a_kernel_is_compiled_once(self, compiled):
        assert [run(5), run(5)] == [5, 5]
        assert len(compiled) == 1

    def test_other_text_and_other_checks_are_other_kernels(self, compiled):
        assert [run(5), run(6), run(6, Checks.all())] == [5, 6, 6]
        assert len(compiled) == 3

    @pytest.mark.parametrize("damage", [b"", b"\0" * 100, None])
    def test_a_damaged_entry_is_a_miss(self, compiled, tmp_path, damage):
        run(5)
        (entry,) = (tmp_path / "emulator").glob("*.kernel")
        data = bytearray(entry.read_bytes())
        data[len(data) // 2] ^= 1
        entry.write_bytes(bytes(data) if damage is None else damage)
        assert run(5) == 5
        assert len(compiled) == 2
        run(5)
        assert len(compiled) == 2

    @pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions of POSIX")
    def test_a_folder_that_others_may_write_is_not_trusted(self, compiled, tmp_path):
        (tmp_path / "emulator").mkdir()
        (tmp_path / "emulator").chmod(0o777)
        assert [run(5), run(5)] == [5, 5]
        assert len(compiled) == 2

    def test_a_folder_that_cannot_be_written(self, compiled, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "file"))
        assert run(5) == 5


def test_neither_numba_nor_cuda_is_imported():
    code = (
        "import sys; from numba_cuda_autolink import emulator;"
        "print([m for m in sys.modules if m.split('.')[0] in ('numba', 'cuda') or m.startswith('numba_cuda.')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


class TestNative:
    def test_every_native_function_is_valid(self):
        texts, declarations = native.list_texts()
        texts += [native.compile_native(name).text for name in native._functions]
        assert all(text.startswith("define") for text in texts)
        assert all(declaration.startswith("declare") for declaration in declarations)

    def test_a_type_error_names_the_function(self):
        @native.native()
        def wrong_sum(a: u32, b: u64) -> u64:
            return a + b

        try:
            with pytest.raises(TypeError, match="native function wrong_sum: u64 where u32 is expected: a \\+ b"):
                native.compile_native("wrong_sum")
        finally:
            native._functions.pop("wrong_sum")
