#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# Calls keep their numbers and layouts: a program's library of one release meets a server of another. tests/api/ops.list has all that
# there are, each with the RGPU_API_VERSION in which it came; `tests/api/ops.t --list` prints what the tables have now.
#
# A new row is a new line. Once a release has been tagged, rows that come later have a higher version, and RGPU_API_VERSION is that.
import os
import re
import sys

LIST = "tests/api/ops.list"
gen = open(os.environ.get("B", "build") + "/gen/rgpu_ops.h").read()
api = int(re.search(r"#define RGPU_API_VERSION (\d+)", open("api/hello.h").read()).group(1))

# A record's and a reply's fields with their places, and the size: "ctx@0 limit@8 =24".
layout = {}
for struct, name, at in re.findall(r"offsetof\(struct (\w+), (\w+)\) == (\d+)", gen):
    layout.setdefault(struct, []).append(f"{name}@{at}")
for struct, size in re.findall(r"sizeof\(struct (\w+)\) == (\d+)", gen):
    layout.setdefault(struct, []).append("=" + size)
now = {}
for name, number in re.findall(r"OP_(\w+) = (0x[0-9a-f]+)", gen):
    now[name] = [number] + [f"{kind}: {' '.join(layout[kind + '_' + name])}" for kind in ("rec", "rep") if kind + "_" + name in layout]

if "--list" in sys.argv:
    for name, what in sorted(now.items(), key=lambda e: int(e[1][0], 16)):
        print(name, 1, *what, sep="\t")
    sys.exit()

kept = {}
for line in open(LIST):
    name, since, *what = line.rstrip("\n").split("\t")
    kept[name] = (int(since), what)
changed = [f"{n}: {kept[n][1]} → {now.get(n)}" for n in kept if now.get(n) != kept[n][1]]
new = [n for n in now if n not in kept]
numbers = [what[0] for what in now.values()]
print("1..4")
tests = 0


def ok(good, what, *more):
    global tests
    tests += 1
    print("ok" if good else "not ok", tests, "-", what)
    for m in more if not good else ():
        print("#", m)
    return good


good = ok(len(now) > 100 and not changed, f"{len(kept)} calls have their numbers and layouts", *changed)
good &= ok(not new, f"each call of the tables is in {LIST}", *(f"new: add it with version {api} or a higher one: {n}" for n in new))
good &= ok(len(set(numbers)) == len(numbers), "no number stands for two")
good &= ok(max(since for since, _ in kept.values()) == api, f"the latest of them came with API version {api}")
sys.exit(not good)
