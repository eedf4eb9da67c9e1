/* SPDX-License-Identifier: GPL-2.0 */
/* The module's objects, who owns them, and which lock guards what. */
#ifndef RGPU_H
#define RGPU_H

#undef pr_fmt
#define pr_fmt(fmt) "rgpu: " fmt

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <linux/rgpu.h>
#include <linux/rgpu_netlink.h>

/*
 * Order of locks, outermost first. What may be taken inside what:
 *
 *	rgpu_proxy.reg		one registration, or its end, or one command of proxy or admin at a time
 *	  session.joining	one JOIN of a session at a time, over the relay: a bit that is waited for, killably and freezably
 *	    mmap_lock		(the kernel's) ->mmap comes with it held
 *	      session.lock	a session's state and tables
 *		sesfd.map_lock	faults of the proxy against the end of its rights; also taken under mmap_lock alone
 *		rgpu_proxy.lock	who the proxy is, and the queue of requests
 *		  device.lock	a device's description
 *		    (account.c's lock, a spinlock that nothing is taken inside)
 *
 * None of them but joining is held while waiting for another process, and none over a copy from or to user space (a fault
 * there can wait for userfaultfd, and session.lock is taken under mmap_lock).
 */

#define RGPU_DEVICES_MAX	 64 /* N of /dev/rgpuN is below this */
#define RGPU_SESSION_DEVICES_MAX 16

/* What exists now; tests read these through /sys/class/rgpu/rgpu-ctl/ to see that nothing is left. */
struct rgpu_stats {
	atomic_long_t files;	/* open /dev/rgpuN */
	atomic_long_t sessions; /* whose program is there */
	atomic_long_t gone;	/* whose program is gone and the proxy did not acknowledge it yet */
	atomic_long_t channels; /* not destroyed */
	atomic_long_t bos;	/* not destroyed */
	atomic_long_t bo_bytes; /* of buffer objects, also destroyed ones that are still mapped */
	atomic_long_t pages;	/* of everything mappable */
	atomic_long_t requests;
};
extern struct rgpu_stats rgpu_stats;

/* Module parameters. */
extern unsigned int rgpu_recover_secs;
extern unsigned int rgpu_reply_secs;
struct rgpu_limits {
	unsigned int max_sessions, max_user_sessions, max_cgroup_sessions;
	unsigned int session_mib, user_mib, cgroup_mib;
};
extern struct rgpu_limits rgpu_limits; /* read with READ_ONCE(): sysfs and netlink change them at any time */
u64 rgpu_session_limit(void);

/*
 * /dev/rgpuN. Owned by the driver core's reference count: one reference is the table's (until DEV_DEL or unload), one each open
 * file's, session's and request's. Outlives its node: whoever came by an open file looks at @dead.
 */
struct rgpu_device {
	struct device dev;
	struct cdev cdev;
	u32 minor;
	atomic_t sessions;

	struct mutex lock; /* guards all below; innermost */
	bool dead;	   /* node removed; never false again. Also read without the lock */
	bool online;
	u8 policy; /* enum rgpu_policy; also read without the lock */
	bool has_uuid, has_server;
	u8 uuid[RGPU_UUID_LEN];
	u8 server[RGPU_UUID_LEN];
	char name[RGPU_NAME_LEN];
	u64 mem_total;
	void *props;
	u32 props_len;
	u32 cookie_len;
	u8 cookie[RGPU_COOKIE_MAX];
};

/*
 * Zeroed pages that user space maps: a K, A or P page, a ring, a buffer object. References: the session's table, and every VMA.
 * Immutable but for the count and @track. Charged to the session until the last reference goes, so that destroying something that
 * is still mapped frees no allowance.
 */
struct rgpu_mem {
	struct kref ref;
	struct rgpu_session *ses; /* a reference */
	bool bo;
	unsigned long npages;
	struct page **pages;
	struct rgpu_track *track; /* a buffer object's, from its first tracked map on */
};

/*
 * One thread's pair of rings. Freed with its session, so that whoever found it in the table may use it for as long as he holds
 * the session; CHANNEL_DESTROY gives the memory back and leaves the stub. An index is never used again.
 */
struct rgpu_channel {
	u32 index;
	u32 sq_size, cq_size;
	bool alive;		 /* written under session.lock, read anywhere */
	struct rgpu_mem *mem[4]; /* by RGPU_MMAP_*; under session.lock, NULL once destroyed */
	unsigned long kicked;	 /* bit 0: the app's latched kick */
	wait_queue_head_t app_wq;
};

