#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# The fuzzer's vocabulary, from the engine's own sources: opcodes, modifiers, directives, special registers. usage: words.py FILE...
import re
import sys


def expand(form):
    m = re.match(r"([^{]*)\{([^}]*)\}(.*)$", form)
    if not m:
        return [form]
    return [f for part in m.group(2).split(",") for f in expand(m.group(1) + part + m.group(3))]


words = set()
for name in sys.argv[1:]:
    for s in re.findall(r'"((?:[^"\\]|\\.)*)"', open(name).read()):
        if "lower" in name and re.fullmatch(r"[a-z0-9_:]+", s):
            words |= {s, "." + s}  # an opcode or a modifier
        elif re.fullmatch(r"[a-z][a-zA-Z0-9_.,{}]*", s) and "." in s:
            words |= {f for f in expand(s) if re.fullmatch(r"[a-zA-Z0-9_.]+", f)}
        elif re.fullmatch(r"[.%][a-zA-Z0-9_.]+", s):
            words.add(s)
        elif name.endswith("types.c") and re.fullmatch(r"[a-z0-9]{2,8}", s):
            words.add("." + s)
for w in sorted(words):
    print(f'"{w}",')
