# SPDX-License-Identifier: BSD-2-Clause
"""``build``: writes finished kernels to files, for machines that neither compile nor link."""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
from typing import TYPE_CHECKING, Any

from ..package_versions import package_versions
from .argument_parsing import (
    OUTPUTS,
    STANDARD_OUTPUT,
    CommandError,
    add_kernel,
    check_folder,
    check_suffix,
    explained_errors,
    prints_to_stderr,
    write,
)

if TYPE_CHECKING:
    from .kernel_loading import NamedKernel

_EXAMPLES = """examples:
  numba-cuda-autolink build mykernels.py:scale --sig 'void(float32[::1])' --cc 9.0 -o scale.cubin
  numba-cuda-autolink build mykernels.py:scale --sig 'void(float32[::1])' --cc 8.0,9.0,10.0 -o scale.fatbin
  numba-cuda-autolink build mykernels.py:scale --sig 'void(float32[::1])' --cc 8.0,9.0,10.0 -o scale.kernels
  numba-cuda-autolink build mykernels.py:scale --sig 'void(float32[::1])' --cc 8.0,9.0,10.0 --header scale.h
  numba-cuda-autolink build mykernels.py:scale --sig 'void(float32[::1])' --cc 9.0 -o - | sha256sum

numba_cuda_autolink.load() reads files with the suffix .kernels. Next to others, OUT.json lists their
contents: entry name, architectures, linked code and library versions. -o - writes a cubin, PTX or LTO-IR to standard
output, and nothing else.
"""
_FOR_SEVERAL = ("fatbin", "kernels")
_OF_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".h++", ".cuh", ".inc", ".inl", "")
MANIFEST_FORMAT = 1


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "build",
        help="build a kernel ahead of time; no GPU needed",
        description="Compile and link a kernel for compute capabilities and write it to a file. No GPU is needed.",
        epilog=_EXAMPLES,
    )
    add_kernel(parser)
    parser.add_argument(
        "-o", dest="out", metavar="OUT", type=pathlib.Path, help="the file to write; - is standard output"
    )
    parser.add_argument(
        "--header",
        metavar="FILE.h",
        type=pathlib.Path,
        help="write a header for C and C++ programs, with the code in it",
    )
    parser.add_argument(
        "--output",
        choices=OUTPUTS,
        metavar="FORM",
        help=f"what to write: {', '.join(OUTPUTS)} (default: by OUT's suffix, else cubin, or fatbin for several"
        " compute capabilities)",
    )
    parser.add_argument(
        "--ptx",
        action="store_true",
        help="into a .kernels file, also write PTX of the last compute capability: for later GPUs, and the emulator",
    )
    parser.add_argument(
        "--name", metavar="ENTRY", help="the kernel's name in the code (default: the Python function's name)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from numba.cuda import autolink
    from numba.cuda.autolink.frontend_api.front_end import NUMBA_CUDA, vocabulary_of_kernel

    from .kernel_loading import load_kernel

    output = _output(options)
    for path in filter(None, (options.out, options.header)):
        check_folder(path)
    with prints_to_stderr():
        kernel = load_kernel(options.kernel, options.cc)
        if kernel.is_device_function:
            raise CommandError(
                f"{kernel.name} is a device function, which is built into the kernels that call it\n"
                f"  what to do: see what it brings to them: numba-cuda-autolink explain {options.kernel}"
            )
        signature = kernel.signature(options.sig)
        name = _entry_name(options.name, kernel)
    with prints_to_stderr(), explained_errors():
        # One name for all architectures: programs load a fatbin without knowing which of them the driver takes. Names
        # of numba-cuda-mlir's kernels do not depend on it.
        entry_name = name if vocabulary_of_kernel(kernel.obj) is NUMBA_CUDA else options.name
        how = {"output": "cubin" if output in _FOR_SEVERAL else output, "entry_name": entry_name}
        built = autolink.build(kernel.obj, signature, cc=options.cc, **how)
        if options.header is not None:
            autolink.write_header(options.header, built)
        if output == "kernels" and options.out is not None:
            latest = [max(options.cc)] if options.ptx else []
            how["output"] = "ptx"
            as_ptx = [autolink.build(kernel.obj, signature, cc=cc, **how) for cc in latest]
            autolink.save(options.out, [*built, *as_ptx])
    says = sys.stderr if options.out == STANDARD_OUTPUT else sys.stdout
    if options.header is not None:
        size = options.header.stat().st_size
        print(f"{options.header}: {size} bytes, header of {name} for {_arches(built)}", file=says)
    if options.out is None:
        return 0
    if output == "kernels":
        print(
            f"{options.out}: {options.out.stat().st_size} bytes, {name} for {_arches(built)}{', and PTX' * options.ptx}"
        )
        return 0
    code = built[0].code if output != "fatbin" else _fatbin(built)
    write(options.out, code)
    if options.out != STANDARD_OUTPUT:
        _manifest_path(options.out).write_text(json.dumps(_manifest(options, output, code, built), indent=2) + "\n")
        print(f"{options.out}: {len(code)} bytes, {output} of {built[0].entry_name} for {_arches(built)}")
    return 0


def _output(options: argparse.Namespace) -> str:
    """Return what to write: ``--output``, or what the suffix of the file says."""
    from .kernel_loading import check_name

    check_name(options.kernel)
    if options.out is None and options.header is None:
        raise CommandError("no file to write\n  what to do: pass -o OUT, --header FILE.h, or both", 2)
    several = len(options.cc) > 1
    suffix = options.out.suffix if options.out else ""
    output: str = options.output or suffix.lstrip(".") or ("fatbin" if several and options.out else "cubin")
    _check_files(options, output)
    if options.header is not None and (options.header.suffix not in _OF_HEADERS or options.header == STANDARD_OUTPUT):
        meant = options.header.with_suffix(".h") if options.header != STANDARD_OUTPUT else "FILE.h"
        raise CommandError(
            f"--header {options.header} does not name a header for C and C++\n  what to do: pass --header {meant}", 2
        )
    if output not in OUTPUTS and suffix in _OF_HEADERS and suffix:
        raise CommandError(
            f"-o {options.out}: headers are written by --header\n  what to do: pass --header {options.out}", 2
        )
    if output not in OUTPUTS:
        raise CommandError(
            f"{options.out}: no kind of output has the suffix {suffix}\n"
            f"  what to do: use {', '.join(f'.{each}' for each in OUTPUTS)}, or pass --output",
            2,
        )
    if options.out is not None:
        check_suffix(options.out, output)
    if options.ptx and output != "kernels":
        raise CommandError("--ptx is for .kernels files, which can have several kinds of code", 2)
    if options.header is not None and output in ("ptx", "ltoir"):
        raise CommandError(f"a header contains cubins: write {output} with a command of its own", 2)
    if options.out == STANDARD_OUTPUT and (several or output == "kernels"):
        raise CommandError("-o - writes the code for one compute capability; name a file for several and .kernels", 2)
    if options.out == STANDARD_OUTPUT and output != "ptx" and sys.stdout.isatty():
        raise CommandError(f"-o - writes {output}, which a terminal cannot show\n  what to do: name a file", 2)
    if options.out is not None and several and output not in _FOR_SEVERAL:
        raise CommandError(f"a {output} is for one compute capability: use .fatbin or .kernels for several", 2)
    return output


def _entry_name(given: str | None, kernel: NamedKernel) -> str:
    name = given or str(kernel.function.__name__)
    if not re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", name):
        raise CommandError(
            f"{f'--name {given!r}' if given else name} is not a C identifier\n"
            "  what to do: pass --name with letters, digits, _ and $",
            2,
        )
    return name


def _check_files(options: argparse.Namespace, output: str) -> None:
    """Raise `CommandError` if the header would replace what else is written."""
    if options.out is None or options.header is None:
        return
    written = [options.out] if output == "kernels" else [options.out, _manifest_path(options.out)]
    if options.header.resolve() in [path.resolve() for path in written]:
        raise CommandError(f"{options.header} would be written twice: pass different files to -o and --header", 2)


def _manifest_path(out: pathlib.Path) -> pathlib.Path:
    return out.with_name(out.name + ".json")


def _arches(built: list[Any]) -> str:
    return ", ".join(each.cc.arch for each in built)


def _fatbin(built: list[Any]) -> bytes:
    try:
        from cuda.bindings import nvfatbin

        handle = nvfatbin.create([], 0)
    except Exception as error:
        from ..pip_commands import install_command

        raise CommandError(
            f"nvFatbin, which makes fatbins, was not found: {str(error).splitlines()[0]}\n"
            f"  what to do: install it, {install_command()}, or build one cubin for each compute capability"
        ) from error
    try:
        for each in built:
            nvfatbin.add_cubin(handle, each.code, len(each.code), each.cc.arch.removeprefix("sm_"), each.entry_name)
        fatbin = bytearray(nvfatbin.size(handle))
        nvfatbin.get(handle, fatbin)
    finally:
        nvfatbin.destroy(handle)
    return bytes(fatbin)


def _manifest(options: argparse.Namespace, output: str, code: bytes, built: list[Any]) -> dict[str, Any]:
    from numba.cuda.cudadrv.external_code.link.linker_input import LinkedInput, sha256
    from numba.cuda.cudadrv.external_code.platform import cuda_libraries

    return {
        "format": MANIFEST_FORMAT,
        "file": options.out.name,
        "output": output,
        "sha256": sha256(code),
        "signature": options.sig or built[0].signature,
        "kernels": [
            {
                "entry_name": kernel.entry_name,
                "architecture": kernel.cc.arch,
                "bytes": len(kernel.code),
                "inputs": [
                    {"kind": item.kind, "name": item.name, "sha256": item.sha256, "brought_by": item.origins}
                    for item in map(LinkedInput.of, kernel.inputs)
                ],
            }
            for kernel in built
        ],
        "versions": {**package_versions(), **cuda_libraries.versions()},
    }
