#!/bin/bash
# SPDX-License-Identifier: MIT
# tinygrad's own tests over rgpu, with its CUDA back end.
. "$(dirname "$0")/clients/lib.sh"
gpu_ready
client_env tinygrad
source=$tmp/source
mkdir "$source"
"$env/bin/pip" download -q --no-deps --no-binary :all: -d "$tmp" "$(grep ^tinygrad "$clients/tinygrad.txt")" >"$tmp/pip" 2>&1 &&
	tar xzf "$tmp"/tinygrad-*.tar.gz -C "$source" --strip-components=1 ||
	{ diag <"$tmp/pip"; echo "Bail out! no source archive of tinygrad from PyPI"; exit 1; }
# It looks for libraries in folders of its own list before LD_LIBRARY_PATH, and for headers in a toolkit's folder.
mkdir "$tmp/cuda"
ln -s "$PWD/$B/lib/libcuda.so.1" "$tmp/cuda/libcuda.so"
ln -s "$CUDA_HOME/include" "$tmp/cuda/include"
export CUDA=1 CUDA_PATH=$tmp/cuda NVRTC_PATH=$PWD/$B/lib/libnvrtc.so.13 NVJITLINK_PATH=$PWD/$B/lib/libnvJitLink.so.13
unset CC # its CPU back end takes that for the name of one program
modules=$(cd "$source" && echo test/test_*.py)
# MODULES="test/test_tiny.py" for a few of them.
"$clients/run.py" "$clients/tinygrad.known" "$source" ${MODULES:-$modules} -- \
	"$PWD"/$(gpu) "$env/bin/python" -m pytest -q -p no:cacheprovider --timeout=300
