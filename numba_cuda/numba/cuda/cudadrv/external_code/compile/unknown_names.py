# SPDX-License-Identifier: BSD-2-Clause
"""Names of C++ that NVRTC does not know: the headers that have them, what device code uses instead, and similar names
that are known."""

from __future__ import annotations

import difflib
import glob
import itertools
import keyword
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from ..inputs.cuda_source import HOST_HEADERS

_ARRAYS = "cuda::std::array of <cuda/std/array>, or memory that the kernel passes, not a container that allocates"
# Of the host's library, which host_headers=True declares only.
_TEXTS = "printf, which needs no header, or arrays of char that the kernel passes"
NOT_ON_DEVICES = {
    **dict.fromkeys(
        re.findall(
            r"\w+",
            "deque forward_list list map multimap multiset priority_queue queue set stack string unordered_map"
            " unordered_multimap unordered_multiset unordered_set vector wstring",
        ),
        _ARRAYS,
    ),
    **dict.fromkeys(
        re.findall(
            r"\w+",
            "cerr clog cout endl fstream ios ios_base iomanip iostream istream istringstream ofstream ostream"
            " ostringstream print setbase setfill setprecision setw sstream stringstream",
        ),
        "printf, which needs no header",
    ),
    **dict.fromkeys(("cin", "getline", "ifstream", "stod", "stof", "stoi", "stol", "to_string"), _TEXTS),
    **dict.fromkeys(
        ("allocator", "enable_shared_from_this", "make_shared", "shared_ptr", "weak_ptr"),
        "a pointer to memory that the kernel passes",
    ),
    "function": "a lambda, which a template takes",
    **dict.fromkeys(
        ("condition_variable", "lock_guard", "mutex", "scoped_lock", "shared_mutex", "thread", "unique_lock"),
        "the threads of the kernel, and <cuda/std/atomic>",
    ),
    **dict.fromkeys(("nth_element", "sort", "stable_sort", "stable_partition"), "algorithms of CUB, or a loop"),
    **dict.fromkeys(("mt19937", "mt19937_64", "random_device"), "cuRAND's generators, of <curand_kernel.h>"),
}
_OF_HOST = re.compile(r"\bstd::(?:basic_|operator\W*)?(?P<name>\w+)")
_HEADERS = {
    r"half2?|__\w*half\w*": "cuda_fp16.h",
    r"(?:__)?nv_bfloat16\w*|__\w*bfloat16\w*": "cuda_bf16.h",
    r"__nv_fp8\w*": "cuda_fp8.h",
    r"u?int(?:_fast|_least)?(?:8|16|32|64)_t|u?int(?:ptr|max)_t|U?INT(?:8|16|32|64)_(?:MAX|MIN)": "cuda/std/cstdint",
    r"(?:U?(?:CHAR|SHRT|INT|LONG|LLONG)|SCHAR)_(?:MAX|MIN)|CHAR_BIT": "cuda/std/climits",
    r"(?:FLT|DBL)_\w+": "cuda/std/cfloat",
    r"INFINITY|NAN": "cuda/std/cmath",
    r"curand\w*": "curand_kernel.h",
    r"cu(?:Float|Double)?Complex|cuC\w+|make_cu\w+Complex": "cuComplex.h",
    r"cooperative_groups(?:::.*)?": "cooperative_groups.h",
    r"nvcuda(?:::.*)?": "mma.h",
}
_MATHEMATICS = re.findall(
    r"\w+",
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc exp exp10 exp2 expm1 fabs floor"
    " fma fmax fmin fmod frexp hypot isfinite isinf isnan ldexp lgamma log log10 log1p log2 modf nextafter pow rcbrt"
    " remainder rhypot rint round rsqrt sin sincos sinh sinpi sqrt tan tanh tgamma trunc",
)
# Which <cmath> of the host defines.
_OF_CMATH = re.compile(r"HUGE_VALF?|M_(?:E|LOG(?:2|10)E|LN(?:2|10)|PI(?:_[24])?|[12]_PI|2_SQRTPI|SQRT(?:2|1_2))")
# Functions that need no header, and other words.
_BUILT_IN = {
    *_MATHEMATICS,
    *(f"{name}f" for name in _MATHEMATICS),
    *re.findall(
        r"\w+",
        "__syncthreads __syncwarp __threadfence __shfl_sync __shfl_down_sync __shfl_up_sync __shfl_xor_sync"
        " __ballot_sync __popc __clz __ldg atomicAdd atomicCAS atomicExch atomicMax atomicMin atomicSub printf malloc"
        " free memcpy memset",
    ),
}
_WORDS = {
    *re.findall(
        r"\w+",
        "__constant__ __device__ __forceinline__ __global__ __grid_constant__ __host__ __launch_bounds__ __managed__"
        " __noinline__ __restrict__ __shared__ blockDim blockIdx gridDim threadIdx warpSize"
        " auto bool break case char class const constexpr continue decltype default delete double else enum explicit"
        " extern false float for friend if inline int long mutable namespace noexcept nullptr operator private"
        " protected public reinterpret_cast return short signed size_t sizeof static static_assert static_cast struct"
        " switch template this true typedef typename union unsigned using virtual void volatile while",
    ),
}
_OF_CCCL = re.compile(r"(cub|cuda(?:::std)?)::(\w+)")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONDITION = re.compile(r"\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b")
_IN_SOURCE = re.compile(r"\b[A-Za-z_]\w{2,}(?=\s*[^\s\w'\"])")
_IN_HEADER = re.compile(r"\b[A-Za-z]\w{2,}(?=\s*[(<{;])")
_ALIKE = 0.78  # more than foo and floor
_MACRO = re.compile(r"[A-Z][A-Z0-9_]{2,}")


