#!/bin/sh
# SPDX-License-Identifier: MIT
# The end-to-end programs through /dev/rgpu0, in a guest on Linux 6.12: all but what takes long there (GUEST_ONCE in the Makefile).
exec tests/vm/suite "e2e 6.12" 6.12 guest-short --devices 2 --time-limit 1400
