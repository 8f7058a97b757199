# SPDX-License-Identifier: BSD-2-Clause
"""The child process of ``reproducibility``: activate this project, and ask a pickled object for its code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any


def answer(content: dict[str, Any], blobs: Sequence[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Answer the pickled question in *blobs*; ``path`` lists where else its modules may be."""
    from numba.cuda.autolink.conformance.reproducibility import answer_question

    import numba_cuda_autolink.import_hook  # noqa: F401  # where Python's start does not import it

    # The object's own module may be in the working directory, which is searched last, and only now: a module there
    # would be found before a namespace package such as "cuda".
    sys.path += [entry for entry in content["path"] if entry not in sys.path]
    return answer_question(*blobs), []
