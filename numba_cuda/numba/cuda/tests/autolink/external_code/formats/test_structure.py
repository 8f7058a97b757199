# SPDX-License-Identifier: BSD-2-Clause
"""What is looked at before the linker gets it, and links tried in a child process."""

from __future__ import annotations

import functools
import random
import struct
import sys
import time
from pathlib import Path

import pytest
from autolink_support import adder, compiled, from_nvcc, have_nvcc
from cuda import pathfinder
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.formats import containers as link_formats
from numba.cuda.cudadrv.external_code.formats import structure as link_checks
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInputError, from_item
from numba.cuda.cudadrv.external_code.link import device_runtime
from numba.cuda.cudadrv.external_code.link import trial as link_trial

TARGET = autolink.Target((9, 0), lto=True)
LINKABLE = {
    "PTX": cuda.PTXSource,
    "LTO-IR": cuda.LTOIR,
    "cubin": cuda.Cubin,
    "fatbin": cuda.Fatbin,
    "object": cuda.Object,
    "archive": cuda.Archive,
}
READS_WRITES = """
extern "C" __device__ int other(int);
__device__ int table[4] = {1, 2, 3, 4};
__constant__ float factors[2];
extern "C" __device__ int f(int *out, int x) {
    __shared__ int shared[32];
    shared[threadIdx.x] = x;
    __syncthreads();
    *out = other(shared[0]) + table[x & 3] + int(factors[x & 1]);
    return 0;
}
"""
needs_nvcc = pytest.mark.skipif(not have_nvcc(), reason="nvcc makes fatbins, objects and archives, and is not here")


@functools.cache
def fatbin(arch="sm_90"):
    """A fatbin with one cubin in it, as nvcc makes it without compression."""
    code = compiled(adder("f"), "cubin", arch)
    sm = int(arch.removeprefix("sm_"))
    entry = struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, len(code), 0, 0, 8, 1, sm, 0, 0, 17, 0, 0)
    return struct.pack("<4sHHQ", link_formats.FATBIN_MAGIC, 1, 16, len(entry + code)) + entry + code


def archive(members):
    """An ar archive of *members* by name."""
    parts = [link_formats.ARCHIVE_MAGIC]
    for name, code in members.items():
        parts.append(f"{name + '/':<16}{'0':<12}{'0':<6}{'0':<6}{'644':<8}{len(code):<10}`\n".encode())
        parts.append(code + b"\n" * (len(code) % 2))
    return b"".join(parts)


@functools.cache
def good():
    """Sound code of every kind that can be made here."""
    source = adder("f")
    codes = {
        "PTX": compiled(source, "ptx"),
        "LTO-IR": compiled(source, "ltoir"),
        "cubin": compiled(READS_WRITES, "cubin"),
        "fatbin": fatbin(),
    }
    if device_runtime.archive() is not None:
        codes["archive"] = Path(pathfinder.find_static_lib("cudadevrt")).read_bytes()
    if have_nvcc():
        codes["object"] = from_nvcc((source,), "object")
        codes["archive"] = from_nvcc((source, adder("g")), "archive")
    return codes


def looked_at(kind, code):
    """*code* as a link input that the checks let pass."""
    item = from_item(LINKABLE[kind](code, name="bad"))
    if why := link_checks.misfit(item, TARGET):
        raise LinkInputError(why)
    return item


MANY_SYMBOLS = "".join(f"__device__ int v{number};" for number in range(99)) + READS_WRITES


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"])
@pytest.mark.parametrize("kind", ["ptx", "ltoir", "cubin"])
@pytest.mark.parametrize("source", [adder("f"), READS_WRITES, MANY_SYMBOLS], ids=["small", "more", "many symbols"])
def test_what_compilers_make_is_let_pass(source, kind, arch):
    name = {"ptx": "PTX", "ltoir": "LTO-IR"}.get(kind, kind)
    assert link_checks.structural_fault(name, compiled(source, kind, arch)) == ""


@needs_nvcc
@pytest.mark.parametrize("flags", ["fatbin", "object", "archive"])
def test_what_nvcc_makes_is_let_pass(flags):
    assert link_checks.structural_fault(flags, from_nvcc((READS_WRITES,), flags)) == ""


def test_the_toolkits_own_archive_is_let_pass():
    from numba.cuda.cudadrv.libs import get_cudalib

    path = Path(get_cudalib("cudadevrt", static=True))
    if not path.is_file():
        pytest.skip("there is no libcudadevrt here")
    assert link_checks.structural_fault("archive", path.read_bytes()) == ""


