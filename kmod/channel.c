// SPDX-License-Identifier: GPL-2.0
/* Channels, buffer objects, and the doorbells between the two sides of a channel. */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include "rgpu.h"
#include "rgpu_trace.h"

#define RGPU_BO_HANDLE_MAX ((1u << 28) - 1) /* what RGPU_MMAP_BO() has room for */

/* NULL when there never was such a channel. The result may be used for as long as the caller holds the session. */
struct rgpu_channel *rgpu_channel_find(struct rgpu_session *ses, u32 index)
{
	u32 n = smp_load_acquire(&ses->nchannels); /* and with it the pointers below it */

	return index < n ? ses->channels[array_index_nospec(index, n)] : NULL;
}

/* Gives the rings back; session.lock is held, or nobody else can have the channel. May be called again. */
void rgpu_channel_free_memory(struct rgpu_channel *ch)
{
	int i;

	if (ch->alive)
		atomic_long_dec(&rgpu_stats.channels);
	WRITE_ONCE(ch->alive, false);
	for (i = 0; i < ARRAY_SIZE(ch->mem); i++) {
		rgpu_mem_put(ch->mem[i]);
		ch->mem[i] = NULL;
	}
}

static bool rgpu_ring_size_ok(u32 size)
{
	return is_power_of_2(size) && size >= RGPU_RING_MIN && size <= RGPU_RING_MAX && size >= PAGE_SIZE;
}

/* The session's memory is allocated outside its lock: that can take long. */
static struct rgpu_channel *rgpu_channel_new(struct rgpu_session *ses, u32 sq_size, u32 cq_size)
{
	const u64 bytes[] = {
		[RGPU_MMAP_APAGE] = PAGE_SIZE,
		[RGPU_MMAP_PPAGE] = PAGE_SIZE,
		[RGPU_MMAP_SQ] = sq_size,
		[RGPU_MMAP_CQ] = cq_size,
	};
	struct rgpu_channel *ch = kzalloc(sizeof(*ch), GFP_KERNEL_ACCOUNT);
	int i, err;

	if (!ch)
		return ERR_PTR(-ENOMEM);
	ch->sq_size = sq_size;
	ch->cq_size = cq_size;
	init_waitqueue_head(&ch->app_wq);
	for (i = 0; i < ARRAY_SIZE(bytes); i++) {
		struct rgpu_mem *mem = rgpu_mem_new(ses, bytes[i], false);

		if (IS_ERR(mem)) {
			err = PTR_ERR(mem);
			rgpu_channel_free_memory(ch);
			kfree(ch);
			return ERR_PTR(err);
		}
		ch->mem[i] = mem;
	}
	return ch;
}

/* EINVAL for sizes, ENOSPC once RGPU_CHANNELS_MAX were made, ESHUTDOWN for a session that failed. */
int rgpu_channel_create(struct rgpu_session *ses, u32 sq_size, u32 cq_size, u32 *index)
{
	struct rgpu_channel *ch;
	int err = 0;

	if (!rgpu_ring_size_ok(sq_size) || !rgpu_ring_size_ok(cq_size))
		return -EINVAL;
	if (READ_ONCE(ses->nchannels) >= RGPU_CHANNELS_MAX)
		return -ENOSPC;
	ch = rgpu_channel_new(ses, sq_size, cq_size);
	if (IS_ERR(ch))
		return PTR_ERR(ch);

	mutex_lock(&ses->lock);
	if (ses->state == RGPU_SESSION_FAILED) {
		err = -ESHUTDOWN;
	} else if (ses->nchannels >= RGPU_CHANNELS_MAX) {
		err = -ENOSPC;
	} else {
		*index = ch->index = ses->nchannels;
		ch->alive = true;
		atomic_long_inc(&rgpu_stats.channels);
		ses->channels[ch->index] = ch;
		smp_store_release(&ses->nchannels, ch->index + 1); /* for rgpu_channel_find() and the kicks */
		WRITE_ONCE(ses->kpage->nchannels, ses->nchannels);
	}
	mutex_unlock(&ses->lock);
	if (err) {
		rgpu_channel_free_memory(ch);
		kfree(ch);
		return err;
	}
	rgpu_kick_proxy(ses, *index); /* that is how the proxy hears of it */
	return 0;
}

/* ENOENT when there is no such channel. Who waits on it gets that too; the proxy is kicked and finds it not alive. */
int rgpu_channel_destroy(struct rgpu_session *ses, u32 index)
{
	struct rgpu_channel *ch = rgpu_channel_find(ses, index);
	bool was;

	if (!ch)
		return -ENOENT;
	mutex_lock(&ses->lock);
	was = ch->alive;
	rgpu_channel_free_memory(ch);
	mutex_unlock(&ses->lock);
	if (!was)
		return -ENOENT;
	wake_up_interruptible_all(&ch->app_wq);
	set_bit(index, ses->proxy_kicked);
	wake_up_interruptible_poll(&ses->proxy_wq, EPOLLIN);
	return 0;
}

