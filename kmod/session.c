// SPDX-License-Identifier: GPL-2.0
/* Sessions: the table, start, join, states, and the end, which comes with the program's last file or its memory. */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include "rgpu.h"
#include "rgpu_trace.h"

/* The table holds a reference to each of its sessions; its own lock guards that. */
static DEFINE_XARRAY_ALLOC1(rgpu_sessions);
static u32 rgpu_sessions_hint, rgpu_generation; /* under the table's lock */

static void rgpu_session_free(struct kref *ref)
{
	struct rgpu_session *ses = container_of(ref, struct rgpu_session, ref);
	u32 i;

	for (i = 0; i < ses->nchannels; i++)
		kfree(ses->channels[i]);
	if (ses->gone)
		rgpu_request_put(ses->gone);
	rgpu_accounts_close(ses);
	xa_destroy(&ses->bos);
	put_pid(ses->tgid);
	kfree(ses);
}

void rgpu_session_put(struct rgpu_session *ses)
{
	kref_put(&ses->ref, rgpu_session_free);
}

struct rgpu_session *rgpu_session_get(struct rgpu_session *ses)
{
	kref_get(&ses->ref);
	return ses;
}

/* Returns a reference, or NULL. */
struct rgpu_session *rgpu_session_find(u64 id)
{
	struct rgpu_session *ses;

	xa_lock(&rgpu_sessions);
	ses = xa_load(&rgpu_sessions, (u32)id);
	if (ses && ses->id != id)
		ses = NULL;
	if (ses)
		kref_get(&ses->ref);
	xa_unlock(&rgpu_sessions);
	return ses;
}

/* The first session at or after *@index, which it sets: a reference, or NULL at the end. */
struct rgpu_session *rgpu_session_next(unsigned long *index)
{
	struct rgpu_session *ses;

	xa_lock(&rgpu_sessions);
	ses = xa_find(&rgpu_sessions, index, ULONG_MAX, XA_PRESENT);
	if (ses)
		kref_get(&ses->ref);
	xa_unlock(&rgpu_sessions);
	return ses;
}

/* Takes the session out of the table: nobody will ask for it by its id again. */
void rgpu_session_forget(struct rgpu_session *ses)
{
	bool mine;

	xa_lock(&rgpu_sessions);
	mine = xa_load(&rgpu_sessions, (u32)ses->id) == ses;
	if (mine)
		__xa_erase(&rgpu_sessions, (u32)ses->id);
	xa_unlock(&rgpu_sessions);
	if (!mine)
		return;
	rgpu_accounts_leave(ses);
	rgpu_nl_session_event(ses, true);
	rgpu_session_put(ses);
}

/* Moves a session to @state and tells everybody: the K page, sleepers, held requests, the monitor group. session.lock is held. */
void rgpu_session_set_state(struct rgpu_session *ses, u32 state, s32 reason)
{
	lockdep_assert_held(&ses->lock);
	trace_rgpu_session_state(ses->id, ses->state, state, reason, ses->epoch);
	ses->reason = reason;
	WRITE_ONCE(ses->down_since, 0);
	WRITE_ONCE(ses->state, state);
	if (ses->kpage) {
		WRITE_ONCE(ses->kpage->reason, reason);
		WRITE_ONCE(ses->kpage->epoch, ses->epoch);
		smp_store_release(&ses->kpage->state, state); /* who reads the new state reads its reason and epoch */
	}
	switch (state) {
	case RGPU_SESSION_RECOVERING:
		ses->deadline = jiffies + (unsigned long)READ_ONCE(rgpu_recover_secs) * HZ;
		rgpu_proxy_arm();
		break;
	case RGPU_SESSION_LIVE:
		rgpu_kick_all_proxy(ses);
		rgpu_relay_kick();
		break;
	case RGPU_SESSION_FAILED:
		rgpu_relay_fail(ses, reason);
		break;
	}
	rgpu_kick_all_apps(ses);
	rgpu_nl_session_event(ses, false);
}

/* The proxy's word on the connection of a session that is LIVE. session.lock is held. */
void rgpu_session_set_link(struct rgpu_session *ses, bool down)
{
	lockdep_assert_held(&ses->lock);
	if (!ses->down_since == !down)
		return;
	WRITE_ONCE(ses->down_since, down ? rgpu_boot_ms() : 0);
	rgpu_nl_session_event(ses, false);
}

