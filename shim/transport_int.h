/* SPDX-License-Identifier: MIT */
/* What the two transports implement, and what transport.c keeps for both. */
#ifndef RGPU_SHIM_TRANSPORT_INT_H
#define RGPU_SHIM_TRANSPORT_INT_H

#include "lib/why.h"
#include "shim/transport.h"

/* As in transport.h; the caller has seen to forks and arguments. Errors leave a line by transport_why(). */
struct transport_ops {
	const char *name;
	void (*close)(struct rgpu_transport *t);
	int (*start)(struct rgpu_transport *t, const unsigned *dev, unsigned n, const void *data, uint32_t data_len);
	int (*channel)(struct rgpu_transport *t, struct rgpu_channel *out);
	int (*bo_create)(struct rgpu_transport *t, uint64_t bytes, struct rgpu_bo *out);
	void (*bo_destroy)(struct rgpu_transport *t, struct rgpu_bo *bo);
	int (*bo_lend)(struct rgpu_transport *t, void *at, uint64_t bytes, struct rgpu_bo *out); /* NULL: not here */
	int (*bo_map)(struct rgpu_transport *t, const struct rgpu_bo *bo, void *at);
	/* NULL both: no tracking. */
	int (*bo_track)(struct rgpu_transport *t, const struct rgpu_bo *bo, void *at);
	int (*bo_dirty)(struct rgpu_transport *t, const struct rgpu_bo *bo, uint64_t *bits);
	int (*kick)(struct rgpu_transport *t, uint32_t channel);
	int (*wait)(struct rgpu_transport *t, uint32_t channel, int timeout_ms);
	int (*control)(struct rgpu_transport *t, uint32_t op, void *data, uint32_t len, uint32_t room);
	const char *(*failed_why)(struct rgpu_transport *t); /* the session is FAILED: why */
};

struct rgpu_transport {
	const struct transport_ops *ops;
	uint32_t owner; /* see transport.c */
	unsigned ndevices;
	struct rgpu_device *device;
	const struct rgpu_kpage *k; /* NULL before start */
};

int transport_direct_open(const char *server, struct rgpu_transport **out);
int transport_kmod_open(struct rgpu_transport **out);

/* This thread's line about its last error; gives @err back. */
int transport_why(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
