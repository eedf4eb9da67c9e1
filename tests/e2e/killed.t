#!/bin/bash
# SPDX-License-Identifier: MIT
# A program killed in the middle: others see it in rgpu-smi while it runs, and the server is rid of it at once afterwards.
. tests/e2e/lib.sh
gpu_ready --grace 3

shows() { # PID
	$(gpu) $B/bin/rgpu-smi >"$tmp/smi" 2>&1 && grep -Eq " $1 +C  .*vadd +[0-9]+MiB " "$tmp/smi"
}
gone() {
	$(gpu) $B/bin/rgpu-smi >"$tmp/smi" 2>&1 && grep -q 'No running processes found' "$tmp/smi"
}
free_again() {
	gone && grep -Eq '\|  +0MiB / ' "$tmp/smi"
}

for signal in KILL TERM; do
	$(gpu) $E2E/vadd 1000000 >"$tmp/out" 2>&1 &
	pid=$!
	until_true 60 shows $pid
	result $? "rgpu-smi shows the running program with its pid and memory" || diag <"$tmp/smi"
	diag <"$tmp/out"
	kill -$signal $pid
	wait $pid 2>/dev/null
	# An end of the connection leaves 2 s, the module's word none. The rest is room for a slow machine.
	until_true 30 free_again
	result $? "after SIG$signal the server is free of it, and of its memory" || diag <"$tmp/smi"
done

# A kernel that never ends goes with its worker, whose whole process group is killed.
$(gpu) $E2E/spin >"$tmp/out" 2>&1 &
pid=$!
until_true 60 grep -q spins "$tmp/out"
result $? "a kernel that never ends" || diag <"$tmp/out"
kill -KILL $pid
wait $pid 2>/dev/null
until_true 30 free_again
result $? "ends with its program, and its memory is free" || diag <"$tmp/smi"

if [ $TRANSPORT = direct ]; then
	# A program that falls silent is not one that ended: the server waits the grace period, then gives its session up.
	$(gpu) $E2E/vadd 1000000 >"$tmp/out" 2>&1 &
	pid=$!
	until_true 60 shows $pid
	result $? "another runs" || diag <"$tmp/smi"
	kill -STOP $pid
	until_true 90 free_again
	result $? "stopped, it is given up after the grace period" || diag <"$tmp/smi"
	kill -CONT $pid
	until_true 60 eval '! kill -0 $pid 2>/dev/null'
	result $? "woken, it ends by itself"
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ $? -eq 1 ] && grep -q 'cudaError' "$tmp/out"
	result $? "… with a CUDA error, not with a fresh GPU" || diag <"$tmp/out"
	none() { [ "$(workers)" -eq 0 ]; }
	until_true 30 none
	result $? "no worker process is left"
fi
if [ $TRANSPORT = direct ]; then
	# A clean end leaves at once: by the program's word, not by time.
	before=$(grep -c 'session end' "$tmp/server.log")
	passes "a program ends cleanly" $(gpu) $E2E/vadd
	ended() { [ "$(grep -c 'session end' "$tmp/server.log")" -gt "$before" ]; }
	until_true 30 ended
	tail -n 1 "$tmp/server.log" | grep -q 'session end: .* down: .*the program ended the session$'
	result $? "its worker ends by its word, not by the grace period" || tail -n 1 "$tmp/server.log" | diag

	# One that is cut off stays for the grace period, and no longer than need be.
	server_stop
	server_start --direct-grace 3
	$E2E/cutter $port 1 60000 0 >"$tmp/cutter" &
	cutter=$!
	until_true 10 test -s "$tmp/cutter"
	$B/bin/rgpu run --server 127.0.0.1:$(head -n 1 "$tmp/cutter") --key $key -- $E2E/vadd 1000000 >"$tmp/out" 2>&1 &
	pid=$!
	one() { [ "$(workers)" -eq 1 ]; }
	until_true 60 one && until_true 60 shows $pid
	kill -9 $cutter
	from=$(date +%s%N)
	kill -9 $pid
	wait $cutter $pid 2>/dev/null
	until_true 30 none
	result $? "one that is cut off has no worker any more after its grace period"
	took=$((($(date +%s%N) - from) / 1000000))
	echo "# gone after $took ms, of which 3000 are the grace period (2000 more are wanted)"
	[ $took -ge 3000 ]
	result $? "and not before"
fi
passes "another program runs" $(gpu) $E2E/vadd
done_testing
