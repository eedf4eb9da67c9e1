#!/bin/bash
# SPDX-License-Identifier: MIT
# Certificates beside keys: who is let in, as whom, what either end says of one that is not good, and revocation under a running program.
. tests/e2e/lib.sh
. tests/e2e/pki.sh
pki_ca fleet
pki_ca other
pki_issue fleet server gpuhost "DNS:gpuhost.example,IP:127.0.0.1"
pki_issue fleet alice ignored "DNS:alice.example"

# serve ARG …: a server of this test's own, whichever the transport is.
serve() {
	port=$(free_port)
	RGPU_SOFTGPU_DEVICES=1 $B/bin/rgpu-server --softgpu --listen 127.0.0.1:$port --state-dir "$tmp/state" "$@" \
		>>"$tmp/server.log" 2>&1 </dev/null &
	server_pid=$!
	until_true 60 listening $port
}
said() { grep -Eq -- "$1" "$tmp/server.log"; }
as() { echo $B/bin/rgpu run --server ${host:-127.0.0.1}:$port $(tls $1 ${2:-fleet}) --; }
init="$E2E/errors_drv init"

if [ $TRANSPORT = kmod ]; then
	# The guest's proxy makes way for one with a certificate, before a server in the guest.
	gpu_ready
	ctl=$RGPU_VMCTL
	passes "the proxy stops" $ctl proxy stop
	serve $(tls server fleet) --client "alice.example session-mem=256"
	result $? "a server with a certificate, and no key" || diag <"$tmp/server.log"
	begin_proxy() { $B/bin/rgpu-proxy --server "$1:$port" $(tls $2 fleet) >"$tmp/proxy.log" 2>&1 </dev/null & proxy=$!; }
	online() { read -r state </sys/class/rgpu/rgpu0/state && [ "$state" = online ]; }
	end_proxy() { kill $proxy; wait $proxy 2>/dev/null; }
	begin_proxy 127.0.0.1 alice
	until_true 60 online
	result $? "the device comes" || diag <"$tmp/proxy.log"
	passes "a program runs" $(gpu) $E2E/vadd
	passes "another" $(gpu) $E2E/quota_drv
	read -r _ total _ <"$tmp/out"
	[ "$total" = 256 ]
	result $? "has the limits of the certificate's name" || diag <"$tmp/out"
	said 'session end: .* certificate alice\.example from 127\.0\.0\.1:[0-9]+ uid '
	result $? "which is in the log" || diag <"$tmp/server.log"
	end_proxy
	pki_issue other mallory mallory ""
	begin_proxy 127.0.0.1 mallory
	until_true 60 grep -q "does not trust who issued this client's certificate" "$tmp/proxy.log"
	result $? "a proxy with a certificate of another authority is told" || diag <"$tmp/proxy.log"
	said 'a client.s certificate \(mallory\) was issued by "authority other", which is not trusted here'
	result $? "and the server's log names it" || diag <"$tmp/server.log"
	fails "a program's error says where to look" "look at its log" $(gpu) $init
	end_proxy
	passes "the guest's own proxy starts again" $ctl proxy start
	passes "the device is back" $ctl wait online 60
	done_testing
fi

pki_issue fleet bob bob ""
pki_crl fleet
key=$tmp/key
$B/bin/rgpu-server --pair --key "$key" >"$tmp/pair.log" 2>&1
id=$(sed -n 's/.*(id \([0-9a-f]*\)).*/\1/p' "$tmp/pair.log" | head -n 1)
cat >"$tmp/conf" <<C
[server]
softgpu = yes
key = $key
tls-cert = $pki/server.crt
tls-key = $pki/server.key
tls-ca = $pki/fleet.ca
tls-crl = $pki/fleet.crl
client = alice.example session-mem=256
client = bob session-mem=128 sessions=1
C
passes "--check-config takes it" $B/bin/rgpu-server --check-config --config "$tmp/conf"
serve --config "$tmp/conf"
result $? "a server with a key and a certificate" || diag <"$tmp/server.log"

