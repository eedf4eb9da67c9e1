#!/bin/bash
# SPDX-License-Identifier: MIT
# The tables of forms on the handlers of the lower x86-64 levels (the programs by themselves take this CPU's best), and whether all forms
# that nvcc makes are among them.
B=${B:-build}
here=$(dirname "$0")
forms=$(mktemp)
trap 'rm -f "$forms"' EXIT
n=0
say() { n=$((n + 1)); echo "$1 $n - $2"; }

for program in ${PTX_CASES:-int float half cvt setp mem fault atom warp}; do
	for level in v2 v3; do
		if out=$(PTX_FORMS=1 SOFTGPU_ISA=$level "$B/tests/softgpu-ptx_$program"); then
			say ok "$program with x86-64-$level handlers: $(tail -n 2 <<<"$out" | sed -n 's/^ok [0-9]* - //p')"
		else
			say "not ok" "$program with x86-64-$level handlers"
			grep -v '^ok\|^# form' <<<"$out" | head -n 20 | sed 's/^/# /'
		fi
		sed -n 's/^# form //p' <<<"$out" >>"$forms"
	done
done

# Caches, scopes and orders change nothing here, nor does the order of modifiers.
missing=$(awk -v hints="ca cg cs lu cv wb wt nc weak volatile relaxed acquire release acq_rel cta cluster gpu sys uni" '
function canon(f,   m, k, n, j, t, r) {
	n = split(f, m, ".")
	for (k = 3; k <= n; k++)
		for (j = k; j > 2 && m[j] < m[j - 1]; j--) { t = m[j]; m[j] = m[j - 1]; m[j - 1] = t }
	r = m[1]
	for (k = 2; k <= n; k++)
		if (!(m[k] in hint)) r = r "." m[k]
	return r
}
BEGIN { split(hints, h, " "); for (k in h) hint[h[k]] = 1 }
/^#/ { next }
FILENAME == ARGV[1] { k = split($0, parts, ";"); for (j = 1; j <= k; j++) { split(parts[j], w, " "); if (w[1] != "") seen[canon(w[1])] = 1 } next }
FILENAME == ARGV[2] { elsewhere[$1] = 1; next }
{
	found = canon($1) in seen
	for (e in elsewhere) found = found || index($1, e) == 1
	if (!found) print $1
	total++
}
END { print total > "/dev/stderr" }' "$forms" "$here/nvcc_elsewhere.txt" "$here/nvcc_forms.txt" 2>"$forms.n")
total=$(cat "$forms.n")
rm -f "$forms.n"
if [ -z "$missing" ]; then
	say ok "each of the $total forms that nvcc makes is in a table or named with its test"
else
	say "not ok" "each of the $total forms that nvcc makes is in a table or named with its test"
	sed 's/^/# no test runs /' <<<"$missing"
fi
echo "1..$n"
