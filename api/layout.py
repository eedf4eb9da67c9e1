# SPDX-License-Identifier: MIT
"""Where each argument lies in a record's body and in a reply's: natural alignment, in the order of the table."""

from table import CSCALARS, SCALARS


class Field:
    def __init__(self, name, ctype, size, count=1):
        self.name, self.ctype, self.size, self.count = name, ctype, size, count
        self.offset = None

    def declare(self):
        return f'{self.ctype} {self.name}' + (f'[{self.count}]' if self.count > 1 else '')


class Layout:
    def __init__(self):
        self.fields = []        # with pads
        self.size = 0
        self.align = 1

    def add(self, field):
        at = -(-self.size // field.size) * field.size
        if at != self.size:
            pad = Field(f'pad{self.size}', 'uint8_t', 1, at - self.size)
            pad.offset = self.size
            self.fields.append(pad)
        field.offset = at
        self.size = at + field.size * field.count
        self.align = max(self.align, field.size)
        self.fields.append(field)

    def close(self):
        end = -(-self.size // 8) * 8
        if end != self.size:
            pad = Field(f'pad{self.size}', 'uint8_t', 1, end - self.size)
            pad.offset = self.size
            self.fields.append(pad)
            self.size = end
        return self


def wire(arg):
    """(C type, size) of one value on the wire."""
    if arg.base in SCALARS:
        return SCALARS[arg.base][0], SCALARS[arg.base][2]
    if arg.base == 'enum':
        return 'int32_t', 4
    return 'uint64_t', 8        # handles and addresses


def record(row):
    out = Layout()
    if row.ctx:
        out.add(Field('ctx', 'uint64_t', 8))
    for a in row.args:
        if a.dir == 'out':
            continue
        if a.base == 'str' or a.length is not None:
            out.add(Field(f'{a.name}_n', 'uint32_t', 4))
            continue
        ctype, size = wire(a)
        out.add(Field(a.name, ctype, size))
        if a.base == 'scalar':
            out.add(Field(f'{a.name}_v', a.param, CSCALARS[a.param]))
        if a.base in ('scalar', 'result'):
            out.add(Field(f'{a.name}_dev', 'uint8_t', 1))
    return out.close()


def reply(row):
    out = Layout()
    for a in row.args:
        if a.base == 'result':
            out.add(Field(a.name, a.param, CSCALARS[a.param]))
        if a.dir == 'out' and row.mode != 'local':
            ctype, size = wire(a)
            out.add(Field(a.name, ctype, size, int(a.length or 1)))
    return out.close()


def lock_lines(table):
    """One line for each record of a table: what may never change once it was released."""
    for row in table.rows:
        if row.op is None:
            continue
        rec, rep = record(row), reply(row)

        def text(lay):
            return f'{lay.size}:' + ','.join(f'{f.name}@{f.offset}' for f in lay.fields if not f.name.startswith('pad'))
        yield f'{row.op:#06x} {row.name} {text(rec)} {text(rep)}'


def declare(row):
    """C structures of the row with the assertions that hold them."""
    lines = []
    for prefix, lay in (('rec', record(row)), ('rep', reply(row))):
        if not lay.size:
            continue
        lines.append(f'struct {prefix}_{row.name} {{')
        lines += [f'\t{f.declare()};' for f in lay.fields]
        lines.append('};')
        lines.append(f'_Static_assert(sizeof(struct {prefix}_{row.name}) == {lay.size}, "{row.name}");')
        lines += [f'_Static_assert(offsetof(struct {prefix}_{row.name}, {f.name}) == {f.offset}, "{row.name}");'
                  for f in lay.fields if not f.name.startswith('pad')]
    return lines
