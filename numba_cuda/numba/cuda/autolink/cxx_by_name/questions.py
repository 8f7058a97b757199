# SPDX-License-Identifier: BSD-2-Clause
"""Questions about types and constants of a library, outside of calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.inputs.link_input import line_marker
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, ComputeCapabilityLike, Target

from ..compilation.context import asking, require_nvrtc
from ..linkables.compiled_source import compiled
from .calls import fill
from .library_source import LibrarySource
from .refusals import CxxError, explain_refusal

# Where no compute capability is given and there is no GPU.
DEFAULT = ComputeCapability(9, 0)


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
    before:
        C++ before the text, as it is.
    """

    label: str
    text: str
    names: Sequence[str]
    subject: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    before: str = ""


def ask(source: LibrarySource, question: Question, cc: ComputeCapabilityLike | None) -> list[str]:
    """Return the lowered names that answer *question*. Raise `CxxError` if its text does not compile."""
    if config.ENABLE_CUDASIM:
        raise CxxError(
            f"{question.label}: only the compiler knows it, which the simulator cannot ask\n  library: {source!r}\n"
            "  what to do: in the simulator, use a NumPy dtype or a number in its place"
        )
    namespace = source.namespace
    values = {
        "open": f"namespace {namespace} {{" if namespace else "",
        "close": "}" if namespace else "",
        "inside": f"{namespace}::" if namespace else "",
        "line": line_marker(question.label),
        "subject": question.subject or question.label,
    }
    names = [fill(name, values) for name in question.names]
    unit = source.write_unit(question.before + fill(question.text, values), question.label, **question.options)
    with resolve_for(cc) as target:
        try:
            found = compiled(unit, names).names
        except CompileError as error:
            refused = source.place_error(explain_refusal(question.label, error, unit, target))
        else:
            return [found[name] for name in names]
    raise refused  # outside of the handler: the frames of the other error hold NVRTC's program


@contextlib.contextmanager
def resolve_for(cc: ComputeCapabilityLike | None) -> Iterator[Target]:
    """Resolve for *cc* inside the ``with`` block: by default for the current GPU, as a launch would, or for `DEFAULT`
    without one."""
    require_nvrtc("C++ cannot be asked")
    target = Target(_default() if cc is None else ComputeCapability.parse(cc), lto=True)
    with asking(target):
        yield target


def _default() -> ComputeCapability:
    from numba import cuda

    try:
        return ComputeCapability.parse(cuda.get_current_device().compute_capability).as_launched
    except Exception:
        return DEFAULT
