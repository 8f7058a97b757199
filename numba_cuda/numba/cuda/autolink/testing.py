# SPDX-License-Identifier: BSD-2-Clause
"""For tests of objects with linkable code, and of kernels that call them: without a GPU.

`check_linkable` checks an object thoroughly. `ask` returns what an object links, and `compile_cached` compiles a kernel
through the disk cache as a launch does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.diagnostics import progress
from numba.cuda.cudadrv.external_code.diagnostics.messages import shown, suggest_names

from numba_cuda_autolink.short_tracebacks import each_warning_once, short_traceback

from .conformance.records import Check, Linkable, LinkedCode, NotLinkableError

if TYPE_CHECKING or not config.ENABLE_CUDASIM:  # which has no compiler and no linker
    from numba.cuda import types
    from numba.cuda.core.caching import NullCache
    from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
    from numba.cuda.cudadrv.external_code.platform.target import ComputeCapabilityLike, Target
    from numba.cuda.dispatcher import CUDADispatcher

    from .c_abi.c_types import numba_type_named, numba_type_of
    from .compilation.context import without_device
    from .conformance.samples import Block
    from .device_callable.arguments import CallArguments
    from .device_callable.base_class import BoundDeviceMethod, DeviceCallable
    from .frontend_api.front_end import core_type
    from .protocol.ask import ask as ask_object
    from .protocol.callee import find_callee
    from .protocol.kernel_signatures import kernel_argument_types

__all__ = [
    "Check",
    "LinkInput",
    "Linkable",
    "LinkedCode",
    "NotLinkableError",
    "ask",
    "check_linkable",
    "compile_cached",
]


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})


@suggest_names
def check_linkable(
    obj: Any,
    *argtypes: Any,
    cc: ComputeCapabilityLike = (9, 0),
    lto: bool | None = None,
    others: Iterable[Any] = (),
    length: int = 64,
    threads: Block | None = None,
    samples: Iterable[tuple[Any, ...]] | None = None,
    rtol: float | None = None,
) -> Linkable:
    """Check that *obj* does what an object with linkable code should when a kernel calls it with *argtypes*.

    The object is asked and linked as the compiler does it, without a GPU. The checks are that it

    - has a ``__numba_cuda_link__``, and can be called in a kernel;
    - returns code that links, for this signature, alone and in a kernel that calls it twice, with LTO and without: it
      compiles, and defines the symbols that the call references, with the parameters that the call passes: their types
      in CUDA C++, their number and sizes in PTX and LTO-IR (where an ``int`` looks like a ``float``);
    - gives the same answers, what its calls are and what code they need, when it is asked again;
    - has a ``__numba_cuda_link_key__``, if any, that is the same each time, and differs wherever the code does;
    - runs in the emulator, for several samples of random numbers, records and arrays of them, without accesses out of
      bounds, races in shared memory, barriers that not all threads reach, and traps, in a kernel that calls it twice.
      Floats are between 0 and 1, integers between 1 and 7;
    - computes there what its Python equivalent computes, if it has one: results, arrays and records are equal, floating
      values to 12 digits in calls whose floats are all doubles, and to half of their digits in others. This is compared
      for floats from -8 to 8 with 0 among them, too, and where no argument is an array, for integers from -8 to 8.
      Calls are left out where the equivalent raises an exception or, for these numbers, computes infinity or NaN.

    A block of 32 threads runs, each with numbers and records of its own. Arrays are in global memory, and shared by all
    threads: where there are some, all threads pass the same arguments, and what one thread computes is compared.

    Of an object whose ``__numba_cuda_call__`` returns a Python function, and that has no code of its own, it checks
    that kernels that call it link, and the last two of these.

    Hooks are asked up to five times for LTO and without it each; those that take longer than 0.1 s, two or three times
    in all.

    These are warnings: a ``__numba_cuda_call__`` that takes longer than 0.1 s, or such a ``__numba_cuda_link__`` of an
    object without a link key; a run that fails otherwise (a read of memory that nobody wrote, a loop without an end) or
    only for numbers that are not small and positive; a Python equivalent that raises for all arguments (as
    ``ValueError``); and a second call with equal numbers that returns another result, where there is no Python
    equivalent. With ``@pytest.mark.filterwarnings("error")`` they fail a test. Races in global memory are not found.

    In a test::

        from numba.cuda.autolink.testing import check_linkable

        def test_fft_is_linkable():
            check_linkable(FFT(size=128), "complex64[::1]", "complex64[::1]", others=[FFT(size=256)], length=4096)

    Raises `NotLinkableError`, an `AssertionError` whose first line names the first fault, and that lists each failed
    check: got, with the place of the hook, expected, and what to do. Raises `TypeError` or `ValueError` if *argtypes*
    are not types, or this toolkit does not know *cc*; `RuntimeError` in the simulator.

    Parameters
    ----------
    obj:
        What kernels call: a `DeviceCallable` or a method of one, a ``declare_device`` function with the hook, or any
        other object with the hook that Numba can call.
    *argtypes:
        The types of the call's arguments: Numba types, their names (``"float32[::1]"``) or dtypes. Types of constants
        (``types.literal(2)``, ``types.none``) stand for these constants. Objects that kernels can use and that are not
        types (another `DeviceCallable`, a tuple of them) stand for themselves.
    cc, lto:
        What `ComputeCapability.parse` accepts; whether to link with LTO or without it only, ``None`` for both ways.
    others:
        Objects that one kernel may call besides this one, and whose link keys must differ where their code differs:
        objects that are called with the same *argtypes*, or tuples of an object and its own argument types.
    length:
        The number of elements of each axis of arrays, when the code runs.
    threads:
        The size of the block that runs, ``128`` or ``(16, 8)``. With arrays the whole block stands for one call of the
        Python equivalent, and the result of its first thread is compared: for functions that a block calls together.
    samples:
        The arguments of the calls that run, instead of random ones: a tuple for each call, without constants, as
        ``[(-1.5, 2), (1e30, 1 << 40)]``; arrays are NumPy's. All threads of a block pass them.
    rtol:
        How much floating values may differ from those in Python, relative to their size; of values near zero, relative
        to the largest result or argument, whichever is smaller.
    """
    _refuse_simulator("check_linkable")
    from .conformance.checks import run_checks
    from .conformance.samples import RunOptions, as_items

    given = None if samples is None else as_items("samples", samples, "a list of tuples of arguments")
    compared = as_items("others", others, "a list of objects, as others=[FFT(256)]")
    options = RunOptions(length, threads, given, rtol)
    with short_traceback(), each_warning_once(), progress.step(f"checking {type(obj).__name__}"):
        return run_checks(obj, argtypes, cc, (True, False) if lto is None else (lto,), compared, options)


@suggest_names
def ask(
    obj: object, *argtypes: Any, cc: ComputeCapabilityLike = (9, 0), lto: bool = True
) -> tuple[LinkInput, ...] | None:
    """Return what *obj* links for a call with arguments of the types *argtypes*, asked as the compiler asks.

    In a test::

        def test_scale_brings_one_source():
            (source,) = ask(Scale(2), "float32", cc=(9, 0))
            assert str(source.kind) == "CUDA C++ source"
            assert b"scale_2_float32" in source.code

    Each result has a ``kind`` (``str(kind)`` is ``"LTO-IR"``, ``"CUDA C++ source"``, ...), a ``name`` and the ``code``
    (bytes). ``None`` is returned where nothing has a hook: neither *obj* nor, of a bound method, its owner.

    Raises `HookError` if the hook raises, or returns what cannot be linked; `TypeError` or `ValueError` if *argtypes*
    are not types, or do not fit the parameters of a `DeviceCallable`; `RuntimeError` in the simulator.

    Parameters
    ----------
    obj, *argtypes:
        What kernels call, and the types of the arguments: Numba types, their names (``"float32[::1]"``) or dtypes.
    cc, lto:
        What `ComputeCapability.parse` accepts; whether the kernel that calls the object is linked with LTO.
    """
    _refuse_simulator("ask")
    given = tuple(map(_argument_type, argtypes))
    callee = find_callee(obj)
    if callee is None:
        return None
    if isinstance(obj, (DeviceCallable, BoundDeviceMethod)):  # with the types of defaults, as in a call
        given = CallArguments.bind(obj.__numba_cuda_call__, given, {}).types
    target = Target(cc, lto=lto)
    with without_device(target.cc):
        return ask_object(callee, given, target).inputs()


def compile_cached(
    kernel: CUDADispatcher, signature: Any, cc: ComputeCapabilityLike
) -> tuple[bytes, Literal["loaded", "built"]]:
    """Load *kernel* from the disk cache, or build and save it, as its first launch in a new process does.

    Returns the linked cubin, and ``"loaded"`` or ``"built"``. The disk cache is looked at each time, whatever this
    process compiled before. In a test::

        def test_the_kernel_is_cached():
            assert compile_cached(kernel, "void(float32[::1])", "9.0")[1] == "built"
            assert compile_cached(kernel, "void(float32[::1])", "9.0")[1] == "loaded"

    Raises `TypeError` or `ValueError` if *kernel* is not a kernel with ``cache=True``, or *signature* or *cc* are
    wrong; `numba.core.errors.TypingError` or `LinkError` if the kernel does not compile or link; `RuntimeError` in the
    simulator.

    Parameters
    ----------
    kernel, signature:
        What ``cuda.jit(cache=True)`` made, and the signature as it takes one: ``"void(float32[::1])"``.
    cc:
        What `ComputeCapability.parse` accepts. A launch on a GPU of 9.0 or later builds for ``"9.0a"``, with suffix.
    """
    _refuse_simulator("compile_cached")
    if not isinstance(kernel, CUDADispatcher) or isinstance(kernel._cache, NullCache):
        raise TypeError(f"compile_cached() takes a @cuda.jit(cache=True) kernel, got {shown(kernel)}")
    argtypes = kernel_argument_types(signature, kernel.py_func)
    target = Target(cc)
    # As a new process has it: nothing compiled yet.
    options = {**kernel.targetoptions, "link": list(kernel.targetoptions.get("link") or ())}
    fresh = CUDADispatcher(kernel.py_func, targetoptions=options)
    fresh.enable_caching()
    with without_device(target.cc):
        compiled = fresh.compile(argtypes)
        code = bytes(compiled._codelibrary.get_cubin(target.cc).code)
    return code, "loaded" if fresh.stats.cache_hits[argtypes] else "built"


def _argument_type(given: Any) -> Any:
    """Return the Numba type that *given* stands for; types of constants stay what they are."""
    if isinstance(given, str):
        return numba_type_named(given)
    given = core_type(given)
    return given if isinstance(given, types.Type) else numba_type_of(given)


def _refuse_simulator(name: str) -> None:
    if config.ENABLE_CUDASIM:
        raise RuntimeError(
            f"testing.{name}() compiles for a GPU, which the simulator (NUMBA_ENABLE_CUDASIM=1) does not"
        )
