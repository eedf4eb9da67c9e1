#!/bin/bash
# SPDX-License-Identifier: MIT
# podman and /dev/rgpuN: three ways in, no way without, a device each, and whose pids are seen. In a guest of scripts/vm with two devices.
#
# The containers' root is the small Debian of scripts/debian-root; it has no trace of rgpu.
. tests/e2e/lib.sh
[ "${RGPU_VM:-0}" = 1 ] || skip_all "for a guest: make long-podman"
gpu_ready
LIMIT=600
debian=$(scripts/setup --print-cache)/debian-root-6.1
libs=$PWD/$B/lib

# What systemd does where there is one.
mount -t tmpfs cgroup /sys/fs/cgroup
for c in devices freezer memory cpu cpuacct cpuset pids; do
	mkdir -p /sys/fs/cgroup/$c
	mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c 2>/dev/null || rmdir /sys/fs/cgroup/$c
done
mkdir -p /run/c /run/cdi
mount -t tmpfs c /run/c
mkdir -p /run/c/upper /run/c/work /run/c/root
mount -t overlay -o lowerdir="$debian",upperdir=/run/c/upper,workdir=/run/c/work c /run/c/root || { echo "Bail out! no root for containers"; exit 1; }
mkdir -p "/run/c/root$E2E" "/run/c/root$PWD/$B/bin" "/run/c/root$libs"

# podman OPTION … -- CMD …: a container of our root, with the programs but not the libraries.
pod() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	podman --root /run/c/storage --runroot /run/c/runroot --tmpdir /run/c/tmp --cgroup-manager=cgroupfs --storage-driver=vfs --events-backend=none \
		run --rm --network=none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --log-driver=none \
		-v "$E2E:$E2E:ro" -v "$PWD/$B/bin:$PWD/$B/bin:ro" "${options[@]}" --rootfs /run/c/root "$@"
}
export -f pod
export E2E B libs
in_pod=(bash -c 'pod "$@"' pod)
plain=(-v "$libs:$libs:ro" -e "LD_LIBRARY_PATH=$libs")

passes "rgpu cdi generate" $B/bin/rgpu cdi generate
passes "CDI: --device rgpu.dev/gpu=0" "${in_pod[@]}" --device rgpu.dev/gpu=0 -- "$E2E/vadd"
passes "--device /dev/rgpu0" "${in_pod[@]}" --device /dev/rgpu0 "${plain[@]}" -- "$E2E/vadd"
fails "no device given" "no /dev/rgpu0|modprobe rgpu" "${in_pod[@]}" "${plain[@]}" -- "$E2E/errors_drv" init
fails "a bind mount is no permission: the device cgroup is named" "cgroup" "${in_pod[@]}" -v /dev/rgpu0:/dev/rgpu0 "${plain[@]}" -- "$E2E/errors_drv" init

for d in 0 1; do
	try "${in_pod[@]}" --device rgpu.dev/gpu=$d -- "$PWD/$B/bin/rgpu-smi" -L
	sed -n 's/.*UUID: \(GPU-[0-9a-f-]*\).*/\1/p' "$tmp/out" >"$tmp/uuid$d"
	[ "$(wc -l <"$tmp/uuid$d")" -eq 1 ]
	result $? "gpu=$d sees one device" || diag <"$tmp/out"
done
! cmp -s "$tmp/uuid0" "$tmp/uuid1"
result $? "… another one each"
try "${in_pod[@]}" --device rgpu.dev/gpu=all -- "$PWD/$B/bin/rgpu-smi" -L
[ "$(grep -c UUID "$tmp/out")" -eq 2 ]
result $? "gpu=all sees both" || diag <"$tmp/out"

# Two containers at once, each on its own; who they are is seen from outside and from inside.
mkfifo "$tmp/end"
for d in 0 1; do
	pod --device rgpu.dev/gpu=$d -i -- "$E2E/handoff" 0 >"$tmp/run$d" 2>&1 <"$tmp/end" &
done
exec 9>"$tmp/end"
both() {
	$B/bin/rgpu-smi --query-compute-apps=pid,gpu_uuid --format=csv,noheader >"$tmp/apps" 2>&1 && [ "$(wc -l <"$tmp/apps")" -eq 2 ]
}
until_true 200 both
result $? "two containers run" || diag <"$tmp/apps"
good=0
for d in 0 1; do
	pid=$(sed -n "s/, *$(cat "$tmp/uuid$d")\$//p" "$tmp/apps")
	[ -n "$pid" ] && [ "$(cat /proc/"$pid"/comm)" = handoff ] || good=1
done
result $good "outside: each program's pid, on its device" || diag <"$tmp/apps"
exec 9>&-
wait
grep -q 'turns in order' "$tmp/run0" && grep -q 'turns in order' "$tmp/run1"
result $? "both end well" || diag <"$tmp/run0"

cat >"$tmp/inside" <<EOF
"$E2E/handoff" 0 <"$tmp/fifo" >/dev/null & exec 9>"$tmp/fifo"
for i in \$(seq 600); do
	seen=\$("$PWD/$B/bin/rgpu-smi" --query-compute-apps=pid --format=csv,noheader)
	[ -n "\$seen" ] && break
	sleep 0.2
done
echo "seen \$seen, is \$!"
exec 9>&-
wait
[ "\$seen" = "\$!" ]
EOF
mkfifo "$tmp/fifo"
passes "inside: the pid that the container has for it" "${in_pod[@]}" --device rgpu.dev/gpu=0 -v "$tmp:$tmp" -- /bin/bash "$tmp/inside"

# Without root: the user is of the group rgpu, and keeps it in the container.
useradd -m -G rgpu tester 2>/dev/null
grep -q ^tester: /etc/subuid || { echo tester:200000:65536 >>/etc/subuid; echo tester:200000:65536 >>/etc/subgid; }
mkdir -p /run/user/tester
chown tester /run/user/tester
cat >/run/c/rootless <<EOF
export XDG_RUNTIME_DIR=/run/user/tester HOME=/home/tester
cd /
podman --cgroup-manager=cgroupfs --storage-driver=vfs --events-backend=none --runtime=crun run --rm --network=none --log-driver=none --cgroups=disabled \
	--ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --group-add keep-groups \$1 -v "$E2E:$E2E:ro" -v "$libs:$libs:ro" -e "LD_LIBRARY_PATH=$libs" --rootfs /run/c/root "$E2E/\$2" \$3
EOF
chmod o+rx /run/c /run/c/root /run/c/rootless
passes "rootless: --device /dev/rgpu0" setpriv --reuid tester --regid tester --init-groups bash /run/c/rootless --device=/dev/rgpu0 vadd
fails "rootless: no device given" "no /dev/rgpu0|modprobe rgpu" setpriv --reuid tester --regid tester --init-groups bash /run/c/rootless --env=X=1 errors_drv init
done_testing
