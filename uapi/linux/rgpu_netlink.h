/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* The rgpu generic netlink family: how the proxy registers, serves requests and describes devices, and how tools look. */
#ifndef _UAPI_LINUX_RGPU_NETLINK_H
#define _UAPI_LINUX_RGPU_NETLINK_H

#include <linux/types.h>

/*
 * uapi/rgpu.yaml says the same in YNL; tests/uapi holds the two together. Numbers are append-only.
 *
 * Who may do what
 *	proxy	the socket that REGISTERed; known by the socket itself, not by its port number
 *	admin	CAP_NET_ADMIN in the first user namespace
 *	anyone	every user, in every network namespace
 *
 * A request with an attribute that its command does not list is EINVAL. Errors carry a text (NLMSGERR_ATTR_MSG)
 * when the socket sets NETLINK_EXT_ACK.
 */
#define RGPU_GENL_NAME	   "rgpu"
#define RGPU_GENL_VERSION  1
#define RGPU_MCGRP_MONITOR "monitor" /* needs CAP_NET_ADMIN; first network namespace only */

#define RGPU_COMM_LEN 16

enum rgpu_cmd {
	RGPU_CMD_UNSPEC,

	/*
	 * REGISTER (anyone who holds an open /dev/rgpu-ctl): this socket becomes the proxy.
	 *   in	CTL_FD, ABI_MAJOR, ABI_MINOR, FEATURES
	 *   out	EPOCH, ABI_MAJOR, ABI_MINOR, FEATURES, DEVICES_MAX, SESSION_LIMIT, RECOVER_SECS
	 * EBADF when CTL_FD is not an open /dev/rgpu-ctl; EBUSY while another is registered, or this ctl file already was
	 * once; EPROTONOSUPPORT when the major number differs. The registration ends when either the socket or the ctl
	 * file is closed: to try again, open both anew. EPOCH is one more than the proxy's before. Devices are offline
	 * until the new proxy sets them online again; sessions that were LIVE are RECOVERING.
	 * A proxy that starts goes: REGISTER, SESSION_GET dump, for each session RGPU_CTL_SESSION_FD, resume at the
	 * server, RGPU_SES_SET LIVE (or FAILED); DEV_SET for each GPU; PULL until EAGAIN.
	 */
	RGPU_CMD_REGISTER,

	/*
	 * PULL (proxy): takes the next request off the queue; EAGAIN when it is empty.
	 *   out	REQ_ID, REQ_TYPE, REQ_FLAGS, SESSION, SID, and
	 *	START	DEVICE, DEV_COOKIE, UID, PID, COMM, CGROUP, DATA, DATA_ROOM
	 *	JOIN	DEVICE, DEV_COOKIE, DEVICE_INDEX, COOKIE
	 *	CONTROL	OP, DATA, DATA_ROOM, COOKIE
	 *	GONE	COOKIE
	 * After READY, or when /dev/rgpu-ctl polls readable, pull until EAGAIN. Requests of a session that is RECOVERING
	 * are held back until RGPU_SES_SET made it LIVE.
	 */
	RGPU_CMD_PULL,

	/*
	 * REPLY (proxy): answers a request that was pulled.
	 *   in	REQ_ID, STATUS, DATA (optional, at most the request's DATA_ROOM: else EMSGSIZE)
	 * STATUS is 0 or a negative errno (−1 … −511), which the program's ioctl returns; DATA reaches it either way.
	 * START with STATUS 0 makes the session LIVE, with an error it ends the session without a GONE. For GONE the
	 * reply is the acknowledgement: DATA is not allowed, STATUS is ignored. ENOENT when the request was answered,
	 * cancelled or belongs to an older epoch (then it comes again, marked REPLAY).
	 */
	RGPU_CMD_REPLY,

	/*
	 * SESSION_GET (anyone): dump, or do with SESSION.
	 *   out	SESSION, STATE, REASON, EPOCH, UID, PID, COMM, BO_BYTES, NCHANNELS, DEVICE (repeated, by index)
	 *	while its connection is down LINK_DOWN; to proxy and admin also SID, CGROUP; to the proxy COOKIE
	 * The proxy and an admin see all sessions, others those of their own uid whose process is visible in their pid
	 * namespace. PID is as the reader's namespace has it, 0 when it has none. Sessions that ended are not shown: what is
	 * left of them is the GONE request.
	 */
	RGPU_CMD_SESSION_GET,

