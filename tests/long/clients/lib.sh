# SPDX-License-Identifier: MIT
# For the shards of clients from PyPI: fixed versions in a virtual environment of the cache, and a server to run them on.
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit
export RGPU_TEST_TRANSPORT=direct
. tests/e2e/lib.sh
clients=$PWD/tests/long/clients

# client_env NAME: the environment of clients/NAME.txt, made anew when that changed; sets env.
client_env() {
	local cache stamp
	cache=$(scripts/setup --print-cache)/clients
	stamp=$(sha256sum <"$clients/$1.txt" | cut -c1-16)
	env=$cache/$1-$stamp
	[ -e "$env/complete" ] && return
	rm -rf "$cache/$1-"*
	mkdir -p "$cache"
	{ python3 -m venv "$env" && "$env/bin/pip" install -q -r "$clients/$1.txt"; } >"$tmp/pip" 2>&1 ||
		{ diag <"$tmp/pip"; echo "Bail out! $1 and what it needs could not be installed from PyPI"; exit 1; }
	touch "$env/complete"
}
