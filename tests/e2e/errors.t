#!/bin/bash
# SPDX-License-Identifier: MIT
# Mistakes of programs: the CUDA error that a user expects, at the call where CUDA gives it, and nothing left at the server.
. tests/e2e/lib.sh
gpu_ready
passes "runtime: bad launch dimensions, told at the launch" $(gpu) $E2E/errors dimensions
passes "runtime: a function that is no kernel" $(gpu) $E2E/errors function
passes "runtime: too much memory, bad pointers, bad devices" $(gpu) $E2E/errors memory
passes "runtime: an access out of bounds, told at the synchronise and from then on" $(gpu) $E2E/errors wild
passes "driver: truncated PTX" $(gpu) $E2E/errors_drv truncated-ptx
passes "driver: an image that is none" $(gpu) $E2E/errors_drv no-image
passes "driver: an unknown kernel" $(gpu) $E2E/errors_drv unknown-kernel
passes "driver: bad launch dimensions" $(gpu) $E2E/errors_drv dimensions
passes "driver: an access out of bounds" $(gpu) $E2E/errors_drv wild
passes "after all of them, another program runs" $(gpu) $E2E/vadd
idle() {
	[ "$($(gpu) $B/bin/rgpu-smi | grep -c ' C   ')" -eq 0 ]
}
until_true 20 idle
result $? "no process is left on the GPU"
done_testing
