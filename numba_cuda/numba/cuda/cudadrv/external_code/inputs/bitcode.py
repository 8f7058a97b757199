# SPDX-License-Identifier: BSD-2-Clause
"""LLVM bitcode as linkable code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.cuda.cudadrv.linkable_code import LinkableCode


class Bitcode(LinkableCode):
    """LLVM bitcode, the form of libdevice and of NVSHMEM's device library: the content of a ``.bc`` file.

    NVVM compiles it to LTO-IR, or to PTX if the kernel is linked without LTO. NVVM reads the bitcode of LLVM 7 for
    architectures before Blackwell, and for later ones that of the LLVM that it is built on. Other bitcode is compiled
    to PTX by llvmlite's LLVM, and is not inlined into the kernel. Either happens once on a machine.

    Parameters
    ----------
    data : bytes
        The bitcode. Its functions keep their names and their linkage.
    name : str, optional
        Its name in messages.
    setup_callback, teardown_callback : callable, optional
        Called with the loaded module, and before it is unloaded.

    Raises
    ------
    TypeError
        If *data* is text or not a buffer.
    """

    kind = "bc"
    default_name = "<unnamed-bitcode>"

    def __init__(
        self,
        data: Any,
        name: str | None = None,
        setup_callback: Callable[[Any], object] | None = None,
        teardown_callback: Callable[[Any], object] | None = None,
    ):
        try:
            code = bytes(memoryview(data))
        except TypeError:
            raise TypeError(f"Bitcode takes the bytes of a .bc file, got {type(data).__name__}") from None
        others = {"setup_callback": setup_callback, "teardown_callback": teardown_callback}
        # The simulator's base class takes no other arguments.
        super().__init__(code, name, **{key: value for key, value in others.items() if value})
