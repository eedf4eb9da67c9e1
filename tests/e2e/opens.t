#!/bin/bash
# SPDX-License-Identifier: MIT
# What a program touches: through the module it opens /dev/rgpu0 and no socket; directly it is the other way round.
. tests/e2e/lib.sh
gpu_ready
command -v strace >/dev/null || { echo "Bail out! no strace: scripts/setup installs it"; exit 1; }
passes "vectorAdd under strace" $(gpu) strace -f -qq -o "$tmp/trace" -e trace=open,openat,openat2,socket,socketpair,connect $E2E/vadd
opened=$(grep -cE 'open(at2?)?\(.*"/dev/rgpu0".* = [0-9]+' "$tmp/trace")
sockets=$(grep -cE '(socket|socketpair|connect)\(' "$tmp/trace")
devices=$(grep -cE 'open(at2?)?\(.*"/dev/rgpu' "$tmp/trace")
if [ $TRANSPORT = kmod ]; then
	[ "$opened" -ge 1 ]
	result $? "it opened /dev/rgpu0"
	[ "$sockets" -eq 0 ]
	result $? "it made no socket"
else
	[ "$devices" -eq 0 ]
	result $? "with RGPU_SERVER set it looked at no device"
	[ "$sockets" -ge 1 ]
	result $? "it made its own connection"
fi
[ $failed -eq 0 ] || grep -E 'rgpu|socket|connect' "$tmp/trace" | diag
done_testing
