#!/bin/bash
# SPDX-License-Identifier: MIT
# scripts/vm itself: statuses, clean streams, what stays and what does not, and that a bad run is not taken for a good one.
cd "$(dirname "$0")/../.." || exit
n=0 failed=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# is GOT WANT DESCRIPTION
is()
{
	n=$((n + 1))
	if [ "$1" = "$2" ]; then
		echo "ok $n - $3"
	else
		failed=1
		echo "not ok $n - $3"
		printf 'got: %s\nwant: %s\n' "$1" "$2" | sed 's/^/# /'
	fi
}

vm() { scripts/vm run --no-module --name long-vm "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; }

for kernel in 6.1 6.12; do
	vm --kernel $kernel --out "$tmp/o" -- bash -c 'echo to stdout; echo to stderr >&2; echo x >/etc/rgpu-was-here; uname -r >/out/release; exit 7'
	is $? 7 "$kernel: the status is the command's"
	is "$(cat "$tmp/out")" "to stdout" "$kernel: stdout holds what the command wrote there, and nothing else"
	is "$(cat "$tmp/err")" "to stderr" "$kernel: so does stderr"
	is "$(cat "$tmp/o/release")" "$(scripts/setup --kernel $kernel)" "$kernel: --out keeps what is written to /out, and the release is the one wanted"
	is "$(ls /etc/rgpu-was-here 2>/dev/null)" "" "$kernel: what is written elsewhere vanishes"
done

vm -- sh -c 'head -c 50000000 /dev/zero'
is "$(wc -c <"$tmp/out")" 50000000 "50 MB come out whole"
vm -- sh -c 'sleep 500 & echo done'
is "$? $(cat "$tmp/out")" "0 done" "a process left behind does not hold up the end"
vm -- sh -c 'echo "WARNING: made up by a test" >/dev/kmsg; true'
is $? 125 "a warning in the kernel's log fails the run"
is "$(grep -c 'error: the kernel complained' "$tmp/err")" 1 "and is named as the cause"
# race FRAME: a report as KCSAN writes them.
race() { printf 'for l in ===== "BUG: KCSAN: data-race in a / b" "" "read to 0x1 of 4 bytes by task 1 on cpu 0:" " %s" =======; do echo "$l" >/dev/kmsg; done' "$1"; }
vm -- sh -c "$(race 'rgpu_wait+0x1/0x2 [rgpu]')"
is $? 125 "a data race of the module fails the run"
vm -- sh -c "$(race 'native_stop_other_cpus+0x1/0x2')"
is $? 0 "one of the kernel's own does not"
is "$(grep -c 'not ours: .*KCSAN' "$tmp/err")" 1 "and is told"
vm -- sh -c 'echo c >/proc/sysrq-trigger; sleep 60'
is $? 125 "a panic fails the run"
vm --time-limit 25 -- sleep 600
is $? 124 "the time limit ends the run"
scripts/vm run --module-only --name long-vm --ko /nonexistent -- true 2>"$tmp/err"
is $? 125 "no module to load is an error"
is "$(grep -c 'run make' "$tmp/err")" 1 "and the next step is named"

scripts/vm run --no-module --name long-vm-killed -- sleep 600 >/dev/null 2>&1 &
pid=$!
sleep 5
qemu=$(pgrep -P $pid qemu)
kill -9 $pid
wait $pid 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do
	kill -0 "$qemu" 2>/dev/null || break
	sleep 0.5
done
is "$qemu $(kill -0 "$qemu" 2>&1 | grep -o 'No such process')" "$qemu No such process" "QEMU does not outlive a killed scripts/vm"
rm -rf build/vm/run-long-vm-killed-*
echo "1..$n"
exit $failed
