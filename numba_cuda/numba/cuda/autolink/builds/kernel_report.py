# SPDX-License-Identifier: BSD-2-Clause
"""The report of a kernel, for one or several architectures."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from numba.cuda.cudadrv.external_code.diagnostics.messages import suggest_names
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapabilityLike

from ..frontend_api.front_end import front_end_of
from ..function_code.build_record import FunctionRecord
from ..reports.collect import report_of
from ..reports.report import Report
from .ahead_of_time import build


@suggest_names
def report(
    kernel: Any,
    signature: Any = None,
    cc: ComputeCapabilityLike | list[ComputeCapabilityLike] | None = None,
    *,
    listings: bool = False,
) -> Report:
    """Return a report of what the calls in *kernel* brought, how it was linked, and the result.

    Parameters
    ----------
    kernel:
        A kernel made by ``cuda.jit``, or with a *signature* a Python function, or a device function, whose report shows
        what it brings to the kernels that call it.
    signature:
        The signature to build the kernel for now, as `build` does; no GPU is needed. Without one, the report describes
        the kernel as it is already compiled.
    cc:
        The compute capability, ``(9, 0)``, or a list of several. Default: that of the current GPU, or those that the
        kernel is compiled for already.
    listings:
        Whether the report shows what the code became: PTX and, if ``nvdisasm`` is installed, machine code, beside the
        lines of Python and C++ that it comes from. With a *signature* the kernel is built with ``lineinfo=True`` for
        that; a kernel that is compiled already needs that option.

    Raises `TypeError` if *kernel* is not a kernel, or is a device function that does not return what the *signature*
    says; without a *signature* `ValueError`, if it is not compiled yet, or is compiled for several signatures.
    """
    capabilities: list[Any] = cc if isinstance(cc, list) else [cc]
    front_end = front_end_of(kernel)
    records: Iterable[FunctionRecord]
    if signature is None:
        records = front_end.read_launched(kernel, capabilities)
    elif front_end.is_device_function(kernel):
        records = [front_end.compile_device_function(kernel, signature, each) for each in capabilities]
    else:
        contradicted = getattr(kernel, "targetoptions", {}).get("debug")  # which lineinfo=True contradicts
        options: dict[str, Any] = {"lineinfo": True} if listings and not contradicted else {}
        records = [build(kernel, signature, cc=each, **options) for each in capabilities]
    reports = [report_of(record, listings=listings) for record in records]
    return dataclasses.replace(reports[0], builds=tuple(build for each in reports for build in each.builds))
