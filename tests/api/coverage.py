#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/api-coverage.md is what the tables say today."""
import os
import re
import subprocess
import sys

build = os.environ.get('B', 'build')
want = subprocess.run([sys.executable, 'api/coverage.py', 'api/cuda.api', f'{build}/shim/cudart/stubs.c', f'{build}/shim/nvml/refused.c'], check=True,
                      capture_output=True, text=True).stdout
with open('docs/api-coverage.md', encoding='utf-8') as f:
    same = f.read() == want
rows = re.findall(r'^\| `(\w+)` \| (\w+) \|.*\| ([\w/]*) \|$', want, re.M)
impossible = [n for n, how, _ in rows if how == 'impossible']
records = re.findall(r'^\| `(\w+)` \| (?:quiet|waits for its answer) \| ([\w/]*) \|$', want, re.M)
without = [n for n, _, test in rows if test == 'none'] + [n for n, test in records if test == 'none']
unseen = [n for n, how, test in rows if how == 'forwarded' and test == 'none'] + [n for n, test in records if test == 'none']
with open('tests/api/outputs.known', encoding='utf-8') as f:
    known = [line.split('\t')[0] for line in f if not line.startswith('#') and line.split('\t')[1].strip()]
failed = False
print('1..5')
for i, (good, what, more) in enumerate([
        (same, 'docs/api-coverage.md is current', 'run: make docs/api-coverage.md'),
        (len(rows) == 637 and all(how in ('local', 'forwarded', 'absent', 'impossible') for _, how, _ in rows),
         'each of the driver\'s 637 names is there, or has its reason', ''),
        (len(impossible) < 40, f'under 40 of them are impossible: {len(impossible)}', ''),
        (records and sorted(unseen) == sorted(known), f'what goes to the server has a test of its outputs, but for {len(known)} with their reasons',
         ' '.join(unseen)),
        (len(without) < 60, f'under 60 have no test of their own: {len(without)}', ' '.join(without))]):
    print(f'{"ok" if good else "not ok"} {i + 1} - {what}')
    if not good:
        failed = True
        print(f'# {more}')
sys.exit(failed)
