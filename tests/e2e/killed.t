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
passes "another program runs" $(gpu) $E2E/vadd
done_testing
