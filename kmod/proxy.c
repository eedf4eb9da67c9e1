// SPDX-License-Identifier: GPL-2.0
/* Who the proxy is: registration, its end, attaching to sessions, and the deadline for a successor. */
#include <linux/netlink.h>
#include <linux/poll.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include "rgpu.h"
#include "rgpu_compat.h"
#include "rgpu_trace.h"

static void rgpu_proxy_expire(struct work_struct *work);
static DECLARE_DELAYED_WORK(rgpu_proxy_work, rgpu_proxy_expire);

static void rgpu_proxy_expire(struct work_struct *work)
{
	long next = rgpu_sessions_expire();

	/* Does nothing when rgpu_proxy_arm() was called meanwhile: that comes first. */
	if (next >= 0)
		queue_delayed_work(rgpu_workqueue, &rgpu_proxy_work, next);
}

/* A session began to wait for a successor: the work looks at once which deadline is the next, and sleeps until then. */
void rgpu_proxy_arm(void)
{
	mod_delayed_work(rgpu_workqueue, &rgpu_proxy_work, 0);
}

bool rgpu_proxy_is(struct sock *sk)
{
	return READ_ONCE(rgpu_proxy.registered) && READ_ONCE(rgpu_proxy.sk) == sk;
}

/*
 * Makes the socket @sk, together with @file (which the caller holds), the proxy. EBADF when @file is no /dev/rgpu-ctl, EBUSY when
 * there is a proxy or @file was used before.
 */
int rgpu_proxy_register(struct file *file, struct sock *sk, struct net *net, u32 portid, u32 *epoch)
{
	struct rgpu_ctl *ctl;
	int err = 0;

	if (!rgpu_is_ctl(file))
		return -EBADF;
	ctl = file->private_data;
	mutex_lock(&rgpu_proxy.reg);
	mutex_lock(&rgpu_proxy.lock);
	if (rgpu_proxy.registered || ctl->used) {
		err = -EBUSY;
	} else {
		WRITE_ONCE(ctl->used, true);
		sock_hold(sk);
		WRITE_ONCE(rgpu_proxy.sk, sk);
		rgpu_proxy.net = net;
		WRITE_ONCE(rgpu_proxy.portid, portid);
		WRITE_ONCE(rgpu_proxy.ctl, ctl);
		rgpu_proxy.told = false;
		*epoch = rgpu_proxy.epoch + 1;
		WRITE_ONCE(rgpu_proxy.epoch, *epoch);
		WRITE_ONCE(rgpu_proxy.registered, true);
	}
	mutex_unlock(&rgpu_proxy.lock);
	if (!err) {
		trace_rgpu_proxy(*epoch, true);
		rgpu_nl_proxy_event(*epoch, false);
	}
	mutex_unlock(&rgpu_proxy.reg);
	return err;
}

/*
 * Ends the registration of @ctl, or of socket (@net, @portid), if it stands. When this returns the old proxy can reach no
 * session: its mappings are gone, its requests are in the queue again, its devices offline. rgpu_proxy.reg keeps a successor out
 * until then.
 */
static void rgpu_proxy_end(const struct rgpu_ctl *ctl, const struct net *net, u32 portid)
{
	struct rgpu_session *ses;
	struct sock *sk = NULL;
	unsigned long i = 0;

	mutex_lock(&rgpu_proxy.reg);
	mutex_lock(&rgpu_proxy.lock);
	if (rgpu_proxy.registered && (ctl ? rgpu_proxy.ctl == ctl : rgpu_proxy.net == net && rgpu_proxy.portid == portid)) {
		sk = rgpu_proxy.sk;
		WRITE_ONCE(rgpu_proxy.sk, NULL);
		rgpu_proxy.net = NULL;
		WRITE_ONCE(rgpu_proxy.ctl, NULL);
		WRITE_ONCE(rgpu_proxy.registered, false);
		rgpu_relay_replay();
		wake_up_interruptible_poll(&rgpu_proxy.wq, EPOLLHUP);
	}
	mutex_unlock(&rgpu_proxy.lock);
	if (sk) {
		trace_rgpu_proxy(rgpu_proxy.epoch, false);
		rgpu_devices_offline();
		for (; (ses = rgpu_session_next(&i)); i++) {
			rgpu_session_lost_proxy(ses, NULL);
			rgpu_session_put(ses);
		}
		rgpu_nl_proxy_event(rgpu_proxy.epoch, true);
		sock_put(sk);
	}
	mutex_unlock(&rgpu_proxy.reg);
}

void rgpu_proxy_ctl_closed(struct rgpu_ctl *ctl)
{
	rgpu_proxy_end(ctl, NULL, 0);
}

/* Every netlink socket of the machine comes by here when it is closed. */
static int rgpu_proxy_netlink_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct netlink_notify *n = data;

	if (event == NETLINK_URELEASE && n->protocol == NETLINK_GENERIC && READ_ONCE(rgpu_proxy.registered) &&
	    n->portid == READ_ONCE(rgpu_proxy.portid))
		rgpu_proxy_end(NULL, n->net, n->portid);
	return NOTIFY_DONE;
}

static struct notifier_block rgpu_proxy_nb = {
	.notifier_call = rgpu_proxy_netlink_event,
};

/*
 * Gives the proxy that @ctl belongs to its rights to session @id, as a file. EPERM when it is not the proxy's ctl, ENOENT, EBUSY
 * when it has the session already, ESHUTDOWN when the session failed or its program is gone.
 */
int rgpu_proxy_attach(struct rgpu_ctl *ctl, u64 id, struct file **out)
{
	struct rgpu_session *ses = rgpu_session_find(id);
	struct rgpu_sesfd *sfd;
	struct file *file;
	int err = 0;

	if (!ses)
		return -ENOENT;
	file = rgpu_sesfd_open(ses, &sfd);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto out;
	}
	mutex_lock(&rgpu_proxy.reg);
	mutex_lock(&ses->lock);
	if (!rgpu_proxy.registered || rgpu_proxy.ctl != ctl) {
		err = -EPERM;
	} else if (ses->state == RGPU_SESSION_FAILED) {
		err = -ESHUTDOWN;
	} else if (ses->sesfd) {
		err = -EBUSY;
	} else {
		ses->sesfd = sfd;
		ses->epoch = rgpu_proxy.epoch;
		WRITE_ONCE(ses->kpage->epoch, ses->epoch);
		rgpu_kick_all_proxy(ses);
		rgpu_kick_all_apps(ses);
	}
	mutex_unlock(&ses->lock);
	mutex_unlock(&rgpu_proxy.reg);
	if (err)
		fput(file);
	else
		*out = file;
out:
	rgpu_session_put(ses);
	return err;
}

int rgpu_proxy_init(void)
{
	return netlink_register_notifier(&rgpu_proxy_nb);
}

void rgpu_proxy_exit(void)
{
	netlink_unregister_notifier(&rgpu_proxy_nb);
	cancel_delayed_work_sync(&rgpu_proxy_work);
}
