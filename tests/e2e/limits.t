#!/bin/bash
# SPDX-License-Identifier: MIT
# What a client may use: memory of a session and of all its sessions, devices, sessions; keys that are taken away from a running server.
. tests/e2e/lib.sh
[ $TRANSPORT = direct ] || skip_all "the limits are the server's: the same whoever brings the records"
$B/bin/rgpu-server --pair --key "$tmp/other" >/dev/null 2>&1
$B/bin/rgpu-server --pair --key "$tmp/key" >"$tmp/pair.log" 2>&1
id() { sed -n 's/.*"id": *"\([^"]*\)".*/\1/p; s/.*(id \([0-9a-f]*\)).*/\1/p' "$1" | head -n 1; }
cat >"$tmp/conf" <<C
[server]
softgpu = yes
key = $tmp/key
key = $tmp/other
state-dir = $tmp/state
client = * session-mem=256 mem=384
C
port=$(free_port)
echo "listen = 127.0.0.1:$port" >>"$tmp/conf"
key=$tmp/key
RGPU_SOFTGPU_DEVICES=2 $B/bin/rgpu-server --config "$tmp/conf" >"$tmp/server.log" 2>&1 </dev/null &
server_pid=$!
until_true 60 listening $port
result $? "a server with limits" || diag <"$tmp/server.log"
as() { echo $B/bin/rgpu run --server 127.0.0.1:$port --key "$1" --; }

passes "a program" $(as $key) $E2E/quota_drv
read -r _ total _ free _ got _ _ _ again _ arrays _ imported <<<"$(cat "$tmp/out")"
[ "$total" = 256 ] && [ "$free" -le 256 ]
result $? "sees a device of the size that its session may have" || diag <"$tmp/out"
[ "$got" -ge 200 ] && [ "$got" -le 256 ]
result $? "gets that much and no more" || diag <"$tmp/out"
[ "$again" = "$got" ]
result $? "and again after freeing it" || diag <"$tmp/out"
[ "$arrays" -ge 100 ] && [ "$arrays" -le 256 ]
result $? "arrays count, too" || diag <"$tmp/out"
[ "$imported" -ge 100 ] && [ "$imported" -le 256 ]
result $? "and memory that it imported and that was let go where it was made" || diag <"$tmp/out"

hold() { # NAME KEY [FD]: until that is closed
	mkfifo "$tmp/$1.in"
	$(as "$2") $E2E/quota_drv wait >"$tmp/$1" 2>&1 <"$tmp/$1.in" &
	held=$!
	eval "exec ${3:-9}>\"$tmp/$1.in\""
	until_true 60 test -s "$tmp/$1"
}
hold first $key
passes "a second program beside one that has its 256 MiB" $(as $key) $E2E/quota_drv
read -r _ total _ free _ got _ <<<"$(cat "$tmp/out")"
[ "$got" -ge 64 ] && [ "$got" -le 128 ]
result $? "gets what the client has left of 384" || diag <"$tmp/out"
passes "another client's program" $(as "$tmp/other") $E2E/quota_drv
read -r _ _ _ _ _ got _ <<<"$(cat "$tmp/out")"
[ "$got" -ge 200 ]
result $? "does not feel it" || diag <"$tmp/out"
kill -9 $held
exec 9>&-
wait $held 2>/dev/null
whole_again() {
	$(as $key) $E2E/quota_drv >"$tmp/out" 2>&1 && read -r _ _ _ _ _ got _ <<<"$(cat "$tmp/out")" && [ "$got" -ge 200 ]
}
until_true 60 whole_again
result $? "what a killed program had is its client's again"

# Nothing is left of a server that could clear the account: the next one does.
hold third "$tmp/other" 8
hold fourth $key
kill -9 $server_pid $(sed -n 's/.*session start: .*, worker \([0-9]*\)$/\1/p' "$tmp/server.log" | tail -n 2)
exec 8>&- 9>&-
wait $server_pid $held 2>/dev/null
RGPU_SOFTGPU_DEVICES=2 $B/bin/rgpu-server --config "$tmp/conf" >>"$tmp/server.log" 2>&1 </dev/null &
server_pid=$!
until_true 60 listening $port
passes "a program, after a server and its workers were killed" $(as $key) $E2E/quota_drv
read -r _ _ _ _ _ got _ <"$tmp/out"
[ "$got" -ge 200 ]
result $? "has all that its session may have" || diag <"$tmp/out"

# Reloaded while a program of each runs: one key is gone, and the other client has fewer devices and sessions.
hold second "$tmp/other"
sed -i "/other/d; s/^client.*/client = * devices=1 sessions=2/" "$tmp/conf"
kill -HUP $server_pid
until_true 60 grep -q "does not take this client's key any more" "$tmp/server.log"
result $? "a running session of a key that was taken away is ended, with the cause in the log" || diag <"$tmp/server.log"
fails "its client is refused" "refused the key|wrong or unknown key" $(as "$tmp/other") $E2E/errors_drv init
kill $held 2>/dev/null
exec 9>&-
wait $held 2>/dev/null
until_true 60 listening $port
fails "a device that a client may not use" "may not use the server's device 0" $(as $key) $E2E/quota_drv
passes "one that it may" env CUDA_VISIBLE_DEVICES=1 $(as $key) $E2E/quota_drv
grep -Eq 'session end: .* from 127\.0\.0\.1:[0-9]+ .* [0-9]+ bytes up, [0-9]+ down: ' "$tmp/server.log"
result $? "each session's end is in the log: who, from where, how long, how much, why" || diag <"$tmp/server.log"

# How much is what somebody between the two saw of its data connection, but for TLS's own bytes.
mkdir "$tmp/seen"
python3 tests/e2e/replay.py record $port "$tmp/seen" >"$tmp/wire" &
between=$!
until_true 30 test -s "$tmp/wire"
passes "a program that copies 32 MiB up and 32 MiB down" env CUDA_VISIBLE_DEVICES=1 $B/bin/rgpu run \
	--server 127.0.0.1:$(head -n 1 "$tmp/wire") --key $key -- $E2E/bothways 2 16
until_true 30 grep -q 'session end: .*comm "bothways"' "$tmp/server.log"
until_true 30 grep -q '^data' "$tmp/wire"
kill $between
sed -n 's/.*session end: .*comm "bothways".* \([0-9]*\) bytes up, \([0-9]*\) down: .*/log \1 \2/p' "$tmp/server.log" | cat - "$tmp/wire" >"$tmp/out"
awk '$1 == "log" { up = $2; down = $3 } $1 == "data" { u += $2; d += $3 }
	END { exit !(up > 0 && down > 0 && up <= u && down <= d && up > u * 0.98 - 2000 && down > d * 0.98 - 2000 && u > 1000000 && d > 1000000) }' "$tmp/out"
result $? "the log has as many bytes each way as went over its data connection" || diag <"$tmp/out"
done_testing
