/* SPDX-License-Identifier: MIT */
/* The genuine NVML, in a process of its own: the listener loads no library of a driver, and one that hangs is killed. */
#ifndef RGPU_SERVER_NVML_H
#define RGPU_SERVER_NVML_H

#include <stdint.h>
#include <sys/types.h>

#define NVML_ANSWER_MAX (64u << 10)

/* What the listener asks, over a SOCK_SEQPACKET socket; one answer each. */
struct nvml_ask {
	uint32_t what; /* RGPU_TELEMETRY_FIXED, LIVE, SLOW → facts; PROCESSES → struct nvml_use of all that there are */
	uint32_t reserved;
	uint8_t uuid[16];
};

/* A process of this machine on the device, as NVML names it. */
struct nvml_use {
	uint32_t pid, busy, busy_memory; /* per cent, RGPU_TELEMETRY_NONE when it is not known */
	uint32_t reserved;
	uint64_t mem_used; /* bytes, all ones when it is not known */
};

/* The child: answers until the listener hangs up. Its exit status. */
int nvml_process(int fd, const char *lib);

/*
 * The listener's side, for any thread: starts the child when there is none. The answer's length in @buf; -EAGAIN: there is no
 * NVML, or it did not answer in time.
 */
ssize_t nvml_request(const char *lib, const struct nvml_ask *ask, void *buf, uint32_t room);

/* Ends the child, if there is one; there is no further one. */
void nvml_stop(void);

#endif