/* How many sessions on @dev have no connection to the server now. */
unsigned int rgpu_sessions_down(const struct rgpu_device *dev)
{
	struct rgpu_session *ses;
	unsigned long i = 0;
	unsigned int n = 0;
	u32 d;

	for (; (ses = rgpu_session_next(&i)); i++) {
		mutex_lock(&ses->lock);
		for (d = 0; ses->down_since && d < ses->ndevices; d++)
			n += ses->devices[d] == dev;
		mutex_unlock(&ses->lock);
		rgpu_session_put(ses);
	}
	return n;
}

/* For good. What the program asks from here on is ESHUTDOWN; @reason is in the K page. */
void rgpu_session_fail(struct rgpu_session *ses, s32 reason)
{
	mutex_lock(&ses->lock);
	if (ses->state != RGPU_SESSION_FAILED)
		rgpu_session_set_state(ses, RGPU_SESSION_FAILED, reason);
	mutex_unlock(&ses->lock);
}

/* Whether one of its devices would rather have its programs fail than wait for the next proxy. session.lock is held. */
static bool rgpu_session_fails_fast(const struct rgpu_session *ses)
{
	u32 d;

	for (d = 0; d < ses->ndevices; d++) {
		if (READ_ONCE(ses->devices[d]->policy) == RGPU_POLICY_FAIL)
			return true;
	}
	return false;
}

/*
 * Takes the proxy's rights from @sfd if it has them, or from whichever session fd has them when that is NULL, and waits for a
 * successor.
 */
void rgpu_session_lost_proxy(struct rgpu_session *ses, struct rgpu_sesfd *sfd)
{
	mutex_lock(&ses->lock);
	if (ses->sesfd && (!sfd || ses->sesfd == sfd)) {
		rgpu_sesfd_revoke(ses->sesfd);
		ses->sesfd = NULL;
		if (ses->state == RGPU_SESSION_LIVE && rgpu_session_fails_fast(ses))
			rgpu_session_set_state(ses, RGPU_SESSION_FAILED, -EHOSTDOWN);
		else if (ses->state == RGPU_SESSION_LIVE)
			rgpu_session_set_state(ses, RGPU_SESSION_RECOVERING, 0);
		wake_up_interruptible_poll(&ses->proxy_wq, EPOLLHUP);
	}
	mutex_unlock(&ses->lock);
}

/* Fails sessions whose successor did not come in time. Returns jiffies until the next one's deadline, or −1. */
long rgpu_sessions_expire(void)
{
	struct rgpu_session *ses;
	unsigned long i = 0;
	long left, next = -1;

	for (; (ses = rgpu_session_next(&i)); i++) {
		mutex_lock(&ses->lock);
		if (ses->state == RGPU_SESSION_RECOVERING) {
			left = ses->deadline - jiffies;
			if (left <= 0) {
				pr_warn_ratelimited("session %llx of %s: no proxy resumed it within %u s: failed\n", ses->id,
						    ses->comm, READ_ONCE(rgpu_recover_secs));
				rgpu_session_set_state(ses, RGPU_SESSION_FAILED, -EHOSTDOWN);
			} else if (next < 0 || left < next) {
				next = left;
			}
		}
		mutex_unlock(&ses->lock);
		rgpu_session_put(ses);
	}
	return next;
}

void rgpu_sessions_lost_device(struct rgpu_device *dev)
{
	struct rgpu_session *ses;
	unsigned long i = 0;
	u32 d;

	for (; (ses = rgpu_session_next(&i)); i++) {
		mutex_lock(&ses->lock);
		for (d = 0; d < ses->ndevices; d++) {
			if (ses->devices[d] == dev && ses->state != RGPU_SESSION_FAILED)
				rgpu_session_set_state(ses, RGPU_SESSION_FAILED, -ENODEV);
		}
		mutex_unlock(&ses->lock);
		rgpu_session_put(ses);
	}
}

static void rgpu_session_add_device(struct rgpu_session *ses, struct rgpu_device *dev)
{
	get_device(&dev->dev);
	atomic_inc(&dev->sessions);
	ses->devices[ses->ndevices++] = dev;
}

/*
 * The program is gone, or its start came to nothing. Needs no memory, waits for nobody, may be called from mmu_notifier_release
 * and again. Gives back all that the session has, but for what is still mapped; the proxy hears GONE if it knew the session.
 */
