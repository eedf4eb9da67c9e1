#!/bin/bash
# SPDX-License-Identifier: MIT
# make install and uninstall, the manual pages, completions, units: what can be looked at without a machine to install on.
B=${B:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0
ok()
{
	local status=$1
	n=$((n + 1))
	[ "$status" = 0 ] || printf 'not '
	echo "ok $n - $2"
	[ "$status" = 0 ] || head -n 30 "$tmp/out" | sed 's/^/# /'
}
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
there() { DESTDIR=$tmp/dest PREFIX=$1 scripts/install "$2" "$B" "$version" >"$tmp/out" 2>&1; }

there /usr install
ok $? "it installs"
(cd "$tmp/dest" && find . ! -type d | sort) >"$tmp/list"
cp "$tmp/list" "$tmp/out"
for f in usr/bin/rgpu usr/bin/rgpu-smi usr/sbin/rgpu-proxy usr/sbin/rgpu-server usr/lib/rgpu/libcuda.so.1 usr/lib/rgpu/libcudart.so.13 \
	usr/lib/rgpu/libsoftgpu.so usr/src/rgpu-$version/{Kbuild,dkms.conf,kmod/main.c,uapi/linux/rgpu.h} etc/rgpu/server.conf \
	usr/lib/systemd/system/rgpu-{proxy,server,cdi}.service usr/lib/udev/rules.d/60-rgpu.rules usr/lib/{sysusers,tmpfiles,modules-load}.d/rgpu.conf \
	usr/share/pkgconfig/rgpu.pc; do
	grep -qx "./$f" "$tmp/list"
	ok $? "there is /$f"
done
for p in "$tmp"/dest/usr/bin/* "$tmp"/dest/usr/sbin/*; do
	ls packaging/man/"$(basename "$p")".[18] >/dev/null 2>&1
	ok $? "$(basename "$p") has a manual page"
done
[ "$(PKG_CONFIG_PATH=$tmp/dest/usr/share/pkgconfig pkg-config --modversion rgpu)" = "$version" ]
ok $? "rgpu.pc has the version"

# A page that another names must be one of ours; the linter looks at installed ones.
mandoc -Tlint packaging/man/*.[0-9] 2>&1 | grep -v 'referenced manual not found' >"$tmp/out"
[ ! -s "$tmp/out" ]
ok $? "mandoc has nothing to say about the pages"
sed -n 's/^\.Xr \([^ ]*\) \([0-9]\).*/\1.\2/p' packaging/man/* | sort -u | (cd packaging/man && xargs ls) >"$tmp/out" 2>&1
ok $? "the pages that they name are there"

# Every option and every setting is in its page, every exit status, and every subcommand in each completion.
for o in $("$B"/bin/rgpu-server --help | sed -n 's/^  --\([a-z-]*\).*/\1/p' | grep -vxE 'config|check-config|pair|foreground|help'); do
	grep -q "^\.It Va $o\$" packaging/man/rgpu-server.conf.5
	ok $? "rgpu-server.conf(5) has $o"
done
for o in $("$B"/bin/rgpu-proxy --help | sed -n 's/^  --\([a-z-]*\).*/\1/p'); do
	grep -q "^\.It Fl -$o" packaging/man/rgpu-proxy.8
	ok $? "rgpu-proxy(8) has $o"
done
for s in $("$B"/bin/rgpu-smi --help | sed -n '/^Exit status:/,$p' | grep -o '[0-9]*'); do
	sed -n '/^\.Sh EXIT/,/^\.Sh SEE/p' packaging/man/rgpu-smi.1 | grep -qE "(^| )$s( |;)"
	ok $? "rgpu-smi(1) has exit status $s"
done
for c in $("$B"/bin/rgpu --help | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do
	for f in packaging/completion/*; do
		grep -qE "(['\" ])$c[: '\"]" "$f"
		ok $? "$(basename "$f") has $c"
	done
	grep -q "^\.It Cm $c" packaging/man/rgpu.1
	ok $? "rgpu(1) has $c"
done
bash -c '. packaging/completion/rgpu.bash; COMP_WORDS=(rgpu do) COMP_CWORD=1; _rgpu; [ "${COMPREPLY[*]}" = doctor ]' >"$tmp/out" 2>&1
ok $? "bash completes a subcommand"
bash -c '. packaging/completion/rgpu.bash; COMP_WORDS=(rgpu doctor --j) COMP_CWORD=2; _rgpu; [ "${COMPREPLY[*]}" = --json ]' >"$tmp/out" 2>&1
ok $? "and its options"

# The sample configurations are good, once their keys are there.
"$B/bin/rgpu-server" --pair --key "$tmp/key" >/dev/null 2>&1
for d in server proxy; do
	sed "s#^key = .*#key = $tmp/key#" packaging/conf/$d.conf >"$tmp/$d.conf"
	"$B/bin/rgpu-$d" --check-config --config "$tmp/$d.conf" >"$tmp/out" 2>&1
	ok $? "packaging/conf/$d.conf is good"
done

echo mine >"$tmp/dest/etc/rgpu/server.conf"
there /usr install
grep -qx mine "$tmp/dest/etc/rgpu/server.conf"
ok $? "installing again leaves the configuration alone"
there /usr uninstall
(cd "$tmp/dest" && find . ! -type d) >"$tmp/out"
[ "$(cat "$tmp/out")" = ./etc/rgpu/server.conf ]
ok $? "uninstalling leaves the configuration, and nothing else"
[ ! -d "$tmp/dest/usr/lib/rgpu" ] && [ ! -d "$tmp/dest/usr/src/rgpu-$version" ]
ok $? "nor folders of ours"
there /opt/rgpu install
grep -q '^ExecStart=/opt/rgpu/sbin/rgpu-proxy' "$tmp/dest/opt/rgpu/lib/systemd/system/rgpu-proxy.service"
ok $? "another prefix reaches the units"
! grep -rE '(=|-L)/usr/(bin|sbin|lib)' "$tmp/dest/opt/rgpu/lib/systemd" "$tmp/dest/opt/rgpu/share/pkgconfig" >"$tmp/out"
ok $? "all of them"
echo "1..$n"
