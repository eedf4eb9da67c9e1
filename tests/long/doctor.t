#!/bin/bash
# SPDX-License-Identifier: MIT
# rgpu doctor in a guest with the packages: each planted fault is found by its name, and the printed commands mend it.
# RGPU_DEB=1 uses the packages that are in build/deb already.
set -u
fail()
{
	echo "1..1"
	echo "not ok 1 - $1"
	exit 1
}
root=$(scripts/debian-root) || fail "a root to boot"
[ "${RGPU_DEB:-0}" = 1 ] || scripts/deb >&2 || fail "make deb"
tests/long/dkms-cache "$root" || fail "the module builds with DKMS in that root"
exec scripts/vm run --root "$root" --no-server --name doctor --time-limit 3300 -- tests/long/doctor.guest
