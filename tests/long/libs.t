#!/bin/bash
# SPDX-License-Identifier: MIT
# CUB, Thrust and cuRAND's device functions, which take minutes to compile: their results against the CPU's.
cd "$(dirname "$0")/../.." || exit
export RGPU_TEST_TRANSPORT=direct
. tests/e2e/lib.sh
LIMIT=900
gpu_ready
# program NAME HEADER: compiles and runs tests/long/NAME.cu
program()
{
	if [ ! -f "$CUDA_HOME/include/$2" ]; then
		skip "$1" "this toolkit has no $2"
		return
	fi
	passes "$1: compiled" $NVCC -std=c++17 -O2 -w -cudart shared -gencode arch=compute_75,code=compute_75 -I. -o "$tmp/$1" "tests/long/$1.cu"
	passes "$1: right" $(gpu) "$tmp/$1"
}
program cub cccl/cub/cub.cuh
program rand curand_kernel.h
done_testing
