# SPDX-License-Identifier: BSD-2-Clause
"""What one process wrote to the shared cache comes in one file, once another process needs several entries of it."""

from __future__ import annotations

import dataclasses
import struct
import time

import pytest
from cache_support import OURS, SharedFiles, cache_warnings, machines, make_key, not_built, patient
from numba.cuda.cudadrv.external_code.cache.entry import pack
from numba.cuda.cudadrv.external_code.cache.packs import HeldPacks, NewPack
from numba.cuda.cudadrv.external_code.cache.seals import sealed

KEYS = [make_key(f"f{number}.cu") for number in range(20)]


@pytest.fixture
def files():
    return SharedFiles()


@pytest.fixture
def machine(tmp_path, files):
    made = machines(tmp_path, files)
    return lambda: patient(made())


def packs(files):
    """The names of the packs among *files*."""
    return [name for name in files if name.startswith("packs/")]


def written(store, keys=KEYS):
    """Have *store* build what is under *keys*, and write it to the shared cache."""
    for key in keys:
        store.put(key, key.name.encode() * 100)
    assert store.remote.flush(30) == 0


def until_read(store, files):
    """Wait until a pack that is being read is held."""
    deadline = time.monotonic() + 30
    while not store.remote._held._packs and time.monotonic() < deadline:
        time.sleep(0.001)
    files.asked.clear()


def test_who_needs_three_entries_gets_all_that_were_built_with_them_at_once(machine, files):
    written(machine())
    assert len(files) == 21 and len(packs(files)) == 1
    second = machine()
    for key in KEYS[:3]:
        assert second.fetch(key, not_built).origin == "remote"
    until_read(second, files)
    fetched = [second.fetch(key, not_built) for key in KEYS[3:]]
    assert [each.data for each in fetched] == [key.name.encode() * 100 for key in KEYS[3:]]
    assert files.asked == [], "nothing else was asked"
    assert all(second.disk.read(key.digest) for key in KEYS)


def test_who_needs_two_entries_reads_no_pack(machine, files):
    written(machine())
    second = machine()
    for key in KEYS[:2]:
        second.fetch(key, not_built)
    assert set(files.asked) - {"connection"} == set(list(files)[:2])


def test_a_single_entry_makes_no_pack(machine, files):
    written(machine(), KEYS[:1])
    assert not packs(files)


def test_a_large_pack_is_followed_by_another(machine, files, monkeypatch):
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.cache.packs.LARGEST_PACK", 5000)
    written(machine())
    assert 2 <= len(packs(files)) < 8


def test_entries_are_packed_when_nothing_is_built_for_a_while(machine, files, monkeypatch):
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.cache.transfers._QUIET", 0.01)
    first = machine()
    for key in KEYS[:2]:
        first.put(key, b"code")
    deadline = time.monotonic() + 30
    while not packs(files) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert packs(files)


def test_an_entry_of_a_pack_that_is_missing_is_asked_for_alone(machine, files):
    written(machine())
    del files[packs(files)[0]]
    second = machine()
    assert [second.fetch(key, not_built).origin for key in KEYS] == ["remote"] * len(KEYS)
    assert (second.remote.counts.failed, second.remote.counts.found) == (0, len(KEYS))


def packed(*entries):
    return b"".join(struct.pack("<32sQ", digest, len(blob)) + blob for digest, blob in entries)


def test_entries_of_a_pack_are_trusted_no_more_than_others(machine, files):
    written(machine())
    key, others = KEYS[10], dataclasses.replace(OURS, key=b"the key of another site, 32 bytes")
    entry = pack(key, b"planted")
    for blob in (
        entry,
        bytes(32) + entry,
        sealed(others, key.digest, entry),
        sealed(OURS, KEYS[11].digest, pack(KEYS[11], b"planted")),
        sealed(OURS, KEYS[11].digest, entry),
        b"",
    ):
        files[packs(files)[0]] = packed((key.digest, blob))
        second = machine()
        for each in KEYS[:3]:
            second.fetch(each, not_built)
        until_read(second, files)
        with cache_warnings() as warned:
            assert second.fetch(key, lambda: b"right").data == b"right"
        assert second.remote.counts.untrusted == 1 and len(warned) == 1


@pytest.mark.parametrize("size", [0, 1, 39, 40, 41, 2**63])
def test_a_damaged_pack_has_the_entries_before_the_damage(size):
    whole, held = packed((bytes(32), b"whole")), HeldPacks()
    held.add(whole + struct.pack("<32sQ", b"1" * 32, size)[: size or 40] + b"cut off"[: size % 40 - 1])
    assert held.take(bytes(32)) == b"whole"
    assert held.take(b"1" * 32) in (None, b"")


def test_an_entry_is_held_until_it_is_used():
    new, held = NewPack(), HeldPacks()
    for number in range(3):
        new.add(bytes([number]) * 32, b"entry %d" % number)
    held.add(new.content())
    assert held.take(b"\x01" * 32) == b"entry 1" and held.take(b"\x01" * 32) is None
    assert held.take(b"\x02" * 32) == b"entry 2"
