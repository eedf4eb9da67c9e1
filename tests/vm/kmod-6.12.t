#!/bin/sh
# SPDX-License-Identifier: MIT
# The module's own tests, in a guest on Linux 6.12 with no proxy.
exec tests/vm/suite "kmod 6.12" 6.12 kmod --module-only
