#!/bin/sh
# Run the tools of docs/debugging.md on a machine with a GPU, and write what each prints to OUT.
# Usage: docs/debugging/run_tools.sh OUT
# A tool that is missing, or that the machine refuses its rights, leaves a file that says so.
set -u
out=$1
here=$(dirname "$0")
program="python $here/wild_write.py"
mkdir -p "$out"

try() {  # NAME COMMAND...: run it for at most two minutes
    name=$1
    shift
    { echo "$ $*"; timeout 120 "$@" 2>&1; echo "exit status $?"; } > "$out/$name.txt"
}

try printf $program
try assert $program assert
try memcheck compute-sanitizer --tool memcheck $program wild
try racecheck compute-sanitizer --tool racecheck $program
try cuda_gdb cuda-gdb --batch -ex "set breakpoint pending on" -ex "break scatter.cu:7" -ex run -ex "info cuda kernels" \
    -ex bt -ex "info locals" -ex "list" --args $program
try nsight_compute ncu --set source --section SourceCounters --import-source yes --print-details all $program
try nsight_systems nsys profile --trace cuda,nvtx --stats true --force-overwrite true -o "$out/profile" \
    python -c "import nvtx, runpy; runpy.run_path('$here/wild_write.py', run_name='__main__')"
for tool in compute-sanitizer cuda-gdb ncu nsys; do
    command -v "$tool" || echo "$tool is not installed"
done > "$out/tools.txt"
