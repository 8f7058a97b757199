# SPDX-License-Identifier: BSD-2-Clause
"""The commands that install packages into the environment of this process, again or for the first time."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import sys
import sysconfig
from urllib.parse import unquote

from .package_versions import (
    NOT_INSTALLED,
    find_distributions,
    metadata_folder,
    read_metadata,
    read_record,
    read_source,
    version_of,
)

_OURS = "numba-cuda-autolink"
_CONDA = "conda install -c conda-forge"
_CONDA_PACKAGES = "numba-cuda cuda-nvrtc libnvjitlink cuda-cudart-dev cuda-cccl"  # as docs/wheels.md has them
# The packages of CUDA 13 are called so, those of CUDA 12 with the suffix -cu12.
_TOOLKIT = (
    *("nvidia-cuda-cccl", "nvidia-cuda-crt", "nvidia-cuda-nvcc", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime"),
    *("nvidia-nvfatbin", "nvidia-nvjitlink", "nvidia-nvvm"),
)


def pip(action: str) -> str:
    """Return how pip does an *action* in the environment of this process: ``pip install``, if that is the pip which the
    shell finds; or else with the path of this Python, and where it has no pip, by uv."""
    if (found := shutil.which("pip")) and _is_of_this_python(found):
        return f"pip {action}"
    python = shlex.quote(sys.executable)
    if importlib.util.find_spec("pip") is None:
        if shutil.which("uv"):
            return f"uv pip {action.removesuffix(' -y')} --python {python}"
        return f"{python} -m ensurepip && {python} -m pip {action}"
    return f"{python} -m pip {action}"


def _is_of_this_python(script: str) -> bool:
    """Whether a *script* is one of this environment, and runs its Python: in a copied one it runs that of the other."""
    if os.path.realpath(os.path.dirname(script)) != os.path.realpath(sysconfig.get_path("scripts")):
        return False
    with open(script, "rb") as file:
        return os.fsencode(os.path.join(os.path.dirname(sys.executable), "")) in file.read(1000)


def cuda_of_packages() -> str:
    """Return the major version of CUDA that this environment is for, ``"12"`` or ``"13"``; empty if it has no CUDA.

    Python's packages for CUDA 13 are found before those for CUDA 12, whatever cuda-bindings is for.
    """
    if any(version_of(name) != NOT_INSTALLED for name in _TOOLKIT):
        return "13"
    if any(version_of(f"{name}-cu12") != NOT_INSTALLED for name in _TOOLKIT):
        return "12"
    major = version_of("cuda-bindings").partition(".")[0]
    return major if major in ("12", "13") else ""


def toolkit_packages(*, of_other_cuda: bool = False) -> list[str]:
    """Return the names of the installed packages with the parts of NVIDIA's toolkit that this project uses; or those
    for CUDA 12 where others are for CUDA 13."""
    is_for_12 = (cuda_of_packages() == "12") != of_other_cuda
    names = [f"{name}-cu12" if is_for_12 else name for name in _TOOLKIT]
    return [name for name in names if version_of(name) != NOT_INSTALLED]


def install_command() -> str:
    """Return the command that installs what this project requires, all in versions that fit each other."""
    major = cuda_of_packages()
    if _is_of_conda("numba-cuda"):
        return f"{_CONDA} cuda-version={major or 13} {_CONDA_PACKAGES}"
    if major:
        return f"{pip('install')} '{_OURS}[cu{major}]'"
    return f"{pip('install')} '{_OURS}[cu13]'  # or [cu12], for a driver of CUDA 12"


def command_for_cuda(major: int) -> str:
    """Return the command that installs what this project requires for that *major* version of CUDA, and before it, if
    that is 12, removes the libraries for CUDA 13, which would be found first."""
    if _is_of_conda("numba-cuda"):
        return f"{_CONDA} cuda-version={major} {_CONDA_PACKAGES}"
    newer = [name for name in _TOOLKIT if version_of(name) != NOT_INSTALLED] if major == 12 else []
    removal = f"{pip('uninstall -y')} {' '.join(newer)} && " if newer else ""
    return f"{removal}{pip('install')} '{_OURS}[cu{major}]'"


def reinstall_command(*packages: str) -> str:
    """Return the commands that install *packages* again, in their versions, from where they were installed, and into
    the folders in which they are."""
    by_how: dict[str, list[str]] = {}
    for package in packages:
        by_how.setdefault(_how_again(package), []).append(package)
    return " && ".join(f"{how} {' '.join(map(_installed_as, each))}" for how, each in by_how.items())


def _how_again(package: str) -> str:
    if _is_of_conda(package):
        return f"{_CONDA} --force-reinstall --no-deps"
    if folder := folder_of_pythonpath(package):
        return f"{pip('install')} --target {shlex.quote(folder)} --upgrade --no-deps"
    # pip removes a package by its RECORD.
    return f"{pip('install')} {'--force-reinstall' if has_record(package) else '--ignore-installed'} --no-deps"


def folder_of_pythonpath(package: str) -> str:
    """Return the folder of ``PYTHONPATH`` in which *package* is found, where pip looks for none; empty if it is found
    elsewhere."""
    try:
        folder = os.path.dirname(metadata_folder(find_distributions(package)[0]))
    except importlib.metadata.PackageNotFoundError:
        return ""
    known = {os.path.realpath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each}
    own = {os.path.realpath(sysconfig.get_path(each)) for each in ("purelib", "platlib")}
    return folder if os.path.realpath(folder) in known - own else ""


def hidden_copy(package: str) -> importlib.metadata.Distribution | None:
    """Return the copy of *package* that pip installed here, and that one in a folder of ``PYTHONPATH`` hides; ``None``
    if none does."""
    if not folder_of_pythonpath(package):
        return None
    own = {os.path.realpath(sysconfig.get_path(each)) for each in ("purelib", "platlib")}
    copies = importlib.metadata.distributions(name=package)
    return next((each for each in copies if os.path.realpath(os.path.dirname(metadata_folder(each))) in own), None)


def _installed_as(package: str) -> str:
    """Return the argument of pip for an installed *package*: of one that came from a folder or an address, that one."""
    if _is_of_conda(package):
        return f"{package}={version_of(package)}"
    released = repr(f"{package}=={version}" if (version := version_of(package)) != NOT_INSTALLED else package)
    try:
        source = read_source(find_distributions(package)[0])
    except importlib.metadata.PackageNotFoundError:
        return released
    url, vcs, folder = (source.get(each) for each in ("url", "vcs_info", "dir_info"))
    if not isinstance(url, str):
        return released
    if isinstance(vcs, dict) and {"vcs", "commit_id"} <= vcs.keys():
        return repr(f"{package} @ {vcs['vcs']}+{url}@{vcs['commit_id']}")
    if not url.startswith("file://"):
        return repr(url) if url else released
    path = unquote(url.removeprefix("file://"))
    if isinstance(folder, dict) and folder.get("editable"):
        return f"-e {path!r}"
    return repr(path) if os.path.exists(path) else released


def install_version(requirement: str) -> str:
    """Return the command that installs a package in a version that meets a *requirement*, such as ``"numpy<2.5"``."""
    package = re.split(r"[^\w.-]", requirement)[0]
    return f"{_CONDA if _is_of_conda(package) else pip('install')} {requirement!r}"


def _is_of_conda(package: str) -> bool:
    return installer_of(package) == "conda" and os.path.isdir(os.path.join(sys.prefix, "conda-meta"))


def has_record(package: str) -> bool:
    """Whether pip knows the files of *package*; also if pip did not install it, or it is not installed."""
    if installer_of(package) != "pip":
        return True
    try:
        return bool(read_record(find_distributions(package)[0]))
    except ValueError:
        return False


def installer_of(package: str) -> str:
    """Return what installed *package*, such as pip or conda; empty if that is unknown."""
    try:
        return read_metadata(find_distributions(package)[0], "INSTALLER").strip()
    except importlib.metadata.PackageNotFoundError:
        return ""
