# SPDX-License-Identifier: BSD-2-Clause
"""Finished kernels in files, which `numba_cuda_autolink.load` reads without Numba and without a compiler."""

from __future__ import annotations

import importlib
import itertools
import operator
import os
from collections.abc import Iterable, Sequence
from typing import Any

from numba.cuda.cudadrv.external_code.diagnostics import messages
from numba.cuda.cudadrv.external_code.formats.cubin import cubin_parameters, launch_bounds, ptx_parameters, resources
from numba.cuda.cudadrv.external_code.platform import cuda_libraries

from numba_cuda_autolink.errors import FinishedKernelError, FormatError, at_call
from numba_cuda_autolink.files import check_folder
from numba_cuda_autolink.finished.kernel_file import CodeFor, Image, Signature, write
from numba_cuda_autolink.package_versions import package_versions
from numba_cuda_autolink.plain_types import leaves, place_leaves

from ..function_code.build_record import BuildRecord, LaunchFacts


@messages.suggest_names
def save(path: str | bytes | os.PathLike[Any], kernels: BuildRecord | Iterable[BuildRecord]) -> None:
    """Write finished *kernels* to one file, for `numba_cuda_autolink.load`.

    Kernels of one name become one kernel with several signatures, and equal signatures one with code for several
    architectures. The name is that of the Python function, or the ``entry_name`` that it was built with. Variables are
    saved with the values that they were set to.

    Parameters
    ----------
    path:
        The file, usually with the suffix ``.kernels``. It is replaced as a whole.
    kernels:
        What `build` returned, as cubins or PTX: one or any number of them. PTX is compiled by the driver of the machine
        that loads it, for GPUs that no cubin fits.

    Raises
    ------
    FinishedKernelError
        If a kernel needs what only numba-cuda has at run time: NRT, callbacks that cannot be imported by name,
        arguments without a value at run time, exceptions (``debug=True``), extensions. If two kernels differ and have
        the same name, signature and architecture, or variables that differ have the same name.
    TypeError
        If *kernels* are not what `build` returned.
    OSError
        If the file cannot be written.
    """
    path = messages.path("save()", path)
    check_folder("save()", path)
    kernels = as_built("save()", kernels)
    if not kernels:
        raise FinishedKernelError("there are no kernels to save")
    found: dict[str, dict[Any, list[tuple[BuildRecord, Image]]]] = {}
    variables: dict[str, Any] = {}
    for linked in kernels:
        facts = linked.launch_facts
        try:
            signature = linked.signature, facts.parameters
            image = image_of(linked, facts, signature[1])
        except FinishedKernelError as error:
            raise FinishedKernelError(f"kernel {facts.name!r} cannot be saved: {error}") from error.__cause__
        for variable, value in image.variables:
            other = variables.setdefault(variable.name, (variable, value))
            if other != (variable, value):
                differs = f"{other[0]}, and {variable}" if other[0] != variable else "the values differ"
                raise FinishedKernelError(
                    f"two variables of the kernels are called {variable.name!r}: {differs}\n"
                    "  what to do: give them different names, or write two files"
                )
        signatures_so_far = found.setdefault(facts.name, {})
        images = signatures_so_far.setdefault(signature, [])
        same_types = (each for (text, _), each in signatures_so_far.items() if text == linked.signature)
        for other, saved in itertools.chain(*same_types):
            if saved.runs_on == image.runs_on and saved != image and other is not linked:
                raise FinishedKernelError(
                    f"two kernels are called {facts.name!r}, with signature {linked.signature} for {image.runs_on}\n"
                    "  what to do: build one of them with another entry_name="
                )
        if all(saved.runs_on != image.runs_on for _, saved in images):
            images.append((linked, image))
    signatures: dict[str, Sequence[Signature]] = {
        name: [Signature(text, tree, tuple(image for _, image in images)) for (text, tree), images in each.items()]
        for name, each in found.items()
    }
    write(path, signatures, package_versions() | cuda_libraries.version_texts())


