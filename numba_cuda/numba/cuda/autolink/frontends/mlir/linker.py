# SPDX-License-Identifier: BSD-2-Clause
"""The linker that numba-cuda-mlir is given for a function with external code."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from numba.cuda.cudadrv.external_code.diagnostics import progress
from numba.cuda.cudadrv.external_code.diagnostics.timeline import recording
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkPlan
from numba_cuda_mlir.linker import resolve_link_plan

from ...compilation.context import is_for_launch
from ...function_code.function_code import KEY, ExternalCode
from .kernel_module import prepare
from .module_callbacks import SetUp, TearDown


class CallLinker:
    """Has the methods that numba-cuda-mlir calls of its own ``Linker``, and links by this project's path: with the
    checks, the messages and the cache that kernels of numba-cuda have.

    A device function is not linked: its callers get its *external* code. *plan* is None for it.
    """

    def __init__(self, external: ExternalCode, plan: LinkPlan | None, drop_unused_variables: bool):
        self.external = external
        self.lto = external.target.lto
        self.additional_flags: list[str] = []
        self._plan = plan
        self._drop = drop_unused_variables
        self._own: bytes | None = None
        self._ltoirs: dict[int, bytes] = {}  # what callers take along: they get it with the external code

    def recreate_with_lto(self, lto: bool = True, ltoir_only: bool = False, kernel_ltoir: bytes | None = None) -> Any:
        """Return a linker for the kernel's own code."""
        linker = CallLinker(self.external, self._plan, self._drop)
        if kernel_ltoir is not None:
            linker.add_ltoir(kernel_ltoir)
        return linker

    def add_ltoir(self, ltoir: bytes, name: str = "") -> None:
        """Take the kernel's own code."""
        self._own, self.lto = bytes(ltoir), True

    def add_ptx(self, ptx: bytes, name: str = "") -> None:
        """Take the kernel's own code."""
        self._own, self.lto = bytes(ptx), False

    def add_file_guess_ext(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the plan has what ``link=`` names."""

    def complete(self) -> Any:
        """Return the cubin; of a device function, nothing."""
        return SimpleNamespace(code=b"") if self._plan is None else self._linked("cubin", self._plan)

    def get_linked_ptx(self) -> bytes:
        """Return the PTX after link-time optimisation."""
        optimizable = (kinds.LTO_IR, kinds.CUDA, kinds.BITCODE)
        assert self._plan is not None
        inputs = tuple(planned for planned in self._plan.inputs if planned.input.kind in optimizable)
        return bytes(self._linked("ptx", dataclasses.replace(self._plan, inputs=inputs)).code)

    def _linked(self, output: str, plan: LinkPlan) -> Any:
        from numba.cuda.cudadrv.external_code.pipeline import link

        external = self.external
        assert self._own is not None
        with recording(external.timeline), progress.step(f"linking {external.name}"):
            own = external.kernel_code(self._own, self.lto)
            linked = link(plan, own, output, drop_unused_variables=self._drop and output == "cubin")
        external.link_records[external.target.cc, output] = linked.record
        return linked.code


def linker_for(lower: Any) -> CallLinker:
    """Return the linker of the function that was lowered by *lower*, an ``MLIRLower``, and set what numba-cuda-mlir
    reads of its link: whether to make LTO-IR, and the callbacks."""
    external: ExternalCode = lower.metadata[KEY]
    for item in lower._linked_external_link_items:
        external.add_item(item)
    for number, ltoir in enumerate(lower._linked_ltoirs):
        external.add_item(LinkInput(kinds.LTO_IR, bytes(ltoir), name=f"LTO-IR {number} of a device function"))
    # Their kinds do not decide: the target does, for which the objects were asked.
    resolved = resolve_link_plan({**lower.targetoptions, "_lto_explicit": False})
    lower.metadata["link_plan"] = dataclasses.replace(
        resolved, compile_new_inputs_as_ltoir=external.target.lto, has_external_link_items=True
    )
    lower.metadata["linked_external_link_items"] = ()
    if not lower._is_kernel:
        return CallLinker(external, None, False)
    prepare(lower.mlir_module, lower.mlir_gpu_module)
    external.entry_name = lower.mlir_funcOp.attributes["sym_name"].value
    external.link_options = _link_options(lower.targetoptions)
    plan = external.plan()
    lower._setup_callbacks[:] = [SetUp(callback) for callback in plan.setup_callbacks]
    lower._teardown_callbacks[:] = [TearDown(callback) for callback in plan.teardown_callbacks]
    is_looked_into = lower._capi_sym_name or lower._function_needs_nrt() or plan.target.debug
    return CallLinker(external, plan, plan.may_drop_variables and not is_looked_into and is_for_launch())


def _link_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the options of a kernel say of its link beyond its target. nvJitLink has the levels 0 and 3."""
    asked = {
        "optimization_level": 0 if int(options.get("opt_level", 3)) == 0 else None,
        "ptxas_options": options.get("ptxas_options"),
        "debug": options.get("debug") or None,
    }
    return {name: value for name, value in asked.items() if value is not None}
