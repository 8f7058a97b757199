# SPDX-License-Identifier: BSD-2-Clause
"""Device code that a package contains, built ahead of time for several architectures."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numba.cuda.cudadrv.external_code.diagnostics import messages
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability
from numba.cuda.cudadrv.linkable_code import LTOIR, Cubin, LinkableCode, PTXSource

from numba_cuda_autolink.errors import PrintableError
from numba_cuda_autolink.files import read_regular_file

if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.platform.target import Target

MANIFEST = "manifest.json"
_KINDS = ("cubin", "LTO-IR", "PTX", "source")


class PrebuiltError(PrintableError, ValueError):
    """No code of a package fits the target, or its manifest cannot be read."""

    __module__ = "numba.cuda.autolink"  # as tracebacks show it


@dataclass(frozen=True)
class PrebuiltFile:
    """A file of the manifest. The architecture is the compute capability that it was built for, such as 90; of source,
    0. Source has include paths, relative to the folder, and compile options."""

    name: str
    kind: str
    architecture: int = 0
    include_paths: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.kind if self.kind == "source" else f"{self.kind} for sm_{self.architecture}"


@messages.suggest_names
class Prebuilt:
    """A folder of device code, from which `code` chooses a file that fits.

    The folder has a ``manifest.json``: ``{"toolkit": [12, 9], "files": [{"name": "code.sm_90.cubin", "kind": "cubin",
    "architecture": 90}, {"name": "code.cu", "kind": "source"}, ...]}``. ``architecture`` is anything without a suffix
    that `ComputeCapability.parse` accepts. ``toolkit`` is the version of the NVRTC that built all files: nvJitLink of
    that version or later links them. Source may have ``"include_paths"``, relative to the folder, and ``"options"``, as
    `CUDASource` takes them. ``"sources": {"../code.cu": DIGEST, ...}``, if there, has the SHA-256 of each file that all
    of this was built from, relative to the folder: where one differs, the prebuilt code is out of date.

    Parameters
    ----------
    folder : path-like
    prefer : ``"cubin"`` or ``"LTO-IR"``, optional
        The kind to choose where both fit. A cubin of the target's own architecture links fastest; LTO-IR is inlined
        into the kernel.
    include_paths : iterable of path-like, optional
        Where the source finds headers, besides the folder itself.

    Raises `PrebuiltError` if the manifest does not exist or cannot be read, or a file of ``"sources"`` has changed.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        prefer: Literal["cubin", "LTO-IR"] = "cubin",
        include_paths: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        if prefer not in ("cubin", "LTO-IR"):
            raise ValueError(f"prefer: got {prefer!r}, expected 'cubin' or 'LTO-IR'")
        self.folder = Path(messages.path("Prebuilt()", folder))
        self.prefer = prefer
        self.include_paths = (self.folder, *include_paths)
        path = self.folder / MANIFEST
        try:
            manifest = json.loads(read_regular_file(path))
            self.toolkit: tuple[int, ...] = tuple(int(part) for part in manifest["toolkit"])
            self.files = tuple(_file(entry) for entry in manifest["files"])
            self._sources: dict[str, str] = dict(manifest.get("sources", {}))
        except FileNotFoundError:
            raise PrebuiltError(
                f"{MANIFEST} not found: the device code was not built\n  folder: {self.folder}"
                "\n  what to do: install the package again, from its wheel or its source"
            ) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise PrebuiltError(
                f"{MANIFEST} cannot be read: {type(error).__name__}: {error}\n  file: {path}"
                "\n  what to do: install the package again, from its wheel or its source"
            ) from error
        self._check_sources()

    def __repr__(self) -> str:
        return f"Prebuilt({str(self.folder)!r}, prefer={self.prefer!r})"

    def code(self, target: Target | None = None) -> LinkableCode:
        """Return the code to link for *target*, by default that of the compilation in progress, for a hook to return.

        This is a cubin of exactly its architecture; else the newest LTO-IR for it or an older one, if the kernel is
        linked with LTO; else PTX in the same way; else the source, which NVRTC compiles. For kernels with debug or
        line information the source comes first.

        Raises `PrebuiltError` if no file fits: the message lists the files, the target, and what to do; and if a file
        that the code was built from has changed.
        """
        from ..compilation.context import current_target  # which the simulator does not have

        self._check_sources()
        chosen = self.choose(current_target() if target is None else target)
        path = self.folder / chosen.name
        try:
            code = read_regular_file(path)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise PrebuiltError(
                f"{chosen.name}: {why}\n  folder: {self.folder}"
                "\n  what to do: install the package again, from its wheel or its source"
            ) from error
        if chosen.kind == "source":
            include_paths = [*(self.folder / each for each in chosen.include_paths), *self.include_paths]
            return CUDASource(code.decode(), name=str(path), include_paths=include_paths, options=chosen.options)
        name = "/".join(path.parts[-3:])  # with the package, wherever it is installed
        if chosen.kind == "PTX":
            return PTXSource(code.decode(), name=name)
        return {"cubin": Cubin, "LTO-IR": LTOIR}[chosen.kind](code, name=name)

    def choose(self, target: Target) -> PrebuiltFile:
        """Return the file that `code` chooses for *target*. Raise `PrebuiltError` if none fits."""
        architecture = 10 * target.compute_capability.major + target.compute_capability.minor
        older = [file for file in self.files if file.architecture <= architecture]
        newest = sorted(older, key=lambda file: file.architecture, reverse=True)
        cubins, ltoir, ptx, source = ([file for file in newest if file.kind == kind] for kind in _KINDS)
        finished = [file for file in cubins if file.architecture == architecture]
        if target.lto:
            finished = [*ltoir, *finished] if self.prefer == "LTO-IR" else [*finished, *ltoir]
        if not target.nvrtc_version:
            source = []
        linkable = [*finished, *ptx] if self._is_linkable(target) else []
        in_order = [*source, *linkable] if target.debug or target.lineinfo else [*linkable, *source]
        if not in_order:
            raise PrebuiltError(self._no_fit(target))
        return in_order[0]

    def _check_sources(self) -> None:
        for name, digest in self._sources.items():
            path = os.path.normpath(self.folder / name)
            try:
                if hashlib.sha256(read_regular_file(path)).hexdigest() == digest:
                    continue
                changed = "has changed since it was built"
            except (OSError, ValueError) as error:
                changed = f"cannot be read ({getattr(error, 'strerror', None) or error})"
            raise PrebuiltError(
                f"the device code is out of date: {os.path.basename(name)} {changed}\n  file: {path}"
                f"\n  built: {self.folder}\n  what to do: build and install the package again; in a checkout,"
                " pip install -e ."
            )

    def _is_linkable(self, target: Target) -> bool:
        return target.nvjitlink_version is None or target.nvjitlink_version >= self.toolkit

    def _no_fit(self, target: Target) -> str:
        message = (
            f"no prebuilt code fits {target.arch}, linked {'with' if target.lto else 'without'} LTO\n"
            f"  folder: {self.folder}\n"
            f"  files: {', '.join(map(str, self.files)) or 'none'}, built with CUDA {'.'.join(map(str, self.toolkit))}"
        )
        if not self._is_linkable(target):
            linker = ".".join(map(str, target.nvjitlink_version or ()))
            message += f"\n  nvJitLink has version {linker}, which links no code of a later CUDA"
        if target.nvrtc_version is None and any(file.kind == "source" for file in self.files):
            message += "\n  NVRTC, which would compile the source, was not found"
        return message + (
            f"\n  what to do: update nvJitLink, or install NVRTC or a build of the package for {target.arch} or an"
            " older architecture (LTO-IR and PTX can be linked for later ones)"
        )


def _file(entry: dict[str, Any]) -> PrebuiltFile:
    built_for = ComputeCapability.parse(entry.get("architecture", "0.0"))
    if built_for.suffix:
        raise ValueError(f"the architecture of {entry['name']!r} has the suffix {built_for.suffix!r}, expected none")
    architecture = 10 * built_for.major + built_for.minor
    include_paths, options = map(str, entry.get("include_paths", ())), dict(entry.get("options", {}))
    file = PrebuiltFile(str(entry["name"]), str(entry["kind"]), architecture, tuple(include_paths), options)
    if file.kind not in _KINDS:
        raise ValueError(f"the kind of {file.name!r} is {file.kind!r}, expected one of {', '.join(_KINDS)}")
    return file
