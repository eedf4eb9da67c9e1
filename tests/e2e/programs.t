#!/bin/bash
# SPDX-License-Identifier: MIT
# The programs that a user would write, compiled as a user would: each checks its results against the CPU.
. tests/e2e/lib.sh
gpu_ready
passes "driver API: vectorAdd from PTX and a fat binary" $(gpu) $E2E/vadd_drv
passes "driver API: vectorAdd in memory that the program maps" $(gpu) $E2E/mmap_drv
passes "runtime: vectorAdd of 4 Mi floats" $(gpu) $E2E/vadd
passes "runtime: tiled matrix product, 512 × 512" $(gpu) $E2E/matmul
passes "runtime: reduction by warp shuffles" $(gpu) $E2E/reduce
passes "runtime: histogram with atomics" $(gpu) $E2E/histogram
passes "runtime: clusters and distributed shared memory" $(gpu) $E2E/cluster
passes "runtime: stream-ordered allocation, and another device's pool" $(gpu) $E2E/ordered
passes "runtime: two processes share memory, a pool and an event" $(gpu) $E2E/ipc
passes "runtime: arrays, textures and surfaces" $(gpu) $E2E/texture
passes "runtime: kernels on the host's memory: page-locked, registered, managed" $(gpu) $E2E/zerocopy
passes "runtime: __managed__ variables, and a solver in managed memory" $(gpu) $E2E/managed
# Through the device, the module's page faults tell what a program wrote; directly, comparing does.
passes "runtime: the solver alone" env RGPU_TRACE_ROUNDTRIPS=1 $(gpu) $E2E/managed solver
compared=$(sed -n 's/^rgpu: \([0-9]*\) bytes of shared memory compared$/\1/p' "$tmp/out")
[ -n "$compared" ] && { [ $TRANSPORT = kmod ] && [ "$compared" -eq 0 ] || { [ $TRANSPORT = direct ] && [ "$compared" -gt 0 ]; }; }
result $? "… for which $compared bytes were compared" || diag <"$tmp/out"
passes "runtime: graphs, captured and by hand, replayed" $(gpu) $E2E/graphs
passes "runtime: tensor maps and bulk tensor copies" $(gpu) $E2E/tensormap
passes "cuBLAS: sgemm" $(gpu) $E2E/sgemm
passes "runtime: every call of its unit test" $(gpu) $E2E/cudart_api
passes "runtime: device code linked at run time" $(gpu) $E2E/separate
passes "runtime: kernels that launch kernels" $(gpu) $E2E/cdp
passes "runtime of CUDA 12: a kernel and a variable" $(gpu) $E2E/runtime12
passes "runtime: polling while a host function holds the stream, for no round trip" $(gpu) $E2E/polling
done_testing
