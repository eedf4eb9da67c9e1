#!/bin/bash
# SPDX-License-Identifier: MIT
# A connection that is down is seen at once, in rgpu status, in sysfs and on the proxy's page, while the program waits; and so is its return.
. tests/e2e/lib.sh
[ $TRANSPORT = kmod ] || skip_all "there is no proxy in the direct transport, and no module that could show it"
gpu_ready
ctl=$RGPU_VMCTL
status() { $B/bin/rgpu status >"$tmp/status" 2>&1 && grep -Eq "$1" "$tmp/status"; }
sysfs() { read -r n </sys/class/rgpu/rgpu0/links_down && [ "$n" = "$1" ]; }
page() { # true, false: every session has a connection, or none has
	exec 7<>/dev/tcp/127.0.0.1/7479 || return
	printf 'GET /view.json HTTP/1.0\r\nHost: localhost\r\n\r\n' >&7
	timeout 60 cat <&7 | grep -o '"linked":[a-z]*' | sort -u >"$tmp/page"
	exec 7>&-
	[ "$(cat "$tmp/page")" = "\"linked\":$1" ]
}
# The network between proxy and server: it can be taken away, and comes back at the same port.
port=17478
network() {
	$E2E/cutter $RGPU_VM_SERVER@$port 1 60000 0 >"$tmp/network" &
	network=$!
	until_true 60 listening $port
}
passes "the proxy stops" $ctl proxy stop
network
passes "the proxy starts with a network that can go away" $ctl proxy start 127.0.0.1:$port
passes "the device is back" $ctl wait online 60
mkfifo "$tmp/in"
$(gpu) $E2E/chain 0 >"$tmp/chain" 2>&1 <"$tmp/in" &
pid=$!
exec 9>"$tmp/in"
until_true 120 grep -q works "$tmp/chain"
result $? "a program works" || diag <"$tmp/chain"
status 'state: live$'
result $? "rgpu status: its session is live" || diag <"$tmp/status"
sysfs 0 && page true
result $? "sysfs and the page: no link is down" || diag <"$tmp/page"
kill -9 $network
wait $network 2>/dev/null
until_true 60 status 'state: live, but without a connection to the server for [0-9]+ s'
result $? "the network goes: rgpu status shows it" || diag <"$tmp/status"
grep -q 'without a connection: 1 of the sessions' "$tmp/status"
result $? "… with the device, too" || diag <"$tmp/status"
sysfs 1
result $? "sysfs shows it"
until_true 60 page false
result $? "the page shows it" || diag <"$tmp/page"
kill -0 $pid
result $? "while the program waits"
network 9>&- # it would keep the program's input open
until_true 60 status 'state: live$'
result $? "the network comes back: the session is live" || diag <"$tmp/status"
sysfs 0 && until_true 60 page true
result $? "in sysfs and on the page, too" || diag <"$tmp/page"
exec 9>&-
wait $pid
result $? "the program ends with the right result" || diag <"$tmp/chain"
passes "the proxy stops" $ctl proxy stop
kill -9 $network
wait $network 2>/dev/null
passes "the proxy starts as it was" $ctl proxy start
passes "the device is back" $ctl wait online 60
done_testing
