# SPDX-License-Identifier: BSD-2-Clause
"""Headers for C and C++ programs: they compile without warnings, and pass what numba-cuda passes."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from autolink_support import adder
from cuda import pathfinder
from front_ends import front_end_named
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.autolink.c_abi import c_types
from numba.cuda.cudadrv.external_code.formats.cubin import cubin_parameters
from numba.cuda.np.numpy_support import from_dtype
from repository import EXAMPLES

from numba_cuda_autolink import FinishedKernelError
from numba_cuda_autolink.plain_types import place_leaves

_INCLUDE = pathfinder.locate_nvidia_header_directory("cudart")
COMPILERS = {"C99": ("gcc", "-std=c99"), "C++17": ("g++", "-std=c++17", "-x", "c++")}
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic")
needs_compiler = pytest.mark.skipif(
    _INCLUDE is None or not all(shutil.which(command[0]) for command in COMPILERS.values()),
    reason="needs GCC and cuda.h",
)

RECORD = from_dtype(np.dtype([("a", "<f4"), ("b", "<i8")], align=True))
SIGNATURE = types.void(
    types.float64[:, ::1],
    types.int16,
    types.Tuple((types.int8, types.UniTuple(types.float32, 2))),
    types.complex64,
    types.boolean,
    types.float16,
    types.float32[::1, :],
    types.float64[:, :],
    types.CPointer(types.float32),
    types.Array(RECORD, 1, "C"),
    types.float64,
)


def every_kind(double, linux, pair, number, flag, half, columns, any_layout, pointer, records, item2):
    double[0, 0] = linux + pair[1][0] + number.real + flag + columns[0, 0] + any_layout[0, 0] + pointer[0] + item2


# The functions of the driver that a header calls, and what a launch passes, as text.
PROGRAM = """
#include <stdio.h>
#include "every_kind.h"

static int most = 0;
CUresult cuCtxGetDevice(CUdevice *device) { *device = 0; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? MAJOR : MINOR;
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuModuleLoadData(CUmodule *module, const void *image) { *module = (CUmodule)image; return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    *function = (CUfunction)module;
    printf("%s\\n", name);
    return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) { return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    *value = function && attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES ? 1000 : 0;
    return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    (void)function;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) most = value;
    return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    size_t number, size = *(size_t *)extra[3];
    printf("%u %u %u %u %d %d\\n", config->gridDimX, config->gridDimY, config->blockDimZ, config->sharedMemBytes, most,
           function != NULL && parameters == NULL);
    for (number = 0; number < size; ++number) printf("%02x", ((unsigned char *)extra[1])[number]);
    return CUDA_SUCCESS;
}

