#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each record's test asserts what the record gives: it fails over a server that spoils the answer or, where there is none, does not do the work.

usage: outputs.py [RECORD…]    those of api/*.api that go to the server; tests/api/outputs.known has those that no test sees
"""
import functools
import os
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, 'api')
from layout import reply, wire  # noqa: E402
from table import Parser  # noqa: E402

BUILD = os.environ.get('B', 'build')
STUCK = 60  # seconds
# Told with an answer, but of another record's: there is text to fetch, there are logs; or of a failure: which node it was.
HINTS = {'text', 'logs', 'bad'}
# The answer has more than its fixed part, or bytes come by segments.
BULK = {'D2H', 'A2H', 'LOAD_TABLE', 'LINK_IMAGE', 'LINK_LOG', 'LOAD_LOG', 'PRINT', 'SHARE_DOWN', 'LOAD_END', 'GRAPH_GET', 'EVENT_WATCH',
        'MEMORY_WATCH', 'STREAM_WATCH'}


def how(row):
    """What the server is told to do wrong."""
    rep = reply(row)
    marks = []
    for f in rep.fields:
        if f.name.startswith('pad') or f.name in HINTS:
            continue
        for i in range(f.count):
            at = f.offset + i * f.size
            marks.append(f'{at + f.size - 1}:128' if f.ctype in ('float', 'double') else f'{at}:1')
    if marks or row.name in BULK:
        return 'give', f'{row.op:#x} give {rep.size} ' + ' '.join(marks[:60])
    return 'skip', f'{row.op:#x} skip {rep.size}'


def end(p):
    """The test, with the server that it started."""
    try:
        os.killpg(p.pid, signal.SIGTERM)
        time.sleep(0.2)
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def lines(p):
    """Of the test's, as they come; raises TimeoutError when there is none for so long that there will be none."""
    text = b''
    while select.select([p.stdout], [], [], STUCK)[0]:
        more = os.read(p.stdout.fileno(), 65536)
        *whole, text = (text + more).split(b'\n')
        yield from (line.decode(errors='replace') for line in whole)
        if not more:
            return
    raise TimeoutError


def failure(test, spoil):
    """How the test fails, or None when it does not."""
    env = dict(os.environ, RGPU_TEST_SERVER=os.path.abspath(f'{BUILD}/tests/spoiled-server'), **spoil)
    p = subprocess.Popen([f'{BUILD}/tests/api-{test}'], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        for line in lines(p):
            if re.match(r'not ok|Bail out', line) and '# TODO' not in line:
                return line.strip()
        code = p.wait()
        return f'exit status {code}' if code else None
    except TimeoutError:
        return f'nothing for {STUCK} s: it waits for ever'
    finally:
        end(p)
        p.wait()


@functools.cache
def fails_anyhow(test):
    return failure(test, {})


def main():
    kinds, rows = {}, []
    for path in ('api/cuda.api', 'api/cublas.api', 'api/rgpu.api'):
        rows += [r for r in Parser(path, kinds, None).parse().rows if r.op is not None]
    with open('tests/api/outputs.known', encoding='utf-8') as f:
        known = dict(line.rstrip('\n').split('\t', 1) for line in f if line.strip() and not line.startswith('#'))
    asked = [r for r in rows if not sys.argv[1:] or r.name in sys.argv[1:]]
    failed = False
    print(f'1..{len(asked)}', flush=True)
    for i, row in enumerate(asked):
        kind, spoil = how(row)
        begin = time.monotonic()
        anyhow = fails_anyhow(row.test)
        said = failure(row.test, {'RGPU_TEST_SPOIL': spoil})
        good = not anyhow and (said is not None or row.name in known)
        failed |= not good
        print(f'{"ok" if good else "not ok"} {i + 1} - {row.name}: {row.test} notices ' +
              ('a wrong answer' if kind == 'give' else 'that it was not done') +
              (f' # SKIP {known[row.name]}' if said is None and good else ''))
        if anyhow:
            print(f'# it fails anyhow: {anyhow}')
        print(f'# {said or "nothing"}, {time.monotonic() - begin:.1f} s', flush=True)
    sys.exit(failed)


main()
