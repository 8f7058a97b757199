# SPDX-License-Identifier: BSD-2-Clause
"""What docs/many_kernels.md shows of clusters, CI and containers runs as it stands there, but for names of machines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from repository import PROJECT

PAGE = (PROJECT / "docs" / "many_kernels.md").read_text()
BIN = Path(sys.executable).parent

pytestmark = pytest.mark.thorough


def block(name):
    """The block that the page marks as the file *name*."""
    return re.search(rf"<!-- test: file {re.escape(name)} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)[1]


def jobs():
    """The first block of the page, without the call at its end."""
    first = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    before, call, _ = first.partition("kernels = autolink.build_many(jobs)\n")
    assert call
    return before


def in_place_of(text, old, new):
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.fixture
def run(tmp_path):
    """Runs a command in a folder of its own, with a cache of its own; returns what it prints."""

    def ran(command, **environment):
        own = {
            "NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(tmp_path / "cache"),
            "NUMBA_CUDA_AUTOLINK_JOBS": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        env = {**os.environ, **own, **environment}
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    ran.folder = tmp_path
    return ran


COUNT = "print(len(kernels), 'kernels are built')\n"
BUILT = "16 kernels are built"


def test_dask(run):
    pytest.importorskip("distributed", reason="needs distributed")
    cluster = "from distributed import LocalCluster\ncluster = LocalCluster(1, processes=False, protocol='tcp')\n"
    client = in_place_of(block("dask_cluster.py"), '"tcp://scheduler:8786"', "cluster.scheduler_address")
    (run.folder / "script.py").write_text(jobs() + cluster + client + COUNT)
    assert BUILT in run(f"{sys.executable} script.py", DASK_DISTRIBUTED__WORKER__DAEMON="False")


def test_ray(run):
    pytest.importorskip("ray", reason="needs ray")
    local = "num_cpus=1, include_dashboard=False, log_to_driver=False"
    script = in_place_of(block("ray_cluster.py"), 'address="auto"', local)
    (run.folder / "script.py").write_text(jobs() + script + COUNT)
    assert BUILT in run(f"{sys.executable} script.py")


@pytest.fixture
def mpi():
    """What replaces Slurm's command."""
    pytest.importorskip("mpi4py", reason="needs mpi4py")
    if not (BIN / "mpiexec").exists():
        pytest.skip("there is no mpiexec next to this Python (pip install mpich)")
    return f"{BIN / 'mpiexec'} -n 3"


def slurm(mpi, ending):
    """The page's command for Slurm that ends like this, for this machine."""
    (command,) = re.findall(rf"^srun .*{re.escape(ending)}$", PAGE, re.MULTILINE)
    return re.sub(r"^srun( --[\w-]+=\d+)+", mpi, command)


def test_slurm_with_mpi(run, mpi):
    (run.folder / "prebuild.py").write_text(jobs() + block("prebuild.py") + f"    {COUNT}")
    assert BUILT in run(slurm(mpi, "prebuild.py"))


def test_prebuild_with_mpi(run, mpi):
    (run.folder / "application.py").write_text(block("application.py"))
    run("numba-cuda-autolink capture -o jobs.json -- python application.py")
    assert "2 of 2 kernels" in run(slurm(mpi, "--executor mpi"))


def test_the_workflow_builds_into_the_shared_cache_which_another_machine_finds(run, tmp_path):
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    (tmp_path / "application.py").write_text(block("application.py"))
    run("numba-cuda-autolink capture -o jobs.json -- python application.py")
    job = yaml.safe_load(block("workflow.yml"))["jobs"]["kernels"]
    environment = {
        "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE": f"file://{tmp_path}/shared",
        "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": "the key of this site",
        "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_MODE": "rw",
    }
    assert set(environment) <= set(job["env"]), "these are set"
    steps = [step["run"] for step in job["steps"] if step.get("run", "").startswith("numba-cuda-autolink ")]
    assert len(steps) == 2
    for machine, built in ("first", ", 6 programs and 6 links built in "), ("second", " were in the cache"):
        # So much patience that the answers of this machine's busy disk count as answers in time.
        own = {
            "NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(tmp_path / machine),
            "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_WAIT": "9999",
        }
        prebuilt, info = [run(step, **environment, **own) for step in steps]
        assert f"6 of 6 kernels{built}" in prebuilt
    assert re.search(r"^ *link: 100% of 6 found \(remote 6\)", info, re.MULTILINE), info


def test_the_container_has_what_its_image_was_made_with(run, tmp_path):
    (tmp_path / "application.py").write_text(block("application.py"))
    run("numba-cuda-autolink capture -o jobs.json -- python application.py")
    lines = block("Dockerfile").replace("/opt/kernels", str(tmp_path / "image")).splitlines()
    (build,) = [line.removeprefix("RUN ") for line in lines if line.startswith("RUN ")]
    (variable,) = [line.removeprefix("ENV ") for line in lines if line.startswith("ENV ")]
    run(build)
    own = {"NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(tmp_path / "of the container")}
    printed = run(f"{variable} python application.py && {variable} numba-cuda-autolink cache info", **own)
    assert re.search(r"^ *link: 100% of 2 found \(image 2\)", printed, re.MULTILINE), printed
