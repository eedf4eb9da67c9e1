#!/bin/bash
# SPDX-License-Identifier: MIT
# Plaintext, where it is asked for at both ends and both are on this machine: checked bytes, and what is damaged is sent again.
#
# RGPU_FAULT_FLIPS (30): how many bits change on their way.
. tests/e2e/lib.sh
[ $TRANSPORT = direct ] || skip_all "a guest's server is another machine's"
FLIPS=${RGPU_FAULT_FLIPS:-30} SEED=${RGPU_FAULT_SEED:-$RANDOM}
echo "# seed $SEED"
init="$E2E/errors_drv init"
run="$B/bin/rgpu run"

gpu_ready
fails "a server that was not asked for it" "takes no plaintext \(plaintext = yes in its configuration\)" $run --server 127.0.0.1:$port --auth plaintext -- $init
grep -q "plaintext, which is not taken here" "$tmp/server.log"
result $? "says so in its log, too" || diag <"$tmp/server.log"
server_stop

# On all addresses of this machine: only the loopback ones count.
address=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -v ':' | head -n 1)
port=$(free_port)
RGPU_SOFTGPU_DEVICES=1 $B/bin/rgpu-server --softgpu --plaintext --verbose --listen 0.0.0.0:$port --state-dir "$tmp/state" --grace 60 \
	--client "plaintext session-mem=256" >>"$tmp/server.log" 2>&1 </dev/null &
server_pid=$!
ready() { $run --server 127.0.0.1:$port --auth plaintext -- $init >"$tmp/out" 2>&1; }
until_true 60 ready
result $? "a server with plaintext and nothing else" || diag <"$tmp/server.log"
plain="$run --server 127.0.0.1:$port --auth plaintext --"
passes "a program runs" $plain $E2E/vadd
passes "another" $plain $E2E/quota_drv
read -r _ total _ <"$tmp/out"
[ "$total" = 256 ]
result $? "has the limits of the client \"plaintext\"" || diag <"$tmp/out"
grep -Eq 'session end: .* client plaintext from 127\.0\.0\.1:[0-9]+ .* [1-9][0-9]* bytes up, [1-9][0-9]* down: ' "$tmp/server.log"
result $? "which is in the log" || diag <"$tmp/server.log"
fails "a client does not go to another machine" "198\.51\.100\.7 is not a loopback address, and plaintext goes to no other" $run --server 198.51.100.7:$port --auth plaintext -- $init
fails "nor where the environment says so" "is not a loopback address" env RGPU_SERVER=198.51.100.7:$port RGPU_AUTH=plaintext LD_LIBRARY_PATH=$B/lib $init
fails "nor does the proxy's configuration take it" "is not a loopback address" $B/bin/rgpu-proxy --server 198.51.100.7 --auth plaintext --check-config
if [ -n "$address" ]; then
	python3 - "$address" $port >"$tmp/out" <<-'P'
		import socket, sys
		s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
		s.settimeout(20)
		s.sendall(b'RGPUcrc1' + bytes(24))
		heard = b''
		while more := s.recv(4096):
		    heard += more
		print(heard)
	P
	grep -q "takes plaintext from its own loopback addresses only" "$tmp/out"
	result $? "a connection to another address of the server is refused, and told why" || diag <"$tmp/out"
else
	skip "a connection to another address of the server" "this machine has none"
fi
fails "a client with a key" "refused the key|offered no key|does not speak TLS" env RGPU_SERVER=127.0.0.1:$port RGPU_KEY=$key LD_LIBRARY_PATH=$B/lib $init

# A server of a release that knows no plaintext closes the connection.
python3 - >"$tmp/old" <<-'P' &
	import socket
	s = socket.create_server(('127.0.0.1', 0))
	print(s.getsockname()[1], flush=True)
	while True:
	    c, _ = s.accept()
	    c.recv(32)
	    c.close()
P
old=$!
until_true 30 test -s "$tmp/old"
fails "a server of an older release" "of a release without plaintext" $run --server 127.0.0.1:$(cat "$tmp/old") --auth plaintext -- $init
kill $old
wait $old 2>/dev/null

# A bit changes on the way: it is found, the connection is dropped, and the session goes on where it was.
$E2E/cutter $port $SEED 60000 $FLIPS flip >"$tmp/cutter" 2>&1 &
cutter=$!
until_true 10 test -s "$tmp/cutter"
mkfifo "$tmp/in"
$run --server 127.0.0.1:$(head -n 1 "$tmp/cutter") --auth plaintext -- $E2E/chain 0 >"$tmp/chain" 2>&1 <"$tmp/in" &
pid=$!
exec 9>"$tmp/in"
until_true 250 eval 'grep -q done "$tmp/cutter" || ! kill -0 $pid 2>/dev/null'
grep -q done "$tmp/cutter"
result $? "$FLIPS bits changed under a program" || diag <"$tmp/chain"
exec 9>&-
wait $pid
result $? "each of its calls has run once, in its place" || { diag <"$tmp/chain"; diag <"$tmp/server.log"; }
cat "$tmp/server.log" "$tmp/chain" | grep -c "damaged bytes" >"$tmp/out"
[ "$(cat "$tmp/out")" -gt 0 ]
result $? "damage was found, not met by chance ($(cat "$tmp/out") times at the server)" || diag <"$tmp/server.log"
kill $cutter
wait $cutter 2>/dev/null
none() { [ "$(workers)" -eq 0 ]; }
until_true 60 none
result $? "no worker is left"
done_testing
