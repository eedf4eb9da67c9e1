#!/bin/sh
# SPDX-License-Identifier: MIT
# Fifty rounds of a thousand operations in a guest on Linux 6.1, the proxy killed with -9 at a random point of each.
exec tests/vm/suite "once 6.1" 6.1 once --time-limit 2400 --env RGPU_TEST_LIMIT=2300 --env RGPU_ONCE_ROUNDS=50
