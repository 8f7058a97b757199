# SPDX-License-Identifier: BSD-2-Clause
"""Questions about types, constants and names of a library, outside of calls; constant expressions as numbers of
Python."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numba.cuda import types
from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.cache.entry import CacheKey
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.compile import nvrtc_log
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, line_marker
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, ComputeCapabilityLike, Target

from numba_cuda_autolink.errors import at_call
from numba_cuda_autolink.package_versions import version_of
from numba_cuda_autolink.short_tracebacks import place_of_user
from numba_cuda_autolink.source_locations import shown_file

from ..compilation.context import asking, compilation, require_nvrtc
from ..frontend_api.placed_messages import IS_PLACED, before_advice
from ..linkables.compiled_source import compiled, unit_of_sources
from .calls import fill
from .cxx_errors import CxxError
from .declared_names import Declared, find_declared
from .in_simulator import unknown_in_simulator
from .library_source import LibrarySource
from .refusals import explain_refusal
from .refused_names import own_texts
from .results import CxxObject, read_numbers, read_type

# Where no compute capability is given and there is no GPU.
DEFAULT = ComputeCapability(9, 0)


@dataclass(frozen=True)
class Question:
    """C++ that follows a library's source, and name expressions whose lowered names answer."""

    label: str  # what messages call it
    # The C++. ``@open@`` and ``@close@`` stand for the namespace in which names resolve, ``@line@`` for the directive
    # after which messages count the lines of *label*, and ``@subject@`` for the subject.
    text: str
    names: Sequence[str]  # the name expressions, in which ``@inside@`` stands for the path into the namespace
    subject: str = ""  # the C++ expression or type that it is about: by default the label
    options: Mapping[str, Any] = field(default_factory=dict)  # further compile options
    before: str = ""  # C++ before the text, as it is


def ask(source: LibrarySource, question: Question, cc: ComputeCapabilityLike | None) -> list[str]:
    """Return the lowered names that answer *question*. Raise `CxxError` if its text does not compile."""
    if config.ENABLE_CUDASIM:
        raise unknown_in_simulator(source, question.label)
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
    try:
        with asking(target):
            yield target
    except CxxError as error:
        raise at_call_outside(error)  # noqa: B904


def at_call_outside(error: CxxError) -> CxxError:
    """Return *error* with the user's line, where no kernel is compiled: else the call in the kernel is the place. An
    error of the source has its place in C++, and is called from that line."""
    if compilation() is None:
        text = str(error)
        if IS_PLACED.match(text):
            filename, line, _ = place_of_user()
            text = before_advice(text, f"called from: {shown_file(filename)}:{line}")
        else:
            text = at_call(text, "at")
        error.args = (text,)
    return error


def _default() -> ComputeCapability:
    from numba import cuda

    try:
        return ComputeCapability.parse(cuda.get_current_device().compute_capability).as_launched
    except Exception:
        return DEFAULT


def list_declared(source: LibrarySource) -> list[Declared]:
    """Return what a library declares, for completion and help, which never fail."""
    found = find_declared([source.text], source.namespace)
    with contextlib.suppress(Exception), resolve_for(None) as target:
        for unit in map(unit_of_sources, source.list_units()):
            if (known := _declared_in_headers(unit, source.namespace, target)) is not None:
                return [*dict.fromkeys([*found, *known])]
            found += find_declared([unit.text], source.namespace)
    return [*dict.fromkeys(found)]


def list_texts(source: LibrarySource) -> list[str]:
    """Return the texts of a library and, as far as they are known, of its headers without CUDA's: for hints, which
    never fail."""
    with contextlib.suppress(Exception), resolve_for(None) as target:
        return [*own_texts(source.write_unit("", "names"), target)]
    return [source.text]


