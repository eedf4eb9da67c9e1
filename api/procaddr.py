# SPDX-License-Identifier: MIT
"""Reads procaddr.tsv and emits the table behind cuGetProcAddress: name, version, per-thread variant, symbol."""

from emit_common import head
from table import Refused


def read(path, exports):
    rows, seen = [], {}
    with open(path, encoding='utf-8') as f:
        for n, line in enumerate(f, 1):
            line = line.split('#', 1)[0].rstrip('\n')
            if not line.strip():
                continue
            parts = line.split('\t')
            if len(parts) != 4 or not parts[1].isdigit() or parts[2] not in '01':
                raise Refused(f'{path}:{n}: want NAME, VERSION, 0 or 1, SYMBOL with tabs between')
            if parts[3] not in exports:
                raise Refused(f'{path}:{n}: {parts[3]} is not exported')
            key = tuple(parts[:3])
            if key in seen:
                raise Refused(f'{path}:{n}: {" ".join(key)} is there already, in line {seen[key]}')
            seen[key] = n
            rows.append((parts[0], int(parts[1]), int(parts[2]), parts[3]))
    return sorted(rows, key=lambda r: (r[0], r[2], r[1]))


def emit(path, exports):
    rows = read(path, set(exports))
    out = head('The table behind cuGetProcAddress, sorted by name, variant and version', ['"shim/procaddr.h"'])
    out += [f'int {s}(void);' for s in sorted({r[3] for r in rows})]
    out += ['', 'const struct rgpu_procaddr rgpu_procaddr[] = {']
    out += [f'\t{{ "{n}", {v}, {p}, {s} }},' for n, v, p, s in rows]
    return out + ['};', f'const unsigned rgpu_procaddr_n = {len(rows)};']
