#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates, from the list of driver symbols, the stubs of what is not there, cuGetProcAddress's table, and the export map."""
import sys


def rows(path):
    with open(path) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                symbol, name, version, stream = line.rstrip("\n").split("\t")
                yield symbol, name, int(version), stream


def stubs(api):
    """Weak, so that a real definition anywhere in the library takes the name."""
    print("// SPDX-License-Identifier: MIT")
    print("/* Generated: every driver symbol that is not implemented says so and returns CUDA_ERROR_NOT_SUPPORTED. */")
    print("int api_unsupported(const char *name);")
    for symbol, _, _, _ in api:
        print(f'__attribute__((weak, visibility("default"))) int {symbol}(void);')
        print(f'int {symbol}(void)\n{{\n\treturn api_unsupported("{symbol}");\n}}')


def table(api):
    print("// SPDX-License-Identifier: MIT")
    print("/* Generated: names with their versions for cuGetProcAddress, sorted by name, then version. */")
    print('#include "softgpu/procaddr.h"')
    for symbol, _, _, _ in api:
        print(f"extern void {symbol}(void);")
    print("const struct procaddr procaddr_table[] = {")
    for symbol, name, version, stream in sorted(api, key=lambda r: (r[1], r[2], r[3])):
        print(f'\t{{"{name}", {symbol}, {version}, {1 if stream == "thread" else 0}}},')
    print("};")
    print("const unsigned int procaddr_count = sizeof(procaddr_table) / sizeof(procaddr_table[0]);")


def exports(api):
    print("{\nglobal:")
    for symbol, _, _, _ in api:
        print(f"\t{symbol};")
    print("\tsoftgpu_*;\nlocal:\n\t*;\n};")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("stubs", "table", "exports"):
        sys.exit("usage: gen_api.py stubs|table|exports DRIVER-API.TSV >OUT")
    {"stubs": stubs, "table": table, "exports": exports}[sys.argv[1]](list(rows(sys.argv[2])))


main()
