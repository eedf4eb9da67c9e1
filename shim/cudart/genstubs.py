#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes C stubs for the names of a list that no object file defines: genstubs.py LIST OUT.c OBJECT..."""
import subprocess
import sys


def defined(objects):
    out = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", *objects],
                         check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in out.splitlines() if line and not line.endswith(":")}


def main():
    listing, out, objects = sys.argv[1], sys.argv[2], sys.argv[3:]
    with open(listing) as f:
        names = [line.strip() for line in f if line.strip()]
    have = defined(objects)
    extra = {n for n in have if n.startswith(("cuda", "__cuda"))} - set(names)
    extra = {n for n in extra if not n.startswith("cudart_")}
    if extra:
        sys.exit(f"{sys.argv[0]}: defined but not in {listing}: {' '.join(sorted(extra))}")
    missing = [n for n in names if n not in have]
    with open(out, "w") as f:
        f.write("/* SPDX-License-Identifier: MIT */\n")
        f.write(f"/* Generated: {len(missing)} of {len(names)} names that are not there yet. */\n")
        f.write('#include "shim/cudart/unsupported.h"\n')
        f.write('#define STUB(name) __attribute__((visibility("default"))) int name(void); \\\n'
                "\tint name(void) { static _Atomic char told; return cudart_unsupported(#name, &told); }\n")
        for n in missing:
            f.write(f"STUB({n})\n")


main()
