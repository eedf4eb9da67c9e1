#!/bin/bash
# SPDX-License-Identifier: MIT
# The bar of a long upload: on a terminal that is the program's, never elsewhere, and gone afterwards.
. tests/e2e/lib.sh
export LD_LIBRARY_PATH=$PWD/$B/lib
if [ "$TRANSPORT" = direct ]; then
	server_start || exit 1
	export RGPU_SERVER=127.0.0.1:$port RGPU_KEY=$key
fi
mib=$([ "$TRANSPORT" = direct ] && echo 64 || echo 16) # what an emulated guest takes long enough for
terminal=tests/e2e/terminal.py
bars() { grep -c '^bar ' "$tmp/out"; }
seen() { sed -n '/^screen$/,$p' "$tmp/out" | tail -n +2; }

for kind in '' pinned; do
	passes "an upload on a terminal${kind:+, $kind}" env RGPU_PROGRESS=1 $terminal $E2E/progress_drv $mib $kind
	[ "$(bars)" -gt 0 ] && [ "$(seen)" = 'before after' ]
	result $? "has a bar, of which nothing is left" || diag <"$tmp/out"
	awk -v mib=$mib '/^bar/ { if ($2 < was || $2 > $3 || $3 != mib) exit 1; was = $2 }' "$tmp/out"
	result $? "that only grows, up to the whole" || diag <"$tmp/out"
done
passes "with RGPU_PROGRESS=0" env RGPU_PROGRESS=0 $terminal $E2E/progress_drv $mib
[ "$(bars)" = 0 ] && [ "$(seen)" = 'before after' ]
result $? "there is none" || diag <"$tmp/out"
passes "one that is quick enough" env RGPU_PROGRESS=3600000 $terminal $E2E/progress_drv $mib
[ "$(bars)" = 0 ] && [ "$(seen)" = 'before after' ]
result $? "has none" || diag <"$tmp/out"
passes "without a terminal" env RGPU_PROGRESS=1 $E2E/progress_drv $mib
[ "$(cat "$tmp/out")" = 'before after' ]
result $? "nothing is written" || diag <"$tmp/out"
# A background program that writes to its terminal is stopped, if the terminal is set so.
passes "in the background of a terminal" env RGPU_PROGRESS=1 $terminal bash -mc "stty tostop; $E2E/progress_drv $mib >$tmp/words & wait \$!"
[ "$(bars)" = 0 ] && [ "$(cat "$tmp/words")" = 'before after' ]
result $? "nothing is written, and it is not stopped" || diag <"$tmp/out"
done_testing
