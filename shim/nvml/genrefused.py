#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes C functions for the names of NVML that no object file defines: genrefused.py LIST REFUSED OUT.c OBJECT..."""
import fnmatch
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cudart"))
from genstubs import defined, lines  # noqa: E402


def main():
    listing, refused, out, *objects = sys.argv[1:]
    names = lines(listing)
    rules = [line.split(None, 2) for line in lines(refused)]
    have = {n for n in defined(objects) if n.startswith("nvml") and n[4:5].isupper()}
    if have - set(names):
        sys.exit(f"{sys.argv[0]}: defined but not in {listing}: {' '.join(sorted(have - set(names)))}")
    used = set()
    with open(out, "w") as f:
        f.write("/* SPDX-License-Identifier: MIT */\n")
        f.write("/* Generated: the names of NVML that do nothing here, what they return, and why. */\n")
        f.write('#include "shim/nvml/lib.h"\n')
        f.write("#define REFUSED(name, how, why) API int name(void); \\\n"
                "\tint name(void) { return nvml_refused(NVML_##how); }\n")
        for name in names:
            if name in have:
                continue
            pattern, how, why = next(r for r in rules if fnmatch.fnmatchcase(name, r[0]))
            used.add(pattern)
            f.write(f'REFUSED({name}, {how}, "{why}")\n')
    idle = [r[0] for r in rules if r[0] not in used]
    if idle:
        sys.exit(f"{sys.argv[0]}: lines of {refused} that no name needs: {' '.join(idle)}")


if __name__ == "__main__":
    main()
