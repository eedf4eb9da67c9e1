#!/bin/bash
# SPDX-License-Identifier: MIT
# Both directions full on many channels at once: all ends, and worker and proxy keep to the memory that they say they need.
# RGPU_FLOW_CHANNELS and RGPU_FLOW_MIB (each way and channel) make it larger.
. tests/e2e/lib.sh
gpu_ready
n=${RGPU_FLOW_CHANNELS:-6}
mib=${RGPU_FLOW_MIB:-$([ $TRANSPORT = direct ] && echo 32 || echo 16)}
# The program's limit is one for all that it moves: 24 GiB each way where there is nearly no processor take their time.
LIMIT=3000

# server/worker.h: two pools of 256 MiB, 8 MiB of records and of replies and one more of each a channel, 1 GiB of copies that the
# driver has not done; 12 MiB of the program's own device memory a channel, and what a worker is without any of that.
worker_bound=$((512 + 1024 + n * (8 + 8 + 4 + 12) + 256))
# usermode-proxy/relay_int.h: frames, and rings that the module owns. Page-locked memory is the program's.
proxy_bound=64

# peak FIELD PID: the largest that was seen of it, in kB, for as long as the process lives.
peak() {
	local most=0 now
	while now=$(awk -v f="$1:" '$1 == f { print $2 }' "/proc/$2/status" 2>/dev/null) && [ -n "$now" ]; do
		[ "$now" -gt $most ] && most=$now && echo $most
		sleep 0.2
	done
}

if [ $TRANSPORT = direct ]; then
	$(gpu) $E2E/bothways $n $mib >"$tmp/flow" 2>&1 &
	flow=$!
	a_worker() { [ "$(workers)" -gt 0 ]; }
	until_true 60 a_worker
	peak VmHWM "$(cat /proc/$server_pid/task/*/children | awk '{ print $1; exit }')" >"$tmp/peak" &
else
	$(gpu) $E2E/bothways $n $mib >"$tmp/flow" 2>&1 &
	flow=$!
	peak RssAnon "$($RGPU_VMCTL proxy pid)" >"$tmp/peak" &
fi
watch=$!
wait $flow
result $? "$n channels, $mib MiB each way on each at once" || diag <"$tmp/flow"
[ $TRANSPORT = direct ] && wait $watch || kill $watch
most=$(($(tail -n 1 "$tmp/peak") / 1024))
bound=$([ $TRANSPORT = direct ] && echo $worker_bound || echo $proxy_bound)
[ $most -gt 0 ] && [ $most -le $bound ]
result $? "at most $most MiB were in use there, of $bound"
done_testing
