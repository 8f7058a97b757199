# SPDX-License-Identifier: BSD-2-Clause
"""The request of a link: all that it needs, as data that can be pickled, so that another process can run it."""

from __future__ import annotations

from dataclasses import dataclass

from .kernel_code import KernelCode
from .link_plan import LinkPlan


@dataclass(frozen=True)
class LinkRequest:
    """A link of a kernel's own code with what is planned, to an *output*; `pipeline.link` describes it."""

    plan: LinkPlan
    kernel_code: KernelCode
    output: str = "cubin"
    drop_unused_variables: bool = False