def _declared_in_headers(unit: LinkInput, namespace: str, target: Target) -> list[Declared] | None:
    """Return what a translation unit declares in *namespace*, in the global one without that of CUDA; ``None`` if its
    headers are not known. It is cached as what follows from its texts."""
    from numba.cuda.cudadrv.external_code.compile import programs

    if (digest := programs.program_digest(unit, target, on_record=False)) is None:
        return None

    def build() -> bytes:
        texts = programs.header_texts(unit, target, with_toolkit=bool(namespace))
        return json.dumps(find_declared(texts, namespace)).encode()

    of = ("program", digest), ("namespace", namespace), ("fields", ",".join(Declared._fields))
    parts = *of, ("by", version_of("numba-cuda-autolink"))
    found = json.loads(current_store().fetch(CacheKey("declarations", unit.name, parts), build).data)
    return [Declared(*each) for each in found]


_TEXT = """#line 1 "prelude"
namespace nca {
template <class nca_T> constexpr __device__ unsigned long long nca_bits(nca_T nca_v) {
    if constexpr (nca_same<nca_T, float> || nca_same<nca_T, double>)
        return __builtin_bit_cast(unsigned long long, double(nca_v));
    else return static_cast<unsigned long long>(nca_v);
}
template <class nca_T> constexpr __device__ bool nca_is_number() {
    return nca_plain_code<nca_under_t<nca_plain<nca_T>>>::nca_value >= 0;
}
}
@open@
@line@using nca_type = decltype(@subject@);
template <bool nca_B> constexpr __device__ unsigned long long nca_bits() {
    if constexpr (nca_B) return nca::nca_bits(static_cast<nca::nca_plain<nca_type>>(@subject@)); else return 0;
}
enum : unsigned long long { nca_value = nca_bits<nca::nca_is_number<nca_type>()>() };
@close@
"""
_QUESTION = (
    "&nca::nca_tell<nca::nca_all_t<nca::nca_told<@inside@nca_value>, nca::nca_form_t<@inside@nca_type>::nca_code>>"
)


def evaluate(source: LibrarySource, text: str, cc: ComputeCapability | None) -> bool | int | float:
    """Return the value of the constant expression *text*. Raise `CxxError` if that is not a number."""
    (answer,) = ask(source, Question(text, _TEXT, [_QUESTION]), cc)
    bits, *code = read_numbers(answer)
    numba_type = read_type(iter(code), ())
    if isinstance(numba_type, types.EnumMember):
        numba_type = numba_type.dtype
    if isinstance(numba_type, types.Float):
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
    if numba_type == types.boolean:
        return bool(bits)
    if isinstance(numba_type, types.Integer):
        return bits - (1 << 64) if numba_type.signed and bits >> 63 else bits
    what = "an object" if isinstance(numba_type, CxxObject) else f"a {numba_type}"
    raise CxxError(f"{text} is not a number but {what} of C++\n  expected: an integer, bool, float or enumerator")


def explain_value(source: LibrarySource, name: str, shown: str) -> tuple[str, str] | None:
    """Return what is wrong where a kernel uses *name*, which it has as *shown*, as a value, and what to do, if C++ does
    not know it or it is a constant or a variable; ``None`` for another one."""
    last = name.rpartition("::")[2]
    try:
        evaluate(source, name, None)
    except CxxError as error:
        first = nvrtc_log.list_errors(error.log)[:1]
        if [each.text for each in first] == ["expression must have a constant value"]:
            diagnosis = f"{shown!r} is a variable of C++, which kernels do not read by its name"
            returned = f"{last} = lib.expr('[] {{ return {name}; }}') before the kernel, and {last}() in it"
            return diagnosis, f"let a lambda return it: {returned}"
        unknown = [each.unknown for each in first]
        if unknown not in ([name], [last]):
            return None
        return f"C++ has no {shown!r}", str(error).rpartition("what to do: ")[2]
    taken = f'take it before the kernel: {last} = lib.eval("{name}")'
    return f"{shown!r} is a constant of C++, which kernels do not read by its name", taken
