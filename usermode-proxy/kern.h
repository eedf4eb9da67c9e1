/* SPDX-License-Identifier: MIT */
/* The proxy's generic netlink socket: one transaction at a time, whoever asks, and the events that come between. */
#ifndef RGPU_PROXY_KERN_H
#define RGPU_PROXY_KERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/rgpu.h>
#include <linux/rgpu_netlink.h>
#include "lib/why.h"

/* The kernel knows the proxy by its socket, so all threads share it. Functions return 0 or a negative errno and then say why. */
struct kern;

/* Opens the socket and finds the family. -ENOENT: the module is not loaded. */
int kern_open(struct kern **out, char why[RGPU_WHY_MAX]);
void kern_close(struct kern *nl);
int kern_fd(const struct kern *nl);

/* @epoch: ours, one more than our predecessor's. -EBUSY: there is another proxy, or @ctl_fd was used before. */
int kern_register(struct kern *nl, int ctl_fd, uint32_t *epoch, char why[RGPU_WHY_MAX]);

/* Reads events that wait (they are hints to pull), so that poll() on kern_fd() sleeps again. -errno when the socket is broken. */
int kern_drain(struct kern *nl);

struct kern_request {
	uint64_t id;
	uint32_t type, flags; /* enum rgpu_req_type, RGPU_REQ_* */
	uint64_t session;
	uint8_t sid[RGPU_SID_LEN];
	uint32_t device, device_index; /* minor; which of the session's */
	uint32_t op, uid, pid;
	char comm[RGPU_COMM_LEN];
	uint32_t data_len, data_room;
	uint8_t data[RGPU_CONTROL_MAX];
	uint32_t cookie_len;
	uint8_t cookie[RGPU_COOKIE_MAX];
};
/* -EAGAIN: the queue is empty. */
int kern_pull(struct kern *nl, struct kern_request *out, char why[RGPU_WHY_MAX]);
/* -ENOENT: nobody waits for it any more. */
int kern_reply(struct kern *nl, uint64_t id, int status, const void *data, uint32_t len, char why[RGPU_WHY_MAX]);

struct kern_session {
	uint64_t id;
	uint8_t sid[RGPU_SID_LEN];
	uint32_t state, uid, pid;
	int32_t reason;	    /* of a failed one: negative errno */
	uint64_t devices;   /* bit N: it uses /dev/rgpuN */
	bool link_down;	    /* it has no connection to the server … */
	uint64_t down_ms;   /* … for so long */
	uint64_t bo_bytes;  /* pinned memory */
	uint32_t nchannels; /* ever made */
	char comm[RGPU_COMM_LEN];
	uint32_t cookie_len;
	uint8_t cookie[RGPU_COOKIE_MAX];
};
/* @out: malloc'd, *@n of them. */
int kern_sessions(struct kern *nl, struct kern_session **out, unsigned *n, char why[RGPU_WHY_MAX]);
int kern_session_set(struct kern *nl, uint64_t session, const void *cookie, uint32_t len, char why[RGPU_WHY_MAX]);

struct kern_device {
	uint32_t minor, sessions;
	bool has_uuid;
	uint8_t uuid[RGPU_UUID_LEN];
};
int kern_devices(struct kern *nl, struct kern_device **out, unsigned *n, char why[RGPU_WHY_MAX]);
int kern_dev_add(struct kern *nl, uint32_t *minor, char why[RGPU_WHY_MAX]);
int kern_dev_online(struct kern *nl, uint32_t minor, const char *name, const uint8_t uuid[RGPU_UUID_LEN],
		    const uint8_t server[RGPU_UUID_LEN], uint64_t mem_total, const void *props, uint32_t props_len,
		    char why[RGPU_WHY_MAX]);
int kern_dev_offline(struct kern *nl, uint32_t minor, char why[RGPU_WHY_MAX]);

#endif
