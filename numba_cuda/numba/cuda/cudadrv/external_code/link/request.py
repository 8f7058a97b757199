# SPDX-License-Identifier: BSD-2-Clause
"""The request of a link: all that it needs, as data that can be pickled, so that another process can run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..plan.kernel_code import KernelCode
from ..plan.link_plan import LinkPlan

# The linker takes milliseconds to import, and a kernel that is already linked starts without it.
if TYPE_CHECKING:
    from ..pipeline import Linked


@dataclass(frozen=True)
class LinkRequest:
    """A link of a kernel's own code with what is planned, to an *output*, as `link` describes it."""

    plan: LinkPlan
    kernel_code: KernelCode
    output: str = "cubin"
    drop_unused_variables: bool = False

    def run(self) -> Linked:
        """Run the link. Raises what `link` raises."""
        from ..pipeline import link

        return link(self.plan, self.kernel_code, self.output, drop_unused_variables=self.drop_unused_variables)
