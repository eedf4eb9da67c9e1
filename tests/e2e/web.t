#!/bin/bash
# SPDX-License-Identifier: MIT
# The page and the metrics of the one that carries a program: of rgpu-server (direct), of rgpu-proxy (kmod). They agree with rgpu-smi.
. tests/e2e/lib.sh
if [ $TRANSPORT = direct ]; then
	web=$(free_port)
	gpu_ready --web $web
else
	web=7479 # tests/vm/vmctl
	gpu_ready
fi

# get PATH [HOST [METHOD]]: the status in $code, the body in $tmp/body.
get() {
	local line
	exec 8<>/dev/tcp/127.0.0.1/$web || return
	printf '%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "${3:-GET}" "$1" "${2:-localhost:$web}" >&8
	timeout 60 cat <&8 >"$tmp/answer"
	exec 8>&- 8<&-
	read -r _ code line <"$tmp/answer"
	sed '1,/^\r$/d' "$tmp/answer" >"$tmp/body"
}

answers() { # STATUS DESCRIPTION ARG …
	local want=$1 what=$2
	shift 2
	get "$@"
	[ "$code" = "$want" ]
	result $? "$what: $want" || diag <"$tmp/answer"
}

# value METRIC LABEL: the first one's with that label.
value() {
	awk -v m="$1{" -v l="$2" 'index($0, m) == 1 && index($0, l) { print $NF; exit }' "$tmp/body"
}

sees() {
	get /view.json && python3 -c 'import json, sys; v = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$tmp/body" "$1"
}

# holds DESCRIPTION PYTHON: an expression over v, the view, is true soon; what ends does so behind a program's back.
holds() {
	until_true 60 sees "$2"
	result $? "$1" || diag <"$tmp/body"
}

gpus=$($(gpu) $B/bin/rgpu-smi -L | wc -l)
answers 200 "the page" /
grep -q '<title>rgpu' "$tmp/body" && ! grep -Eq '(src|href)="?https?:' "$tmp/body"
result $? "… is one, and needs nothing from elsewhere"
answers 404 "another path" /etc/passwd
answers 405 "a POST" / localhost POST
answers 403 "a name that somebody pointed here" /view.json gpu.example.com
holds "the devices that there are, no session" "v['up'] and sum(d['online'] for d in v['devices']) == $gpus > 0 and not v['sessions']"

mkfifo "$tmp/end"
$(gpu) $E2E/handoff 0 >"$tmp/handoff" 2>&1 <"$tmp/end" &
pid=$!
exec 9>"$tmp/end"
asked() {
	get /metrics
	[ "$(value rgpu_session_records_total "pid=\"$pid\"")" -gt 1000 ] 2>/dev/null
}
until_true 100 asked
result $? "a program's calls are counted while it runs" || diag <"$tmp/body"
trips=$(value rgpu_session_round_trips_total "pid=\"$pid\"")
[ "$trips" -gt 0 ] && [ "$trips" -lt 100 ]
result $? "… and the few round trips among them" || echo "# $trips"
[ "$(value rgpu_session_memory_bytes "pid=\"$pid\"")" -gt 0 ]
result $? "… it holds memory"
[ "$(value DCGM_FI_DEV_FB_USED 'gpu="0"')" -eq $(($(value rgpu_device_memory_used_bytes 'gpu="0"') >> 20)) ]
result $? "DCGM's name says the same as ours, in MiB"
awk '/^# (HELP|TYPE) [a-zA-Z_]+ ./ || /^[a-zA-Z_]+({([a-zA-Z]+="([^"\\]|\\.)*",?)*})? -?[0-9.]+$/ { next } { print; bad = 1 } END { exit bad }' "$tmp/body" >"$tmp/bad"
result $? "every line is as Prometheus has them" || diag <"$tmp/bad"
[ "$(grep '^# TYPE' "$tmp/body" | sort | uniq -d | wc -l)" -eq 0 ]
result $? "no name begins twice"
if [ $TRANSPORT = kmod ]; then
	[ "$(value rgpu_session_sent_bytes_total "pid=\"$pid\"")" -gt 0 ]
	result $? "the proxy counts the bytes that it carried"
	holds "… and TCP's round trip" 'v["rtt_us"] > 0 and v["devices"][0]["minor"] == 0'
fi
exec 9>&-
wait $pid
result $? "the program ends well" || diag <"$tmp/handoff"
holds "its session is gone" 'not v["sessions"]'

if [ $TRANSPORT = kmod ]; then
	passes "a proxy whose server is nowhere" $RGPU_VMCTL proxy stop
	passes "… starts" $RGPU_VMCTL proxy start 127.0.0.1:1
	until_true 30 get /
	holds "its page says that and why, and shows the devices" 'not v["up"] and "127.0.0.1:1" in v["why"] and v["devices"] and not any(d["online"] for d in v["devices"])'
	get /metrics
	grep -q '^rgpu_up 0$' "$tmp/body"
	result $? "… and so do the metrics" || diag <"$tmp/body"
	passes "the proxy is paired again" $RGPU_VMCTL proxy stop
	passes "… and starts" $RGPU_VMCTL proxy start
	passes "the device is back" $RGPU_VMCTL wait online 60
fi
done_testing
