# SPDX-License-Identifier: BSD-2-Clause
"""What is truncated, damaged or of another kind is refused before the linker gets it."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from autolink_support import adder, compiled, from_nvcc, have_nvcc
from code_samples import LINKABLE, READS_WRITES, archive, fatbin, good
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.formats.containers import ARCHIVE_MAGIC
from numba.cuda.cudadrv.external_code.formats.cubin import cubin_prototypes
from numba.cuda.cudadrv.external_code.formats.elf import read_elf
from numba.cuda.cudadrv.external_code.formats.validation import _fault, structural_fault
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInputError, from_item
from numba.cuda.cudadrv.external_code.link import nvjitlink as link_trial
from numba.cuda.cudadrv.external_code.plan.plan_checks import misfit

TARGET = autolink.Target((9, 0), lto=True)
needs_nvcc = pytest.mark.skipif(not have_nvcc(), reason="nvcc makes fatbins, objects and archives, and is not here")


def accepted(kind, code):
    """Return *code* as a link input that the checks accept."""
    item = from_item(LINKABLE[kind](code, name="bad"))
    if why := misfit(item, TARGET):
        raise LinkInputError(why)
    return item


MANY_SYMBOLS = "".join(f"__device__ int v{number};" for number in range(99)) + READS_WRITES


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"])
@pytest.mark.parametrize("kind", ["ptx", "ltoir", "cubin"])
@pytest.mark.parametrize("source", [adder("f"), READS_WRITES, MANY_SYMBOLS], ids=["small", "more", "many symbols"])
def test_output_of_compilers_is_accepted(source, kind, arch):
    name = {"ptx": "PTX", "ltoir": "LTO-IR"}.get(kind, kind)
    assert structural_fault(name, compiled(source, kind, arch)) == ""


@needs_nvcc
@pytest.mark.parametrize(
    "flags", ["object", *(pytest.param(f, marks=pytest.mark.thorough) for f in ("fatbin", "archive"))]
)
def test_output_of_nvcc_is_accepted(flags):
    assert structural_fault(flags, from_nvcc((READS_WRITES,), flags)) == ""


def test_the_toolkits_own_archive_is_accepted():
    from numba.cuda.cudadrv.libs import get_cudalib

    path = Path(get_cudalib("cudadevrt", static=True))
    if not path.is_file():
        pytest.skip("there is no libcudadevrt here")
    assert structural_fault("archive", path.read_bytes()) == ""


FAULTS = [
    ("cubin", lambda: compiled(adder("f"), "cubin")[:1500], "it is truncated or damaged"),
    ("cubin", lambda: compiled(adder("f"), "cubin")[:20], "an ELF header takes 64 bytes, and 20 are left"),
    ("LTO-IR", lambda: compiled(adder("f"), "ltoir")[:30], "of 30 bytes"),
    ("LTO-IR", lambda: compiled(adder("f"), "ltoir")[:-1], "it is truncated"),
    ("PTX", lambda: compiled(adder("f"), "ptx")[:-20], "1 '{' too many: it is truncated"),
    ("PTX", lambda: b"int main() { return 0; }", "PTX begins with .version"),
    ("PTX", lambda: b".version 8.0\n.func f", "'.target sm_90'"),
    ("fatbin", lambda: fatbin()[:200], "its content ends at byte"),
    ("fatbin", lambda: fatbin()[:10], "a fatbin's header takes 16 bytes"),
    ("archive", lambda: archive({"a.o": b"x" * 100})[:120], "member 'a.o/' ends at byte 168 of 120"),
    ("archive", lambda: ARCHIVE_MAGIC + b"x" * 100, "no member's header at byte 8"),
    ("object", lambda: compiled(adder("f"), "cubin"), "it is a cubin, which the linker ignores there"),
    (
        "archive",
        lambda: archive({"a.o": compiled(adder("f"), "cubin")}),
        "its member 'a.o' is a cubin, which the linker",
    ),
    ("archive", lambda: archive({"a.txt": b"text"}), "it holds no code for GPUs"),
]


@pytest.mark.parametrize(("kind", "code", "message"), FAULTS)
def test_the_error_names_the_fault(kind, code, message):
    with pytest.raises(LinkInputError, match=r"'bad' cannot be linked as ") as caught:
        accepted(kind, code())
    assert message in str(caught.value)


@needs_nvcc
def test_an_object_without_code_for_gpus_is_refused(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    (tmp_path / "main.c").write_text("int main() { return 0; }")
    subprocess.run(["gcc", "-c", "main.c", "-o", "main.o"], cwd=tmp_path, check=True)
    code = (tmp_path / "main.o").read_bytes()
    assert structural_fault("object", code) == "it holds no code for GPUs: compile with nvcc -dc"
    assert "for a CPU" in structural_fault("cubin", code)


def lines_run(function, *arguments):
    """Return how many lines of Python *function* runs."""
    count = 0

    def count_line(frame, event, argument):
        nonlocal count
        count += event == "line"
        return count_line

    before = sys.gettrace()
    sys.settrace(count_line)
    try:
        assert function(*arguments) == ""
    finally:
        sys.settrace(before)
    return count


def test_the_work_is_linear_in_the_number_of_functions():
    small, large = (compiled("".join(adder(f"f{n}") for n in range(count)), "cubin") for count in (60, 120))
    assert lines_run(_fault, "cubin", large) < 2.2 * lines_run(_fault, "cubin", small)


def test_ptx_is_checked_without_a_loop_over_its_lines():
    text = compiled(adder("f"), "ptx")
    longer = text + text[text.index(b".visible") :] * 100
    assert lines_run(_fault, "PTX", longer) == lines_run(_fault, "PTX", text)


# Damage


def damaged(count, seed=7):
    """Yield *count* pieces of code of all kinds, damaged in every way."""
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


def test_damaged_inputs_are_refused_or_accepted(thorough):
    passed = {}
    refused = 0
    count = 10_000 if thorough else 400
    for kind, code in damaged(count):
        try:
            passed.setdefault(kind, []).append(accepted(kind, code))
        except LinkInputError:
            refused += 1
    assert refused > 0.6 * count
    # What shows only in the link ends a child process at worst. 8 of each kind; a crash starts another child.
    rnd = random.Random(1)
    sample = [item for items in passed.values() for item in rnd.sample(items, min(8, len(items)))]
    lto = [item for item in sample if item.kind is kinds.LTO_IR]
    rest = [item for item in sample if item.kind is not kinds.LTO_IR]
    for items in (lto, rest):
        outcomes = link_trial.run_trials(items, [[number] for number in range(len(items))], "sm_90")
        assert len(outcomes) == len(items)
        assert all(outcome.ok or outcome.log or outcome.crash for outcome in outcomes)


def test_damage_to_tables_on_which_the_linker_crashes_is_found():
    code = compiled(READS_WRITES, "cubin")
    file = read_elf(code)
    for name, at, message in ((".nv.callgraph", 2, "refers to symbol"), (".symtab", 24 + 7, "a symbol is in section")):
        section = next(section for section in file.sections if section.name == name)
        changed = bytearray(code)
        changed[section.offset + at] ^= 0x40
        assert message in structural_fault("cubin", bytes(changed))


@pytest.mark.parametrize("alignment", [3, 2**31 - 1, 2**31, 2**63])
def test_an_alignment_is_a_power_of_two_and_bounded(alignment):
    """The linker fills as much as one asks for: 2**31 - 1 made a kernel of 2 GiB."""
    code = bytearray(compiled(READS_WRITES, "cubin"))
    (table,) = struct.unpack_from("<Q", code, 40)
    struct.pack_into("<Q", code, table + 64 + 48, alignment)
    assert f"section 1 is aligned to {alignment} bytes" in structural_fault("cubin", bytes(code))


def test_variables_without_a_value_may_be_larger_than_the_file():
    code = compiled(
        "__device__ int large[1 << 26];" + adder("f") + "__device__ int *reads() { return large; }", "cubin"
    )
    assert read_elf(code).section(".nv.global").size == 4 << 26 and structural_fault("cubin", code) == ""


def test_a_prototype_of_no_symbol_is_passed_over():
    code = compiled(adder("f"), "cubin")
    assert [name for name, _, _ in cubin_prototypes(code)] == ["f"]
    section = next(section for section in read_elf(code).sections if section.name == ".nv.prototype")
    changed = code[: section.offset] + b"\xfe\xff\xff\xff" + code[section.offset + 4 :]
    assert structural_fault("cubin", changed) == ""
    assert list(cubin_prototypes(changed)) == []
