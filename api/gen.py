#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates C from the API tables: record layouts, the client's functions, the server's dispatch, stubs and name tables.

usage: gen.py --out DIR [--tests DIR] TABLE.api …     everything that the tables say
       gen.py --lock TABLE.api …                      the layouts, to compare with layout.lock or to append to it
       gen.py --stubs FILE.c --exports LIST --done LIST [--call FUNCTION]
                                                      a stub for each name of the first list that the second lacks
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import emit_client  # noqa: E402
import emit_server  # noqa: E402
import layout  # noqa: E402
import procaddr  # noqa: E402
from emit_common import guard, head  # noqa: E402
from table import Parser, Refused  # noqa: E402


def read_tables(paths, tests):
    kinds, tables = {}, []
    for path in paths:
        t = Parser(path, kinds, tests).parse()
        for other in tables:
            if other.number == t.number or other.library == t.library:
                raise Refused(f'{path}:1: library {t.library} ({t.number}) is that of {other.path}')
        tables.append(t)
    return tables, kinds


def ops_header(tables, kinds):
    out = head('The records: their numbers and layouts', ['<stddef.h>', '<stdint.h>'])
    out += ['/* A number of any type in 128 bits; beyond 63 bits it is more than any range has. */',
            'static inline __int128 rgpu_wide(__int128 x)', '{', '\treturn x > INT64_MAX ? (__int128)INT64_MAX : x;', '}', '']
    out += ['enum rgpu_kind {'] + [f'\tKIND_{k.name} = {k.number},' for k in kinds.values()] + ['\tKIND_MAX = 32', '};', '']
    out += ['enum rgpu_op {'] + [f'\tOP_{r.name} = {r.op:#06x},' for t in tables for r in t.rows if r.op is not None] + ['};', '']
    out += [f'#define RGPU_SENTINELS_{k.name} {k.sentinels}' for k in kinds.values()] + ['']
    for t in tables:
        for row in t.rows:
            if row.op is not None:
                out += layout.declare(row)
    return guard('RGPU_GEN_OPS_H', out)


def symbols(table):
    """Every name that the library exports because of its table, `never` ones aside."""
    for r in table.rows:
        if r.client != 'none':
            yield r.name
            if r.variant:
                yield f'{r.name}_{r.variant}'
    for a in table.aliases:
        yield a.name


def read_list(path):
    with open(path, encoding='utf-8') as f:
        return [w for line in f for w in line.split('#', 1)[0].split()]


def stubs(names, never, call, absent={}):
    """Functions that say once what is missing, or give what a device without the feature gives. Arguments are not looked at."""
    out = head('Names that are exported and not supported yet')
    out += [f'int {call}(const char *name, const char *reason);']
    if absent:
        out += [f'int rgpu_absent_{status}(void);' for status in sorted(set(absent.values()))] + ['']
    for n in names:
        if n in absent:
            out.append(f'__attribute__((visibility("default"))) int {n}(void);')
            out.append(f'int {n}(void) {{ return rgpu_absent_{absent[n]}(); }}')
            continue
        reason = f'"{never[n]}"' if n in never else '(void *)0'
        out.append(f'__attribute__((visibility("default"))) int {n}(void) {{ return {call}("{n}", {reason}); }}')
    return out


def write(path, lines):
    text = '\n'.join(lines) + '\n'
    try:
        with open(path, encoding='utf-8') as f:
            if f.read() == text:
                os.utime(path)
                return
    except FileNotFoundError:
        pass
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def generate(args):
    here = os.path.dirname(os.path.abspath(__file__))
    tests = None
    if args.tests:
        # FILE of that folder, or DIR/FILE beside it.
        tests = {os.path.splitext(f)[0] for _, _, files in os.walk(args.tests) for f in files}
        above = os.path.dirname(os.path.normpath(args.tests))
        tests |= {f'{d}/{os.path.splitext(f)[0]}' for d in ('fidelity', 'e2e') if os.path.isdir(os.path.join(above, d))
                  for f in os.listdir(os.path.join(above, d))}
    tables, kinds = read_tables(args.tables, tests)
    if args.lock:
        for t in tables:
            print('\n'.join(layout.lock_lines(t)))
        return
    os.makedirs(args.out, exist_ok=True)

    def put(name, lines):
        write(os.path.join(args.out, name), lines)

    put('rgpu_ops.h', ops_header(tables, kinds))
    put('rgpu_rpc.h', emit_client.rpc_header(tables, kinds))
    put('op_names.c', emit_server.names(tables))
    put('driver_table.h', emit_server.driver_header(tables, kinds))
    put('srv_find.c', emit_server.finder(tables))
    for t in tables:
        put(f'srv_{t.library}.c', emit_server.functions(t, kinds))
        if t.library == 'rgpu':
            continue
        put(f'driver_{t.library}.inc', emit_server.driver_names_inc(t))
        header = '"shim/cuda_api.h"' if t.library == 'cuda' else f'"shim/{t.library}_api.h"'
        if t.library != 'cuda':
            put(f'{t.library}_proto.h', emit_client.prototypes(t, kinds))
        put(f'client_{t.library}.c', emit_client.functions(t, kinds, header, 'rgpu_rpc.h'))
        exports = os.path.join(here, f'lib{t.library}-13.0-exports.txt')
        if os.path.exists(exports):
            names = read_list(exports)
            mine = set(symbols(t))
            unknown = sorted((mine | {n for n, _ in t.never} | {a[0] for a in t.absent}) - set(names))
            if unknown:
                raise Refused(f'{t.path}:{t.names.get(unknown[0], 1)}: {unknown[0]} is not in {os.path.basename(exports)}')
            put(f'stubs_{t.library}.c', stubs([n for n in names if n not in mine], dict(t.never), 'rgpu_unsupported',
                                                  {a[0]: a[1] for a in t.absent}))
            put(f'absent_{t.library}.inc', [f'{{ "{a[0]}", CUDA_ERROR_{a[1]} }},' for a in t.absent] +
                [f'{{ "{n}", CUDA_ERROR_NOT_SUPPORTED }},' for n, _ in t.never])
            if t.library == 'cuda':
                put('procaddr_table.c', procaddr.emit(os.path.join(here, 'procaddr.tsv'), names))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--out')
    p.add_argument('--tests')
    p.add_argument('--lock', action='store_true')
    p.add_argument('--stubs')
    p.add_argument('--exports')
    p.add_argument('--done')
    p.add_argument('--call', default='rgpu_unsupported')
    p.add_argument('tables', nargs='*')
    args = p.parse_args()
    try:
        if args.stubs:
            if not args.exports or not args.done:
                p.error('--stubs wants --exports and --done')
            done = set(read_list(args.done))
            write(args.stubs, stubs([n for n in read_list(args.exports) if n not in done], {}, args.call))
        elif args.tables and (args.out or args.lock):
            generate(args)
        else:
            p.error('want tables, and --out or --lock')
    except Refused as e:
        print(e, file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
