# SPDX-License-Identifier: BSD-2-Clause
"""Public functions that are given something wrong say so first, with what they take."""

from __future__ import annotations

import sys
import traceback

import numpy as np
import pytest
from autolink_support import CC, build
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError

import numba_cuda_autolink
from numba_cuda_autolink.short_tracebacks import VARIABLE


@cuda.jit
def kernel(x):
    x[0] = 1


lib = autolink.cxx("__device__ float f(float x) { return x; } struct P { float x; };")


def linked(**options):
    return autolink.build(kernel, "void(float32[::1])", cc=CC, **options)


jobs = "the jobs of build_many() must be a list, got {}"
signature = "a signature is text or a tuple of Numba types, got {}"
WRONG = [
    (
        lambda: autolink.cpp("int f();"),
        AttributeError,
        "module 'numba.cuda.autolink' has no attribute 'cpp'; did you mean cxx?",
    ),
    (
        lambda: autolink.jit,
        AttributeError,
        "module 'numba.cuda.autolink' has no attribute 'jit'; did you mean numba.cuda.jit?",
    ),
    *(
        (
            lambda name=name: getattr(autolink, name),
            AttributeError,
            f"module 'numba.cuda.autolink' has no attribute {name!r}; did you mean numba.cuda.{name}?",
        )
        for name in ("Cubin", "PTXSource", "CUSource", "Fatbin", "Object", "Archive", "LTOIR")
    ),
    (
        lambda: autolink.cubin,
        AttributeError,
        "module 'numba.cuda.autolink' has no attribute 'cubin'; did you mean numba.cuda.Cubin?",
    ),
    (lambda: autolink.cache.import_file("nofile"), FileNotFoundError, "import_file() finds no file 'nofile'"),
    (lambda: setattr(lib, "scale", 3), AttributeError, "cannot assign to 'scale' of a C++ library"),
    (lambda: setattr(lib.f, "scale", 3), AttributeError, "cannot assign to 'scale' of 'f' of C++"),
    (lambda: setattr(lib.type("P"), "size", 3), AttributeError, "cannot assign to 'size' of 'P' of C++"),
    (lambda: lib.f.python(3), TypeError, ".python of 'f' decorates a function, got int 3"),
    (lambda: autolink.device_method(len).python(3), TypeError, "a part of 'len' is a function, which it decorates"),
    (lambda: lib[3], TypeError, "a name of C++ is a str, got int"),
    (lambda: autolink.build_many(None), TypeError, jobs.format("None")),
    (lambda: autolink.build_many(3), TypeError, jobs.format("int 3")),
    (lambda: autolink.build_many(kernel), TypeError, jobs.format("CUDADispatcher")),
    (lambda: autolink.build_many([None]), TypeError, "a job is (kernel, signature), (kernel, signature, cc)"),
    (lambda: autolink.build(kernel, None, cc=CC), TypeError, signature.format("None")),
    (lambda: autolink.build(kernel, (1, 2), cc=CC), TypeError, signature.format("tuple (1, 2)")),
    (lambda: autolink.build(kernel, "void(", cc=CC), ValueError, "'void(' is not a signature"),
    (lambda: autolink.cxx("", include_paths=None), TypeError, "include_paths of cxx() must be a list, got None"),
    (lambda: autolink.cxx("", include_paths=[None]), TypeError, "include_paths of cxx() takes a path, got None"),
    (lambda: autolink.cxx("", defines=3), TypeError, "defines= must be a list, got int 3"),
    (lambda: autolink.cxx("", defines=[3]), TypeError, "defines= have an item that is not a macro: int 3"),
    (lambda: autolink.cxx("", defines="N=3"), TypeError, "defines= have an item that is not a macro: str"),
    (lambda: autolink.cxx("", defines={"N=3": 1}), TypeError, "defines= have an item that is not a macro"),
    (lambda: autolink.CUDASource("a.cu"), ValueError, "CUDASource takes the source as text, and 'a.cu' is a path"),
    (lambda: autolink.cxx("/tmp/"), FileNotFoundError, "cxx() finds no file '/tmp/'"),
    (lambda: autolink.cxx("solver.cpp"), FileNotFoundError, "cxx() finds no file 'solver.cpp'"),
    (lambda: autolink.cxx("", defines={"N": [3]}), TypeError, "defines= give 'N' no text or number"),
    (
        lambda: autolink.Job(kernel, "void()", options={"fastmaths": True}),
        TypeError,
        "build() and cuda.jit have no option 'fastmaths'; did you mean fastmath?",
    ),
    (lambda: autolink.cache.prune("1 GB"), TypeError, "max_bytes= of prune() takes a number of bytes, got str '1 GB'"),
    (lambda: autolink.cache.why(3), TypeError, "name= of why() takes text, got int 3"),
    (lambda: autolink.cache.flush("x"), TypeError, "timeout= of flush() takes a number of seconds, got str 'x'"),
    (
        lambda: linked().report.changes_since(linked()),
        TypeError,
        "changes_since() takes a report, such as linked.report, got LinkedKernel",
    ),
    (lambda: linked().emulate.with_limit("x"), TypeError, "with_limit() takes a number of times, got str 'x'"),
    (lambda: autolink.Extern("f", returns=int), TypeError, "Extern's returns: int is not a Numba type: C and Python"),
    (lambda: autolink.bind(autolink.build(kernel, "void(int32[::1])", cc=CC)), TypeError, "bind() expects a kernel"),
    (
        lambda: autolink.build(kernel, "void(int)", cc=CC),
        ValueError,
        "'void(int)' is not a signature: int is a type of",
    ),
    (lambda: cuda.jit(link="a.cu"), TypeError, "link= of cuda.jit takes a list, such as ['code.cu']"),
    (lambda: cuda.jit(fastmath="no"), TypeError, "fastmath= of cuda.jit takes True or False"),
    (lambda: cuda.jit(max_registers="64"), TypeError, "max_registers= of cuda.jit takes an int"),
    (lambda: cuda.jit(kernel.py_func, lineinfo="no"), TypeError, "lineinfo= of cuda.jit takes True or False"),
    (lambda: cuda.jit("void(int32)", inline="alway"), TypeError, "inline= of cuda.jit takes 'always', 'never' or"),
    (lambda: cuda.jit(launch_bounds="128"), TypeError, "launch_bounds= of cuda.jit takes an integer, or a tuple"),
    (lambda: cuda.jit(launch_bounds=(128, "2")), TypeError, "launch_bounds= of cuda.jit takes an integer, or a tuple"),
    (lambda: build(kernel.py_func, max_registers="64"), TypeError, "max_registers= of cuda.jit takes an int"),
    (
        lambda: autolink.cxx("", host_headers="yes"),
        TypeError,
        "host_headers= of cxx() takes True or False, got str 'ye",
    ),
    (lambda: autolink.Extern("f", cooperative=[]), TypeError, "cooperative= of Extern() takes True or False, got list"),
    (
        lambda: autolink.build(kernel, "void()", lto="no"),
        TypeError,
        "lto= of build() takes True or False, got str 'no'",
    ),
    (
        lambda: numba_cuda_autolink.load("a", emulate="n"),
        TypeError,
        "emulate= of load() takes True or False, got str 'n'",
    ),
    (lambda: autolink.testing.ask(len, lto="no"), TypeError, "lto= of ask() takes True or False, got str 'no'"),
    (lambda: autolink.cxx("", options={3: 1}), TypeError, "options= are called by names, got int 3"),
    (lambda: autolink.cxx("", namespace=None), ValueError, "cxx() takes the namespace as a name such as 'a::b'"),
    (lambda: lib.eval("1", cc=[]), TypeError, "list [] is not a compute capability"),
    (lambda: lib.record("P", 3, cc=CC), TypeError, "record() takes a NumPy dtype, got int 3"),
    (lambda: lib.f.passing(np.zeros(3)), ValueError, "passing() takes 'value', 'pointer'"),
    (lambda: lib.f.signature(np.zeros(3), cc=CC), TypeError, "array([0., 0., 0.]) is not a Numba type"),
    (lambda: autolink.Extern("f", args=3), TypeError, "Extern's args must be a list, got int 3"),
    (lambda: autolink.Extern("f", args=types.int32), TypeError, "Extern's args must be a list, got Integer int32"),
    (lambda: autolink.ComputeCapability(None, 0), TypeError, "the parts of a compute capability are integers"),
    (lambda: autolink.ComputeCapability.parse(int), TypeError, "type <class 'int'> is not a compute capability"),
    (lambda: autolink.CUDASource.from_file(None), TypeError, "from_file() takes a path, got None"),
    (lambda: autolink.Prebuilt(None), TypeError, "Prebuilt() takes a path, got None"),
    (lambda: autolink.save(None, []), TypeError, "save() takes a path, got None"),
    (lambda: autolink.cache.export_file(None), TypeError, "export_file() takes a path, got None"),
    (lambda: autolink.cache.import_file(3, trust=True), TypeError, "import_file() takes a path, got int 3"),
    (
        lambda: numba_cuda_autolink.load(None),
        TypeError,
        "load() takes the path of a file of finished kernels, got None",
    ),
    (lambda: linked().save("/nowhere/x.kernels"), FileNotFoundError, "save() cannot write '/nowhere/x.kernels': there"),
    (lambda: linked()[1, 32](None), TypeError, "what build() returned of kernel is not launched itself"),
    (
        lambda: linked(output="ltoir").emulate[1, 1](None),
        numba_cuda_autolink.FinishedKernelError,
        "kernel cannot be emulated: it is LTO-IR, which is not linked",
    ),
    (
        lambda: linked().emulate.configure(1, 1, cooperativ=True),
        TypeError,
        "Kernel.configure() has no parameter 'cooperativ'; did you mean cooperative?",
    ),
    (lambda: linked().emulate[1, 1]([1.0]), numba_cuda_autolink.ArgumentError, "kernel: argument 1, 'x', does not fit"),
    (
        lambda: autolink.cxx("__device__ char f() { return '\0'; }"),
        autolink.LinkInputError,
        "the source of cxx() has a NUL at character 30, which would end it",
    ),
    (autolink.current_target, RuntimeError, "current_target() has a value only while a kernel is being compiled"),
    (
        lambda: autolink.cxx("", options={"use_fast_math": "yes"}),
        TypeError,
        "compile option 'use_fast_math' has a wrong type: got str 'yes', expected bool",
    ),
    (
        lambda: autolink.CUDASource("", options={"max_register_count": "32"}),
        TypeError,
        "compile option 'max_register_count' has a wrong type: got str '32', expected int",
    ),
    (
        lambda: autolink.cxx("", options={"std": 20}),
        TypeError,
        "compile option 'std' has a wrong type: got int 20, expected str",
    ),
    (
        lambda: autolink.cxx("", options={"use_fastmath": True}),
        ValueError,
        "compile option 'use_fastmath' is not a field of cuda.core.ProgramOptions; did you mean use_fast_math?",
    ),
    (
        lambda: autolink.cxx("class V { float x; };").record("V"),
        autolink.CxxError,
        "V is not a struct of numbers, pointers, arrays and such structs",
    ),
]


