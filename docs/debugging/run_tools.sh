#!/bin/sh
# Run the tools of docs/debugging.md on a machine with a GPU, and write all that they print to OUT/transcript.txt.
# Usage: docs/debugging/run_tools.sh OUT
# PYTHON is the interpreter (default: python3). It has numba-cuda and this package, and nvtx for Nsight Systems.
# A tool that is missing, fails, takes more than two minutes or is refused its rights does not stop the others.
set -u
out=${1:?usage: docs/debugging/run_tools.sh OUT}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
program=$here/wild_write.py
mkdir -p "$out" || exit 1
transcript=$out/transcript.txt
: > "$transcript"

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export NUMBA_CUDA_AUTOLINK_CACHE_DIR="$work/cache" PYTHONUNBUFFERED=1

try() { # NAME COMMAND...: print a header and the command, run it, print its exit status; on the screen too
    name=$1
    shift
    {
        printf '\n=== %s\n' "$name"
        printf '$'
        printf " '%s'" "$@"
        printf '\n'
        if command -v "$1" > "$work/path"; then
            timeout -k 10 120 "$@" < /dev/null 2>&1
            echo "=== $name: exit status $?"
        else
            echo "=== $name: $1 is not installed"
        fi
    } | tee -a "$transcript"
}

try driver nvidia-smi --query-gpu=name,driver_version --format=csv
try packages "$python" -c "
import sys
from importlib.metadata import version
print('Python', *sys.version_info[:3])
for name in 'numba', 'numba-cuda', 'numba-cuda-autolink', 'cuda-core', 'cuda-bindings':
    print(name, version(name))"
for tool in compute-sanitizer cuda-gdb ncu nsys; do
    try "version of $tool" "$tool" --version
done

try printf "$python" "$program"
try assert "$python" "$program" assert
try memcheck compute-sanitizer --tool memcheck --show-backtrace device --print-limit 2 "$python" "$program" wild

try "cuda-gdb, debug" cuda-gdb --batch -ex "set print thread-events off" -ex "set breakpoint pending on" \
    -ex "break scatter.cu:7" -ex run -ex bt -ex "info locals" -ex "info args" -ex list -ex "info cuda kernels" \
    -ex "info cuda threads" --args "$python" "$program" debug
try "cuda-gdb, lineinfo" cuda-gdb --batch -ex "set print thread-events off" -ex "set breakpoint pending on" \
    -ex "break scatter.cu:7" -ex run -ex bt -ex list --args "$python" "$program"
try "ncu, profile" ncu --section SourceCounters --import-source yes --clock-control none \
    --force-overwrite --export "$work/profile" "$python" "$program"
try "ncu, source" ncu --import "$work/profile.ncu-rep" --page source --csv --print-source cuda,sass

try nsys nsys profile --trace cuda,nvtx --stats true --force-overwrite true --output "$work/timeline" \
    "$python" -c "import nvtx, runpy; runpy.run_path(\"$program\", run_name=\"__main__\")"

printf '\nWhat was run:\n'
grep -E '^=== .*: (exit status|.* is not installed)' "$transcript"
