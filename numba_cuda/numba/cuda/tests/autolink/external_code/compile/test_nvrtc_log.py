# SPDX-License-Identifier: BSD-2-Clause
"""The remedies in errors about CUDA C++ that does not compile."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from autolink_support import calling
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.compile import translation_unit
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError

from numba_cuda_autolink.given_sources import find_source


def message_of(code, **options):
    class Scale(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("scale", returns=x)

        def __numba_cuda_link__(self, x):
            return autolink.CUDASource(code, **options)

    scale = Scale()

    with pytest.raises(LinkError) as failure:
        autolink.build(calling(scale), "void(float32[::1])", cc=(9, 0))
    return f"{failure.value}\n"


@pytest.mark.parametrize(
    "code, remedy",
    [
        ("#include <cmath>", "include <cuda/std/cmath>, whose names are in cuda::std, or put a file cmath"),
        ('#include "stdlib.h"', "include <cuda/std/cstdlib>, whose names are in cuda::std, or put a file stdlib.h"),
        (
            "#include <stdio.h>",
            "what to do: NVRTC has no headers of the host's C++ library: delete the line (printf",
        ),
        (
            "#include <cassert>",
            "delete the line (assert needs no header); or use host_headers=True; or include <cuda/std/cassert>",
        ),
        (
            "#include <math.h>",
            "such as sqrtf and fmax, needs no header); or use host_headers=True; or include <cuda/std/cmath>",
        ),
        ("#include <vector>", "use cuda::std::array of <cuda/std/array>, or memory that the kernel passes"),
        ("#include <iostream>", "use printf, which needs no header"),
        (
            "#include <fstream>",
            "put a file fstream that defines what is used into one of the source's include_paths",
        ),
        (
            "#include <glm/glm.hpp>",
            "what to do: add the directory that glm/glm.hpp is in to the source's include_paths",
        ),
        ("inline int host() { return 1; }", "options={'device_as_default_execution_space': True}"),
        (
            "#include <bits/wordsize.h>",
            "do not include the host's C library, which bits/wordsize.h belongs to",
        ),
        (
            "MY_STATIC_INLINE int f() { return 1; }",
            "if MY_STATIC_INLINE is a macro, define it: defines={'MY_STATIC_INLINE': '...'}",
        ),
        ("__device__ void f() {} __device__ void f() {}", "what to do: give the two different names, or leave one out"),
        ("__device__ cuda::std::mdspan<float> f();", "what to do: include <cuda/std/mdspan>"),
        (
            "#include <cuda.h>",
            "included: Scale.cu → cuda.h → stdlib.h\n",
        ),
        (
            "#include <cuda.h>",
            "\n  what to do: NVRTC has no headers of the host's",
        ),
        (
            "#include <cuda.h>",
            "leave out cuda.h, if it is for the host's code; or use host_headers=True; or include <cuda/std/cstdlib>",
        ),
        ("__device__ __int128 x;", "what to do: allow it: options={'device_int128': True}"),
        ("int;;;garbage", "what to do: declare garbage before that place, or include the header that does\n"),
        ("__global__ int f() { return 0; }", "what to do: fix the source at that line\n"),
        ("__devcie__ float f(float x) { return x; }", "what to do: did you mean __device__?\n"),
        ("def f(x):\n    return x", "what to do: write C++: def is a word of Python\n"),
        ("__device__ half f(half x) { return x; }", "what to do: include <cuda_fp16.h>\n"),
        ("__device__ __nv_bfloat16 f();", "what to do: include <cuda_bf16.h>\n"),
        ("__device__ uint8_t f();", "what to do: include <cuda/std/cstdint>\n"),
        ("__device__ cub::BlockReduce<int, 32> f();", "what to do: include <cub/block/block_reduce.cuh>\n"),
        ("__device__ cub::Nothing f();", "what to do: include the header of CCCL that has cub::Nothing\n"),
        ("__device__ float f() { return cuda::std::sqrt(2.f); }", "what to do: include <cuda/std/cmath>\n"),
        ("__device__ float f() { return std::min(1, 2); }", "use cuda::std::min"),
        (
            "__device__ float f() { return std::hypot(1.f, 2.f); }",
            "use cuda::std::hypot of <cuda/std/cmath>, or host_",
        ),
        ("__device__ void f() { std::string s; }", "device code has no std::string: use cuda::std::array"),
        ("__device__ flaot f();", "what to do: did you mean float?\n"),
        ("__device__ float f(float x) { return sqrtt(x); }", "what to do: did you mean sqrt"),
        ("__device__ float f(float x) { retrun x; }", "what to do: did you mean return?\n"),
        ("struct P { int first; }; __device__ int f(P p) { return p.frist; }", "what to do: did you mean first?\n"),
        ("__device__ int f() { return TILE; }", "define it: defines={'TILE': '...'}"),
        ("struct P {}\n__device__ int f();", "write a ';' after what comes before the marked place"),
        ("__device__ int g() { {\n}\n__device__ int f() { return 1; }", "a function cannot be defined within another"),
    ],
)
def test_each_failure_has_its_remedy(code, remedy):
    message = message_of(code)
    assert remedy in message
    assert len(message.splitlines()[0]) < 130


@pytest.mark.parametrize(
    ("code", "escape"),
    [
        ("""
            __device__ void f(int i) {
                printf("hello %d\n", i);
            }""", r"\n"),
        ("""
            __device__ void f(int i) {
                printf("hello \"you\" %d", i);
            }""", r"\""),
    ],
)  # fmt: skip
def test_an_escape_that_python_has_replaced_is_the_remedy_at_the_line_of_python(code, escape):
    message = message_of(code)
    lines = Path(__file__).read_text().split("\n")
    number = next(number for number, line in enumerate(lines, 1) if "hello" in line and escape in line)
    assert f"\n  at: {__file__}:{number}\n" in message
    assert f'what to do: write r"""...""" for the text of the source: Python has replaced {escape}\n' in message


def test_a_line_that_ends_as_cxx_does_has_no_escape_that_is_replaced():
    message = message_of("; int x = ;\n__device__ int f();")
    assert "Python has replaced" not in message


def test_an_error_in_a_formatted_text_is_at_the_line_of_python():
    kind, sum = "float", "x + {y}"
    message = message_of(f"""
        // {kind}
        __device__ {kind} f({kind} x) {{ return {sum} + unknown; }}
    """)  # fmt: skip
    number = sys._getframe().f_lineno - 2
    assert f"\n  at: {__file__}:{number}\n" in message


def test_a_warning_is_at_the_line_of_python():
    lib = autolink.cxx("""
        __device__ float f(float x) {
            int never_used_here;
            return x;
        }
    """)
    number = sys._getframe().f_lineno - 4
    with pytest.warns(UserWarning, match=rf"NVRTC log messages: {re.escape(__file__)}:{number}: warning .*never_used"):
        autolink.build(calling(lib.f), "void(float32[::1])", cc=(9, 0))


def test_no_name_is_like_one_that_is_unknown_too_where_nvrtc_stops():
    message = message_of("".join(f"__device__ int f{i}() {{ return nope{i}; }}\n" for i in range(150)))
    assert "what to do: declare nope0 before that place" in message and "did you mean" not in message


def test_a_quote_that_is_not_closed_in_a_text_without_a_place():
    what = "hello"
    message = message_of(f"""
        __device__ void f() {{
            printf("{what}\n");
        }}""")
    assert 'what to do: close it; if Python has the source as a text, write r"""...""", which' in message


def test_a_quote_that_is_not_closed_in_a_file(tmp_path):
    (tmp_path / "say.cu").write_text('__device__ void f() { printf("hello); }\n')
    assert "what to do: fix the source at that line\n" in message_of(tmp_path / "say.cu")


def test_a_function_that_is_not_marked_is_named():
    first = message_of("\nint f(int x) { return x; }").splitlines()[0]
    assert first.endswith("'Scale.cu' does not compile: line 2: the function f is not marked __device__")


def test_a_macro_that_is_defined_under_another_name():
    assert (
        "what to do: did you mean TILE by the macro TILES in defines=? Or TILES where the source has TILE?\n"
        in message_of("__device__ int f() { return TILE; }", defines={"TILES": 2})
    )


def test_a_brace_that_is_not_closed_is_the_diagnosis_with_its_line():
    message = message_of("namespace a {\n__device__ int f(int x) {\n  if (x) {\n  return 1;\n}")
    assert """ line 2: expected a "}" to match this "{"\n""" in message
    assert "what to do: close it: the source ends before\n" in message


def test_names_of_the_headers_that_a_source_includes_are_known(tmp_path):
    (tmp_path / "library.hpp").write_text("__device__ inline int halved(int x) { return x / 2; }")
    code = "#include <library.hpp>\n__device__ int f(int x) { return halvd(x); }"
    assert "what to do: did you mean halved?\n" in message_of(code, include_paths=[tmp_path])


def test_a_directory_that_does_not_exist_is_named(tmp_path):
    message = message_of("#include <cmath>", include_paths=[tmp_path, tmp_path / "no_such_folder"])
    assert f"fix the source's include_paths, of which these do not exist: {tmp_path / 'no_such_folder'}\n" in message


def test_matrix_fragments_compile():
    """<mma.h> includes a header of nvcc's, which another package installs."""

    class Fragments(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("fragments", returns=x)

        def __numba_cuda_link__(self, x):
            return autolink.CUDASource("""
                #include <mma.h>
                extern "C" __device__ float fragments(float x) {
                    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> sums;
                    nvcuda::wmma::fill_fragment(sums, x);
                    return sums.x[0];
                }""")

    fragments = Fragments()

    assert autolink.build(calling(fragments), "void(float32[::1])", cc=(9, 0)).code


def test_a_library_s_header_is_to_be_copied_and_fixed(tmp_path):
    (tmp_path / "library.hpp").write_text("__device__ int f() { return 1 +; }")
    message = message_of("#include <library.hpp>", include_paths=[tmp_path])
    assert "put a fixed copy into a directory that comes first in the source's include_paths\n" in message


@pytest.mark.parametrize(("system", "mixed_in"), [("13050", True), ("13000", False), (None, False)])
def test_headers_of_another_cuda_version_are_not_mixed_in(tmp_path, monkeypatch, system, mixed_in):
    """Without crt among the toolkit's headers, that of an nvcc in the environment is used, and that of the system if it
    is of the same CUDA version."""
    toolkit = SimpleNamespace(info=str(tmp_path / "toolkit"))
    for folder, version in ("toolkit", "13050"), ("nvcc", system):
        (tmp_path / folder).mkdir()
        if version is not None:
            text = f"/* The version */\n#define CUDART_VERSION  {version}\n"
            (tmp_path / folder / "cuda_runtime_api.h").write_text(text)
    monkeypatch.setattr(translation_unit, "_get_include_dir", lambda: toolkit)
    locate = translation_unit.pathfinder.locate_nvidia_header_directory
    for found_via, expected in ("site-packages", True), ("conda", True), ("system-ctk-root", mixed_in):
        nvcc = SimpleNamespace(abs_path=str(tmp_path / "nvcc"), found_via=found_via)
        monkeypatch.setattr(
            translation_unit.pathfinder,
            "locate_nvidia_header_directory",
            lambda name, nvcc=nvcc: nvcc if name == "nvcc" else locate(name),
        )
        assert (nvcc.abs_path in translation_unit.fixed_include_paths.__wrapped__()) is expected, found_via


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("return CUDASource(code)", False),
        ('print(f"{code}")\n    return CUDASource(code)', False),
        ('return CUDASource(f"int {name}() {{ return {code}; }}")', True),
    ],
)
def test_only_a_formatted_literal_of_the_same_function_is_the_source(tmp_path, body, is_found):
    file = tmp_path / "library.py"
    other = 'def other(name, value):\n    return f"int {name}() {{ return {value}; }}"\n'
    file.write_text(f"def source(code, name):\n    {body}\n\n\n{other}")
    place = str(file), 2 + body.count("\n")
    assert find_source("int f() { return 1; }", place) == ((str(file), [2]) if is_found else None)


