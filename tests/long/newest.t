#!/bin/sh
# SPDX-License-Identifier: MIT
# The module's tests on the newest kernel of Debian's suites (scripts/newest-kernel), for whose headers it was compiled.
exec tests/vm/suite "kmod newest" newest kmod --module-only --time-limit 1800
