#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes C stubs for the names of a list that no object file defines: genstubs.py [--other] LIST NEVER OUT.c OBJECT..."""
import subprocess
import sys


def defined(objects):
    out = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", *objects],
                         check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in out.splitlines() if line and not line.endswith(":")}


def lines(path):
    with open(path) as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def reason(name, never):
    for pattern, why in never:
        if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1])):
            return why
    return None


def main():
    args = sys.argv[1:]
    other = args[0] == "--other"  # the objects have names of another release, too
    listing, never_list, out, *objects = args[other:]
    names = lines(listing)
    never = [line.split(None, 1) for line in lines(never_list)]
    have = defined(objects)
    extra = {n for n in have if n.startswith(("cuda", "__cuda"))} - set(names)
    extra = {n for n in extra if not n.startswith("cudart_")}
    if extra and not other:
        sys.exit(f"{sys.argv[0]}: defined but not in {listing}: {' '.join(sorted(extra))}")
    missing = [n for n in names if n not in have]
    with open(out, "w") as f:
        f.write("/* SPDX-License-Identifier: MIT */\n")
        f.write(f"/* Generated: {len(missing)} of {len(names)} names that are not there. */\n")
        f.write('#include "shim/cudart/unsupported.h"\n')
        f.write('#define STUB(name) NEVER(name, (void *)0)\n')
        f.write('#define NEVER(name, why) __attribute__((visibility("default"))) int name(void); \\\n'
                "\tint name(void) { static _Atomic char told; return cudart_unsupported(#name, why, &told); }\n")
        for n in missing:
            why = reason(n, never)
            f.write(f'NEVER({n}, "{why}")\n' if why else f"STUB({n})\n")


if __name__ == "__main__":
    main()
