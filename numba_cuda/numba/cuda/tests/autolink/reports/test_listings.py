# SPDX-License-Identifier: BSD-2-Clause
"""What the code became: inlined or called, functions and their size, occupancy, source, PTX and machine code."""

import dataclasses
import html
import json
import linecache
import re
from collections import defaultdict

import pytest
from autolink_support import CC, Linked, adder, build, calling, ptx
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink.reports import collect
from numba.cuda.autolink.reports.collect import report_of
from numba.cuda.autolink.reports.comparison import changes
from numba.cuda.autolink.reports.machine_code import disassemble, nvdisasm
from numba.cuda.autolink.reports.occupancy import occupancies, occupancy
from numba.cuda.autolink.reports.records import FunctionReport
from numba.cuda.cudadrv.external_code.formats.cubin import functions_of

CALLED = 'extern "C" __device__ __noinline__ int {0}(int *out, int x) {{ *out = x * x + 5; return 0; }}'
inlined = Linked("listed_inlined", autolink.CUDASource(adder("listed_inlined"), name="listed_inlined.cu")).function
called = Linked("listed_called", autolink.CUDASource(CALLED.format("listed_called"), name="listed_called.cu")).function

needs_nvdisasm = pytest.mark.skipif(nvdisasm() is None, reason="needs nvdisasm, of the package nvidia-cuda-nvdisasm")
BODY = ["    x[0] = inlined(x[0])", "    x[1] = called(x[1])"]


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
    assert "inlined: no" in str(report)


def test_a_call_by_name_is_not_inlined_where_the_function_or_one_that_it_calls_is_left():
    library = autolink.cxx("""
        template <int N> __device__ __noinline__ float power(float x) {
            float r = 1; for (int i = 0; i < N; ++i) r *= x; return r; }
        __device__ __noinline__ float helper(float x) { return x * x + 3; }
        __device__ float by_way(float x) { return helper(x) + helper(x + 1); }
        __device__ float alone(float x) { return x - 1; }
        __device__ double raised(double x) { return pow(x, 2.5); }
    """)

    @cuda.jit
    def calling(x):
        x[0] = library["power<3>"](x[0])
        x[1] = library.by_way(x[1])
        x[2] = library.alone(x[2])
        x[3] = library.raised(x[3])

    report = autolink.report(calling, "void(float32[::1])", cc=CC)
    assert [(call.inlined, call.called) for call in report.builds[0].calls] == [
        (False, ("power<3>(float)",)),
        (False, ("helper(float)",)),
        (True, ()),
        (True, ()),
    ]
    assert "inlined: no" in str(report)
    assert ">no, helper(float) called<" in report.to_html()


def of_one_function(monkeypatch, lineinfo):
    """Return the build of a kernel that calls one function in two lines, of which the first was inlined."""
    in_machine_code = collect.calls_in
    monkeypatch.setattr(
        collect, "calls_in", lambda found: {name: places[1:] for name, places in in_machine_code(found).items()}
    )

    @cuda.jit(lineinfo=lineinfo)
    def twice(x):
        x[0] = called(x[0])
        x[1] = called(x[2])

    return autolink.report(twice, "void(int32[::1])", cc=CC)


@needs_nvdisasm
def test_which_of_two_calls_was_inlined_is_known_with_line_information(monkeypatch):
    report = of_one_function(monkeypatch, lineinfo=True)
    first, second = report.builds[0].calls
    assert (first.inlined, first.left, second.inlined, second.left) == (True, None, False, None)
    assert f"  not inlined\n    listed_called(int32) at test_listings.py:{second.line}\n" in str(report)


@needs_nvdisasm
def test_how_many_of_two_calls_are_left_is_known_without_line_information(monkeypatch):
    report = of_one_function(monkeypatch, lineinfo=False)
    (build,) = report.builds
    assert [(each.inlined, each.left) for each in build.calls] == [(None, (1, 2))] * 2
    assert [each.calls for each in build.result.functions] == [None, 1]
    text, page = str(report), report.to_html()
    assert text.count("inlined: not known, 1 CALL left for 2 calls\n") == 2
    lines = " and ".join(str(each.line) for each in build.calls)
    place = f"listed_called(int32) ×2 at test_listings.py:{lines}"  # noqa: RUF001 - as it is shown
    assert f"{place}: 1 CALL left for 2 calls" in " ".join(text.split())
    assert page.count('data-words="not inlined">not known, 1 CALL left for 2 calls<') == 2
    assert "<th>CALL instructions</th>" in page and "not all inlined" in page
    assert autolink.Report.from_json(report.to_json()) == report