static void rgpu_session_end(struct rgpu_session *ses)
{
	struct rgpu_mem *mem;
	unsigned long i;

	mutex_lock(&ses->lock);
	if (ses->ended) {
		mutex_unlock(&ses->lock);
		return;
	}
	if (ses->state != RGPU_SESSION_FAILED)
		rgpu_session_set_state(ses, RGPU_SESSION_FAILED, -ESHUTDOWN);
	WRITE_ONCE(ses->ended, true);
	for (i = 0; i < ses->nchannels; i++)
		rgpu_channel_free_memory(ses->channels[i]);
	xa_for_each(&ses->bos, i, mem) {
		xa_erase(&ses->bos, i);
		atomic_long_dec(&rgpu_stats.bos);
		rgpu_mem_put(mem);
	}
	ses->kpage = NULL;
	rgpu_mem_put(ses->kmem);
	ses->kmem = NULL;
	while (ses->ndevices) {
		atomic_dec(&ses->devices[--ses->ndevices]->sessions);
		put_device(&ses->devices[ses->ndevices]->dev);
	}
	wake_up_interruptible_poll(&ses->proxy_wq, EPOLLHUP);
	mutex_unlock(&ses->lock);

	atomic_long_dec(&rgpu_stats.sessions);
	if (!rgpu_relay_gone(ses))
		rgpu_session_forget(ses);
}

static void rgpu_session_mm_gone(struct mmu_notifier *mn, struct mm_struct *mm)
{
	/* The notifier holds no reference: rgpu_session_close() unregisters it, which waits for us, before it puts its own. */
	rgpu_session_end(container_of(mn, struct rgpu_session, mn));
}

static const struct mmu_notifier_ops rgpu_session_mn_ops = {
	.release = rgpu_session_mm_gone,
};

/* A file that has the session was closed. Puts the file's reference. */
void rgpu_session_close(struct rgpu_session *ses)
{
	bool last;

	mutex_lock(&ses->lock);
	last = --ses->files == 0;
	mutex_unlock(&ses->lock);
	if (last) {
		rgpu_session_end(ses);
		mmu_notifier_unregister(&ses->mn, ses->mm);
	}
	rgpu_session_put(ses);
}

static u64 rgpu_current_cgroup(void)
{
	u64 id;

	rcu_read_lock();
	id = cgroup_id(task_dfl_cgroup(current));
	rcu_read_unlock();
	return id;
}

/* A session with K page and notifier, not in the table yet; the reference is that of the file to be. */
static struct rgpu_session *rgpu_session_new(struct rgpu_file *rf)
{
	struct rgpu_session *ses = kzalloc(sizeof(*ses), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!ses)
		return ERR_PTR(-ENOMEM);
	kref_init(&ses->ref);
	mutex_init(&ses->lock);
	init_waitqueue_head(&ses->proxy_wq);
	xa_init_flags(&ses->bos, XA_FLAGS_ALLOC1);
	get_random_bytes(ses->sid, sizeof(ses->sid));
	ses->uid = rf->uid;
	ses->tgid = get_pid(task_tgid(current));
	get_task_comm(ses->comm, current);
	ses->cgroup = rgpu_current_cgroup();
	ses->files = 1;
	ses->state = RGPU_SESSION_STARTING;

	ses->gone = rgpu_request_new(RGPU_REQ_GONE);
	if (!ses->gone || rgpu_accounts_open(ses))
		goto fail;
	ses->kmem = rgpu_mem_new(ses, PAGE_SIZE, false);
	if (IS_ERR(ses->kmem)) {
		err = PTR_ERR(ses->kmem);
		goto fail;
	}
	ses->kpage = page_address(ses->kmem->pages[0]);
	ses->kpage->magic = RGPU_MAGIC;
	ses->kpage->abi_major = RGPU_ABI_MAJOR;
	ses->kpage->abi_minor = RGPU_ABI_MINOR;
	ses->kpage->features = RGPU_FEATURES;
	memcpy(ses->kpage->sid, ses->sid, sizeof(ses->sid));

	ses->mm = rf->mm;
	ses->mn.ops = &rgpu_session_mn_ops;
	err = mmu_notifier_register(&ses->mn, ses->mm);
	if (err) {
		/* EINTR comes with handled signals too. Nothing has happened yet: the call begins anew after them. */
		if (err == -EINTR)
			err = -ERESTARTNOINTR;
		rgpu_mem_put(ses->kmem);
		goto fail;
	}
	return ses;
fail:
	rgpu_session_put(ses);
	return ERR_PTR(err);
}

static int rgpu_session_insert(struct rgpu_session *ses)
{
	u32 index;
	int err = rgpu_accounts_enter(ses);

	if (err)
		return err;
	xa_lock(&rgpu_sessions);
	err = __xa_alloc_cyclic(&rgpu_sessions, &index, ses, XA_LIMIT(1, S32_MAX), &rgpu_sessions_hint, GFP_KERNEL_ACCOUNT);
	if (err >= 0) {
		/* Not yet visible: the lock was not let go since the entry was stored. */
		ses->id = index | (u64)++rgpu_generation << 32;
		kref_get(&ses->ref);
		err = 0;
	}
	xa_unlock(&rgpu_sessions);
	if (err)
		rgpu_accounts_leave(ses);
	return err;
}

