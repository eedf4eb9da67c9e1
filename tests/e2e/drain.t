#!/bin/bash
# SPDX-License-Identifier: MIT
# SIGTERM: running programs end by themselves, new ones are refused; a second one, or time, ends all.
. tests/e2e/lib.sh
[ $TRANSPORT = direct ] || skip_all "the server is the same, whoever brings the records"

begin() {
	gpu_ready --drain $1
	rm -f "$tmp/in"
	mkfifo "$tmp/in"
	$(gpu) $E2E/chain 0 >"$tmp/chain" 2>&1 <"$tmp/in" &
	pid=$!
	exec 9>"$tmp/in"
	until_true 60 grep -q works "$tmp/chain"
	result $? "a server that gives $1 s, and a program" || diag <"$tmp/chain"
}
stopped() { ! kill -0 $server_pid 2>/dev/null; }
over() { # STATUS: the server ended by itself, with that
	until_true 60 stopped
	wait $server_pid
	[ $? = "$1" ]
	result $? "the server ends with status $1" || diag <"$tmp/server.log"
	server_pid=
}

begin 300
kill -TERM $server_pid
until_true 30 grep -q 'is being stopped: 1 session has 300 s to end' "$tmp/server.log"
result $? "SIGTERM: it says whom it waits for" || diag <"$tmp/server.log"
fails "a new program is refused" "the server is being stopped" $(gpu) $E2E/vadd
kill -0 $pid && kill -0 $server_pid
result $? "the running one goes on"
exec 9>&-
wait $pid
result $? "to the right result" || diag <"$tmp/chain"
over 0

begin 300
kill -TERM $server_pid
twice() { [ "$(grep -c 'is being stopped: 1 session has 300 s to end; SIGTERM again' "$tmp/server.log")" -eq 2 ]; }
until_true 30 twice
kill -TERM $server_pid
over 0
until_true 60 eval '! kill -0 $pid 2>/dev/null'
exec 9>&-
wait $pid
[ $? -eq 1 ] && grep -q 'the server was stopped; run the program again when it is back' "$tmp/chain"
result $? "a second SIGTERM: the program is told" || diag <"$tmp/chain"

begin 1
kill -TERM $server_pid
over 0
exec 9>&-
wait $pid
[ $? -eq 1 ] && grep -q 'the server was stopped' "$tmp/chain"
result $? "time is up: the program is told" || diag <"$tmp/chain"
done_testing
