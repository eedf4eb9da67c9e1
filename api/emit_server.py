# SPDX-License-Identifier: MIT
"""Emits the server's side: one function a record that believes nothing, the table of them, and the driver's table."""

from emit_common import blob, elem, expr, guard, head, params
from layout import record, reply, wire


def function(table, row, kinds):
    rec, rep = record(row), reply(row)
    handles = [a for a in row.args if a.base == 'kind' and a.dir == 'in']
    new = next((a for a in row.args if a.dir == 'new'), None)
    dead = next((a for a in row.args if a.dir == 'del'), None)
    ptr = f'drv_{table.library}.{row.name}'
    out = [f'static void srv_{row.name}(struct srv_call *c)', '{']
    if rec.size:
        out.append(f'\tstruct rec_{row.name} a;')
    if any(blob(a) for a in row.args):
        out.append(f'\tuint32_t at = {rec.size};')
    for a in handles + [a for a in (new, dead) if a]:
        out.append(f'\tvoid *h_{a.name} = NULL;')
    for a in row.args:
        if a.base == 'str':
            out.append(f'\tconst char *s_{a.name};')
        elif blob(a):
            out.append(f'\tconst void *s_{a.name};')
        elif a.dir == 'out':
            out.append(f'\t{elem(a)[0] if a.base in ("struct",) else c_out(a, kinds)} o_{a.name}{f"[{a.length}]" if a.length else ""} = {{0}};'
                       if a.length else f'\t{c_out(a, kinds)} o_{a.name} = 0;')
        elif a.base == 'result':
            out.append(f'\t{a.param} o_{a.name} = 0;')
    if rep.size:
        out.append(f'\tstruct rep_{row.name} r = {{0}};')
    out.append('')
    if rec.size:
        out += ['\tif (!srv_body(c, &a, sizeof(a)))', '\t\treturn;']
    for a in row.args:
        if a.base == 'str':
            out += [f'\ts_{a.name} = srv_string(c, &at, a.{a.name}_n);', f'\tif (!s_{a.name})', '\t\treturn;']
        elif blob(a):
            out += [f'\tif (a.{a.name}_n != {expr(a.length, "a.")}) {{', '\t\tsrv_fail(c, CUDA_ERROR_INVALID_VALUE);', '\t\treturn;', '\t}',
                    f'\ts_{a.name} = srv_bytes(c, &at, (uint64_t)a.{a.name}_n * {elem(a)[1]});', f'\tif (!s_{a.name})', '\t\treturn;']
    for a in handles:
        out += [f'\tif (!srv_use(c, KIND_{a.param}, a.{a.name}, &h_{a.name}))', '\t\treturn;']
    for a in row.args:
        if 'check' in a.attrs:
            out += [f'\tif (!{expr(a.attrs["check"], "a.")}) {{', '\t\tsrv_fail(c, CUDA_ERROR_INVALID_VALUE);', '\t\treturn;', '\t}']
        if a.dir == 'in' and a.base in ('dptr', 'dev') and 'bytes' in a.attrs:
            out += [f'\tif (!srv_range(c, a.{a.name}, {expr(a.attrs["bytes"], "a.")}))', '\t\treturn;']
        if a.base in ('scalar', 'result'):
            out += [f'\tif (a.{a.name}_dev && !srv_range(c, a.{a.name}, sizeof({a.param})))', '\t\treturn;']
        if a.base == 'result':
            out += [f'\tif (!a.{a.name}_dev && !(c->rec.flags & RGPU_REC_FENCE)) {{', '\t\tsrv_fail(c, CUDA_ERROR_INVALID_VALUE);', '\t\treturn;',
                    '\t}']
    if row.ctx:
        out += ['\tif (!srv_enter(c, a.ctx))', '\t\treturn;']
    if new:
        out += [f'\tif (!srv_fresh(c, KIND_{new.param}, a.{new.name}))', '\t\treturn;']
    have = f'!{ptr}' if table.library == 'cuda' else f'!srv_need_{table.library}() || !{ptr}'
    out += [f'\tif ({have}) {{', '\t\tsrv_fail(c, CUDA_ERROR_NOT_SUPPORTED);', '\t\treturn;', '\t}']
    if dead:
        out += [f'\tif (!srv_take(c, KIND_{dead.param}, a.{dead.name}, &h_{dead.name}))', '\t\treturn;']
    call = []
    for a in row.args:
        if a.base == 'kind':
            ct = kinds[a.param].ctype
            call.append(f'({ct} *)&h_{a.name}' if a.dir == 'new' else f'({ct})h_{a.name}')
        elif a.dir == 'out':
            call.append(f'{"" if a.length else "&"}o_{a.name}')
        elif a.base == 'str':
            call.append(f's_{a.name}')
        elif a.length is not None:
            call.append(f'({elem(a)[0]} *)s_{a.name}')
        elif a.base == 'scalar':
            call.append(f'a.{a.name}_dev ? (const {a.param} *)a.{a.name} : &a.{a.name}_v')
        elif a.base == 'result':
            call.append(f'a.{a.name}_dev ? ({a.param} *)a.{a.name} : &o_{a.name}')
        elif a.base == 'dev':
            call.append(f'({a.param} *)a.{a.name}')
        elif a.base == 'enum':
            call.append(f'({a.param})a.{a.name}')
        else:
            call.append(f'a.{a.name}')
    out.append(f'\tc->status = {ptr}({", ".join(call)});')
    if new:
        out += ['\tif (!c->status)', f'\t\tsrv_put(c, KIND_{new.param}, a.{new.name}, h_{new.name}, {"a.ctx" if row.ctx else "0"});']
    if rep.size:
        for a in row.args:
            if a.dir == 'out' and a.length:
                out += [f'\tfor (int i = 0; i < {a.length}; i++)', f'\t\tr.{a.name}[i] = o_{a.name}[i];']
            elif a.dir == 'out' or a.base == 'result':
                out.append(f'\tr.{a.name} = ({wire(a)[0] if a.dir == "out" else a.param})o_{a.name};')
        out.append('\tsrv_answer(c, &r, sizeof(r));')
    return out + ['}', '']


