# SPDX-License-Identifier: BSD-2-Clause
"""For the tests of libraries whose objects are called in kernels: `check_linkable`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numba.cuda.core import config

from .conformance.records import Check, Linkable, LinkedCode, NotLinkableError

__all__ = ["Check", "Linkable", "LinkedCode", "NotLinkableError", "check_linkable"]


def check_linkable(
    obj: Any,
    *argtypes: Any,
    cc: tuple[Any, ...] = (9, 0),
    lto: bool | None = None,
    others: Iterable[Any] = (),
    other_process: bool = True,
) -> Linkable:
    """Check that *obj* does what an object with linkable code should when a kernel calls it with *argtypes*.

    It is asked and linked as the compiler would do it, without a GPU. Checked is that it

    - has a ``__numba_cuda_link__``, and can be called in a kernel;
    - returns code that links, for this signature;
    - defines the symbols that the call wants, with the parameters that the call passes, where these can be seen: in
      PTX, LTO-IR and CUDA C++ (not that an ``int`` is no ``float``: both are 32 bits);
    - returns the same code when it is asked again, and in another process, with other hashes and without a GPU;
    - has a ``__numba_cuda_link_key__``, if it has one, that is made of values, is the same in another process, and is
      another one where the code is;
    - links alone, and in a kernel that calls it twice, with LTO and without.

    In a test::

        from numba.cuda.autolink.testing import check_linkable

        def test_fft_is_linkable():
            check_linkable(FFT(size=128), "complex64[::1]", "complex64[::1]", others=[FFT(size=256)])

    Parameters
    ----------
    obj:
        What kernels call: a `DeviceCallable` or a method of one, a ``declare_device`` function with the hook, or any
        object with the hook that Numba knows how to call.
    *argtypes:
        The types of the call's arguments: Numba types, their names (``"float32[::1]"``) or dtypes. Types of constants
        (``types.literal(2)``, ``types.none``) stand for these constants, and other objects than types that kernels can
        use (another `DeviceCallable`, a tuple of such) for themselves.
    cc:
        The compute capability, ``(9, 0)`` or ``(9, 0, "a")``.
    lto:
        Link with LTO alone (``True``), without alone (``False``) or both ways (``None``).
    others:
        Objects to be told apart from this one by their symbols, and their link keys, where their code differs: objects
        that are called with the same *argtypes*, or tuples of an object and its own argument types.
    other_process:
        Whether to ask it in another process too, which takes seconds. It gets there by pickle or cloudpickle.

    Returns
    -------
    Linkable
        What was checked, and what it links.

    Raises
    ------
    NotLinkableError
        An `AssertionError` that lists what is not as it should be: got, expected, and what to do.
    TypeError, ValueError
        If *argtypes* are no types, or this toolkit does not know *cc*.
    RuntimeError
        In the simulator.
    """
    if config.ENABLE_CUDASIM:
        raise RuntimeError("check_linkable() links for a GPU, which the simulator (NUMBA_ENABLE_CUDASIM=1) does not")
    from .conformance.checks import run_checks

    return run_checks(obj, argtypes, cc, (True, False) if lto is None else (lto,), tuple(others), other_process)
