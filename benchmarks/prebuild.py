# SPDX-License-Identifier: BSD-2-Clause
"""Measure how sets of kernels are built: by one process, by several, by Dask, Ray and MPI, and with a shared cache.

``python benchmarks/prebuild.py`` builds 200 kernels (10 objects, half of which use CUB, 4 types, 5 architectures) with
each engine that is installed (``pip install "numba-cuda-autolink[engines]"``), each time with an empty cache, and
compares the code. Each object has one program for each type and architecture. Then two machines share a cache on a
server of S3's protocol: the second has other folders and an empty cache of its own. No GPU is needed.

``--objects``, ``--types`` and ``--architectures`` make the set smaller.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numba import types
from numba.cuda import autolink
from numba.cuda.autolink.many_kernels.building import run_all
from numba.cuda.autolink.many_kernels.pickling import pickled_jobs
from numba.cuda.cudadrv.external_code.cache.store import current_store

TYPES = (types.float32, types.float64, types.int32, types.int64)
ARCHITECTURES = ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0))
ENGINES = {"serial": "", "processes": "", "dask": "distributed", "ray": "ray", "mpi": "mpi4py"}
KEY = "the key of this benchmark"


class BlockSum(autolink.DeviceCallable):
    """The sum of a block's values; with CUB, or by one thread."""

    def __init__(self, number: int, folder: str):
        self.number, self.folder = number, folder

    def __numba_cuda_call__(self, x: Any) -> autolink.Extern:
        return autolink.Extern(f"block_sum_{self.number}_{x}", returns=x)

    def __numba_cuda_link__(self, x: Any) -> autolink.CUDASource:
        value, name, threads = autolink.cxx_type(x), f"block_sum_{self.number}_{x}", 32 * (self.number + 1)
        if self.number % 2:
            code = f"""
                #include <cub/block/block_reduce.cuh>
                #include "scale.h"
                extern "C" __device__ {value} {name}({value} x) {{
                    using Reduce = cub::BlockReduce<{value}, {threads}>;
                    __shared__ typename Reduce::TempStorage storage;
                    return SCALE * Reduce(storage).Sum(x);
                }}"""
        else:
            code = f"""
                #include "scale.h"
                extern "C" __device__ {value} {name}({value} x) {{
                    __shared__ {value} sum;
                    if (threadIdx.x == 0) sum = 0;
                    __syncthreads();
                    for (int i = 0; i < {threads}; ++i) {{
                        if (threadIdx.x == i) sum += SCALE * x;
                        __syncthreads();
                    }}
                    return sum;
                }}"""
        return autolink.CUDASource(code, name=f"{name}.cu", include_paths=[self.folder])


def summing(block_sum: BlockSum) -> Any:
    """Return a kernel that calls *block_sum*."""

    def kernel(x: Any) -> None:
        x[0] = block_sum(x[0])

    return kernel


def jobs(options: argparse.Namespace) -> list[autolink.Job]:
    """Return the set of kernels."""
    Path(options.folder).mkdir(parents=True, exist_ok=True)
    Path(options.folder, "scale.h").write_text("#pragma once\n#define SCALE 2\n")
    kernels = [summing(BlockSum(number, options.folder)) for number in range(options.objects)]
    return [
        autolink.Job(kernel, (dtype[::1],), cc)
        for cc in ARCHITECTURES[: options.architectures]
        for dtype in TYPES[: options.types]
        for kernel in kernels
    ]


@contextlib.contextmanager
def executor(engine: str, workers: int) -> Iterator[Any]:
    """Give the executor of an engine with so many workers."""
    if engine == "dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield client.get_executor()
    elif engine == "ray":
        import ray

        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        try:
            yield autolink.RayExecutor(num_cpus=1)
        finally:
            ray.shutdown()
    elif engine == "mpi":
        from mpi4py.futures import MPIPoolExecutor

        with MPIPoolExecutor() as pool:
            yield pool
    else:
        yield None


