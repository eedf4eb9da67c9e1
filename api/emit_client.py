# SPDX-License-Identifier: MIT
"""Emits the client's side: rpc_NAME() that writes one record (and reads its reply), and the exported functions around it."""

from emit_common import blob, ctype, elem, expr, guard, head, params
from table import SCALARS
from layout import record, reply, wire


def rpc_params(row):
    out = ['struct rgpu_call *c']
    for a in row.args:
        if a.dir == 'out':
            out.append(f'{wire(a)[0]} *{a.name}')
        elif a.base == 'str':
            out.append(f'const char *{a.name}')
        elif a.length is not None:
            out += [f'const {elem(a)[0] if a.base == "struct" else SCALARS[a.base][0]} *{a.name}', f'uint32_t {a.name}_n']
        elif a.base == 'scalar':
            out += [f'uint64_t {a.name}', f'{a.param} {a.name}_v', f'bool {a.name}_dev']
        elif a.base == 'result':
            out += [f'uint64_t {a.name}', f'bool {a.name}_dev', f'{a.param} *{a.name}_host']
        else:
            out.append(f'{wire(a)[0]} {a.name}')
    return ', '.join(out)


def rpc(row):
    rec, rep = record(row), reply(row)
    result = next((a for a in row.args if a.base == 'result'), None)
    blobs = [a for a in row.args if blob(a)]
    fence = row.mode == 'fence'
    out = [f'static inline int rpc_{row.name}({rpc_params(row)})', '{']
    for a in blobs:
        if a.base == 'str':
            out.append(f'\tsize_t {a.name}_bytes = strlen({a.name}) + 1;')
        else:
            out.append(f'\tsize_t {a.name}_bytes = (size_t){a.name}_n * {elem(a)[1]};')
    size = f'sizeof(struct rec_{row.name})' if rec.size else '0'
    for a in blobs:
        size += f' + RGPU_ALIGN8({a.name}_bytes)'
    flag = 'RGPU_REC_FENCE' if fence else '0'
    if result:
        flag = f'{result.name}_dev ? 0 : RGPU_REC_FENCE'
    if rec.size:
        out.append(f'\tstruct rec_{row.name} *b;')
    if blobs:
        out.append('\tuint8_t *at;')
    if rep.size:
        out.append(f'\tstruct rep_{row.name} reply;')
    if fence:
        out.append('\tint r;')
    out.append('')
    for a in row.args:
        if a.dir == 'out' and not a.length:
            out.append(f'\t*{a.name} = 0;')
    out.append(f'\tc->mute = {"true" if row.mute else "false"};')
    if rec.size:
        out += [f'\tb = rgpu_begin(c, {flag}, 0, {size});', '\tif (!b)', '\t\treturn c->status;',
                f'\t*b = (struct rec_{row.name}){{']
        for f in rec.fields:
            if f.name.startswith('pad'):
                continue
            if f.name == 'ctx':
                value = 'c->ctx'
            elif f.name.endswith('_n') and any(f.name == f'{a.name}_n' for a in blobs):
                a = next(a for a in blobs if f.name == f'{a.name}_n')
                value = f'(uint32_t){a.name}_bytes' if a.base == 'str' else f.name
            else:
                value = f.name
            out.append(f'\t\t.{f.name} = {value},')
        out.append('\t};')
    else:
        out += [f'\tif (!rgpu_begin(c, {flag}, 0, 0))', '\t\treturn c->status;']
    if blobs:
        out.append('\tat = (uint8_t *)(b + 1);')
    for i, a in enumerate(blobs):
        out.append(f'\tmemcpy(at, {a.name}, {a.name}_bytes);')
        if i + 1 < len(blobs):
            out.append(f'\tat += RGPU_ALIGN8({a.name}_bytes);')
    if result:
        out += [f'\tif ({result.name}_dev)', '\t\treturn rgpu_send(c);']
    if not fence:
        out.append('\treturn rgpu_send(c);')
    else:
        out.append(f'\tr = rgpu_fence(c, {"&reply, sizeof(reply)" if rep.size else "NULL, 0"});')
        if rep.size:
            out += ['\tif (r)', '\t\treturn r;']
            if result:
                out.append(f'\t*{result.name}_host = reply.{result.name};')
            for a in row.args:
                if a.dir == 'out' and a.length:
                    out.append(f'\tmemcpy({a.name}, reply.{a.name}, sizeof(reply.{a.name}));')
                elif a.dir == 'out':
                    out.append(f'\t*{a.name} = reply.{a.name};')
            out.append('\treturn 0;')
        else:
            out.append('\treturn r;')
    return out + ['}', '']


def field(kinds, row, ref):
    handle, _, name = ref.partition('.')
    return f'obj_{handle}->field[{kinds[row.arg(handle).param].fields.index(name)}]'


