# SPDX-License-Identifier: MIT
# For the end-to-end tests: TAP in shell, a server of their own (direct) or the guest's device (kmod), and everything stopped again.
#
# RGPU_TEST_TRANSPORT is direct or kmod; B the build folder. Tests run from the top of the tree.

set -u
B=${B:-build}
E2E=$PWD/$B/tests/e2e
TRANSPORT=${RGPU_TEST_TRANSPORT:-direct}
LIMIT=300 # seconds that any one command may take before it counts as hung

tests=0 failed=0
tmp=$(mktemp -d)
server_pid=

cleanup() {
	server_stop
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

diag() {
	sed 's/^/# /'
}

# result STATUS DESCRIPTION; returns STATUS.
result() {
	tests=$((tests + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $tests - $2"
	else
		failed=$((failed + 1))
		echo "not ok $tests - $2"
	fi
	return "$1"
}

skip() {
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2"
}

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

done_testing() {
	echo "1..$tests"
	[ $failed -eq 0 ]
	exit
}

# Runs a command with a time limit; its output goes to $tmp/out, its status to $status.
try() {
	status=0
	timeout --kill-after=10 $LIMIT "$@" >"$tmp/out" 2>&1 </dev/null || status=$?
}

# passes DESCRIPTION CMD …: CMD succeeds.
passes() {
	local what=$1
	shift
	try "$@"
	result $status "$what" || { echo "# $* → $status"; diag <"$tmp/out"; }
}

# fails DESCRIPTION PATTERN CMD …: CMD fails by itself (no signal, no time limit) and says something that matches PATTERN.
fails() {
	local what=$1 pattern=$2 good=1
	shift 2
	try "$@"
	[ $status -ne 0 ] && [ $status -ne 124 ] && [ $status -lt 128 ] && grep -Eq -- "$pattern" "$tmp/out" && good=0
	result $good "$what" || { echo "# $* → $status; wanted /$pattern/ in:"; diag <"$tmp/out"; }
}

# The server ---------------------------------------------------------------------------------------------------------

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

listening() {
	grep -q "^ *[0-9]*: 0100007F:$(printf %04X "$1") [^ ]* 0A" /proc/net/tcp
}

# server_start [ARG …]: rgpu-server with two soft devices on a free port; sets port and key. Only for direct.
server_start() {
	key=$tmp/key
	[ -e "$key" ] || $B/bin/rgpu-server --pair --key "$key" >"$tmp/pair.log" 2>&1 || { diag <"$tmp/pair.log"; return 1; }
	for _ in 1 2 3; do
		port=$(free_port)
		RGPU_SOFTGPU_DEVICES=${DEVICES:-2} $B/bin/rgpu-server --softgpu --listen 127.0.0.1:$port --key "$key" --drain 0 "$@" \
			>>"$tmp/server.log" 2>&1 </dev/null &
		server_pid=$!
		for _ in $(seq 100); do
			listening $port && return 0
			kill -0 $server_pid 2>/dev/null || break
			sleep 0.1
		done
		server_stop
	done
	echo "# the server did not start:"
	diag <"$tmp/server.log"
	return 1
}

server_stop() {
	[ -n "$server_pid" ] || return 0
	kill $server_pid 2>/dev/null
	for _ in $(seq 50); do
		kill -0 $server_pid 2>/dev/null || break
		sleep 0.1
	done
	kill -9 $server_pid 2>/dev/null
	wait $server_pid 2>/dev/null
	server_pid=
}

# How many processes the server has: one for each session. Only where the server runs here.
workers() {
	local all
	all=$(cat /proc/$server_pid/task/*/children 2>/dev/null)
	set -- $all
	echo $#
}

# until_true SECONDS CMD …: polls.
until_true() {
	local end=$((SECONDS + $1))
	shift
	while ! "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# What every test begins with: the transport under test is there, whichever it is.
gpu_ready() {
	case $TRANSPORT in
	direct) server_start "$@" || { echo "Bail out! no server"; exit 1; } ;;
	kmod) [ -c /dev/rgpu0 ] || { echo "Bail out! no /dev/rgpu0: this is for a guest of scripts/vm"; exit 1; } ;;
	*) echo "Bail out! RGPU_TEST_TRANSPORT is '$TRANSPORT': direct or kmod"; exit 1 ;;
	esac
}

# The words before a command that run it over the transport under test: passes "…" $(gpu) CMD.
gpu() {
	if [ $TRANSPORT = direct ]; then
		echo $B/bin/rgpu run --server 127.0.0.1:$port --key "$key" --
	else
		echo $B/bin/rgpu run --
	fi
}