/*
 * One program at one server. References: the table (from start until ended and, if the proxy knew of it, GONE acknowledged), each
 * file that started or joined, the session fd, requests, memory, and whoever works on it.
 *
 * It ends when the last of its files is closed or when the mm of the opener goes, whichever is first.
 */
struct rgpu_session {
	struct kref ref;

	/* Set at start, then constant. */
	u64 id;
	u8 sid[RGPU_SID_LEN];
	kuid_t uid;
	struct pid *tgid;
	char comm[RGPU_COMM_LEN];
	u64 cgroup;
	struct rgpu_account *user, *group; /* a reference each */
	struct mm_struct *mm;		   /* pinned by @mn */
	struct mmu_notifier mn;
	struct rgpu_mem *kmem;
	struct rgpu_kpage *kpage;

	atomic64_t bytes;    /* charged: everything mappable */
	atomic64_t bo_bytes; /* charged: buffer objects */

	unsigned long joining; /* bit 0: a JOIN is under way, until its relay is over */

	struct mutex lock; /* guards all below, up to the next blank line */
	u32 state;	   /* enum rgpu_session_state; also read without the lock */
	s32 reason;
	u32 epoch;
	u64 down_since; /* LIVE: ms of the boot clock when its connection went down, 0: it is up; also read without the lock */
	bool ended;	/* the program is gone: tables are empty, state is FAILED */
	unsigned int files;
	unsigned long deadline;	  /* of RECOVERING, jiffies */
	struct rgpu_sesfd *sesfd; /* who has the proxy's rights; no reference: its release clears this. LIVE only while set */
	u32 nchannels;		  /* also read without the lock: below it @channels is set for good */
	struct rgpu_channel *channels[RGPU_CHANNELS_MAX];
	struct xarray bos; /* of struct rgpu_mem */
	u32 next_bo;
	u32 ndevices;
	struct rgpu_device *devices[RGPU_SESSION_DEVICES_MAX];
	u32 cookie_len;
	u8 cookie[RGPU_COOKIE_MAX];

	bool announced;		   /* a proxy pulled START, so that it must hear of the end; rgpu_proxy.lock */
	struct rgpu_request *gone; /* made at start so that the end needs no memory */

	wait_queue_head_t proxy_wq; /* pollers of the session fd */
	DECLARE_BITMAP(proxy_kicked, RGPU_CHANNELS_MAX);
};

/* An open /dev/rgpuN. Owned by its struct file. */
struct rgpu_file {
	struct rgpu_device *dev;
	struct mm_struct *mm;	  /* the opener's, mmgrab()bed: whoever else has the descriptor may only close it */
	kuid_t uid;		  /* the opener's */
	unsigned long starting;	  /* bit 0: a START or JOIN is under way or has succeeded */
	struct rgpu_session *ses; /* set once, by smp_store_release() */
};

/* A session fd: the proxy's view of a session. Owned by its struct file, holds the session. */
struct rgpu_sesfd {
	struct rgpu_session *ses;
	struct address_space mapping; /* finds this fd's VMAs, and only these */
	struct rw_semaphore map_lock; /* read: a fault puts pages in; write: the rights end */
	bool revoked;		      /* written under map_lock and session.lock */
};

/* An open /dev/rgpu-ctl. Owned by its struct file. */
struct rgpu_ctl {
	bool used; /* registered once; rgpu_proxy.reg */
};

enum rgpu_req_state {
	RGPU_REQ_PENDING,
	RGPU_REQ_DELIVERED,
	RGPU_REQ_DONE,
	RGPU_REQ_ABANDONED,
};

/*
 * A request to the proxy. References: the list it is on (PENDING or DELIVERED), whoever waits for it, whoever builds a message
 * from it. Until it is submitted, and after, what the asker set is constant.
 */
struct rgpu_request {
	struct kref ref;
	u32 type; /* enum rgpu_req_type */
	u32 op;
	struct rgpu_session *ses; /* a reference, but for a GONE not yet submitted */
	struct rgpu_device *dev;  /* a reference; START and JOIN */
	u32 device_index;
	void *in;
	u32 in_len, room;
	wait_queue_head_t wait;

	/* Under rgpu_proxy.lock. */
	struct list_head node;
	u64 id;
	u32 flags; /* RGPU_REQ_REPLAY; also read without the lock */
	enum rgpu_req_state state;
	int status;
	void *out;
	u32 out_len;
};

