#!/bin/bash
# SPDX-License-Identifier: MIT
# The rgpu tool without a module: join into another root, doctor on planted faults there, cdi, bug-report. In the guest: tests/long/packages.t
B=${B:-build}
rgpu=$PWD/$B/bin/rgpu stubd=$PWD/$B/tests/server-stubd
tmp=$(mktemp -d)
root=$tmp/root
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$tmp"' EXIT
n=0
ok()
{
	local status=$1
	n=$((n + 1))
	[ "$status" = 0 ] || printf 'not '
	echo "ok $n - $2"
	[ "$status" = 0 ] || sed 's/^/# /' "$tmp/out"
}
# has WHAT PATTERN: the last output has a line like that.
has() { grep -qE -- "$2" "$tmp/out"; ok $? "$1"; }
run() { "$@" >"$tmp/out" 2>&1; status=$?; }
is() { [ "$status" = "$1" ]; ok $? "$2"; }

# A server without a GPU, behind a key of its own.
serve()
{
	cat >"$tmp/server.conf" <<-CONF
		[server]
		driver = stub
		listen = 127.0.0.1:$1
		key = $tmp/server.key
		state-dir = $tmp/state
	CONF
	"$stubd" --config "$tmp/server.conf" 2>"$tmp/log" &
	server=$!
	for i in $(seq 600); do
		grep -q 'listening on' "$tmp/log" && break
		sleep 0.1
	done
	port=$(sed -n 's/.*listening on 127.0.0.1:\([0-9]*\).*/\1/p' "$tmp/log")
}
stop() { kill "$server"; wait "$server" 2>/dev/null; server=; }

"$stubd" --pair --key "$tmp/server.key" >/dev/null 2>&1
serve 0
line=$("$stubd" --pair --key "$tmp/server.key" --listen 127.0.0.1:"$port" 2>/dev/null)
mkdir "$root"

# join
run "$rgpu" join nonsense
is 2 "join refuses what is no HOST:PORT#TOKEN"
has "and says what it wants" 'it has to be HOST:PORT#TOKEN'
secret=$(printf '%064d' 7123456)
for wrong in "$secret" "127.0.0.1:x#$secret" "127.0.0.1:1#${secret}0" "127.0.0.1:1#${secret%?}x"; do
	run "$rgpu" join "$wrong" --root "$root"
	[ "$status" = 2 ] && ! grep -q 7123 "$tmp/out"; ok $? "a token that is not understood is not repeated"
