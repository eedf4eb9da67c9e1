/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* The rgpu module's interface: ioctls of /dev/rgpuN, /dev/rgpu-ctl and a session fd, and the ring pages. */
#ifndef _UAPI_LINUX_RGPU_H
#define _UAPI_LINUX_RGPU_H

#include <linux/types.h>
#include <linux/ioctl.h>

/*
 * Versions. The major number changes when old binaries cannot go on; the minor when something was
 * added. Features say what was added, so that a shim in an old container and a new module agree.
 */
#define RGPU_ABI_MAJOR 1
#define RGPU_ABI_MINOR 0

#define RGPU_FEAT_BO	 (1ULL << 0) /* buffer objects */
#define RGPU_FEAT_JOIN	 (1ULL << 1) /* RGPU_IOC_SESSION_JOIN */
#define RGPU_FEAT_REPLAY (1ULL << 2) /* sessions survive the proxy */
#define RGPU_FEAT_TRACK	 (1ULL << 3) /* RGPU_MMAP_TRACKED, RGPU_IOC_BO_DIRTY */
#define RGPU_FEAT_LINK	 (1ULL << 4) /* RGPU_SET_LINK_DOWN */
#define RGPU_FEATURES	 (RGPU_FEAT_BO | RGPU_FEAT_JOIN | RGPU_FEAT_REPLAY | RGPU_FEAT_TRACK | RGPU_FEAT_LINK)

#define RGPU_MAGIC	  0x52475055u /* "RGPU" */
#define RGPU_UUID_LEN	  16
#define RGPU_SID_LEN	  16
#define RGPU_COOKIE_MAX	  256  /* the proxy's own word on a session or device */
#define RGPU_CONTROL_MAX  4096 /* payload of a relayed control request, each way */
#define RGPU_PROPS_MAX	  3072 /* cached device properties */
#define RGPU_NAME_LEN	  64
#define RGPU_CHANNELS_MAX 256 /* per session */
#define RGPU_RING_MIN	  4096u
#define RGPU_RING_MAX	  (16u << 20)
#define RGPU_SQ_DEFAULT	  (1u << 20)
#define RGPU_CQ_DEFAULT	  (128u << 10)

/*
 * A session's memory.
 *
 * Each page has one writer, and the other sides map it read-only:
 *	K page	one per session, written by the kernel
 *	A page	one per channel, written by the app
 *	P page	one per channel, written by the proxy
 *	SQ	submission ring, written by the app
 *	CQ	completion ring, written by the proxy
 *
 * Indices are free-running counts of bytes, modulo 2^32; a ring's size is a power of two and its
 * offset is index & (size - 1). tail - head > size means that a writer broke the ring: the reader
 * marks the session broken, it never clamps. A reader copies an entry to private memory, validates
 * the copy, then uses it. The kernel itself never reads an index: it supplies memory, wake-ups and
 * lifetime.
 *
 * Sleep protocol, the same both ways, as event-idx of vring: a producer publishes its tail, full
 * barrier, reads the consumer's event word and rings (KICK) only if that says the consumer sleeps.
 * A consumer that wants to sleep sets its event word, full barrier, looks at the tail again, and
 * only then waits. Event words hold RGPU_EVENT_AWAKE or RGPU_EVENT_ASLEEP. A kick is latched: one
 * that comes before the wait ends that wait at once.
 */
enum rgpu_session_state {
	RGPU_SESSION_STARTING = 0,
	RGPU_SESSION_LIVE = 1,
	RGPU_SESSION_RECOVERING = 2, /* the proxy went away; its successor will go on */
	RGPU_SESSION_FAILED = 3,     /* for good; reason holds a negative errno */
};

#define RGPU_EVENT_AWAKE  0u
#define RGPU_EVENT_ASLEEP 1u

struct rgpu_kpage {
	__u32 magic;
	__u16 abi_major, abi_minor;
	__u64 features;
	__u8 sid[RGPU_SID_LEN]; /* 128 random bits that name the session at the server */
	__u32 state;		/* enum rgpu_session_state */
	__s32 reason;		/* why FAILED: negative errno, 0 otherwise */
	__u32 epoch;		/* of the proxy that holds the session; advances with each proxy */
	__u32 nchannels;	/* channels ever made: indices below are worth asking for */
	__u32 reserved[12];
};

