// SPDX-License-Identifier: GPL-2.0
/* The queue of requests to the proxy: PENDING → DELIVERED → DONE or ABANDONED, and again PENDING when a proxy dies. */
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/sock.h>
#include "rgpu.h"
#include "rgpu_trace.h"

/* Every change of a request's state, and of its list, is made under rgpu_proxy.lock. */
struct rgpu_proxy rgpu_proxy;

void rgpu_relay_init(void)
{
	mutex_init(&rgpu_proxy.reg);
	mutex_init(&rgpu_proxy.lock);
	INIT_LIST_HEAD(&rgpu_proxy.pending);
	INIT_LIST_HEAD(&rgpu_proxy.delivered);
	init_waitqueue_head(&rgpu_proxy.wq);
}

/* At unload only GONE requests are left, in the queue that no proxy will pull. */
void rgpu_relay_exit(void)
{
	struct rgpu_request *req, *next;

	list_for_each_entry_safe(req, next, &rgpu_proxy.pending, node) {
		list_del_init(&req->node);
		rgpu_request_put(req);
	}
}

struct rgpu_request *rgpu_request_new(u32 type)
{
	struct rgpu_request *req = kzalloc(sizeof(*req), GFP_KERNEL_ACCOUNT);

	if (!req)
		return NULL;
	kref_init(&req->ref);
	req->type = type;
	init_waitqueue_head(&req->wait);
	INIT_LIST_HEAD(&req->node);
	return req;
}

static void rgpu_request_free(struct kref *ref)
{
	struct rgpu_request *req = container_of(ref, struct rgpu_request, ref);

	kfree(req->in);
	kfree(req->out);
	if (req->dev)
		put_device(&req->dev->dev);
	if (req->ses)
		rgpu_session_put(req->ses);
	kfree(req);
}

void rgpu_request_put(struct rgpu_request *req)
{
	kref_put(&req->ref, rgpu_request_free);
}

/* The oldest request that the proxy may have now: those of a session in recovery wait until it is LIVE. */
static struct rgpu_request *rgpu_relay_first(void)
{
	struct rgpu_request *req;

	list_for_each_entry(req, &rgpu_proxy.pending, node) {
		if (req->type == RGPU_REQ_GONE || READ_ONCE(req->ses->state) != RGPU_SESSION_RECOVERING)
			return req;
	}
	return NULL;
}

/* Wakes the proxy if there is something for it and it was not told since it last found the queue empty. */
static void rgpu_relay_tell(void)
{
	lockdep_assert_held(&rgpu_proxy.lock);
	if (!rgpu_proxy.registered || !rgpu_relay_first())
		return;
	wake_up_interruptible_poll(&rgpu_proxy.wq, EPOLLIN);
	if (!rgpu_proxy.told) {
		rgpu_proxy.told = true;
		rgpu_nl_ready();
	}
}

void rgpu_relay_kick(void)
{
	mutex_lock(&rgpu_proxy.lock);
	rgpu_relay_tell();
	mutex_unlock(&rgpu_proxy.lock);
}

/* For poll. */
bool rgpu_relay_ready(void)
{
	bool ready;

	mutex_lock(&rgpu_proxy.lock);
	ready = rgpu_relay_first();
	mutex_unlock(&rgpu_proxy.lock);
	return ready;
}

static void rgpu_relay_queue(struct rgpu_request *req)
{
	req->id = ++rgpu_proxy.last_id;
	WRITE_ONCE(req->state, RGPU_REQ_PENDING);
	kref_get(&req->ref);
	list_add_tail(&req->node, &rgpu_proxy.pending);
	atomic_long_inc(&rgpu_stats.requests);
	trace_rgpu_request(req->id, req->type, req->ses->id, req->state, 0);
	rgpu_relay_tell();
}

/* Takes a request off its list with its final state. Puts the list's reference: the caller has another. */
static void rgpu_relay_finish(struct rgpu_request *req, enum rgpu_req_state state, int status)
{
	lockdep_assert_held(&rgpu_proxy.lock);
	WRITE_ONCE(req->state, state);
	req->status = status;
	list_del_init(&req->node);
	atomic_long_dec(&rgpu_stats.requests);
	trace_rgpu_request(req->id, req->type, req->ses->id, state, status);
	wake_up_all(&req->wait);
	rgpu_request_put(req);
}

static bool rgpu_relay_open(struct rgpu_request *req)
{
	return READ_ONCE(req->state) == RGPU_REQ_PENDING || READ_ONCE(req->state) == RGPU_REQ_DELIVERED;
}

