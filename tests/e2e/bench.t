#!/bin/bash
# SPDX-License-Identifier: MIT
# rgpu bench: all its figures in all its forms, over both transports; and what it says where there is nothing to measure.
. tests/e2e/lib.sh

bench() {
	if [ "$TRANSPORT" = direct ]; then
		$B/bin/rgpu bench --server 127.0.0.1:$port --key "$key" --quick "$@"
	else
		$B/bin/rgpu bench --quick "$@"
	fi
}
export -f bench
export B TRANSPORT
if [ "$TRANSPORT" = direct ]; then
	server_start || exit 1
	export port key
fi
passes "it measures" bash -c "bench --csv $tmp/b.csv --svg $tmp/b.svg"
cp "$tmp/out" "$tmp/table"
for row in 'round trip of the link' 'small call' 'launch and wait' 'launches per second: [1-9]' 'step: ' 'host to device  ' 'device to host  '; do
	grep -q "^$row" "$tmp/table"
	result $? "the table has: $row" || diag <"$tmp/table"
done
way='over a connection of its own'
[ "$TRANSPORT" = direct ] || way='through /dev/rgpuN'
grep -q "^rgpu softgpu.*, $way" "$tmp/table"
result $? "and says whose way it is"
# Each measure is there once; copies, once for each size up to where the link is too slow; every figure is a positive number, and the
# best is not worse than the middle.
python3 - "$tmp/b.csv" >"$tmp/out" 2>&1 <<'PY'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
times = [r['measure'] for r in rows if r['unit'] == 'us']
assert times == ['round_trip', 'small_call', 'launch_issue', 'launch', 'launch_and_wait', 'step'], times
for kind in 'h2d', 'd2h', 'h2d_pinned', 'd2h_pinned':
    sizes = [int(r['bytes']) for r in rows if r['measure'] == kind]
    assert sizes and sizes == [65536 << 2 * i for i in range(len(sizes))], (kind, sizes)
for r in rows:
    median, p99, best = float(r['median']), float(r['p99']), float(r['best'] or r['median'])
    assert median > 0 and p99 > 0 and int(r['samples']) > 0, r
    assert best <= median <= p99 if r['unit'] == 'us' else best >= median >= p99, r
by = {r['measure']: float(r['median']) for r in rows if r['unit'] == 'us'}
assert by['launch_issue'] <= by['launch'] <= by['step'], by
PY
result $? "the CSV has every measure" || { diag <"$tmp/out"; diag <"$tmp/b.csv"; }
python3 - "$tmp/b.svg" >"$tmp/out" 2>&1 <<'PY'
import sys, xml.etree.ElementTree as ET
ns = '{http://www.w3.org/2000/svg}'
root = ET.parse(sys.argv[1]).getroot()
assert root.tag == ns + 'svg'
w, h = float(root.get('width')), float(root.get('height'))
curves = [[tuple(map(float, p.split(','))) for p in l.get('points').split()] for l in root.iter(ns + 'polyline')]
assert len(curves) == 4 and all(curves)
for x, y in sum(curves, []):
    assert 0 <= x <= w and 0 <= y <= h, (x, y)
texts = [t.text for t in root.iter(ns + 'text')]
assert 'h2d' in texts and '64 KiB' in texts and any(t.startswith('rgpu softgpu') for t in texts), texts
PY
result $? "the picture is SVG with four curves, all of them inside" || diag <"$tmp/out"
[ "$TRANSPORT" = kmod ] || # the same again, and an emulated guest takes its time
	passes "CSV on standard output is alone there" bash -c "bench --csv - | awk -F, 'NF != 7 { exit 1 }'"
fails "a device that is not there is told" 'device 99: .*next: rgpu doctor' bash -c 'bench --device 99'
[ $status = 1 ]
result $? "with status 1"
fails "what is no number is refused" '--device: expected a number' bash -c 'bench --device x'
[ $status = 2 ]
result $? "with status 2"
fails "a file that cannot be written is told" '/nowhere/b.csv: No such file' bash -c 'bench --csv /nowhere/b.csv'
fails "a server that is not there is told" '127.0.0.1:9' $B/bin/rgpu bench --server 127.0.0.1:9 --key "${key:-$RGPU_VM_KEY}"
done_testing
