/* SPDX-License-Identifier: MIT */
/* What rgpu-proxy and rgpu-server show of themselves: a picture of one moment, its texts, and the server for them. */
#ifndef RGPU_WEB_VIEW_H
#define RGPU_WEB_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "lib/addr.h"
#include "lib/why.h"

#define WEB_UNKNOWN (-1) /* of the int fields: such a value is left out, never shown as 0 */

struct web_device {
	char name[64];
	uint8_t uuid[16];
	int minor; /* N of /dev/rgpuN; WEB_UNKNOWN at the server */
	int index; /* in the server's lists; WEB_UNKNOWN while it is offline */
	bool online;
	uint64_t mem_total, mem_used; /* bytes */
	int utilization;	      /* per cent, or WEB_UNKNOWN */
	unsigned sessions;
};

/* Counts since the session began, as the one that is asked sees them. */
struct web_session {
	uint8_t sid[16];
	char comm[17];
	uint32_t uid, pid;
	int device; /* place in the view's list, or WEB_UNKNOWN */
	uint64_t mem_used;
	uint64_t records, round_trips; /* calls of the program that were sent, and those of them that waited for an answer */
	bool carried;		       /* by the one that is asked: it has the following */
	uint64_t sent_bytes, received_bytes, connections;
	uint64_t linked; /* 1: it has a connection to the server now; 0: not for down_s */
	uint64_t down_s;
	uint64_t pack_in, pack_out;		    /* bytes that were compressed, and what they became */
	uint64_t known, named, saved_bytes, needed; /* blocks that the server has, and had, their bytes, those that were gone */
};

/* Uploads that the server keeps. */
struct web_cache {
	bool there;
	uint64_t limit, bytes, blocks, hits, misses, saved, admitted, evicted;
};

struct web_view {
	const char *role;	       /* "rgpu-proxy", "rgpu-server" */
	char version[64];	       /* its own */
	char peer[RGPU_ADDR_TEXT_MAX]; /* the proxy's server, or where the server listens */
	char driver[64];	       /* what answers CUDA calls; empty: not known */
	bool up;		       /* the proxy reaches its server; the server: always */
	char why[RGPU_WHY_MAX];	       /* when not up */
	int rtt_us;		       /* TCP's smoothed figure for the control connection, or WEB_UNKNOWN */
	int64_t uptime_s;
	unsigned ndevices, nsessions;
	struct web_device *device;
	struct web_session *session;
	struct web_cache cache;
};

/* One more of it, zeroed and with its int fields unknown. NULL: no memory. The pointer is good until the next call. */
struct web_device *web_view_device(struct web_view *v);
struct web_session *web_view_session(struct web_view *v);
void web_view_free(struct web_view *v);

/*
 * What a STATS_LIST says, into the devices, which are known by their index already, and as sessions. 0, -ENOMEM, or -EPROTO when
 * it is damaged.
 */
int web_view_stats(struct web_view *v, const void *list, size_t len);

/* The text exposition format of Prometheus, version 0.0.4; names in docs/metrics.md. */
void web_prometheus(const struct web_view *v, FILE *to);
/* One object, for the page. */
void web_json(const struct web_view *v, FILE *to);

/* Fills a zeroed view. May block for seconds. 0, or -ENOMEM. */
typedef int web_fill(struct web_view *v, void *arg);

/*
 * Serves / (the page), /metrics and /view.json on 127.0.0.1:@port from a thread of its own, until the process ends. Read-only: it
 * takes GET and HEAD, and no request whose Host is not this machine's loopback, so that a web page elsewhere cannot read it by a
 * name that it points here. @port 0 takes a free one; the one taken is returned, else a negative errno with @why.
 */
int web_serve(uint16_t port, web_fill *fill, void *arg, char why[RGPU_WHY_MAX]);

#endif
