# SPDX-License-Identifier: BSD-2-Clause
"""The parts of numba-cuda-autolink that need no Numba. The rest is the package ``numba.cuda.autolink``.

=================  ==============================================================================================
``import_hook``    installed when Python starts: importing ``numba.cuda`` activates the project
``command_entry``  the script ``numba-cuda-autolink``
=================  ==============================================================================================
"""
