#!/bin/bash
# SPDX-License-Identifier: MIT
# A program's second start sends almost nothing: its module and its weights are at the server already. Not another client's.
. tests/e2e/lib.sh
if [ $TRANSPORT = direct ]; then
	$B/bin/rgpu-server --pair --key "$tmp/other" >/dev/null 2>&1
	web=$(free_port)
	gpu_ready --key "$tmp/other" --web $web
	blocks=rgpu_cache_blocks
else
	web=7479 blocks=rgpu_session_known_blocks # tests/vm/vmctl
	gpu_ready
fi
trap "" PIPE # a program that ended early is told of below
other="$B/bin/rgpu run --server 127.0.0.1:${port:-0} --key $tmp/other --"
MIB=$([ $TRANSPORT = direct ] && echo 16 || echo 2)

# metric NAME [LABEL]
metric() {
	exec 8<>/dev/tcp/127.0.0.1/$web || return
	printf 'GET /metrics HTTP/1.1\r\nHost: localhost:%s\r\nConnection: close\r\n\r\n' $web >&8
	timeout 60 cat <&8 >"$tmp/metrics"
	exec 8>&- 8<&-
	awk -v m="$1" -v l="${2:-}" 'index($0, m) == 1 && index($0, l) { print $NF; exit }' "$tmp/metrics"
}

# The store takes uploads in behind their backs: so many blocks are there.
kept() { [ "$(metric $blocks)" -ge $1 ] 2>/dev/null; }
ends() { grep -c ' session end: .* comm "again" ' "$tmp/server.log"; }

# start DESCRIPTION SEED TIMES BLOCKS CMD …: again, each time when the store has so many blocks; sets sent, the bytes to the server.
start() {
	local what=$1 seed=$2 times=$3 want=$4 rc=0 before=0
	shift 4
	rm -f "$tmp/in"
	mkfifo "$tmp/in"
	[ $TRANSPORT = kmod ] || before=$(ends)
	timeout $LIMIT "$@" $E2E/again $seed $MIB $times >"$tmp/again" 2>&1 <"$tmp/in" &
	pid=$!
	exec 9>"$tmp/in"
	for i in $(seq $times); do
		until_true $LIMIT eval '[ "$(grep -c "^again:" "$tmp/again")" -ge $i ] || ! kill -0 $pid 2>/dev/null'
		[ $want = 0 ] || until_true 100 kept $want || echo "# the store has $(metric $blocks) blocks, not $want"
		[ $i -eq $times ] || echo >&9
	done
	sent=$(metric rgpu_session_sent_bytes_total 'comm="again"')
	exec 9>&-
	wait $pid || rc=$?
	if [ $TRANSPORT = direct ]; then
		until_true 60 eval '[ "$(ends)" -gt $before ]'
		sent=$(sed -n 's/.* session end: .* comm "again" .*, \([0-9]*\) bytes up, .*/\1/p' "$tmp/server.log" | tail -n 1)
	fi
	result $rc "$what: ${sent:-?} bytes" || diag <"$tmp/again"
}
n=$(((MIB + MIB / 2) * 4 + 10)) # blocks of the weights, and nearly all of the module's
least=$(((MIB + MIB / 2 + 1) << 20)) # what the weights and the module come to

start "the first start" 1 1 $n $(gpu)
first=${sent:-0}
[ $first -gt $least ]
result $? "… sends it all"
start "the second" 1 1 $n $(gpu)
[ ${sent:-$first} -lt $((first / 20)) ]
result $? "… sends less than a twentieth of that"
if [ $TRANSPORT = kmod ]; then
	$B/bin/rgpu status >"$tmp/status" 2>&1
	grep -Eq 'known to the server: ([4-9]|[1-9][0-9]+)\.[0-9] MiB in [1-9][0-9]* blocks, not sent' "$tmp/status"
	result $? "rgpu status has it" || diag <"$tmp/status"
	done_testing
fi

start "another client's first start" 1 1 $((2 * n)) $other
[ ${sent:-0} -gt $least ]
result $? "… sends it all: what the first one sent is not for it"
start "… its second" 1 1 $((2 * n)) $other
[ ${sent:-$first} -lt $((first / 20)) ]
result $? "… does not"
start "other weights, three times" 2 3 $((3 * n)) $(gpu)
[ $sent -gt $least ] && [ $sent -lt $((2 * first)) ]
result $? "… are sent once"

# The connection breaks while blocks are named, needed, sent again.
$E2E/cutter $port 5 300000 25 >"$tmp/cutter" 2>&1 &
cutter=$!
until_true 10 test -s "$tmp/cutter"
server_stop
RGPU_SOFTGPU_DEVICES=2 $B/bin/rgpu-server --softgpu --listen 127.0.0.1:$port --key "$key" --direct-grace 60 --cache-mib 10 --web $web \
	>>"$tmp/server.log" 2>&1 </dev/null &
server_pid=$!
until_true 60 listening $port
far="$B/bin/rgpu run --server 127.0.0.1:$(head -n 1 "$tmp/cutter") --key $key --"
MIB=8
start "cut again and again, with a store too small for it" 3 12 0 env RGPU_TRACE_ROUNDTRIPS=1 $far
grep -Eq '^rgpu: +[1-9][0-9]* NEED$' "$tmp/again"
result $? "… blocks that were gone are counted as round trips" || diag <"$tmp/again"
grep -q done "$tmp/cutter"
result $? "… 25 times"
kept=$(metric rgpu_cache_bytes)
[ "${kept:-99999999}" -le $((10 << 20)) ] && [ "${kept:-0}" -gt 0 ]
result $? "the store holds $kept bytes, of 10 MiB"
[ "$(metric rgpu_cache_evicted_blocks_total)" -gt 0 ] && [ "$(metric rgpu_cache_hits_total)" -gt 0 ]
result $? "… some went, some were of use" || diag <"$tmp/metrics"
kill $cutter
MIB=16
server_stop
web=$(free_port)
server_start --cache-mib 0 --web $web
start "a server that keeps nothing" 1 1 0 $(gpu)
start "… twice" 1 1 0 $(gpu)
[ ${sent:-0} -gt $least ]
result $? "… gets it all again"
done_testing
