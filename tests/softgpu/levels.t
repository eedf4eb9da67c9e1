#!/bin/bash
# SPDX-License-Identifier: MIT
# The tables of forms on the handlers of the lower x86-64 levels; the programs by themselves take this CPU's best.
B=${B:-build}
n=0
for program in ${PTX_CASES:-int float half cvt setp}; do
	for level in v2 v3; do
		n=$((n + 1))
		if out=$(SOFTGPU_ISA=$level "$B/tests/softgpu-ptx_$program"); then
			echo "ok $n - $program with x86-64-$level handlers: $(tail -n 2 <<<"$out" | sed -n 's/^ok [0-9]* - //p')"
		else
			echo "not ok $n - $program with x86-64-$level handlers"
			grep -v '^ok' <<<"$out" | head -n 20 | sed 's/^/# /'
		fi
	done
done
echo "1..$n"
