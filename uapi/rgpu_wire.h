/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* What lies in the rings and crosses the wire: records, replies, and the frames that carry them over TLS. */
#ifndef _UAPI_RGPU_WIRE_H
#define _UAPI_RGPU_WIRE_H

#include <linux/types.h>

/*
 * All integers are little-endian. Everything here is append-only. The way of a record is told in
 * docs/architecture.md; this file has the layouts.
 */
#define RGPU_WIRE_MAJOR	  1
#define RGPU_WIRE_MINOR	  0
#define RGPU_DEFAULT_PORT 7478

/*
 * Records: app → server. One API call, written once by the shim into its channel's SQ: the same bytes
 * cross the wire. A relay reads only this header and the segments, never the body.
 *
 * A record does not wrap: when it would, a PAD record (header alone is valid, len reaches to the ring's
 * end, at least 16 bytes are always there; only len, op and flags of a PAD are meaningful, and it has no seq) fills up the
 * end. PADs do not cross the wire.
 */
#define RGPU_REC_ALIGN 16u
#define RGPU_REC_MAX   (64u << 10) /* bytes of header, segments and body together */
#define RGPU_SEG_MAX   16u
#define RGPU_CHUNK_MAX (2u << 20) /* SEND bytes, and RECV bytes, of one record: larger copies are several records */

#define RGPU_REC_FENCE 0x01 /* the caller waits: a reply with a CQ entry comes */
#define RGPU_REC_PAD   0x80

struct rgpu_rec {
	__u32 len; /* all of it in bytes, multiple of RGPU_REC_ALIGN */
	__u16 op;  /* enum in the API tables: library << 12 | row */
	__u8 flags;
	__u8 nseg;
	__u64 seq;   /* 1, 2, 3 … per channel, over all connections */
	__u64 after; /* session counter when the call began: every stamp ≤ it must have run */
	__u64 stamp; /* this call's place: ++counter, taken just before publishing; or 0, see below */
		     /* nseg × struct rgpu_seg, then the body */
};

/*
 * The order. A record runs when every stamp ≤ its `after` has run, and after the records before it in its channel. A call
 * that has not returned holds nobody, and only a returned one must come first, so
 *  - a fence needs no place: stamp 0 (one with a stamp counts as run the moment it is received), and a thread that waits in
 *    the driver never holds the thread that would release it;
 *  - of a call made of several records only the last takes a stamp; the others have stamp 0, so that no small call of another
 *    thread waits for a long copy.
 * In a channel each stamp is greater than every stamp and `after` before it, and than its own `after`. The server checks this.
 */

#define RGPU_SEG_SEND 1u /* these bytes of the buffer object go with the record */
#define RGPU_SEG_RECV 2u /* bytes of the answer land here */

struct rgpu_seg {
	__u32 bo; /* client's handle of a buffer object */
	__u32 dir;
	__u64 off, len;
};

/*
 * Replies: server → app. In the CQ, and in REPLY frames. rseq numbers all replies of a channel in
 * sending order. A record without FENCE has a reply only if it has RECV segments, and that one has
 * QUIET set: it counts (delivered, published) but makes no CQ entry.
 */
#define RGPU_REP_QUIET 0x01
#define RGPU_REP_PAD   0x80

struct rgpu_rep {
	__u32 len; /* multiple of RGPU_REC_ALIGN, ≤ RGPU_REP_MAX */
	__u16 op;
	__u16 flags;
	__u64 rseq;
	__u64 seq;	/* of the record answered */
	__s32 status;	/* what the call returned, in its library's own enum */
	__s32 qstatus;	/* first failing status of quiet calls of this session not yet told, 0 none */
	__u32 qop;	/* … and which call that was */
	__u32 body_len; /* bytes of body, before padding */
	__u64 bulk;	/* bytes placed in RECV segments */
			/* body */
};
#define RGPU_REP_MAX (32u << 10)

/*
 * Frames. A connection is TLS 1.3; inside it, a stream of frames: this header, then len bytes.
 */
struct rgpu_frame {
	__u32 len; /* after this header, ≤ RGPU_FRAME_MAX */
	__u16 type;
	__u16 flags;   /* RECORDS: credit that the client would like to have on this channel, MiB; 0: as it is */
	__u32 channel; /* 0 where it has no meaning */
	__u32 reserved;
};
#define RGPU_FRAME_MAX	(1u << 20)
#define RGPU_FRAME_BULK (256u << 10) /* bulk payload of one frame: small enough that small calls of others slip between */