def c_out(arg, kinds):
    from emit_common import ctype
    return ctype(arg, kinds).rstrip('* ')


def functions(table, kinds):
    header = '<cuda.h>' if table.library == 'cuda' else f'"{table.library}_proto.h"'
    out = head(f'Runs the records of {table.library}', ['"server/call.h"', '"rgpu_ops.h"', '"driver_table.h"'] +
               ([] if table.library in ('cuda', 'rgpu') else [header]))
    gen = [r for r in table.rows if r.op is not None and r.server == 'gen']
    hand = [r for r in table.rows if r.op is not None and r.server == 'hand']
    for row in gen:
        out += function(table, row, kinds)
    out += [f'void srv_{r.name}(struct srv_call *c);' for r in hand]
    top = max((r.id for r in gen + hand), default=0)
    out += ['', f'const srv_fn srv_table_{table.library}[] = {{']
    out += [f'\t[{r.id}] = srv_{r.name},' for r in sorted(gen + hand, key=lambda r: r.id)]
    out += ['};', f'const unsigned srv_table_{table.library}_n = {top + 1};']
    return out


def finder(tables):
    out = head('Finds the function of a record', ['"server/call.h"'])
    for t in tables:
        out += [f'extern const srv_fn srv_table_{t.library}[];', f'extern const unsigned srv_table_{t.library}_n;']
    out += ['', 'srv_fn srv_find(uint16_t op)', '{', '\tunsigned id = op & 0xfff;', '', '\tswitch (op >> 12) {']
    for t in tables:
        out += [f'\tcase {t.number}:', f'\t\treturn id < srv_table_{t.library}_n ? srv_table_{t.library}[id] : NULL;']
    return out + ['\t}', '\treturn NULL;', '}']


def driver_header(tables, kinds):
    out = head('The libraries that the server calls, as tables filled by dlopen',
               ['<stdbool.h>', '<cuda.h>'] + [f'"{t.library}_proto.h"' for t in tables if t.library not in ('cuda', 'rgpu')])
    for t in tables:
        if t.library == 'rgpu':
            continue
        out.append(f'struct driver_{t.library} {{')
        out += [f'\t__typeof__({n}) *{n};' for n, _ in driver_names(t)]
        out += ['};', f'extern struct driver_{t.library} drv_{t.library};']
        if t.library != 'cuda':
            out += ['/* Loads the library when it is first needed; false: there is none. */', f'bool srv_need_{t.library}(void);']
        out.append('')
    return guard('RGPU_GEN_DRIVER_TABLE_H', out)


def driver_names(table):
    names = {r.name: False for r in table.rows if r.op is not None and r.server == 'gen'}
    names.update(dict(table.driver))
    return list(names.items())


def driver_names_inc(table):
    return head(f'Names in {table.library}: X(name, required)') + [f'X({n}, {int(req)})' for n, req in driver_names(table)]


def names(tables):
    out = head('Records by name, for counters and messages', ['"api/names.h"', '"rgpu_ops.h"', '<string.h>'])
    out += ['static const struct {', '\tuint16_t op;', '\tconst char *name;', '} names[] = {']
    out += [f'\t{{ {r.op:#06x}, "{r.name}" }},' for t in tables for r in t.rows if r.op is not None]
    out += ['};', '', 'const char *rgpu_op_name(uint16_t op)', '{',
            '\tfor (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)', '\t\tif (names[i].op == op)',
            '\t\t\treturn names[i].name;', '\treturn NULL;', '}', '',
            'int rgpu_op_find(const char *name)', '{',
            '\tfor (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)', '\t\tif (!strcmp(names[i].name, name))',
            '\t\t\treturn names[i].op;', '\treturn -1;', '}']
    return out
