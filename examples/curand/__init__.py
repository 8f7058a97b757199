# SPDX-License-Identifier: BSD-2-Clause
"""cuRAND's device generators in Numba kernels: their states are records in a thread's own memory.

    from curand import Philox

    philox = Philox()

    @cuda.jit
    def fill(x, seed):
        i = cuda.grid(1)
        state = cuda.local.array(1, philox.state_type)
        philox.init(state, seed, i, 0)
        x[i] = philox.uniform(state)

The record is the C++ state itself, so kernels may keep states in global memory and go on with them. All draws follow
cuRAND's: uniform numbers are above 0 and at most 1. `Philox` is Philox4x32-10, which is not the generator of the same
name in NumPy (``numpy.random.Philox`` is Philox4x64-10).

=====================  ===============================================================================
``philox``             `Philox`: pseudorandom numbers
``sobol``              `Sobol`, `ScrambledSobol`: quasirandom numbers
``generator``          what they have in common: draws, and where cuRAND's headers are
``distributions``      draws in Python, for the simulator, to the bit where cuRAND's are
``host``               cuRAND's host library: its generators, and Sobol's direction vectors
=====================  ===============================================================================
"""

from .host import HostGenerator, direction_vectors, scramble_constants
from .philox import Philox
from .sobol import ScrambledSobol, Sobol

__all__ = ["HostGenerator", "Philox", "ScrambledSobol", "Sobol", "direction_vectors", "scramble_constants"]
