#!/bin/bash
# SPDX-License-Identifier: MIT
# rgpu-smi: its forms, its exit statuses, and that it starts no session.
. tests/e2e/lib.sh
gpu_ready
smi="$(gpu) $B/bin/rgpu-smi"

passes "-L" $smi -L
grep -Eq '^GPU 0: .+ \(UUID: GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\)$' "$tmp/out"
result $? "… has a line for GPU 0" || diag <"$tmp/out"
[ "$(grep -o 'GPU-[0-9a-f-]*' "$tmp/out" | sort -u | wc -l)" -eq 2 ]
result $? "… and both devices have UUIDs of their own" || diag <"$tmp/out"
passes "the table" $smi
grep -oP 'CUDA Version: \K[0-9]+\.[0-9]+' "$tmp/out" | grep -Eq '^1[3-9]\.'
result $? "… where scripts find the CUDA version" || diag <"$tmp/out"
grep -q 'No running processes found' "$tmp/out"
result $? "… and no process, not even itself" || diag <"$tmp/out"
total=$(grep -oP '/ +\K[0-9]+(?=MiB)' "$tmp/out" | head -n 1)
[ "${total:-0}" -gt 0 ]
result $? "… and the size of the memory"
passes "--version" $smi --version
grep -Eq '^CUDA Version +: [0-9]+\.[0-9]+$' "$tmp/out"
result $? "… says the CUDA version" || diag <"$tmp/out"
passes "-h" $smi -h

status_is() { # WANT DESCRIPTION CMD …
	local want=$1 what=$2
	shift 2
	try "$@"
	[ $status -eq "$want" ]
	result $? "$what: exit status $want" || { echo "# $status"; diag <"$tmp/out"; }
}
status_is 2 "an unknown option" $smi --frobnicate
status_is 2 "a word too many" $smi all
if [ $TRANSPORT = direct ]; then
	status_is 15 "nobody listens" env RGPU_SERVER=127.0.0.1:$(free_port) RGPU_KEY="$key" $B/bin/rgpu-smi
	$B/bin/rgpu-server --pair --key "$tmp/other" >/dev/null 2>&1
	status_is 4 "a wrong key" env RGPU_SERVER=127.0.0.1:$port RGPU_KEY="$tmp/other" $B/bin/rgpu-smi
	status_is 2 "an address that is none" env RGPU_SERVER=127.0.0.1:70000 RGPU_KEY="$key" $B/bin/rgpu-smi
	[ -e /dev/rgpu0 ] || status_is 9 "no module" env -u RGPU_SERVER -u RGPU_KEY $B/bin/rgpu-smi
fi
done_testing