enum rgpu_frame_type {
	/* Control connection: the client's or proxy's standing link to the listener. Requests are answered in order. */
	RGPU_C_HELLO = 1,	/* struct rgpu_hello → WELCOME or ERROR */
	RGPU_C_WELCOME = 2,	/* struct rgpu_welcome */
	RGPU_C_ERROR = 3,	/* struct rgpu_error_frame */
	RGPU_C_DEVICES = 4,	/* empty → DEVICE_LIST */
	RGPU_C_DEVICE_LIST = 5, /* n × (struct rgpu_device_entry + props, padded to 8) */
	RGPU_C_START = 6,	/* struct rgpu_start → STARTED or ERROR; idempotent under sid */
	RGPU_C_STARTED = 7,	/* struct rgpu_started */
	RGPU_C_RESUME = 8,	/* struct rgpu_start → STARTED; the older lease is dead before the answer */
	RGPU_C_JOIN = 9,	/* struct rgpu_join → OK: one more device for a session */
	RGPU_C_END = 10,	/* struct rgpu_join (device unused) → OK: the client process is gone */
	RGPU_C_OK = 11,
	RGPU_C_STATS = 12,	/* empty → STATS_LIST */
	RGPU_C_STATS_LIST = 13, /* struct rgpu_stats, then its entries */
	RGPU_C_TELEMETRY = 14,	/* struct rgpu_telemetry_ask → TELEMETRY_LIST; only to a server whose WELCOME has the feature */
	RGPU_C_TELEMETRY_LIST = 15,

	/* Data connection, both ways. */
	RGPU_D_ATTACH = 32,   /* client, first: n × struct rgpu_attach_channel */
	RGPU_D_ATTACHED = 33, /* server, first: n × struct rgpu_attached_channel, the same channels */
	RGPU_D_RECORDS = 34,  /* client: whole records of one channel; one with SEND segments is the last of its frame */
	RGPU_D_PAYLOAD = 35,  /* client: the next bytes of the SEND segments of the channel's last record */
	RGPU_D_ACK = 36,      /* client: struct rgpu_ack */
	RGPU_D_GRANT = 37,    /* server: struct rgpu_grant */
	RGPU_D_DATA = 38,     /* server: struct rgpu_data, then bytes for a RECV segment; precede their reply */
	RGPU_D_REPLY = 39,    /* server: whole replies of one channel */
	RGPU_D_PING = 40,     /* either: 8 bytes, answered by PONG with the same bytes */
	RGPU_D_PONG = 41,
	RGPU_D_BYE = 42, /* either: struct rgpu_error_frame: the session is over for good, and why (err 0: a clean end) */
	RGPU_D_CLOSE_CHANNEL = 43, /* client: after all its records; server drops the lane */

	/* Repeated bytes, see struct rgpu_ref; on connections whose ATTACH and ATTACHED both have RGPU_ATTACH_CACHE. */
	RGPU_D_KNOWN = 0x2e0,  /* server: n × __u64, hints of blocks that it keeps; with flags RGPU_KNOWN_ALL: of all of them */
	RGPU_D_REF = 0x2e1,    /* client: struct rgpu_ref, in the place of a PAYLOAD frame with these bytes */
	RGPU_D_NEED = 0x2e2,   /* server: struct rgpu_need: a REF of that record names bytes that it does not keep any more */
	RGPU_D_REWIND = 0x2e3, /* client: struct rgpu_need, the answer: that record and those after it follow again */

	/* A frame whose body is compressed: struct rgpu_packed, for DATA its struct rgpu_data, then the compressed rest. */
	RGPU_D_PACKED = 0x2e4,
};

/* Flags of ATTACH: what the client can; of ATTACHED: what of that is used on this connection. */
#define RGPU_ATTACH_CACHE 0x0100
#define RGPU_ATTACH_LZ4	  0x0200 /* PACKED frames may be LZ4 blocks */
#define RGPU_ATTACH_ZSTD  0x0400 /* … Zstandard frames */

#define RGPU_KNOWN_ALL 1

/* Features of the wire, in WELCOME: what a server answers beyond the first release. */
#define RGPU_WIRE_TELEMETRY (1ULL << 32) /* RGPU_C_TELEMETRY */

struct rgpu_hello {
	__u32 magic; /* RGPU_MAGIC */
	__u16 major, minor;
	__u64 features;
	char agent[64]; /* "rgpu-proxy 0.1", for logs */
};

struct rgpu_welcome {
	__u32 magic;
	__u16 major, minor;
	__u64 features;
	__u8 server[16]; /* names this server: devices of one server share sessions */
	char agent[64];
	char driver[64];      /* "softgpu", "CUDA 13.0 …": what answers */
	__u32 driver_version; /* as cuDriverGetVersion */
	__u32 ndevices;
};

struct rgpu_error_frame {
	__s32 err;	/* a positive Linux errno: the class of the cause */
	char text[252]; /* one line: cause, and what to do */
};

struct rgpu_device_entry {
	__u8 uuid[16];
	char name[64];
	__u64 mem_total; /* bytes */
	__u32 props_len; /* api/props.h, opaque to relays */
	__u32 reserved;
};

