#!/bin/sh
# SPDX-License-Identifier: MIT
# A guest on Linux 6.1 goes to sleep, its devices too (pm_test=devices), with everything of the module open.
exec scripts/vm run --kernel 6.1 --ram --name suspend-6.1 -- "${B:-build}/tests/kmod-suspend"