/* The registered proxy, and the queue to it, which is there also while there is no proxy. */
struct rgpu_proxy {
	struct mutex reg;  /* registrations and changes of devices, one at a time; taken before @lock */
	struct mutex lock; /* guards all below */
	bool registered;   /* and with it: */
	struct sock *sk;   /* a reference; compared, and keeps @net */
	struct net *net;
	u32 portid;
	struct rgpu_ctl *ctl; /* no reference: its release ends the registration */
	u32 epoch;	      /* of the proxy that is or last was */
	bool told;	      /* READY was sent and not every request pulled since */
	u64 last_id;
	struct list_head pending, delivered;
	wait_queue_head_t wq; /* pollers of /dev/rgpu-ctl */
};
extern struct rgpu_proxy rgpu_proxy;

/* device.c */
extern struct class rgpu_class;
extern dev_t rgpu_devt;
int rgpu_device_add(u32 *minor, bool any);
int rgpu_device_del(u32 minor);
struct rgpu_device *rgpu_device_get(u32 minor);
struct rgpu_device *rgpu_device_next(unsigned long *minor);
void rgpu_devices_offline(void);
void rgpu_devices_exit(void);
bool rgpu_device_usable(struct rgpu_device *dev);

/* file.c */
extern const struct file_operations rgpu_file_fops;
int rgpu_copy_in(void *dst, size_t ksize, unsigned long arg, u32 *usize);
int rgpu_copy_out(unsigned long arg, const void *src, size_t ksize, u32 usize);

/* What the size in a command's number says is for user space; the size in the argument counts. */
#define RGPU_NOSIZE(cmd) ((cmd) & ~IOCSIZE_MASK)

/* account.c */
int rgpu_accounts_open(struct rgpu_session *ses);
void rgpu_accounts_close(struct rgpu_session *ses);
int rgpu_accounts_enter(struct rgpu_session *ses);
void rgpu_accounts_leave(struct rgpu_session *ses);
int rgpu_charge(struct rgpu_session *ses, u64 bytes, bool bo);
void rgpu_uncharge(struct rgpu_session *ses, u64 bytes, bool bo);

/* mem.c */
struct rgpu_mem *rgpu_mem_new(struct rgpu_session *ses, u64 bytes, bool bo);
void rgpu_mem_put(struct rgpu_mem *mem);
int rgpu_mem_mmap(struct rgpu_session *ses, struct vm_area_struct *vma, bool proxy);

/* track.c */
struct vm_fault;
int rgpu_track_map(struct rgpu_mem *mem, struct vm_area_struct *vma);
vm_fault_t rgpu_track_mkwrite(struct vm_fault *vmf);
int rgpu_track_fetch(struct rgpu_mem *mem, u64 first, u64 n, u64 __user *bitmap, u64 __user *count);
void rgpu_track_free(struct rgpu_track *track);

/* channel.c */
int rgpu_channel_create(struct rgpu_session *ses, u32 sq_size, u32 cq_size, u32 *index);
int rgpu_channel_destroy(struct rgpu_session *ses, u32 index);
void rgpu_channel_free_memory(struct rgpu_channel *ch);
struct rgpu_channel *rgpu_channel_find(struct rgpu_session *ses, u32 index);
int rgpu_bo_create(struct rgpu_session *ses, u64 bytes, u32 *handle);
int rgpu_bo_destroy(struct rgpu_session *ses, u32 handle);
int rgpu_bo_dirty(struct rgpu_session *ses, u32 handle, u64 first, u64 n, u64 __user *bitmap, u64 __user *count);
int rgpu_kick_proxy(struct rgpu_session *ses, u32 index);
int rgpu_kick_app(struct rgpu_session *ses, u32 index);
void rgpu_kick_all_apps(struct rgpu_session *ses);
void rgpu_kick_all_proxy(struct rgpu_session *ses);
int rgpu_wait(struct rgpu_session *ses, u32 index, s32 timeout_ms);

/* session.c */
int rgpu_session_start(struct rgpu_file *rf, struct rgpu_request *req, struct rgpu_session **out);
int rgpu_session_join(struct rgpu_session *ses, struct rgpu_file *rf, u32 *index);
void rgpu_session_close(struct rgpu_session *ses);
void rgpu_session_put(struct rgpu_session *ses);
struct rgpu_session *rgpu_session_get(struct rgpu_session *ses);
struct rgpu_session *rgpu_session_find(u64 id);
struct rgpu_session *rgpu_session_next(unsigned long *index);
void rgpu_session_forget(struct rgpu_session *ses);
void rgpu_session_set_state(struct rgpu_session *ses, u32 state, s32 reason);
void rgpu_session_set_link(struct rgpu_session *ses, bool down);
unsigned int rgpu_sessions_down(const struct rgpu_device *dev);