done
run "$rgpu" join "127.0.0.1:$port#$(printf '%064d' 7)" --root "$root"
is 1 "a wrong token is not taken"
has "its cause" 'key'
[ ! -e "$root/etc/rgpu/proxy.conf" ]; ok $? "nothing is written then"
run "$rgpu" join "nowhere.invalid:$port#$(printf '%064d' 7)" --root "$root"
is 1 "a host that nobody knows"
has "what to write instead is said" 'next: put an address of that machine'
run "$rgpu" join --root "$root" - <<<"$line 	"
is 0 "the line that --pair printed is taken from stdin"
has "the GPUs are named" '^127.0.0.1: GPU 0, '
[ "$(stat -c %a "$root/etc/rgpu/proxy.key")" = 600 ]; ok $? "the key is its owner's alone"
grep -q "^server = 127.0.0.1:$port$" "$root/etc/rgpu/proxy.conf"; ok $? "the configuration names the server"
cmp -s <(sed -n 2p "$root/etc/rgpu/proxy.key") <(sed -n 2p "$tmp/server.key"); ok $? "the key is the server's"
sed "s#/etc/rgpu#$root/etc/rgpu#" "$root/etc/rgpu/proxy.conf" >"$tmp/proxy.conf"
run "$B/bin/rgpu-proxy" --check-config --config "$tmp/proxy.conf"
is 0 "rgpu-proxy --check-config has nothing to say"
run "$rgpu" join --no-check --root "$root" "nowhere.invalid:99#$(printf '%064d' 7)"
is 0 "--no-check asks nobody"
grep -q "^server = 127.0.0.1:$port$" "$root/etc/rgpu/proxy.conf.old"; ok $? "the configuration before is kept"
mkdir "$root/etc/rgpu/proxy.key.new"
run "$rgpu" join --no-check --root "$root" "nowhere.invalid:98#$(printf '%064d' 8)"
is 1 "what cannot be written"
[ -s "$root/etc/rgpu/proxy.key" ]; ok $? "takes nothing away"
rmdir "$root/etc/rgpu/proxy.key.new"
"$rgpu" join --root "$root" ${line#rgpu join } >/dev/null 2>&1
mkdir -p "$tmp/image/etc"
echo 'rgpu-proxy:x:4242:4243::/:/sbin/nologin' >"$tmp/image/etc/passwd"
run "$rgpu" join --no-check --root "$tmp/image" "nowhere.invalid:99#$(printf '%064d' 7)"
[ "$(id -u)" != 0 ] || [ "$(stat -c %u:%g "$tmp/image/etc/rgpu/proxy.key")" = 4242:4243 ]; ok $? "in an image the key is that root's user's"

# A machine as the module and the proxy would leave it.
kernel=6.1.0-test
mkdir -p "$root"/{proc/sys/kernel,proc/77,dev,run/cdi,usr/src/rgpu-0.1.0,lib/modules/$kernel/{build,updates/dkms}}
mkdir -p "$root"/sys/{module/rgpu,module/module/parameters,kernel/security,class/rgpu/rgpu0,class/rgpu/rgpu1,class/rgpu/rgpu-ctl}
echo $kernel >"$root/proc/sys/kernel/osrelease"
# A machine has other processes, too, in any order.
for i in {1..20} {101..120}; do mkdir "$root/proc/$i" && echo "$i (other) S 1" >"$root/proc/$i/stat"; done
echo "77 (rgpu-proxy) S 1" >"$root/proc/77/stat"
ln -s /usr/sbin/rgpu-proxy "$root/proc/77/exe"
echo "updates/dkms/rgpu.ko: kernel/none.ko" >"$root/lib/modules/$kernel/modules.dep"
printf 'code~Module signature appended~\n' >"$root/lib/modules/$kernel/updates/dkms/rgpu.ko"
"$rgpu" --version | sed 's/rgpu //' >"$root/sys/module/rgpu/version"
sed -n 's/^#define RGPU_ABI_MAJOR *\([0-9]*\).*/\1.0/p' uapi/linux/rgpu.h >"$root/sys/class/rgpu/rgpu-ctl/abi"
echo 1 >"$root/sys/class/rgpu/rgpu-ctl/proxy"
for i in 0 1; do
	echo 1:3 >"$root/sys/class/rgpu/rgpu$i/dev"
	echo online >"$root/sys/class/rgpu/rgpu$i/state"
	ln -s /dev/null "$root/dev/rgpu$i"
done
run "$rgpu" cdi generate --root "$root"
is 0 "cdi generate"
run cat "$root/run/cdi/rgpu.yaml"
has "has the kind" '^kind: rgpu.dev/gpu$'
has "has the devices by their numbers" 'name: "1"'
has "and all of them" 'name: all'
has "as the container sees them" '- path: /dev/rgpu1$'
mkfifo "$root/pipe"
timeout 60 cat "$root/pipe" >"$tmp/piped" &
run timeout 60 "$rgpu" cdi generate --root "$root" --output /pipe
wait $!
cmp -s "$tmp/piped" "$root/run/cdi/rgpu.yaml" && [ -p "$root/pipe" ]; ok $? "a pipe or a device is written to, not replaced"
run "$rgpu" cdi generate --root "$root" --output /nowhere/rgpu.yaml
is 1 "a folder that is not there"
has "is the cause that is told" '/nowhere/rgpu.yaml: No such file'

doctor() { LD_LIBRARY_PATH='' LD_PRELOAD='' run "$rgpu" doctor --root "$root" "$@"; }
doctor
is 0 "nothing is wrong with it"
[ -z "$(grep -vE '^(good|-) ' "$tmp/out")" ]; ok $? "and nothing is said to be"
python3 -c 'import json,sys; d = json.load(sys.stdin); assert d["bad"] == 0 and len(d["checks"]) > 15' < <("$rgpu" doctor --root "$root" --json)
ok $? "--json is JSON"

# fault CHECK TEXT NEXT: that check fails, with this cause and this command; nothing else does unless FAULTS allows.
fault()
{
	doctor
	is 1 "$1: found"
	has "$1: the cause" "^BAD +$1 +.*$2"
	has "$1: the command" "^ +next: $3"
}
# with FILE TEXT: the file for the time of one fault.
with() { cp -a "$root/$1" "$tmp/was"; printf '%s' "$2" >"$root/$1"; }
back() { rm -f "$root/$1"; mv "$tmp/was" "$root/$1"; }

f=lib/modules/$kernel/modules.dep
with $f ''
fault module-file 'no rgpu.ko for this kernel' "apt-get install linux-headers-$kernel && dkms install rgpu/0.1.0"
back $f
mv "$root/sys/module/rgpu" "$tmp/away"
fault module-loaded 'not loaded' 'modprobe rgpu'
mv "$tmp/away" "$root/sys/module/rgpu"
f=sys/module/rgpu/version
with $f 0.0.7
fault module-version 'loaded module is 0.0.7' 'apt-get install --only-upgrade'
back $f
echo Y >"$root/sys/module/module/parameters/sig_enforce"
f=lib/modules/$kernel/updates/dkms/rgpu.ko
with $f unsigned
fault module-signature 'has no signature' 'dkms build --force rgpu/0.1.0'
back $f
rm "$root/sys/module/module/parameters/sig_enforce" "$root/dev/rgpu1"
fault nodes '/dev/rgpu1 is missing' 'rm -f /dev/rgpu1 && mknod -m 0660 /dev/rgpu1 c 1 3'
ln -s /dev/null "$root/dev/rgpu1"
f=etc/rgpu/proxy.conf
with $f "$(printf '[proxy]\nspeed = 9\n')"
fault proxy-config 'proxy.conf:2: unknown setting "speed"' "sed -i '2 s/\\^/; /' /etc/rgpu/proxy.conf"
back $f
with $f "$(sed 's/^server.*/server = nowhere.invalid/' "$root/$f")"
fault server-name 'no host nowhere.invalid' 'ssh GPUHOST rgpu-server --pair \| rgpu join -'
back $f
mv "$root/$f" "$tmp/away"
fault proxy-config 'this machine has joined no server' 'ssh GPUHOST rgpu-server --pair \| rgpu join -'
mv "$tmp/away" "$root/$f"
# Keys are named by the root's paths.
f=etc/rgpu/proxy.key
chmod 644 "$root/$f"
fault proxy-key 'mode 0644' 'chmod 0600 /etc/rgpu/proxy.key'
chmod 600 "$root/$f"
with $f "$(printf 'rgpu-key-1\n%064d\n' 7)"
fault server-key 'key' 'rgpu-server --pair \| rgpu join -'
back $f
f=sys/class/rgpu/rgpu-ctl/proxy
with $f 0
fault proxy-running 'does not serve the module' 'systemctl .*restart rgpu-proxy'
back $f
f=proc/77/stat
with $f '77 (rgpu-proxy) T 1'
fault proxy-running 'is stopped' 'kill -CONT 77'
back $f
ln -sf '/usr/sbin/rgpu-proxy (deleted)' "$root/proc/77/exe"
fault proxy-current 'the old one still runs' 'systemctl restart rgpu-proxy'
ln -sf /usr/sbin/rgpu-proxy "$root/proc/77/exe"
f=sys/class/rgpu/rgpu1/state
with $f offline
fault devices-online 'but 1 is here' 'systemctl restart rgpu-proxy'
back $f
stop
fault server-reached 'cannot reach the server at 127.0.0.1' 'systemctl restart rgpu-server'
serve "$port"
rm "$root/dev/rgpu1" && rm -r "$root/sys/class/rgpu/rgpu1" && ln -s /dev/null "$root/dev/rgpu2"
fault cdi 'does not have the devices' 'rgpu cdi generate --output /run/cdi/rgpu.yaml'
mkdir "$tmp/lib" && : >"$tmp/lib/libcuda.so.1"
LD_LIBRARY_PATH=$tmp/lib run "$rgpu" doctor --root "$root"
has "libcuda: the cause" "^BAD +libcuda +LD_LIBRARY_PATH has another libcuda.so.1, in $tmp/lib"
has "libcuda: the command" "next: export LD_LIBRARY_PATH=$PWD/$B/lib:\\\$LD_LIBRARY_PATH"

# bug-report
mkdir "$tmp/bin"
cat >"$tmp/bin/journalctl" <<END
#!/bin/sh
echo 'one from 10.9.8.7. Two: 10.9.8.6:7478, [2001:db8::9]:1, fe80::9 and ::ffff:10.9.8.5, and fd00::9: at 12:34:56 $secret#$secret'
echo 'session start: sid 0123abcd certificate build7.site from 10.1.2.3:4 uid 0'
echo 'the last: a client'"'"'s certificate (build7.site) was issued by "Site CA", which is not trusted here'
echo "the server's certificate is for gpu.site, not for gpu2.site: connect to a name"
END
chmod +x "$tmp/bin/journalctl"
PATH=$tmp/bin:$PATH run "$rgpu" bug-report
is 0 "bug-report"
has "addresses are replaced" '^one from \[address\]. Two: \[address\]:7478, \[\[address\]\]:1, \[address\] and \[address\], and \[address\] at 12:34:56 \[64 hex digits\]#\[64 hex digits\]$'
has "and so are the names of certificates" '^session start: sid 0123abcd certificate \[name\] from \[address\]:4 uid 0$'
has "in what is said of them, too" "^the last: a client's certificate \\(\[name\]\\) was issued by \"\[name\]\", which is not trusted here$"
has "and those of hosts" "^the server's certificate is for \[name\]: connect to a name$"
has "has the checks" '^== doctor$'
has "and the kernel" '^Linux '
grep -qE "(^|[^0-9a-f])[0-9a-f]{32,}([^0-9a-f]|$)" "$tmp/out"; [ $? = 1 ]; ok $? "and no long row of hex digits"

run "$rgpu" status
is 1 "status without a module fails"
has "and says so" 'module is not loaded'
run "$rgpu" dance
is 125 "a command that is not there"
echo "1..$n"