/* Killable and freezable; 0, EINTR or ETIMEDOUT. That the request is over is decided by the caller, under the lock. */
static int rgpu_relay_sleep(struct rgpu_request *req)
{
	unsigned int secs = READ_ONCE(rgpu_reply_secs);
	long left = secs ? (long)secs * HZ : MAX_SCHEDULE_TIMEOUT;
	DEFINE_WAIT(wait);
	int err = 0;

	for (;;) {
		prepare_to_wait(&req->wait, &wait, TASK_KILLABLE | TASK_FREEZABLE);
		if (!rgpu_relay_open(req))
			break;
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
		if (!left) {
			err = -ETIMEDOUT;
			break;
		}
		left = schedule_timeout(left);
	}
	finish_wait(&req->wait, &wait);
	return err;
}

/*
 * Queues @req, which has a session, and waits for its answer, whichever proxy gives it. Returns the answer's status; ESHUTDOWN
 * when the session failed meanwhile (for START: the reason), EINTR when the caller is being killed, ETIMEDOUT after reply_secs.
 * In the last two cases the request is abandoned: an answer that comes later is ENOENT to the proxy.
 */
int rgpu_relay_call(struct rgpu_request *req)
{
	int err;

	mutex_lock(&rgpu_proxy.lock);
	if (READ_ONCE(req->ses->state) == RGPU_SESSION_FAILED) {
		/* FAILED is set before rgpu_relay_fail() takes our lock: what it does not see, we do. */
		mutex_unlock(&rgpu_proxy.lock);
		return -ESHUTDOWN;
	}
	rgpu_relay_queue(req);
	mutex_unlock(&rgpu_proxy.lock);

	err = rgpu_relay_sleep(req);

	mutex_lock(&rgpu_proxy.lock);
	if (rgpu_relay_open(req)) {
		if (req->state == RGPU_REQ_DELIVERED)
			rgpu_nl_cancel(req);
		rgpu_relay_finish(req, RGPU_REQ_ABANDONED, err);
	}
	err = req->status;
	mutex_unlock(&rgpu_proxy.lock);
	return err;
}

/* Ends all requests of a session, but GONE. */
void rgpu_relay_fail(struct rgpu_session *ses, int start_status)
{
	struct rgpu_request *req, *next;
	struct list_head *lists[] = { &rgpu_proxy.pending, &rgpu_proxy.delivered };
	int i;

	mutex_lock(&rgpu_proxy.lock);
	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		list_for_each_entry_safe(req, next, lists[i], node) {
			if (req->ses != ses || req->type == RGPU_REQ_GONE)
				continue;
			if (req->state == RGPU_REQ_DELIVERED)
				rgpu_nl_cancel(req);
			rgpu_relay_finish(req, RGPU_REQ_DONE, req->type == RGPU_REQ_START ? start_status : -ESHUTDOWN);
		}
	}
	mutex_unlock(&rgpu_proxy.lock);
}

/* The session has ended: queues its GONE if a proxy ever heard of it, and says whether. The acknowledgement forgets it. */
bool rgpu_relay_gone(struct rgpu_session *ses)
{
	struct rgpu_request *gone = NULL;

	mutex_lock(&rgpu_proxy.lock);
	if (ses->announced && ses->gone) {
		gone = ses->gone;
		ses->gone = NULL; /* its reference becomes ours, and the list gets its own */
		gone->ses = rgpu_session_get(ses);
		atomic_long_inc(&rgpu_stats.gone);
		rgpu_relay_queue(gone);
		rgpu_request_put(gone);
	}
	mutex_unlock(&rgpu_proxy.lock);
	return gone;
}

/*
 * The oldest request, now DELIVERED: a reference, or ENOTCONN when the socket is not the proxy's (any more), EAGAIN when there is
 * none.
 */
struct rgpu_request *rgpu_relay_pull(struct sock *sk)
{
	struct rgpu_request *req = ERR_PTR(-EPERM);

	mutex_lock(&rgpu_proxy.lock);
	if (rgpu_proxy.registered && rgpu_proxy.sk == sk) {
		req = rgpu_relay_first();
		if (req) {
			WRITE_ONCE(req->state, RGPU_REQ_DELIVERED);
			list_move_tail(&req->node, &rgpu_proxy.delivered);
			kref_get(&req->ref);
			if (req->type == RGPU_REQ_START)
				req->ses->announced = true;
			trace_rgpu_request(req->id, req->type, req->ses->id, req->state, 0);
		} else {
			rgpu_proxy.told = false;
			req = ERR_PTR(-EAGAIN);
		}
	}
	mutex_unlock(&rgpu_proxy.lock);
	return req;
}

