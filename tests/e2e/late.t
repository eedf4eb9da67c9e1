#!/bin/bash
# SPDX-License-Identifier: MIT
# A wait for an event does not queue behind the upload that was issued before it: the news comes by itself, and with it what it is about.
. tests/e2e/lib.sh
gpu_ready
passes "steps whose results are read one step late" $(gpu) $E2E/late
[ $TRANSPORT = direct ] || done_testing
$B/tests/bench/slowlink $port 20000 400 >"$tmp/slow" &
slow=$!
until_true 10 test -s "$tmp/slow"
passes "… over a wire that an upload fills for longer than a step takes" env RGPU_COMPRESS=off RGPU_TRACE_ROUNDTRIPS=1 \
	$B/bin/rgpu run --server 127.0.0.1:$(awk '{ print $2 }' "$tmp/slow") --key "$key" -- $E2E/late 20 2
trips=$(sed -n 's/^rgpu: *\([0-9]*\) EVENT_SYNC$/\1/p' "$tmp/out")
[ "${trips:-0}" -le 10 ]
result $? "… where ${trips:-no} waits of 20 were round trips" || diag <"$tmp/out"
kill $slow
done_testing
