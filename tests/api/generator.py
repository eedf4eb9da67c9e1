#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TAP: the generator refuses what it does not understand, with the line; and layouts that were released never change."""

import argparse
import os
import sys
import tempfile

# Runs from the top of the tree.
sys.dont_write_bytecode = True
sys.path.insert(0, 'api')
import gen  # noqa: E402
import layout  # noqa: E402
from table import Refused  # noqa: E402

TABLES = ['api/cuda.api', 'api/cublas.api', 'api/rgpu.api']
tests = failed = 0


def ok(good, what, more=''):
    global tests, failed
    tests += 1
    failed += not good
    print(f'{"" if good else "not "}ok {tests} - {what}')
    if not good and more:
        print('\n'.join('# ' + line for line in more.splitlines()))


HEAD = 'library cuda 0 CUresult\nkind stream CUstream 2 sentinels(3) fields(flags, priority)\nkind event CUevent 3\n'


def generate(text):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, 't.api')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        os.mkdir(os.path.join(d, 'tests'))
        open(os.path.join(d, 'tests', 'some.c'), 'w', encoding='utf-8').close()
        try:
            gen.generate(argparse.Namespace(out=os.path.join(d, 'out'), tests=os.path.join(d, 'tests'), tables=[path], lock=False))
            return 0, ''
        except Refused as e:
            return 1, str(e).replace(path, 't.api')


def refused(what, row, why, line=4):
    rc, err = generate(HEAD + row + '\n')
    ok(rc != 0 and f't.api:{line}: ' in err and why in err, f'refused: {what}', f'{rc}: {err}')


rc, err = generate(HEAD + 'row 1 cuStreamWaitEvent quiet ptsz ctx=hStream (stream hStream, event hEvent, u32 Flags) test some\n')
ok(rc == 0, 'a good row passes', err)
refused('an unknown statement', 'line 1 cuX quiet () test some', 'unknown statement')
refused('an unknown mode', 'row 1 cuEventRecord loud (event e) test some', 'unknown mode "loud"')
refused('an unknown option', 'row 1 cuEventRecord quiet maybe (event e) test some', 'unknown option "maybe"')
refused('an unknown type', 'row 1 cuEventRecord quiet (evnt e) test some', 'unknown type "evnt"')
refused('an argument that is none', 'row 1 cuEventRecord quiet (event) test some', 'is not understood')
refused('an unknown attribute', 'row 1 cuEventRecord quiet (u32 x big=1) test some', '"big=1"')
refused('an empty attribute', 'row 1 cuEventRecord quiet (u32 x keep=) test some', '"keep="')
refused('an attribute said twice', 'row 1 cuEventRecord quiet (u32 x check=(x) check=(x)) test some', 'said twice')
refused('an out value of a quiet row', 'row 1 cuEventRecord quiet (event e, out u32 x) test some', 'quiet row has no out values')
refused('a length that names nothing', 'row 1 cuEventRecord quiet (in u32 x[m]) test some', 'uses "m"')
refused('a length that is no expression', 'row 1 cuEventRecord quiet (u32 n, in u32 x[n; n]) test some', 'is no expression')
refused('bytes behind a scalar', 'row 1 cuEventRecord quiet (u32 n, u32 x bytes=(n)) test some', 'bytes= is for device addresses')
refused('a field that the handle lacks', 'row 1 cuEventRecord quiet (stream s, u32 x keep=s.colour) test some', 'one of its fields')
refused('a scalar without its mode', 'row 1 cuEventRecord quiet (stream s, scalar:float a) test some', 'wants mode=')
refused('two new handles', 'row 1 cuEventRecord quiet (new stream s, new event e) test some', 'at most one')
refused('a number that is taken', 'row 1 cuEventRecord quiet (event e) test some\nrow 1 cuEventQuery fence (event e) test some', 'ID 1 belongs to', 5)
refused('a name that is taken', 'row 1 cuEventRecord quiet (event e) test some\nrow 2 cuEventRecord quiet (event e) test some', 'is there already', 5)
refused('a local row with a number', 'row 1 cuEventQuery local (event e) test some', 'a local row has the ID -')
refused('a forwarded row without', 'row - cuEventQuery fence (event e) test some', 'a local row has the ID -')
refused('a local row without an answer', 'row - cuEventQuery local (event e) test some', 'answers from= fields')
refused('a row without a test', 'row 1 cuEventQuery fence (event e)', 'want "row')
refused('a test that is not there', 'row 1 cuEventQuery fence (event e) test none', 'there is no test "none"')
refused('a per-thread variant of nothing', 'row 1 cuEventQuery fence ptsz (event e) test some', 'wants a stream argument')
refused('an alias of nothing', 'alias cuX of cuY (a=1)', 'is no row above')
refused('an alias that fixes nothing', 'row 1 cuEventQuery fence (event e) test some\nalias cuEventRecord of cuEventQuery (f=1)', 'want ARG=NUMBER', 5)
refused('a name that is not exported', 'row 1 cuNothing quiet (event e) test some', 'is not in libcuda-13.0-exports.txt')
refused('a reason that is missing', 'never cuEventQuery', 'because')
refused('a kind that is there', 'kind event CUevent 4', 'is there already')
rc, err = generate('  row 1 x quiet () test some\n')
ok(rc != 0 and 't.api:1: continues no statement' in err, 'refused: a line that continues nothing', err)
rc, err = generate('row 1 x quiet () test some\n')
ok(rc != 0 and 't.api:1: the first statement must be "library"' in err, 'refused: a row before the library', err)

# Layouts: what was released stays, and what is new is written down.
now = [line for t in gen.read_tables(TABLES, None)[0] for line in layout.lock_lines(t)]
with open('api/layout.lock', encoding='utf-8') as f:
    lock = [line.rstrip('\n') for line in f if not line.startswith('#')]
gone = [line for line in lock if line not in now]
new = [line for line in now if line not in lock]
ok(not gone, 'every layout that was released is there unchanged', '\n'.join(gone))
ok(not new, 'every layout is in api/layout.lock (api/gen.py --lock api/*.api lists them: append the new ones)', '\n'.join(new))
ops = [line.split()[0] for line in now]
ok(len(set(ops)) == len(ops), 'no number is used twice')
print(f'1..{tests}')
sys.exit(failed > 0)
