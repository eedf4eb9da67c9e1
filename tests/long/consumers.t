#!/bin/bash
# SPDX-License-Identifier: MIT
# Those who read NVML, unmodified: nvidia-ml-py, gpustat, nvitop from PyPI; nvtop, btop and NVIDIA's nvidia-smi from Debian. Over softgpu,
# and over a server whose NVML says what an H200 says.
cd "$(dirname "$0")/../.." || exit
export RGPU_TEST_TRANSPORT=direct
. tests/e2e/lib.sh
LIMIT=120
py=${PY:-/usr/bin/python3}

has() { # DESCRIPTION PATTERN: in the last command's output
	grep -Eq -- "$2" "$tmp/out"
	result $? "$what: $1" || diag <"$tmp/out"
}

export PYTHONPATH=$tmp/py PYTHONDONTWRITEBYTECODE=1
$py -m pip -q install --target "$tmp/py" nvidia-ml-py==13.615.71 gpustat==1.1.1 nvitop==1.7.2 >"$tmp/out" 2>&1 ||
	{ diag <"$tmp/out"; skip_all "no packages from PyPI"; }

# Debian's: unpacked, never installed. contrib has nvtop, non-free nvidia-smi; what the machine has configured is not touched.
apt=$tmp/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/root"
mirror=$(apt-get indextargets --format '$(SITE) $(COMPONENT)' 'Created-By: Packages' | awk '$2 == "main" && /\/debian\/? / { print $1; exit }')
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main contrib non-free" >"$apt/sources.list"
private() {
	apt-get -q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$apt/lists" \
		-o Dir::Cache="$apt/cache" -o APT::Sandbox::User= -o Acquire::Languages=none "$@"
}
private update >"$tmp/out" 2>&1 && (cd "$apt" && private download nvtop nvidia-smi) >>"$tmp/out" 2>&1 || diag <"$tmp/out"
for deb in "$apt"/*.deb; do
	[ ! -e "$deb" ] || dpkg -x "$deb" "$apt/root"
done

consumers() { # MEMORY POWER TEMPERATURE: patterns
	passes "$what: nvidia-ml-py reads every field of its table" $(gpu) $py tests/long/pynvml_reads.py
	passes "$what: gpustat" $(gpu) $py -m gpustat --json
	has "gpustat's memory" "\"memory.total\": $1,"
	has "gpustat's temperature" "\"temperature.gpu\": $3,"
	passes "$what: nvitop" $(gpu) $py -m nvitop -1 --ascii
	has "nvitop's memory" "/ $2 "
	if [ -x "$apt/root/usr/bin/nvtop" ]; then
		passes "$what: nvtop" $(gpu) $py tests/long/terminal.py 3 q "$apt/root/usr/bin/nvtop"
		has "nvtop's device" "Device 0 \[rgpu"
		has "nvtop's memory" "$4"
	else
		skip "$what: nvtop" "not in this archive"
	fi
}

what=softgpu
gpu_ready
consumers 4096 4096MiB null '/4.000Gi'
server_stop
what='an H200'
port=$(free_port)
$B/bin/rgpu-server --driver $B/tests/libnulldrv.so --nvml $B/tests/libfake-nvml.so --listen 127.0.0.1:$port --key "$key" >"$tmp/server.log" 2>&1 &
server_pid=$!
until_true 20 listening $port
consumers 143771 140.4GiB 52 '32.202Gi/140.401Gi'

# NVIDIA's own compares NVML's version with its own, and ends: told here, not worked around.
smi=$apt/root/usr/lib/nvidia/current/nvidia-smi
if [ -x "$smi" ]; then
	try $(gpu) "$smi"
	[ $status -eq 255 ] && grep -q 'Mismatch in versions between nvidia-smi and NVML' "$tmp/out"
	result $? "NVIDIA's nvidia-smi of another release refuses by the version" || { echo "# $status"; diag <"$tmp/out"; }
else
	skip "NVIDIA's nvidia-smi" "not in this archive"
fi
if btop --version 2>/dev/null | grep -Eq 'btop version: (1\.([3-9]|[1-9][0-9])|[2-9])'; then
	mkdir -p "$tmp/btop/btop"
	echo 'shown_boxes = "cpu gpu0"' >"$tmp/btop/btop/btop.conf"
	XDG_CONFIG_HOME=$tmp/btop passes "$what: btop" $(gpu) $py tests/long/terminal.py 4 q btop --utf-force
	has "btop's memory" '32.2 GiB'
else
	skip "btop" "this machine's btop is older than 1.3 and knows no GPUs"
fi
done_testing
