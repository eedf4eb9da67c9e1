# SPDX-License-Identifier: MIT
"""Reads an API table (*.api) into rows, and refuses every line that it does not fully understand.

A table is text, one statement a logical line; a line that begins with a blank continues the one before, # begins a comment.

    library NAME NUMBER STATUS         op ids are NUMBER << 12 | id; STATUS is the C type that its functions return
    kind NAME CTYPE NUMBER [sentinels(N)] [fields(A, B)]
                                       a handle: values 0 … N − 1 are no handles but names of the API (NULL, legacy …);
                                       fields are words that the client keeps with it
    row ID NAME MODE [OPTIONS] (ARGS) test TEST
    alias NAME of ROW (ARG=VALUE, …) [settles ARG]
                                       one more symbol: ROW with an argument fixed to a constant; when the program itself can look at
                                       ARG, it waits for the stream (rgpu_settle)
    driver NAME …                      also wanted from the driver, for hand-written server code
    driver? NAME …                     the same, NULL where a driver lacks it
    never NAME because "REASON"        can never be forwarded

MODE is quiet (issued, nobody waits), fence (waits for the reply), local (answered on the client: no record, ID is -).
OPTIONS: client=hand (the exported function is hand-written), client=none (so is what writes the record), server=hand; noctx
(the record names no context); mute (the call does not return failures of earlier quiet ones, nor do those that make or end a
handle: what they return must be about themselves);
capture=FUNCTION (on a stream that captures, that function of the client takes the call's place; without it a quiet record is captured by
the server's driver, and a fence is refused), nostream (it gives its stream no work);
ctx=ARG (the call belongs to that handle's context, else to the current one); same=ARG (that handle must be of it); ptsz, ptds (a second symbol with that ending,
for which stream 0 is the per-thread default stream).

ARGS: [new|del|out|in] TYPE NAME[[LENGTH]] [keep=HANDLE.FIELD] [from=HANDLE.FIELD] [bytes=(EXPR)] [check=(EXPR)] [mode=HANDLE.FIELD]
    u8 u16 u32 u64 i32 i64 f32 f64 size, enum:CTYPE      scalars; `size` is size_t
    KIND                    a handle; `new` is minted by the client and passed back by pointer, `del` dies with the call
    dptr, dev:CTYPE         a device address, as CUdeviceptr or as a typed pointer; bytes= is what must lie behind it
    scalar:CTYPE            a value on the host (the field mode= is 0), or its device address
    result:CTYPE            a value returned to the host (the field mode= is 0: a fence), or to a device address (quiet)
    check=                  an expression that must hold, else INVALID_VALUE at the call
    str                     a NUL-terminated string
    struct:CTYPE:SIZE       a C structure of that size; in arrays
    `in TYPE NAME[LENGTH]`  an array; LENGTH is an expression of arguments and constants
    `out TYPE NAME[N]`      an array of a constant length
"""

import re

SCALARS = {  # wire type, C type, size
    'u8': ('uint8_t', 'unsigned char', 1),
    'u16': ('uint16_t', 'unsigned short', 2),
    'u32': ('uint32_t', 'unsigned int', 4),
    'u64': ('uint64_t', 'cuuint64_t', 8),
    'i32': ('int32_t', 'int', 4),
    'i64': ('int64_t', 'long long', 8),
    'f32': ('float', 'float', 4),
    'f64': ('double', 'double', 8),
    'size': ('uint64_t', 'size_t', 8),
}
CSCALARS = {'float': 4, 'double': 8, 'int': 4}  # what dev:, scalar: and result: may name
MODES = ('quiet', 'fence', 'local')
NAME = re.compile(r'[A-Za-z_]\w*$')
C_WORDS = {'sizeof', 'uint64_t', 'size_t'}


class Refused(Exception):
    """A table that is not understood: the message names file, line and cause."""


