# SPDX-License-Identifier: MIT
# Shards in guests with what shares machines out: podman, Slurm. They use the host's own programs of Debian.
LONG += podman slurm
.PHONY: long-podman long-slurm

long-podman: all modules e2e-programs
	@for p in podman runc crun newuidmap; do command -v $$p >/dev/null || { echo "no $$p: apt-get install podman runc crun uidmap" >&2; exit 1; }; done
	scripts/debian-root >/dev/null
	scripts/vm run --devices 2 --time-limit 2700 -- tests/containers/podman.t

long-slurm: all modules e2e-programs
	@for p in slurmctld slurmd munged; do command -v $$p >/dev/null || { echo "no $$p: apt-get install slurm-wlm munge" >&2; exit 1; }; done
	scripts/vm run --devices 4 --time-limit 2700 -- tests/containers/slurm.t
