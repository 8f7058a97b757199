# SPDX-License-Identifier: BSD-2-Clause
"""Variables of device code as linkable code: their definition, and callbacks that tell where they are loaded."""

from __future__ import annotations

from typing import Any

from numba_cuda_autolink.finished.variables import Variable

from .cuda_source import CUDASource

_ALIGNMENT = 16  # bytes: the most that a load of C++ needs


class VariableSource(CUDASource):
    """The definition of a variable of device code, which ``memory`` sets in each module that is loaded with it.

    Its size alone is defined: C++ declares its type.
    """

    def __init__(self, memory: Variable):
        self.memory = memory
        described = memory.type
        super().__init__(
            f"// {described}\n"
            f'extern "C" {{ __{described.space}__ __align__({_ALIGNMENT}) unsigned char'
            f" {described.name}[{described.nbytes}]; }}\n",
            name=f"variable {described.name}",
        )
        # The simulator's base class takes no arguments for them.
        self.setup_callback, self.teardown_callback = self._set_up, self._tear_down

    def _set_up(self, module: Any) -> None:
        self.memory.load(module)

    def _tear_down(self, module: Any) -> None:
        self.memory.unload(module)  # numba-cuda unloads it, although others may keep its code
