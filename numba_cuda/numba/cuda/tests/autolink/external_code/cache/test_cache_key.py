# SPDX-License-Identifier: BSD-2-Clause
"""Cache keys: what they differ on, what they do not, and how a difference is told."""

import pytest
from numba.cuda.cudadrv.external_code.cache import entry as cache_key
from numba.cuda.cudadrv.external_code.cache.entry import CacheKey

PARTS = (("source", "int f();"), ("arch", "sm_90"), ("options", b"\x00\x01"))


def make_key(kind="program", name="f.cu", parts=PARTS):
    return CacheKey(kind, name, parts)


def with_part(label, value):
    return tuple((known, value if known == label else old) for known, old in PARTS)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "link"},
        {"parts": with_part("arch", "sm_90a")},
        {"parts": with_part("source", "int f(); ")},
        {"parts": with_part("options", b"\x00\x02")},
        {"parts": with_part("options", b"")},
        {"parts": with_part("arch", b"sm_90")},  # bytes are not text
        {"parts": PARTS[::-1]},
        {"parts": PARTS[:-1]},
        {"parts": (*PARTS, ("more", ""))},
        {"parts": (("Source", "int f();"), *PARTS[1:])},
    ],
    ids=str,
)
def test_differs_on(change):
    assert make_key(**change).digest != make_key().digest
    assert make_key(**change) != make_key()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((("a", "bc"),), (("ab", "c"),)),
        ((("a", "b"), ("c", "d")), (("a", "bc"), ("d", ""))),
        ((("a", ""), ("b", "")), (("a", "b"),)),
        ((("a", b"t\0"), ("b", b"")), (("a", b""), ("t\0b", b""))),
        ((), (("", ""),)),
        ((("path", "\udcc3\udca9"),), (("path", "é"),)),
        ((("path", "\udce9"),), (("path", b"\xe9"),)),
    ],
    ids=repr,
)
def test_fields_never_run_into_each_other(one, other):
    assert make_key(parts=one).digest != make_key(parts=other).digest


def test_kind_does_not_run_into_the_parts():
    assert CacheKey("a", "", (("b", "c"),)).digest != CacheKey("ab", "", (("c", ""),)).digest


@pytest.mark.parametrize("change", [{"name": "another name"}, {"parts": tuple(PARTS)}, {}], ids=str)
def test_hashes_the_same(change):
    assert make_key(**change).digest == make_key().digest
    assert make_key(**change) == make_key()
    assert hash(make_key(**change)) == hash(make_key())


def test_the_digest_is_the_same_in_every_process_and_version_of_this_schema():
    # What this pins is on users' disks: if it changes, increase KEY_SCHEMA.
    assert cache_key.KEY_SCHEMA == 2
    assert make_key().digest.hex() == "e4027338a1e85479ec3e557ae7842d098d6683bd4bc64868928994f0c1775811"


def test_a_new_schema_finds_nothing_of_the_old(monkeypatch):
    before = make_key().digest
    monkeypatch.setattr(cache_key, "KEY_SCHEMA", 3)
    assert make_key().digest != before


def test_labels_are_unique():
    with pytest.raises(ValueError, match="a cache key has two parts of one label: a, a"):
        CacheKey("program", "n", (("a", ""), ("a", "b")))


def test_a_table_shows_short_text_as_it_is_and_all_else_as_size_and_digest():
    key = make_key(parts=(("arch", "sm_90"), ("source", "x" * 1000), ("lines", "a\nb"), ("data", b"sm_90")))
    table = dict(key.table)
    assert table["arch"] == "sm_90"
    assert table["source"].startswith("<1000 characters, sha256 ")
    assert table["lines"].startswith("<3 characters, sha256 ")
    assert table["data"].startswith("<5 bytes, sha256 ")
    assert table["key schema"] == "2"
