#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TAP: rgpu-smi's views for a machine with an H200, line by line against nvidia-smi 590's, and against what they were before.

tests/tools/smi/nvidia-590.txt has lines that nvidia-smi itself printed (view, tab, line); the other files there are ours as they were
found to be right. After a change that is meant: tests/tools/smi.t --write, and look at the difference.
"""
import difflib
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

VIEWS = os.path.join(os.environ.get('B', 'build'), 'tests', 'smi-views')
HERE = 'tests/tools/smi'
FEW = 'index,name,uuid,pci.bus_id,temperature.gpu,temperature.gpu.tlimit,utilization.gpu,memory.used,power.draw,pstate,ecc.mode.current,' \
      'clocks.applications.graphics,clocks_event_reasons.active,compute_cap,mig.mode.current,fan.speed'
APPS = 'timestamp,gpu_name,gpu_bus_id,gpu_serial,gpu_uuid,pid,process_name,used_gpu_memory'
tests = failed = 0


def ok(good, what, more=()):
    global tests, failed
    tests += 1
    failed += not good
    print(f'{"" if good else "not "}ok {tests} - {what}')
    for line in more if not good else ():
        print(f'# {line}')


VERSION = re.search(r'^PACKAGE_VERSION="(.*)"', open('dkms.conf', encoding='utf-8').read(), re.M)[1]


def view(*args):
    r = subprocess.run([VIEWS, *args], capture_output=True, text=True, check=False)
    # The files are not of one release of ours: its number, and what fills its column, is only here.
    ours, text = f'(rgpu-smi {VERSION})', '(rgpu-smi VERSION)'
    return r.stdout.replace(ours.ljust(len(text)), text).replace(ours, text), r.returncode


FIELDS = re.findall(r'^FIELD\("([^"]+)", "([^"]*)"', open('tools/smi/fields.def', encoding='utf-8').read(), re.M)
GOLDEN = {
    'table': ['table'], 'idle': ['idle'], 'list': ['list'], 'q': ['q'], 'q-power-pids': ['q', 'POWER,PIDS'], 'xml': ['xml'],
    'csv': ['gpu', FEW], 'csv-bare': ['gpu', FEW, 'bare'], 'apps': ['apps', APPS], 'apps-bare': ['apps', 'pid,name,used_memory', 'bare'],
    'dmon': ['dmon'], 'dmon-all': ['dmon', 'pucmet', 'DT'], 'pmon': ['pmon'], 'pmon-um': ['pmon', 'um'],
}
out = {}
for name, args in GOLDEN.items():
    out[name], status = view(*args)
    path = f'{HERE}/{name}.txt'
    if '--write' in sys.argv:
        with open(path, 'w', encoding='utf-8') as f:
            f.write(out[name])
    with open(path, encoding='utf-8') as f:
        want = f.read()
    ok(status == 0 and out[name] == want, f'{name} is as it was',
       difflib.unified_diff(want.splitlines(), out[name].splitlines(), lineterm='', n=1))

with open(f'{HERE}/nvidia-590.txt', encoding='utf-8') as f:
    theirs = [line.rstrip('\n').split('\t', 1) for line in f]
out['csv-header'] = view('gpu', ','.join(n for n, _ in FIELDS))[0]
for name in dict(theirs):
    lines = out[name].split('\n')
    missing = [line for v, line in theirs if v == name and line not in lines]
    ok(not missing, f'{name}: {sum(v == name for v, _ in theirs)} lines of nvidia-smi\'s own', missing)

ok(all(len(line) == 91 for line in out['table'].splitlines()[1:] if line), 'every line of the table is 91 columns wide')
ok(re.search(r'CUDA Version: [0-9]+\.[0-9]+', out['table']), 'scripts find the CUDA version')

# Fields: each name and each other name gives one value; a value has no comma.
rows = out['csv-header'].splitlines()
ok(len(rows) == 3 and all(len(r.split(', ')) == len(FIELDS) for r in rows), f'{len(FIELDS)} fields, {len(FIELDS)} values a device')
unknown = dict(zip((n for n, _ in FIELDS), rows[2].split(', ')))
ok(all(unknown[n] == '[N/A]' for n in ('temperature.gpu', 'memory.used', 'power.draw', 'pstate', 'serial', 'compute_cap')),
   'what is not known is [N/A]')
others = [o for _, o in FIELDS if o]
ok(view('gpu', ','.join(others))[0].splitlines()[1].count(', ') == len(others) - 1, f'{len(others)} other names')
text, status = view('gpu', 'index,nonsense')
ok(status == 2 and not text, 'a field that there is not: status 2, and nothing is printed')
ok(view('q', 'POWER,NONSENSE')[1] == 2, 'a section that there is not: status 2')
ok(view('dmon', 'pz')[1] == 2 and view('pmon', 'x')[1] == 2, 'columns that there are not: status 2')
ok(not re.search(r'\d (MiB|%|W|MHz)', out['csv-bare']) and len(out['csv-bare'].splitlines()) == 2, 'noheader, nounits')

# As exporters read the help: names in quotes at the beginning of a line, after an empty one.
found = re.findall(r'(?<=\n\n)"([^"]+)"', view('help-gpu')[0])
ok(found == [n for n, _ in FIELDS], 'the help lists every field')
ok(re.findall(r'(?<=\n\n)"([^"]+)"', view('help-apps')[0]) == APPS.split(','), 'and those of processes')

# XML: as Telegraf's parser for nvsmi_device_v13 takes it.
root = ET.fromstring(out['xml'])
ok('nvsmi_device_v13.dtd' in out['xml'] and root.tag == 'nvidia_smi_log', 'a document of nvsmi_device_v13')
gpu = root.findall('gpu')[0]
want = {
    'product_name': 'NVIDIA H200', 'product_architecture': 'Hopper', 'uuid': 'GPU-00000000-0000-0000-0000-000000000000',
    'performance_state': 'P0', 'compute_mode': 'Default', 'fan_speed': 'N/A', 'serial': '0000000000000', 'vbios_version': '96.00.A5.00.03',
    'fb_memory_usage/total': '143771 MiB', 'fb_memory_usage/used': '32362 MiB', 'fb_memory_usage/reserved': '614 MiB',
    'ecc_mode/current_ecc': 'Enabled', 'ecc_errors/volatile/dram_correctable': '0', 'remapped_rows/remapped_row_pending': 'No',
    'remapped_rows/row_remapper_histogram/row_remapper_histogram_max': '3072 bank(s)',
    'retired_pages/multiple_single_bit_retirement/retired_count': 'N/A', 'retired_pages/pending_blacklist': 'N/A',
    'temperature/gpu_temp': '52 C', 'temperature/gpu_temp_tlimit': '35 C', 'temperature/memory_temp': '40 C',
    'utilization/gpu_util': '100 %', 'utilization/memory_util': '7 %', 'utilization/encoder_util': '0 %', 'utilization/ofa_util': '0 %',
    'pci/pci_gpu_link_info/pcie_gen/current_link_gen': '5', 'pci/pci_gpu_link_info/link_widths/current_link_width': '16x',
    'pci/rx_util': '8691 KB/s', 'encoder_stats/session_count': '0', 'clocks/graphics_clock': '1980 MHz', 'clocks/mem_clock': '3201 MHz',
    'gpu_power_readings/instant_power_draw': '626.26 W', 'gpu_power_readings/current_power_limit': '700.00 W',
    'gpu_power_readings/average_power_draw': '627.40 W', 'clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown': 'Not Active',
    'applications_clocks/graphics_clock': 'Requested functionality has been deprecated',
    'processes/process_info/pid': '10291', 'processes/process_info/used_memory': '2566 MiB', 'mig_mode/current_mig': 'Disabled',
}
wrong = [f'{k}: {gpu.findtext(k)}' for k, v in want.items() if gpu.findtext(k) != v]
ok(not wrong, f'{len(want)} values where Telegraf looks for them', wrong)
ok(root.findtext('driver_version') == '590.48.01' and root.findtext('cuda_version') == '13.1' and root.findtext('attached_gpus') == '2' and
   root.findtext('timestamp') == 'Fri Jul  3 22:11:09 2026' and gpu.get('id') == '00000000:83:00.0', 'what stands above the devices')
ok(root.findall('gpu')[1].findtext('product_name').startswith('A name & <more>'), 'a name with signs of XML')

# uv: the first line of --query-gpu=driver_version --format=csv,noheader is a version.
ok(re.fullmatch(r'\d+\.\d+(\.\d+)?', view('gpu', 'driver_version', 'bare')[0].split('\n')[0].strip()), 'a driver version as uv takes it')
print(f'1..{tests}')
sys.exit(failed > 0)
