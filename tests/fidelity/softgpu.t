#!/bin/bash
# SPDX-License-Identifier: MIT
# The documentation's rules against softgpu, in one process.
exec tests/fidelity/run softgpu