struct rgpu_apage {
	__u32 sq_tail;
	__u32 pad0[15];
	__u32 cq_head;
	__u32 cq_event; /* app sleeps on its CQ */
	__u32 pad1[14];
};

struct rgpu_ppage {
	__u32 sq_head;	/* bytes below are durable at the server: their space is free */
	__u32 sq_event; /* proxy sleeps on this SQ */
	__u32 pad0[14];
	__u32 cq_tail;
	__u32 cq_next; /* cq_tail as it will be when reply @delivered is published */
	__u32 pad1[14];
	/*
	 * Law 6, all three survive the proxy. acked counts records (their seq), the other two count
	 * replies (their rseq). Order of stores for one reply: bytes in place, cq_next, delivered,
	 * cq_tail, published. A successor that finds delivered > published knows from
	 * cq_tail == cq_next whether the entry was published.
	 */
	__u64 acked;
	__u64 delivered;
	__u64 published;
	__u32 ahead_mib; /* so much on its way at once keeps the link busy, MiB; 0: not known */
	__u32 needed;	 /* times that the server needed bytes after all that it was thought to have: a round trip each */
	__u32 pad2[8];
};

/*
 * mmap offsets. Of a /dev/rgpuN file with a session, and of a session fd, whose maps are the same
 * bytes with the proxy's rights. Lengths must be exact (EINVAL), maps shared (EINVAL), never executable (EACCES), and not
 * writable, nor to become it, where the other side writes (EACCES). Rings are not inherited by fork, the program's maps of
 * buffer objects are. ENOENT for what is not there. Destroying a channel or buffer object leaves what is mapped, and charged,
 * until it is unmapped.
 */
#define RGPU_MMAP_KPAGE		    0ULL
#define RGPU_MMAP_CHANNEL(ch, what) ((1ULL << 40) | ((__u64)(ch) << 32) | ((__u64)(what) << 28))
#define RGPU_MMAP_APAGE		    0
#define RGPU_MMAP_PPAGE		    1
#define RGPU_MMAP_SQ		    2
#define RGPU_MMAP_CQ		    3
#define RGPU_MMAP_BO(handle)	    ((2ULL << 40) | ((__u64)(handle) << 12)) /* a window per handle; map from its start */
/*
 * The program's only: the same bytes, in a map whose writes BO_DIRTY tells page by page, system calls' too. Other maps of the
 * object are not tracked, nor what devices or io_uring write into pages that were pinned before. Not inherited by fork.
 */
#define RGPU_MMAP_TRACKED(handle) ((3ULL << 40) | ((__u64)(handle) << 12))

/*
 * ioctls. Every argument begins with its size, which the kernel uses for extension: bytes that it
 * does not know must be zero, bytes that the caller does not know are taken as zero. Unknown flags
 * are EINVAL, unknown commands ENOTTY.
 *
 * /dev/rgpuN: open is ENODEV while no GPU stands behind it (sysfs attribute state: no-proxy, offline, online). Only the process
 * that opened it may use it: EPERM for others, a forked child too. ENODEV for all once the device was removed; ENOTCONN for what
 * needs a session before there is one; ESHUTDOWN once the session FAILED (the K page says why), but for the DESTROYs and
 * BO_DIRTY.
 */
#define RGPU_IOC_TYPE 'R'

struct rgpu_info {
	__u32 size, flags;
	__u16 abi_major, abi_minor; /* out */
	__u32 minor;		    /* out: N of /dev/rgpuN */
	__u64 features;		    /* out */
	__u8 uuid[RGPU_UUID_LEN];   /* out, and what follows */
	__u8 server[RGPU_UUID_LEN]; /* devices of one server say the same and can join one session */
	__u64 mem_total;
	char name[RGPU_NAME_LEN];
	__u32 props_len; /* in: room at props; out: bytes that there are */
	__u32 pad;
	__u64 props; /* user pointer: opaque device properties as the proxy cached them */
};
#define RGPU_IOC_INFO _IOWR(RGPU_IOC_TYPE, 0x00, struct rgpu_info)

