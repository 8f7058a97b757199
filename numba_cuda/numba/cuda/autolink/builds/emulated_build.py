# SPDX-License-Identifier: BSD-2-Clause
"""What `build` returns in the emulator: its PTX, and its launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numba_cuda_autolink.errors import FinishedKernelError

from ..compilation.context import without_device
from ..function_code.build_record import BuildRecord

if TYPE_CHECKING:
    from numba_cuda_autolink.launch.emulated_kernel import EmulatedKernel


class EmulatedTexts:
    """The PTX of a kernel that was built in this process, for the compute capability *cc*, which *make* makes when it
    is first asked for. A pickle has none."""

    def __init__(self, make: Callable[[], list[str]], cc: tuple[Any, ...]):
        self._make, self._cc = make, cc

    def __call__(self) -> list[str]:
        """Return it."""
        with without_device(self._cc):
            return self._make()

    def __reduce__(self) -> Any:
        return type(None), ()


def emulated_kernel(linked: BuildRecord, parameters: Any, leaves: Any) -> EmulatedKernel:
    """Return what `build` returned, *linked*, with a launch on the CPU, with its *parameters* and where they are. Raise
    `FinishedKernelError` if no PTX of it is at hand."""
    from numba_cuda_autolink.launch.emulated_kernel import EmulatedCode, EmulatedKernel

    facts, name, texts = linked.launch_facts, linked.launch_facts.name, linked.emulated_texts
    if texts is None and linked.output != "ptx":
        raise FinishedKernelError(
            f"{name} cannot be emulated: it is a cubin that was built in another process"
            "\n  what to do: build it with output='ptx'"
        )
    code = EmulatedCode(
        linked.signature,
        parameters,
        leaves,
        linked.entry_name,
        linked.cc.base,
        facts.cooperative,
        texts or (lambda: [linked.code.decode().rstrip("\0")]),
        facts.setup,
        facts.teardown,
        [variable.memory for variable in facts.variables],
    )
    return EmulatedKernel(name, lambda: [code])
