# SPDX-License-Identifier: BSD-2-Clause
"""The seams with numba-cuda: replaced, restored, checked, and cheap until something is compiled."""

import subprocess
import sys

import pytest
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.autolink.frontends.numba_cuda import activation


def run_script(script):
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout == "done\n", run.stderr


def test_seams_can_be_taken_off_and_put_back():
    script = """
import numba.cuda
from numba.cuda import autolink, codegen, compiler, dispatcher
from numba.cuda.autolink.frontends.numba_cuda import activation as numba_cuda

def current():
    return [getattr(*numba_cuda.locate(path)) for path in numba_cuda.SEAMS]

assert numba_cuda.active()
replaced = current()
autolink.activate()
assert current() == replaced
autolink.deactivate()
assert not numba_cuda.active()
assert not any(one is other for one, other in zip(current(), replaced))
assert codegen.JITCUDACodegen._library_class is codegen.CUDACodeLibrary
assert compiler.ExternalCodeLibrary is codegen.ExternalCodeLibrary
assert dispatcher.compile_cuda is compiler.compile_cuda
autolink.activate()
assert numba_cuda.active() and dispatcher.compile_cuda is not compiler.compile_cuda
print("done")
"""
    run_script(script)


def test_a_missing_seam_is_one_warning_and_numba_cuda_works():
    script = """
import sys, warnings
sys.argv = ["x"]
import os
os.environ["NUMBA_CUDA_AUTOLINK"] = "0"
import numba.cuda
from numba.cuda import compiler
del compiler.CUDACompiler.define_cuda_lowering_pipeline
del os.environ["NUMBA_CUDA_AUTOLINK"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from numba.cuda import autolink
(warning,) = caught
text = str(warning.message)
assert "it has no numba.cuda.compiler:CUDACompiler.define_cuda_lowering_pipeline" in text, text
assert "numba-cuda " in text and "everything else in numba-cuda works as before" in text
from numba.cuda import codegen, dispatcher
assert dispatcher.compile_cuda is compiler.compile_cuda
assert codegen.JITCUDACodegen._library_class is codegen.CUDACodeLibrary
print("done")
"""
    run_script(script)


@pytest.mark.parametrize(
    ("off", "remedy"),
    [
        ("", "autolink is off: NUMBA_CUDA_AUTOLINK=0\n  called at: <string>:10\n  what to do: unset it"),
        ("autolink.deactivate()", "autolink is off\n  called at: <string>:10\n  what to do: call autolink.activate()"),
    ],
)
@pytest.mark.parametrize("call", ["build(kernel, types, cc=90)", "bind(kernel, types)", "report(kernel, types, 90)"])
def test_what_needs_the_seams_says_that_they_are_off(off, remedy, call):
    run_script(
        f"""
import os
os.environ["NUMBA_CUDA_AUTOLINK"] = "{int(bool(off))}"
from numba import cuda
from numba.cuda import autolink
{off}
kernel, types = cuda.jit(lambda x: None), "void(int32)"
try:
    pass
    autolink.{call}
except RuntimeError as error:
    first, place, *source, last = str(error).splitlines()  # Python 3.13 knows the source
    assert [first, place, last] == {remedy!r}.splitlines(), error
    print("done")
"""
    )


def test_an_attribute_that_is_used_and_missing_is_named(monkeypatch):
    monkeypatch.delattr("numba.cuda.dispatcher._Kernel")
    with pytest.raises(activation.MissingSeamError, match=r"it has no numba\.cuda\.dispatcher:_Kernel\n"):
        activation.locate("numba.cuda.dispatcher:_Kernel")


def test_importing_numba_cuda_imports_neither_the_protocol_nor_a_linker():
    """Replacements import what they need when something is compiled."""
    run_script(
        """
import sys
import numba.cuda
from numba.cuda.autolink.frontends.numba_cuda import activation as numba_cuda
assert numba_cuda.active()
ours = sorted(name for name in sys.modules if name.startswith(("numba.cuda.autolink.", "numba.cuda.cudadrv.external")))
assert not [n for n in ours if n.split(".")[3] in ("protocol", "compiling", "kernel_cache", "reports", "ahead_of_time")]
assert not [n for n in ours if n.split(".")[4:5] in (["link"], ["compile"], ["cache"], ["formats"])], ours
print("done")
"""
    )


def test_device_functions_of_a_build_are_forgotten_after_it():
    """Nested builds have their own, and what was compiled before comes back."""
    from numba.cuda.autolink.compilation.context import without_device

    @cuda.jit(device=True)
    def device_function(x):
        return x + 1

    outside = device_function.overloads
    with without_device((9, 0, "a")):
        device_function.compile_device((types.float32,))
        before = device_function.overloads
        for cc in ((8, 0, ""), (9, 0, "")):
            with without_device(cc):
                device_function.compile_device((types.int32,))
                assert len(device_function.overloads) == 1
        assert device_function.overloads is before
    assert device_function.overloads is outside
    assert not outside
    assert list(before) == [(types.float32,)]


def test_options_without_a_signature_take_effect():
    """numba-cuda alone drops ``lto=`` there."""
    for lto in (True, False):

        @cuda.jit(lto=lto, fastmath=True)
        def kernel(x):
            x[0] = 1

        assert kernel.targetoptions["lto"] is lto
        assert kernel.targetoptions["fastmath"] is True
        assert (kernel.__name__, cuda.jit.__name__) == ("kernel", "jit")
    linked = autolink.build(kernel, "void(float32[::1])", cc=(9, 0))
    assert "without LTO" in str(linked.report)
    with pytest.raises(NotImplementedError, match="bounds checking"):
        cuda.jit(boundscheck=True)