FAULTS = [
    ("cubin", lambda: compiled(adder("f"), "cubin")[:1500], "it is cut off or damaged"),
    ("cubin", lambda: compiled(adder("f"), "cubin")[:20], "an ELF header takes 64 bytes, and there are 20"),
    ("LTO-IR", lambda: compiled(adder("f"), "ltoir")[:30], "and there are 30"),
    ("LTO-IR", lambda: compiled(adder("f"), "ltoir")[:-1], "it is cut off"),
    ("PTX", lambda: compiled(adder("f"), "ptx")[:-20], "1 '{' too many: it is cut off"),
    ("PTX", lambda: b"int main() { return 0; }", "PTX begins with .version"),
    ("PTX", lambda: b".version 8.0\n.func f", "'.target sm_90'"),
    ("PTX", lambda: b".version 8.0\n\0\1\2", "it is no text: byte 13 is 0"),
    ("fatbin", lambda: fatbin()[:200], "its content ends at byte"),
    ("fatbin", lambda: fatbin()[:10], "a fatbin's header takes 16 bytes"),
    ("archive", lambda: archive({"a.o": b"x" * 100})[:120], "member 'a.o/' ends at byte 168"),
    ("archive", lambda: link_formats.ARCHIVE_MAGIC + b"x" * 100, "no member's header at byte 8"),
    ("object", lambda: compiled(adder("f"), "cubin"), "it is a cubin, which the linker ignores there"),
    (
        "archive",
        lambda: archive({"a.o": compiled(adder("f"), "cubin")}),
        "its member 'a.o' is a cubin, which the linker",
    ),
    ("archive", lambda: archive({"a.txt": b"text"}), "it holds no code for GPUs"),
]


@pytest.mark.parametrize(("kind", "code", "message"), FAULTS)
def test_a_fault_says_what_it_is(kind, code, message):
    with pytest.raises(LinkInputError, match=r"'bad' is no linkable ") as caught:
        looked_at(kind, code())
    assert message in str(caught.value)


@needs_nvcc
def test_an_object_without_code_for_gpus_is_refused(tmp_path):
    import shutil
    import subprocess

    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    (tmp_path / "main.c").write_text("int main() { return 0; }")
    subprocess.run(["gcc", "-c", "main.c", "-o", "main.o"], cwd=tmp_path, check=True)
    code = (tmp_path / "main.o").read_bytes()
    assert link_checks.structural_fault("object", code) == "it holds no code for GPUs: compile with nvcc -dc"
    assert "for a host processor" in link_checks.structural_fault("cubin", code)


@pytest.mark.parametrize(
    ("kind", "arch", "cc", "message"),
    [
        ("cubin", "sm_80", (9, 0), "machine code for sm_80, and the kernel is built for sm_90"),
        ("cubin", "sm_90", (8, 0), "machine code for sm_90, and the kernel is built for sm_80"),
        ("cubin", "sm_80", (8, 6), ""),
        ("cubin", "sm_86", (8, 0), "runs code for sm_80"),
        ("LTO-IR", "sm_100", (9, 0), "LTO-IR for sm_100, which is newer than sm_90"),
        ("LTO-IR", "sm_80", (9, 0), ""),
        ("PTX", "sm_100", (9, 0), "its .target sm_100 is newer than sm_90"),
        ("PTX", "sm_90a", (9, 0), "its .target sm_90a is for that architecture alone, and is not sm_90"),
        ("PTX", "sm_90a", (10, 0), "its .target sm_90a is for that architecture alone"),
        ("PTX", "sm_80", (9, 0), ""),
        ("fatbin", "sm_80", (9, 0), "it holds cubin for sm_80: nothing for sm_90"),
        ("fatbin", "sm_80", (8, 6), ""),
    ],
)
def test_what_does_not_fit_the_target_is_told(kind, arch, cc, message):
    how = {"LTO-IR": "ltoir", "PTX": "ptx"}.get(kind, kind)
    code = fatbin(arch) if kind == "fatbin" else compiled(adder("f"), how, arch)
    item = from_item(LINKABLE[kind](code))
    why = link_checks.misfit(item, autolink.Target(cc))
    assert (message in why) if message else not why