struct rgpu_session_start {
	__u32 size, flags;
	__u32 data_len;		/* in: bytes at data, handed to the proxy, ≤ RGPU_CONTROL_MAX; out: bytes that came back */
	__u32 data_room;	/* in: room at data for the answer */
	__u64 data;		/* user pointer */
	__u8 sid[RGPU_SID_LEN]; /* out */
	__u64 id;		/* out: the kernel's name, index | generation << 32 */
};
/*
 * Waits for the proxy's answer, killably. EALREADY when the file has a session or is starting or joining one; ENODEV when the
 * device went offline since open; EUSERS when the module has its maximum of sessions; ETIMEDOUT without an answer in time;
 * EMSGSIZE when data_len or data_room is above RGPU_CONTROL_MAX; else what the proxy answered: ECONNREFUSED, EACCES, EPROTO …
 * Data comes back also with an error, so that the proxy can say why; data_len is 0 when there is none.
 */
#define RGPU_IOC_SESSION_START _IOWR(RGPU_IOC_TYPE, 0x01, struct rgpu_session_start)

struct rgpu_session_join {
	__u32 size, flags;
	__s32 fd;     /* a /dev/rgpuN file of this process that has a session, of the same server */
	__u32 device; /* out: this device's index in the session; the starter's is 0 */
};
/* EBADF when fd is not such a file, EPERM when another process opened it, EXDEV for another server, ENOSPC, EALREADY as above. */
#define RGPU_IOC_SESSION_JOIN _IOWR(RGPU_IOC_TYPE, 0x02, struct rgpu_session_join)

struct rgpu_channel_create {
	__u32 size, flags;
	__u32 sq_size, cq_size; /* bytes, powers of two, RGPU_RING_MIN … RGPU_RING_MAX */
	__u32 channel;		/* out: 0, 1, 2 … never used again in this session */
	__u32 pad;
};
/* EINVAL for sizes, EDQUOT beyond the session's limit of memory, ENOSPC once RGPU_CHANNELS_MAX were made. The proxy is kicked. */
#define RGPU_IOC_CHANNEL_CREATE _IOWR(RGPU_IOC_TYPE, 0x03, struct rgpu_channel_create)

struct rgpu_channel_ref {
	__u32 size, flags;
	__u32 channel;
	__u32 pad;
};
#define RGPU_IOC_CHANNEL_DESTROY _IOW(RGPU_IOC_TYPE, 0x04, struct rgpu_channel_ref)

struct rgpu_bo_create {
	__u32 size, flags;
	__u64 bytes;  /* multiple of the page size */
	__u32 handle; /* out: 1 … 2^28 − 1, going round */
	__u32 pad;
};
/* Zeroed, unswappable memory, paid for by the caller's cgroup. EDQUOT beyond the session's limit, ENOMEM. */
#define RGPU_IOC_BO_CREATE _IOWR(RGPU_IOC_TYPE, 0x05, struct rgpu_bo_create)

struct rgpu_bo_ref {
	__u32 size, flags;
	__u32 handle;
	__u32 pad;
	__u64 bytes; /* out, BO_INFO only */
};
#define RGPU_IOC_BO_DESTROY _IOW(RGPU_IOC_TYPE, 0x06, struct rgpu_bo_ref)

/* Rings the doorbell of a channel: wakes whoever WAITs on the other side of it. */
#define RGPU_IOC_KICK _IOW(RGPU_IOC_TYPE, 0x07, struct rgpu_channel_ref)

struct rgpu_wait {
	__u32 size, flags;
	__u32 channel;
	__s32 timeout_ms; /* −1: none */
};
/*
 * Waits for a kick on a channel. 0 after a kick or a change of the session's state or epoch (read the
 * K page), ETIMEDOUT, EINTR after a signal: the caller looks at its ring and waits again. (Without a time limit, a signal that
 * has no handler, or one with SA_RESTART, goes unnoticed.) ENOENT once the channel is destroyed. One waiter a channel: the
 * first takes the kick.
 */
