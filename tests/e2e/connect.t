#!/bin/bash
# SPDX-License-Identifier: MIT
# Servers that can't be had: one line on stderr with the cause and what to do, and an error from cuInit; never a hang.
. tests/e2e/lib.sh
[ $TRANSPORT = direct ] || skip_all "the guest's proxy has the same cases in proxy.t"
gpu_ready
run="$B/bin/rgpu run"
init="$E2E/errors_drv init"

passes "the server answers" $(gpu) $init

dead=$(free_port)
fails "nobody listens: refused" "127\.0\.0\.1:$dead.*([Cc]onnection refused|refused)" $run --server 127.0.0.1:$dead --key $key -- $init
lines=$(grep -vc '^cuInit: ' "$tmp/out")
[ "$lines" -eq 1 ]
result $? "… in one line" || diag <"$tmp/out"
grep -q '^cuInit: CUDA_ERROR_' "$tmp/out"
result $? "… and an error of cuInit"
fails "no such host" "no-such-host\.invalid" $run --server no-such-host.invalid:7478 --key $key -- $init

$B/bin/rgpu-server --pair --key "$tmp/other" >/dev/null 2>&1
fails "a wrong key" "key" $run --server 127.0.0.1:$port --key "$tmp/other" -- $init
lines=$(grep -vc '^cuInit: ' "$tmp/out")
[ "$lines" -eq 1 ]
result $? "… in one line" || diag <"$tmp/out"
echo nonsense >"$tmp/nonsense"
chmod 600 "$tmp/nonsense"
fails "a file that is no key" "nonsense" env RGPU_SERVER=127.0.0.1:$port RGPU_KEY="$tmp/nonsense" LD_LIBRARY_PATH=$B/lib $init
fails "no key at all" "RGPU_KEY" env -u RGPU_KEY RGPU_SERVER=127.0.0.1:$port LD_LIBRARY_PATH=$B/lib $init
fails "an address that is none" "70000" env RGPU_SERVER=127.0.0.1:70000 RGPU_KEY="$key" LD_LIBRARY_PATH=$B/lib $init
fails "rgpu run says so before the program starts" "--key FILE" $run --server 127.0.0.1:$port -- $init

# A server of another age, older or newer: it shakes hands with the right key and names its version.
for v in 99.0 0.9; do
	rm -f "$tmp/old"
	$E2E/oldserver "$key" ${v%.*} ${v#*.} >"$tmp/old" 2>"$tmp/old.log" &
	old=$!
	until_true 10 test -s "$tmp/old"
	fails "a server with version $v" "version.*(1\.[0-9]+.*${v/./\\.}|${v/./\\.}.*1\.[0-9]+)" \
		$run --server 127.0.0.1:$(cat "$tmp/old") --key $key -- $init
	kill $old 2>/dev/null
	wait $old 2>/dev/null
	diag <"$tmp/old.log"
done

# A program's library of another age, as in a container that carries its own.
api=$(sed -n 's/^#define RGPU_API_VERSION \([0-9]*\).*/\1/p' api/hello.h)
fails "a newer library at this server" "library speaks API version $((api + 1)), this server $api" $E2E/oldclient $port $key $((api + 1))
passes "an older library's session" $E2E/oldclient $port $key $((api - 1))

# A module of another age.
for v in 2.0 0.7; do
	fails "a module with version $v" "this library speaks version 1\.[0-9]+ .*, the loaded module ${v/./\\.}" \
		env -u RGPU_SERVER OLDMODULE=$v LD_PRELOAD=$E2E/oldmodule.so LD_LIBRARY_PATH=$B/lib $init
done

# Something that isn't rgpu at all.
python3 - >"$tmp/http" <<'P' &
import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
s.settimeout(60)
while True:
    c, _ = s.accept()
    c.recv(1000)
    c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    c.close()
P
other=$!
until_true 10 test -s "$tmp/http"
fails "something that is no rgpu-server" "127\.0\.0\.1:$(cat "$tmp/http")" $run --server 127.0.0.1:$(cat "$tmp/http") --key $key -- $init
kill $other 2>/dev/null
wait $other 2>/dev/null
passes "and after all that the server still answers" $(gpu) $init
done_testing