def test_memory_of_variables_and_what_functions_need_are_shown():
    library = autolink.cxx("""
        __constant__ float table[64] = {1, 2, 3};
        __device__ float kept[100];
        __device__ __noinline__ float deep(float x, int k) {
            float b[32];
            for (int i = 0; i < 32; ++i) b[i] = x * i + table[(k + i) & 63];
            return b[k & 31] + kept[k & 63];
        }
        __device__ float outer(float x, int k) { return deep(x, k) + deep(x, k + 1); }
    """)

    @cuda.jit(lto=False)
    def calling(x):
        i = cuda.grid(1)
        x[i] = library.outer(x[i], i)

    report = autolink.report(calling, "void(float32[::1])", cc=CC)
    result = report.builds[0].result
    assert (result.constant_memory, result.global_memory >= 400) == (256, True)
    assert "constant memory of variables: 256 bytes\n" in str(report)
    (deep,) = (each for each in result.functions if each.name == "deep(float, int)")
    assert deep.registers > 0 and deep.stack >= 128
    assert re.search(r"deep\(float, int\): [\d.]+ [\w]+, (2 CALLs, )?\d+ registers, stack \d+ bytes\n", str(report))
    assert "<th>stack, bytes</th>" in report.to_html()


def test_a_lambda_that_cxx_calls_is_inlined_with_the_call():
    fold = autolink.cxx("""
        template <class F> __device__ float fold(const float* x, int n, F f) {
            float r = x[0];
            for (int i = 1; i < n; ++i) r = f(r, x[i]);
            return r;
        }
        template <class F> __device__ __noinline__ float kept(const float* x, int n, F f) { return fold(x, n, f); }
    """)

    @cuda.jit
    def folding(x):
        x[0] = fold.fold(x, 9, lambda a, b: a if abs(a) >= abs(b) else b)
        x[1] = fold.kept(x, 9, lambda a, b: a + b)

    calls = autolink.report(folding, "void(float32[::1])", cc=CC).builds[0].calls
    assert [call.inlined for call in calls] == [True, False]
    assert [name.partition("<")[0] for name in calls[1].called] == ["kept"]


@needs_nvdisasm
@pytest.mark.filterwarnings("error")
def test_machine_code_of_a_lambda_is_at_its_lines():
    fold = autolink.cxx("""
        template <class F> __device__ float each(float* x, int n, F f) {
            for (int i = 0; i < n; ++i) x[i] = f(x[i]);
            return x[n - 1];
        }
    """)

    @cuda.jit
    def folding(x, n):
        x[0] = fold.each(
            x,
            n,
            lambda a: a * a - a * 7 + 2,
        )
        x[1] += 1  # after

    (build,) = autolink.report(folding, "void(float32[::1], int32)", cc=CC, listings=True).builds
    of_line = {line.text.strip(): "\n".join(line.sass) for line in build.listings[0].lines}
    assert "FMA" in of_line["lambda a: a * a - a * 7 + 2,"]
    assert "FMA" not in of_line["x[1] += 1  # after"]


@needs_nvdisasm
def test_cxx_in_a_python_file_is_shown_at_its_lines():
    library = autolink.cxx("""
        __device__ float many(float* x, int n) {
            for (int i = 0; i < n; ++i) x[i] = x[i] * x[i] + 3;  // in Python
            return x[n - 1];
        }
    """)

    @cuda.jit
    def calling(x, n):
        x[0] = library.many(x, n)

    (build,) = autolink.report(calling, "void(float32[::1], int32)", cc=CC, listings=True).builds
    (listing,) = [each for each in build.listings if each.name.startswith(f"{__file__}:")]
    (line,) = [each for each in listing.lines if each.text.endswith("// in Python")]
    assert linecache.getline(__file__, line.number).rstrip("\n") == line.text
    assert any("FFMA" in each for each in line.sass)
    assert not [each.name for each in build.listings if "sources" in each.name]


@pytest.mark.filterwarnings("error")
def test_the_build_for_listings_warns_of_nothing(front_end):
    names = {"called": autolink.cxx("__device__ int plus(int x) { return x + 1; }").plus}
    exec("def without_source(x):\n    x[0] = called(x[0])", names)
    shown = autolink.report(front_end.cuda.jit(names["without_source"]), "void(int32[::1])", cc=CC, listings=True)
    assert shown.builds[0].listings_with_lineinfo


def test_code_that_takes_no_part_in_lto_is_called():
    name = "listed_machine_code"
    code = cuda.PTXSource(ptx(adder(name)), name=f"{name}.ptx")
    function = Linked(name, code).function

    (call,) = build(calling(function)).report.builds[0].calls
    assert call.inlined is False


