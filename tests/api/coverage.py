#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/api-coverage.md is what the tables say today."""
import os
import subprocess
import sys

build = os.environ.get('B', 'build')
want = subprocess.run([sys.executable, 'api/coverage.py', 'api/cuda.api', f'{build}/shim/cudart/stubs.c'], check=True,
                      capture_output=True, text=True).stdout
with open('docs/api-coverage.md', encoding='utf-8') as f:
    same = f.read() == want
print('1..1')
print(f'{"ok" if same else "not ok"} 1 - docs/api-coverage.md is current')
if not same:
    print('# run: make docs/api-coverage.md')
sys.exit(not same)