def explain_unknown(
    name: str,
    texts: Iterable[str],
    include_paths: Sequence[str],
    macros: Iterable[str],
    others: Collection[str] = (),
    known: Collection[str] | None = None,
) -> str:
    """Return what to do about a *name* that C++ does not know, with its namespace where that is known. *texts* are
    those of the source and of the headers that it includes; C++ does not know the *others* either. Empty if no header
    is known to have it, and no name in *texts*, or of those *known* if these are given, or among *macros*, is like it.
    """
    scope, _, last = name.rpartition("::")
    if scope in ("std", "cuda::std") and last in NOT_ON_DEVICES:
        return f"device code has no {name}: use {NOT_ON_DEVICES[last]}"
    if scope == "std":
        return _instead_of_host(last, include_paths)
    if (found := _OF_CCCL.match(name)) and (header := _find_header(found[1].replace("::", "/"), found[2])):
        return f"include <{header}>"
    if header := _find_in_table(name):
        return f"include <{header}>"
    if _OF_CMATH.fullmatch(name):
        asked = "" if HOST_HEADERS in include_paths else "pass host_headers=True and "
        return f"{asked}include <cmath>, which {'then ' if asked else ''}defines {name}"
    if misspelt := difflib.get_close_matches(last, macros := list(macros), n=1, cutoff=_ALIKE):
        return (
            f"did you mean {last} by the macro {misspelt[0]} in defines=? Or {misspelt[0]} where the source has {last}?"
        )
    texts = list(texts)
    if guard := find_guard(texts, last):
        return f"define what {guard} asks for, or use another name: {last} is within it, and so left out here"
    names = {*_WORDS, *_list_names(iter(texts))} if known is None else known
    names = {*_BUILT_IN, *names} - {last, *others}
    if near := difflib.get_close_matches(last, sorted(names), n=3, cutoff=_ALIKE):
        return f"did you mean {' or '.join(near)}?"
    return f"include the header of CCCL that has {name}" if found else ""


def not_on_devices(function: str) -> str:
    """Return the name in ``std`` that a *function* of the host's library is about, of those that host_headers=True
    declares only; empty if it is about none."""
    if not function.startswith(("std::", "_Nca_host::")):
        return ""
    return next((each["name"] for each in _OF_HOST.finditer(function) if each["name"] in NOT_ON_DEVICES), "")


def find_guard(texts: Iterable[str], name: str) -> str:
    """Return the directive, such as ``#ifdef FAST``, within which alone one of *texts* declares a *name*; empty if none
    does, or one declares it without a condition."""
    named = re.escape(name)
    declared = re.compile(
        rf"(?:^|(?<!return)[\s*&]){named}\s*[(<{{;:=]|\b(?:struct|class|enum|union|using)\s+{named}\b"
    )
    found = ""
    for text in texts:
        if name not in text:
            continue
        conditions: list[str] = []
        for line in _COMMENT.sub(_only_lines, text).splitlines():
            if directive := _CONDITION.match(line):
                _follow(conditions, directive[1], line.strip())
            elif (guard := _of_include_guard(conditions, line)) is not None:
                conditions[-1] = guard
            elif declared.search(line):
                within = [each for each in conditions if each]
                if not within:
                    return ""
                found = found or within[-1]
    return found