def test_the_functions_of_the_result_with_their_sizes(report):
    functions = report.builds[0].result.functions
    assert functions[0].name.startswith(f"{__name__}::kernel(Array<int, 1, C")
    assert [each.name for each in functions[1:]] == ["listed_called"]
    assert all(0 < each.size < 4096 and each.size % 16 == 0 for each in functions)


def test_source_and_ptx_of_each_object(report):
    own, first, second = report.builds[0].listings
    assert [line.text for line in own.lines] == ["def kernel(x):", *BODY]
    assert [line.number for line in own.lines] == list(range(report.line, report.line + 3))
    assert (first.name, [line.text for line in first.lines]) == ("listed_inlined.cu", [adder("listed_inlined")])
    assert "listed_called" in second.ptx
    assert "autolink_probe" not in second.ptx
    assert autolink.Report.from_json(report.to_json()) == report


@needs_nvdisasm
def test_machine_code_beside_the_line_that_it_comes_from(report):
    own, first, second = report.builds[0].listings
    assert "EXIT" in "".join(own.lines[-1].sass)
    assert first.lines[0].sass
    assert "RET" in "".join(second.lines[0].sass)
    page = report.to_html()
    for listing in report.builds[0].listings:
        for line in listing.lines:
            assert not line.sass or html.escape(line.sass[0], quote=False) in page


@needs_nvdisasm
def test_a_cxx_function_that_is_called_and_contains_inlined_code_has_its_lines_in_its_own_file(tmp_path):
    # ptxas gives all of it the kernel's file, with the lines of the C++ file.
    path = tmp_path / "called.cu"
    path.write_text(
        "__device__ inline float common(float x) {\n    return x + 0.25f;\n}\n"
        "__device__ __noinline__ float f(float x) {\n    return sqrtf(common(x) * 3.0f);\n}\n"
    )
    library = autolink.cxx(path)

    @cuda.jit
    def kernel(x):
        x[0] = library.f(x[0])

    report = autolink.report(kernel, "void(float32[::1])", cc=CC, listings=True)
    own, *others = [each for each in report.builds[0].listings if each.has_machine_code]
    assert [line.text.strip() for line in own.lines if line.sass] == ["def kernel(x):", "x[0] = library.f(x[0])"]
    assert [listing.name for listing in others] == [str(path)]
    code = {line.number: "".join(line.sass) for line in others[0].lines if line.sass}
    assert "FADD" in code[2]
    assert "RET" in code[5]

    built = build(kernel, "void(float32[::1])", lineinfo=True)
    without_ptx = disassemble(built.code, built.entry_name)
    assert {each.places for each in without_ptx if "_Z1ff" in each.function} == {()}
    assert all(each.places for each in without_ptx if each.function == built.entry_name)


@needs_nvdisasm
def test_code_by_name_shows_the_lines_of_the_user_and_not_of_wrappers(tmp_path):
    path = tmp_path / "by_name.cu"
    path.write_text("// A comment.\n__device__ float twice(float x) {\n    return x * 2;\n}\n")
    twice = autolink.cxx(path).twice

    @cuda.jit
    def kernel(x):
        x[0] = twice(x[0])

    report = autolink.report(kernel, "void(float32[::1])", cc=CC, listings=True)
    (found,) = [listing for listing in report.builds[0].listings if listing.name == str(path)]
    assert [line.text for line in found.lines] == path.read_text().splitlines()
    assert [line.number for line in found.lines if line.sass] == [3]
    shown = [line.text for listing in report.builds[0].listings for line in listing.lines]
    assert [text for text in shown if "nca" in text] == []


def _by_line(listings):
    return {listing.name: {line.text.strip() for line in listing.lines if line.sass} for listing in listings}


@needs_nvdisasm
def test_what_a_call_by_name_became_is_at_the_line_of_the_call():
    library = autolink.cxx("__device__ float times(float a) { return a * 7; }")
    other = autolink.cxx("__device__ __noinline__ float slow(float a) { return a > 2 ? a * a / 3 : a; }")

    @cuda.jit(device=True, lineinfo=True)
    def helper(x, y):
        a = x * y + 3
        return library.times(a) - y

    @cuda.jit
    def kernel(x):
        x[0] = helper(x[0], x[1])
        x[1] = other.slow(x[2])

    listings = autolink.report(kernel, "void(float32[::1])", cc=CC, listings=True).builds[0].listings
    found = {name.rpartition(".")[2].partition(":")[0]: lines for name, lines in _by_line(listings).items()}
    assert found.keys() == {"kernel", "helper", "times(float64)", "slow(float32)", "py"}
    assert found["helper"] == {"return library.times(a) - y"}
    (own,) = (each for each in listings if each.name.endswith("kernel"))
    (line,) = (line for line in own.lines if "slow" in line.text)
    assert any("CALL" in each for each in line.sass)