@pytest.mark.parametrize(("call", "error", "diagnosis"), WRONG, ids=[each[2][:40] for each in WRONG])
def test_the_diagnosis_comes_first(call, error, diagnosis, monkeypatch):
    monkeypatch.setenv(VARIABLE, "full")
    with pytest.raises(error) as caught:
        call()
    first = str(caught.value).splitlines()[0]
    assert first.startswith(diagnosis) and len(first) <= 120
    raised = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (raised.line or "").startswith("raise ")


def test_an_argument_of_a_cxx_function_has_no_name():
    f = lib.f

    @cuda.jit
    def named(r):
        r[0] = f(x=r[0])

    with pytest.raises(TypingError, match=r"the argument x=\.\.\. has a name, but all are passed by position\n"):
        build(named, "void(float32[::1])")


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: autolink.cxx("", namespce="a"), "namespace"),
        (lambda: autolink.CUDASource("", include_path="a"), "include_paths"),
        (lambda: autolink.Extern("f", return_=None), "returns"),
        (lambda: autolink.Variable("f", "int32", spcae="constant"), "space"),
        (lambda: autolink.Job(None, "void()", ccc=(9, 0)), "cc"),
        (lambda: autolink.build_many([], exectr=None), "executor"),
        (lambda: autolink.report(None, ccc=(9, 0)), "cc"),
        (lambda: autolink.device_function(abs, states=()), "state"),
        (lambda: autolink.emulated(check=True), "checks"),
    ],
)
def test_a_misspelt_argument_is_answered_with_the_nearest_name(call, name):
    with pytest.raises(TypeError, match=rf"\(\) has no parameter '.*'; did you mean {name}\?$"):
        call()


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda: linked()[1, 32](None), "write linked.emulate[grid, block](...) to run it on the CPU"),
        (lambda: linked(output="ltoir").emulate, "build it with output='ptx', or as a cubin"),
        (lambda: linked().emulate[1, 1]([1.0]), "pass an array, as np.array(...)"),
        (lambda: autolink.cxx("class V { float x; };").record("V"), "write lib.type('V')"),
        (lambda: linked().save("/nowhere/x.kernels"), "mkdir -p /nowhere"),
        (lambda: autolink.cxx("char c = '\0';"), 'write r"""...""" for the text: Python has replaced \\0'),
    ],
)
def test_what_to_do_instead(call, remedy):
    with pytest.raises(Exception) as raised:
        call()
    assert f"\n  what to do: {remedy}" in str(raised.value)


