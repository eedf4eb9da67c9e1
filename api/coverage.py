#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/api-coverage.md: what becomes of every name that NVIDIA's libraries export.

usage: coverage.py CUDA.api RUNTIME_STUBS.c >docs/api-coverage.md
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from table import Parser  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def names_of(path):
    with open(path, encoding='utf-8') as f:
        return [line.strip() for line in f if line.strip()]


def driver(table):
    """name → (how, what to add, test)"""
    out = {}
    for r in table.rows:
        if r.mode == 'local':
            how = ('local', 'answered or composed by the client')
        else:
            how = ('forwarded', 'waits for its answer' if r.mode == 'fence' else 'quiet')
        out[r.name] = how + (r.test,)
        if r.variant:
            out[f'{r.name}_{r.variant}'] = how + (r.test,)
    for a in table.aliases:
        out[a.name] = ('forwarded', f'as {a.row.name}', a.row.test)
    for name, status, reason, test in table.absent:
        out[name] = ('absent', f'`{status}`: {reason}', test)
    for name, reason in table.never:
        out[name] = ('impossible', reason, 'absent')
    return out


def main():
    names = names_of(os.path.join(HERE, 'libcuda-13.0-exports.txt'))
    rows = driver(Parser(sys.argv[1], {}, None).parse())
    with open(sys.argv[2], encoding='utf-8') as f:
        stubs = f.read()
    missing = set(re.findall(r'^STUB\((\w+)\)', stubs, re.M))
    never = dict(re.findall(r'^NEVER\((\w+), "(.*)"\)$', stubs, re.M))
    runtime = names_of(os.path.join(HERE, 'libcudart-13.0-exports.txt'))
    count = {}
    later = [n for n in names if n not in rows] + [n for n in runtime if n in missing]
    if later:
        sys.exit(f'coverage.py: no row and no reason: {", ".join(later)}')
    for n in names:
        count[rows[n][0]] = count.get(rows[n][0], 0) + 1
    print('# API coverage\n')
    print('Generated from the tables by `make docs/api-coverage.md`; do not edit. A test is a program in `tests/api/` that asserts an output\n'
          'of the name, or of the name that it leads to.\n')
    print('- *forwarded*: a record of its own goes to the server.\n'
          '- *local*: the client answers, or makes it of records that have other names (`api/rgpu.api`).\n'
          '- *absent*: answered as a device without the feature answers; its attributes say so.\n'
          '- *impossible*: cannot be had across machines; `NOT_SUPPORTED`, and a line that says why.\n')
    print(f'## libcuda.so.1: {len(names)} names\n')
    print('| ' + ' | '.join(sorted(count)) + ' |\n|' + '---|' * len(count))
    print('| ' + ' | '.join(str(count[k]) for k in sorted(count)) + ' |\n')
    print('| name | how | | test |\n|---|---|---|---|')
    for n in names:
        how, more, test = rows[n]
        print(f'| `{n}` | {how} | {more} | {test} |')
    print(f'\n## libcudart.so.13: {len(runtime)} names\n')
    print(f'{len(runtime) - len(missing) - len(never)} are there (`shim/cudart/`, over the names above; `tests/cudart/`).')
    print('\nImpossible across machines:\n\n| name | why |\n|---|---|')
    for n in runtime:
        if n in never:
            print(f'| `{n}` | {never[n]} |')


main()
