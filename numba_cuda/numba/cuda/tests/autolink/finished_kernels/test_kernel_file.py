# SPDX-License-Identifier: BSD-2-Clause
"""Files of finished kernels: what is written is read, lazily, and nothing else is."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import stat
import tracemalloc

import pytest
from finished_kernels_support import NUMBER, VECTOR, image, signature, write

from numba_cuda_autolink.finished.kernel_file import KernelFile, KernelFileError, Signature
from numba_cuda_autolink.plain_types import Parameter, RecordType

INNER = RecordType(4, (("d", 0, "<f4", ()),))
RECORD = RecordType(24, (("a", 0, "|u1", ()), ("b", 8, "<f8", (2,)), ("c", 16, INNER, ())))
TREE = (
    VECTOR,
    Parameter("array", "records", RECORD, 3, "A", True),
    NUMBER,
    Parameter("complex", "c", "<c16"),
    Parameter("bool", "b", "|b1"),
    Parameter("datetime", "d", "<M8[25us]"),
    Parameter("record", "r", RECORD),
    Parameter("pointer", "p"),
    Parameter("none", "n"),
    Parameter("tuple", "t", items=(Parameter("number", "0", "<i2"), Parameter("tuple", "1", items=()))),
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "saved.kernels"


def test_what_is_written_is_read(path):
    full = image(TREE, b"one", (9, 0, "a", "cubin"), shared=4096, registers=32, launch_bounds=128, cooperative=True)
    images = (full._replace(carveout=50, setup=("a:b",), teardown=("c:d",), report=b'{"r": 1}'), image(TREE, b"two"))
    write(path, first=[Signature("(many)", TREE, images), signature()], second=[signature(code=b"three")])
    file = KernelFile(path)
    assert file.names == ("first", "second")
    assert file.made_by == {"numba-cuda": "1.2.3"}
    many, other = file.signatures("first")
    assert many.text == "(many)" and many.parameters == TREE
    for read, written in zip(many.images, images, strict=True):
        assert file.read(read.code) == written.code and file.read(read.report) == written.report
        assert read._replace(code=b"", report=b"") == written._replace(code=b"", report=b"")
    assert other.parameters == (VECTOR, NUMBER)
    assert file.read(file.signatures("second")[0].images[0].code) == b"three"
    file.close()
    with pytest.raises(KernelFileError, match="was closed"):
        file.signatures("second")


def test_the_same_kernels_make_the_same_bytes(path, tmp_path):
    for each in (path, tmp_path / "again"):
        write(each, a=[signature(code=b"c" * 100)], b=[signature(code=b"c" * 100)])
    content = path.read_bytes()
    assert content == (tmp_path / "again").read_bytes()
    assert content.count(b"c" * 100) == 1  # equal code is written once


def test_opening_reads_no_kernel(path, monkeypatch):
    codes = [bytes(3000) + number.to_bytes(2, "big") for number in range(1000)]
    write(path, **{f"kernel{number}": [signature(code=code)] for number, code in enumerate(codes)})
    read = []
    original = KernelFile.read
    monkeypatch.setattr(KernelFile, "read", lambda self, block: read.append(block.size) or original(self, block))
    file = KernelFile(path)
    assert len(file.names) == 1000 and read == []
    (found,) = file.signatures("kernel999")
    assert len(read) == 1 and read[0] < 1000
    assert file.read(found.images[0].code) == codes[999]


def test_writing_replaces_the_file_as_a_whole(path, monkeypatch):
    write(path, old=[signature()])
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write(path, new=[signature()])
    assert KernelFile(path).names == ("old",)
    assert os.listdir(path.parent) == [path.name]


def test_a_missing_file_says_where_it_was_looked_for(path):
    with pytest.raises(FileNotFoundError, match=r"^load\(\) finds no file 'absent\.kernels'\n") as caught:
        KernelFile("absent.kernels")
    assert f"\n  looked for: {os.path.abspath('absent.kernels')}\n  what to do: relative paths" in str(caught.value)


@pytest.mark.parametrize("kind", [str, os.fsencode, os.fspath])
def test_errors_name_the_path_that_was_given(path, kind):
    for wrong, error in ((path / "missing" / "a.kernels", FileNotFoundError), (path.parent, KernelFileError)):
        with pytest.raises(error) as caught:
            write(kind(wrong), kernel=[signature()])
        assert str(wrong) in str(caught.value)
        assert ".tmp" not in str(caught.value) and "b'" not in str(caught.value)
    write(kind(path), kernel=[signature()])
    assert KernelFile(kind(path)).path == str(path)


def test_an_index_that_is_too_large_is_not_written(path, monkeypatch):
    from numba_cuda_autolink.finished import kernel_file

    monkeypatch.setattr(kernel_file, "_LARGEST_INDEX", 50)
    with pytest.raises(KernelFileError, match=f"^{path} cannot be written"):
        write(path, kernel=[signature(code=bytes(51))])
    assert not path.exists()


def test_what_is_no_file_is_not_replaced_and_a_link_is_followed(path):
    fifo, link = path.parent / "fifo", path.parent / "link"
    os.mkfifo(fifo)
    with pytest.raises(KernelFileError, match="is not a file"):
        write(fifo, new=[signature()])
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    link.symlink_to(path)
    write(link, new=[signature()])
    assert link.is_symlink() and KernelFile(path).names == ("new",)
    (path.parent / "other").write_bytes(b"")
    assert path.stat().st_mode == (path.parent / "other").stat().st_mode, "others may read it"


def test_what_is_no_file_is_not_read_and_a_fifo_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, tmp_path / "missing.kernels"):
        with pytest.raises(OSError, match=str(path)):
            KernelFile(path)


def opened(path) -> list[object]:
    """Read all that *path* holds."""
    file = KernelFile(path)
    found: list[object] = []
    for name in file.names:
        for each in file.signatures(name):
            found += [each, *(file.read(block) for image in each.images for block in (image.code, image.report))]
    return found


DAMAGE = {
    "empty": (lambda content: b"", "is not a file of finished kernels|is damaged"),
    "text": (
        lambda content: b"hello, world",
        "is not a file of finished kernels: it begins with b'hell'\n  what to do: load what",
    ),
    "cubin": (
        lambda content: b"\x7fELF" + content,
        "is not a file of finished kernels: a cubin or object\n  what to do: load",
    ),
    "a cubin": (lambda content: b"\x7fELF" + bytes(100), "is not a file of finished kernels"),
    "a part of the header": (lambda content: content[:40], "it has 40 bytes, fewer than its header"),
    "a part of the index": (lambda content: content[:80], "its index takes"),
    "a part of the blocks": (lambda content: content[:-1], "a part of it has another checksum"),
    "a later version": (lambda content: content[:16] + b"\x02" + content[17:], "has version 2 of the format"),
    "an index that is too long": (lambda content: content[:24] + b"\xff" * 8 + content[32:], "its index takes"),
    "a changed index": (lambda content: content[:70] + b"!" + content[71:], "its index has another checksum"),
    "a changed block": (lambda content: content.replace(b"code", b"cold"), "a part of it has another checksum"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_an_error(path, name):
    change, message = DAMAGE[name]
    write(path, kernel=[signature()])
    path.write_bytes(change(path.read_bytes()))
    if name == "an index that is too long":
        os.truncate(path, 20 << 30)  # of holes
    tracemalloc.start()
    with pytest.raises(KernelFileError, match=message) as caught:
        opened(path)
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()
    assert str(caught.value).startswith(str(path))


def test_opening_a_file_imports_and_unpickles_nothing(path, monkeypatch):
    images = (image(TREE)._replace(setup=("no_such_module:up",), teardown=("no_such_module:down",)),)
    write(path, kernel=[Signature("(many)", TREE, images)])
    for name in "load", "loads", "Unpickler":
        monkeypatch.setattr(pickle, name, None)
    with contextlib.closing(KernelFile(path)) as file:
        (read,) = file.signatures("kernel")[0].images
    assert read.setup == ("no_such_module:up",)


def test_random_bytes_and_bits_are_an_error_or_change_nothing(path, thorough):
    """The error comes when the file is opened, or when the kernel that they belong to is read."""
    write(path, kernel=[signature(), signature(NUMBER, code=b"other")])
    content, expected, draw = path.read_bytes(), opened(path), random.Random(15)
    for number in range(0, 8 * len(content), 1 if thorough else 61):
        damaged = bytearray(content)
        damaged[number // 8] ^= 1 << number % 8
        path.write_bytes(damaged)
        with pytest.raises(KernelFileError):
            opened(path)
    for _ in range(5000 if thorough else 300):
        damaged = bytearray(content)
        for _ in range(draw.choice((1, 2, 8))):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        path.write_bytes(damaged[: draw.choice((len(damaged), draw.randrange(len(damaged) + 1)))])
        with contextlib.suppress(KernelFileError):
            assert opened(path) == expected
