#!/bin/bash
# SPDX-License-Identifier: MIT
# The proxy is killed with -9 at random points of a thousand operations, round after round, and each of them is done exactly once.
# RGPU_ONCE_ROUNDS: rounds with a kill in them.
. tests/e2e/lib.sh
[ $TRANSPORT = kmod ] || skip_all "there is no proxy in the direct transport"
gpu_ready
ctl=$RGPU_VMCTL
rounds=${RGPU_ONCE_ROUNDS:-2}
RANDOM=${RGPU_ONCE_SEED:-$$}
echo "# RGPU_ONCE_SEED=${RGPU_ONCE_SEED:-$$}"

mkfifo "$tmp/go"
$(gpu) $E2E/once 1000 <"$tmp/go" >"$tmp/once" 2>&1 &
program=$!
exec 9>"$tmp/go"
told() { [ "$(grep -c ^round "$tmp/once")" -ge "$1" ]; }
over() { told "$1" || ! kill -0 $program 2>/dev/null; }

# The first goes undisturbed, and tells how long one takes.
echo >&9
until_true 300 over 1
told 1
result $? "a round of 1,000 operations" || diag <"$tmp/once"
took() { sed -n "s/^round $1: .* in \([0-9]*\) ms/\1/p" "$tmp/once"; }
ms=$(took 1)
n=1 hits=0
while [ $hits -lt $rounds ] && [ $n -lt $((rounds * 10)) ] && kill -0 $program 2>/dev/null; do
	n=$((n + 1))
	proxy=$($ctl proxy pid)
	echo >&9
	at=$((ms * RANDOM / 32768))
	sleep $((at / 1000)).$(printf %03d $((at % 1000)))
	kill -KILL $proxy # by the shell itself: to start vmctl may take as long as a round
	$ctl proxy stop KILL
	# A round that was over already was not hit, and tells anew how long one takes.
	if told $n; then ms=$(took $n); else hits=$((hits + 1)); fi
	$ctl proxy start 9>&- # it would keep the program's input open
	until_true 300 over $n || break
done
[ $hits = $rounds ]
result $? "$rounds rounds in which the proxy was killed (of $n, each $ms ms undisturbed)" || diag <"$tmp/once"
told $n
result $? "all of them came to their end"
exec 9>&-
wait $program
result $? "each operation was done exactly once" || tail -n 5 "$tmp/once" | diag
passes "the device is back" $ctl wait online 60
done_testing
