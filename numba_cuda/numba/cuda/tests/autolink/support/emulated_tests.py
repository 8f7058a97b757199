# SPDX-License-Identifier: BSD-2-Clause
"""The tests that launch kernels and cannot run in the emulator, by parts of their names, with the reason."""

from __future__ import annotations

_REASONS = {
    "a cubin is launched, and the emulator runs PTX": (
        "test_launch_on_gpu.py::TestLibraries::test_numba_cuda",
        "test_device_variables.py::TestOnGPU::test_finished_kernels",
        "test_on_gpu.py::test_a_built_cubin_runs",
        "test_on_gpu.py::test_precompiled_code_runs[cubin]",
        "test_docs.py::test_blocks_run_with_a_gpu[ahead_of_time]",
        "test_docs.py::test_blocks_run_with_a_gpu[porting_from_compile]",
    ),
    "the page needs CuPy": ("test_docs.py::test_blocks_run_with_a_gpu[porting_from_other_projects]",),
    "it compares the cubins of launches": ("test_what_is_captured_of_a_launch_is_what_the_next_launch_links",),
    "it reads what the driver tells of machine code": ("test_occupancy_is_what_the_driver_says",),
    "kernels do not launch kernels in the emulator": ("test_a_kernel_launched_from_the_device",),
    "libdevice is bitcode that is linked as PTX": ("test_bitcode.py::TestOnTheGPU::test_libdevice[True]",),
    "the emulator links a cached kernel again, to PTX": (
        "test_kernel_cache.py::test_a_fresh_process_launches_a_cached_kernel[False]",
        "test_kernel_cache.py::test_callbacks_of_a_loaded_kernel_run",
    ),
    "the emulator has one device": ("finished_kernels/test_two_gpus.py",),
    "a C program is linked with the driver's library": ("test_c_header.py::test_the_example_is_right",),
}


def why_not_emulated(test: str) -> str | None:
    """Return why the *test* of this name cannot run in the emulator; ``None`` if it can."""
    return next((reason for reason, parts in _REASONS.items() if any(part in test for part in parts)), None)