def test_a_flag_may_be_a_number_or_of_numpy():
    autolink.cxx("", host_headers=np.True_)
    autolink.cxx(
        "", options={"use_fast_math": np.True_, "restrict": 1, "max_register_count": np.int64(32), "std": None}
    )
    autolink.cxx("", options={"diag_suppress": [177], "ptxas_options": ("-v",)})
    report = autolink.build(kernel, "void(float32[::1])", cc=CC, lto=0, lineinfo=None).report
    assert not report.builds[0].link.lto


LONG = "\x1b[31m" + "x" * 100_000
TOO_LONG = {
    "cc": lambda: autolink.build(kernel, "void(float32[::1])", cc=LONG),
    "cc in a tuple": lambda: autolink.build(kernel, "void(float32[::1])", cc=(LONG, 0)),
    "an option": lambda: autolink.build(kernel, "void(float32[::1])", cc=CC, **{LONG: 1}),
    "signature": lambda: autolink.build(kernel, LONG, cc=CC),
    "signature of a report": lambda: autolink.report(kernel, LONG),
    "signature of a bound kernel": lambda: autolink.bind(kernel, LONG),
    "signature of a job": lambda: autolink.build_many([(kernel, LONG)]),
    "attempts": lambda: autolink.build_many([], attempts=LONG),
    "path": lambda: numba_cuda_autolink.load(LONG),
    "bytes": lambda: numba_cuda_autolink.load(LONG.encode()),
    "path to save to": lambda: autolink.build(kernel, "void(float32[::1])", cc=CC).save(LONG),
    "folder": lambda: autolink.Prebuilt(LONG),
    "file": lambda: autolink.cxx(LONG + ".cu"),
    "namespace": lambda: autolink.cxx("", namespace=LONG),
    "args": lambda: autolink.Extern("f", args=LONG),
    "file of entries": lambda: autolink.cache.import_file(LONG, trust=True),
    "file for entries": lambda: autolink.cache.export_file(LONG + "/f"),
    "capability": lambda: autolink.ComputeCapability.parse(LONG),
    "header": lambda: autolink.write_header(LONG, LONG),
}


