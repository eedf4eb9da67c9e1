#!/bin/bash
# SPDX-License-Identifier: MIT
# Two clients of one server, one of them hostile: the other has no failed call. Its latency beside an equally busy honest one is printed.
#
# RGPU_HOSTILE_SECS (5): how long each of the two measurements takes.
. tests/e2e/lib.sh
[ $TRANSPORT = direct ] || skip_all "the hostile client speaks to the server itself"
SECS=${RGPU_HOSTILE_SECS:-5} SEED=${RGPU_FAULT_SEED:-$RANDOM}
echo "# seed $SEED"
$B/bin/rgpu-server --pair --key "$tmp/bad" >"$tmp/pair.log" 2>&1
bad=$(sed -n 's/.*(id \([0-9a-f]*\)).*/\1/p' "$tmp/pair.log" | head -n 1)
gpu_ready --key "$tmp/bad" --grace 2 --direct-grace 1 --client "${bad:-*} session-mem=64 mem=128 sessions=8"

begin() { # NAME CMD …
	local name=$1
	shift
	mkfifo "$tmp/$name.in"
	"$@" >"$tmp/$name" 2>&1 <"$tmp/$name.in" 9>&- 8>&- 7>&- & # they would keep one another's input open
}
good() {
	begin $1 $(gpu) $E2E/small_drv
	good_pid=$!
	exec 9>"$tmp/$1.in"
	until_true 60 grep -q works "$tmp/$1"
}
figure() { sed -n "s/.*$2 \([0-9]*\).*/\1/p" "$tmp/$1"; }

# Beside an honest client that is as busy as it can be.
good beside
begin honest $B/bin/rgpu run --server 127.0.0.1:$port --key "$tmp/bad" -- $E2E/chain 0
honest=$!
exec 8>"$tmp/honest.in"
sleep $SECS
exec 9>&-
wait $good_pid
result $? "calls beside an honest client" || diag <"$tmp/beside"
exec 8>&-
wait $honest
result $? "which is right, too" || diag <"$tmp/honest"

# Beside a hostile one that also takes what memory it can get.
good under
begin hostile $E2E/hostile $port "$tmp/bad" $SEED
hostile=$!
exec 8>"$tmp/hostile.in"
begin greedy $B/bin/rgpu run --server 127.0.0.1:$port --key "$tmp/bad" -- $E2E/quota_drv wait
greedy=$!
exec 7>"$tmp/greedy.in"
sleep $SECS
exec 9>&-
wait $good_pid
result $? "no call fails beside a hostile client" || diag <"$tmp/under"
exec 8>&-
wait $hostile
result $? "which came to its end" || diag <"$tmp/hostile"
exec 7>&-
wait $greedy
diag <"$tmp/hostile"
grep -q 'forged records' "$tmp/hostile" && ! grep -q ' 0 times forged' "$tmp/hostile"
result $? "and had sessions to forge records in"
echo "# beside an honest client: $(tail -n 1 "$tmp/beside") µs; beside a hostile one: $(tail -n 1 "$tmp/under") µs"
a=$(figure beside p99) b=$(figure under p99)
[ -n "$a" ] && [ -n "$b" ] && echo "# p99 ratio $(awk "BEGIN { printf \"%.2f\", $b / ($a > 0 ? $a : 1) }") (3 is wanted)"
kill -0 $server_pid
result $? "the server is there"
passes "and serves" $(gpu) $E2E/vadd
none() { [ "$(workers)" -eq 0 ]; }
until_true 60 none
result $? "no worker is left of it all"
done_testing
