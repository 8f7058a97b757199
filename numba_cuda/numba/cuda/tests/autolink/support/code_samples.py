# SPDX-License-Identifier: BSD-2-Clause
"""Code of every kind, made by compilers or by hand, for the tests of formats and links."""

from __future__ import annotations

import functools
import struct
from pathlib import Path

from autolink_support import adder, compiled, from_nvcc, have_nvcc
from cuda import pathfinder
from numba import cuda
from numba.cuda.cudadrv.external_code.formats.containers import ARCHIVE_MAGIC, FATBIN_MAGIC
from numba.cuda.cudadrv.external_code.pipeline import device_runtime

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


@functools.cache
def fatbin(arch="sm_90"):
    """A fatbin with one cubin in it, as nvcc makes it without compression."""
    code = compiled(adder("f"), "cubin", arch)
    sm = int(arch.removeprefix("sm_"))
    entry = struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, len(code), 0, 0, 8, 1, sm, 0, 0, 17, 0, 0)
    return struct.pack("<4sHHQ", FATBIN_MAGIC, 1, 16, len(entry + code)) + entry + code


def archive(members):
    """An ar archive of *members* by name."""
    parts = [ARCHIVE_MAGIC]
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
    if device_runtime() is not None:
        codes["archive"] = Path(pathfinder.find_static_lib("cudadevrt")).read_bytes()
    if have_nvcc():
        codes["object"], codes["archive"] = (from_nvcc((adder("add_one"),), kind) for kind in ("object", "archive"))
    return codes
