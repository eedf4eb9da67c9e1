#!/bin/bash
# SPDX-License-Identifier: MIT
# The proxy comes and goes while the module stays: new programs get a clear error meanwhile, running ones finish with the right result.
. tests/e2e/lib.sh
[ $TRANSPORT = kmod ] || skip_all "there is no proxy in the direct transport"
gpu_ready
ctl=$RGPU_VMCTL
module=$(stat -c %i /sys/module/rgpu)

passes "a program runs" $(gpu) $E2E/vadd
passes "the proxy stops" $ctl proxy stop
fails "a new program gets an error that names the proxy" "rgpu-proxy is not running" $(gpu) $E2E/errors_drv init
lines=$(grep -vc '^cuInit: ' "$tmp/out")
[ "$lines" -eq 1 ]
result $? "… in one line" || diag <"$tmp/out"
passes "the proxy starts again" $ctl proxy start
passes "the device is back" $ctl wait online 60
passes "the same command works" $(gpu) $E2E/vadd
[ "$(stat -c %i /sys/module/rgpu)" = "$module" ]
result $? "the module is the one that was loaded"

# kill -9 in the middle of the work of running programs: small calls of two threads, and copies of 16 MiB.
mkfifo "$tmp/end"
$(gpu) $E2E/handoff 0 >"$tmp/handoff" 2>&1 <"$tmp/end" &
handoff=$!
$(gpu) $E2E/vadd 0 >"$tmp/vadd" 2>&1 <"$tmp/end" &
vadd=$!
exec 9>"$tmp/end"
both_run() {
	$(gpu) $B/bin/rgpu-smi >"$tmp/smi" 2>&1 && grep -q " $handoff  *C " "$tmp/smi" && grep -q " $vadd  *C " "$tmp/smi"
}
until_true 60 both_run
result $? "two programs run" || diag <"$tmp/smi"
for round in 1 2 3; do
	sleep 2
	kill -0 $handoff 2>/dev/null && kill -0 $vadd 2>/dev/null
	result $? "round $round: both programs still run" || diag <"$tmp/handoff"
	passes "round $round: the proxy is killed with -9" $ctl proxy stop KILL
	sleep 0.5
	passes "round $round: a new one takes over" $ctl proxy start 9>&- # it would keep the programs' input open
	passes "round $round: the device is back" $ctl wait online 60
done
sleep 2
exec 9>&-
wait $handoff
result $? "the program with small calls ends with the right result"
diag <"$tmp/handoff"
wait $vadd
result $? "the program with large copies ends with the right result"
diag <"$tmp/vadd"

# Servers that can't be had: the proxy's log says why, and programs say where to look.
passes "the proxy stops" $ctl proxy stop
offline="no GPU stands behind /dev/rgpu0.*rgpu-proxy is not running or does not reach its server \(look at its log\)"

refused() { # WHAT PATTERN SERVER KEY
	$B/bin/rgpu-proxy --server "$3" --key "$4" >"$tmp/proxy.log" 2>&1 </dev/null &
	local proxy=$!
	until_true 30 grep -Eq "$2" "$tmp/proxy.log"
	result $? "$1: the proxy's log says so" || diag <"$tmp/proxy.log"
	fails "$1: a program's error says where to look" "$offline" $(gpu) $E2E/errors_drv init
	[ "$(grep -vc '^cuInit: ' "$tmp/out")" -eq 1 ] && grep -q '^cuInit: CUDA_ERROR_NO_DEVICE' "$tmp/out"
	result $? "… in one line, with CUDA's error" || diag <"$tmp/out"
	kill $proxy
	wait $proxy 2>/dev/null
}
refused "nobody listens" "refused.*is rgpu-server running" 10.0.2.2:1 "$RGPU_VM_KEY"
$B/bin/rgpu-server --pair --key "$tmp/other" >/dev/null 2>&1
refused "a wrong key" "refused the key.*use the key file" "$RGPU_VM_SERVER" "$tmp/other"
$E2E/oldserver "$RGPU_VM_KEY" 99 0 >"$tmp/old" 2>/dev/null &
old=$!
until_true 30 test -s "$tmp/old"
refused "another version" "versions differ.*1\.[0-9]+.*99\.0" 127.0.0.1:$(cat "$tmp/old") "$RGPU_VM_KEY"
kill $old
wait $old 2>/dev/null
passes "the proxy is paired again" $ctl proxy start
passes "the device is back" $ctl wait online 60
passes "a program runs" $(gpu) $E2E/vadd
done_testing