def build(options: argparse.Namespace) -> None:
    """Build the set with one engine, and print what came of it as JSON."""
    many = jobs(options)
    store = current_store()
    with executor(options.engine, options.workers) as used:
        start = time.perf_counter()
        if options.engine == "serial":
            linked = [autolink.build(job.kernel, job.signature, cc=job.cc) for job in many]
            counts = store.statistics.counts
            built = {kind: counts[kind, "built"] for kind in ("program", "link")}
        else:
            linked, built = run_all(pickled_jobs(many), used)
        seconds = time.perf_counter() - start
    errors = [str(each) for each in linked if isinstance(each, BaseException)]
    if errors:
        raise SystemExit("\n".join(errors[:3]))
    unwritten = autolink.cache.flush()
    found: collections.Counter[str] = collections.Counter()
    for (kind, level), count in store.statistics.counts.items():
        if kind in ("program", "link"):
            found[level] += count
    remote = vars(store.remote.counts) if store.remote is not None else {}
    codes = [each.code.hex() for each in linked]
    result = {"seconds": seconds, "built": built, "found": found, "remote": remote, "unwritten": unwritten}
    Path(options.out).write_text(json.dumps({**result, "codes": codes}))


def run(folder: Path, options: argparse.Namespace, engine: str, machine: str, **environment: str) -> dict[str, Any]:
    """Build the set in a process of its own; return what it printed. Each *machine* has its own folders."""
    out = folder / "out.json"
    sizes = [f"--{name}={getattr(options, name)}" for name in ("objects", "types", "architectures", "workers")]
    arguments = [__file__, f"--engine={engine}", f"--out={out}", f"--folder={folder / machine / 'include'}", *sizes]
    command = [sys.executable, *arguments]
    if engine == "mpi":
        mpiexec = str(Path(sys.executable).with_name("mpiexec"))
        command = [mpiexec, "-n", str(options.workers + 1), sys.executable, "-m", "mpi4py.futures", *arguments]
    own = {
        "NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(folder / machine / "cache"),
        "NUMBA_CUDA_AUTOLINK_JOBS": str(options.workers),
    }
    subprocess.run(command, check=True, env={**os.environ, **own, **environment})
    result: dict[str, Any] = json.loads(out.read_text())
    return result


def engines(folder: Path, options: argparse.Namespace) -> None:
    """Compare the engines."""
    number = len(jobs(options))
    print(f"{number} kernels, {number} distinct programs, {options.workers} workers")
    print(f"{'engine':12}{'seconds':>9}{'to serial':>11}{'programs':>10}  code")
    serial: dict[str, Any] = {}
    for engine, module in ENGINES.items():
        if module and importlib.util.find_spec(module) is None:
            print(f"{engine:12}  {module} is not installed")
            continue
        found = run(folder, options, engine, engine)
        serial = serial or found
        same = "the same bytes" if found["codes"] == serial["codes"] else "DIFFERENT BYTES"
        ratio = serial["seconds"] / found["seconds"]
        print(f"{engine:12}{found['seconds']:9.1f}{ratio:10.2f}x{found['built'].get('program', 0):10}  {same}")
        shutil.rmtree(folder / engine)


def shared_cache(folder: Path, options: argparse.Namespace) -> None:
    """Share a cache between two machines, on a server of S3's protocol."""
    if any(importlib.util.find_spec(name) is None for name in ("moto", "s3fs")):
        print("shared cache: moto or s3fs is not installed")
        return
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ.update(credentials, AWS_ENDPOINT_URL=f"http://{host}:{port}")
    import s3fs

    s3fs.S3FileSystem().mkdir("bucket")
    shared = {
        "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE": "s3://bucket/cache",
        "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": KEY,
        "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_MODE": "rw",
    }
    first = run(folder, options, "serial", "first", **shared)
    second = run(folder, options, "serial", "second", **shared)
    local = run(folder, options, "serial", "second")
    print("two machines that share a cache through S3")
    for name, found in ("first", first), ("second", second), ("second, local", local):
        same = "the same bytes" if found["codes"] == first["codes"] else "DIFFERENT BYTES"
        print(f"{name:14}{found['seconds']:9.1f} s  {found['found']}  {same}, {found['unwritten']} not written")
    print(f"second to a warm local build: {second['seconds'] / local['seconds']:.2f}x; {second['remote']}")
    server.stop()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--objects", type=int, default=10)
    parser.add_argument("--types", type=int, default=len(TYPES))
    parser.add_argument("--architectures", type=int, default=len(ARCHITECTURES))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        build(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        options.folder = str(Path(folder) / "include")
        engines(Path(folder), options)
        shared_cache(Path(folder), options)


if __name__ == "__main__":
    main()
