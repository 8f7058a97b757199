# SPDX-License-Identifier: BSD-2-Clause
"""Whether NVRTC refuses a source because files of the CUDA toolkit are missing, damaged or of another CUDA, and how to
fix that."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

_OF_TOOLKIT = re.compile(r"(?:cuda|cub|thrust|cooperative_groups|nvcuda)::")
_NOT_OPENED = re.compile(r"failed to open|cannot (?:be )?load|could not be (?:loaded|opened)")


def explain_damage(text: str, place: str, unknown: str, missing_header: str, *, has_ended: bool) -> str:
    """Return which package of the toolkit to install again, since a file that an error is about is not as it was
    installed, or is of another CUDA than NVRTC; empty if there is no such file. The error's *text*, *place* and
    *unknown* name are those of a `Diagnostic`; *has_ended* is whether NVRTC ended in the middle of the compile."""
    from numba_cuda_autolink.installed_packages import repair_of_toolkit

    counts = _files_about(place, unknown, missing_header, has_ended)
    if counts is not None and (repair := repair_of_toolkit(counts)):
        return repair
    if other := _explain_other_headers(place):
        return other
    if place == "nvrtc" and _NOT_OPENED.search(text):
        return "install the CUDA toolkit again; numba-cuda-autolink doctor shows where it is"
    return ""


def _explain_other_headers(place: str) -> str:
    """Return what to do if *place* is a header of another CUDA than NVRTC; empty if it is not."""
    from numba_cuda_autolink.installed_packages import describe_other_headers

    from ..platform.cuda_libraries import headers_version, nvrtc_version
    from .translation_unit import toolkit_include_paths

    folder = next((each for each in toolkit_include_paths() if place.startswith(f"{each}{os.sep}")), "")
    if not (folder and (headers := headers_version(folder)) and (nvrtc := nvrtc_version())):
        return ""
    what, fix = describe_other_headers(folder, headers, nvrtc)
    return f"{fix} ({what}); numba-cuda-autolink doctor checks all packages" if what else ""


def explain_missing_headers(header: str) -> str:
    """Return which package of the toolkit to install, since none of its headers, of which *header* is one, was found;
    empty if that is not so."""
    from numba_cuda_autolink.missing_parts import missing_headers

    from .translation_unit import toolkit_include_paths

    return missing_headers(header, toolkit_include_paths())


def explain_missing_namespace(name: str) -> str:
    """Return the same for a namespace that C++ does not have: one of the toolkit has it in an undamaged header."""
    from numba_cuda_autolink.installed_packages import repair_of_toolkit

    return repair_of_toolkit(_is_header) if _OF_TOOLKIT.match(f"{name}::") else ""


def _is_header(name: str) -> bool:
    return "/include/" in name


def _files_about(place: str, unknown: str, missing_header: str, has_ended: bool) -> Callable[[str], bool] | None:
    """Return which files an error can be about; ``None`` if it is about the source alone."""
    if has_ended or place == "nvrtc":
        return lambda name: "libnvrtc" in name
    if missing_header:
        return lambda name: name.endswith(f"/{missing_header}")
    if _OF_TOOLKIT.match(unknown) or _is_of_toolkit(place):
        return _is_header
    return None


def _is_of_toolkit(place: str) -> bool:
    from numba_cuda_autolink.installed_packages import package_of_file

    return os.path.isabs(place) and bool(package_of_file(place))