@needs_nvdisasm
def test_a_function_without_line_information_of_its_own_has_a_note():
    @cuda.jit(device=True)
    def plain(x):
        return inlined(x) * 2

    @cuda.jit(device=True, lineinfo=True)
    def listed(x):
        return inlined(x) * 3

    @cuda.jit(device=True, lineinfo=True)
    def through(x):
        return listed(x)

    @cuda.jit(device=True, lineinfo=True)
    def passed(x):
        return x * 5 + 7

    library = autolink.cxx("template <class F> __device__ int apply(F f, int x) { return f(x); }  // in Python")

    @cuda.jit
    def kernel(x):
        x[0] = plain(x[0])
        x[1] = through(x[1])
        x[2] = library.apply(passed, x[2])

    report = autolink.report(kernel, "void(int32[::1])", cc=CC, listings=True)
    notes = {each.name.rpartition(".")[2]: each.note for each in report.builds[0].listings}
    assert [name for name, note in notes.items() if note] == ["plain", "through"]
    assert notes["through"] == "The machine code of these lines is at the lines of the functions that they call"
    (listing,) = [each for each in report.builds[0].listings if each.name == "passed(int32)"]
    assert ["x * 5 + 7" in line.text for line in listing.lines if line.sass] == [True] and listing.ptx
    titles = [each.name for each in report.builds[0].listings]
    assert len(set(titles)) == len(titles)
    assert "cuda.jit(lineinfo=True)" in notes["plain"]
    assert html.escape(notes["plain"]) in report.to_html()


@needs_nvdisasm
def test_listings_of_a_kernel_without_line_information_leave_the_report_as_it_is(report):
    signature = "void(int32[::1])"
    listed, plain = (autolink.report(kernel, signature, cc=CC, listings=each) for each in (True, False))
    assert listed.changes_since(plain) == "nothing changed"
    assert any(listing.has_lines for listing in listed.builds[0].listings)
    assert listed.builds[0].listings_with_lineinfo
    assert "The rest of this report is of the kernel without." in listed.to_html()
    assert not report.builds[0].listings_with_lineinfo


@needs_nvdisasm
def test_without_line_information_the_page_says_what_is_missing():
    listed = report_of(autolink.build(kernel, "void(int32[::1])", cc=CC), listings=True)
    assert "EXIT" in listed.builds[0].listings[0].sass
    assert "needs line information" in listed.to_html()


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


def test_occupancies_that_are_the_same_have_one_line(report):
    assert "occupancy of 128, 256, 512 and 1024 threads: 100%, limited by warps" in str(report)
    found = occupancies("sm_90", 48, 0, None)
    result = dataclasses.replace(report.builds[0].result, registers=48, occupancy=found)
    lines = str(dataclasses.replace(report, builds=(dataclasses.replace(report.builds[0], result=result),)))
    found = [line.strip() for line in lines.splitlines() if line.strip().startswith("occupancy")]
    assert found == [
        "occupancy of 128 and 256 threads: 62%, limited by registers",
        "occupancy of 512 and 1024 threads: 50%, limited by registers",
    ]


def test_blocks_that_cannot_be_launched_say_why(front_end):
    library = autolink.cxx("""
__device__ float work(float* x, int n) {
    float a[80], s = 0;
    #pragma unroll
    for (int i = 0; i < 80; ++i) a[i] = x[i] * n;
    #pragma unroll
    for (int i = 0; i < 80; ++i) for (int j = 0; j < 3; ++j) { a[(i * 7 + 3) % 80] += a[i] * a[(i + 41) % 80]; }
    #pragma unroll
    for (int i = 0; i < 80; ++i) s += a[i] * x[i + n];
    return s;
}""")

    def kernel(x, n):
        x[0] = library.work(x, n)

    def built(**options):
        return autolink.report(front_end.cuda.jit(**options)(kernel), "void(float32[::1], int32)", cc=CC)

    plain, bounded = built(), built(launch_bounds=192)
    result = json.loads(plain.to_json())["builds"][0]["result"]
    assert result["registers"] > 64
    assert result["occupancy"][-1] == {"threads": 1024, "blocks": 0, "share": 0.0, "limit": "registers"}
    assert autolink.Report.from_json(plain.to_json()) == plain
    lines = " ".join(str(plain).split())
    assert "occupancy of 1024 threads: cannot launch, too many registers" in lines
    assert "<div>cannot launch" in plain.to_html()
    assert [each.threads for each in bounded.builds[0].result.occupancy if each.blocks] == [128, 192]
    beyond = "cannot launch, more threads than the launch bounds"
    assert f"occupancy of 256, 512 and 1024 threads: {beyond}" in " ".join(str(bounded).split())
    changed = bounded.changes_since(plain)
    assert f"occupancy of 1024 threads: cannot launch, too many registers → {beyond}" in changed


