#!/bin/bash
# SPDX-License-Identifier: MIT
# The link breaks in every way that we know of while a program works: it ends bit-identical, or with an error that names the cause.
#
# make check has a small part; RGPU_FAULT_CUTS, RGPU_FAULT_HOLE (seconds), RGPU_FAULT_KILLS and RGPU_FAULT_SEED make it as large as the shards
# link-faults and link-kills-N of check-long.
. tests/e2e/lib.sh
CUTS=${RGPU_FAULT_CUTS:-80} HOLE=${RGPU_FAULT_HOLE:-2} KILLS=${RGPU_FAULT_KILLS:-4} SEED=${RGPU_FAULT_SEED:-$RANDOM}
LIMIT=3000
RANDOM=$SEED
echo "# seed $SEED"

# begin NAME CMD …: CMD works until `finish NAME` closes its input.
begin() {
	local name=$1
	shift
	mkfifo "$tmp/$name.in"
	"$@" $E2E/chain 0 >"$tmp/$name" 2>&1 <"$tmp/$name.in" &
	pid=$!
	exec 9>"$tmp/$name.in"
	until_true 120 eval 'grep -q works "$tmp/'$name'" || ! kill -0 $pid 2>/dev/null'
}
finish() { # NAME DESCRIPTION
	exec 9>&-
	local rc
	wait $pid
	rc=$?
	diag <"$tmp/$1"
	result $rc "$2"
}
# ends_with NAME PATTERN DESCRIPTION: CMD has ended by itself, with an error and no signal, and said why.
ends_with() {
	local rc
	until_true 120 eval '! kill -0 $pid 2>/dev/null'
	wait $pid
	rc=$?
	exec 9>&-
	[ $rc -eq 1 ] && grep -Eq "$2" "$tmp/$1"
	result $? "$3" || { echo "# status $rc, wanted /$2/ in:"; diag <"$tmp/$1"; }
}

if [ $TRANSPORT = kmod ]; then
	gpu_ready
	ctl=$RGPU_VMCTL
	begin kills $(gpu)
	good=0
	for round in $(seq $KILLS); do
		# Anywhere in its work; every few rounds the clock jumps, too.
		sleep 0.$((RANDOM % 10))
		[ $((round % 4)) -eq 1 ] && date -s '+3 hours' >/dev/null
		[ $((round % 4)) -eq 3 ] && date -s '-5 hours' >/dev/null
		$ctl proxy stop KILL >/dev/null 2>&1 && $ctl proxy start >/dev/null 2>&1 9>&- && $ctl wait online 60 >/dev/null 2>&1 &&
			kill -0 $pid 2>/dev/null && good=$((good + 1))
	done
	[ $good -eq $KILLS ]
	result $? "$KILLS proxies were killed, and the clock jumped: the program works on ($good)"
	finish kills "… and ends with the right result"
	done_testing
fi

gpu_ready --grace 60 --direct-grace 60 --cache-mib 2 # of growth, too
away() { # MEAN CUTS: the cutter's, in front of the server; sets far
	rm -f "$tmp/cutter"
	$E2E/cutter $port $SEED $1 $2 >"$tmp/cutter" 2>"$tmp/cutter.log" &
	cutter=$!
	until_true 10 test -s "$tmp/cutter"
	far="$B/bin/rgpu run --server 127.0.0.1:$(head -n 1 "$tmp/cutter") --key $key --"
}
home() {
	kill -9 $cutter 2>/dev/null
	wait $cutter 2>/dev/null
}
rss() { awk '/^VmRSS/ { print $2 }' /proc/$server_pid/status; }
none() { [ "$(workers)" -eq 0 ]; }
idle() {
	$(gpu) $B/bin/rgpu-smi >"$tmp/smi" 2>&1 && grep -q 'No running processes found' "$tmp/smi" &&
		grep -Eq '\|  +0MiB / ' "$tmp/smi"
}

# Cuts at any byte and between any two TLS records, every connection from another address.
away 60000 $CUTS
begin warm $far
before=$(rss)
until_true 2800 eval 'grep -q done "$tmp/cutter" || ! kill -0 $pid 2>/dev/null'
grep -q done "$tmp/cutter"
result $? "the connection was cut $CUTS times" || diag <"$tmp/warm"
finish warm "… and each call has run once, in its place" || diag <"$tmp/server.log"
until_true 60 none
result $? "no worker is left"
until_true 30 idle
result $? "and no memory" || diag <"$tmp/smi"
after=$(rss)
[ $((after - before)) -lt 8192 ]
result $? "the listener did not grow by it ($before → $after KiB)"
home

# Nothing comes through and nothing is refused.
away 60000 0
begin hole $far
kill -USR1 $cutter
sleep $HOLE
kill -USR2 $cutter
sleep 1
kill -0 $pid
result $? "a black hole of $HOLE s"
finish hole "… and the right result"
home

# The listener goes and another comes, orderly and by kill -9; connections break just then.
away 60000 100000
begin restart $far
for signal in USR1 KILL; do
	sleep 1
	kill -$signal $server_pid
	wait $server_pid 2>/dev/null
	sleep 0.5
	RGPU_SOFTGPU_DEVICES=2 $B/bin/rgpu-server --softgpu --listen 127.0.0.1:$port --key "$key" --grace 60 \
		--direct-grace 60 >>"$tmp/server.log" 2>&1 </dev/null 9>&- &
	server_pid=$!
	until_true 60 listening $port
	result $? "the listener is back after SIG$signal"
	sleep 1
	kill -0 $pid 2>/dev/null
	result $? "… and the program works on"
done
finish restart "… to the right result"
home

# What cannot go on ends with the cause.
begin killed $(gpu)
kill -9 $(pgrep -P $server_pid -x rgpu-worker)
ends_with killed "worker process was killed" "a worker that was killed: the program is told so"
server_stop
server_start --grace 2
away 60000 0
begin grace $far
home
ends_with grace "away for longer than 2 s" "a server out of reach for longer than the grace period: the program is told so"
until_true 60 none
result $? "and the worker is gone, too"
done_testing
