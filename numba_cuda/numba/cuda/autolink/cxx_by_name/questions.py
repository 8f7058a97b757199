# SPDX-License-Identifier: BSD-2-Clause
"""Questions about types and constants of a library, outside of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.inputs.link_input import line_marker

from ..lowered_names import compiled
from .placeholders import filled
from .refusals import CxxError, refusal
from .targets import targeting

if TYPE_CHECKING:
    from .library import CxxLibrary


@dataclass(frozen=True)
class Question:
    """C++ that follows a library's source, and name expressions whose lowered names answer.

    Attributes
    ----------
    label:
        What messages call it.
    text:
        The C++. ``@open@`` and ``@close@`` stand for the namespace in which names resolve, ``@line@`` for the directive
        after which messages count the lines of *label*, and ``@subject@`` for the subject.
    names:
        The name expressions, in which ``@inside@`` stands for the path into the namespace.
    subject:
        The C++ expression or type that it is about: by default the label.
    options:
        Further compile options.
    """

    label: str
    text: str
    names: Sequence[str]
    subject: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


def asked(library: CxxLibrary, question: Question, cc: Any) -> list[str]:
    """Return the lowered names that answer *question*. Raise `CxxError` if its text does not compile."""
    if config.ENABLE_CUDASIM:
        raise CxxError(
            f"{question.label}: only the compiler knows it, which the simulator cannot ask\n  library: {library!r}\n"
            "  what to do: in the simulator, use a NumPy dtype or a number in its place"
        )
    namespace = library.cxx_head().namespace
    values = {
        "open": f"namespace {namespace} {{" if namespace else "",
        "close": "}" if namespace else "",
        "inside": f"{namespace}::" if namespace else "",
        "line": line_marker(question.label),
        "subject": question.subject or question.label,
    }
    names = [filled(name, values) for name in question.names]
    source = library.cxx_unit(filled(question.text, values), question.label, **question.options)
    with targeting(cc) as target:
        try:
            found = compiled(source, names).names
        except CompileError as error:
            refused = refusal(question.label, error, source, target)
        else:
            return [found[name] for name in names]
    raise refused  # outside of the handler: the frames of the other error hold NVRTC's program
