# SPDX-License-Identifier: MIT
"""nvidia-ml-py: every nvmlDeviceGet… that takes a device alone is called, for each device. Each gives a value or one of NVML's errors;
and the size of each structure is what the binding has, or ours would have refused it."""
import inspect
import sys

import pynvml

EXPECTED = {pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NO_PERMISSION, pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_DEPRECATED,
            pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_INVALID_ARGUMENT}
MUST = {'nvmlDeviceGetName', 'nvmlDeviceGetUUID', 'nvmlDeviceGetIndex', 'nvmlDeviceGetPciInfo', 'nvmlDeviceGetMemoryInfo', 'nvmlDeviceGetMinorNumber',
        'nvmlDeviceGetUtilizationRates', 'nvmlDeviceGetComputeMode', 'nvmlDeviceGetComputeRunningProcesses', 'nvmlDeviceGetPciInfoExt',
        'nvmlDeviceGetGraphicsRunningProcesses', 'nvmlDeviceGetMPSComputeRunningProcesses', 'nvmlDeviceGetCudaComputeCapability',
        'nvmlDeviceIsMigDeviceHandle', 'nvmlDeviceGetMaxMigDeviceCount', 'nvmlDeviceGetConfComputeMemSizeInfo'}
pynvml.nvmlInit()
values = errors = 0
bad = []
for i in range(pynvml.nvmlDeviceGetCount()):
    device = pynvml.nvmlDeviceGetHandleByIndex(i)
    for name, f in inspect.getmembers(pynvml, inspect.isfunction):
        if not name.startswith(('nvmlDeviceGet', 'nvmlDeviceIs')):
            continue
        if [p for p in inspect.signature(f).parameters.values() if p.default is p.empty][1:] or not inspect.signature(f).parameters:
            continue
        try:
            f(device)
            values += 1
        except pynvml.NVMLError as e:
            errors += 1
            if e.value not in EXPECTED or name in MUST:
                bad.append(f'{name}: {e}')
        except Exception as e:  # the binding itself
            if name in MUST:
                bad.append(f'{name}: {e!r}')
    memory = pynvml.nvmlDeviceGetMemoryInfo(device, version=pynvml.nvmlMemory_v2)
    pynvml.nvmlDeviceGetFieldValues(device, [pynvml.NVML_FI_DEV_MEMORY_TEMP, pynvml.NVML_FI_DEV_POWER_INSTANT])
    pynvml.nvmlDeviceGetHandleByUUID(pynvml.nvmlDeviceGetUUID(device))
    pynvml.nvmlDeviceGetHandleByPciBusId(pynvml.nvmlDeviceGetPciInfo(device).busId)
    if memory.total < memory.used:
        bad.append(f'{memory.used} of {memory.total} used')
pynvml.nvmlShutdown()
print(f'{values} values, {errors} errors of NVML', *bad, sep='\n')
sys.exit(bool(bad))
