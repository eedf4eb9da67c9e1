#!/bin/sh
# SPDX-License-Identifier: MIT
# The end-to-end programs through /dev/rgpu0, in a guest on Linux 6.12.
exec tests/vm/suite "e2e 6.12" 6.12 guest --devices 2
