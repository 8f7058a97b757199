# SPDX-License-Identifier: BSD-2-Clause
"""What the code became: inlined or called, functions and their size, occupancy, source, PTX and machine code."""

import pytest
from autolink_support import CC, Linked, adder, build, ptx
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink.reports.disassembly import nvdisasm
from numba.cuda.autolink.reports.occupancy import occupancy

CALLED = 'extern "C" __device__ __noinline__ int {0}(int *out, int x) {{ *out = x * x + 5; return 0; }}'
inlined = Linked("listed_inlined", autolink.CUDASource(adder("listed_inlined"), name="listed_inlined.cu")).function
called = Linked("listed_called", autolink.CUDASource(CALLED.format("listed_called"), name="listed_called.cu")).function


def kernel(x):
    x[0] = inlined(x[0])
    x[1] = called(x[1])


@pytest.fixture(scope="module")
def report():
    return autolink.report(cuda.jit(lineinfo=True)(kernel), "void(int32[::1])", cc=CC, listings=True)


def test_each_call_says_whether_it_was_inlined(report):
    assert [(call.name, call.inlined) for call in report.builds[0].calls] == [
        ("listed_inlined", True),
        ("listed_called", False),
    ]
    assert "inlined: yes" in str(report)
    assert "inlined: no, it is called" in str(report)


def test_code_that_takes_no_part_in_lto_is_called():
    name = "listed_machine_code"
    code = cuda.PTXSource(ptx(adder(name)), name=f"{name}.ptx")
    function = Linked(name, code).function

    def kernel(x):
        x[0] = function(x[0])

    (call,) = build(kernel).report.builds[0].calls
    assert call.inlined is False


def test_the_functions_of_the_result_with_their_sizes(report):
    functions = report.builds[0].result.functions
    assert functions[0].name.startswith(f"{__name__}::kernel(Array<int, 1, C")
    assert [each.name for each in functions[1:]] == ["listed_called"]
    assert all(0 < each.size < 4096 and each.size % 16 == 0 for each in functions)


def test_source_and_ptx_of_each_object(report):
    own, first, second = report.builds[0].listings
    assert own.source.startswith("def kernel(x):\n    x[0] = inlined")
    assert (first.name, first.source) == ("listed_inlined.cu", adder("listed_inlined"))
    assert "listed_called" in second.ptx
    assert "autolink_probe" not in second.ptx
    assert autolink.Report.from_json(report.to_json()) == report


@pytest.mark.skipif(nvdisasm() is None, reason="needs nvdisasm, of the package nvidia-cuda-nvdisasm")
def test_machine_code_of_each_object_with_the_lines_of_its_source(report):
    own, first, second = report.builds[0].listings
    assert "EXIT" in own.sass
    assert "// listed_inlined.cu:1" in first.sass
    assert "RET" in second.sass
    assert "RET" not in first.sass
    assert "listed_called.cu" not in own.sass
    page = report.to_html()
    assert page.count("machine code</span><pre>") == 3


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "share", "limit"),
    [
        ("sm_90", 256, 32, 0, 8, 1.0, "warps"),
        ("sm_90a", 256, 128, 0, 2, 0.25, "registers"),
        ("sm_90", 128, 32, 48 << 10, 4, 0.25, "shared memory"),
        ("sm_80", 32, 16, 0, 32, 0.5, "blocks"),
        ("sm_86", 1024, 64, 0, 1, 2 / 3, "warps"),
        ("sm_75", 256, 64, 32 << 10, 2, 0.5, "shared memory"),
    ],
)
def test_occupancy(arch, threads, registers, shared, blocks, share, limit):
    found = occupancy(arch, threads, registers, shared)
    assert (found.blocks, found.share, found.limit) == (blocks, pytest.approx(share), limit)


def test_occupancy_of_what_cannot_be_launched_or_is_not_known():
    assert occupancy("sm_90", 1024, 255, 0) is None
    assert occupancy("sm_90", 2048, 16, 0) is None
    assert occupancy("sm_999", 128, 16, 0) is None


@pytest.mark.gpu
def test_occupancy_is_what_the_driver_says():
    @cuda.jit
    def launched(x):
        shared = cuda.shared.array(3000, "float32")
        shared[cuda.threadIdx.x] = x[cuda.threadIdx.x]
        cuda.syncthreads()
        x[cuda.threadIdx.x] = shared[(cuda.threadIdx.x * 7) % 32] + inlined(cuda.threadIdx.x)

    launched[1, 32](cuda.device_array(32, "float32"))
    (built,) = autolink.report(launched).builds
    (overload,) = launched.overloads.values()
    context = cuda.current_context()
    for threads in (32, 128, 512, 1024):
        expected = context.get_active_blocks_per_multiprocessor(overload._codelibrary.get_cufunc(), threads, 0)
        assert occupancy(built.arch, threads, built.result.registers, built.result.shared).blocks == expected


def test_what_changed_between_two_reports(report):
    same = autolink.Report.from_json(report.to_json())
    assert report.changes_since(same) == "nothing changed"
    plain = build(kernel).report
    options = [" ".join(built.link.options) for each in (report, plain) for built in each.builds]
    assert f"sm_90: options: {options[0]} → {options[1]}" in plain.changes_since(report).splitlines()
    other = Linked("listed_called", autolink.CUDASource(CALLED.format("listed_called"), name="other.cu")).function

    def changed(x):
        x[1] = other(x[1])

    lines = build(changed).report.changes_since(plain).splitlines()
    sources = {call.name: call.returned[0].sha256[:12] for call in plain.builds[0].calls}
    assert (
        f"sm_90: call listed_inlined(int32): inlined; listed_inlined.cu {sources['listed_inlined']} → nothing" in lines
    )
    assert (
        f"sm_90: call listed_called(int32): called; listed_called.cu {sources['listed_called']} → called; other.cu "
        f"{sources['listed_called']}" in lines
    )
