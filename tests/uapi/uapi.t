#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# Holds the kernel interface together: layouts, rgpu.yaml against rgpu_netlink.h, both against the module's policies.

import os, re, subprocess, sys
import yaml

count = failed = 0


def ok(good, text, why=None):
    global count, failed
    count += 1
    failed += not good
    print(f'{"" if good else "not "}ok {count} - {text}')
    if not good and why:
        print('\n'.join(f'# {line}' for line in str(why).splitlines()))


def is_(got, want, text):
    ok(got == want, text, f'got {got}\nwant {want}')


def compiles(text, *options):
    r = subprocess.run([*(os.environ.get('CC') or 'gcc').split(), '-fsyntax-only', '-Wall', '-Wextra', '-Werror', '-Wpadded', '-Iuapi', *options],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    ok(r.returncode == 0, text, r.stdout)


def enum(source, name, prefix):
    """{name: number} of a C enum, names as YNL writes them."""
    body = re.search(r'enum %s \{(.*?)\n\};' % name, source, re.S)[1]
    body = re.sub(r'/\*.*?\*/', '', body, flags=re.S)
    out, n = {}, 0
    for item in filter(None, (i.strip() for i in body.split(','))):
        m = re.fullmatch(r'(\w+)(?:\s*=\s*(\d+))?', item)
        n = int(m[2]) if m[2] else n
        if m[1].startswith(prefix):
            out[m[1][len(prefix):].lower().replace('_', '-')] = n
        n += 1
    return out


def defines(source):
    out = {}
    for name, value in re.findall(r'^#define (\w+)\s+(.+?)(?:\s*/\*.*)?$', source, re.M):
        out[name] = value
    return out


def number(text, macros):
    text = re.sub(r'\w+', lambda m: f'({number(macros[m[0]], macros)})' if m[0] in macros else m[0], text)
    return eval(re.sub(r'(?<=\d)[uUlL]+\b', '', text), {}, {})


# 1. Layouts.
compiles('sizes, offsets and numbers of a 64-bit program', 'tests/uapi/layout.c')
compiles('the same of a 32-bit program', '-m32', '-isystem', '/usr/include/x86_64-linux-gnu', 'tests/uapi/layout.c')
for h in ('rgpu.h', 'rgpu_netlink.h'):
    compiles(f'{h} stands alone, in C90 too', '-std=gnu90', '-x', 'c', '-include', f'uapi/linux/{h}', '/dev/null')

# 2. The specification against the headers.
with open('uapi/linux/rgpu_netlink.h') as f:
    header = f.read()
with open('uapi/linux/rgpu.h') as f:
    macros = defines(f.read() + header)
with open('uapi/linux/rgpu.h') as f:
    states = enum(f.read(), 'rgpu_session_state', 'RGPU_SESSION_')
with open('uapi/rgpu.yaml') as f:
    spec = yaml.safe_load(f)

attrs = {a['name']: dict(a, number=n) for n, a in enumerate(spec['attribute-sets'][0]['attributes'], 1)}
c_attrs = enum(header, 'rgpu_attr', 'RGPU_A_')
del c_attrs['unspec']
is_({n: a['number'] for n, a in attrs.items()}, c_attrs, 'attributes have the same names and numbers')
types = dict((n.lower().replace('_', '-'), t) for n, t in re.findall(r'RGPU_A_(\w+),\s*/\* (\w+)', header))
is_({n: a['type'] for n, a in attrs.items() if n != 'pad'}, types, 'and the same types')

ops = {o['name']: dict(o, number=n) for n, o in enumerate(spec['operations']['list'], 1)}
c_cmds = enum(header, 'rgpu_cmd', 'RGPU_CMD_')
del c_cmds['unspec']
is_({n: o['number'] for n, o in ops.items()}, c_cmds, 'commands have the same names and numbers')
is_(macros['RGPU_GENL_NAME'].strip('"'), spec['name'], 'the family has the same name')
is_(number('RGPU_GENL_VERSION', macros), spec['version'], 'and version')
is_(macros['RGPU_MCGRP_MONITOR'].strip('"'), spec['mcast-groups']['list'][0]['name'], 'the group has the same name')
is_({o.get('mcgrp') for o in ops.values()} - {None}, {'monitor'}, 'and is what events name')
defs = {d['name']: d for d in spec['definitions']}
is_({e: n for n, e in enumerate(defs['session-state']['entries'])}, states, 'states of a session')
is_({e: n for n, e in enumerate(defs['req-type']['entries'], defs['req-type']['value-start'])},
    enum(header, 'rgpu_req_type', 'RGPU_REQ_'), 'types of requests')
is_({e: 1 << n for n, e in enumerate(defs['req-flags']['entries'])}, {'replay': number('RGPU_REQ_REPLAY', macros)}, 'flags of requests')

# What the header's comments say that a command takes. "(optional …)" and the like are for people.
for block in re.findall(r'/\*(.*?)\*/\s*RGPU_CMD_(\w+),', header, re.S):
    name = block[1].lower().replace('_', '-')
    m = re.search(r'\*\s+in\t([A-Z_, ]+)', block[0])
    said = {w.strip().lower().replace('_', '-') for w in m[1].split(',') if w.strip()} if m else set()
    if 'do' in ops[name] and name not in ('session-get', 'dev-get'):
        is_(said, set(ops[name]['do']['request']['attributes']), f'{name}: what the header says it takes')

# 3. The module's policies against the specification.
with open('kmod/rgpu.h') as f:
    macros.update(defines(f.read()))
with open('kmod/netlink.c') as f:
    module = f.read()


def policy_checks(text):
    """What a policy entry enforces, in the terms of the specification: (type, checks)."""
    text = ' '.join(text.split())
    if m := re.fullmatch(r'\{ \.type = NLA_(U8|U16|U32|U64) \}', text):
        return m[1].lower(), {}
    if m := re.fullmatch(r'NLA_POLICY_MAX\(NLA_(\w+), (.+)\)', text):
        return m[1].lower(), {'max': number(m[2], macros)}
    if m := re.fullmatch(r'NLA_POLICY_RANGE\(NLA_(\w+), (.+), (.+)\)', text):
        return m[1].lower(), {'min': number(m[2], macros), 'max': number(m[3], macros)}
    if m := re.fullmatch(r'NLA_POLICY_EXACT_LEN\((\w+)\)', text):
        return 'binary', {'exact-len': number(m[1], macros)}
    if m := re.fullmatch(r'\{ \.type = NLA_BINARY, \.len = (\w+) \}', text):
        return 'binary', {'max-len': number(m[1], macros)}
    if m := re.fullmatch(r'\{ \.type = NLA_NUL_STRING, \.len = (.+) \}', text):
        return 'string', {'max-len': number(m[1], macros)}
    return text, None


policies = {}
for name, body in re.findall(r'struct nla_policy (\w+)\[\] = \{(.*?)\n\};', module, re.S):
    policies[name] = {a.lower().replace('_', '-'): policy_checks(t)
                      for a, t in re.findall(r'\[RGPU_A_(\w+)\] = (.*?),(?=\s*(?:\[|$))', body, re.S)}
used = {c.lower().replace('_', '-'): p for c, p in re.findall(r'RGPU_OP\((\w+), (\w+)\)', module) if c != 'c'}
is_(set(used), {n for n, o in ops.items() if 'do' in o}, 'the module has the commands, and no others')
for name, policy in sorted(used.items()):
    want = {a: (attrs[a]['type'], attrs[a].get('checks', {})) for a in ops[name]['do']['request']['attributes']}
    got = {} if policy == 'rgpu_no_policy' else policies[policy]
    is_(got, want, f'{name}: its policy is what the specification says')

print(f'1..{count}')
sys.exit(failed != 0)
