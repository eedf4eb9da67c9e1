#!/bin/sh
# SPDX-License-Identifier: MIT
# The end-to-end programs through /dev/rgpu0, in a guest on Linux 6.1.
exec tests/vm/suite "e2e 6.1" 6.1 guest --devices 2 --time-limit 1400
