#!/bin/bash
# SPDX-License-Identifier: MIT
# Threads and devices: work handed over on one stream, waits that others release, uploads beside small calls, two devices.
. tests/e2e/lib.sh
gpu_ready
mib=1024 n=16
[ "${RGPU_VM:-0}" = 1 ] && mib=256 n=8
passes "two threads hand work over on one stream, 1,000 times" $(gpu) $E2E/handoff 1000
passes "2,000 launches behind a wait that another thread releases" $(gpu) $E2E/waitvalue
passes "waits and questions do not hold up what they wait for" $(gpu) $E2E/gates
passes "an upload of $mib MiB beside small calls of another thread" $(gpu) $E2E/upload $mib 10
passes "two devices: peer copies and cross-device event waits" $(gpu) $E2E/twodev
passes "$n threads on streams of their own" $(gpu) $E2E/threads $n
done_testing
