# SPDX-License-Identifier: BSD-2-Clause
"""Kernels of numba-cuda-mlir that `bind` gives the launch of finished kernels.

That front end does not show the code that it loaded. So it is loaded once more: callbacks run for that too, and it has
device variables of its own.
"""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

from numba_cuda_autolink.launch.driver import Device, bindings, call_driver
from numba_cuda_autolink.launch.loaded_kernel import Loaded, set_attribute

from ...finished_kernels.saving import check_runtime, layout_of
from ...function_code.build_record import BuildRecord
from .module_callbacks import SetUp, TearDown


class CompiledCode:
    """The code of a kernel and signature that numba-cuda-mlir compiled and this project *linked*."""

    def __init__(self, linked: BuildRecord):
        self._code, self._entry, self._facts = linked.code, linked.entry_name, linked.launch_facts
        check_runtime(self._facts)
        self.text, self.parameters = linked.signature, self._facts.parameters
        _, self._leaves = layout_of(linked, self.parameters)

    def load(self, device: Device) -> Loaded:
        """Load the code into the current context, run the setup callbacks, and set the variables and the carveout."""
        api, facts = bindings(), self._facts
        module = SimpleNamespace(handle=call_driver(api.cuLibraryLoadData, self._code, [], [], 0, [], [], 0))
        setup, teardown = list(facts.setup), list(facts.teardown)
        for variable in facts.variables:
            setup.append(variable.setup_callback)
            teardown.append(variable.teardown_callback)
        owner = _Owner()
        weakref.finalize(owner, _unload, api, module, [TearDown(each) for each in teardown])
        for callback in setup:
            SetUp(callback)(module)
        function = call_driver(
            api.cuKernelGetFunction, call_driver(api.cuLibraryGetKernel, module.handle, self._entry.encode())
        )
        if facts.carveout is not None:
            set_attribute(function, "PREFERRED_SHARED_MEMORY_CARVEOUT", facts.carveout)
        return Loaded.of(function, self._leaves, facts.cooperative, owner)


class _Owner:
    """Keeps code loaded."""


def _unload(api: Any, module: Any, teardown: list[TearDown]) -> None:
    for callback in teardown:
        callback(module)
    api.cuLibraryUnload(module.handle)
