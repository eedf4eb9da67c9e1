#!/bin/sh
# SPDX-License-Identifier: MIT
# The module's own tests, in a guest on Linux 6.1 with no proxy.
exec tests/vm/suite "kmod 6.1" 6.1 kmod --module-only
