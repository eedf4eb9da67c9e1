#!/bin/sh
# SPDX-License-Identifier: MIT
# NVIDIA's samples through /dev/rgpu0, in a guest on Linux 6.12; the folder is the host's.
exec tests/vm/suite "samples 6.12" 6.12 samples --devices 2 --time-limit 3300 --env RGPU_TEST_LIMIT=3200 --env "RGPU_SAMPLES=$RGPU_SAMPLES"
