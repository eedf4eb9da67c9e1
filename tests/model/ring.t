#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note
# Has Spin look at every interleaving of tests/model/ring.pml, and shows that the model needs each of its barriers.
cd "$(dirname "$0")" || exit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0 failed=0

# verdict [-DNO_…]: "errors: N" of an exhaustive search, or why there was none.
verdict()
{
	(
		cd "$tmp" && rm -f pan* && spin -a "$@" "$OLDPWD/ring.pml" >log 2>&1 && gcc -O2 -w -DSAFETY -o pan pan.c && ./pan -m100000 >log 2>&1
		grep -q 'max search depth too small' log && echo "search cut short" && exit
		grep -o 'errors: [0-9]*' log || tail -n 3 log
	)
}

check()
{
	n=$((n + 1))
	if [ "$1" = "$2" ]; then
		echo "ok $n - $3"
	else
		failed=1
		echo "not ok $n - $3"
		echo "# got '$1', want '$2'"
	fi
}

command -v spin >/dev/null || { echo "1..0 # SKIP no spin: scripts/setup installs it"; exit 0; }
check "$(verdict)" "errors: 0" "in order, whole, nobody sleeps for ever"
for barrier in RELEASE FULL_PROD FULL_CONS LATCH RECHECK SPACE; do
	check "$(verdict -DNO_$barrier)" "errors: 1" "without $barrier it fails"
done
echo "1..$n"
exit $failed
