#!/bin/bash
# SPDX-License-Identifier: MIT
# System calls: few while records stream, on the program's side and on the proxy's; next to none while nothing happens.
. tests/e2e/lib.sh
gpu_ready
command -v strace >/dev/null || { echo "Bail out! no strace: scripts/setup installs it"; exit 1; }
launches=20000

# A trace of the proxy from here on. Its pid is the guest's to know.
trace_proxy() {
	strace -f -qq -ttt -o "$1" -p "$(cat /run/rgpu-proxy.pid)" 2>/dev/null &
	tracer=$!
	sleep 1
}
end_trace() {
	kill $tracer 2>/dev/null
	wait $tracer 2>/dev/null
}

# calls FILE MARK [PATTERN]: how many lines of a trace (pid, time, call) lie between the program's two marks of that name.
calls() {
	awk -v mark="$2" -v pattern="${3:-.}" '
		FNR == NR { if (index($0, "\"" mark " begins")) from = $2; if (index($0, "\"" mark " ends")) to = $2; next }
		$2 > from && $2 < to && $0 ~ pattern { n++ } END { print n + 0 }' "$tmp/trace" "$1"
}
# A call that sleeps and has come back.
wakes='(poll|select|epoll_wait|futex|ioctl|nanosleep).* = '

[ $TRANSPORT = direct ] || trace_proxy "$tmp/proxy"
passes "$launches launches under strace" $(gpu) strace -f -qq -ttt -o "$tmp/trace" $E2E/stream_drv $launches
[ $TRANSPORT = direct ] || end_trace
# Of the program, directly with the relay in it.
n=$(calls "$tmp/trace" steady)
echo "# the program: $n system calls for $launches records"
[ "$n" -lt $((launches / 20)) ]
result $? "under 0.05 system calls a record in the program"
n=$(calls "$tmp/trace" idle "$wakes")
echo "# the program with nothing to do wakes $n times in 5 s"
[ "$n" -le 10 ]
result $? "with nothing to do, only keepalive and watchdog of a link wake it, each once a second at most"
if [ $TRANSPORT = kmod ]; then
	n=$(wc -l <"$tmp/proxy")
	echo "# the proxy, from the program's start to its end: $n"
	[ "$n" -lt $((launches / 20)) ]
	result $? "and in the proxy"
	n=$(calls "$tmp/proxy" idle "$wakes")
	echo "# the proxy of a program with nothing to do wakes $n times in 5 s"
	[ "$n" -le 10 ]
	result $? "or the proxy's"
	# Nobody uses the device: the proxy sleeps, but for its watchdog and the link's keepalive.
	trace_proxy "$tmp/idle"
	sleep 10
	end_trace
	n=$(wc -l <"$tmp/idle")
	echo "# the idle proxy: $n system calls in 10 s"
	[ "$n" -le 10 ]
	result $? "and one without a program"
fi
done_testing
