#!/bin/sh
# SPDX-License-Identifier: MIT
# Random calls with random kills on a kernel with KASAN and lockdep for RGPU_FUZZ_SECS, then plausible ones for a third of that;
# which lines ran goes to $B/kcov-fuzz.
B=${B:-build}
secs=${RGPU_FUZZ_SECS:-1800}
exec tests/vm/suite "fuzz" 6.1-kasan kmod-random --module-only --time-limit $((secs + secs / 3 + 1100)) --out "$B/kcov-fuzz" \
	--env RGPU_TEST_LIMIT=$((secs + 400)) --env RGPU_FUZZ_SECS="$secs" --env RGPU_STRESS_SECS=$((secs / 3)) --env RGPU_KCOV=/out \
	--env LD_PRELOAD="$(realpath "$B/tests/kcov.so")"
