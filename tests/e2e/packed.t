#!/bin/bash
# SPDX-License-Identifier: MIT
# Compression of what goes over the link: where it pays or is asked for, of what becomes smaller, and nothing else; every byte arrives.
. tests/e2e/lib.sh
# Single precision as half: only for who asks, who is told so.
halves() {
	passes "numbers, unasked" $(gpu) $E2E/half exact
	grep -q 'rounded to half' "$tmp/out"
	result $((! $?)) "… nothing is said"
	passes "numbers, with --fp16-uploads" $(gpu | sed 's/ run / run --fp16-uploads /') $E2E/half rounded
	[ "$(grep -c 'rounded to half precision on their way' "$tmp/out")" = 1 ]
	result $? "… it says so, once" || diag <"$tmp/out"
}
if [ $TRANSPORT = kmod ]; then
	gpu_ready
	for mode in lz4 zstd off; do
		$RGPU_VMCTL proxy stop && RGPU_PROXY_ARGS="--compress $mode" $RGPU_VMCTL proxy start && $RGPU_VMCTL wait online 60
		result $? "a proxy with --compress $mode"
		passes "… text" $(gpu) $E2E/packed text 2
	done
	$RGPU_VMCTL proxy stop && $RGPU_VMCTL proxy start && $RGPU_VMCTL wait online 60
	result $? "the proxy is back as it was"
	halves
	done_testing
fi

# Nothing is kept of it: only compression makes it less.
gpu_ready --cache-mib 0
MIB=8 TIMES=3
plain=$(((MIB * TIMES) << 20))

ends() { grep -c ' session end: .* comm "packed" ' "$tmp/server.log"; }
# moves DESCRIPTION MODE WHAT CMD …: packed; sets up and down, the bytes on the wire.
moves() {
	local what=$1 mode=$2 kind=$3 before
	shift 3
	before=$(ends)
	passes "$what" env RGPU_COMPRESS=$mode "$@" $E2E/packed $kind $MIB $TIMES
	until_true 60 eval '[ "$(ends)" -gt $before ]'
	read -r up down < <(sed -n 's/.* session end: .* comm "packed" .*, \([0-9]*\) bytes up, \([0-9]*\) down.*/\1 \2/p' \
		"$tmp/server.log" | tail -n 1)
}
# are UP DOWN DESCRIPTION: of each, "less" than two thirds of what it was, or "all" of it.
are() {
	local n=0
	for way in "$1 $up" "$2 $down"; do
		case $way in
		less*) [ "${way#* }" -lt $((plain * 2 / 3)) ] || n=1 ;;
		all*) [ "${way#* }" -ge $plain ] || n=1 ;;
		esac
	done
	result $n "$3: $up up, $down down of $plain"
}

$B/tests/bench/slowlink $port 2000 100 128 >"$tmp/slow" &
slow=$!
until_true 10 test -s "$tmp/slow"
far="$B/bin/rgpu run --server 127.0.0.1:$(awk '{ print $2 }' "$tmp/slow") --key $key --"
moves "text over 100 Mbit/s" auto text $far
are less less "… is compressed, both ways"
moves "noise over 100 Mbit/s" auto noise $far
are all all "… is not"
moves "text, with compression off" off text $far
are all all "… is not"
kill $slow
moves "text, LZ4 asked for here" lz4 text $(gpu)
are less any "… is compressed"
lz4=$up
moves "text, Zstandard asked for here" zstd text $(gpu)
are less any "… is compressed"
[ $up -lt $lz4 ]
result $? "… further: $up, not $lz4"
moves "noise, Zstandard asked for here" zstd noise $(gpu)
are all all "… goes as it is"
server_stop
server_start --cache-mib 0 --compress zstd
moves "text, Zstandard asked for there" auto text $(gpu)
are any less "… is compressed on its way back"
server_stop
server_start --cache-mib 0 --compress off
moves "text, Zstandard asked for here, none there" zstd text $(gpu)
are all all "… is not"
halves
passes "weights as half and compressed" env RGPU_COMPRESS=zstd RGPU_FP16_UPLOADS=1 $(gpu) $E2E/half rounded
fails "a mode that there is not" "RGPU_COMPRESS: .*expected auto, off, lz4 or zstd" env RGPU_COMPRESS=gzip $(gpu) $E2E/packed text 1
done_testing
