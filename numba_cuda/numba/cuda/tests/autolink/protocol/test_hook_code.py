# SPDX-License-Identifier: BSD-2-Clause
"""What an answer depends on counts beside the link key, where an author would not think of putting it there."""

from __future__ import annotations

import functools
import math
import os
import pathlib
import threading

import pytest
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink.protocol.callee import find_callee
from numba.cuda.autolink.value_fingerprint import fingerprint_of_link_key

PREFIX = "AUTOLINK_TEST_"
template = ""


class Holder:
    def __init__(self, held=None):
        self.held = held

    def method(self):
        return self.held

    def __numba_cuda_link__(self, x):
        return None


def digest(obj):
    return find_callee(obj).code_digest()


def linking(function):
    function.__numba_cuda_link__ = function
    return function


PAIRS = {
    "a function": (lambda: 1, lambda: 2),
    "a function in a list": ([lambda: 1], [lambda: 2]),
    "a function that an object holds": (Holder({"a": lambda: 1}), Holder({"a": lambda: 2})),
    "a partial function": (functools.partial(print, 1), functools.partial(print, 2)),
    "a bound method": (Holder(lambda: 1).method, Holder(lambda: 2).method),
    "a function of Python": (math.sin, math.cos),
    "a class": (int, float),
    "a device function": (cuda.jit(device=True)(lambda: 1), cuda.jit(device=True)(lambda: 2)),
    "functions in a set": ({len, math.sin}, {len, math.cos}),
}


@pytest.mark.parametrize("one, other", PAIRS.values(), ids=PAIRS)
def test_functions_and_classes_that_an_object_holds_count(one, other):
    assert digest(Holder(one)) == digest(Holder(one)) is not None
    assert digest(Holder(one)) != digest(Holder(other))


def test_values_and_what_belongs_to_the_process_do_not():
    assert digest(Holder(1)) == digest(Holder(2)) is not None
    assert digest(Holder([1, "a"])) == digest(Holder([2, "b"])) is not None
    assert digest(Holder(threading.Lock())) == digest(Holder(threading.Lock())) is not None


@pytest.mark.parametrize("kind", [str, pathlib.Path, lambda path: [os.fsencode(path).decode()]])
def test_files_whose_paths_it_holds_count_by_their_content(kind, tmp_path):
    path = tmp_path / "template.cu"
    digests = []
    for text in "one", "two", "one":
        path.write_text(text)
        digests.append((digest(Holder(kind(path))), fingerprint_of_link_key(kind(path))))
    assert digests[0] == digests[2]
    (tmp_path / "another").mkdir()
    copied = path.rename(tmp_path / "another" / "template.cu")
    assert digest(Holder(kind(copied))) == digests[0][0]  # another checkout
    assert all(one != other for one, other in zip(*digests[:2], strict=True))


def test_a_path_of_what_is_not_a_regular_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in "fifo", "nothing", ".", "\0":
        assert digest(Holder(tmp_path / path)) is not None


def test_a_file_whose_path_is_a_global_of_the_hook_counts(tmp_path, monkeypatch):
    hook = linking(lambda x: pathlib.Path(template).read_text())
    digests = []
    for text in "one", "two":
        (tmp_path / "template.cu").write_text(text)
        monkeypatch.setitem(globals(), "template", str(tmp_path / "template.cu"))
        digests.append(digest(hook))
    assert len(set(digests)) == 2


@pytest.mark.parametrize(
    "hook",
    [
        lambda x: os.environ[PREFIX + "SIZE"],
        lambda x: os.environ.get(f"AUTOLINK_TEST_{x}"),
        lambda x, name="AUTOLINK_TEST_SIZE": os.getenv(name),
        lambda x: [*os.environ.values()],
    ],
    ids=["a global", "a part", "a default", "all"],
)
def test_environment_variables_that_a_hook_names_count(hook, monkeypatch):
    digests = []
    for value in "1", "2":
        monkeypatch.setenv(f"{PREFIX}SIZE", value)
        digests.append(digest(linking(hook)))
    assert len(set(digests)) == 2


def test_other_environment_variables_do_not_count(monkeypatch):
    hook = linking(lambda x: os.environ.get("AUTOLINK_TEST_SIZE"))
    digests = []
    for value in "1", "2":
        monkeypatch.setenv(f"{PREFIX}OTHER", value)
        digests.append(digest(hook))
    assert len(set(digests)) == 1


def test_where_an_object_holds_a_library_of_cxx_its_code_is_unknown():
    library = autolink.cxx("enum { N = 1 };")
    for held in library, library.f, Holder({"a": (library,)}):
        assert digest(Holder(held)) is None


class Raising:
    @property
    def __class__(self):
        raise RuntimeError("outside of its context")


def test_where_an_object_holds_what_cannot_be_looked_at_its_code_is_unknown():
    nested = []
    for _ in range(100_000):
        nested = [nested]
    for held in Raising(), nested:
        assert digest(Holder(held)) is None