	/*
	 * SESSION_SET (proxy): keeps the proxy's word on a session for its successor (server, resume token).
	 *   in	SESSION, COOKIE (0 … RGPU_COOKIE_MAX bytes)
	 * Allowed from the pull of its START until GONE is acknowledged. ENOENT when there is no such session.
	 */
	RGPU_CMD_SESSION_SET,

	/*
	 * DEV_GET (anyone): dump, or do with DEVICE.
	 *   out	DEVICE, ONLINE, NAME, UUID, SERVER, MEM_TOTAL, SESSIONS, POLICY, and to the proxy DEV_COOKIE; do also
	 * gives PROPS
	 */
	RGPU_CMD_DEV_GET,

	/*
	 * DEV_ADD (proxy, admin): makes /dev/rgpuN, offline.
	 *   in	DEVICE (optional: the N wanted; without it the first that is free)
	 *   out	DEVICE
	 * EEXIST when that N is there, ENOSPC when all are.
	 */
	RGPU_CMD_DEV_ADD,

	/*
	 * DEV_DEL (proxy, admin): removes /dev/rgpuN. Its sessions fail with ENODEV as reason; files stay open.
	 *   in	DEVICE
	 */
	RGPU_CMD_DEV_DEL,

	/*
	 * DEV_SET (proxy, admin): describes the GPU behind /dev/rgpuN. What is not given stays as it was.
	 *   in	DEVICE, ONLINE, NAME, UUID, SERVER, MEM_TOTAL, PROPS, DEV_COOKIE, POLICY (all but DEVICE optional)
	 * ONLINE 1 is the proxy's alone (EPERM), and needs UUID and SERVER set before or with it (EINVAL).
	 */
	RGPU_CMD_DEV_SET,

	/* Events to the proxy's socket (sequence number 0). A lost one loses nothing: poll /dev/rgpu-ctl, or pull. */
	RGPU_CMD_READY,	 /* there is something to pull */
	RGPU_CMD_CANCEL, /* REQ_ID, SESSION: nobody waits any more for a request that was pulled; a reply would be ENOENT */

	/* Events to the group "monitor". */
	RGPU_CMD_DEV_NTF,     /* DEVICE, ONLINE; or DEVICE, REMOVED */
	RGPU_CMD_SESSION_NTF, /* SESSION, STATE, REASON, EPOCH, UID, DEVICE, LINK_DOWN; or SESSION, REMOVED */
	RGPU_CMD_PROXY_NTF,   /* EPOCH; with REMOVED when the proxy went away */

	/*
	 * LIMITS_GET (anyone).
	 *   out	RECOVER_SECS, MAX_SESSIONS, MAX_USER_SESSIONS, MAX_CGROUP_SESSIONS, SESSION_MIB, USER_MIB, CGROUP_MIB
	 */
	RGPU_CMD_LIMITS_GET,

	/*
	 * LIMITS_SET (admin): the same values as the module's parameters of these names. What is not given stays as it was; what
	 * sessions have already stays theirs.
	 *   in	RECOVER_SECS, MAX_SESSIONS, MAX_USER_SESSIONS, MAX_CGROUP_SESSIONS, SESSION_MIB, USER_MIB, CGROUP_MIB (all
	 * optional)
	 */
	RGPU_CMD_LIMITS_SET,

	__RGPU_CMD_MAX,
};
#define RGPU_CMD_MAX (__RGPU_CMD_MAX - 1)