class Arg:
    def __init__(self, direction, base, param, name, length, attrs):
        self.dir = direction    # 'in' 'out' 'new' 'del'
        self.base = base        # 'u32', 'enum', 'kind', 'dptr', 'dev', 'scalar', 'result', 'str', 'struct'
        self.param = param      # C type, kind name, or (C type, size) of a struct
        self.name = name
        self.length = length    # expression of an array, or None
        self.attrs = attrs


class Kind:
    def __init__(self, name, ctype, number, sentinels, fields):
        self.name, self.ctype, self.number, self.sentinels, self.fields = name, ctype, number, sentinels, fields


class Row:
    def __init__(self, ident, name, mode, args, test, line):
        self.id, self.name, self.mode, self.args, self.test, self.line = ident, name, mode, args, test, line
        self.client = self.server = 'gen'
        self.ctx = True         # the record names a context
        self.ctx_arg = None
        self.same_arg = None
        self.variant = None     # 'ptsz' or 'ptds'
        self.mute = any(a.dir in ('new', 'del') for a in args)  # never tells of an earlier quiet failure
        self.op = None
        self.capture = None     # the client's function for it
        self.stream = True      # may give a stream work

    def arg(self, name):
        return next((a for a in self.args if a.name == name), None)


class Alias:
    def __init__(self, name, row, fixed, settles, line):
        self.name, self.row, self.fixed, self.settles, self.line = name, row, fixed, settles, line


class Table:
    def __init__(self, path):
        self.path = path
        self.library = None
        self.number = None
        self.status = None
        self.kinds = {}
        self.rows = []
        self.aliases = []
        self.driver = []        # (name, required)
        self.never = []         # (name, reason)
        self.absent = []        # (name, status, reason, test)
        self.names = {}         # symbol → line

    def row(self, name):
        return next((r for r in self.rows if r.name == name), None)


def split_top(text, sep=','):
    """Splits at separators that stand in no brackets."""
    out, depth, cur = [], 0, ''
    for ch in text:
        depth += (ch in '([') - (ch in ')]')
        if ch == sep and depth == 0:
            out.append(cur)
            cur = ''
        else:
            cur += ch
    if cur.strip() or out:
        out.append(cur)
    return [s.strip() for s in out]


def balanced(text):
    depth = 0
    for i, ch in enumerate(text):
        depth += (ch == '(') - (ch == ')')
        if depth < 0 or depth == 0 and i + 1 < len(text):
            return False
    return depth == 0


