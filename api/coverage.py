#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/api-coverage.md: what becomes of every name that NVIDIA's libraries export.

usage: coverage.py CUDA.api RUNTIME_STUBS.c NVML_REFUSED.c >docs/api-coverage.md
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from table import Parser  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
# Records whose outputs no test asserts: NAME, a tab, why.
UNSEEN = os.path.join(HERE, '../tests/api/outputs.known')


def names_of(path):
    with open(path, encoding='utf-8') as f:
        return [line.strip() for line in f if line.strip()]


def source(path, seen):
    """A program's text, with what it includes from tests/."""
    if path in seen or not os.path.exists(path):
        return ''
    seen.add(path)
    with open(path, encoding='utf-8') as f:
        text = f.read()
    for name in re.findall(r'#include "([^"]+)"', text):
        text += source(name if name.startswith('tests/') else os.path.join(os.path.dirname(path), name), seen)
    return text


class Tests:
    """Which program calls what: by its name, or by the one that cuda.h gives to the newest edition."""

    def __init__(self, names):
        self.names, self.texts = set(names), {}

    def text(self, test):
        if test not in self.texts:
            base = f'tests/{test}' if '/' in test else f'tests/api/{test}'
            self.texts[test] = ''.join(source(base + end, set()) for end in ('.c', '.cu'))
        return self.texts[test]

    def calls(self, test, name):
        plain = re.sub(r'_(ptsz|ptds)$', '', name)
        base = re.sub(r'_v\d+$', '', plain)
        editions = [int(m[1]) for n in self.names if (m := re.fullmatch(base + r'_v(\d+)', n))]
        newest = f'{base}_v{max(editions)}' if editions else base
        if plain == newest:
            return re.search(rf'\b({plain}|{base})\b', self.text(test)) is not None
        # An older edition goes by its own name, which is a macro for the newest in a program with cuda.h: so it is looked up.
        return re.search(rf'\bOLD\({plain}\b|"{plain}"', self.text(test)) is not None or \
            (plain != base and re.search(rf'\b{plain}\b', self.text(test)) is not None)


def driver(table, hidden):
    """name → (how, what to add, test)"""
    out = {}
    for r in table.rows:
        if r.name in hidden:
            r.test = 'none'
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


def unseen():
    with open(UNSEEN, encoding='utf-8') as f:
        return {line.split('\t', 1)[0] for line in f if line.strip() and not line.startswith('#')}


def records(kinds):
    """What goes to the server besides those of the driver's names."""
    for table in ('rgpu', 'cublas'):
        for r in Parser(os.path.join(HERE, f'{table}.api'), kinds, None).parse().rows:
            if r.op is not None:
                yield r


def main():
    names = names_of(os.path.join(HERE, 'libcuda-13.0-exports.txt'))
    hidden = unseen()
    kinds = {}
    rows = driver(Parser(sys.argv[1], kinds, None).parse(), hidden)
    with open(sys.argv[2], encoding='utf-8') as f:
        stubs = f.read()
    missing = set(re.findall(r'^STUB\((\w+)\)', stubs, re.M))
    never = dict(re.findall(r'^NEVER\((\w+), "(.*)"\)$', stubs, re.M))
    runtime = names_of(os.path.join(HERE, 'libcudart-13.0-exports.txt'))
    count = {}
    later = [n for n in names if n not in rows] + [n for n in runtime if n in missing]
    if later:
        sys.exit(f'coverage.py: no row and no reason: {", ".join(later)}')
    tests = Tests(names)
    without = [n for n in names if rows[n][0] in ('local', 'forwarded') and not tests.calls(rows[n][2], n)]
    for n in names:
        count[rows[n][0]] = count.get(rows[n][0], 0) + 1
    print('# API coverage\n')
    print('Generated from the tables by `make docs/api-coverage.md`; do not edit. A test is a program in `tests/api/` (or\n'
          'another folder of `tests/`) that calls the name, or the one of which it is the variant for per-thread default streams, and asserts what came of it.\n'
          'Of what is forwarded that is tried, record by record (`make long-outputs`): the test fails over a server that does not do the record, or\n'
          'that spoils its answer. Where there is none, `tests/api/outputs.known` says why.\n')
    print('- *forwarded*: a record of its own goes to the server.\n'
          '- *local*: the client answers, or makes it of records that have other names (`api/rgpu.api`).\n'
          '- *absent*: answered as a device without the feature answers; its attributes say so.\n'
          '- *impossible*: cannot be had across machines; `NOT_SUPPORTED`, and a line that says why.\n')
    print(f'## libcuda.so.1: {len(names)} names\n')
    print('| ' + ' | '.join(sorted(count)) + ' |\n|' + '---|' * len(count))
    print('| ' + ' | '.join(str(count[k]) for k in sorted(count)) + ' |\n')
    print(f'{len(without)} names have no test of their own.\n')
    print('| name | how | | test |\n|---|---|---|---|')
    for n in names:
        how, more, test = rows[n]
        if n in without:
            test = 'none'
        print(f'| `{n}` | {how} | {more} | {test} |')
    print(f'\n## libcudart.so.13: {len(runtime)} names\n')
    print(f'{len(runtime) - len(missing) - len(never)} are there (`shim/cudart/`, over the names above; `tests/cudart/`).')
    print('\nImpossible across machines:\n\n| name | why |\n|---|---|')
    for n in runtime:
        if n in never:
            print(f'| `{n}` | {never[n]} |')
    print('\n## Records of other names\n\nOf `api/rgpu.api`, behind what is local above, and of cuBLAS.\n\n| record | | test |\n|---|---|---|')
    for r in records(kinds):
        print(f'| `{r.name}` | {"waits for its answer" if r.mode == "fence" else "quiet"} | {"none" if r.name in hidden else r.test} |')
    nvml()


def nvml():
    names = names_of(os.path.join(HERE, 'libnvidia-ml-590-exports.txt'))
    with open(sys.argv[3], encoding='utf-8') as f:
        refused = {n: (how, why) for n, how, why in re.findall(r'^REFUSED\((\w+), (\w+), "(.*)"\)$', f.read(), re.M)}
    print(f'\n## libnvidia-ml.so.1: {len(names)} names\n')
    print(f'{len(names) - len(refused)} answer (`shim/nvml/`; facts about a device by `api/nvml_facts.def`; `tests/nvml/`). The others return:\n')
    print('| name | returns | why |\n|---|---|---|')
    for n in names:
        if n in refused:
            print(f'| `{n}` | `{refused[n][0]}` | {refused[n][1]} |')


main()