def test_how_many_calls_are_inlined_is_at_the_top(report):
    assert ", inlined 1 of 2\n" in str(report)
    boxes = re.search('<div class="facts">(.*?)\n</div>\n', report.to_html(), re.DOTALL)[1]
    assert '<span class="faint">inlined</span><b>1 of 2</b>' in boxes
    assert '<span class="faint">occupancy</span><b>100%</b>' in boxes


def test_occupancy_of_what_cannot_be_launched_or_is_not_known():
    assert occupancy("sm_90", 1024, 255, 0).blocks == 0
    assert occupancy("sm_90", 128, 16, 300 << 10).limit == "shared memory"
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
    assert "sm_90: option lineinfo: True → False" in plain.changes_since(report).splitlines()
    other = Linked("listed_called", autolink.CUDASource(CALLED.format("listed_called"), name="other.cu")).function

    def changed(x):
        x[1] = other(x[1])

    after = build(changed).report
    lines = after.changes_since(plain).splitlines()
    (of_kernel,) = [line for line in lines if ": function " in line and "changed" in line]
    assert "nothing" not in of_kernel
    gone = f"listed_inlined(int32) at test_listings.py:{plain.builds[0].calls[0].line}"
    assert f"sm_90: call removed: {gone}, inlined" in lines
    assert (
        f"sm_90: call listed_called(int32) at test_listings.py:{after.builds[0].calls[0].line}: called;"
        " listed_called.cu → called; other.cu" in lines  # the content is the same
    )
    assert json.loads(after.changes_since(plain, "json"))["changes"][0] == {
        "arch": "all",
        "what": "kernel",
        "before": "kernel",
        "now": changed.__qualname__,
    }
    assert "<td><div>all</div></td>" in after.changes_since(plain, "html")
    with pytest.raises(ValueError, match="knows the forms text, html, json, got 'svg'"):
        after.changes_since(plain, "svg")


def test_calls_are_the_same_one_where_their_source_is(tmp_path):
    functions = {
        name: Linked(name, autolink.CUDASource(adder(name), name=f"{name}.cu")).function
        for name in ("compared_one", "compared_two", "compared_three")
    }

    def reported(first, *lines):
        path = tmp_path / "edited.py"
        path.write_text("\n".join(["def kernel(x):", *(f"    x[{n}] = {f}(x[{n}])" for n, f in lines)]))
        linecache.checkcache()
        namespace = {"a": functions[first], "b": functions["compared_two"]}
        exec(compile(path.read_text(), str(path), "exec"), namespace)
        return build(namespace["kernel"]).report

    def changed(now):
        return [
            (each.what, each.now is None) for each in changes(before, now) if each.what.startswith(("call", "2 calls"))
        ]

    lines = (0, "a"), (1, "b"), (2, "a")
    before = reported("compared_one", *lines)
    replaced = reported("compared_three", *lines)
    assert changed(replaced) == [("2 calls at edited.py:2 and 4", False)]
    deleted = reported("compared_one", *lines[1:])
    assert changed(deleted) == [("call removed: compared_one(int32) at edited.py:2, inlined", True)]


@pytest.mark.parametrize("as_file", [True, False])
def test_after_an_edit_of_one_function_of_a_library_only_its_call_has_changed(tmp_path, as_file):
    def reported(source):
        path = tmp_path / "edited.cu"
        path.write_text(source)
        library = autolink.cxx(path if as_file else source)
        names = {f"f{number}": library[f"f{number}"] for number in range(10)}
        body = "".join(f"    x[{number}] = f{number}(x[{number}])\n" for number in range(10))
        exec(f"def kernel(x):\n{body}", names)
        return build(names["kernel"], "void(float32[::1])").report

    helper = "__device__ __noinline__ float helper(float x) { return x - 1; }\n"
    functions = "".join(f"__device__ float f{n}(float x) {{ return helper(x) * {n + 2}; }}\n" for n in range(10))
    before = reported(helper + functions)
    assert all(call.returned[0].content for call in before.builds[0].calls)
    after = reported("\n" + helper + functions.replace("* 5;", "* 50;"))
    place = " in edited.cu" if as_file else ""
    assert [str(change) for change in changes(before, after)] == [f"sm_90: f3(float){place} was edited"]
    all_changed = reported(helper.replace("- 1", "- 3") + functions)
    what = {change.what for change in changes(before, all_changed)}
    by = "f0(float32), f1(float32), f2(float32) and 7 more"
    assert [each for each in what if "edited" in each] == [f"helper(float){place}, called by {by}, was edited"]
    assert not any(each.startswith("call ") for each in what)


