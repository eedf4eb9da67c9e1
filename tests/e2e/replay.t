#!/bin/bash
# SPDX-License-Identifier: MIT
# All that a client ever sent is sent again to the same server, with a key and with a certificate: nobody is let in, nothing is made.
. tests/e2e/lib.sh
. tests/e2e/pki.sh
[ $TRANSPORT = direct ] || skip_all "the server does not know what stands before the relay"
pki_ca fleet
pki_issue fleet server server "IP:127.0.0.1"
pki_issue fleet alice alice ""
gpu_ready --verbose $(tls server fleet)
real=$port

count() { grep -c -- "$1" "$tmp/server.log"; }
none() { [ "$(workers)" -eq 0 ]; }
# What only one who was let in brings about: a greeting that was read, a session, a data connection with a good token.
counts() { echo "$(count 'client "') $(count 'session start') $(count 'session end') $(count ', wire ')"; }

again() { # WHAT ARG …
	local what=$1 before
	shift
	mkdir "$tmp/said-$what"
	python3 tests/e2e/replay.py record $real "$tmp/said-$what" >"$tmp/$what.port" &
	local recorder=$!
	until_true 30 test -s "$tmp/$what.port"
	passes "$what: a program, recorded" $B/bin/rgpu run --server 127.0.0.1:$(head -n 1 "$tmp/$what.port") "$@" -- $E2E/vadd
	until_true 30 none
	kill $recorder
	wait $recorder 2>/dev/null
	[ "$(ls "$tmp/said-$what" | wc -l)" -ge 2 ] && [ "$(cat "$tmp/said-$what"/* | wc -c)" -gt 1000000 ]
	result $? "$what: its control and data connections, and more than a million bytes, are there" || ls -l "$tmp/said-$what" | diag
	before=$(counts)
	passes "$what: they are played again" python3 tests/e2e/replay.py play $real "$tmp/said-$what" 0.3
	cp "$tmp/out" "$tmp/played"
	# A server's flight is about 300 bytes with a key, some more with a certificate, and then an alert; a data connection hears nothing.
	awk '$2 == "data" && $3 > 0 || $2 == "control" && ($3 < 7 || $3 > 3000) { bad = 1 } $2 == "data" { d++ } $2 == "control" { c++ } END { exit bad || !d || !c }' "$tmp/played"
	result $? "$what: the answers are a handshake's beginning and its end" || diag <"$tmp/played"
	[ "$(counts)" = "$before" ] && none
	result $? "$what: no greeting was read, no session was made" || { echo "# $before → $(counts)"; diag <"$tmp/server.log"; }
	count 'connection was dropped: its token is unknown' >"$tmp/dropped"
	[ "$(cat "$tmp/dropped")" -gt "${dropped:-0}" ]
	result $? "$what: the token was good once" || diag <"$tmp/server.log"
	dropped=$(cat "$tmp/dropped")
}
again key --key $key
again certificate $(tls alice fleet)
grep -q 'connections\? refused; the last: ' "$tmp/server.log"
result $? "the log tells of them" || diag <"$tmp/server.log"

# Nothing is parsed before the handshake: a greeting in the clear, whole and first, gets no answer and leaves no trace but that line.
before=$(counts)
python3 - $real >"$tmp/out" <<'P'
import socket, struct, sys
for head in (b'', b'RGPUdata' + bytes(24), b'\x16\x03\x01'):
    s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
    s.settimeout(10)
    heard = b''
    try:
        s.sendall(head + struct.pack('<IHHII', 104, 1, 0, 0, 0) + b'RGPU' + bytes(100))
        while more := s.recv(4096):
            heard += more
    except ConnectionError:
        pass
    except TimeoutError:
        heard = b'it waits for more'
    print(head[:4], heard)
    assert len(heard) <= 7 # an alert
P
result $? "a greeting without a handshake is cut off" || diag <"$tmp/out"
[ "$(counts)" = "$before" ]
result $? "and read by nobody" || diag <"$tmp/server.log"

# What could be kept to come back without proof.
secret=$(sed -n 2p "$key")
id=rgpu-pairing/$(sed -n 's/.*(id \([0-9a-f]*\)).*/\1/p' "$tmp/pair.log" | head -n 1)
for with in "-psk $secret -psk_identity $id" "-cert $pki/alice.crt -key $pki/alice.key"; do
	(sleep 1) | timeout 20 openssl s_client -connect 127.0.0.1:$real -tls1_3 $with -sess_out "$tmp/ticket" >"$tmp/out" 2>&1
	! [ -s "$tmp/ticket" ] && ! grep -q 'New Session Ticket' "$tmp/out" && grep -Eq '(Cipher is|Ciphersuite:|Cipher    :) TLS_' "$tmp/out"
	result $? "no session ticket is given out: ${with%% *}" || diag <"$tmp/out"
done
passes "and the server serves" $(gpu) $E2E/vadd
done_testing