/* The engine is in the program itself: its FIN or RST means that the program ended, where a proxy's may mean a restart. */
#define RGPU_START_DIRECT 1u

struct rgpu_start {
	__u8 sid[16];
	__u32 epoch; /* the proxy's; direct mode: 1 + reconnections */
	__u32 uid;
	__u32 pid;    /* as the client's host sees it */
	__u32 device; /* the starter's device, index in DEVICE_LIST */
	char comm[16];
	__u32 data_len; /* the shim's own words, opaque to relays: api/hello.h */
	__u32 flags;	/* RGPU_START_… */
			/* data */
};

struct rgpu_started {
	__u8 sid[16];
	__u32 lease; /* advances with every START and RESUME of the session */
	__u32 grace_ms;
	__u8 token[16]; /* opens one data connection, once, within 30 s */
};

struct rgpu_join {
	__u8 sid[16];
	__u32 device; /* index in DEVICE_LIST */
	__u32 index;  /* its index in the session: 0 the starter's, then as joined */
};

struct rgpu_stats_device {
	__u64 mem_used, mem_total;
	__u32 utilization; /* per cent, 0xffffffff unknown */
	__u32 sessions;
};

struct rgpu_stats_session {
	__u8 sid[16];
	__u32 uid, pid;
	char comm[16];
	__u32 device; /* one entry per session and device */
	__u32 reserved;
	__u64 mem_used;
	__u64 records, fences;
};

struct rgpu_stats {
	__u32 ndevices, nsessions;
	/* ndevices × struct rgpu_stats_device, nsessions × struct rgpu_stats_session (of the same client only) */
};

/*
 * Telemetry: what management libraries ask (api/telemetry.h has the facts' numbers). The same request and answer go through the
 * module as RGPU_CONTROL_TELEMETRY, so an answer fits into RGPU_CONTROL_MAX bytes.
 */
enum rgpu_telemetry {
	RGPU_TELEMETRY_PING = 0,	/* → empty */
	RGPU_TELEMETRY_FIXED = 1,	/* device → facts that do not change */
	RGPU_TELEMETRY_LIVE = 2,	/* device → facts of this moment */
	RGPU_TELEMETRY_SLOW = 3,	/* device → facts that take the driver some time to measure */
	RGPU_TELEMETRY_PROCESSES = 4,	/* first → struct rgpu_telemetry_list, n × struct rgpu_telemetry_process */
	RGPU_TELEMETRY_UPLOADS = 0x2e0, /* → struct rgpu_telemetry_uploads; answered by the proxy, never sent */
	RGPU_TELEMETRY_LINK = 5,	/* → struct rgpu_telemetry_link; answered on the client's side, never sent */
};

struct rgpu_telemetry_ask {
	__u32 what;   /* enum rgpu_telemetry */
	__u32 device; /* index in DEVICE_LIST */
	__u32 first;  /* PROCESSES: how many the asker has already */
	__u32 reserved;
};

/* A fact; then len bytes, padded to 8. A number is a __u64, or a __s64. status is an nvmlReturn_t: bytes come with 0 only. */
struct rgpu_telemetry_fact {
	__u16 id;
	__u8 status;
	__u8 reserved;
	__u32 len;
};

struct rgpu_telemetry_list {
	__u32 total, n; /* entries that there are; that follow, from the asked one on */
};

#define RGPU_TELEMETRY_NONE 0xffffffffu

/* A session on a device that it uses; of the same client only. */
struct rgpu_telemetry_process {
	__u8 sid[16];
	__u64 session;	/* the module's name of it, filled in by the proxy; 0: none */
	__u32 uid, pid; /* as the client's host sees it */
	char comm[16];
	__u32 device;
	__u32 busy, busy_memory; /* per cent of the device in the last second, NONE: not known */
	__u32 reserved;
	__u64 mem_used;		    /* bytes on that device */
	__u64 records, fences;	    /* calls; those that waited for an answer */
	__u64 bytes_up, bytes_down; /* over the data connection */
	__u64 rate_up, rate_down;   /* bytes per second */
};

/* Of all sessions that the proxy has carried. */
struct rgpu_telemetry_uploads {
	__u64 named, saved_bytes; /* blocks that the server had already, and their bytes, which were not sent */
	__u64 needed;		  /* blocks that it was thought to have and had not */
	__u64 pack_in, pack_out;  /* bytes to the server that were compressed, and what they became */
	__u64 sent_bytes;
};

struct rgpu_telemetry_link {
	char server[80]; /* host:port */
	char agent[64], driver[64];
	char tls[64];		/* protocol and cipher */
	__u64 rtt_p50, rtt_p99; /* ns, of the last samples */
	__u32 samples;
	__u32 reserved;
};