def test_quotes_in_a_literal_that_quotes_end_are_no_replaced_escapes():
    code = "extern \"C\" __device__ float scale(float x) { asm(\"trap;\"); return x * unknown_here; }"  # fmt: skip
    message = message_of(code)
    assert '"unknown_here" is undefined' in message and "Python has replaced" not in message


@pytest.mark.parametrize(
    ("header", "remedy"),
    [
        ("cooperative_group.h", "did you mean cooperative_groups.h?\n"),
        ("cub/block/blok_reduce.cuh", "did you mean cub/block/block_reduce.cuh?\n"),
        ("cub/block_reduce.cuh", "did you mean cub/block/block_reduce.cuh?\n"),
        ("CUB/cub.cuh", "did you mean cub/cub.cuh?\n"),
        ("curand_kernal.h", "did you mean curand_kernel.h? Then "),
        ("cublasdx.hpp", "add the directory that cublasdx.hpp is in"),
        ("curand_kernel.h", "include_paths=[pathfinder.find_nvidia_header_directory"),
    ],
)
def test_a_misspelt_header_of_a_known_library(header, remedy):
    """A package is installed for a header that it has."""
    message = message_of(f"#include <{header}>")
    assert remedy in message.partition("what to do: ")[2]


def test_a_misspelt_header_in_include_paths_is_named_first(tmp_path):
    (tmp_path / "curand_kernel.h").write_text("")
    message = message_of("#include <curand_kernal.h>", include_paths=[tmp_path])
    assert message.endswith("what to do: did you mean curand_kernel.h?\n")


def test_a_line_of_a_formatted_literal_is_shown_as_the_cxx_that_it_makes():
    kind, factor = "float", 3
    message = message_of(
        f"""
        extern "C" __device__ {kind} scale({kind} x) {{
            return {factor} * x + unknown_in_formatted;
        }}
        """
    )
    number = next(
        number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "+ unknown_in_f" in line
    )
    place, code, caret = message.splitlines()[1:4]
    assert place.endswith(f"{Path(__file__).name}:{number}")
    assert code.strip() == "return 3 * x + unknown_in_formatted;"
    assert caret == " " * code.index("unknown") + "^" * len("unknown_in_formatted")