def stream_of(row, kinds):
    """The C expression of the stream's wire name that the row gives work, or None: an argument, or what a handle keeps."""
    if row.mode == 'local' or not row.stream:
        return None
    for a in row.args:
        if a.base == 'kind' and a.dir == 'in' and a.param == 'stream' and 'keep' not in a.attrs:
            return f'w_{a.name}'
    for a in row.args:
        if a.base == 'kind' and a.dir == 'in' and 'stream' in kinds[a.param].fields and \
                not any('keep' in b.attrs for b in row.args):
            return f'obj_{a.name}->field[{kinds[a.param].fields.index("stream")}]'
    return None


def exported(table, row, kinds):
    """The function that programs call: checks what can be checked here, then rpc_NAME()."""
    handles = [a for a in row.args if a.base == 'kind' and a.dir in ('in', 'del')]
    new = next((a for a in row.args if a.dir == 'new'), None)
    dead = next((a for a in row.args if a.dir == 'del'), None)
    out = [f'static inline {table.status} do_{row.name}({params(row, kinds)})', '{', '\tstruct rgpu_call c;']
    for a in handles + ([new] if new else []):
        out += [f'\tstruct rgpu_obj *obj_{a.name} = NULL;', f'\tuint64_t w_{a.name} = 0;']
    for a in row.args:
        if a.dir == 'out' and row.mode != 'local':
            out.append(f'\t{wire(a)[0]} o_{a.name}{f"[{a.length}]" if a.length else ""};')
        if a.base in ('scalar', 'result'):
            out.append(f'\tbool dev_{a.name};')
    out += ['\tint r;', '', f'\tr = rgpu_enter(&c, {f"OP_{row.name}" if row.op is not None else "RGPU_NO_OP"});']
    nulls = [a.name for a in row.args if a.dir in ('out', 'new') or a.base in ('str', 'scalar', 'result')]
    if nulls:
        out.append(f'\tif (!r && ({" || ".join(f"!{n}" for n in nulls)}))')
        out.append('\t\tr = CUDA_ERROR_INVALID_VALUE;')
    for a in handles:
        adopt = 'true' if row.ctx_arg == a.name else 'false'
        out += ['\tif (!r)', f'\t\tr = rgpu_use(&c, KIND_{a.param}, {a.name}, {adopt}, &w_{a.name}, &obj_{a.name});']
    if row.same_arg:
        out += [f'\tif (!r && obj_{row.same_arg}->context != c.context)', '\t\tr = CUDA_ERROR_INVALID_HANDLE;']
    for a in row.args:
        if 'check' in a.attrs:
            out += [f'\tif (!r && !{expr(a.attrs["check"])})', '\t\tr = CUDA_ERROR_INVALID_VALUE;']
        if a.base in ('dptr', 'dev') and a.dir == 'in' and 'bytes' in a.attrs:
            out += ['\tif (!r)', f'\t\tr = rgpu_check_range(&c, (uint64_t){a.name}, {expr(a.attrs["bytes"])});']
        if blob(a) and a.length is not None:
            out += [f'\tif (!r && (!{a.name} || {expr(a.length)} < 0 || {expr(a.length)} > RGPU_REC_MAX))',
                    '\t\tr = CUDA_ERROR_INVALID_VALUE;']
    stream = stream_of(row, kinds)
    if stream:
        out += ['\tif (!r)', f'\t\tr = rgpu_capture(&c, {stream});']
        if row.capture:
            given = ''.join(f', {a.name}' for a in row.args)
            out += ['\tif (!r && c.capturing)', f'\t\treturn RESULT(&c, {row.capture}(&c{given}));']
        elif row.mode == 'fence' or any(a.base == 'result' for a in row.args):
            out += ['\tif (!r && c.capturing)', '\t\tr = rgpu_capture_refuse(&c);']
    if new:
        out += ['\tif (!r)', f'\t\tr = rgpu_mint(&c, KIND_{new.param}, &w_{new.name}, &obj_{new.name});']
    out += ['\tif (r)', '\t\treturn RESULT(&c, r);']
    for a in row.args:
        if a.base in ('scalar', 'result'):
            out.append(f'\tdev_{a.name} = {field(kinds, row, a.attrs["mode"])} != 0;')
    call = ['&c']
    for a in row.args:
        if row.mode == 'local':
            break
        if a.dir == 'out':
            call.append(f'{"" if a.length else "&"}o_{a.name}')
        elif a.base == 'kind':
            call.append(f'w_{a.name}')
        elif a.base == 'scalar':
            call += [f'dev_{a.name} ? (uint64_t){a.name} : 0', f'dev_{a.name} ? 0 : *{a.name}', f'dev_{a.name}']
        elif a.base == 'result':
            call += [f'dev_{a.name} ? (uint64_t){a.name} : 0', f'dev_{a.name}', a.name]
        elif a.base == 'dev':
            call.append(f'(uint64_t){a.name}')
        elif a.length is not None:
            call += [a.name, f'(uint32_t){expr(a.length)}']
        else:
            call.append(a.name)
    fragment = stream and not row.capture and row.mode == 'quiet'
    if fragment:
        out += ['\tif (c.capturing) {', '\t\tr = rgpu_fragment_begin(&c);', '\t\tif (r)', '\t\t\treturn RESULT(&c, r);', '\t}']
    if row.mode != 'local':
        out.append(f'\tr = rpc_{row.name}({", ".join(call)});')
        if fragment:
            out += ['\tif (c.capturing)', '\t\tr = rgpu_fragment_end(&c, r);']
        if new:
            out += ['\tif (r) {', f'\t\trgpu_retire(obj_{new.name});', '\t\treturn RESULT(&c, r);', '\t}']
        if dead:
            out += [f'\tif (c.sent)', f'\t\trgpu_retire(obj_{dead.name});']
        if any(a.dir == 'out' for a in row.args) or (any('keep' in a.attrs for a in row.args) and not new):
            out += ['\tif (r)', '\t\treturn RESULT(&c, r);']
    for a in row.args:
        if 'keep' in a.attrs:
            value = f'w_{a.name}' if a.base == 'kind' else a.name
            out.append(f'\t{field(kinds, row, a.attrs["keep"])} = (uint64_t){value};')
        if 'from' in a.attrs:
            cast = ctype(a, kinds)[:-1].strip()
            out.append(f'\t*{a.name} = ({cast})(uintptr_t){field(kinds, row, a.attrs["from"])};')
        elif a.dir == 'out' and a.length:
            out.append(f'\tmemcpy({a.name}, o_{a.name}, sizeof(o_{a.name}));')
        elif a.dir == 'out':
            out.append(f'\t*{a.name} = o_{a.name};')
    if new:
        out.append(f'\t*{new.name} = ({kinds[new.param].ctype})(uintptr_t)w_{new.name};')
    out += ['\treturn RESULT(&c, r);', '}', '']
    names = ', '.join(a.name for a in row.args)
    out += [f'{table.status} {row.name}({params(row, kinds)})', '{', f'\treturn do_{row.name}({names});', '}', '']
    if row.variant:
        per_thread = ', '.join(f'{a.name} ? {a.name} : ({kinds[a.param].ctype})2'
                               if a.base == 'kind' and kinds[a.param].sentinels and a.dir == 'in' else a.name for a in row.args)
        out += [f'{table.status} {row.name}_{row.variant}({params(row, kinds)})', '{', f'\treturn do_{row.name}({per_thread});', '}', '']
    for al in table.aliases:
        if al.row is not row:
            continue
        rest = ', '.join(f'{ctype(a, kinds)}{a.name}' for a in row.args if a.name not in al.fixed) or 'void'
        values = ', '.join(f'({ctype(a, kinds).strip()}){al.fixed[a.name]}' if a.name in al.fixed else a.name for a in row.args)
        call = f'do_{row.name}({values})'
        if al.settles:
            call = f'rgpu_settle({call}, {al.settles}, {al.fixed[row.ctx_arg]})'
        out += [f'{table.status} {al.name}({rest})', '{', f'\treturn {call};', '}', '']
    return out


def rpc_header(tables, kinds):
    out = head('One function a record: encodes the call, and decodes the reply of a fence',
               ['<stdbool.h>', '<string.h>', '"shim/call.h"', '"rgpu_ops.h"'])
    for t in tables:
        for row in t.rows:
            if row.op is not None and row.client != 'none':
                out += rpc(row)
    return guard('RGPU_GEN_RPC_H', out)


def prototypes(table, kinds):
    """Of a library whose own header we do not include."""
    out = head(f'The functions of {table.library}', [f'"api/{table.library}_types.h"'])
    for row in table.rows:
        out.append(f'{table.status} {row.name}({params(row, kinds)});')
    return guard(f'RGPU_GEN_{table.library.upper()}_H', out)


def functions(table, kinds, api_header, rpc_header_name):
    out = head(f'The exported functions of {table.library}', [api_header, f'"{rpc_header_name}"'])
    for name in sorted({r.capture for r in table.rows if r.capture}):
        row = next(r for r in table.rows if r.capture == name)
        out.append(f'int {name}(struct rgpu_call *c, {params(row, kinds)});')
    out.append('')
    for row in table.rows:
        if row.client == 'gen':
            out += exported(table, row, kinds)
    return out
