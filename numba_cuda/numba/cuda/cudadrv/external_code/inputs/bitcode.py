# SPDX-License-Identifier: BSD-2-Clause
"""LLVM bitcode as linkable code."""

from __future__ import annotations

from typing import Any

from numba.cuda.cudadrv.linkable_code import LinkableCode


class Bitcode(LinkableCode):
    """LLVM bitcode, the form that libdevice and NVSHMEM's device library ship in: the content of a ``.bc`` file.

    It becomes LTO-IR, or PTX where a kernel is linked without LTO, by way of NVVM. NVVM reads LLVM 7's bitcode for
    architectures before Blackwell, and for later ones that of the LLVM that it is built on. What it does not read is
    compiled to PTX by the LLVM of llvmlite, which cannot be inlined into the kernel. Either is done once on a machine.

    Parameters
    ----------
    data : bytes
        The bitcode. Its functions keep their names and their linkage.
    name : str, optional
        What messages call it.
    setup_callback, teardown_callback : callable, optional
        Called with the loaded module, and before it is unloaded.

    Raises
    ------
    TypeError
        If *data* is text, or no buffer.
    """

    kind = "bc"
    default_name = "<unnamed-bitcode>"

    def __init__(self, data: Any, name: str | None = None, setup_callback: Any = None, teardown_callback: Any = None):
        try:
            code = bytes(memoryview(data))
        except TypeError:
            raise TypeError(f"Bitcode takes the bytes of a .bc file, got {type(data).__name__}") from None
        others = {"setup_callback": setup_callback, "teardown_callback": teardown_callback}
        # The simulator's base class takes none of the others.
        super().__init__(code, name, **{key: value for key, value in others.items() if value})