/*
 * A data connection begins with this preface in the clear, compared and never interpreted; the listener
 * hands the socket to the session's worker, which does the TLS handshake with a key that only the two
 * ends of the control connection know: exporter label RGPU_DATA_LABEL, context sid ‖ lease (20 bytes).
 * A TLS control connection begins with 0x16, so the first byte tells them apart.
 *
 * Between two ends on one machine there may be a control connection without TLS: a preface with RGPU_PLAIN_MAGIC, then records
 * with checksums (lib/plain.h) that carry the same frames. A server that takes none answers with an ERROR frame, an older one
 * closes. The data connections of its sessions are such, too, behind their ordinary preface.
 */
#define RGPU_PREFACE_MAGIC "RGPUdata"
#define RGPU_PLAIN_MAGIC   "RGPUcrc1" /* a control connection without TLS: only this of the preface has a meaning */
#define RGPU_DATA_LABEL	   "EXPORTER-rgpu-data-connection"
#define RGPU_PSK_IDENTITY  "rgpu-pairing" /* control connections: identity is "rgpu-pairing/" + key id, see lib/key.h */
#define RGPU_DATA_IDENTITY "rgpu-session"
#define RGPU_PLAIN_NAME	   "plaintext" /* what clients without TLS are called, all of them */
#define RGPU_KEY_LEN	   32

struct rgpu_preface {
	char magic[8];
	__u8 token[16];
	__u32 lease;
	__u32 reserved;
};

/*
 * ATTACH says which replies the client has published; the server drops those, sends the later ones
 * again, and says up to which record it has received everything, bytes included: those are durable
 * there and are never sent again. Credits count from 0 at each ATTACH. A channel that is not named is
 * opened by its first frame, with seq 1, rseq 1 and the initial credits; one that the server has from
 * an earlier connection and that is not named is closed there, as by CLOSE_CHANNEL.
 */
struct rgpu_attach_channel {
	__u32 channel;
	__u32 reserved;
	__u64 published; /* rseq */
};

struct rgpu_attached_channel {
	__u32 channel;
	__u32 credit;	/* bytes allowed at first: RGPU_SQ_CREDIT_INITIAL less what still waits there */
	__u64 received; /* seq */
};

/*
 * Credits: cumulative bytes that the peer may have sent on this channel over this connection.
 * Client to server: record bytes plus SEND bytes. Server to client: reply bytes without QUIET ones;
 * DATA needs none, it goes straight to its place. A sender may begin a record when sent < allowed,
 * and finish it.
 */
#define RGPU_SQ_CREDIT_INITIAL (8u << 20)
#define RGPU_SQ_CREDIT_MAX     (128u << 20) /* no client asks for more, none gets it */
#define RGPU_CQ_CREDIT_INITIAL (16u << 10)

struct rgpu_ack {
	__u64 published; /* rseq: replies ≤ it may be forgotten */
	__u64 allow;	 /* reply bytes */
};

struct rgpu_grant {
	__u64 received; /* seq: records ≤ it are durable at the server */
	__u64 allow;
};

struct rgpu_data {
	__u64 seq; /* of the record it answers */
	__u32 bo;
	__u32 reserved;
	__u64 off;
	/* bytes: frame len − sizeof(struct rgpu_data) */
};

/*
 * Repeated bytes. A server may keep blocks (the bytes of a PAYLOAD frame, of at least RGPU_BLOCK_MIN) for the tenant that sent
 * them, in whatever session, and says so by hints. A client that is about to send a block with such a hint names it instead by
 * its SHA-256. If the block is gone meanwhile, the server ignores what comes on the channel until REWIND; credit counts such
 * bytes as sent, those of a REF as those of the block.
 */
#define RGPU_BLOCK_MIN (64u << 10)

struct rgpu_ref {
	__u64 hint; /* XXH3, 64 bits, seed 0: only finds the block, does not prove it */
	__u8 sha256[32];
	__u32 len;
	__u32 reserved;
};

struct rgpu_need {
	__u64 seq;
};

/* The header of a PACKED frame has the channel and the flags of the frame that it stands for: RECORDS, PAYLOAD or DATA. */
struct rgpu_packed {
	__u32 len; /* of what comes of it, ≤ RGPU_PACKED_MAX */
	__u16 type;
	__u16 how; /* RGPU_ATTACH_LZ4, RGPU_ATTACH_ZSTD */
};
#define RGPU_PACKED_MAX (256u << 10)

/* Operations of the relayed control ioctl. */
enum rgpu_control_op {
	RGPU_CONTROL_STATS = 1,	    /* → RGPU_C_STATS_LIST's payload for this client */
	RGPU_CONTROL_TELEMETRY = 2, /* struct rgpu_telemetry_ask → RGPU_C_TELEMETRY_LIST's payload */
};

#endif
