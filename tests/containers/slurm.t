#!/bin/bash
# SPDX-License-Identifier: MIT
# Slurm over /dev/rgpuN: two nodes of two devices each in one guest of scripts/vm; fencing, queueing, shards, and a CUDA program in each job.
#
# Configuration: packaging/slurm, with two slurmd under the names n1 and n2.
. tests/e2e/lib.sh
[ "${RGPU_VM:-0}" = 1 ] || skip_all "for a guest: make long-slurm"
gpu_ready
LIMIT=900
export E2E B PWD

# What systemd does where there is one. Slurm 22.05 fences by cgroup v1 here.
mount -t tmpfs cgroup /sys/fs/cgroup
for c in devices freezer memory cpuset cpuacct; do
	mkdir -p /sys/fs/cgroup/$c
	mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c 2>/dev/null || rmdir /sys/fs/cgroup/$c
done
host=$(hostname -s)
echo "127.0.0.1 localhost $host" >/etc/hosts
install -d -o munge -g munge /run/munge /var/log/munge /var/lib/munge
dd if=/dev/urandom bs=1 count=1024 of=/etc/munge/munge.key status=none
chown munge: /etc/munge /etc/munge/munge.key
chmod 0400 /etc/munge/munge.key
setpriv --reuid munge --regid munge --clear-groups munged --force
mkdir -p /etc/slurm /var/spool/slurmctld /var/log/slurm
sed "s/^SlurmctldHost=.*/SlurmctldHost=$host(127.0.0.1)/" packaging/slurm/slurm.conf >/etc/slurm/slurm.conf
cat >>/etc/slurm/slurm.conf <<EOF
SlurmUser=root
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmdSpoolDir=/var/spool/slurmd.%n
SlurmdLogFile=/var/log/slurmd.%n.log
SlurmctldLogFile=/var/log/slurmctld.log
StateSaveLocation=/var/spool/slurmctld
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=17001 CPUs=4 RealMemory=500 Gres=gpu:rgpu:2,shard:8
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=17002 CPUs=4 RealMemory=500 Gres=gpu:rgpu:2,shard:8
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
EOF
cat >/etc/slurm/gres.conf <<EOF
NodeName=n1 Name=gpu Type=rgpu File=/dev/rgpu[0-1]
NodeName=n1 Name=shard Count=8
NodeName=n2 Name=gpu Type=rgpu File=/dev/rgpu[2-3]
NodeName=n2 Name=shard Count=8
EOF
{ cat packaging/slurm/cgroup.conf; echo CgroupPlugin=cgroup/v1; echo CgroupMountpoint=/sys/fs/cgroup; } >/etc/slurm/cgroup.conf
slurmctld
# A node has its own two devices and no others, as on machines of their own: Slurm fences what it counts, and only that.
node_start() { # NAME DEVICE DEVICE
	unshare --mount bash -c '
		set -e
		mount --make-rprivate /
		mount -t tmpfs dev /run/dev
		for f in null zero full random urandom tty ptmx "$1" "$2"; do cp -a /dev/$f /run/dev/; done
		for d in pts shm; do mkdir /run/dev/$d; mount --bind /dev/$d /run/dev/$d; done
		ln -s /proc/self/fd /run/dev/fd
		mount --bind /run/dev /dev
		slurmd -N "$0"' "$@" || { echo "Bail out! no node $1"; exit 1; }
}
mkdir -p /run/dev
node_start n1 rgpu0 rgpu1
node_start n2 rgpu2 rgpu3
stop_slurm() {
	scancel --full --signal=KILL --user=root 2>/dev/null
	pkill -x slurmd
	pkill -x slurmctld
	pkill -x munged
	cleanup
}
trap stop_slurm EXIT
idle() { [ "$(sinfo -h -o '%t %D' -p main)" = "idle 2" ]; }
until_true 120 idle
result $? "two nodes are idle" || { sinfo -N | diag; tail -n 20 /var/log/slurmd.n1.log | diag; }

# Which of the four nodes open, and what CUDA has: "open: 1, devices: 1, visible: 0".
cat >"$tmp/look" <<'EOF'
open=
for d in 0 1 2 3; do
	[ -c /dev/rgpu$d ] && (exec 3<>/dev/rgpu$d) 2>/dev/null && open+=$d
done
gpus=$("$PWD/$B/bin/rgpu" run -- "$PWD/$B/bin/rgpu-smi" -L | grep -c UUID)
echo "node: $SLURMD_NODENAME open: $open devices: $gpus visible: $CUDA_VISIBLE_DEVICES"
"$PWD/$B/bin/rgpu" run -- "$E2E/vadd" || exit 1
sleep "${1:-0}"
EOF
# look FIELD: of the last output.
look() { sed -n "s/.*$1: *\([^ ]*\).*/\1/p" "$tmp/out" | head -n 1; }

passes "one device: a program runs" srun --gres=gpu:1 bash "$tmp/look"
[ "$(look open | wc -c)" -eq 2 ] && [ "$(look devices)" = 1 ] && [ "$(look visible)" = 0 ]
result $? "… on one, which is number 0 there; the others do not open" || diag <"$tmp/out"
passes "two devices on one node" srun --gres=gpu:2 bash "$tmp/look"
[ "$(look open | wc -c)" -eq 3 ] && [ "$(look devices)" = 2 ] && [ "$(look visible)" = 0,1 ]
result $? "… and both are seen" || diag <"$tmp/out"
fails "no device asked for: none" "no CUDA-capable device|NO_DEVICE|cgroup" srun "$PWD/$B/bin/rgpu" run -- "$E2E/errors_drv" init
try srun bash -c 'for d in /dev/rgpu?; do (exec 3<>$d) 2>&1; done; true'
[ "$(grep -c 'Operation not permitted' "$tmp/out")" -eq 2 ]
result $? "… each open says EPERM" || diag <"$tmp/out"

# Five jobs of one device on four devices.
for j in 1 2 3 4 5; do
	sbatch -o "$tmp/job$j" --gres=gpu:1 --wrap "bash $tmp/look 100000" >/dev/null
done
four() { [ "$(squeue -h -t R | wc -l)" -eq 4 ] && [ "$(squeue -h -t PD -o %r)" = Resources ] && [ "$(cat "$tmp"/job? 2>/dev/null | grep -c '^node')" -eq 4 ]; }
until_true 300 four
result $? "of five jobs four run and the fifth waits for resources" || squeue | diag
sed -n 's/.*open: \([0-9]*\).*/\1/p' "$tmp"/job? | sort | tr -d '\n' >"$tmp/devices"
[ "$(cat "$tmp/devices")" = 0123 ]
result $? "… each on a device of its own" || { cat "$tmp"/job? | diag; }
[ "$(grep -hc 'visible: 0$' "$tmp"/job? | grep -c 1)" -eq 4 ]
result $? "… which is number 0 to it" || { cat "$tmp"/job? | diag; }
scancel "$(squeue -h -t R -o %A | head -n 1)"
fifth() { [ "$(squeue -h -t PD | wc -l)" -eq 0 ] && [ "$(cat "$tmp"/job? | grep -c '^node')" -eq 5 ]; }
until_true 300 fifth
result $? "the fifth runs when one has ended" || squeue | diag
scancel --user=root
until_true 120 idle
result $? "all is idle again"

# A quarter of a device.
passes "a shard: a program runs" srun --gres=shard:2 bash "$tmp/look"
[ "$(look open | wc -c)" -eq 2 ] && [ "$(look devices)" = 1 ] && [ "$(look visible)" = 0 ]
result $? "… fenced to the device that it shares" || diag <"$tmp/out"
done_testing