int main(void) {
    const unsigned grid[3] = {7, 6, 5}, block[3] = {2, 3, 4};
    every_kind_kernel kernel;
    every_kind_arguments arguments = {
        {1000, {3, 5}}, -2, {1, {0.5f, 1.5f}}, {2.5f, -3.5f}, 1, 0x3c00, {2000, {3, 5}},
        {3000, {3, 5}, {-80, 16}}, 4000, {5000, {9}}, 6.5};
    CUresult error = every_kind_load(&kernel);
    if (error == CUDA_SUCCESS) error = every_kind_launch(&kernel, grid, block, 47000, NULL, &arguments);
    if (error == CUDA_SUCCESS) error = every_kind_launch(&kernel, grid, block, 48153, NULL, &arguments);
    if (error == CUDA_SUCCESS) error = every_kind_unload(&kernel);
    return (int)error;
}
"""
VALUES = {
    "double": (0, 0, 15, 8, 1000, 3, 5, 40, 8),
    "linux": (-2,),
    "pair": (1, 0.5, 1.5),
    "number": (2.5, -3.5),
    "flag": (1,),
    "half": (1.0,),
    "columns": (0, 0, 15, 4, 2000, 3, 5, 4, 12),
    "any_layout": (0, 0, 15, 8, 3000, 3, 5, -80, 16),
    "pointer": (4000,),
    "records": (0, 0, 9, 16, 5000, 9, 16),
    "item2": (6.5,),
}
VALUES_OF_MLIR = {
    **VALUES,
    "double": (1000, 1000, 0, 3, 5, 5, 1),
    "columns": (2000, 2000, 0, 3, 5, 1, 3),
    "any_layout": (3000, 3000, 0, 3, 5, -10, 2),
    "records": (5000, 5000, 0, 9, 16),
}


@pytest.fixture(scope="module")
def built():
    ccs = [(8, 0), (9, 0), (9, 0, "a")]
    return autolink.build(every_kind, SIGNATURE, cc=ccs, entry_name="every_kind")


def built_by_mlir():
    mlir = front_end_named("numba-cuda-mlir")
    from numba.cuda.autolink.frontends.mlir.type_translation import from_core

    return [autolink.build(mlir.cuda.jit(every_kind), tuple(map(from_core, SIGNATURE.args)), cc=(9, 0))]


def check(folder, command, *options):
    """Compile ``program.c`` in *folder*, without warnings."""
    assert _INCLUDE is not None
    command = [*command, *STRICT, "-isystem", str(_INCLUDE.abs_path), *options, "program.c"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def run(folder, language, capability):
    """Run the program on a device of *capability*."""
    major, minor = capability
    check(folder, COMPILERS[language], f"-DMAJOR={major}", f"-DMINOR={minor}", "-o", "program")
    return subprocess.run([folder / "program"], capture_output=True, text=True)


@needs_compiler
@pytest.mark.parametrize("front_end", ["numba-cuda", "numba-cuda-mlir"])
def test_a_program_passes_what_the_front_end_passes(built, front_end, tmp_path):
    kernels, passed = (built, VALUES) if front_end == "numba-cuda" else (built_by_mlir(), VALUES_OF_MLIR)
    autolink.write_header(tmp_path / "every_kind.h", kernels)
    (tmp_path / "program.c").write_text(PROGRAM)
    layout = cubin_parameters(kernels[0].code, kernels[0].entry_name)
    leaves = place_leaves(kernels[0].launch_facts.parameters, layout)
    expected = bytearray(sum(layout[-1]))
    for leaf, value in zip(leaves, [value for each in passed.values() for value in each], strict=True):
        struct.pack_into(f"<{leaf.code}", expected, leaf.offset, value)
    for language in COMPILERS:
        done = run(tmp_path, language, (9, 0))
        assert done.returncode == 0
        name, first, *both = done.stdout.replace("7 6 4 48153", "\n7 6 4 48153").splitlines()
        assert name == kernels[-1].entry_name
        assert first == "7 6 4 47000 0 1"  # no more than 48 KB with the kernel's own shared memory
        assert both[1] == "7 6 4 48153 48153 1"  # asked of the driver
        assert both[0] == both[2] == expected.hex()
    no_binary_for_gpu = 209
    for capability, is_found in ((8, 6), 0), ((9, 1), 0), ((7, 5), no_binary_for_gpu), ((10, 0), no_binary_for_gpu):
        if front_end == "numba-cuda":
            assert run(tmp_path, "C99", capability).returncode == is_found


@needs_compiler
def test_a_kernel_without_arguments_and_a_cooperative_one_compile(tmp_path):
    def nothing():
        pass

    def meets(x):
        cuda.cg.this_grid().sync()
        x[0] = 1

    built = autolink.build(nothing, "void()", cc=(9, 0), shared_memory_carveout=50)
    autolink.write_header(tmp_path / "nothing.h", [built])
    built = autolink.build(meets, "void(int8[::1])", cc=(9, 0))
    autolink.write_header(tmp_path / "meets.h", [built])
    assert "CU_LAUNCH_ATTRIBUTE_COOPERATIVE" in (tmp_path / "meets.h").read_text()
    assert "SHARED_MEMORY_CARVEOUT, 50)" in (tmp_path / "nothing.h").read_text()
    (tmp_path / "program.c").write_text('#include "nothing.h"\n#include "meets.h"\n#include "meets.h"\n')
    for command in COMPILERS.values():
        check(tmp_path, command, "-fsyntax-only")


# Parameters with names that mean something else in C or C++, and what C calls them.
RENAMED = {
    **{name: f"{name}_" for name in ("int64_t", "size_t", "NULL", "CUdeviceptr", "CU_STREAM_LEGACY", "INT64_MAX")},
    **{name: f"{name}_" for name in ("double", "typename", "requires", "co_await", "errno", "I", "complex")},
    **{"odd_arguments": "odd_arguments_", "ODD_KERNEL_H": "ODD_KERNEL_H_", "_Bool": "item15", "__LINE__": "item16"},
    **{name: name for name in ("odd_kernel", "kernel", "buffer", "memcpy", "N", "EPS", "int32_t_")},
}


@needs_compiler
def test_parameters_may_be_named_as_types_macros_and_keywords(tmp_path):
    scope = {}
    exec(f"def odd({', '.join(RENAMED)}):\n    pass\n", scope)
    types_of_each = [("int64", "float32[::1]", "float64[:, :]")[number % 3] for number in range(len(RENAMED))]
    built = autolink.build(scope["odd"], f"void({', '.join(types_of_each)})", cc=(9, 0))
    autolink.write_header(tmp_path / "odd.h", built)
    includes = "#include <complex.h>\n#include <errno.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    uses = "".join(f"(void)arguments->{name};\n" for name in RENAMED.values())
    use = "void use(const odd_arguments *arguments)"
    for before in ("", includes):
        (tmp_path / "program.c").write_text(f'{before}#include "odd.h"\n{use};\n{use} {{{uses}}}\n')
        for command in (*COMPILERS.values(), ("g++", "-std=gnu++20", "-x", "c++")):
            check(tmp_path, command, "-fsyntax-only")
    (tmp_path / "program.c").write_text("".join(f"#include <{name}.h>\n" for name in ("cuda", "stdint", "string")))
    check(tmp_path, ("gcc", "-std=gnu11"), "-dM", "-E", "-o", "macros")
    macros = [line.split()[1] for line in (tmp_path / "macros").read_text().splitlines()]
    names = [name for name in macros if name.isidentifier()]
    assert len(names) > 200 and set(c_types.members(names)).isdisjoint(names)


def test_what_a_c_program_cannot_have_is_refused(built, tmp_path):
    def refused(message, *kernels):
        with pytest.raises(FinishedKernelError, match=message):
            autolink.write_header(tmp_path / "refused.h", kernels)
        assert not (tmp_path / "refused.h").exists()

    def fails(x):
        x[0] = 1

    how = {"signature": "void(int32[::1])", "cc": (9, 0)}
    refused("there are no kernels to write")
    refused("'int' is not a name in C", autolink.build(fails, **how, entry_name="int"))
    refused("of one kernel with one signature", built[0], autolink.build(fails, **how))
    refused("of one kernel with one signature", autolink.build(fails, **how, output="ptx"))
    refused("two are for the same", built[0], built[0])
    refused("raises .*exceptions", autolink.build(fails, **how, debug=True, opt=False))
    called = cuda.declare_device("called", "int32(int32)", link=cuda.CUSource(adder("called"), setup_callback=print))

    def calls(x):
        x[0] = called(x[0])

    refused("has callbacks", autolink.build(calls, **how))


def make(folder, *arguments):
    shutil.copytree(EXAMPLES / "c_program", folder, dirs_exist_ok=True)
    home = os.environ.get("CUDA_HOME") or str(Path(_INCLUDE.abs_path).parent)
    command = ["make", *arguments, f"CUDA_HOME={home}", f"AUTOLINK={sys.executable} -m numba.cuda.autolink"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@needs_compiler
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_the_example_compiles(tmp_path):
    done = make(tmp_path, "objects", "ARCHITECTURES=8.0,9.0a")
    assert not done.returncode, done.stdout + done.stderr
    assert (tmp_path / "program_c.o").exists() and (tmp_path / "program_cxx.o").exists()


@pytest.mark.gpu
@needs_compiler
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_the_example_is_right(tmp_path):
    major, minor = cuda.get_current_device().compute_capability
    libraries = next(
        (str(each.parent) for root in ("/usr/lib", "/lib") for each in Path(root).rglob("libcuda.so.1")), ""
    )
    (tmp_path / "libcuda.so").symlink_to(Path(libraries) / "libcuda.so.1")
    done = make(tmp_path, "run", f"ARCHITECTURES={major}.{minor}", f"LIBRARIES=-L{tmp_path} -lcuda -lm")
    assert not done.returncode, done.stdout + done.stderr
    assert done.stdout.count("300 x 400 elements are right") == 2
