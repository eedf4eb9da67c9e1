#!/bin/bash
# SPDX-License-Identifier: MIT
# A disk is full: of the server's state (the account of memory, its name, the workers' sockets), of its log, and where clients write.
# What runs goes on; what cannot begin says why; and nothing is taken for written that was not.
. tests/e2e/lib.sh
[ $TRANSPORT = direct ] || skip_all "the disks are the server's and the tools', whoever brings the records"
disk=$tmp/disk
mkdir "$disk"
mount -t tmpfs -o size=16m,mode=700,nr_inodes=1000 none "$disk" 2>/dev/null || skip_all "no file system may be mounted here"
trap 'server_stop; umount -l "$disk"; rm -rf "$tmp"' EXIT
state=$disk/state
take_all() { # of the disk, but so many pages
	head -c 16m /dev/zero >"$disk/full" 2>/dev/null
	truncate -s -$(($1 * 4096)) "$disk/full"
}
resize() { mount -o remount,"$1" "$disk"; }
inodes() { df --output=iused "$disk" | tail -n 1 | tr -d ' '; }

# A server that cannot keep its state.
key=$tmp/key
$B/bin/rgpu-server --pair --key "$key" >/dev/null 2>&1
fails_to_start() { # DESCRIPTION PATTERN
	fails "$1" "$2" $B/bin/rgpu-server --softgpu --listen 127.0.0.1:$(free_port) --key "$key" --state-dir "$state"
}
resize nr_inodes=$(inodes)
fails_to_start "without room for its state, a server does not start" "cannot make $state: No space left"
resize nr_inodes=1000
mkdir -m 700 "$state"
take_all 0
fails_to_start "nor without room for its name" "name in $state: No space left"
fails "a key that finds no room is not made" "key file $disk/key: No space left" $B/bin/rgpu-server --pair --key "$disk/key"
[ ! -e "$disk/key" ]
result $? "… nor left in part"

# Room for the name, and none for the account: programs are told, and the server stays.
take_all 1
server_start --state-dir "$state" --verbose
result $? "a server with room for its name alone" || diag <"$tmp/server.log"
grep -q "account of memory in $state.*No space left.*no session" "$tmp/server.log"
result $? "… says what it cannot do" || diag <"$tmp/server.log"
fails "… and so does a program" "cannot write to its state directory" $(gpu) $E2E/vadd_drv 1000
fails "… another one, too" "cannot write to its state directory" $(gpu) $E2E/vadd_drv 1000
kill -0 $server_pid
result $? "… and the server is there"
server_stop
rm "$disk/full"

# The disk runs full under a server with programs. Its log is there, too.
port=$(free_port)
$B/bin/rgpu-server --softgpu --listen 127.0.0.1:$port --key "$key" --state-dir "$state" --grace 60 --direct-grace 60 --verbose \
	>"$disk/log" 2>&1 </dev/null &
server_pid=$!
until_true 60 listening $port
mkfifo "$tmp/in"
$(gpu) $E2E/chain 0 >"$tmp/chain" 2>&1 <"$tmp/in" &
chain=$!
exec 9>"$tmp/in"
until_true 60 grep -q works "$tmp/chain"
result $? "a program works"
take_all 0
said=$(stat -c %s "$disk/log")
passes "the disk is full: another program starts" $(gpu) $E2E/vadd_drv 1000
[ $(($(stat -c %s "$disk/log") - said)) -lt 4096 ]
result $? "… of which the log cannot tell"
one_left() { [ "$(workers)" -eq 1 ]; }
until_true 30 one_left
resize nr_inodes=$(inodes)
fails "nor has it a place for one more socket: a program is told so" "cannot listen on $state/.*No space left" $(gpu) $E2E/vadd_drv 1000
kill -HUP $server_pid
sleep 1
fails "after a reload, too" "cannot listen on $state/.*No space left" $(gpu) $E2E/vadd_drv 1000
resize nr_inodes=1000
passes "with room again, programs start" $(gpu) $E2E/vadd_drv 1000
exec 9>&-
wait $chain
result $? "and what ran all the time ends right" || diag <"$tmp/chain"
rm "$disk/full"
passes "the server has its log again, too" $(gpu) $E2E/vadd_drv 1000
grep -q "session end" "$disk/log"
result $? "… where it says so"

# What clients write.
$(gpu) $B/bin/rgpu-smi -f /dev/full >"$tmp/out" 2>&1
[ $? -ne 0 ] && grep -q "No space left" "$tmp/out"
result $? "rgpu-smi into a full disk fails" || diag <"$tmp/out"
fails "rgpu bug-report, too" "/dev/full: No space left" $B/bin/rgpu bug-report -o /dev/full
$(gpu) $B/bin/rgpu-smi >/dev/full 2>"$tmp/out"
[ $? -ne 0 ] && grep -q "No space left" "$tmp/out"
result $? "… and where standard output is there" || diag <"$tmp/out"
done_testing
