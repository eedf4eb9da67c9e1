#!/bin/bash
# SPDX-License-Identifier: MIT
# The packages on a clean Debian under systemd: built here, installed, joined, upgraded under a running program, purged; then the same
# from the tree. rgpu doctor's faults are in tests/long/doctor.t. RGPU_DEB=1 uses the packages that are in build/deb already.
set -u
B=${B:-build}
fail()
{
	echo "1..1"
	echo "not ok 1 - $1"
	exit 1
}
root=$(scripts/debian-root) || fail "a root to boot"
[ "${RGPU_DEB:-0}" = 1 ] || scripts/deb >&2 || fail "make deb: the packages are built, and lintian has nothing to say"
# The next release: the same files under a higher number.
rm -rf "$B/deb/next"
mkdir -p "$B/deb/next"
for d in "$B"/deb/*.deb; do
	tmp=$(mktemp -d)
	dpkg-deb -R "$d" "$tmp/x"
	sed -i -E 's/^(Version: .*)/\1+next/; s/(\(= [0-9.]*)\)/\1+next)/' "$tmp/x/DEBIAN/control"
	dpkg-deb -Znone -b "$tmp/x" "$B/deb/next" >/dev/null
	rm -rf "$tmp"
done
tests/long/dkms-cache "$root" || fail "the module builds with DKMS in that root"
exec scripts/vm run --root "$root" --no-server --name packages --time-limit 3300 -- tests/long/packages.guest
