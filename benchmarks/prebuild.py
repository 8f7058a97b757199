# SPDX-License-Identifier: BSD-2-Clause
"""Measure how sets of kernels are built: by one process, by several, by Dask, Ray and MPI, and with a shared cache.

    python benchmarks/prebuild.py                       all parts
    python benchmarks/prebuild.py serial processes      these parts; --help lists them
    python benchmarks/prebuild.py --objects=2 --types=1 a smaller set

The set has 200 kernels: 10 objects, half of which use CUB, 4 types, 5 architectures. Each object has one program for
each type and architecture. ``serial`` builds them one by one, ``processes`` by two processes, ``dask``, ``ray`` and
``mpi`` by ``--workers`` of these engines, where they are installed (``pip install "numba-cuda-autolink[engines]"``);
each begins with an empty cache. The code of all must be the same bytes, and each program compiled once. In ``s3`` two
machines share a cache on a server of S3's protocol: the second, with other folders and an empty cache of its own, must
find everything. In ``forged`` a shared cache has 10,000 entries that are forged, truncated, swapped or another site's,
none of which may be used. The exit code is 1 if one of these fails. No GPU is needed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import importlib.util
import json
import logging
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numba import types
from numba.cuda import autolink
from numba.cuda.autolink.many_kernels.pickling import pickle_jobs
from numba.cuda.autolink.many_kernels.stages import run_all
from numba.cuda.cudadrv.external_code.cache.entry import CacheKey, pack
from numba.cuda.cudadrv.external_code.cache.remote_store import sign
from numba.cuda.cudadrv.external_code.cache.settings import CacheSettings, CacheWarning, RemoteSettings
from numba.cuda.cudadrv.external_code.cache.store import CacheStore, current_store

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
    """Build the set with one engine, and leave what came of it as JSON."""
    many = jobs(options)
    store = current_store()
    with executor(options.engine, options.workers) as used:
        start = time.perf_counter()
        if options.engine == "serial":
            linked = [autolink.build(job.kernel, job.signature, cc=job.cc) for job in many]
            counts = store.statistics.counts
            built, unwritten = {kind: counts[kind, "built"] for kind in ("program", "link")}, autolink.cache.flush()
        else:
            linked, built, unwritten = run_all(pickle_jobs(many), used)
        seconds = time.perf_counter() - start
    errors = [str(each) for each in linked if isinstance(each, BaseException)]
    if errors:
        raise SystemExit("\n".join(errors[:3]))
    found: collections.Counter[str] = collections.Counter()
    for (kind, level), count in store.statistics.counts.items():
        if kind in ("program", "link"):
            found[level] += count
    remote = dict(store.remote.counts) if store.remote is not None else {}
    digest = hashlib.sha256(b"".join(hashlib.sha256(each.code).digest() for each in linked)).hexdigest()
    result = {"seconds": seconds, "built": built, "found": found, "remote": remote, "unwritten": unwritten}
    Path(options.out).write_text(json.dumps({**result, "code": digest}))


def cpu_seconds() -> tuple[float, float]:
    """Return the CPU time of the child processes, and of this process, in which the server of `s3` runs."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
    children, own = (each.ru_utime + each.ru_stime for each in used)
    return children, own