#define RGPU_IOC_WAIT _IOW(RGPU_IOC_TYPE, 0x08, struct rgpu_wait)

struct rgpu_control {
	__u32 size, flags;
	__u32 op;	/* opaque to the kernel, see rgpu_wire.h */
	__u32 data_len; /* in and out, as in session_start */
	__u32 data_room;
	__u32 pad;
	__u64 data;
};
/* Relays a request to the proxy and waits killably for its answer, through a change of proxies too. Data and errors as above. */
#define RGPU_IOC_CONTROL _IOWR(RGPU_IOC_TYPE, 0x09, struct rgpu_control)

struct rgpu_bo_dirty {
	__u32 size, flags;
	__u32 handle;
	__u32 pad;
	__u64 first, pages; /* the range asked about, in pages of the machine */
	__u64 bitmap;	    /* user pointer: (pages + 63) / 64 u64s; bit i of them is page first + i */
	__u64 count;	    /* out: bits set */
};
/*
 * Which pages were written through tracked maps since the last call, or since the first such map was made. Each is told once:
 * what was written before it is told is there to read, what is written later is told by the next call. EINVAL beyond the object,
 * or when it never had a tracked map; ENOENT. With another error nothing that was dirty is forgotten.
 */
#define RGPU_IOC_BO_DIRTY _IOWR(RGPU_IOC_TYPE, 0x0a, struct rgpu_bo_dirty)

/* /dev/rgpu-ctl */
struct rgpu_session_fd {
	__u32 size, flags;
	__u64 id; /* kernel's session id, as netlink named it */
	__s32 fd; /* out: O_CLOEXEC session fd */
	__u32 pad;
};
/*
 * EPERM unless this ctl file REGISTERed; ENOENT when there is no such session, ESHUTDOWN when it FAILED or its program is gone;
 * EBUSY while another session fd has it. Both sides of every channel are kicked.
 */
#define RGPU_CTL_SESSION_FD _IOWR(RGPU_IOC_TYPE, 0x40, struct rgpu_session_fd)

/*
 * A session fd. poll: EPOLLIN while any channel has a latched kick, EPOLLHUP once the session is gone
 * or this fd's epoch was superseded. KICK as above, towards the app. Closing it gives the session up: it is RECOVERING until
 * another fd was taken and set it LIVE. Once superseded (the registration ended) all is ESTALE and its maps are SIGBUS.
 */
struct rgpu_kicked {
	__u32 size, flags;
	__u64 channels[RGPU_CHANNELS_MAX / 64]; /* out: bit per channel kicked since the last call */
};
#define RGPU_SES_KICKED _IOR(RGPU_IOC_TYPE, 0x50, struct rgpu_kicked)

struct rgpu_channel_info {
	__u32 size, flags;
	__u32 channel;
	__u32 alive; /* out: 0 once destroyed */
	__u32 sq_size, cq_size;
};
#define RGPU_SES_CHANNEL_INFO _IOWR(RGPU_IOC_TYPE, 0x51, struct rgpu_channel_info)
#define RGPU_SES_BO_INFO      _IOWR(RGPU_IOC_TYPE, 0x52, struct rgpu_bo_ref)

/* With LIVE: its connection to the server is down, and the proxy is making another. For those who look; calls wait anyway. */
#define RGPU_SET_LINK_DOWN (1u << 0)

struct rgpu_session_set {
	__u32 size;
	__u32 flags;  /* RGPU_SET_… */
	__u32 state;  /* LIVE, or FAILED */
	__s32 reason; /* negative errno when FAILED, else 0 */
};
/* LIVE ends RECOVERING (STARTING is ended by the REPLY to START: EINVAL). ESHUTDOWN when the session FAILED before. */
#define RGPU_SES_SET _IOW(RGPU_IOC_TYPE, 0x53, struct rgpu_session_set)

#endif
