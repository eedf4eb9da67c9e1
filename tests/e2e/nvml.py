#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""NVML as a program finds it, by its name. Usage: nvml.py PID: prints PASS when that process is on device 0 and all else is right."""
import ctypes
import sys

nvml = ctypes.CDLL('libnvidia-ml.so.1')


class Memory(ctypes.Structure):
    _fields_ = [(n, ctypes.c_ulonglong) for n in ('total', 'free', 'used')]


class Utilization(ctypes.Structure):
    _fields_ = [('gpu', ctypes.c_uint), ('memory', ctypes.c_uint)]


class Process(ctypes.Structure):
    _fields_ = [('pid', ctypes.c_uint), ('used', ctypes.c_ulonglong), ('gi', ctypes.c_uint), ('ci', ctypes.c_uint)]


def call(name, *args):
    status = getattr(nvml, name)(*args)
    if status:
        sys.exit(f'{name}: {status}')


call('nvmlInit_v2')
count = ctypes.c_uint()
call('nvmlDeviceGetCount_v2', ctypes.byref(count))
if count.value != 2:
    sys.exit(f'{count.value} devices, not 2')
# As PyTorch counts devices: initialised once more, never shut down, UUIDs into 96 bytes.
call('nvmlInit')
uuids = []
for i in range(count.value):
    handle, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(96)
    call('nvmlDeviceGetHandleByIndex_v2', i, ctypes.byref(handle))
    call('nvmlDeviceGetUUID', handle, uuid, 96)
    uuids.append(uuid.raw.decode('ascii').strip('\0'))
if len(set(uuids)) != 2 or not all(u.startswith('GPU-') and len(u) == 40 for u in uuids):
    sys.exit(f'UUIDs {uuids}')
device, memory, use = ctypes.c_void_p(), Memory(), Utilization()
call('nvmlDeviceGetHandleByIndex_v2', 0, ctypes.byref(device))
minor = ctypes.c_uint(99)
call('nvmlDeviceGetMinorNumber', device, ctypes.byref(minor))
if minor.value != 0:
    sys.exit(f'device 0 has the minor number {minor.value}')
call('nvmlDeviceGetUtilizationRates', device, ctypes.byref(use))
call('nvmlDeviceGetMemoryInfo', device, ctypes.byref(memory))
if use.gpu > 100 or not 0 < memory.used <= memory.total or memory.used + memory.free != memory.total:
    sys.exit(f'{use.gpu} %, {memory.used} of {memory.total}, {memory.free} free')
n, list_ = ctypes.c_uint(16), (Process * 16)()
call('nvmlDeviceGetComputeRunningProcesses_v3', device, ctypes.byref(n), list_)
pids = {p.pid: p.used for p in list_[:n.value]}
if not 0 < pids.get(int(sys.argv[1]), 0) <= memory.used:
    sys.exit(f'process {sys.argv[1]} is not among {pids}')
name = ctypes.create_string_buffer(256)
call('nvmlSystemGetProcessName', int(sys.argv[1]), name, 256)
if not name.value.endswith(b'/vadd'):
    sys.exit(f'its program is {name.value}')
power = nvml.nvmlDeviceGetPowerUsage(device, ctypes.byref(count))
if power != 3:
    sys.exit(f'the power of a CPU is {power}, not "not supported"')
call('nvmlShutdown')
print('PASS')