/*
 * Makes a session for the calling process and asks the proxy for it with @req, which the caller prepared and whose answer he
 * reads. 0: *@out is the file's reference, to be put with rgpu_session_close(). Else nothing is left of it here, and the proxy
 * hears GONE if it may have done something. ERESTARTNOINTR: the system call is to begin anew, with the argument as it is.
 */
int rgpu_session_start(struct rgpu_file *rf, struct rgpu_request *req, struct rgpu_session **out)
{
	struct rgpu_session *ses = rgpu_session_new(rf);
	int err;

	if (IS_ERR(ses))
		return PTR_ERR(ses);
	rgpu_session_add_device(ses, rf->dev);
	atomic_long_inc(&rgpu_stats.sessions);
	err = rgpu_session_insert(ses);
	if (!err && !rgpu_device_usable(rf->dev))
		err = -ENODEV; /* asked after DEV_DEL's sweep can find us, so one of the two sees the other */
	if (!err) {
		mutex_lock(&ses->lock);
		rgpu_nl_session_event(ses, false);
		mutex_unlock(&ses->lock);
		req->ses = rgpu_session_get(ses);
		req->dev = rf->dev;
		get_device(&rf->dev->dev);
		err = rgpu_relay_call(req);
	}
	if (err) {
		rgpu_session_close(ses);
		return err;
	}
	*out = ses;
	return 0;
}

/* The same server, and a GPU behind both. */
static bool rgpu_same_server(struct rgpu_device *a, struct rgpu_device *b)
{
	u8 server[RGPU_UUID_LEN];
	bool same;

	mutex_lock(&a->lock);
	same = a->online && a->has_server;
	memcpy(server, a->server, sizeof(server));
	mutex_unlock(&a->lock);
	mutex_lock(&b->lock);
	same = same && b->online && b->has_server && !memcmp(server, b->server, sizeof(server));
	mutex_unlock(&b->lock);
	return same;
}

/*
 * Adds @rf's device to a session of the same process: EXDEV when it is another server's, ENOSPC when the session has too many,
 * else what the proxy says. 0: the file has one more of the session's references, and *@index is the device's.
 */
int rgpu_session_join(struct rgpu_session *ses, struct rgpu_file *rf, u32 *index)
{
	struct rgpu_request *req = NULL;
	bool known = false;
	u32 i = 0;
	int err = 0;

	/* Not a mutex: who waits for one cannot be frozen, and the one he waits for may be frozen already. */
	if (wait_on_bit_lock(&ses->joining, 0, TASK_KILLABLE | TASK_FREEZABLE))
		return -EINTR;
	mutex_lock(&ses->lock);
	if (ses->state == RGPU_SESSION_FAILED || !ses->ndevices)
		err = -ESHUTDOWN;
	else if (!rgpu_same_server(ses->devices[0], rf->dev))
		err = -EXDEV;
	else
		for (i = 0; i < ses->ndevices && !known; i += !known)
			known = ses->devices[i] == rf->dev;
	mutex_unlock(&ses->lock);
	if (!err && i == RGPU_SESSION_DEVICES_MAX)
		err = -ENOSPC;
	if (err)
		goto out;

	if (!known) {
		req = rgpu_request_new(RGPU_REQ_JOIN);
		if (!req) {
			err = -ENOMEM;
			goto out;
		}
		req->ses = rgpu_session_get(ses);
		req->dev = rf->dev;
		get_device(&rf->dev->dev);
		req->device_index = i;
		err = rgpu_relay_call(req);
		rgpu_request_put(req);
		if (err)
			goto out;
	}
	mutex_lock(&ses->lock);
	if (ses->state == RGPU_SESSION_FAILED) {
		err = -ESHUTDOWN;
	} else {
		if (!known)
			rgpu_session_add_device(ses, rf->dev);
		rgpu_session_get(ses);
		ses->files++;
		*index = i;
	}
	mutex_unlock(&ses->lock);
	if (!err && READ_ONCE(rf->dev->dead))
		rgpu_session_fail(ses, -ENODEV); /* DEV_DEL's sweep may have come before the device was there */
out:
	clear_and_wake_up_bit(0, &ses->joining);
	return err;
}

/* At unload no program and no proxy is left: what is here waits for a GONE that nobody will acknowledge. */
void rgpu_sessions_exit(void)
{
	struct rgpu_session *ses;
	unsigned long i = 0;

	for (; (ses = rgpu_session_next(&i)); i++) {
		rgpu_session_forget(ses);
		rgpu_session_put(ses);
	}
	rgpu_relay_exit();
}
