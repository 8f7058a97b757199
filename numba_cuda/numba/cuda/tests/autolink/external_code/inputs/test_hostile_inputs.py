# SPDX-License-Identifier: BSD-2-Clause
"""Files, texts and iterables that no linker can use: an error at the call, at once, and never a hang."""

import itertools
import os
import re
import stat

import pytest
from autolink_support import Linked, adder, build, read_diagnosis
from numba import cuda
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.programs import compiled
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInputError, from_item
from numba.cuda.cudadrv.external_code.platform.target import Target

from numba_cuda_autolink import files
from numba_cuda_autolink.files import read_regular_file

SURROGATE = "\udc80"


def fifo(path):
    os.mkfifo(path)
    return path


def link_to(target):
    def make(path):
        path.symlink_to(target)
        return path

    return make


def directory(path):
    path.mkdir()
    return path


FILES = {
    "FIFO": (fifo, "is a FIFO"),
    "device": (link_to("/dev/zero"), "is a device"),
    "terminal": (link_to("/dev/tty"), "is a device|cannot be read"),
    "directory": (directory, "is a directory"),
    "dangling link": (link_to("nowhere"), "not found"),
    "link to itself": (lambda path: link_to(path)(path), "cannot be read"),
}
if os.access("/proc/kmsg", os.R_OK):  # root may wait there for what the kernel says next
    FILES["kernel's log"] = link_to("/proc/kmsg"), "cannot be read: Resource temporarily unavailable"


@pytest.mark.parametrize("suffix", [".cu", ".cubin"])
@pytest.mark.parametrize(("make", "message"), FILES.values(), ids=FILES)
def test_what_is_not_a_regular_file_is_refused_without_waiting(make, message, suffix, tmp_path):
    path = make(tmp_path / f"code{suffix}")
    with pytest.raises(LinkInputError, match=message) as caught:
        from_item(path)
    assert str(path) in str(caught.value)


def test_the_error_is_at_the_call(tmp_path):
    function = Linked("from_fifo", str(fifo(tmp_path / "code.cu"))).function

    def kernel(x):
        x[0] = function(x[1])

    with pytest.raises(TypingError, match=f"is a FIFO, expected a regular file\n  called at: {__file__}"):
        build(kernel)


def test_a_file_without_end_is_read_up_to_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "code.bin"
    path.write_bytes(b"x" * 101)
    assert len(read_regular_file(path, 101)) == 101
    with pytest.raises(OSError, match="more than 100 bytes"):
        read_regular_file(path, 100)
    of_procfs = os.stat_result([stat.S_IFREG, *[0] * 9])  # which does not tell the size
    monkeypatch.setattr(os, "fstat", lambda _: of_procfs)
    with pytest.raises(OSError, match="more than 100 bytes"):
        read_regular_file(path, 100)


def test_a_huge_sparse_file_is_not_read(tmp_path):
    path = tmp_path / "code.cubin"
    with path.open("wb") as file:
        file.truncate(files.LARGEST_FILE + 1)
    with pytest.raises(LinkInputError, match=f"more than {files.LARGEST_FILE} bytes"):
        from_item(path)


TEXTS = {
    "NUL in a source": (lambda: autolink.CUDASource(adder("f") + "\0" + adder("g")), "a NUL at character"),
    "NUL in PTX": (lambda: cuda.PTXSource(b".version 8.0\0.target sm_90"), "a NUL at character 12"),
    "NUL in a path": (lambda: "code\0.cu", "is not a path: (stat: )?embedded null"),
    "NUL in a name": (lambda: autolink.CUDASource(adder("f"), name="a\0b.cu"), "a NUL"),
    "NUL in a macro": (lambda: autolink.CUDASource(adder("f"), defines={"A": "1\0"}), "a NUL"),
    "NUL in an include path": (lambda: autolink.CUDASource(adder("f"), include_paths=["a\0b"]), "a NUL"),
    "NUL in an option": (lambda: autolink.CUDASource(adder("f"), options={"std": "c++17\0"}), "a NUL"),
    "not UTF-8": (lambda: cuda.CUSource(b"// one\n// \xe9\n"), "the byte 0xe9 in line 2, which is not UTF-8"),
    "items without end": (
        lambda: itertools.repeat(autolink.CUDASource(adder("f"))),
        "with more than 100000 items, expected an iterable that ends",
    ),
    "surrogate in a source": (lambda: autolink.CUDASource(f"// {SURROGATE}"), "the lone surrogate .* at character 3"),
    "surrogate in a name": (lambda: autolink.CUDASource("", name=f"{SURROGATE}.cu"), "the lone surrogate"),
    "surrogate in a macro": (lambda: autolink.CUDASource("", defines={SURROGATE: 1}), "the lone surrogate"),
    "surrogate in a unit": (lambda: autolink.CUDASource("", unit=SURROGATE), "the lone surrogate"),
    "surrogate in a path": (lambda: "\ud800.cu", "is not a path: .*surrogates not allowed"),
    "a name that is not text": (lambda: cuda.CUSource("", name=5), "the name of the CUDA C.* is 5, expected a str"),
}


@pytest.mark.parametrize(("answer", "message"), TEXTS.values(), ids=TEXTS)
def test_text_that_no_compiler_takes_is_refused_at_the_call(answer, message):
    function = Linked("bad_text", answer).function

    def kernel(x):
        x[0] = function(x[1])

    with pytest.raises(TypingError) as caught:
        build(kernel)
    assert re.search(message, read_diagnosis(caught.value))
    assert f"called at: {__file__}" in str(caught.value)
    str(caught.value).encode()  # it can be printed


def test_a_nul_at_the_end_is_harmless():
    """NVRTC's PTX ends with one."""
    assert from_item(cuda.CUSource(adder("f") + "\0")).code.endswith(b"\0")


def test_iterables_end():
    endless = itertools.repeat("a")
    for make in (
        lambda: autolink.CUDASource("", include_paths=endless),
        lambda: autolink.CUDASource("", defines=endless),
        lambda: autolink.Extern("f", args=endless),
    ):
        with pytest.raises(ValueError, match=r"[\w=]+ have more than 10000 items, expected an iterable that ends"):
            make()


HEADERS = {
    "named": '#include "odd.h"\n',
    "named by a macro": '#define NAME "odd.h"\n#include NAME\n',
    "probed": '#if __has_include("odd.h")\n#endif\n',
}


@pytest.mark.parametrize("text", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("make, what", [(fifo, "FIFO"), (lambda path: path.symlink_to("/dev/zero"), "device")])
def test_a_header_that_is_no_regular_file_is_an_error(text, make, what, tmp_path):
    make(tmp_path / "odd.h")
    source = from_item(autolink.CUDASource(text + adder("f"), include_paths=[tmp_path]))
    with pytest.raises(CompileError, match=f"odd.h: it is a {what}, expected a regular file"):
        compiled(source, Target((9, 0)))


def test_an_include_path_that_is_no_folder_has_no_headers(tmp_path):
    fifo(tmp_path / "include")
    text = '#if __has_include("a.h")\n#error\n#endif\n' + adder("f")
    source = autolink.CUDASource(text, include_paths=[tmp_path / "include"])
    assert compiled(from_item(source), Target((9, 0))).code
