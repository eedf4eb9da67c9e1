#!/bin/bash
# SPDX-License-Identifier: MIT
# Samples of NVIDIA's, each in its own folder, by its own verification: status 0, or 2, which is NVIDIA's word for waived.
#
# RGPU_SAMPLES: a folder with bin/NAME and src/Samples/*/NAME; SAMPLES="clock …" for others than those of tests/long/samples/list.
cd "$(dirname "$0")/../.." || exit
. tests/e2e/lib.sh
samples=$(cd "${RGPU_SAMPLES:?RGPU_SAMPLES: a folder that tests/long/samples/build made}" && pwd) || exit
LIMIT=${RGPU_SAMPLE_LIMIT:-600}
gpu_ready
for word in $(gpu); do # paths that hold in any folder
	case $word in */bin/rgpu) command+=("$(realpath "$word")") ;; *) command+=("$word") ;; esac
done
waived=0
for name in ${SAMPLES:-$(sed -n 's/^\([^#\t]\+\)\t.*/\1/p' tests/long/samples/list)}; do
	if [ ! -x "$samples/bin/$name" ]; then
		result 1 "$name"
		echo "# there is no $samples/bin/$name"
		continue
	fi
	cd "$samples"/src/Samples/*/"$name" || exit
	begin=$SECONDS
	try "${command[@]}" "$samples/bin/$name"
	cd - >"$tmp/pwd" || exit
	took=$((SECONDS - begin))
	if [ $status = 2 ]; then
		waived=$((waived + 1))
		skip "$name: $took s" "waived: $(grep -v '^ *$' "$tmp/out" | tail -n 1)"
		continue
	fi
	# Some print that they failed and end well.
	[ $status = 0 ] && ! grep -qwE 'FAILED|Result = FAIL' "$tmp/out"
	result $? "$name: $took s" || { echo "# status $status"; tail -n 20 "$tmp/out" | diag; }
done
echo "# $((tests - failed - waived)) passed, $waived waived, $failed failed"
done_testing
