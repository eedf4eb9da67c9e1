# SPDX-License-Identifier: MIT
# TAP for scripts that run in a guest with systemd, and what they all do first: install, serve, join.
B=${B:-build}
tmp=$(mktemp -d)
# What tests/long/dkms-cache compiled is taken from there. DKMS strips debug information off: the compiler need not write it.
export KCFLAGS=-g0 PATH=/usr/lib/ccache:$PATH CCACHE_DIR=$PWD/$B/deb/ccache CCACHE_READONLY=true CCACHE_TEMPDIR=/tmp CCACHE_COMPILERCHECK=content CCACHE_SLOPPINESS=locale,file_stat_matches,file_stat_matches_ctime
# apt gives what it runs a path of its own.
printf 'DPkg::Path "%s";\n' "$PATH" >"$tmp/apt.conf"
export APT_CONFIG=$tmp/apt.conf
n=0 failed=0
ok()
{
	local status=$1
	n=$((n + 1))
	if [ "$status" = 0 ]; then
		echo "ok $n - $2"
	else
		failed=1
		echo "not ok $n - $2"
		tail -n 40 "$tmp/out" | sed 's/^/# /'
	fi
}
run() { "$@" >"$tmp/out" 2>&1 </dev/null; status=$?; }
# Emulated, a step can take minutes: which one it is, is said before.
does() { local what=$1; shift; echo "# at $SECONDS s: $what"; run "$@"; ok $status "$what"; }
has() { grep -qE -- "$2" "$tmp/out"; ok $? "$1"; }
done_testing() { echo "1..$n"; exit $failed; }

until_true()
{
	local end=$((SECONDS + $1))
	shift
	while ! "$@" >"$tmp/wait" 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.5
	done
}
online() { grep -qx online /sys/class/rgpu/rgpu0/state; }

# Server and client on one machine, by their packages or by make install: softgpu is the GPU.
serve_and_join()
{
	sed -i 's/^;softgpu = yes/softgpu = yes/' /etc/rgpu/server.conf
	does "the server's configuration is good but for its key" sh -c 'rgpu-server --check-config; [ $? = 2 ]'
	line=$(rgpu-server --pair 2>"$tmp/out")
	case $line in
	'rgpu join 127.0.0.1:7478#'*) ok 0 "rgpu-server --pair prints the client's line" ;;
	*) ok 1 "rgpu-server --pair prints the client's line" ;;
	esac
	[ "$(stat -c '%U %a' /etc/rgpu/server.key)" = "rgpu-server 600" ]
	ok $? "the key is the server's user's alone"
	does "the server starts, and says when it listens" systemctl start rgpu-server
	does "modprobe rgpu" modprobe rgpu
	does "the line makes this machine a client" $line
	has "the devices appear" '^/dev/rgpu0: '
}