def _only_lines(comment: re.Match[str]) -> str:
    return "\n" * comment[0].count("\n")


def _follow(conditions: list[str], directive: str, line: str) -> None:
    if directive.startswith("if"):
        conditions.append(line)
    elif directive == "endif":
        del conditions[-1:]
    elif conditions:
        conditions[-1] = line if directive == "elif" else f"#else of {conditions[-1]}"


def _of_include_guard(conditions: Sequence[str], line: str) -> str | None:
    """Return an empty condition if a *line* defines the macro that the last one asks not to be defined."""
    asked = (
        re.fullmatch(r"#\s*(?:ifndef\s+|if\s*!\s*defined\s*\(?\s*)(\w+)\s*\)?", conditions[-1]) if conditions else None
    )
    return "" if asked and re.match(rf"\s*#\s*define\s+{asked[1]}\b", line) else None


def explain_undeclared(name: str) -> str:
    """Return what to do about a *name* of which nothing is known."""
    if _MACRO.fullmatch(name):
        return (
            f"if {name} is a macro, define it: defines={{'{name}': '...'}}, or {{'{name}(x)': '...'}} if it has"
            " parameters; else declare it before that place"
        )
    if keyword.iskeyword(name):
        return f"write C++: {name} is a word of Python"
    return f"declare {name} before that place, or include the header that does"


def find_similar_header(name: str, include_paths: Sequence[str]) -> str:
    """Return the header in *include_paths*, or of the toolkit, whose name is most like *name*, or one of the toolkit
    with this name in another folder; empty if there is none."""
    from .translation_unit import toolkit_include_paths

    roots = (*include_paths, *toolkit_include_paths())
    for root in roots:
        path = root
        for part in name.split("/"):
            path = os.path.join(path, near) if (near := _find_near(part, path)) else ""
        if os.path.isfile(path):
            return os.path.relpath(path, root)
    first, _, last = name.rpartition("/")
    for root in toolkit_include_paths() if first else ():
        below = os.path.join(root, first.partition("/")[0])
        found = [os.path.join(folder, last) for folder, _, files in os.walk(below) if last in files]
        if len(found) == 1:
            return os.path.relpath(found[0], root)
    return ""


def _find_near(name: str, folder: str) -> str:
    """Return the file in *folder* whose name is most like *name*; empty if none is."""
    found = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    if name in found:
        return name
    by_lower = {each.lower(): each for each in found}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=_ALIKE)
    return by_lower[near[0]] if near else ""


def _find_in_table(name: str) -> str:
    return next((header for pattern, header in _HEADERS.items() if re.fullmatch(pattern, name)), "")


def _list_names(texts: Iterator[str]) -> Iterator[str]:
    for source in itertools.islice(texts, 1):
        yield from _IN_SOURCE.findall(_COMMENT.sub("", source))
    for header in texts:
        yield from _IN_HEADER.findall(header)


def _instead_of_host(name: str, include_paths: Sequence[str]) -> str:
    header = _find_header("cuda/std", name)
    if HOST_HEADERS in include_paths:
        return f"include <{header.rpartition('/')[2]}>" if header else f"include the header that has std::{name}"
    if not header:
        return f"std has the host's functions: use cuda::std::{name}, where libcu++ has it"
    own = header.rpartition("/")[2]
    return f"std has the host's functions: use cuda::std::{name} of <{header}>, or host_headers=True and <{own}>"


def _find_header(folder: str, name: str) -> str:
    """Return the public header of CCCL in *folder* that has *name*; empty if that is not known."""
    from .translation_unit import toolkit_include_paths

    def find(*pattern: str) -> list[str]:
        return [found for root in toolkit_include_paths() for found in glob.glob(os.path.join(*pattern), root_dir=root)]

    if folder == "cub":
        words = re.sub("(?<!^)(?=[A-Z])", "_", name).lower()
        return next(iter(sorted(find(folder, "*", f"{words}.cuh"))), "")
    parts = sorted(os.path.basename(os.path.dirname(part)).strip("_") for part in find(folder, "__*", f"{name}.h"))
    of_functions = ["cmath"] if folder == "cuda/std" and name in _MATHEMATICS else []
    headers = (name, os.path.basename(_find_in_table(name)), *parts, *of_functions)
    return next((f"{folder}/{each}" for each in headers if each and find(folder, each)), "")
