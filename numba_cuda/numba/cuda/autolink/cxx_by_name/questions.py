# SPDX-License-Identifier: BSD-2-Clause
"""Questions about types and constants of a library, outside of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError

from ..lowered_names import compiled, unit_of_sources
from .refusals import CxxError, refusal
from .targets import targeting

if TYPE_CHECKING:
    from .library import CxxLibrary


def asked(library: CxxLibrary, label: str, text: str, questions: Sequence[str], cc: Any, **options: Any) -> list[str]:
    """Return the lowered names of *questions*, in a unit of the library's source and *text*.

    In the text, OPEN and CLOSE stand for the namespace in which names resolve, INSIDE for a path into it, and LABEL for
    *label*, which messages call it. Raise `CxxError` if it does not compile.
    """
    if config.ENABLE_CUDASIM:
        raise CxxError(
            f"{label}: only the compiler knows it, which the simulator cannot ask\n  library: {library!r}\n"
            "  what to do: in the simulator, use a NumPy dtype or a number in its place"
        )
    namespace = library.head().namespace
    for name, value in {
        "OPEN": f"namespace {namespace} {{" if namespace else "",
        "CLOSE": "}" if namespace else "",
        "INSIDE": f"{namespace}::" if namespace else "",
        "LABEL": label.replace("\\", "\\\\").replace('"', '\\"'),
    }.items():
        text = text.replace(name, value)
        questions = [question.replace(name, value) for question in questions]
    source = library.cxx_text(text, label, **options)
    with targeting(cc) as target:
        try:
            names: Mapping[str, str] = compiled(source, questions).names
        except CompileError as error:
            from numba.cuda.cudadrv.external_code.compile import programs

            paths = source.compile_options.include_paths
            texts = programs.header_texts(unit_of_sources([source]), target)
            # Without the frames of the first error, which hold NVRTC's program.
            raise refusal(label, error, paths, lambda: texts) from CompileError(label, error.log)
    return [names[question] for question in questions]
