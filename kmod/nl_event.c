// SPDX-License-Identifier: GPL-2.0
/* Netlink events: READY and CANCEL to the proxy's socket, the lifecycle to the monitor group. All of them are hints. */
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include "rgpu.h"

static struct sk_buff *rgpu_nl_event(u8 cmd, void **hdr)
{
	struct sk_buff *msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);

	if (!msg)
		return NULL;
	*hdr = genlmsg_put(msg, 0, 0, &rgpu_genl, 0, cmd);
	if (*hdr)
		return msg;
	nlmsg_free(msg);
	return NULL;
}

/* To the proxy. What cannot be sent is found by the next pull. rgpu_proxy.lock is held, which keeps the socket and its net. */
static void rgpu_nl_to_proxy(struct sk_buff *msg, void *hdr)
{
	lockdep_assert_held(&rgpu_proxy.lock);
	genlmsg_end(msg, hdr);
	if (rgpu_proxy.registered)
		genlmsg_unicast(rgpu_proxy.net, msg, rgpu_proxy.portid);
	else
		nlmsg_free(msg);
}

void rgpu_nl_ready(void)
{
	void *hdr;
	struct sk_buff *msg = rgpu_nl_event(RGPU_CMD_READY, &hdr);

	if (msg)
		rgpu_nl_to_proxy(msg, hdr);
}

void rgpu_nl_cancel(const struct rgpu_request *req)
{
	void *hdr;
	struct sk_buff *msg = rgpu_nl_event(RGPU_CMD_CANCEL, &hdr);

	if (!msg)
		return;
	if (nla_put_u64_64bit(msg, RGPU_A_REQ_ID, req->id, RGPU_A_PAD) ||
	    nla_put_u64_64bit(msg, RGPU_A_SESSION, req->ses->id, RGPU_A_PAD))
		nlmsg_free(msg);
	else
		rgpu_nl_to_proxy(msg, hdr);
}

static void rgpu_nl_to_monitor(struct sk_buff *msg, void *hdr, int err)
{
	if (err) {
		nlmsg_free(msg);
		return;
	}
	genlmsg_end(msg, hdr);
	genlmsg_multicast(&rgpu_genl, msg, 0, 0, GFP_KERNEL);
}

/* A monitor's event, or NULL when nobody listens. While the family is not registered, its groups are somebody else's. */
static struct sk_buff *rgpu_nl_monitor(u8 cmd, void **hdr)
{
	if (!READ_ONCE(rgpu_nl_up))
		return NULL;
	return genl_has_listeners(&rgpu_genl, &init_net, 0) ? rgpu_nl_event(cmd, hdr) : NULL;
}

void rgpu_nl_dev_event(u32 minor, bool online, bool removed)
{
	void *hdr;
	struct sk_buff *msg = rgpu_nl_monitor(RGPU_CMD_DEV_NTF, &hdr);

	if (msg)
		rgpu_nl_to_monitor(msg, hdr,
				   nla_put_u32(msg, RGPU_A_DEVICE, minor) || (removed ? nla_put_flag(msg, RGPU_A_REMOVED) :
											nla_put_u8(msg, RGPU_A_ONLINE, online)));
}

/* session.lock is held, but for a session that is removed. */
static int rgpu_nl_put_session_event(struct sk_buff *msg, const struct rgpu_session *ses, bool removed)
{
	u32 i;

	if (nla_put_u64_64bit(msg, RGPU_A_SESSION, ses->id, RGPU_A_PAD))
		return -EMSGSIZE;
	if (removed)
		return nla_put_flag(msg, RGPU_A_REMOVED);
	if (nla_put_u32(msg, RGPU_A_STATE, ses->state) || nla_put_s32(msg, RGPU_A_REASON, ses->reason) ||
	    nla_put_u32(msg, RGPU_A_EPOCH, ses->epoch) || nla_put_u32(msg, RGPU_A_UID, from_kuid_munged(&init_user_ns, ses->uid)))
		return -EMSGSIZE;
	for (i = 0; i < ses->ndevices; i++) {
		if (nla_put_u32(msg, RGPU_A_DEVICE, ses->devices[i]->minor))
			return -EMSGSIZE;
	}
	if (ses->down_since && nla_put_u64_64bit(msg, RGPU_A_LINK_DOWN, rgpu_boot_ms() - ses->down_since, RGPU_A_PAD))
		return -EMSGSIZE;
	return 0;
}

void rgpu_nl_session_event(const struct rgpu_session *ses, bool removed)
{
	void *hdr;
	struct sk_buff *msg = rgpu_nl_monitor(RGPU_CMD_SESSION_NTF, &hdr);

	if (msg)
		rgpu_nl_to_monitor(msg, hdr, rgpu_nl_put_session_event(msg, ses, removed));
}

void rgpu_nl_proxy_event(u32 epoch, bool removed)
{
	void *hdr;
	struct sk_buff *msg = rgpu_nl_monitor(RGPU_CMD_PROXY_NTF, &hdr);

	if (msg)
		rgpu_nl_to_monitor(msg, hdr,
				   nla_put_u32(msg, RGPU_A_EPOCH, epoch) || (removed && nla_put_flag(msg, RGPU_A_REMOVED)));
}