class Benchmark:
    """The parts, which share the folder for all caches, and what was found out so far."""

    def __init__(self, folder: Path, options: argparse.Namespace):
        self.folder, self.options = folder, options
        self.kernels = options.objects * options.types * options.architectures
        self.serial_seconds: float | None = None
        self.code = ""  # the digest of the code, as the first part built it
        self.failed: list[str] = []

    def run(self, engine: str, machine: str, workers: int, **environment: str) -> dict[str, Any]:
        """Build the set in a process of its own; return what it left. Each *machine* has its own folders."""
        out = self.folder / "out.json"
        sizes = [f"--{name}={getattr(self.options, name)}" for name in ("objects", "types", "architectures")]
        folder = f"--folder={self.folder / machine / 'include'}"
        arguments = [__file__, f"--engine={engine}", f"--out={out}", folder, f"--workers={workers}", *sizes]
        command = [sys.executable, *arguments]
        if engine == "mpi":
            mpiexec = str(Path(sys.executable).with_name("mpiexec"))
            command = [mpiexec, "-n", str(workers + 1), sys.executable, "-m", "mpi4py.futures", *arguments]
        own = {
            "NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(self.folder / machine / "cache"),
            "NUMBA_CUDA_AUTOLINK_JOBS": str(workers),
        }
        start, before = time.perf_counter(), cpu_seconds()
        subprocess.run(command, check=True, env={**os.environ, **own, **environment})
        found: dict[str, Any] = json.loads(out.read_text())
        found["process"], after = time.perf_counter() - start, cpu_seconds()
        found["cpu"], found["server"] = (later - earlier for later, earlier in zip(after, before, strict=True))
        self.code = self.code or found["code"]
        return found

    def check(self, what: str, holds: bool) -> str:
        """Return *what*, in capitals if it does not hold, and remember that."""
        if not holds:
            self.failed.append(what)
        return what if holds else f"NOT {what.upper()}"

    def engine(self, name: str) -> None:
        """Build the set with an engine, and print a line."""
        if (module := ENGINES[name]) and importlib.util.find_spec(module) is None:
            print(f"{name:10}  {module} is not installed")
            return
        workers = {"serial": 1, "processes": 2}.get(name, self.options.workers)
        found = self.run(name, name, workers)
        if name == "serial":
            self.serial_seconds = found["seconds"]
        ratio = f"{self.serial_seconds / found['seconds']:9.2f}x" if self.serial_seconds else f"{'-':>10}"
        programs = found["built"].get("program", 0)
        times = f"{found['seconds']:9.1f}{found['cpu']:9.1f}{ratio}"
        same = self.check("the same bytes", found["code"] == self.code)
        once = self.check("each once", programs == self.kernels)
        print(f"{name:10}{workers:8}{times}{programs:10}  {once}, {same}", flush=True)
        shutil.rmtree(self.folder / name)

    def s3(self) -> None:
        """Share a cache between two machines, on a server of S3's protocol, and print a table."""
        if missing := [name for name in ("moto", "s3fs") if importlib.util.find_spec(name) is None]:
            print(f"{'s3':10}  {' and '.join(missing)} are not installed")
            return
        with s3_server() as shared:
            first = self.run("processes", "first", self.options.workers, **shared)
            # In turns, so that what else the machine does meanwhile counts for both.
            runs: list[tuple[dict[str, Any], dict[str, Any]]] = []
            for number in range(self.options.repeats):
                machine = f"second{number}"
                runs.append((self.run("serial", machine, 1, **shared), self.run("serial", machine, 1)))
        second, local = (min(each, key=lambda run: run["seconds"]) for each in zip(*runs, strict=True))
        print(f"\n{'shared cache':16}{'seconds':>9}{'process':>9}{'CPU':>9}{'server':>9}  found and built")
        for name, found in ("first", first), ("second", second), ("second, warm", local):
            same = self.check("the same bytes", found["code"] == self.code)
            times = "".join(f"{found[each]:9.1f}" for each in ("seconds", "process", "cpu", "server"))
            print(f"{name:16}{times}  {found['built']} {found['found']}, {same}")
        built = sum(found["built"].get(kind, 0) for found, _ in runs for kind in ("program", "link"))
        ratios = ", ".join(
            f"{second[each] / local[each]:.2f}x {what}"
            for each, what in (("seconds", "the time"), ("process", "that of its process"), ("cpu", "the CPU time"))
        )
        print(
            f"{self.check('all found by the second', built == 0)}, {first['unwritten']} entries not written;"
            f" the second needs {ratios} of a warm build (goal: 1.15x)\n  questions of the second: {second['remote']}",
            flush=True,
        )

    def forged(self) -> None:
        """Ask a shared cache that an attacker can write to, and print how many of the entries were used."""
        used, kept = ask_forged(self.folder / "forged", self.options.entries)
        none = self.check("none of them used", used == 0)
        all_kept = self.check("all good ones used", kept == self.options.entries // 10)
        print(f"\n{self.options.entries} forged, truncated, swapped and foreign entries: {none}; {all_kept}")


@contextlib.contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Run a server of S3's protocol; give the settings of a cache on it."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
        os.environ.update(credentials, AWS_ENDPOINT_URL=f"http://{host}:{port}")
        import s3fs

        s3fs.S3FileSystem().mkdir("bucket")
        yield {
            "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE": "s3://bucket/cache",
            "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY": KEY,
            "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_MODE": "rw",
        }
    finally:
        server.stop()


def ask_forged(folder: Path, number: int) -> tuple[int, int]:
    """Fill a shared cache with so many entries that are not the site's own, and a tenth as many that are; ask for all.
    Return how many of either were used."""
    draw = random.Random(1)
    ours, foreign = (KEY.encode(),), (b"the key of another site",)
    settings = RemoteSettings(f"file://{folder}/shared", ours, wait=60.0)
    store = CacheStore(CacheSettings(str(folder / "cache"), remote=settings))
    used = kept = 0
    warnings.simplefilter("ignore", CacheWarning)  # it tells once that entries are not used
    for each in range(number + number // 10):
        key, other = (CacheKey("program", f"{name}{each}.cu", (("source", f"{name}{each}"),)) for name in "fg")
        entry = pack(key, draw.randbytes(draw.randint(1, 2000)))
        blob = sign(ours, key.digest, entry)
        position = draw.randrange(len(blob))
        flipped = bytes([blob[position] ^ 1 << draw.randrange(8)])
        kinds = {
            "truncated": blob[:position],
            "one bit changed": blob[:position] + flipped + blob[position + 1 :],
            "longer": blob + b"\0",
            "without a signature": entry,
            "an empty signature": bytes(32) + entry,
            "another site's": sign(foreign, key.digest, entry),
            "another entry, signed for its own key": sign(ours, other.digest, pack(other, b"code")),
            "another entry, signed for this key": sign(ours, key.digest, pack(other, b"code")),
            "this entry, signed for another key": sign(ours, other.digest, entry),
            "random": draw.randbytes(len(blob)),
        }
        is_good = each >= number
        content = blob if is_good else list(kinds.values())[each % len(kinds)]
        path = folder / "shared" / key.digest.hex()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        is_used = store.get(key) is not None
        used += is_used and not is_good
        kept += is_used and is_good
    return used, kept


PARTS = (*ENGINES, "s3", "forged")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to run: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--objects", type=int, default=10)
    parser.add_argument("--types", type=int, default=len(TYPES))
    parser.add_argument("--architectures", type=int, default=len(ARCHITECTURES))
    parser.add_argument("--entries", type=int, default=10_000, help="forged ones")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="of Dask, Ray and MPI")
    parser.add_argument("--repeats", type=int, default=2, help="of the second machine of s3")
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        build(options)
        return
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown parts {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    chosen = [part for part in PARTS if part in (options.parts or PARTS)]
    with tempfile.TemporaryDirectory() as folder:
        benchmark = Benchmark(Path(folder), options)
        if any(part in ENGINES for part in chosen):
            print(f"{benchmark.kernels} kernels, each with a program of its own")
            print(f"{'engine':10}{'workers':>8}{'seconds':>9}{'CPU':>9}{'to serial':>10}{'programs':>10}")
        for part in chosen:
            if part in ENGINES:
                benchmark.engine(part)
            else:
                getattr(benchmark, part)()
    print(f"failed: {', '.join(benchmark.failed)}" if benchmark.failed else "all as it must be")
    sys.exit(bool(benchmark.failed))


if __name__ == "__main__":
    main()
