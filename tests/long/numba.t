#!/bin/bash
# SPDX-License-Identifier: MIT
# numba-cuda's own tests over rgpu.
. "$(dirname "$0")/clients/lib.sh"
gpu_ready
client_env numba
tests=$("$env/bin/python" -c 'import numba_cuda, os; print(os.path.dirname(numba_cuda.__file__))')/numba/cuda/tests
modules=$(cd "$tests" && find core cudadrv cudapy doc_examples nocuda nrt -name 'test_*.py' | sort | sed 's/\.py$//; s#/#.#g; s/^/numba.cuda.tests./')
# MODULES="numba.cuda.tests.cudapy.test_sm" for a few of them.
"$clients/run.py" "$clients/numba.known" "$clients" ${MODULES:-$modules} -- \
	"$PWD"/$(gpu) "$env/bin/python" -m pytest -q -p no:cacheprovider --benchmark-disable --timeout=300 --pyargs
