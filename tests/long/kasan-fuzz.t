#!/bin/sh
# SPDX-License-Identifier: MIT
# Random calls with random kills on a kernel with KASAN and lockdep, RGPU_FUZZ_SECS long each way; which lines ran goes to $B/kcov-fuzz.
B=${B:-build}
secs=${RGPU_FUZZ_SECS:-1800}
exec tests/vm/suite "fuzz" 6.1-kasan kmod-random --module-only --time-limit $((2 * secs + 1800)) --out "$B/kcov-fuzz" \
	--env RGPU_TEST_LIMIT=$((secs + 400)) --env RGPU_FUZZ_SECS="$secs" --env RGPU_STRESS_SECS="$secs" --env RGPU_KCOV=/out \
	--env LD_PRELOAD="$(realpath "$B/tests/kcov.so")"
