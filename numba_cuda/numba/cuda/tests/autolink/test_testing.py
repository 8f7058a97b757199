# SPDX-License-Identifier: BSD-2-Clause
"""The helpers of `autolink.testing` for tests without a GPU; ``check_linkable`` has tests of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from autolink_support import calling, compiled, symbols
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.autolink.testing import ask, compile_cached


class Scale(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x, factor=2):
        return autolink.Extern(f"scale_{x}_{factor}", returns=x)

    def __numba_cuda_link__(self, x, factor):
        if x == types.boolean:
            raise ValueError("no bool")
        yield autolink.CUDASource(f"// {x}, {factor}, {autolink.current_target().arch}")
        yield cuda.LTOIR(compiled('extern "C" __device__ int other() { return 0; }', "ltoir"), name="other.ltoir")

    @autolink.device_method
    def twice(self, x):
        return autolink.Extern("twice", returns=x)

    @twice.link
    def _(self, x):
        return autolink.CUDASource("// twice", name="twice.cu")


class TestAsk:
    def test_returns_what_is_linked_in_order(self):
        source, ltoir = ask(Scale(), "float32", "int64", cc="9.0a")
        assert (str(source.kind), source.name, source.code) == (
            "CUDA C++ source",
            "Scale.cu",
            b"// float32, int64, sm_90a",
        )
        assert (str(ltoir.kind), ltoir.name, ltoir.code[:4]) == ("LTO-IR", "other.ltoir", b"\xed\x43\x4e\x7f")

    @pytest.mark.parametrize("given", ["float32", types.float32, np.float32, np.dtype("f4")])
    def test_takes_types_and_their_names_and_adds_those_of_defaults(self, given):
        assert ask(Scale(), given, cc=100)[0].code == b"// float32, int64, sm_100"

    def test_is_none_where_nothing_has_a_hook(self):
        assert ask(cuda.declare_device("no_hook", "int32(int32)"), "int32", cc=(9, 0)) is None
        assert ask(len, cc=(9, 0)) is None

    def test_is_empty_where_the_hook_returns_nothing(self):
        function = cuda.declare_device("nothing_to_link", "int32(int32)")
        function.__numba_cuda_link__ = lambda x: None
        assert ask(function, "int32", cc=(9, 0)) == ()

    def test_asks_a_method_by_its_own_hook(self):
        assert [(item.name, item.code) for item in ask(Scale().twice, "int8", cc=(9, 0))] == [("twice.cu", b"// twice")]

    def test_the_target_says_whether_it_is_linked_with_lto(self):
        function, seen = cuda.declare_device("which_target", "int32(int32)"), []
        function.__numba_cuda_link__ = lambda x: seen.append(autolink.current_target())
        ask(function, "int32", cc="10.0f")
        ask(function, "int32", cc="10.0f", lto=False)
        assert seen == [autolink.Target("10.0f", lto=True), autolink.Target("10.0f", lto=False)]

    @pytest.mark.counted
    def test_the_compiler_is_answered_what_it_was_asked_before(self):
        function, asked = cuda.declare_device("asked_once", "int32(int32)"), []
        function.__numba_cuda_link__ = lambda x: asked.append(x)

        with pytest.raises(autolink.LinkError):  # nothing is linked
            autolink.build(calling(function), "void(int32[::1])", cc=(9, 0))
        ask(function, "int32", cc=(9, 0))
        assert asked == [types.int32]

    def test_errors(self):
        with pytest.raises(autolink.HookError, match="raised ValueError: no bool"):
            ask(Scale(), "boolean", cc=(9, 0))
        with pytest.raises(TypeError, match="'float33' is not the name of a Numba type"):
            ask(Scale(), "float33", cc=(9, 0))
        with pytest.raises(TypeError, match="too many positional arguments"):
            ask(Scale(), "float32", "float32", "float32", cc=(9, 0))
        with pytest.raises(ValueError, match="'nine' is not a compute capability"):
            ask(Scale(), "float32", cc="nine")


class TestParts:
    def test_a_part_named_underscore_of_another_classs_method_is_refused(self):
        with pytest.raises(TypeError, match="part of the method 'twice' of another class needs its name: def twice"):

            class Other(Scale):
                @Scale.twice.link
                def _(self, x): ...

    def test_a_subclass_replaces_a_part_under_the_methods_name(self):
        class Other(Scale):
            @Scale.twice.link
            def twice(self, x):
                return autolink.CUDASource("// other", name="other.cu")

        assert ask(Other().twice, "int8", cc=(9, 0))[0].name == "other.cu"
        assert ask(Scale().twice, "int8", cc=(9, 0))[0].name == "twice.cu"


PROGRAM = """
import sys
from pathlib import Path
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink.testing import compile_cached

