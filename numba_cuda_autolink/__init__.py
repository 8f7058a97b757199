# SPDX-License-Identifier: BSD-2-Clause
"""The parts of numba-cuda-autolink that need no Numba. The rest is the package ``numba.cuda.autolink``.

=================  ==============================================================================================
``import_hook``    installed when Python starts: importing ``numba.cuda`` activates the project
``command_entry``  the script ``numba-cuda-autolink``
=================  ==============================================================================================
"""


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata

    try:
        return metadata.version("numba-cuda-autolink")
    except metadata.PackageNotFoundError as error:
        raise AttributeError("numba-cuda-autolink is not installed, so that its __version__ is not known") from error
