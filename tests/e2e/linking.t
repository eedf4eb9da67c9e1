#!/bin/bash
# SPDX-License-Identifier: MIT
# How a program is compiled and linked: what works as it is, and what gets a line that says how to link it.
. tests/e2e/lib.sh
gpu_ready
passes "a run path to the toolkit's own runtime: ours comes first" $(gpu) $E2E/vadd_rpath
passes "compiled with per-thread default streams" $(gpu) $E2E/threads_ptds 8
fails "the runtime linked in statically: a line says how to link it" "-cudart shared" $(gpu) $E2E/vadd_static
# Without a driver on the library path: our runtime alone.
mkdir "$tmp/alone"
cp $B/lib/libcudart.so.13 "$tmp/alone/"
fails "no driver at all: one line says so" "no CUDA driver: libcuda\.so\.1.*rgpu run" env LD_LIBRARY_PATH="$tmp/alone" $E2E/vadd
grep -q 'cudaErrorInsufficientDriver' "$tmp/out"
result $? "… and the runtime gives the error of CUDA" || diag <"$tmp/out"
done_testing
