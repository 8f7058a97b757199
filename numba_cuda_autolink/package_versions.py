# SPDX-License-Identifier: BSD-2-Clause
"""The versions of the packages that matter. Nothing of them is imported."""

from __future__ import annotations

import csv
import functools
import hashlib
import importlib.metadata
import json
import os
import re
from typing import Any

_CUDA_PACKAGES = ("cuda-core", "cuda-bindings", "cuda-pathfinder")
_PACKAGES = ("numba-cuda-autolink", "numba-cuda", "numba", "llvmlite", "numpy", *_CUDA_PACKAGES)
NOT_INSTALLED = "not installed"
_VERSION = re.compile(r"^Version:[ \t]*(\S+)", re.MULTILINE)
_DIGESTS = {"", *hashlib.algorithms_guaranteed} - {"shake_128", "shake_256"}  # these take a length


def find_distributions(package: str) -> list[importlib.metadata.Distribution]:
    """Return an installed *package*, as its metadata describe it; then any older metadata of it in the same folder.
    Raise `PackageNotFoundError` if it is not installed."""
    found = list(importlib.metadata.distributions(name=package))
    if not found:
        raise importlib.metadata.PackageNotFoundError(package)
    place = os.path.dirname(metadata_folder(found[0]))
    same = [each for each in found if os.path.dirname(metadata_folder(each)) == place]
    return sorted(same, key=lambda each: _numbers(metadata_folder(each)), reverse=True)


def metadata_folder(distribution: importlib.metadata.Distribution) -> str:
    """Return the path of the folder with the metadata of an installed package; empty if they are not in a folder."""
    return str(getattr(distribution, "_path", ""))


def _numbers(folder: str) -> list[int]:
    """Return the numbers of the version in the name of a folder of metadata."""
    version = os.path.basename(folder).removesuffix(".dist-info").rpartition("-")[2]
    return [int(number) for number in re.findall(r"\d+", version)]


@functools.cache
def version_of(package: str) -> str:
    """Return the version of an installed *package*, or ``"not installed"``."""
    try:
        distribution = find_distributions(package)[0]
    except importlib.metadata.PackageNotFoundError:
        return NOT_INSTALLED
    text = read_metadata(distribution, "METADATA") or read_metadata(distribution, "PKG-INFO")
    if version := version_in(text):
        return version
    # Without a METADATA that can be read, the name of the folder that holds it has the version.
    folder = metadata_folder(distribution)
    if not any(os.path.exists(os.path.join(folder, name)) for name in ("METADATA", "RECORD")):
        return NOT_INSTALLED
    return os.path.basename(folder).removesuffix(".dist-info").rpartition("-")[2]


def version_in(metadata: str) -> str:
    """Return the version in the text of a METADATA file; empty if it has none."""
    found = _VERSION.search(metadata.partition("\n\n")[0])
    return found[1] if found else ""


def read_metadata(distribution: importlib.metadata.Distribution, name: str) -> str:
    """Return the text of a file of the metadata of an installed package; empty if it is missing or cannot be read."""
    try:
        return distribution.read_text(name) or ""
    except (OSError, ValueError):
        return ""


def read_record(distribution: importlib.metadata.Distribution) -> list[tuple[str, str, str]]:
    """Return name, digest and size of each file of an installed package. Raise `ValueError` if its RECORD is
    damaged."""
    try:
        rows = list(csv.reader((distribution.read_text("RECORD") or "").splitlines()))
    except (OSError, csv.Error) as error:
        raise ValueError(error) from error
    for row in rows:
        if len(row) != 3 or row[1].partition("=")[0] not in _DIGESTS or not f"0{row[2]}".isdecimal():
            raise ValueError(f"RECORD has the line {','.join(row)!r}")
    return [(name, digest, size) for name, digest, size in rows]


def read_source(distribution: importlib.metadata.Distribution) -> dict[str, Any]:
    """Return where an installed package is from, as `direct_url.json` describes it; empty if that is unknown."""
    try:
        source = json.loads(read_metadata(distribution, "direct_url.json") or "{}")
    except ValueError:
        return {}
    return source if isinstance(source, dict) else {}


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that matter, or ``"not installed"``."""
    return {name: version_of(name) for name in _PACKAGES}


def parse_version(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; empty if there are none."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", version)[0])))