# Who is let in, as whom.
for who in alice:256 bob:128; do
	passes "${who%:*}'s program" $(as ${who%:*}) $E2E/quota_drv
	read -r _ total _ <"$tmp/out"
	[ "$total" = ${who#*:} ]
	result $? "has the limits of ${who%:*}'s name" || diag <"$tmp/out"
done
passes "a client with the key" $B/bin/rgpu run --server 127.0.0.1:$port --key $key -- $E2E/vadd
said 'session start: .* certificate alice\.example from ' && said 'session start: .* certificate bob from ' && said "session start: .* key $id from "
result $? "the log names each by what it showed: the first DNS name, the common name, the key's id" || diag <"$tmp/server.log"
mkfifo "$tmp/in"
$(as bob) $E2E/quota_drv wait >"$tmp/held" 2>&1 <"$tmp/in" &
held=$!
exec 9>"$tmp/in"
until_true 60 test -s "$tmp/held"
fails "bob's second session at once" "this client has 1 sessions, its limit" $(as bob) $E2E/quota_drv

passes "alice's programs share memory" $(as alice) $E2E/ipc

# The tools of a client machine that has a certificate.
mkdir -p "$tmp/root/etc/rgpu"
cat >"$tmp/root/etc/rgpu/proxy.conf" <<C
[proxy]
server = 127.0.0.1:$port
tls-cert = /etc/rgpu/this.crt
tls-key = /etc/rgpu/this.key
tls-ca = /etc/rgpu/ca.crt
C
look() { # FILE PATTERN: what rgpu doctor says of that certificate
	install -m 0600 "$pki/$1.key" "$tmp/root/etc/rgpu/this.key"
	cp "$pki/$1.crt" "$tmp/root/etc/rgpu/this.crt"
	cp "$pki/fleet.ca" "$tmp/root/etc/rgpu/ca.crt"
	$B/bin/rgpu doctor --root "$tmp/root" >"$tmp/out" 2>&1
	grep -Eq "$2" "$tmp/out"
}
look alice '^good +proxy-key +/etc/rgpu/this.crt, name alice.example, valid until [0-9]{4}-[0-9]{2}-[0-9]{2}$' && grep -Eq '^good +server-key +rgpu-server ' "$tmp/out"
result $? "rgpu doctor looks at the certificate, and whether the server takes it" || diag <"$tmp/out"
pki_issue fleet gone gone "" -startdate 20200101000000Z -enddate 20200201000000Z
look gone '^BAD +proxy-key +the certificate /etc/rgpu/this.crt \(gone\) expired on 2020-02-01$'
result $? "and tells that one has expired" || diag <"$tmp/out"
passes "rgpu-proxy --check-config takes a certificate" $B/bin/rgpu-proxy --server 127.0.0.1:$port $(tls alice fleet) --check-config
fails "but not both" "say which is used, with --auth key or --auth cert" $B/bin/rgpu-proxy --server 127.0.0.1:$port --key $key $(tls alice fleet) --check-config

# Which of both is explicit.
both="$B/bin/rgpu run --server 127.0.0.1:$port --key $key $(tls alice fleet)"
fails "a key and a certificate" "say which is used, with --auth key or --auth cert" $both -- $init
passes "the key of both" $both --auth key -- $init
passes "the certificate of both" $both --auth cert -- $init
fails "half a certificate" "no --tls-ca: a certificate needs all of" $B/bin/rgpu run --server 127.0.0.1:$port --tls-cert "$pki/bob.crt" --tls-key "$pki/bob.key" -- $init
fails "the environment says so, too" "with RGPU_AUTH key or RGPU_AUTH cert" env RGPU_SERVER=127.0.0.1:$port RGPU_KEY=$key RGPU_TLS_CERT=x LD_LIBRARY_PATH=$B/lib $init
fails "a key of another certificate" "is not the key of the certificate" $B/bin/rgpu run --server 127.0.0.1:$port --tls-cert "$pki/bob.crt" --tls-key "$pki/alice.key" --tls-ca "$pki/fleet.ca" -- $init
chmod 640 "$pki/alice.key"
fails "a key that others may read" "may be used by others \(mode 0640\): chmod 600 it" $(as alice) $init
chmod 600 "$pki/alice.key"

said_after() { said "$1" || { "${@:2}" >"$tmp/out" 2>&1; false; }; }
(umask 077 && openssl genrsa -out "$pki/weak.key" 1024 2>/dev/null)
pki_issue fleet weak weak ""
fails "a key that is too short" "(key too small|ee key too small)" $(as weak) $init

# What is said at either end of what is not good.
both_ends() { # WHAT CLIENT-PATTERN SERVER-PATTERN CMD …
	local what=$1 theirs=$3
	fails "$what: the client's line" "$2" "${@:4}"
	[ "$(grep -vc '^cuInit: ' "$tmp/out")" -eq 1 ] && grep -q '^cuInit: CUDA_ERROR_' "$tmp/out"
	result $? "… one, with an error of cuInit" || diag <"$tmp/out"
	until_true 20 said_after "$theirs" "${@:4}" # the log has one line a second of those that were refused
	result $? "… and the server's" || diag <"$tmp/server.log"
}
pki_issue fleet late late "" -startdate 20200101000000Z -enddate 20200201000000Z
pki_issue fleet early early "" -startdate 20490101000000Z -enddate 20491231000000Z
pki_issue other mallory mallory ""
pki_issue fleet spaced "a b" ""
pki_issue fleet keylike "$id" ""
pki_issue fleet plain plaintext ""
both_ends "an expired certificate" "this client.s certificate has expired" 'a client.s certificate \(late\) expired on 2020-02-01' $(as late) $init
both_ends "one of the future" "its log says why" 'a client.s certificate \(early\) is valid from 2049-01-01 on' $(as early) $init
both_ends "of another authority" "does not trust who issued this client.s certificate" '\(mallory\) was issued by "authority other", which is not trusted here' $(as mallory) $init
both_ends "a name that cannot stand in a line" "its log says why" 'names it "a b", which cannot be a client.s name' $(as spaced) $init
both_ends "a key's id as a name" "its log says why" "names it \"$id\", which cannot be" $(as keylike) $init
both_ends "the name of those without TLS" "its log says why" 'names it "plaintext", which cannot be' $(as plain) $init
both_ends "a client that trusts others" 'server.s certificate \(gpuhost.example, 127.0.0.1\) was issued by "authority fleet", which is not trusted here' \
	"a client does not trust who issued this server.s certificate" $(as alice other) $init
both_ends "a name that the server's does not have" 'is for gpuhost.example, 127.0.0.1, not for localhost: connect to a name that it has' "a client refused this server.s certificate" \
	$(host=localhost as alice) $init

# Without a client's certificate.
until_true 20 said_after "showed neither a key nor a certificate" openssl s_client -connect 127.0.0.1:$port -tls1_3 </dev/null
result $? "a client with neither is refused" || diag <"$tmp/server.log"

# Revocation, while bob's program runs and alice's has a connection.
pki_crl fleet bob
kill -HUP $server_pid
until_true 60 said "session end: .* certificate bob .*this client's certificate was revoked"
result $? "a running session of a certificate that is revoked ends, with the cause in the log" || diag <"$tmp/server.log"
until_true 60 listening $port
both_ends "a revoked certificate" "certificate is revoked: ask whoever runs it" 'a client.s certificate \(bob\) is revoked' $(as bob) $init
passes "the other goes on" $(as alice) $init
exec 9>&-
wait $held
pki_issue fleet bob bob ""
passes "bob with a new certificate" $(as bob) $init

# An authority between the client's certificate and the one that is trusted.
pki_ca branch fleet
pki_issue branch carol carol ""
cat "$pki/branch.ca" >>"$pki/carol.crt"
both_ends "a client of an authority without a list" "does not trust who issued this client.s certificate" 'has none for its issuer, "authority branch"' $(as carol) $init
pki_crl branch
cat "$pki/branch.crl" >>"$pki/fleet.crl"
reload() { kill -HUP $server_pid; until_true 60 reloaded; }
reloaded() { [ "$(grep -c 'listening on' "$tmp/server.log")" -gt $listened ] && listened=$(grep -c 'listening on' "$tmp/server.log"); }
listened=$(grep -c 'listening on' "$tmp/server.log")
reload
passes "with a list she is let in" $(as carol) $init
passes "and so are those of the authority above it" $(as bob) $init
$(as carol) $E2E/quota_drv wait >"$tmp/held" 2>&1 <"$tmp/in" &
held=$!
exec 9>"$tmp/in"
until_true 60 test -s "$tmp/held"
pki_crl fleet branch
cat "$pki/branch.crl" >>"$pki/fleet.crl"
reload
until_true 60 said "session end: .* certificate carol .*an authority that this client's certificate hangs on was revoked"
result $? "her running session ends when her authority is revoked" || diag <"$tmp/server.log"
exec 9>&-
wait $held
both_ends "a client of an authority that is revoked" "certificate is revoked: ask whoever runs it" \
	'a client.s certificate was issued by one that is revoked \(authority branch\)' $(as carol) $init
passes "others go on" $(as bob) $init
cp "$pki/branch.crl" "$pki/fleet.crl"
reload
passes "a list of what the trusted authority has revoked may be left out" $(as carol) $init
both_ends "but for its own clients" "does not trust who issued this client.s certificate" 'has none for its issuer, "authority fleet"' $(as bob) $init
pki_crl fleet
reload

# What is reloaded: another server certificate, another authority. A list for the authorities that there are.
pki_issue other server2 gpuhost "IP:127.0.0.1,DNS:localhost"
sed -i "s#$pki/server\.#$pki/server2.#; s#fleet.ca#other.ca#; s#fleet.crl#other.crl#" "$tmp/conf"
pki_crl other
$(as alice) $E2E/quota_drv wait >"$tmp/held" 2>&1 <"$tmp/in" &
held=$!
exec 9>"$tmp/in"
until_true 60 test -s "$tmp/held"
kill -HUP $server_pid
until_true 60 said "session end: .* certificate alice.example .*does not trust the authority of this client's certificate any more"
result $? "sessions of an authority that was taken away end" || diag <"$tmp/server.log"
exec 9>&-
wait $held
until_true 60 listening $port
passes "mallory is of a trusted authority now, and the new name is there" $(host=localhost as mallory other) $init
both_ends "alice is not" 'was issued by "authority other", which is not trusted here' "a client does not trust who issued this server.s" $(as alice) $init
cp "$tmp/conf" "$tmp/good"
sed -i "s#^tls-key.*#tls-key = $pki/bob.key#" "$tmp/conf"
fails "--check-config finds a key that does not fit" "is not the key of the certificate" $B/bin/rgpu-server --check-config --config "$tmp/conf"
sed -i "s#^tls-key.*#;#" "$tmp/conf"
fails "and one that is missing" "belong together, and one of them is missing" $B/bin/rgpu-server --check-config --config "$tmp/conf"
kill -HUP $server_pid
until_true 60 said "has errors \(above\) and stays as it was|stays as it was"
passes "with a bad configuration everything stays as it was" $(as mallory other) $init
done_testing
