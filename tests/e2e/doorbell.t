#!/bin/bash
# SPDX-License-Identifier: MIT
# System calls: few while records stream, on the program's side and on the proxy's; next to none while nothing happens.
. tests/e2e/lib.sh
gpu_ready
command -v strace >/dev/null || { echo "Bail out! no strace: scripts/setup installs it"; exit 1; }
launches=20000

# A trace of the proxy from here on. Its pid is the guest's to know.
trace_proxy() {
	strace -f -qq -o "$1" -p "$(cat /run/rgpu-proxy.pid)" 2>/dev/null &
	tracer=$!
	sleep 1
}
end_trace() {
	kill $tracer 2>/dev/null
	wait $tracer 2>/dev/null
}

[ $TRANSPORT = direct ] || trace_proxy "$tmp/proxy"
passes "$launches launches under strace" $(gpu) strace -f -qq -o "$tmp/trace" $E2E/stream_drv $launches
[ $TRANSPORT = direct ] || end_trace
# Of the program, directly with the relay in it: what lies between its two marks.
calls=$(awk '/steady begins/ { on = 1; next } /steady ends/ { on = 0 } on { n++ } END { print n + 0 }' "$tmp/trace")
echo "# the program: $calls system calls for $launches records"
[ "$calls" -lt $((launches / 20)) ]
result $? "under 0.05 system calls a record in the program"
if [ $TRANSPORT = kmod ]; then
	calls=$(wc -l <"$tmp/proxy")
	echo "# the proxy, from the program's start to its end: $calls"
	[ "$calls" -lt $((launches / 20)) ]
	result $? "and in the proxy"
	# Nobody uses the device: the proxy sleeps, but for its watchdog and the link's keepalive.
	trace_proxy "$tmp/idle"
	sleep 10
	end_trace
	wakes=$(wc -l <"$tmp/idle")
	echo "# the idle proxy: $wakes system calls in 10 s"
	[ "$wakes" -le 30 ]
	result $? "an idle proxy makes a few system calls a second at most"
fi
done_testing
