# SPDX-License-Identifier: BSD-2-Clause
"""What the emulator checks while a kernel runs."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Checks:
    """The checks of a module.

    - *bounds*: each access is within an allocation, a shared or local variable, or the parameters, and none of it is
      freed.
    - *alignment*: addresses are multiples of what is accessed there.
    - *initialised*: shared and local memory is written before it is read.
    - *races*: two threads of a block do not access the same byte of shared memory, one of them writing, with no barrier
      between; atomic accesses do not race with each other.
    - *barriers*: threads that wait for each other wait in the same barrier instruction.
    - *exited*: no thread has returned when the others wait at a barrier of the whole block. GPUs allow this.
    - *most_back_edges*: how often a thread may go back in its loops; 0 is as often as it likes.
    """

    bounds: bool = True
    alignment: bool = True
    initialised: bool = False
    races: bool = False
    barriers: bool = True
    exited: bool = False
    most_back_edges: int = 0

    @classmethod
    def all(cls) -> Checks:
        """Return every check; kernels run slower."""
        return cls(**{field.name: True for field in fields(cls) if isinstance(field.default, bool)})
