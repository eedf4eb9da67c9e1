#!/bin/bash
# SPDX-License-Identifier: MIT
# Every shard of check-long runs something: make counts a target without a rule, or a phony one with only a pattern's, as made.
cd "$(dirname "$0")/../.." || exit
unset MAKEFLAGS MAKELEVEL MFLAGS
mapfile -t shards < <(make -s list-long)
[ ${#shards[@]} -gt 0 ] || { echo "Bail out! make list-long names no shard"; exit 1; }
# Those that make knows prerequisites or commands of.
declare -A does
while read -r name; do does[$name]=1; done < <(make -npRr list-long | awk '
	/^long-[^ ]*:/ { name = $1; sub(/:$/, "", name); if (NF > 1) print name; next }
	/^$/ { name = "" }
	name != "" && /recipe to execute/ { print name }')
echo "1..${#shards[@]}"
i=0
for s in "${shards[@]}"; do
	i=$((i + 1))
	if [ -n "${does[long-$s]:-}" ]; then
		echo "ok $i - long-$s"
	else
		echo "not ok $i - long-$s has neither prerequisites nor commands"
	fi
done
