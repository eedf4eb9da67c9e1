/* SPDX-License-Identifier: MIT */
/* What listener and workers say to each other: fixed messages over a SOCK_SEQPACKET socket, one with a descriptor. */
#ifndef RGPU_SERVER_WMSG_H
#define RGPU_SERVER_WMSG_H

#include <linux/rgpu.h>
#include <rgpu_wire.h>
#include "lib/cert.h"
#include "lib/key.h"
#include "server/clients.h"

#define WMSG_VERSION 6 /* a restarted listener may be newer than the workers it finds */

enum wmsg_type {
	/* Listener to worker; each but CONN is answered by RESULT. */
	W_OPEN = 1, /* ident, open: make the session */
	W_IDENT,    /* → ident */
	W_LEASE,    /* ident.epoch: cut the connection off; → ident.lease, the next one */
	W_CONN,	    /* conn, with the socket */
	W_JOIN,	    /* join */
	W_STATS,    /* → stats */
	W_END,	    /* err, text: for the client's BYE; the worker ends */
	/* Worker to listener. */
	W_RESULT, /* err (0 or a positive errno), text, and what was asked for */
	W_GONE,	  /* unasked, the last word: err, text, stats */
	/* Listener to worker, without an answer. */
	W_LINK = 64, /* link; with a socket to the listener's store (cache_msg.h), if it has one; only to workers that have
			WMSG_HAS_LINK */
};

/* How a client proved who it is. */
enum proof {
	PROOF_KEY,
	PROOF_CERT,
	PROOF_NONE, /* it is RGPU_PLAIN_NAME */
};

#define WMSG_HAS_LINK (1u << 31) /* in the flags of the ident that a worker answers */

/* Who a session belongs to. The worker keeps it, so a new listener learns it from there. */
struct wmsg_ident {
	uint8_t sid[RGPU_SID_LEN];
	char key_id[CLIENT_NAME_MAX];
	uint32_t proof;		  /* enum proof: what key_id is the name of */
	struct rgpu_cert_id cert; /* PROOF_CERT */
	char from[64];		  /* the address that it was started from */
	char comm[17];
	uint32_t uid, pid, device, flags, epoch, lease;
	uint32_t slot;	 /* in the account of memory */
	int32_t worker;	 /* pid */
	int64_t started; /* CLOCK_BOOTTIME, seconds */
};

struct wmsg {
	uint32_t version, type;
	uint32_t id; /* a RESULT has its request's: a late one is not taken for another's */
	int32_t err;
	char text[252];
	struct wmsg_ident ident;
	union {
		struct {
			char driver[512], blas[512], socket[108], user[64], quota[108];
			uint32_t slots; /* of the account */
			struct client_limits limits;
			int32_t grace_ms, direct_grace_ms;
			uint32_t verbose;
			uint32_t data_len;
			uint8_t data[RGPU_CONTROL_MAX];
		} open;
		struct {
			uint32_t lease;
			uint32_t plain; /* it has no TLS, and no key for it */
			uint8_t psk[RGPU_KEY_LEN];
		} conn;
		struct rgpu_join join;
		struct {
			uint32_t compress; /* enum rgpu_pack_mode */
		} link;
		struct {
			uint64_t records, fences;
			uint32_t ndevices;
			uint32_t device[64];
			uint64_t mem[64];
			uint64_t up, down; /* bytes over data connections; 0 from a worker of the first release */
		} stats;
	};
};

/* @fd < 0: none. 0 or -errno; -EPIPE: the other side is gone, -EAGAIN: it has not read for long. The descriptor stays the
 * caller's. */
int wmsg_send(int sock, struct wmsg *m, int fd);
/* 0, -ETIMEDOUT, -EPIPE the other side is gone, -EPROTO not such a message. @fd receives a descriptor, or −1; NULL: none is
 * taken. */
int wmsg_recv(int sock, struct wmsg *m, int *fd, int timeout_ms);

#endif
