#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TAP: our libraries export the names of NVIDIA's, no more and no fewer."""

import os
import subprocess
import sys

LIB = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'lib')
tests = failed = 0


def exported(name):
    out = subprocess.run(['nm', '-D', '--defined-only', os.path.join(LIB, name)], capture_output=True, text=True, check=True).stdout
    names = {}
    for line in out.splitlines():
        symbol, _, version = line.split()[-1].partition('@')
        if line.split()[-2] != 'A':
            names[symbol] = version.lstrip('@')
    return names


def wanted(path):
    with open(path, encoding='utf-8') as f:
        return set(f.read().split())


def ok(good, what, more=()):
    global tests, failed
    tests += 1
    failed += not good
    print(f'{"" if good else "not "}ok {tests} - {what}')
    for line in sorted(more):
        print(f'# {line}')


cuda = exported('libcuda.so.1')
public = {n for n, v in cuda.items() if v != 'RGPU_PRIVATE'}
want = wanted('api/libcuda-13.0-exports.txt')
ok(public == want, f'libcuda.so.1 exports the {len(want)} names of the list', public ^ want)
ok(all(not cuda[n] for n in public), 'they have no version, as in NVIDIA\'s library')
private = {n for n, v in cuda.items() if v == 'RGPU_PRIVATE'}
ok(private == {'rgpuRoundTrips', 'rgpuTakesPtxOnly', 'rgpu_begin', 'rgpu_capture', 'rgpu_capture_refuse', 'rgpu_check_range', 'rgpu_enter', 'rgpu_fence',
                'rgpu_fragment_begin', 'rgpu_fragment_end', 'rgpu_mint', 'rgpu_retire', 'rgpu_send', 'rgpu_settle', 'rgpu_use'},
   'what our own libraries share is all in RGPU_PRIVATE', private)
for library, listing in (('libcudart.so.13', 'libcudart-13.0'), ('libcudart.so.12', 'libcudart-12.9')):
    cudart = exported(library)
    want = wanted(f'api/{listing}-exports.txt')
    ok(set(cudart) == want, f'{library} exports the {len(want)} names of the list', set(cudart) ^ want)
    ok(set(cudart.values()) == {library}, 'with the version node of its soname', set(cudart.values()))
if os.path.exists(os.path.join(LIB, 'libnvidia-ml.so.1')):
    nvml = exported('libnvidia-ml.so.1')
    public = {n for n, v in nvml.items() if v != 'RGPU_PRIVATE'}
    want = wanted('api/libnvidia-ml-590-exports.txt')
    ok(public == want, f'libnvidia-ml.so.1 exports the {len(want)} names of the list', public ^ want)
    ok(all(not nvml[n] for n in public) and set(nvml) - public == {'rgpuNvml'}, 'without versions, and one name of our own', set(nvml) - public)
cublas = exported('libcublas.so.13')
ok(set(cublas) == {f'cublas{n}_v2' for n in ('Create', 'Destroy', 'GetVersion', 'SetStream', 'GetStream', 'SetPointerMode', 'GetPointerMode',
                                             'Sgemm', 'Saxpy', 'Sdot')} |
   {f'cublas{d}{what}{a}{n}' for d in ('Set', 'Get') for what in ('Vector', 'Matrix') for a in ('', 'Async') for n in ('', '_64')},
   'libcublas.so.13 exports its ten functions, and the helpers that copy', cublas)
ok(set(cublas.values()) == {'libcublas.so.13'}, 'with the version node of its soname')
print(f'1..{tests}')
sys.exit(failed > 0)
