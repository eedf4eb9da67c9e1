#!/bin/sh
# SPDX-License-Identifier: MIT
# The module's tests, the random ones for two minutes, on a kernel with KCSAN: a data race in the module fails the run.
exec tests/vm/suite "kcsan" 6.1-kcsan kmod --module-only --time-limit 3300 --env RGPU_TEST_LIMIT=1200 --env RGPU_FUZZ_SECS=120 \
	--env RGPU_STRESS_SECS=120
