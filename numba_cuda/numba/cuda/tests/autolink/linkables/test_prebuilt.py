# SPDX-License-Identifier: BSD-2-Clause
"""The choice among a package's prebuilt files for a target."""

import dataclasses
import hashlib
import json
import os

import pytest
from autolink_support import build, calling, compiled
from numba import int32
from numba.cuda import autolink
from numba.cuda.autolink.linkables.prebuilt import PrebuiltError
from numba.cuda.cudadrv.external_code.platform import cuda_libraries

SOURCE = 'extern "C" __device__ int plus_one(int x) { return x + 1; }'
CUBINS = [{"name": f"code.sm_{arch}.cubin", "kind": "cubin", "architecture": arch} for arch in (80, 90)]
LTO_IR = [{"name": f"code.sm_{arch}.ltoir", "kind": "LTO-IR", "architecture": arch} for arch in (75, 90)]
PTX = [{"name": "code.sm_75.ptx", "kind": "PTX", "architecture": 75}]
SOURCES = [{"name": "code.cu", "kind": "source"}]
EVERYTHING = CUBINS + LTO_IR + PTX + SOURCES


def prebuilt(folder, files=EVERYTHING, version=(12, 0), **options):
    (folder / "manifest.json").write_text(json.dumps({"toolkit": list(version), "files": files}))
    return autolink.Prebuilt(folder, **options)


def target(cc, lto=True, **options):
    return autolink.Target(cc, lto=lto, **options)


@pytest.mark.parametrize(
    "files, for_target, options, chosen",
    [
        (EVERYTHING, target((8, 0)), {}, "code.sm_80.cubin"),
        (EVERYTHING, target((9, 0)), {}, "code.sm_90.cubin"),
        (EVERYTHING, target((9, 0), suffix="a"), {}, "code.sm_90.cubin"),
        (EVERYTHING, target((9, 0), lto=False), {}, "code.sm_90.cubin"),
        (EVERYTHING, target((8, 6)), {}, "code.sm_75.ltoir"),
        (EVERYTHING, target((12, 0)), {}, "code.sm_90.ltoir"),
        (EVERYTHING, target((12, 0), lto=False), {}, "code.sm_75.ptx"),
        (EVERYTHING, target((7, 0)), {}, "code.cu"),
        (EVERYTHING, target((9, 0), debug=True, lto=False), {}, "code.cu"),
        (EVERYTHING, target((9, 0), lineinfo=True), {}, "code.cu"),
        (CUBINS + PTX, target((9, 0), lineinfo=True), {}, "code.sm_90.cubin"),
        (EVERYTHING, target((9, 0)), {"prefer": "LTO-IR"}, "code.sm_90.ltoir"),
        (EVERYTHING, target((8, 0)), {"prefer": "LTO-IR"}, "code.sm_75.ltoir"),
        (EVERYTHING, target((8, 0), lto=False), {"prefer": "LTO-IR"}, "code.sm_80.cubin"),
        (EVERYTHING, target((9, 0)), {"version": (99, 0)}, "code.cu"),
        (PTX, target((9, 0)), {}, "code.sm_75.ptx"),
    ],
)
def test_the_best_fit_is_chosen(files, for_target, options, chosen, tmp_path):
    assert prebuilt(tmp_path, files, **options).choose(for_target).name == chosen


class TestNoFit:
    def test_lists_the_files(self, tmp_path):
        with pytest.raises(PrebuiltError) as caught:
            prebuilt(tmp_path, CUBINS).choose(target((12, 0)))
        message = str(caught.value)
        assert "fits sm_120, linked with LTO" in message
        assert "files: cubin for sm_80, cubin for sm_90, built with CUDA 12.0" in message
        assert "what to do: " in message

    def test_names_a_linker_that_is_too_old(self, tmp_path, monkeypatch):
        monkeypatch.setattr(cuda_libraries, "nvjitlink_version", lambda: (12, 4))
        with pytest.raises(PrebuiltError, match=r"nvJitLink has version 12\.4, which links no code of a later CUDA"):
            prebuilt(tmp_path, CUBINS, version=(12, 9)).choose(target((9, 0)))

    def test_names_a_missing_compiler(self, tmp_path, monkeypatch):
        monkeypatch.setattr(cuda_libraries, "nvrtc_version", lambda: None)
        with pytest.raises(PrebuiltError, match="NVRTC, which would compile the source, was not found"):
            prebuilt(tmp_path, SOURCES).choose(target((9, 0)))


class TestTheManifest:
    def test_is_missing(self, tmp_path):
        with pytest.raises(PrebuiltError, match=r"manifest\.json not found: the device code was not built"):
            autolink.Prebuilt(tmp_path)

    @pytest.mark.parametrize(
        "text", ["", "[]", '{"toolkit": [12, 0]}', '{"toolkit": [12, 0], "files": [{"name": "a", "kind": "b"}]}']
    )
    def test_cannot_be_read(self, text, tmp_path):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(
            PrebuiltError, match=r"manifest\.json cannot be read: (.|\n)*what to do: install the package"
        ):
            autolink.Prebuilt(tmp_path)

    def test_names_a_file_that_is_missing(self, tmp_path):
        with pytest.raises(
            PrebuiltError, match=r"code\.sm_90\.cubin: No such file(.|\n)*what to do: install the package"
        ):
            prebuilt(tmp_path, [{"name": "code.sm_90.cubin", "kind": "cubin", "architecture": 90}]).code(target((9, 0)))

    def test_an_unknown_preference(self, tmp_path):
        with pytest.raises(ValueError, match="prefer: got 'ptx', expected 'cubin' or 'LTO-IR'"):
            prebuilt(tmp_path, prefer="ptx")


