#!/bin/sh
# SPDX-License-Identifier: MIT
# `dkms install` as docs/setup.md has it, in a guest on Linux 6.12: builds, installs, loads, works, and goes without a trace.
exec tests/vm/suite "dkms 6.12" 6.12 dkms --no-module --time-limit 1500 --env RGPU_TEST_LIMIT=1400
