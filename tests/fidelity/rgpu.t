#!/bin/bash
# SPDX-License-Identifier: MIT
# The documentation's rules against rgpu, over the direct transport.
exec tests/fidelity/run rgpu