def as_built(caller: str, kernels: BuildRecord | Iterable[BuildRecord]) -> list[BuildRecord]:
    """Return *kernels*, one or any number, as a list. Raise `TypeError`, which names *caller*, if `build` did not
    return them."""
    if isinstance(kernels, BuildRecord):
        kernels = [kernels]
    is_text = isinstance(kernels, (str, bytes, os.PathLike))
    built = list(kernels) if isinstance(kernels, Iterable) and not is_text else None
    wrong = next(((n, each) for n, each in enumerate(built or (), 1) if not isinstance(each, BuildRecord)), None)
    if built is not None and wrong is None:
        return built
    number, value = wrong or (0, kernels)
    got = f"{messages.shown(value)}{f', item {number} of a list' if number else ''}"
    todo = "pass a path, and then what build() returned"
    if number and isinstance(value, (list, tuple)):
        todo = "build(..., cc=[...]) returns a list: join lists, as in [*first, *second]"
    elif callable(value):
        todo = "build it first, with build(kernel, signature)"
    raise TypeError(f"{caller} expects what build() returned\n  got: {got}\n  what to do: {todo}")


def image_of(linked: BuildRecord, facts: LaunchFacts, parameters: Any) -> Image:
    """Return a built kernel's code and what a launch must know of it. Raise `FinishedKernelError` if it needs what only
    numba-cuda has at run time."""
    from ..reports.collect import report_of

    if linked.output not in ("cubin", "ptx"):
        raise FinishedKernelError(
            f"it was built with output={linked.output!r}\n  what to do: build it with output='cubin' or output='ptx'"
        )
    check_runtime(facts)
    layout, _ = layout_of(linked, parameters)
    bounds = launch_bounds(linked.code, linked.entry_name) if linked.output == "cubin" else None
    used = resources(linked.code, linked.entry_name) if linked.output == "cubin" else {}
    return Image(
        CodeFor(*linked.cc.parts, linked.output),
        linked.entry_name,
        linked.code,
        layout,
        used.get("shared"),
        used.get("registers"),
        bounds,
        facts.cooperative,
        facts.carveout,
        tuple(map(_importable, facts.setup)),
        tuple(map(_importable, facts.teardown)),
        report_of(linked).to_json(indent=None).encode(),
        tuple((variable.memory.type, variable.memory.initial) for variable in facts.variables),
    )


def layout_of(linked: BuildRecord, parameters: Any) -> tuple[tuple[tuple[int, int], ...], Any]:
    """Return offset and size of each parameter of a built kernel, as its code has them, and *parameters* placed there.
    Raise `FinishedKernelError` if they are not those of its code."""
    read = cubin_parameters if linked.output == "cubin" else ptx_parameters
    try:
        layout = read(linked.code, linked.entry_name)
    except FormatError as error:
        raise FinishedKernelError(f"the parameters cannot be read from its code: {error}") from error
    found = place_leaves(parameters, layout)
    if found is None:
        expected = (leaf.size for leaf in leaves(parameters))
        raise FinishedKernelError(
            f"its code takes other parameters than {linked.signature}\n"
            f"  expected: {_sizes(expected)}\n  got: {_sizes(size for _, size in layout)}"
        )
    return layout, found


def _sizes(sizes: Iterable[int]) -> str:
    return f"{' '.join(map(str, sizes)) or 'none'} (bytes)"


def check_runtime(facts: LaunchFacts) -> None:
    """Raise `FinishedKernelError` if a kernel of these *facts* needs what only its front end has at run time."""
    if facts.needs_nrt:
        raise FinishedKernelError(
            f"it uses {facts.front_end}'s runtime for reference counting (NRT)\n"
            "  what to do: make its arrays before the launch"
        )
    check_launchable(facts.name, facts)


def check_launchable(name: str, kernel: Any) -> None:
    """Raise `FinishedKernelError` if numba-cuda's *kernel*, or its facts, needs numba-cuda's own launch."""
    if kernel.debug:
        raise FinishedKernelError(
            at_call(
                f"{name} raises exceptions (debug=True), which only the launch of a jit kernel reports"
                "\n  what to do: build it with debug=False; lineinfo=True keeps source lines"
            )
        )
    if kernel.extensions:
        raise FinishedKernelError(
            at_call(
                f"the arguments of {name} pass through extensions=\n  what to do: pass what the extensions make of them"
            )
        )


def _importable(callback: Any) -> str:
    module, name = getattr(callback, "__module__", None), getattr(callback, "__qualname__", None)
    try:
        if not module or not name or module == "__main__":
            raise ImportError
        found = operator.attrgetter(name)(importlib.import_module(module))
        if found is not callback and found != callback:
            raise ImportError
    except (ImportError, AttributeError):
        raise FinishedKernelError(
            f"a callback of its module cannot be imported by a name\n  callback: {callback!r}\n"
            "  what to do: make it a function at the top level of a module that the application has"
        ) from None
    return f"{module}:{name}"