/* EINVAL for a size, EDQUOT beyond the session's limit. Handles go round, so that a stale one finds nothing for long. */
int rgpu_bo_create(struct rgpu_session *ses, u64 bytes, u32 *handle)
{
	struct rgpu_mem *mem;
	int err;

	if (!bytes || !PAGE_ALIGNED(bytes) || bytes >> PAGE_SHIFT > S32_MAX)
		return -EINVAL;
	mem = rgpu_mem_new(ses, bytes, true);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	mutex_lock(&ses->lock);
	if (ses->state == RGPU_SESSION_FAILED)
		err = -ESHUTDOWN;
	else
		err = xa_alloc_cyclic(&ses->bos, handle, mem, XA_LIMIT(1, RGPU_BO_HANDLE_MAX), &ses->next_bo, GFP_KERNEL_ACCOUNT);
	if (err >= 0)
		atomic_long_inc(&rgpu_stats.bos);
	mutex_unlock(&ses->lock);
	if (err < 0)
		rgpu_mem_put(mem);
	return min(err, 0);
}

/* Mappings on either side stay, and stay charged, until they are unmapped. */
int rgpu_bo_destroy(struct rgpu_session *ses, u32 handle)
{
	struct rgpu_mem *mem;

	mutex_lock(&ses->lock);
	mem = xa_erase(&ses->bos, handle);
	mutex_unlock(&ses->lock);
	if (!mem)
		return -ENOENT;
	atomic_long_dec(&rgpu_stats.bos);
	rgpu_mem_put(mem);
	return 0;
}

/* ENOENT when there is no such buffer object; else as rgpu_track_fetch(). */
int rgpu_bo_dirty(struct rgpu_session *ses, u32 handle, u64 first, u64 n, u64 __user *bitmap, u64 __user *count)
{
	struct rgpu_mem *mem;
	int err;

	mutex_lock(&ses->lock);
	mem = xa_load(&ses->bos, handle);
	if (mem)
		kref_get(&mem->ref);
	mutex_unlock(&ses->lock);
	if (!mem)
		return -ENOENT;
	err = rgpu_track_fetch(mem, first, n, bitmap, count);
	rgpu_mem_put(mem);
	return err;
}

/* The app's doorbell. The latch is set before the sleeper is looked for, and the sleeper queues before it reads the latch. */
int rgpu_kick_proxy(struct rgpu_session *ses, u32 index)
{
	struct rgpu_channel *ch = rgpu_channel_find(ses, index);

	if (!ch || !READ_ONCE(ch->alive))
		return -ENOENT;
	if (READ_ONCE(ses->state) == RGPU_SESSION_FAILED)
		return -ESHUTDOWN;
	trace_rgpu_kick(ses->id, index, true);
	set_bit(index, ses->proxy_kicked);
	if (wq_has_sleeper(&ses->proxy_wq))
		wake_up_interruptible_poll(&ses->proxy_wq, EPOLLIN);
	return 0;
}

static void rgpu_channel_kick_app(struct rgpu_channel *ch)
{
	set_bit(0, &ch->kicked);
	if (wq_has_sleeper(&ch->app_wq))
		wake_up_interruptible_all(&ch->app_wq);
}

/* The proxy's doorbell. */
int rgpu_kick_app(struct rgpu_session *ses, u32 index)
{
	struct rgpu_channel *ch = rgpu_channel_find(ses, index);

	if (!ch || !READ_ONCE(ch->alive))
		return -ENOENT;
	if (READ_ONCE(ses->state) == RGPU_SESSION_FAILED)
		return -ESHUTDOWN;
	trace_rgpu_kick(ses->id, index, false);
	rgpu_channel_kick_app(ch);
	return 0;
}

void rgpu_kick_all_apps(struct rgpu_session *ses)
{
	u32 i, n = smp_load_acquire(&ses->nchannels); /* as in rgpu_channel_find() */

	for (i = 0; i < n; i++)
		rgpu_channel_kick_app(ses->channels[i]);
}

void rgpu_kick_all_proxy(struct rgpu_session *ses)
{
	u32 i, n = smp_load_acquire(&ses->nchannels); /* as in rgpu_channel_find() */

	for (i = 0; i < n; i++)
		set_bit(i, ses->proxy_kicked);
	wake_up_interruptible_poll(&ses->proxy_wq, EPOLLIN);
}

static bool rgpu_wait_over(struct rgpu_session *ses, struct rgpu_channel *ch, int *err)
{
	if (READ_ONCE(ses->state) == RGPU_SESSION_FAILED)
		*err = -ESHUTDOWN;
	else if (!READ_ONCE(ch->alive))
		*err = -ENOENT;
	else if (test_and_clear_bit(0, &ch->kicked))
		*err = 0;
	else
		return false;
	return true;
}

/*
 * Sleeps until the channel is kicked or the session changes its state. A signal without a handler (SIGSTOP and SIGCONT, a
 * debugger) lets an unlimited wait go on by itself; a limited one returns EINTR, because nobody kept what was left of its time.
 */
int rgpu_wait(struct rgpu_session *ses, u32 index, s32 timeout_ms)
{
	struct rgpu_channel *ch = rgpu_channel_find(ses, index);
	int err = 0;
	long left;

	if (!ch)
		return -ENOENT;
	if (timeout_ms < -1)
		return -EINVAL;
	if (timeout_ms == -1) {
		if (wait_event_freezable(ch->app_wq, rgpu_wait_over(ses, ch, &err)))
			return -ERESTARTSYS;
		return err;
	}
	left = wait_event_freezable_timeout(ch->app_wq, rgpu_wait_over(ses, ch, &err), msecs_to_jiffies(timeout_ms));
	if (left < 0)
		return -EINTR;
	return left ? err : -ETIMEDOUT;
}
