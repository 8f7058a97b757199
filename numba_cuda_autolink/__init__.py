# SPDX-License-Identifier: BSD-2-Clause
"""What of numba-cuda-autolink needs no Numba. The rest is the package ``numba.cuda.autolink``.

=================  ==============================================================================================
``import_hook``    found by Python at its start: importing ``numba.cuda`` activates the project
``command_entry``  the script ``numba-cuda-autolink``
=================  ==============================================================================================
"""
