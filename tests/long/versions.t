#!/bin/bash
# SPDX-License-Identifier: MIT
# The release before this one: its server with today's libraries, and today's server with its libraries. Each program ends right, or says
# both versions.
#
# It is the last tag that is not this commit, or what RGPU_OLD names, built here; or RGPU_OLD_B is the build folder of one.
. tests/e2e/lib.sh
[ $TRANSPORT = direct ] || skip_all "between library and server"
old=${RGPU_OLD:-$(git tag --merged HEAD --no-contains HEAD --sort=-creatordate 2>/dev/null | head -n 1)}
oldb=${RGPU_OLD_B:-}
if [ -z "$oldb" ]; then
	[ -n "$old" ] || skip_all "there is no release before this one: no tag"
	git worktree add -q --detach "$tmp/old" "$old" || skip_all "there is no $old here"
	trap 'server_stop; git worktree remove --force "$tmp/old"; rm -rf "$tmp"' EXIT
	make -s -C "$tmp/old" build/bin/rgpu-server build/lib/libcuda.so.1 build/lib/libcudart.so.13 >"$tmp/build.log" 2>&1 ||
		{ tail -n 20 "$tmp/build.log" | diag; echo "Bail out! $old cannot be built"; exit 1; }
	oldb=$tmp/old/build
fi
echo "# $old, $oldb"
$B/bin/rgpu-server --pair --key "$tmp/key" >"$tmp/pair.log" 2>&1
LIMIT=120

# serve BUILD: its server, with today's softgpu for a driver.
serve() {
	port=$(free_port)
	RGPU_SOFTGPU_DEVICES=2 $1/bin/rgpu-server --driver "$(realpath $B)/lib/libsoftgpu.so" --listen 127.0.0.1:$port --key "$tmp/key" \
		--state-dir "$tmp/state" >"$tmp/server.log" 2>&1 </dev/null &
	server_pid=$!
	until_true 60 listening $port
	result $? "$2 starts" || diag <"$tmp/server.log"
}
programs() { # BUILD DESCRIPTION: its libraries
	local p good
	# Those whose figures or faults belong to a release (polling, managed) are not among them.
	for p in vadd vadd_drv "chain 20" graphs "handoff 200" threads "errors_drv init" zerocopy stream_drv upload mmap_drv texture \
		ordered histogram reduce matmul waitvalue late ipc cdp; do
		try env RGPU_SERVER=127.0.0.1:$port RGPU_KEY="$tmp/key" LD_LIBRARY_PATH=$1/lib $E2E/$p
		good=$status
		[ $good -ne 0 ] && grep -Eq 'version.* [0-9].* [0-9]' "$tmp/out" && good=0
		result $good "$2: $p" || diag <"$tmp/out"
	done
}

serve "$oldb" "the older server"
programs $B "the older server, today's libraries"
server_stop
serve $B "today's server"
programs "$oldb" "today's server, the older libraries"
done_testing
