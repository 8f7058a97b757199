# SPDX-License-Identifier: BSD-2-Clause
"""The parts of numba-cuda-autolink that need no Numba: above all, loading and launching finished kernels.

- `load`: the kernels of a file that `numba.cuda.autolink.save` wrote.
- `KernelLibrary`, `Kernel`, `Variable`: what `load` returns, and the kernels in it and their variables.
- `EmulatedKernel`: a kernel that runs on the CPU, which ``load(path, emulate=True)`` and ``linked.emulate`` give.
- `FinishedKernelError`, `KernelFileError`, `ArgumentError`, `LaunchError`: every error to catch.
- `EmulationError` and its classes, such as `FaultError` and `BarrierError`: what the emulator finds.

The rest of the project is the package ``numba.cuda.autolink``.
"""

# Python imports this package whenever it starts, and typing takes milliseconds: the types are in stubs.

# Public names by the module that defines them. Modules are imported when a name is first used.
_NAMES = {
    "errors": ("ArgumentError", "FinishedKernelError", "KernelFileError", "LaunchError"),
    "emulator.errors": (
        "AddressSpaceError",
        "BarrierError",
        "EmulationError",
        "FaultError",
        "LaunchSizeError",
        "PTXSyntaxError",
        "SharedMemoryError",
        "UnsupportedInstruction",
    ),
    "launch.emulated_kernel": ("EmulatedKernel",),
    "launch.kernel": ("Kernel",),
    "finished.library": ("KernelLibrary",),
    "finished.variables": ("Variable",),
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names}
__all__ = [
    "AddressSpaceError",
    "ArgumentError",
    "BarrierError",
    "EmulatedKernel",
    "EmulationError",
    "FaultError",
    "FinishedKernelError",
    "Kernel",
    "KernelFileError",
    "KernelLibrary",
    "LaunchError",
    "LaunchSizeError",
    "PTXSyntaxError",
    "SharedMemoryError",
    "UnsupportedInstruction",
    "Variable",
    "load",
]


def load(path, *, emulate=False):
    """Return the finished kernels of the file *path*: ``load("axpy.kernels").axpy[blocks, threads](...)``.

    Neither Numba nor a compiler is imported. The file is checked as it is read: the index now, a kernel's description
    when it is asked for, its code when it is first launched.

    With *emulate* the kernels run on the CPU, on arrays of NumPy (see `EmulatedKernel`). That takes NumPy and llvmlite,
    and nothing of CUDA, and kernels that were saved as PTX.

    Raises `KernelFileError` if *path* is not a file of finished kernels, is damaged or truncated, or was written by a
    later version; `OSError` if it cannot be opened.
    """
    from .finished.library import KernelLibrary
    from .short_tracebacks import short_traceback

    with short_traceback():
        return KernelLibrary(path, emulate=emulate)


def __dir__():
    return sorted([*(name for name in globals() if name.startswith("__")), *__all__, "__version__"])


def __getattr__(name):
    if name in _WHERE:
        import importlib

        value = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
        globals()[name] = value
        return value
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import os
    import sys

    for folder in filter(os.path.isdir, (each or "." for each in sys.path)):
        for entry in os.listdir(folder):  # importlib.metadata takes longer to import than Python to start
            if entry.startswith("numba_cuda_autolink-") and entry.endswith(".dist-info"):
                return entry[len("numba_cuda_autolink-") : -len(".dist-info")]
    raise AttributeError("numba-cuda-autolink is not installed, so that its __version__ is not known")