class Add(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("add", returns=x)

    def __numba_cuda_link__(self, x):
        return "add.cu"

add = Add()

@cuda.jit(cache=True)
def external(x):
    x[0] = add(x[1])

@cuda.jit(cache=True)
def plain(x):
    x[0] = x[1]

if __name__ == "__main__":
    import hashlib
    for kernel in external, plain:
        for cc in sys.argv[1:]:
            code, how = compile_cached(kernel, "void(int32[::1])", cc)
            print(kernel.__name__, cc, how, hashlib.sha256(code).hexdigest()[:8])
"""


class TestCompileCached:
    @pytest.fixture
    def run(self, tmp_path):
        (tmp_path / "add.cu").write_text('extern "C" __device__ int add(int x) { return x + 1; }')
        (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_CUDA_AUTOLINK_CACHE": "1"}

        def run(*capabilities: str) -> list[list[str]]:
            command = [sys.executable, "program.py", *capabilities]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return [line.split() for line in done.stdout.splitlines()]

        return run

    def test_another_process_loads_and_an_edited_dependency_is_linked_again(self, run, tmp_path):
        first = run("9.0", "9.0a")
        assert [line[:3] for line in first] == [
            ["external", "9.0", "built"],
            ["external", "9.0a", "built"],
            ["plain", "9.0", "built"],
            ["plain", "9.0a", "built"],
        ]
        assert run("9.0", "9.0a") == [[*line[:2], "loaded", line[3]] for line in first]
        source = tmp_path / "add.cu"
        source.write_text(source.read_text().replace("+ 1", "+ 2"))
        edited = run("9.0")
        assert [line[:3] for line in edited] == [["external", "9.0", "loaded"], ["plain", "9.0", "loaded"]]
        assert (edited[0][3] != first[0][3], edited[1][3]) == (True, first[2][3])

    def test_the_same_process_looks_at_the_disk_again(self, tmp_path, monkeypatch):
        monkeypatch.setattr(cuda.config, "CACHE_DIR", str(tmp_path))

        @cuda.jit(cache=True)
        def kernel(x):
            x[0] = x[1] + 1

        (built, how), again = (compile_cached(kernel, "void(int32[::1])", 90) for _ in range(2))

        assert (how, again) == ("built", (built, "loaded"))
        assert not kernel.overloads
        assert any("kernel" in name for name in symbols(built))

    def test_errors(self):
        def kernel(x):
            x[0] = 0

        for wrong in kernel, cuda.jit(kernel), 3:
            with pytest.raises(TypeError, match=r"compile_cached\(\) takes a @cuda\.jit\(cache=True\) kernel"):
                compile_cached(wrong, "void(int32[::1])", (9, 0))
        with pytest.raises(TypeError, match="a kernel returns nothing"):
            compile_cached(cuda.jit(cache=True)(kernel), "int32(int32[::1])", (9, 0))
        with pytest.raises(ValueError, match="9 is not a compute capability"):
            compile_cached(cuda.jit(cache=True)(kernel), "void(int32[::1])", 9)
