# SPDX-License-Identifier: BSD-2-Clause
"""The reader of ELF files agrees with pyelftools."""

import pytest
from autolink_support import compiled, elf
from code_samples import READS_WRITES
from numba.cuda.cudadrv.external_code.formats.elf import content, elf_symbols, read_elf

from numba_cuda_autolink.errors import FormatError

ARCHITECTURES = ["sm_80", "sm_90a", "sm_120"]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_sections_are_those_that_pyelftools_reads(arch):
    code = compiled(READS_WRITES, "cubin", arch)
    ours = [(section.name, content(code, section)) for section in read_elf(code).sections]
    theirs = [(section.name, section.data()) for section in elf(code).iter_sections()]
    # pyelftools does not know the type of sections that describe shared memory and have no content in the file.
    shared = {".nv_debug.shared"}
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    assert [each for each in ours if each[0] not in shared] == [each for each in theirs if each[0] not in shared]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_symbols_are_those_that_pyelftools_reads(arch):
    code = compiled(READS_WRITES, "cubin", arch)
    binds, types = {"STB_LOCAL": 0, "STB_GLOBAL": 1, "STB_WEAK": 2}, {"STT_OBJECT": 1, "STT_FUNC": 2}
    theirs = [
        (symbol.name, binds[symbol["st_info"]["bind"]], symbol["st_shndx"] != "SHN_UNDEF", symbol["st_info"]["type"])
        for symbol in elf(code).get_section_by_name(".symtab").iter_symbols()
    ]
    ours = elf_symbols(code, read_elf(code))
    assert [(symbol.name, symbol.bind, symbol.is_defined) for symbol in ours] == [their[:3] for their in theirs]
    assert all(types.get(kind, symbol.type) == symbol.type for symbol, (*_, kind) in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_architecture_of_a_cubin(arch):
    file = read_elf(compiled(READS_WRITES, "cubin", arch))
    assert file.is_cuda
    assert file.sm == int(arch.removeprefix("sm_").removesuffix("a"))


def test_every_truncation_is_refused():
    code = compiled(READS_WRITES, "cubin")
    for size in range(0, len(code) - 1, 97):
        with pytest.raises(FormatError):
            read_elf(code[:size])
