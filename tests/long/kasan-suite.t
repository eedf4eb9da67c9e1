#!/bin/sh
# SPDX-License-Identifier: MIT
# The module's tests on a kernel with KASAN, lockdep, kmemleak and fault injection; which lines ran goes to $B/kcov-suite.
B=${B:-build}
exec tests/vm/suite "kasan" 6.1-kasan kmod --module-only --time-limit 3300 --out "$B/kcov-suite" --env RGPU_TEST_LIMIT=1200 \
	--env RGPU_KCOV=/out --env LD_PRELOAD="$(realpath "$B/tests/kcov.so")"