@pytest.mark.parametrize("cc", [(8, 0), (10, 0)])
@pytest.mark.parametrize("as_file", [True, False])
def test_an_edit_is_found_in_a_report_for_another_architecture(tmp_path, cc, as_file):
    path = tmp_path / "elsewhere.cu"

    def edits(old="", new=""):
        """Return what `changes` says of the code after an edit, for *cc*, compared with that for `CC`."""

        def reported(source, cc):
            path.write_text(source)
            names = {"lib": autolink.cxx(path if as_file else source)}
            exec(f"def kernel(x):\n    {'; '.join(f'x[{n}] = lib.f{n}(x[{n}])' for n in range(3))}", names)
            return build(names["kernel"], "void(float32[::1])", cc=cc).report

        source = (
            "__constant__ float table[2] = {3, 4};\n__device__ float helper(float x) { return x - 1; }\n"
            "__device__ float f0(float x) { return helper(x) * 2; }\n"
            "__device__ float f1(float x, float y = 7) { return helper(x) + y; }\n"
            "__device__ float f2(float x) { return table[x > 1]; }\n"
        )
        found = changes(reported(source, CC), reported(source.replace(old, new) + "// A comment.\n", cc))
        return [each.what for each in found if each.what.endswith(" was edited")]

    place = " in elsewhere.cu" if as_file else ""
    assert edits() == []
    assert edits("* 2", "* 3") == [f"f0(float){place} was edited"]
    assert edits("{3, 4}", "{3, 5}") == [f"table{place}, used by f2(float32), was edited"]
    assert edits("y = 7", "y = 8") == [f"f1(float, float){place} was edited"]  # which the caller passes
    assert edits("x - 1", "x - 2") == [f"helper(float){place}, called by f0(float32) and f1(float32), was edited"]


def test_a_call_that_is_inlined_in_one_report_alone_has_no_digests(tmp_path):
    path = tmp_path / "attribute.cu"

    def reported(attribute):
        path.write_text(f"__device__ {attribute} float f(float x) {{ return x * x + 3; }}\n")
        namespace = {"library": autolink.cxx(path)}
        exec("def kernel(x):\n    x[0] = library.f(x[0])", namespace)
        return build(namespace["kernel"], "void(float32[::1])").report

    lines = reported("__noinline__").changes_since(reported("")).splitlines()
    assert "sm_90: call f(float32) at <string>:2: inlined → called" in lines


@pytest.mark.parametrize("options", [{}, {"lineinfo": True}, {"lto": False}])
def test_code_of_which_the_source_is_the_same_has_not_changed(tmp_path, options):
    path = tmp_path / "same.cu"

    def reported(source, *lines, cc=CC):
        path.write_text(source)
        namespace = {"library": autolink.cxx(path)}
        exec("def kernel(x):" + "".join(f"\n    {line}" for line in lines), namespace)
        return build(namespace["kernel"], "void(float32[::1])", cc=cc, **options).report

    def codes(before, now):
        found = [each.what for each in changes(before, now) if each.what.endswith(" was edited")]
        return [what for what in found if not what.startswith("kernel (")]

    called = "__device__ __noinline__ float {0}(float x) {{ return x * {1}; }}\n".format
    indirect = (
        "using pointer = float (*)(float);\n"
        "__device__ pointer table[2] = {f, g};\n"
        "__device__ float h(float x) { return table[x > 1](x); }\n"
    )
    source, lines = called("f", 2) + called("g", 3) + indirect, ["x[0] = library.h(x[0])", "x[1] = library.f(x[1])"]
    before = reported(source, *lines)
    assert not codes(before, reported(source, "x[2] = library.g(x[2])", *lines))
    assert not codes(before, reported(source, *lines, cc=(10, 0)))
    for cc in (CC, (10, 0)):
        edited = reported(source.replace("x > 1", "x > 2"), *lines, cc=cc)
        assert codes(before, edited) == ["h(float) in same.cu was edited"]


def test_calls_are_the_same_one_whatever_the_other_objects_of_a_report_are_called():
    text = "namespace n{0} {{ __device__ float f(float x) {{ return x * {0}; }} }}".format
    libraries = [autolink.cxx(text(n), namespace=f"n{n}") for n in (2, 3)]

    def reported(*lines):
        namespace = {"one": libraries[0], "other": libraries[1]}
        exec("def kernel(x):" + "".join(f"\n    {line}" for line in lines), namespace)
        return build(namespace["kernel"], "void(float32[::1])").report

    before, now = reported("x[0] = one.f(x[0])"), reported("x[0] = one.f(x[0])", "x[1] = other.f(x[1])")
    assert before.builds[0].calls[0].name != now.builds[0].calls[0].name
    (added,) = [each for each in changes(before, now) if each.what.startswith(("call", "code"))]
    assert (added.before, "x * 3" in added.what) == (None, True)