@pytest.mark.parametrize("wrong", TOO_LONG.values(), ids=TOO_LONG)
def test_the_error_of_a_long_argument_is_short_and_printable(wrong):
    with pytest.raises((TypeError, ValueError, OSError)) as raised:
        wrong()
    shown = "".join(traceback.format_exception(raised.value))
    assert len(shown) < 20_000
    assert "\x1b" not in shown


def test_the_errors_of_a_python_function_of_an_object_are_printed_without_frames_of_this_package(capsys):
    function = autolink.cxx("__device__ float g(float x) { return x; }").g
    function.python(lambda x: x)
    with pytest.raises(TypeError) as raised:
        function(1, 2)
    sys.excepthook(raised.type, raised.value, raised.tb)
    printed = capsys.readouterr().err
    assert "takes 1 positional argument but 2 were given" in printed
    assert "functions.py" not in printed and "base_class.py" not in printed


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda: autolink.Bitcode("no.bc"), "read the file, Bitcode(pathlib.Path('no.bc').read_bytes())"),
        (lambda: autolink.cxx(["int f();"]), 'pass one text, "\\n".join(lines) for several'),
        (lambda: autolink.build(lib.f, "void()", cc=CC), "pass a kernel that calls this object"),
        (lambda: autolink.build(None, "void()", cc=CC), "decorate a function with @cuda.jit"),
        (lambda: build(cuda.jit(lambda x: x, device=True)), "pass a kernel that calls it"),
        (lambda: setattr(lib, "scale", 3), "write the value in the C++ text"),
    ],
)
def test_a_wrong_argument_comes_with_what_to_do(call, remedy):
    with pytest.raises((TypeError, AttributeError)) as caught:
        call()
    assert f"\n  what to do: {remedy}" in str(caught.value)
