# SPDX-License-Identifier: BSD-2-Clause
"""The search of the documentation: words of the index are answered on their pages, and users' words are in it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from repository import DOCS

PAGES = sorted(DOCS.glob("*.md"))
SEARCH = Path(__file__).with_name("search.js")
INDEX = re.compile(r"^```\{index\} (.*)$", re.MULTILINE)
AMERICAN = {"licence": "license"}
# What users type, and the page that answers.
TYPED = {
    "#pragma unroll": "cuda_words",
    "--against": "command_line",
    "-O3": "cxx_by_name",
    "-Xptxas": "cxx_by_name",
    "__align__": "cuda_words",
    "__CUDA_ARCH__": "cuda_words",
    "__forceinline__": "cuda_words",
    "__launch_bounds__": "cuda_words",
    "__restrict__": "cxx_by_name",
    "__syncwarp": "cuda_words",
    "AArch64": "index",
    "ambiguous": "cxx_by_name",
    "AMD": "index",
    "atomicCAS": "cuda_words",
    "autotune": "how_to_slow",
    "bank conflict": "how_to_slow",
    "benchmark kernel": "how_to_slow",
    "C++11": "cxx_by_name",
    "C++17": "cxx_by_name",
    "cffi": "faq",
    "CMake": "how_to_ci",
    "colab": "faq",
    "compare builds": "how_to_read_a_report",
    "conda": "wheels",
    "cub": "how_to_cub",
    "cudaDeviceSynchronize": "cuda_words",
    "cudaEventElapsedTime": "how_to_slow",
    "cudaFuncSetAttribute": "cuda_words",
    "cudaMalloc": "cuda_words",
    "cudaMallocManaged": "cuda_words",
    "cudaMemcpy": "cuda_words",
    "cudaMemcpyToSymbol": "cuda_words",
    "cudaStream_t": "cuda_words",
    "cuDNN": "faq",
    "CuTe": "cuda_words",
    "dim3": "cuda_words",
    "Eigen": "how_to_host_headers",
    "elapsed time": "how_to_slow",
    "ElementwiseKernel": "cuda_words",
    "fp8": "cxx_by_name",
    "grid_group": "cuda_words",
    "gufunc": "faq",
    "half2": "cxx_by_name",
    "header only": "how_to_header_only",
    "ImportError": "how_to",
    "include path": "how_to_header_only",
    "inspect_asm": "cuda_words",
    "install": "index",
    "int128": "cxx_by_name",
    "IPC": "cuda_words",
    "JAX": "faq",
    "Jetson": "index",
    "jitclass": "cuda_words",
    "kernel argument object": "tutorial_kernel_authors",
    "launch cuda c++ kernel": "cuda_words",
    "ldg": "cxx_by_name",
    "libnvrtc": "faq",
    "limitations": "faq",
    "link=": "porting",
    "macOS": "index",
    "make_float4": "cuda_words",
    "mathdx": "cuda_words",
    "matmul": "faq",
    "matrix inverse": "how_to_host_headers",
    "mbarrier": "cxx_by_name",
    "memory leak": "cuda_words",
    "name clash": "wheels",
    "no kernel image": "debugging",
    "nvprof": "cuda_words",
    "out of memory": "debugging",
    "pass object to kernel": "tutorial_kernel_authors",
    "pinned memory": "cuda_words",
    "print from kernel": "debugging",
    "quickstart": "index",
    "race condition": "emulator",
    "racecheck": "debugging",
    "random numbers": "how_to_random",
    "RawKernel": "cuda_words",
    "read a report": "how_to_read_a_report",
    "register count": "how_to_slow",
    "report": "how_to_read_a_report",
    "save kernel": "finished_kernels",
    "scikit-build": "how_to_ci",
    "SFINAE": "cxx_by_name",
    "shared memory": "tutorial_kernel_authors",
    "SIMD": "cxx_by_name",
    "size_t": "cuda_words",
    "slow": "how_to_slow",
    "sm_120": "ahead_of_time",
    "sort array in kernel": "how_to_cub",
    "stack size": "how_to_slow",
    "static_assert": "errors",
    "std::size_t": "cuda_words",
    "std::vector": "how_to_host_headers",
    "template": "cxx_by_name",
    "tex2D": "cuda_words",
    "thread-safe": "faq",
    "threadfence": "cxx_by_name",
    "threadIdx": "cuda_words",
    "time a kernel": "how_to_slow",
    "timer": "cxx_by_name",
    "timing": "how_to_slow",
    "too many resources": "debugging",
    "virtual function": "cxx_by_name",
    "Volta": "index",
    "VS Code": "faq",
    "warp reduction": "cxx_by_name",
    "warpsize": "cxx_by_name",
    "wheel": "wheels",
    "WSL": "index",
    "xoroshiro": "cuda_words",
}


def entries_of(page):
    """Yield the entries of the index on a page, in small letters."""
    for line in INDEX.findall(page.read_text()):
        yield from (entry.strip(" !").lower() for entry in line.split(","))


def searched(site, queries):
    """Return for each query the results of the page's own search, best first: ``[page, anchor, kind]``."""
    if shutil.which("node") is None:
        pytest.skip("needs Node.js")
    done = subprocess.run(["node", SEARCH, site], input=json.dumps(queries), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(zip(queries, json.loads(done.stdout), strict=True))


def words_of(text, stem):
    """Return the stems of the words in a text, as the search has them, in one spelling."""
    words = re.findall(r"[a-z0-9_+]+", text.lower().replace("-", " "))
    american = (re.sub(r"is(e|ed|ing|ation)$", r"iz\1", AMERICAN.get(word, word)) for word in words)
    return [stem(word) for word in american]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_word_of_the_index_is_on_its_page(page):
    """Somebody who searches for it and comes to the page finds a sentence with it."""
    stem = pytest.importorskip("snowballstemmer").stemmer("english").stemWord
    text = INDEX.sub("", page.read_text()).replace(
        "```{include} ../CHANGELOG.md", (DOCS.parent / "CHANGELOG.md").read_text()
    )
    on_page, letters = set(words_of(text, stem)), text.lower()
    unanswered = [
        entry
        for entry in entries_of(page)
        if not all(word in on_page or word in letters for word in words_of(entry, stem))
    ]
    assert unanswered == []


@pytest.mark.parametrize("word, page", TYPED.items())
def test_users_words_are_in_the_index(word, page):
    assert word.lower() in set(entries_of(DOCS / f"{page}.md"))


@pytest.mark.thorough
def test_a_word_of_the_index_finds_its_page_first(site):
    main = {}
    for page in PAGES:
        for entry in ",".join(INDEX.findall(page.read_text())).split(","):
            if entry.strip().startswith("!") and ";" not in entry:  # a; b is a line of the index, not what users type
                main.setdefault(entry.strip(" !").lower(), ["glossary"]).append(page.stem)
    found = searched(site, list(main))
    wrong = {word: found[word][:1] for word, pages in main.items() if not found[word] or found[word][0][0] not in pages}
    assert wrong == {}
    typed = searched(site, list(TYPED))
    assert {word: typed[word][0][0] for word in TYPED} == TYPED


@pytest.mark.thorough
def test_no_page_is_found_twice_for_its_text(site):
    for word, results in searched(site, ["cub", "texture", "print", "cache", "struct"]).items():
        whole = [page for page, _, kind in results if kind in ("text", "index")]
        assert len(whole) > 1 and sorted(whole) == sorted(set(whole)), word
        assert len({(page, anchor) for page, anchor, _ in results}) == len(results), word
