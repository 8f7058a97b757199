# SPDX-License-Identifier: BSD-2-Clause
"""Messages are bounded and printable, whatever sources and servers say."""

import pytest
from autolink_support import Linked, adder, build, calling
from numba.cuda import autolink
from numba.cuda.autolink.conformance.records import FailedCheck, NotLinkableError
from numba.cuda.autolink.cxx_by_name.cxx_errors import CxxError
from numba.cuda.autolink.many_kernels.job_list import JobListError
from numba.cuda.autolink.many_kernels.jobs import BuildManyError
from numba.cuda.cudadrv.external_code.cache.entry_files import EntryFileError
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.diagnostics.messages import printable, safe_text, shown_log
from numba.cuda.cudadrv.external_code.link import checked_link

import numba_cuda_autolink
from numba_cuda_autolink import emulator
from numba_cuda_autolink.emulator.errors import EmulationError, PTXSyntaxError, UnsupportedInstruction
from numba_cuda_autolink.errors import ArgumentError, FormatError, KernelFileError, PrintableError
from numba_cuda_autolink.launch.driver import DriverError

HOSTILE = "\x1b]0;title\x07\x1b[31mred\r\b\x7f\x9b2J\u202etxt"


def test_control_characters_are_escaped():
    assert printable("a\tb\r\nc\n") == "a\tb\nc\n"
    assert printable("\x1b[31m\x9b\r\u202e") == "\\x1b[31m\\x9b\\x0d\\x202e"
    assert printable("\ud800é") == "\\ud800é"
    for text in (safe_text(ValueError(HOSTILE)), str(CompileError(HOSTILE, HOSTILE))):
        assert all(c.isprintable() or c == "\n" for c in text)


def test_a_log_is_shown_in_part():
    log = "x" * 3000 + "\n" + "line\n" * 10_000
    shown = shown_log(log)
    assert len(shown) < 21_000
    assert shown.startswith("x" * 997 + "...\nline\n")
    assert shown.endswith(f"... and {len(log) - 20_000} more characters: see the exception's .log")
    error = CompileError("f.cu", log)
    assert error.log == log and len(str(error)) < 21_000


LARGE = (HOSTILE + "\n") * 1_000_000 + "x" * 1_000_000  # 24 MB


@pytest.mark.parametrize(
    "error",
    [
        CompileError(LARGE, LARGE),
        autolink.LinkError(LARGE, LARGE),
        CxxError(LARGE, LARGE),
        NotLinkableError("name", "call", (FailedCheck("name", LARGE, "expected", "todo"),), ()),
        BuildManyError(["job"], [ValueError(LARGE)]),
        RuntimeError(safe_text(ValueError(LARGE))),
        *[cls(LARGE) for cls in (autolink.CABIError, autolink.LinkInputError, autolink.PrebuiltError)],
        *[cls(LARGE) for cls in (EntryFileError, JobListError, FormatError, KernelFileError)],
        *[cls(LARGE) for cls in (ArgumentError, DriverError, EmulationError, PTXSyntaxError, UnsupportedInstruction)],
        autolink.HookError(None, (), LARGE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_each_error_is_bounded_and_printable(error):
    assert len(f"{error}") < 100_000
    assert all(c.isprintable() or c in "\n\t" for c in f"{error}")


def test_a_new_public_error_is_bounded_and_printable_too():
    """All that are not tested above."""
    public = [getattr(each, name) for each in (autolink, numba_cuda_autolink, emulator) for name in dir(each)]
    errors = [each for each in public if isinstance(each, type) and issubclass(each, Exception)]
    bounds_itself = (CompileError, autolink.LinkError, autolink.CallError, NotLinkableError, BuildManyError, Warning)
    of_ours = (autolink.CacheMismatchError, autolink.MissingSeamError)  # which have texts and paths of ours alone
    assert [each for each in errors if not issubclass(each, (PrintableError, *bounds_itself, *of_ours))] == []
    assert len(errors) > 15


def test_the_error_of_a_hook_is_bounded_and_printable():
    class Raises(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("f", returns=x)

        def __numba_cuda_link__(self, x):
            raise ValueError(LARGE)

    raises = Raises()

    with pytest.raises(autolink.CallError) as caught:
        build(calling(raises))
    assert len(f"{caught.value}") < 60_000
    assert "\x1b" not in f"{caught.value}"


def kernel_of(code):
    function = Linked("f", autolink.CUDASource(code)).function

    return calling(function)


@pytest.mark.parametrize(
    "code",
    ["#error " + "x" * 100_000 + "\n", "int " + "y(;\n" * 20_000, f"#error {HOSTILE}\n", f"/* {HOSTILE} */ int f(\n"],
    ids=["a long line", "many errors", "an escape in an error", "an escape in a line"],
)
def test_the_error_of_a_source_is_bounded_and_printable(code):
    with pytest.raises(autolink.LinkError) as caught:
        build(kernel_of(code + adder("f")))
    text = str(caught.value)
    assert len(text) < 30_000
    assert all(c.isprintable() or c in "\n\t" for c in text)
    assert len(caught.value.log) > 50


def test_a_result_is_no_larger_than_its_inputs_allow(monkeypatch):
    monkeypatch.setattr(checked_link, "_MOST_ADDED", 0)
    monkeypatch.setattr(checked_link, "_MOST_GROWTH", 0)
    with pytest.raises(autolink.LinkError, match="bytes, more than its inputs allow"):
        build(kernel_of(adder("f") + "// larger than it allows"), lto=False)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: autolink.Extern("f", "float32"),
            "Extern() takes 1 argument by position, got 2\n"
            "  what to do: give the others by name: returns=... or args=... or cooperative=...",
        ),
        (lambda: autolink.CUDASource("int f();", "f.cu"), "CUDASource() takes 1 argument by position, got 2\n"),
    ],
)
def test_arguments_by_position_that_are_given_by_name(call, message):
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value).startswith(message)
