/* SPDX-License-Identifier: MIT */
/* How the client libraries reach a GPU: devices, a session, channels and buffer objects, over /dev/rgpuN or directly. */
#ifndef RGPU_SHIM_TRANSPORT_H
#define RGPU_SHIM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/rgpu.h>
#include <rgpu_wire.h>

/*
 * Precedence: RGPU_SERVER in the environment selects direct; else /dev/rgpuN. A transport is one
 * server: its devices, and at most one session of this process. All functions are thread-safe and
 * return 0 or a negative errno; rgpu_transport_why() then has one line with cause and next step.
 */
struct rgpu_transport;

struct rgpu_device {
	uint32_t index; /* in this transport; the session knows the device by it once joined */
	uint32_t minor; /* kmod: N of /dev/rgpuN */
	uint8_t uuid[RGPU_UUID_LEN];
	char name[RGPU_NAME_LEN];
	uint64_t mem_total; /* bytes */
	const void *props;  /* api/props.h */
	uint32_t props_len;
};

/* A channel as the app sees it. The pages are mapped; p, cq and k are read-only. */
struct rgpu_channel {
	uint32_t id;
	const struct rgpu_kpage *k;
	struct rgpu_apage *a;
	const struct rgpu_ppage *p;
	uint8_t *sq;
	const uint8_t *cq;
	uint32_t sq_size, cq_size;
};

struct rgpu_bo {
	uint32_t handle;
	void *base; /* shared memory, page-aligned; a forked child keeps it */
	uint64_t bytes;
};

/*
 * Finds the devices that this process may use (kmod: opens every /dev/rgpuN, skipping those that it may not open or that
 * have no GPU behind them; direct: asks the server). No session is started and, for kmod, nothing crosses the network.
 * -ENODEV none, -EACCES not permitted (device cgroup, mode; wrong key or certificate), -ECONNREFUSED/-ETIMEDOUT/-EHOSTUNREACH
 * server not reached, -EPROTO versions differ, -EINVAL bad RGPU_SERVER, RGPU_KEY or RGPU_TLS_….
 */
int rgpu_transport_open(struct rgpu_transport **out);
void rgpu_transport_close(struct rgpu_transport *t);
const char *rgpu_transport_why(const struct rgpu_transport *t);		/* t may be NULL: why open failed */
const char *rgpu_transport_name(const struct rgpu_transport *t);	/* "kmod" or "direct" */
uint32_t rgpu_transport_driver_version(const struct rgpu_transport *t); /* from device 0's props header, see api/props.h */

unsigned rgpu_transport_ndevices(const struct rgpu_transport *t);
const struct rgpu_device *rgpu_transport_device(const struct rgpu_transport *t, unsigned i);

/*
 * Starts the session with the devices @dev[0 … n − 1] (indices as above), in this order: the session
 * names them 0 … n − 1. @data is the shim's hello for the worker. One round trip. Call once.
 */
int rgpu_transport_start(struct rgpu_transport *t, const unsigned *dev, unsigned n, const void *data, uint32_t data_len);
/* NULL before start. state and reason say whether the session lives; why() has the cause. */
const struct rgpu_kpage *rgpu_transport_kpage(const struct rgpu_transport *t);

int rgpu_transport_channel(struct rgpu_transport *t, struct rgpu_channel *out);
int rgpu_transport_bo_create(struct rgpu_transport *t, uint64_t bytes, struct rgpu_bo *out);
void rgpu_transport_bo_destroy(struct rgpu_transport *t, struct rgpu_bo *bo);
/*
 * Lends the program's own memory as a buffer object for the time of a call, which waits for what it sends from there or receives
 * there. Once destroyed, nothing touches it; bytes of it that were not sent by then end the session. -ENOTSUP: not with this
 * transport.
 */
int rgpu_transport_bo_lend(struct rgpu_transport *t, void *at, uint64_t bytes, struct rgpu_bo *out);
/* The same memory at @at, too, in place of what is mapped there. The caller unmaps it, before the object is destroyed. */
int rgpu_transport_bo_map(struct rgpu_transport *t, const struct rgpu_bo *bo, void *at);
/*
 * As bo_map, and writes there are tracked by page: bo_dirty fills @bits, one per page of the machine, in whole words: 1 for each
 * page that was written there since it last told. -ENOTSUP: not with this transport or module.
 */
int rgpu_transport_bo_track(struct rgpu_transport *t, const struct rgpu_bo *bo, void *at);
int rgpu_transport_bo_dirty(struct rgpu_transport *t, const struct rgpu_bo *bo, uint64_t *bits);

/* The proxy sleeps (p->sq_event): wake it. */
int rgpu_transport_kick(struct rgpu_transport *t, uint32_t channel);
/*
 * Sleep until the CQ or the P page of this channel may have changed or the session's state did; -ETIMEDOUT; -EINTR: look and
 * wait again. The caller has set a->cq_event before. A direct transport receives in the thread that waits, so spinning long
 * before waiting gains nothing there.
 */
int rgpu_transport_wait(struct rgpu_transport *t, uint32_t channel, int timeout_ms);

/* rgpu-smi's way in: a relayed request (enum rgpu_control_op). @data is input and output. Returns bytes that came back. */
int rgpu_transport_control(struct rgpu_transport *t, uint32_t op, void *data, uint32_t len, uint32_t room);

#endif
