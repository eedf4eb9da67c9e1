#!/bin/sh
# SPDX-License-Identifier: MIT
# The module's tests as the kernel's kselftest built them, under its own runner, in a guest on Linux 6.1.
exec tests/vm/suite "kselftest 6.1" 6.1 kselftest --module-only --time-limit 3000 --env RGPU_TEST_LIMIT=2900