/* Milliseconds since the machine started, suspended ones too, and never 0. */
static inline u64 rgpu_boot_ms(void)
{
	return ktime_to_ms(ktime_get_boottime()) + 1;
}
void rgpu_session_fail(struct rgpu_session *ses, s32 reason);
void rgpu_session_lost_proxy(struct rgpu_session *ses, struct rgpu_sesfd *sfd);
void rgpu_sessions_lost_device(struct rgpu_device *dev);
long rgpu_sessions_expire(void);
void rgpu_sessions_exit(void);

/* sesfd.c */
struct file *rgpu_sesfd_open(struct rgpu_session *ses, struct rgpu_sesfd **out);
void rgpu_sesfd_revoke(struct rgpu_sesfd *sfd);
bool rgpu_sesfd_enter(struct vm_area_struct *vma);
void rgpu_sesfd_leave(struct vm_area_struct *vma);

/* relay.c */
void rgpu_relay_init(void);
void rgpu_relay_exit(void);
struct rgpu_request *rgpu_request_new(u32 type);
void rgpu_request_put(struct rgpu_request *req);
int rgpu_relay_call(struct rgpu_request *req);
bool rgpu_relay_gone(struct rgpu_session *ses);
void rgpu_relay_fail(struct rgpu_session *ses, int start_status);
void rgpu_relay_kick(void);
void rgpu_relay_replay(void);
bool rgpu_relay_ready(void);
struct rgpu_request *rgpu_relay_pull(struct sock *sk);
void rgpu_relay_unpull(struct sock *sk, struct rgpu_request *req);
int rgpu_relay_reply(struct sock *sk, u64 id, int status, const void *data, u32 len);

/* ctl.c */
int rgpu_ctl_init(void);
void rgpu_ctl_exit(void);
bool rgpu_is_ctl(struct file *file);

/* proxy.c */
int rgpu_proxy_register(struct file *ctl, struct sock *sk, struct net *net, u32 portid, u32 *epoch);
bool rgpu_proxy_is(struct sock *sk);
void rgpu_proxy_ctl_closed(struct rgpu_ctl *ctl);
void rgpu_proxy_arm(void);
int rgpu_proxy_init(void);
void rgpu_proxy_exit(void);
int rgpu_proxy_attach(struct rgpu_ctl *ctl, u64 id, struct file **out);

/* netlink.c, nl_device.c, nl_session.c, nl_event.c */
struct genl_info;
struct sk_buff;
struct netlink_callback;
extern struct genl_family rgpu_genl;
extern bool rgpu_nl_up;
int rgpu_netlink_init(void);
void rgpu_netlink_exit(void);
bool rgpu_nl_trusted(struct sk_buff *skb);
int rgpu_nl_dev_get(struct sk_buff *skb, struct genl_info *info);
int rgpu_nl_dev_dump(struct sk_buff *skb, struct netlink_callback *cb);
int rgpu_nl_dev_add(struct sk_buff *skb, struct genl_info *info);
int rgpu_nl_dev_del(struct sk_buff *skb, struct genl_info *info);
int rgpu_nl_dev_set(struct sk_buff *skb, struct genl_info *info);
int rgpu_nl_session_get(struct sk_buff *skb, struct genl_info *info);
int rgpu_nl_session_dump(struct sk_buff *skb, struct netlink_callback *cb);
int rgpu_nl_session_set(struct sk_buff *skb, struct genl_info *info);
int rgpu_nl_limits_get(struct sk_buff *skb, struct genl_info *info);
int rgpu_nl_limits_set(struct sk_buff *skb, struct genl_info *info);
int rgpu_nl_put_who(struct sk_buff *msg, const struct rgpu_session *ses);
void rgpu_nl_ready(void);
void rgpu_nl_cancel(const struct rgpu_request *req);
void rgpu_nl_dev_event(u32 minor, bool online, bool removed);
void rgpu_nl_session_event(const struct rgpu_session *ses, bool removed);
void rgpu_nl_proxy_event(u32 epoch, bool removed);

#endif
