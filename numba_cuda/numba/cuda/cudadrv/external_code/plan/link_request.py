# SPDX-License-Identifier: BSD-2-Clause
"""The request of a link: all that it needs, as data that can be pickled, so that another process can run it."""

from __future__ import annotations

from dataclasses import dataclass

from .kernel_code import KernelCode
from .link_plan import LinkPlan


@dataclass(frozen=True)
class LinkRequest:
    """A link of a kernel's own code with what is planned, to an *output*, ``"cubin"`` or, with LTO only, ``"ptx"``.

    With *drop_unused_variables*, LTO may assume that no other code reads or sets a variable, or calls another kernel.
    If code is named explicitly, that goes for the variables of headers alone: weak ones with a mangled name.
    """

    plan: LinkPlan
    kernel_code: KernelCode
    output: str = "cubin"
    drop_unused_variables: bool = False