enum rgpu_attr {
	RGPU_A_UNSPEC,
	RGPU_A_PAD,
	RGPU_A_CTL_FD,		    /* u32: descriptor of an open /dev/rgpu-ctl in the sender */
	RGPU_A_ABI_MAJOR,	    /* u16 */
	RGPU_A_ABI_MINOR,	    /* u16 */
	RGPU_A_FEATURES,	    /* u64: RGPU_FEAT_* */
	RGPU_A_EPOCH,		    /* u32 */
	RGPU_A_DEVICES_MAX,	    /* u32: N of /dev/rgpuN is below this */
	RGPU_A_SESSION_LIMIT,	    /* u64: bytes of rings and buffer objects that one session may have */
	RGPU_A_RECOVER_SECS,	    /* u32: how long a session waits for the next proxy */
	RGPU_A_REQ_ID,		    /* u64: never used again while the module is loaded */
	RGPU_A_REQ_TYPE,	    /* u32: enum rgpu_req_type */
	RGPU_A_REQ_FLAGS,	    /* u32: RGPU_REQ_* */
	RGPU_A_SESSION,		    /* u64: the kernel's name for a session */
	RGPU_A_SID,		    /* binary, RGPU_SID_LEN: its name at the server */
	RGPU_A_DEVICE,		    /* u32: N of /dev/rgpuN */
	RGPU_A_DEVICE_INDEX,	    /* u32: which of the session's devices, from 0 */
	RGPU_A_OP,		    /* u32: struct rgpu_control.op */
	RGPU_A_DATA,		    /* binary, 0 … RGPU_CONTROL_MAX */
	RGPU_A_DATA_ROOM,	    /* u32: bytes of DATA that the answer may have */
	RGPU_A_STATUS,		    /* s32: 0 or a negative errno */
	RGPU_A_STATE,		    /* u32: enum rgpu_session_state */
	RGPU_A_REASON,		    /* s32: negative errno when FAILED */
	RGPU_A_COOKIE,		    /* binary, 0 … RGPU_COOKIE_MAX: the proxy's word on a session */
	RGPU_A_UID,		    /* u32: effective uid of whoever opened the device, in the reader's user namespace */
	RGPU_A_PID,		    /* u32: process id in the reader's pid namespace, 0 when it is not visible there */
	RGPU_A_COMM,		    /* string: the process's name at the session's start */
	RGPU_A_CGROUP,		    /* u64: cgroup v2 id at the session's start */
	RGPU_A_BO_BYTES,	    /* u64 */
	RGPU_A_NCHANNELS,	    /* u32: channels ever made */
	RGPU_A_ONLINE,		    /* u8: 0, 1 */
	RGPU_A_NAME,		    /* string, at most RGPU_NAME_LEN − 1 */
	RGPU_A_UUID,		    /* binary, RGPU_UUID_LEN */
	RGPU_A_SERVER,		    /* binary, RGPU_UUID_LEN: devices with the same value can join one session */
	RGPU_A_MEM_TOTAL,	    /* u64: bytes */
	RGPU_A_PROPS,		    /* binary, 0 … RGPU_PROPS_MAX */
	RGPU_A_DEV_COOKIE,	    /* binary, 0 … RGPU_COOKIE_MAX: the proxy's word on a device */
	RGPU_A_SESSIONS,	    /* u32: sessions that use the device */
	RGPU_A_REMOVED,		    /* flag */
	RGPU_A_POLICY,		    /* u8: enum rgpu_policy */
	RGPU_A_MAX_SESSIONS,	    /* u32: sessions at one time */
	RGPU_A_MAX_USER_SESSIONS,   /* u32: of these, one user's */
	RGPU_A_MAX_CGROUP_SESSIONS, /* u32: of these, one cgroup's; 0: no limit */
	RGPU_A_SESSION_MIB,	    /* u32: rings and buffer objects of one session; 0: half of the memory */
	RGPU_A_USER_MIB,	    /* u32: of all sessions of one user; 0: no limit */
	RGPU_A_CGROUP_MIB,	    /* u32: of all sessions started in one cgroup; 0: no limit */
	RGPU_A_LINK_DOWN,	    /* u64: ms since a LIVE session's connection to the server went down */

	__RGPU_A_MAX,
};
#define RGPU_A_MAX (__RGPU_A_MAX - 1)

/* What happens to a device's sessions when the proxy goes away. */
enum rgpu_policy {
	RGPU_POLICY_QUEUE = 0, /* RECOVERING: calls wait for the next proxy, RECOVER_SECS long */
	RGPU_POLICY_FAIL = 1,  /* FAILED at once, with EHOSTDOWN as reason */
};

enum rgpu_req_type {
	RGPU_REQ_START = 1,   /* RGPU_IOC_SESSION_START; idempotent under SID */
	RGPU_REQ_JOIN = 2,    /* RGPU_IOC_SESSION_JOIN; idempotent under (SID, DEVICE_INDEX) */
	RGPU_REQ_CONTROL = 3, /* RGPU_IOC_CONTROL; idempotent under (SID, REQ_ID) */
	RGPU_REQ_GONE = 4,    /* the program is gone: let the server forget the session, then REPLY */
};

#define RGPU_REQ_REPLAY (1u << 0) /* an earlier proxy pulled it too and died: it may have been done already */

#endif
