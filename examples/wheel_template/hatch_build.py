# SPDX-License-Identifier: BSD-2-Clause
"""Builds the package's .cu files for the wheel, ahead of time, with NVRTC. No GPU is needed."""

import ctypes
import json
import sys
import tempfile
from pathlib import Path

from cuda.bindings import nvrtc
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DeviceCode(BuildHookInterface):
    """Puts a folder ``device_code`` into the package: the sources, what was built of them, and ``manifest.json``."""

    def initialize(self, version, build_data):
        package = self.metadata.core.name.replace("-", "_").replace(".", "_")
        sources = sorted(Path(self.root, "src", package).glob("*.cu"))
        if not sources:
            raise RuntimeError(f"there is no .cu file in src/{package}")
        self.include_paths = [Path(self.root, "src", package), *build_requirement("include")]
        for library in build_requirement("lib/libnvrtc.so.12", "bin/nvrtc64_120_0.dll"):
            ctypes.CDLL(str(library))  # an environment around this one may have another, which would be found first
        self.folder = Path(tempfile.mkdtemp(prefix="device_code_"))
        code = "\n".join(f'#line 1 "{source.name}"\n{source.read_text()}' for source in sources)
        first, *_ = architectures = sorted(self.config["architectures"])
        files = [{"name": "code.cu", "kind": "source"}]
        (self.folder / "code.cu").write_text(code)
        for architecture in architectures:
            files.append(self.built(code, "cubin", architecture))
        files += [self.built(code, "LTO-IR", first), self.built(code, "PTX", first)]
        toolkit = list(checked(nvrtc.nvrtcVersion()))
        (self.folder / "manifest.json").write_text(json.dumps({"toolkit": toolkit, "files": files}, indent=1))
        include = build_data["force_include_editable" if version == "editable" else "force_include"]
        include[str(self.folder)] = f"{package}/device_code"

    def built(self, code, kind, architecture):
        """Build *code* into the folder; the file's entry in the manifest."""
        suffix, arch, option, get = {
            "cubin": ("cubin", "sm", [], "CUBIN"),
            "LTO-IR": ("ltoir", "compute", ["-dlto"], "LTOIR"),
            "PTX": ("ptx", "compute", [], "PTX"),
        }[kind]
        name = f"code.sm_{architecture}.{suffix}"
        program = checked(nvrtc.nvrtcCreateProgram(code.encode(), b"code.cu", 0, [], []))
        options = [f"-arch={arch}_{architecture}", "-rdc=true", "-std=c++17", *option]
        options += [f"-I{folder}" for folder in self.include_paths]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [each.encode() for each in options])
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(program))
            checked(nvrtc.nvrtcGetProgramLog(program, log))
            raise RuntimeError(f"{name} cannot be built:\n{log.decode()}")
        data = b" " * checked(getattr(nvrtc, f"nvrtcGet{get}Size")(program))
        checked(getattr(nvrtc, f"nvrtcGet{get}")(program, data))
        (self.folder / name).write_bytes(data.rstrip(b"\0") if kind == "PTX" else data)
        return {"name": name, "kind": kind, "architecture": architecture}


def build_requirement(*names):
    """Where the CUDA packages that the build requires have their files of these names."""
    return [path for folder in sys.path for name in names for path in Path(folder).glob(f"nvidia/*/{name}")]


def checked(answer):
    """What an NVRTC function returned; an exception if it failed."""
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {status.name}")
    return values[0] if len(values) == 1 else tuple(values)