class PlusOne(autolink.DeviceCallable):
    def __init__(self, code):
        self.code = code

    def __numba_cuda_call__(self, x):
        return autolink.Extern("plus_one", returns=int32, args={"x": int32})

    def __numba_cuda_link__(self, x):
        return self.code.code()


@pytest.mark.parametrize("files", [CUBINS[1:], LTO_IR[1:], PTX, SOURCES], ids=["cubin", "LTO-IR", "PTX", "source"])
def test_the_chosen_file_links(files, tmp_path):
    (entry,) = files
    formats = {"cubin": "cubin", "LTO-IR": "ltoir", "PTX": "ptx"}
    arch = f"sm_{entry.get('architecture')}"
    code = SOURCE.encode() if entry["kind"] == "source" else compiled(SOURCE, formats[entry["kind"]], arch)
    (tmp_path / entry["name"]).write_bytes(code)
    version = cuda_libraries.nvrtc_version()
    function = PlusOne(prebuilt(tmp_path, files, version))

    (planned,) = build(calling(function)).inputs
    assert planned.input.kind.name == {"source": "CUDA C++ source"}.get(entry["kind"], entry["kind"])
    assert planned.input.name.endswith(f"/{tmp_path.name}/{entry['name']}"), "the name says which package it is of"


def test_outside_a_hook_the_target_must_be_given(tmp_path):
    with pytest.raises(RuntimeError, match="current_target"):
        prebuilt(tmp_path).code()
    with pytest.raises(dataclasses.FrozenInstanceError):
        prebuilt(tmp_path).choose(target((9, 0))).name = "x"


@pytest.mark.parametrize("architecture", [90, "sm_90", "9.0", "compute_90"])
def test_a_manifest_spells_an_architecture_as_any_compute_capability(architecture, tmp_path):
    files = [{"name": "code.cubin", "kind": "cubin", "architecture": architecture}]
    assert str(prebuilt(tmp_path, files).choose(target((9, 0)))) == "cubin for sm_90"


@pytest.mark.parametrize(
    ("architecture", "message"), [("90a", "has the suffix 'a', expected none"), (9.0, "float 9.0 is")]
)
def test_a_manifest_with_another_architecture_is_refused(architecture, message, tmp_path):
    with pytest.raises(autolink.PrebuiltError, match=message):
        prebuilt(tmp_path, [{"name": "code.cubin", "kind": "cubin", "architecture": architecture}])


def test_source_is_compiled_with_the_paths_and_options_of_the_manifest(tmp_path):
    package = tmp_path / "package"
    for name, text in {"include/one.h": "#define ONE 1", "code/code.cu": SOURCE.replace("1;", "ONE;")}.items():
        (package / name).parent.mkdir(parents=True)
        (package / name).write_text(f"#include <one.h>\n{text}" if name.endswith(".cu") else text)
    files = [{"name": "code.cu", "kind": "source", "include_paths": ["../include"], "options": {"std": "c++20"}}]
    (planned,) = build(calling(PlusOne(prebuilt(package / "code", files)))).inputs
    assert dict(planned.input.options.options) == {"std": "c++20"}


class TestSources:
    @staticmethod
    def of(folder, source):
        digest = hashlib.sha256(SOURCE.encode()).hexdigest()
        manifest = {"toolkit": [12, 0], "files": SOURCES, "sources": {os.path.relpath(source, folder): digest}}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        (folder / "code.cu").write_text(SOURCE)
        return autolink.Prebuilt(folder)

    def test_code_is_given_while_they_are_what_it_was_built_from(self, tmp_path):
        (tmp_path / "built").mkdir()
        source = tmp_path / "plus_one.cu"
        source.write_text(SOURCE)
        code = self.of(tmp_path / "built", source)
        assert code.code(target((9, 0))).data == SOURCE
        source.write_text(SOURCE + "// edited")
        with pytest.raises(PrebuiltError) as caught:
            code.code(target((9, 0)))
        assert str(caught.value).splitlines() == [
            "the device code is out of date: plus_one.cu has changed since it was built",
            f"  file: {source}",
            f"  built: {tmp_path / 'built'}",
            "  what to do: build and install the package again; in a checkout, pip install -e .",
        ]
        with pytest.raises(PrebuiltError, match=r"plus_one\.cu has changed"):
            autolink.Prebuilt(tmp_path / "built")
        source.unlink()
        with pytest.raises(PrebuiltError, match=r"plus_one\.cu cannot be read \(No such file or directory\)\n"):
            autolink.Prebuilt(tmp_path / "built")
