#!/bin/bash
# SPDX-License-Identifier: MIT
# The server's page has the use of a device as TELEMETRY has it: NVML's beside a driver, nothing without NVML, the CPUs' of softgpu.
B=${B:-build}
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$tmp"' EXIT
n=0
ok()
{
	n=$((n + 1))
	[ "$1" = 0 ] || echo -n 'not '
	echo "ok $n - $2"
	[ "$1" = 0 ] || sed 's/^/# /' "$tmp/log" "$tmp/body"
}

# page OPTION …: /metrics of a server with these options, in $tmp/body.
page()
{
	"$B/bin/rgpu-server" --drain 0 --listen 127.0.0.1:0 --key "$tmp/key" --state-dir "$tmp/state" --web 0 "$@" 2>"$tmp/log" &
	server=$!
	for i in $(seq 600); do
		grep -q 'listening on' "$tmp/log" && break
		sleep 0.1
	done
	web=$(sed -n 's,.*http://localhost:\([0-9]*\)/.*,\1,p' "$tmp/log")
	exec 8<>"/dev/tcp/127.0.0.1/$web"
	printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&8
	timeout 120 cat <&8 >"$tmp/body"
	exec 8>&- 8<&-
	kill "$server"
	wait "$server"
	server=
}
# has NAME VALUE: that metric of the first device.
has() { [ "$(sed -n "s/^$1{gpu=\"0\".*} //p" "$tmp/body" | tr -d '\r')" = "$2" ]; }

"$B/bin/rgpu-server" --pair --key "$tmp/key" >/dev/null 2>&1
page --driver "$PWD/$B/tests/libnulldrv.so" --nvml "$PWD/$B/tests/libfake-nvml.so"
has rgpu_device_utilization_percent 100
ok $? "what NVML says of the device's use"
has DCGM_FI_DEV_GPU_UTIL 100
ok $? "by DCGM's name, too"
page --driver "$PWD/$B/tests/libnulldrv.so" --nvml "$tmp/none.so"
has rgpu_device_online 1
ok $? "a device without NVML is shown"
has rgpu_device_utilization_percent ''
ok $? "and its use left out"
page --softgpu
has rgpu_device_utilization_percent 0
ok $? "softgpu without programs does nothing"
echo "1..$n"
