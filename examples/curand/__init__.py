# SPDX-License-Identifier: BSD-2-Clause
"""Call cuRAND's device generators from Numba kernels. Their states are records in a thread's local memory.

    from curand import Philox

    philox = Philox()

    @cuda.jit
    def fill(x, seed):
        i = cuda.grid(1)
        state = cuda.local.array(1, philox.state_type)
        philox.init(state, seed, i, 0)
        x[i] = philox.uniform(state)

The record is the C++ state itself, so kernels may keep states in global memory and continue with them. All numbers
follow cuRAND's conventions: uniform numbers are greater than 0 and at most 1. `Philox` is Philox4x32-10, which is not
the generator of the same name in NumPy (``numpy.random.Philox`` is Philox4x64-10).

=====================  ===============================================================================
``philox``             `Philox`: pseudorandom numbers
``sobol``              `Sobol`, `ScrambledSobol`: quasirandom numbers
``generator``          the base class of the generators, and the location of cuRAND's headers
``distributions``      distributions in Python, for the simulator
``host``               cuRAND's host library: its generators, and Sobol's direction vectors
=====================  ===============================================================================
"""

from .host import HostGenerator, direction_vectors, scramble_constants
from .philox import Philox
from .sobol import ScrambledSobol, Sobol

__all__ = ["HostGenerator", "Philox", "ScrambledSobol", "Sobol", "direction_vectors", "scramble_constants"]