def test_a_look_costs_less_than_going_through_the_content():
    code = compiled("".join(adder(f"f{number}") for number in range(120)), "cubin")
    text = compiled(adder("f"), "ptx")
    text += text[text.index(b".visible") :] * (100_000 // len(text))

    def seconds(function, *arguments):
        start = time.perf_counter()
        function(*arguments)
        return time.perf_counter() - start

    def gone_through(content):
        return [int.from_bytes(content[i : i + 8], "little") for i in range(0, len(content), 8)]

    for kind, content in (("cubin", code), ("PTX", text)):
        assert link_checks._fault(kind, content) == ""
        looks, yardsticks = [], []
        for _ in range(10):  # in turn, so that a busy machine is so for both
            looks.append(seconds(link_checks._fault, kind, content))
            yardsticks.append(seconds(gone_through, content))
        assert min(looks) < min(yardsticks), kind


# Damage


def damaged(count, seed=7):
    """*count* pieces of code of all kinds, damaged in every way."""
    rnd = random.Random(seed)
    kinds = list(good())

    def flipped(code, within):
        changed = bytearray(code)
        for _ in range(rnd.randint(1, 3)):
            changed[rnd.randrange(min(within, len(code)))] ^= 1 << rnd.randrange(8)
        return bytes(changed)

    for number in range(count):
        kind = kinds[number % len(kinds)]
        code = good()[kind]
        ways = (
            lambda code=code: code[: rnd.randrange(len(code))],
            lambda code=code: flipped(code, 64),
            lambda code=code: flipped(code, len(code)),
            lambda kind=kind: good()[rnd.choice([other for other in kinds if other != kind])],
            lambda: rnd.randbytes(rnd.randrange(4000)),
            lambda code=code: code[: rnd.choice((8, 16, 40, 64))] + rnd.randbytes(rnd.randrange(2000)),
            lambda code=code: code + rnd.randbytes(rnd.randrange(1, 100)),
            lambda code=code: bytes(len(code)),
        )
        yield kind, ways[(number // len(kinds)) % len(ways)]()


def test_ten_thousand_damaged_inputs_are_refused_or_let_pass():
    passed = {}
    refused = 0
    start = time.perf_counter()
    for kind, code in damaged(10_000):
        try:
            passed.setdefault(kind, []).append(looked_at(kind, code))
        except LinkInputError:
            refused += 1
    assert time.perf_counter() - start < 15
    assert refused > 6_000
    # What shows only in the link ends a child process at worst. 8 of each kind; a crash starts another child.
    rnd = random.Random(1)
    sample = [item for items in passed.values() for item in rnd.sample(items, min(8, len(items)))]
    inputs = [(item.kind, item.code, item.name) for item in sample]
    lto = [number for number, item in enumerate(sample) if item.kind is kinds.LTO_IR]
    rest = [number for number in range(len(sample)) if number not in lto]
    for numbers in (lto, rest):
        options = link_trial.options_for("sm_90", [inputs[number][0] for number in numbers])
        outcomes = link_trial.run_trials(inputs, [[number] for number in numbers], options)
        assert len(outcomes) == len(numbers)
        assert all(outcome.ok or outcome.log or outcome.crash for outcome in outcomes)


def test_damage_to_tables_on_which_the_linker_crashes_is_seen():
    code = compiled(READS_WRITES, "cubin")
    file = link_formats.elf(code)
    for name, at, message in ((".nv.callgraph", 2, "refers to symbol"), (".symtab", 24 + 7, "a symbol is in section")):
        section = next(section for section in file.sections if section.name == name)
        changed = bytearray(code)
        changed[section.offset + at] ^= 0x40
        assert message in link_checks.structural_fault("cubin", bytes(changed))


# Trials


def item(kind, code, name="code"):
    return from_item(LINKABLE[kind](code, name=name))


def test_a_trial_that_succeeds():
    trial = link_trial.try_link([item("cubin", compiled(adder("f"), "cubin"))], TARGET)
    assert trial.ok
    assert trial.signal is None
    assert trial.culprit is None


def test_a_trial_compiles_source():
    trial = link_trial.try_link([from_item(cuda.CUSource(adder("f")))], TARGET)
    assert trial.ok


def test_a_trial_names_the_input_that_the_linker_refuses():
    sound = item("LTO-IR", compiled(adder("f"), "ltoir"), "sound")
    bad = item("LTO-IR", compiled(adder("g"), "ltoir")[:-200], "bad")
    trial = link_trial.try_link([sound, bad], TARGET)
    assert not trial.ok
    assert trial.culprit is bad
    assert trial.signal is None
    assert "the LTO-IR 'bad' is at fault" in trial.message
    assert trial.log


def test_a_trial_survives_a_crash_and_names_the_signal(monkeypatch, tmp_path):
    """The linker is made to crash on one input, as it does on some damage that differs between its versions."""
    child = tmp_path / "child.py"
    text = Path(link_trial.trial_child.__file__).read_text()
    call = "            nvjitlink.add_data("
    assert call in text
    child.write_text(text.replace(call, "            if name == 'bad': os.abort()\n" + call))
    monkeypatch.setattr(link_trial.trial_child, "__file__", str(child))
    sound = item("cubin", compiled(adder("f"), "cubin"), "sound")
    bad = item("cubin", compiled(adder("g"), "cubin"), "bad")
    trial = link_trial.try_link([sound, bad, sound], TARGET)
    assert not trial.ok
    assert trial.culprit is bad
    if sys.platform != "win32":
        assert trial.signal == "SIGABRT"
    assert "does not survive it" in trial.message


def test_a_trial_that_hangs_ends(monkeypatch, tmp_path):
    child = tmp_path / "child.py"
    text = Path(link_trial.trial_child.__file__).read_text()
    call = "            nvjitlink.add_data("
    child.write_text(text.replace(call, "            __import__('time').sleep(60)\n" + call))
    monkeypatch.setattr(link_trial.trial_child, "__file__", str(child))
    trial = link_trial.try_link([item("cubin", compiled(adder("f"), "cubin"))], TARGET, timeout=1)
    assert not trial.ok
    assert "no answer within 1 s" in trial.message


def test_without_a_child_process_nothing_is_tried(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(link_trial.TrialError, match="no child process can be started"):
        link_trial.try_link([item("cubin", compiled(adder("f"), "cubin"))], TARGET)