def test_functions_that_only_their_file_sees_are_named_as_it_names_them():
    code = """static __device__ __noinline__ int inner(int x) {{ return x * {0} + {0}; }}
        extern "C" __device__ int hidden_{0}(int *out, int x) {{ *out = inner(x) + inner(x + 1); return 0; }}"""
    names = [f"hidden_{number}" for number in (2, 3)]
    functions = {
        name: Linked(name, autolink.CUDASource(code.format(name[-1]), name=f"{name}.cu")).function for name in names
    }
    exec("def kernel(x):\n    x[0] = hidden_2(x[0])\n    x[1] = hidden_3(x[1])", functions)
    built = build(functions["kernel"]).report.builds[0]
    assert [call.called for call in built.calls] == [("inner(int)",)] * 2
    assert {each.name for each in built.result.functions[1:]} == {"inner(int)", "inner(int) #2"}


@needs_nvdisasm
def test_machine_code_ends_without_padding(report):
    lines = [text for listing in report.builds[0].listings for line in listing.lines for text in line.sass]
    assert lines and not any("NOP" in text for text in lines)


def test_functions_of_a_renamed_file_are_compared_by_their_names():
    def named(module, number):
        kernel = f"{module}::kernel(Array<float, 1>)"
        functions = [(kernel, number), ("lib::same(float)", 10), (f"{module}::helper(float)", number + 1)]
        functions += [(f"{module}::{where}::twice(int)", number) for where in "ab"]  # which is which is not known
        built = build(globals()["kernel"]).report
        result = dataclasses.replace(
            built.builds[0].result, functions=tuple(FunctionReport(*each) for each in functions)
        )
        return dataclasses.replace(built, builds=(dataclasses.replace(built.builds[0], result=result),))

    lines = named("new", 20).changes_since(named("old", 10)).splitlines()
    assert lines == [
        "sm_90: function new::kernel(Array<float, 1>): 10 bytes → 20 bytes",
        "sm_90: function new::helper(float): 11 bytes → 21 bytes",
        "sm_90: function old::a::twice(int): 10 bytes → nothing",
        "sm_90: function old::b::twice(int): 10 bytes → nothing",
        "sm_90: function new::a::twice(int): nothing → 20 bytes",
        "sm_90: function new::b::twice(int): nothing → 20 bytes",
    ]
    assert named("new", 10).changes_since(named("new", 10)) == "nothing changed"


def test_two_architectures_are_compared_with_each_other():
    before, now = (build(kernel, cc=cc).report for cc in ((8, 0), (9, 0)))
    found = {change.what: change for change in changes(before, now)}
    assert str(found.pop("architecture")) == "all: architecture: sm_80 → sm_90"
    assert {change.arch for change in found.values()} == {"sm_80 → sm_90"}
    assert "options" not in found
    assert found["result"].now.startswith("cubin, ")
    both = autolink.report(kernel, "void(int32[::1])", cc=[(8, 0), (9, 0)])
    assert [(change.arch, change.what, change.now) for change in changes(both, now)] == [("sm_80", "build", None)]


@needs_nvdisasm
@pytest.mark.parametrize("cc", [(7, 5), (9, 0), (10, 0), (12, 0)])
@pytest.mark.parametrize("lto", [True, False])
def test_sizes_of_functions_do_not_count_padding(cc, lto):
    library = autolink.cxx("""
        __device__ __noinline__ float a(float x) { return x * x + 1; }
        __device__ __noinline__ float b(float x) { return x * x + 2; }
    """)

    def kernel(x):
        x[0] = library.a(x[0]) + library.b(x[1])

    built = build(kernel, "void(float32[::1])", cc=cc, lto=lto)
    listed = defaultdict(list)
    for each in disassemble(built.code, built.entry_name):
        listed[each.function].append(each.text)
    for texts in listed.values():
        if "BRA `(" in texts[-1]:  # to itself: ptxas pads after it
            texts.pop()
    sizes = {name: each.size for name, each in functions_of(built.code, built.entry_name).items()}
    assert sizes == {name: 16 * len(texts) for name, texts in listed.items()}
    assert len(sizes) >= 3


