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
passes "--remote" $smi --remote
grep -Eq '^\|  Round trip +p50 [0-9]+\.[0-9]+ ms' "$tmp/out" && grep -Eq '^\|  Link +TLSv1\.3 TLS_' "$tmp/out"
result $? "… with the connection below the table" || diag <"$tmp/out"
passes "-q -x" $smi -q -x
python3 -c 'import sys, xml.etree.ElementTree as e; g = e.parse(sys.argv[1]).getroot().findall("gpu"); assert len(g) == 2 and g[1].findtext("fb_memory_usage/total").endswith(" MiB")' "$tmp/out"
result $? "… is XML, with two devices" || diag <"$tmp/out"
passes "dmon" $smi dmon -c 2 -d 1
[ "$(grep -c '^    [01] ' "$tmp/out")" -eq 4 ]
result $? "… looks twice at two devices" || diag <"$tmp/out"
$smi --query-gpu=index --format=csv -lms 50 -f "$tmp/loop" &
loop=$!
looked() { [ -e "$tmp/loop" ] && [ "$(grep -c '^1$' "$tmp/loop")" -ge 3 ]; }
until_true 60 looked && [ "$(grep -c '^index$' "$tmp/loop")" -eq 1 ]
result $? "-lms, -f: one heading, and the devices again and again" || diag <"$tmp/loop"
kill $loop
wait $loop 2>/dev/null
uuid=$($smi --query-gpu=uuid --format=csv,noheader -i 1)
bus=$($smi --query-gpu=pci.bus_id --format=csv,noheader -i "$uuid")
[ "$($smi --query-gpu=index --format=csv,noheader -i "$bus")" = 1 ]
result $? "devices by index, UUID and bus id" || echo "# $uuid $bus"
[ $TRANSPORT = kmod ] || [ "$(workers)" -eq 0 ]
result $? "looking starts no session"

# A program on device 0, whose pid is known.
app() { # CMD …: it runs until app_end; its pid is in $app.
	rm -f "$tmp/hold"
	mkfifo "$tmp/hold"
	"$@" <"$tmp/hold" >"$tmp/app.log" 2>&1 &
	app=$!
	exec 8>"$tmp/hold"
}
app_end() { exec 8>&-; wait $app; }
pids() { $smi --query-compute-apps=pid --format=csv,noheader | tr '\n' ' '; }
sees() { [ "$(pids)" = "$1 " ]; }
odd=$tmp/$'\e[31m' # names may have anything in them
mkdir "$odd" && cp $E2E/vadd "$odd"
app $(gpu) "$odd/vadd" 0
until_true 60 sees $app
result $? "a program is shown by its pid" || { echo "# $app: $(pids)"; diag <"$tmp/app.log"; }
used() { $smi --query-compute-apps=used_memory --format=csv,noheader,nounits | grep -Eq '^[1-9][0-9]*$'; }
until_true 60 used
result $? "… with its memory"
passes "… by its name in the table" $smi
grep -Eq "^\|    0   N/A  N/A +$app      C   .*vadd +[0-9]+MiB \|$" "$tmp/out"
result $? "… and in its columns" || diag <"$tmp/out"
! grep -q $'\e' "$tmp/out"
result $? "… without what a terminal would obey" || diag <"$tmp/out"
busy() { $smi --query-gpu=utilization.gpu --format=csv,noheader,nounits -i 0 | grep -Eq '^[1-9][0-9]*$'; }
until_true 60 busy
result $? "… and the CPUs' use for it"
passes "NVML by its name tells the same" $(gpu) tests/e2e/nvml.py $app
grep -qx PASS "$tmp/out"
result $? "… to the end" || diag <"$tmp/out"
if [ $TRANSPORT = kmod ]; then
	# What a container's pid namespace has: its own numbers, and nobody else.
	in_ns='$0 run -- $1 0 <$2 >/dev/null 2>&1 & p=$!; exec 9>$2; for i in $(seq 300); do s=$($3 --query-compute-apps=pid --format=csv,noheader); [ -n "$s" ] && break; sleep 0.1; done; echo "$s is $p"; exec 9>&-; wait $p; [ "$s" = $p ]'
	mkfifo "$tmp/inner"
	passes "in a pid namespace of its own, a program has the pid that it has there" \
		unshare --pid --fork --mount-proc sh -c "$in_ns" $B/bin/rgpu $E2E/vadd "$tmp/inner" $B/bin/rgpu-smi
	sees $app
	result $? "and outside its own" || echo "# $app: $(pids)"
fi
app_end
gone() { [ -z "$(pids)" ]; }
until_true 60 gone
result $? "the program is gone with its end" || echo "# $(pids)"

status_is() { # WANT DESCRIPTION CMD …
	local want=$1 what=$2
	shift 2
	try "$@"
	[ $status -eq "$want" ]
	result $? "$what: exit status $want" || { echo "# $status"; diag <"$tmp/out"; }
}
status_is 2 "an unknown option" $smi --frobnicate
status_is 2 "a word too many" $smi all
status_is 2 "a field that there is not" $smi --query-gpu=index,frobs --format=csv
status_is 2 "a query without a format" $smi --query-gpu=index
status_is 3 "what is told on the server alone" $smi --query-retired-pages=gpu_uuid --format=csv
status_is 4 "what changes a device" $smi -pm 1
status_is 6 "a device that there is not" $smi -i 7
if [ $TRANSPORT = direct ]; then
	status_is 15 "nobody listens" env RGPU_SERVER=127.0.0.1:$(free_port) RGPU_KEY="$key" $B/bin/rgpu-smi
	$B/bin/rgpu-server --pair --key "$tmp/other" >/dev/null 2>&1
	status_is 4 "a wrong key" env RGPU_SERVER=127.0.0.1:$port RGPU_KEY="$tmp/other" $B/bin/rgpu-smi
	status_is 2 "an address that is none" env RGPU_SERVER=127.0.0.1:70000 RGPU_KEY="$key" $B/bin/rgpu-smi
	[ -e /dev/rgpu0 ] || status_is 9 "no module" env -u RGPU_SERVER -u RGPU_KEY $B/bin/rgpu-smi
fi
done_testing