class Parser:
    def __init__(self, path, kinds, tests):
        self.t = Table(path)
        self.kinds = kinds      # of all tables
        self.tests = tests      # names that exist, or None
        self.line = 0

    def refuse(self, why):
        raise Refused(f'{self.t.path}:{self.line}: {why}')

    def logical_lines(self):
        cur, at = '', 0
        with open(self.t.path, encoding='utf-8') as f:
            for n, raw in enumerate(f, 1):
                text = raw.split('#', 1)[0].rstrip()
                if not text.strip():
                    continue
                if text[0] in ' \t':
                    if not cur:
                        self.line = n
                        self.refuse('continues no statement')
                    cur += ' ' + text.strip()
                    continue
                if cur:
                    yield at, cur
                cur, at = text, n
        if cur:
            yield at, cur

    def parse(self):
        for self.line, text in self.logical_lines():
            word = text.split()[0]
            handler = {'library': self.library, 'kind': self.kind, 'row': self.row, 'alias': self.alias, 'driver': self.driver,
                       'driver?': self.driver, 'never': self.never, 'absent': self.absent}.get(word)
            if not handler:
                self.refuse(f'unknown statement "{word}"')
            if word != 'library' and not self.t.library:
                self.refuse('the first statement must be "library"')
            handler(text[len(word):].strip(), word)
        if not self.t.library:
            self.line = 1
            self.refuse('no "library" statement')
        return self.t

    def claim(self, name):
        if not NAME.match(name):
            self.refuse(f'"{name}" is no name')
        if name in self.t.names:
            self.refuse(f'{name} is there already, in line {self.t.names[name]}')
        self.t.names[name] = self.line

    def library(self, rest, _):
        m = re.fullmatch(r'(\w+)\s+(\d+)\s+(\w+)', rest)
        if not m or self.t.library:
            self.refuse('want one "library NAME NUMBER STATUS"')
        self.t.library, self.t.number, self.t.status = m[1], int(m[2]), m[3]
        if self.t.number > 15:
            self.refuse('a library number is 0 … 15')

    def kind(self, rest, _):
        m = re.fullmatch(r'(\w+)\s+(\w+)\s+(\d+)(?:\s+sentinels\((\d+)\))?(?:\s+fields\(([\w, ]+)\))?', rest)
        if not m:
            self.refuse('want "kind NAME CTYPE NUMBER [sentinels(N)] [fields(A, B)]"')
        if m[1] in self.kinds or m[1] in SCALARS:
            self.refuse(f'the type "{m[1]}" is there already')
        if any(k.number == int(m[3]) for k in self.kinds.values()):
            self.refuse(f'the kind number {m[3]} is taken')
        if not 1 <= int(m[3]) <= 31:
            self.refuse('a kind number is 1 … 31')
        k = Kind(m[1], m[2], int(m[3]), int(m[4] or 0), split_top(m[5]) if m[5] else [])
        if len(k.fields) > 4:
            self.refuse('a handle keeps at most 4 fields')
        self.kinds[k.name] = self.t.kinds[k.name] = k

    def driver(self, rest, word):
        for name in rest.split():
            if not NAME.match(name):
                self.refuse(f'"{name}" is no name')
            if any(n == name for n, _ in self.t.driver):
                self.refuse(f'{name} is wanted already')
            self.t.driver.append((name, word == 'driver'))

    def never(self, rest, _):
        m = re.fullmatch(r'(\w+(?:\s+\w+)*)\s+because\s+"([^"]+)"', rest)
        if not m:
            self.refuse('want "never NAME … because "REASON""')
        for name in m[1].split():
            self.claim(name)
            self.t.never.append((name, m[2]))

    def absent(self, rest, _):
        m = re.fullmatch(r'(\w+(?:\s+\w+)*)\s+gives\s+([A-Z]\w+)\s+because\s+"([^"]+)"\s+test\s+([\w-]+)', rest)
        if not m:
            self.refuse('want "absent NAME … gives STATUS because "REASON" test TEST"')
        if self.tests is not None and m[4] not in self.tests:
            self.refuse(f'there is no test "{m[4]}"')
        for name in m[1].split():
            self.claim(name)
            self.t.absent.append((name, m[2], m[3], m[4]))

    def alias(self, rest, _):
        m = re.fullmatch(r'(\w+)\s+of\s+(\w+)\s*\((.*)\)(?:\s+settles\s+(\w+))?', rest)
        if not m:
            self.refuse('want "alias NAME of ROW (ARG=VALUE, …) [settles ARG]"')
        row = self.t.row(m[2])
        if not row:
            self.refuse(f'alias of {m[2]}, which is no row above')
        if row.client != 'gen' or row.mode == 'local':
            self.refuse(f'alias of {m[2]}, whose client side is not generated')
        fixed = {}
        for part in split_top(m[3]):
            a = re.fullmatch(r'(\w+)=(\d+)', part)
            arg = a and row.arg(a[1])
            if not arg or arg.dir != 'in' or not (arg.base in SCALARS or arg.base == 'kind'):
                self.refuse(f'"{part}": want ARG=NUMBER with a scalar or handle argument of {m[2]}')
            fixed[a[1]] = int(a[2])
        if m[4] and (not row.arg(m[4]) or row.arg(m[4]).base != 'dptr' or not row.ctx_arg or row.ctx_arg not in fixed):
            self.refuse(f'settles {m[4]}: want a device address of {m[2]}, and the stream fixed')
        self.claim(m[1])
        self.t.aliases.append(Alias(m[1], row, fixed, m[4], self.line))

    def row(self, rest, _):
        m = re.fullmatch(r'(-|\d+)\s+(\w+)\s+(\w+)((?:\s+[\w?=]+)*)\s*\((.*)\)\s*test\s+([\w/-]+)', rest)
        if not m:
            self.refuse('want "row ID NAME MODE [OPTIONS] (ARGS) test TEST"')
        if m[3] not in MODES:
            self.refuse(f'unknown mode "{m[3]}": {", ".join(MODES)}')
        self.claim(m[2])
        args = [self.arg(a) for a in split_top(m[5])]
        row = Row(None if m[1] == '-' else int(m[1]), m[2], m[3], args, m[6], self.line)
        if (row.id is None) != (row.mode == 'local'):
            self.refuse('a local row has the ID -, and all others have a number')
        if row.id is not None:
            if not 1 <= row.id <= 0xfff:
                self.refuse('an ID is 1 … 4095')
            twin = next((r for r in self.t.rows if r.id == row.id), None)
            if twin:
                self.refuse(f'ID {row.id} belongs to {twin.name}, line {twin.line}')
            row.op = self.t.number << 12 | row.id
        if self.tests is not None and row.test not in self.tests:
            self.refuse(f'there is no test "{row.test}"')
        names = [a.name for a in args]
        if len(set(names)) != len(names):
            self.refuse('two arguments have one name')
        if 'ctx' in names:
            self.refuse('"ctx" is the name of every record\'s context: call the argument otherwise')
        for word in m[4].split():
            self.option(row, word)
        self.check(row)
        self.t.rows.append(row)

    def option(self, row, word):
        key, _, value = word.partition('=')
        if word in ('client=hand', 'client=none'):
            row.client = value
        elif word == 'server=hand':
            row.server = 'hand'
        elif key == 'capture' and NAME.match(value):
            row.capture = value
        elif word == 'nostream':
            row.stream = False
        elif word == 'mute':
            row.mute = True
        elif word == 'noctx':
            row.ctx = False
        elif word in ('ptsz', 'ptds'):
            row.variant = word
        elif key == 'ctx' and row.arg(value) and row.arg(value).base == 'kind':
            row.ctx_arg = value
        elif key == 'same' and row.arg(value) and row.arg(value).base == 'kind':
            row.same_arg = value
        else:
            self.refuse(f'unknown option "{word}"')

    def arg(self, text):
        m = re.match(r'(?:(new|del|out|in)\s+)?([\w:]+)\s+(\w+)(?:\[([^\]]+)\])?', text)
        if not m:
            self.refuse(f'argument "{text}" is not understood')
        base, _, param = m[2].partition(':')
        if base in SCALARS and not param:
            pass
        elif base in self.kinds and not param:
            base, param = 'kind', base
        elif base in ('dptr', 'str') and not param:
            pass
        elif base == 'enum' and NAME.match(param):
            pass
        elif base in ('dev', 'scalar', 'result') and param in CSCALARS:
            pass
        elif base == 'struct' and re.fullmatch(r'\w+:\d+', param):
            ctype, size = param.split(':')
            param = (ctype, int(size))
            if param[1] % 8:
                self.refuse(f'the size of {ctype} must be a multiple of 8')
        else:
            self.refuse(f'unknown type "{m[2]}" of argument {m[3]}')
        attrs = {}
        for word in split_top(' '.join(text[m.end():].split()), ' '):
            key, _, value = word.partition('=')
            if not word:
                continue
            if key not in ('keep', 'from', 'bytes', 'check', 'mode') or not value or key in attrs:
                self.refuse(f'"{word}" of argument {m[3]}: unknown, empty or said twice')
            if key in ('bytes', 'check') and not (value[0] == '(' and value[-1] == ')' and balanced(value)):
                self.refuse(f'{key}= of argument {m[3]} wants an expression in parentheses')
            attrs[key] = value
        return Arg(m[1] or 'in', base, param, m[3], m[4], attrs)

    def check_expr(self, row, text, what):
        known = {a.name for a in row.args if a.dir == 'in' and not a.length and (a.base in SCALARS or a.base in ('enum', 'dptr'))}
        for word in re.findall(r'[A-Za-z_]\w*', text):
            if word not in known and word not in C_WORDS and not re.fullmatch(r'(u?l?l?)', word.lower()):
                self.refuse(f'{what} "{text}" uses "{word}", which is no scalar argument of {row.name}')
        if not re.fullmatch(r'[\w\s+*/%()<>?:=!&|-]+', text):
            self.refuse(f'{what} "{text}" is no expression')

    def check_field(self, row, ref, what):
        handle, _, field = ref.partition('.')
        arg = row.arg(handle)
        if not arg or arg.base != 'kind' or field not in self.kinds[arg.param].fields:
            self.refuse(f'{what}={ref}: want a handle argument of {row.name} and one of its fields')

    def check(self, row):
        """What the emitters rely on: each combination is one that they have code for."""
        if row.ctx_arg and not row.ctx:
            self.refuse('noctx and ctx= exclude each other')
        for a in row.args:
            where = f'argument {a.name}'
            if a.dir in ('new', 'del') and a.base != 'kind':
                self.refuse(f'{where}: only handles are new or del')
            if a.dir == 'out' and not (a.base in SCALARS or a.base in ('enum', 'dptr') or a.base == 'kind' and 'from' in a.attrs):
                self.refuse(f'{where}: an out value is a scalar, a device address, or a handle with from=')
            if a.base == 'struct' and not (a.dir == 'in' and a.length):
                self.refuse(f'{where}: structures come in arrays')
            if a.length is not None:
                if a.dir == 'out':
                    if not a.length.isdigit() or a.base not in SCALARS:
                        self.refuse(f'{where}: an out array has scalars and a constant length')
                elif a.dir == 'in' and (a.base == 'struct' or a.base in SCALARS):
                    self.check_expr(row, a.length, 'length')
                else:
                    self.refuse(f'{where}: no arrays of this')
            for key, value in a.attrs.items():
                if key in ('keep', 'from'):
                    self.check_field(row, value, key)
                    if key == 'from' and (a.dir != 'out' or row.mode != 'local'):
                        self.refuse(f'{where}: from= is for out values of local rows')
                    if key == 'keep' and (a.dir != 'in' or not (a.base in SCALARS or a.base in ('enum', 'kind')) or a.length):
                        self.refuse(f'{where}: keep= is for scalars and handles that go in')
                elif key == 'check':
                    if a.dir != 'in' or not (a.base in SCALARS or a.base == 'enum') or a.length:
                        self.refuse(f'{where}: check= is for scalars that go in')
                    self.check_expr(row, value, 'check')
                elif key == 'bytes':
                    if a.base not in ('dptr', 'dev') or a.dir != 'in':
                        self.refuse(f'{where}: bytes= is for device addresses')
                    self.check_expr(row, value, 'bytes')
            if a.base in ('scalar', 'result'):
                if 'mode' not in a.attrs:
                    self.refuse(f'{where}: {a.base} wants mode=HANDLE.FIELD')
                self.check_field(row, a.attrs['mode'], 'mode')
            elif 'mode' in a.attrs:
                self.refuse(f'{where}: mode= is for scalar and result')
        if row.mode == 'local':
            if row.client == 'none' or row.server != 'gen':
                self.refuse('a local row has a client side only')
            outs = [a for a in row.args if a.dir == 'out']
            if row.client == 'gen' and not (outs and all('from' in a.attrs for a in outs)):
                self.refuse('a generated local row answers from= fields; else say client=hand')
        elif row.mode == 'quiet' and any(a.dir == 'out' for a in row.args):
            self.refuse('a quiet row has no out values')
        if row.mode == 'quiet' and row.client == 'gen' and sum(a.base == 'result' for a in row.args) > 0:
            self.refuse('a row with a result is a fence')
        if sum(a.dir in ('new', 'del') for a in row.args) > 1:
            self.refuse('at most one handle is made or dies')
        if row.variant and not (row.client == 'hand' or any(a.base == 'kind' and self.kinds[a.param].sentinels for a in row.args)):
            self.refuse(f'{row.variant} wants a stream argument, or client=hand')