@needs_nvdisasm
def test_what_ptxas_adds_after_a_function_is_of_no_line(tmp_path):
    path = tmp_path / "last.cu"
    path.write_text(
        "__device__ __noinline__ float plain(float x)\n{\n    return x * x + 1;\n}\n"
        "__device__ __noinline__ float root(float x)\n{\n    return sqrtf(x);\n}\n"
    )
    library = autolink.cxx(path)

    @cuda.jit(lineinfo=True)
    def last(x):
        x[0] = library.plain(x[0]) + library.root(x[1])

    (built,) = autolink.report(last, "void(float32[::1])", cc=CC, listings=True).builds
    (lines,) = [listing.lines for listing in built.listings if listing.name == str(path)]
    assert len({line.number: line.sass for line in lines}[3]) < 6
    assert "sqrt_rn_f32_slowpath" in built.listings[0].sass


@needs_nvdisasm
def test_titles_of_listings_are_whole_and_lines_need_no_option_that_is_given():
    class Table(autolink.DeviceCallable):
        def __init__(self, path):
            self.path = path

        def __numba_cuda_call__(self, x):
            return autolink.Extern(f"titled_{len(self.path)}", returns=x)

        def __numba_cuda_link__(self, x):
            name = f"titled_{len(self.path)}"
            code = f'extern "C" __device__ int {name}(int x) {{ return x * {len(self.path)}; }}'
            return autolink.CUDASource(code, name="table.cu")

    one, other = Table("data/a"), Table("data/bb")

    @cuda.jit
    def titled(x):
        x[0] = one(x[0]) + other(x[1])

    report = autolink.report(titled, "void(int32[::1])", cc=CC, listings=True)
    page = html.unescape(report.to_html())
    summaries = re.findall("<summary>(.*?)</summary>", page)
    assert any(each.startswith("table.cu of ") and "Table(path='data/a'): " in each for each in summaries)
    built = report.builds[0]
    bare = tuple(dataclasses.replace(each, lines=(), sass="NOP") for each in built.listings)
    without = dataclasses.replace(report, builds=(dataclasses.replace(built, listings=bare),)).to_html()
    assert "cuda.jit(lineinfo=True, lto=False)" in without
    assert "needs line information" not in without


@needs_nvdisasm
def test_lines_of_a_text_that_are_one_line_in_python_are_shown_once(tmp_path):
    path = tmp_path / "one_line.py"
    text = "__device__ __noinline__ float a(float x) {\\n    x = x * x;\\n    return x * x + 1;\\n}"
    path.write_text(f'LIBRARY = autolink.cxx("{text}")\n\n\ndef kernel(x):\n    x[0] = LIBRARY.a(x[0])\n')
    names = {"autolink": autolink, "__name__": "one_line"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    kernel = cuda.jit(lineinfo=True)(names["kernel"])
    report = autolink.report(kernel, "void(float32[::1])", cc=CC, listings=True)
    (listing,) = [each for each in report.builds[0].listings if each.name == f"{path}:1"]
    assert [line.number for line in listing.lines] == [1]
    assert listing.lines[0].sass and listing.lines[0].text.splitlines()[2] == "    return x * x + 1;"


@needs_nvdisasm
@pytest.mark.parametrize("line", [1, 5])
def test_cxx_at_a_line_with_the_number_of_that_of_its_call_has_its_machine_code(tmp_path, line):
    path = tmp_path / "same_line.cu"
    path.write_text("\n" * (line - 1) + "__device__ float power(float x) { return powf(x, 2.5f); }\n")
    python = tmp_path / "same_line.py"
    python.write_text("def kernel(x):\n    i = cuda.grid(1)\n    if i < 9:\n        #\n        x[i] = power(x[i])\n")
    names = {"cuda": cuda, "power": autolink.cxx(path).power, "__name__": "same_line"}
    exec(compile(python.read_text(), str(python), "exec"), names)
    report = autolink.report(cuda.jit(names["kernel"]), "void(float32[::1])", cc=CC, listings=True)
    lengths = {each.name: {at.number: len(at.sass) for at in each.lines} for each in report.builds[0].listings}
    assert lengths[str(path)][line] > 20 > lengths["kernel"][5]


@needs_nvdisasm
def test_machine_code_has_the_labels_that_branches_name():
    many = autolink.cxx("""
        __device__ float many(float x, int n) {
            float s = 0; for (int i = 0; i < n; ++i) s += sinf(x + s); return s; }
    """).many

    @cuda.jit
    def kernel(x, n):
        x[0] = many(x[0], n)

    report = autolink.report(kernel, "void(float32[::1], int32)", cc=CC, listings=True)
    code = "\n".join(each for listing in report.builds[0].listings for line in listing.lines for each in line.sass)
    targets = set(re.findall(r"`\((\.L_\w+)\)", code))
    assert targets
    assert targets == set(re.findall(r"^/\*[0-9a-f]+\*/ (?:\.L_\w+: )*?(\.L_\w+): ", code, re.MULTILINE))