/* Puts back what could not be sent to @sk, unless it was finished meanwhile or that proxy ended, which put it back. */
void rgpu_relay_unpull(struct sock *sk, struct rgpu_request *req)
{
	mutex_lock(&rgpu_proxy.lock);
	if (rgpu_proxy.registered && rgpu_proxy.sk == sk && req->state == RGPU_REQ_DELIVERED) {
		WRITE_ONCE(req->state, RGPU_REQ_PENDING);
		list_move(&req->node, &rgpu_proxy.pending);
	}
	mutex_unlock(&rgpu_proxy.lock);
}

/* A proxy's end: what it had is PENDING again, in the old order and before what it had not seen. */
void rgpu_relay_replay(void)
{
	struct rgpu_request *req;

	lockdep_assert_held(&rgpu_proxy.lock);
	list_for_each_entry(req, &rgpu_proxy.delivered, node) {
		WRITE_ONCE(req->state, RGPU_REQ_PENDING);
		WRITE_ONCE(req->flags, req->flags | RGPU_REQ_REPLAY);
		trace_rgpu_request(req->id, req->type, req->ses->id, req->state, 0);
	}
	list_splice_init(&rgpu_proxy.delivered, &rgpu_proxy.pending);
	rgpu_proxy.told = false;
}

/* A reference to the delivered request @id, for the socket @sk. */
static struct rgpu_request *rgpu_relay_find(struct sock *sk, u64 id)
{
	struct rgpu_request *req;

	lockdep_assert_held(&rgpu_proxy.lock);
	if (!rgpu_proxy.registered || rgpu_proxy.sk != sk)
		return ERR_PTR(-EPERM);
	list_for_each_entry(req, &rgpu_proxy.delivered, node) {
		if (req->id == id) {
			kref_get(&req->ref);
			return req;
		}
	}
	return ERR_PTR(-ENOENT);
}

/* Finishes a request with the proxy's answer, whose bytes it takes over from *@out, if it is still there to be answered. */
static int rgpu_relay_answer(struct sock *sk, struct rgpu_request *req, int status, void **out, u32 len)
{
	bool there;

	mutex_lock(&rgpu_proxy.lock);
	there = rgpu_proxy.registered && rgpu_proxy.sk == sk && req->state == RGPU_REQ_DELIVERED;
	if (there) {
		req->out = *out;
		req->out_len = len;
		*out = NULL;
		if (req->type == RGPU_REQ_START && status)
			req->ses->announced = false; /* the proxy knows that there is nothing */
		rgpu_relay_finish(req, RGPU_REQ_DONE, status);
	}
	mutex_unlock(&rgpu_proxy.lock);
	return there ? 0 : -ENOENT;
}

/* START with success: the session becomes LIVE in the same step, which needs the session fd attached. */
static int rgpu_relay_answer_start(struct sock *sk, struct rgpu_request *req, void **out, u32 len)
{
	struct rgpu_session *ses = req->ses;
	int err;

	mutex_lock(&ses->lock);
	if (!ses->sesfd) {
		err = -ENOTCONN;
	} else {
		err = rgpu_relay_answer(sk, req, 0, out, len);
		if (!err && ses->state == RGPU_SESSION_STARTING)
			rgpu_session_set_state(ses, RGPU_SESSION_LIVE, 0);
	}
	mutex_unlock(&ses->lock);
	return err;
}

/*
 * The proxy's REPLY. EPERM when the socket is not the proxy's, ENOENT when nobody waits for @id, EMSGSIZE beyond the asker's
 * room, ENOTCONN when a START succeeds without a session fd.
 */
int rgpu_relay_reply(struct sock *sk, u64 id, int status, const void *data, u32 len)
{
	struct rgpu_request *req;
	void *out = NULL;
	int err;

	mutex_lock(&rgpu_proxy.lock);
	req = rgpu_relay_find(sk, id);
	mutex_unlock(&rgpu_proxy.lock);
	if (IS_ERR(req))
		return PTR_ERR(req);

	err = len > req->room ? -EMSGSIZE : 0;
	if (!err && len) {
		out = kmemdup(data, len, GFP_KERNEL);
		err = out ? 0 : -ENOMEM;
	}
	if (!err) {
		if (req->type == RGPU_REQ_START && !status)
			err = rgpu_relay_answer_start(sk, req, &out, len);
		else
			err = rgpu_relay_answer(sk, req, status, &out, len);
	}
	if (!err && req->type == RGPU_REQ_GONE) {
		atomic_long_dec(&rgpu_stats.gone);
		rgpu_session_forget(req->ses);
	}
	kfree(out);
	rgpu_request_put(req);
	return err;
}
