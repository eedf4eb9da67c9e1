#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a client's own pytest modules, each in a process of its own over rgpu: one TAP line a module, then the sums.

usage: run.py KNOWN DIR MODULE… -- COMMAND…
COMMAND, then MODULE, runs one module's tests in DIR. KNOWN names what is not expected to pass, one a line: MODULE::CLASS::TEST, a
tab, the reason (MODULE alone: the module is not run). A failure that is not there fails the module; so does one there that passes.
"""
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

LIMIT_S = 1500  # a module


def read_known(path):
    known = {}
    with open(path) as f:
        for line in f:
            if line.strip() and not line.startswith('#'):
                name, reason = line.rstrip('\n').split('\t')
                known[name] = reason
    return known


def run(module, folder, command):
    """(tests by outcome, None), or (None, why there is no report)."""
    with tempfile.TemporaryDirectory() as tmp:
        report = os.path.join(tmp, 'report.xml')
        p = subprocess.Popen(command + ['--junitxml', report, module], cwd=folder, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace')
        try:
            said, _ = p.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            return None, f'more than {LIMIT_S} s'
        if not os.path.exists(report) or p.returncode not in (0, 1, 5):
            return None, f'status {p.returncode}: ' + ' | '.join(said.splitlines()[-3:])
        outcome = {'passed': {}, 'failed': {}, 'skipped': {}}
        for case in ElementTree.parse(report).iter('testcase'):
            name = module + '::' + '::'.join(case.get('classname', '').split('.')[-1:] + [case.get('name')])
            bad = case.find('failure') if case.find('failure') is not None else case.find('error')
            if bad is not None:
                outcome['failed'][name] = bad.get('message', '').split('\n')[0][:200]
            elif case.find('skipped') is not None:
                outcome['skipped'][name] = case.find('skipped').get('message', '')[:200]
            else:
                outcome['passed'][name] = ''
        return outcome, None


def main():
    cut = sys.argv.index('--')
    known, folder = read_known(sys.argv[1]), sys.argv[2]
    modules, command = sys.argv[3:cut], sys.argv[cut + 1:]
    total = {'passed': 0, 'failed': 0, 'skipped': 0}
    reasons, status = {}, 0
    print(f'1..{len(modules)}')
    for n, module in enumerate(modules, 1):
        if module in known:
            print(f'ok {n} - {module} # SKIP {known[module]}', flush=True)
            continue
        outcome, why = run(module, folder, command)
        if outcome is None:
            print(f'not ok {n} - {module}\n# {why}', flush=True)
            status = 1
            continue
        for kind, tests in outcome.items():
            total[kind] += len(tests)
        for why in outcome['skipped'].values():
            reasons[why] = reasons.get(why, 0) + 1
        fresh = {t: m for t, m in outcome['failed'].items() if t not in known}
        mended = [t for t in outcome['passed'] if t in known]
        counts = ', '.join(f'{len(t)} {kind}' for kind, t in outcome.items())
        print(f"{'not ok' if fresh or mended else 'ok'} {n} - {module}: {counts}", flush=True)
        for t, m in fresh.items():
            print(f'# {t}: {m}')
        for t in mended:
            print(f'# {t} passes, and the list says: {known[t]}')
        status |= bool(fresh or mended)
    print('# in all: ' + ', '.join(f'{v} {k}' for k, v in total.items()))
    for why, k in sorted(reasons.items(), key=lambda r: -r[1]):
        print(f'# skipped, {k}: {why}')
    return status


sys.exit(main())
