#!/bin/bash
# SPDX-License-Identifier: MIT
# A program killed in the middle: others see it in rgpu-smi while it runs, and the server is rid of it at once afterwards.
. tests/e2e/lib.sh
gpu_ready

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
	# Direct: an end of the connection leaves 2 s; through the module it is gone at once. The rest is room for a slow machine.
	until_true 10 free_again
	result $? "after SIG$signal the server is free of it, and of its memory" || diag <"$tmp/smi"
done

if [ $TRANSPORT = direct ]; then
	# Children of the listener that are left when nobody is there: the worker processes must be gone too.
	no_workers() { [ "$(workers)" -le "$(cat "$tmp/base")" ]; }
	workers >"$tmp/base.now"
	echo 0 >"$tmp/base"
	until_true 10 no_workers
	result $? "no worker process is left" || cat "$tmp/base.now" | diag
fi
passes "another program runs" $(gpu) $E2E/vadd
done_testing
