// SPDX-License-Identifier: GPL-2.0
/* The generic netlink family: policies, registration, and the proxy's PULL and REPLY. */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/pid_namespace.h>
#include <net/genetlink.h>
#include "rgpu.h"

static const struct nla_policy rgpu_register_policy[] = {
	[RGPU_A_CTL_FD] = { .type = NLA_U32 },
	[RGPU_A_ABI_MAJOR] = { .type = NLA_U16 },
	[RGPU_A_ABI_MINOR] = { .type = NLA_U16 },
	[RGPU_A_FEATURES] = { .type = NLA_U64 },
};

/* A command without attributes. A policy of length 0 would be taken for none at all, and the family's used. */
static const struct nla_policy rgpu_no_policy[] = {
	[RGPU_A_PAD] = { .type = NLA_REJECT },
};

static const struct nla_policy rgpu_reply_policy[] = {
	[RGPU_A_REQ_ID] = { .type = NLA_U64 },
	[RGPU_A_DATA] = { .type = NLA_BINARY, .len = RGPU_CONTROL_MAX },
	[RGPU_A_STATUS] = NLA_POLICY_RANGE(NLA_S32, -511, 0),
};

static const struct nla_policy rgpu_session_policy[] = {
	[RGPU_A_SESSION] = { .type = NLA_U64 },
};

static const struct nla_policy rgpu_session_set_policy[] = {
	[RGPU_A_SESSION] = { .type = NLA_U64 },
	[RGPU_A_COOKIE] = { .type = NLA_BINARY, .len = RGPU_COOKIE_MAX },
};

static const struct nla_policy rgpu_dev_policy[] = {
	[RGPU_A_DEVICE] = NLA_POLICY_MAX(NLA_U32, RGPU_DEVICES_MAX - 1),
};

static const struct nla_policy rgpu_dev_set_policy[] = {
	[RGPU_A_DEVICE] = NLA_POLICY_MAX(NLA_U32, RGPU_DEVICES_MAX - 1),
	[RGPU_A_ONLINE] = NLA_POLICY_MAX(NLA_U8, 1),
	[RGPU_A_NAME] = { .type = NLA_NUL_STRING, .len = RGPU_NAME_LEN - 1 },
	[RGPU_A_UUID] = NLA_POLICY_EXACT_LEN(RGPU_UUID_LEN),
	[RGPU_A_SERVER] = NLA_POLICY_EXACT_LEN(RGPU_UUID_LEN),
	[RGPU_A_MEM_TOTAL] = { .type = NLA_U64 },
	[RGPU_A_PROPS] = { .type = NLA_BINARY, .len = RGPU_PROPS_MAX },
	[RGPU_A_DEV_COOKIE] = { .type = NLA_BINARY, .len = RGPU_COOKIE_MAX },
	[RGPU_A_POLICY] = NLA_POLICY_MAX(NLA_U8, 1),
};

static const struct nla_policy rgpu_limits_policy[] = {
	[RGPU_A_RECOVER_SECS] = { .type = NLA_U32 },	  [RGPU_A_MAX_SESSIONS] = { .type = NLA_U32 },
	[RGPU_A_MAX_USER_SESSIONS] = { .type = NLA_U32 }, [RGPU_A_MAX_CGROUP_SESSIONS] = { .type = NLA_U32 },
	[RGPU_A_SESSION_MIB] = { .type = NLA_U32 },	  [RGPU_A_USER_MIB] = { .type = NLA_U32 },
	[RGPU_A_CGROUP_MIB] = { .type = NLA_U32 },
};

/* The proxy or an administrator. */
bool rgpu_nl_trusted(struct sk_buff *skb)
{
	return rgpu_proxy_is(NETLINK_CB(skb).sk) || netlink_capable(skb, CAP_NET_ADMIN);
}

static int rgpu_nl_put_registration(struct sk_buff *msg, struct genl_info *info, u32 epoch)
{
	void *hdr = genlmsg_put_reply(msg, info, &rgpu_genl, 0, RGPU_CMD_REGISTER);

	if (!hdr || nla_put_u32(msg, RGPU_A_EPOCH, epoch) || nla_put_u16(msg, RGPU_A_ABI_MAJOR, RGPU_ABI_MAJOR) ||
	    nla_put_u16(msg, RGPU_A_ABI_MINOR, RGPU_ABI_MINOR) ||
	    nla_put_u64_64bit(msg, RGPU_A_FEATURES, RGPU_FEATURES, RGPU_A_PAD) ||
	    nla_put_u32(msg, RGPU_A_DEVICES_MAX, RGPU_DEVICES_MAX) ||
	    nla_put_u64_64bit(msg, RGPU_A_SESSION_LIMIT, rgpu_session_limit(), RGPU_A_PAD) ||
	    nla_put_u32(msg, RGPU_A_RECOVER_SECS, READ_ONCE(rgpu_recover_secs)))
		return -EMSGSIZE;
	genlmsg_end(msg, hdr);
	return 0;
}

/* Registers the sender with the open @ctl and answers; a proxy that cannot be told that it is one is none. */
static int rgpu_nl_register_ctl(struct sk_buff *skb, struct genl_info *info, struct file *ctl)
{
	struct sk_buff *msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	u32 epoch;
	int err;

	if (!msg)
		return -ENOMEM;
	err = rgpu_proxy_register(ctl, NETLINK_CB(skb).sk, genl_info_net(info), info->snd_portid, &epoch);
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	err = rgpu_nl_put_registration(msg, info, epoch);
	if (err)
		nlmsg_free(msg);
	else
		err = genlmsg_reply(msg, info);
	if (err)
		rgpu_proxy_ctl_closed(ctl->private_data);
	else
		rgpu_relay_kick(); /* starts, and GONEs, may wait for a proxy already */
	return err;
}

static int rgpu_nl_register(struct sk_buff *skb, struct genl_info *info)
{
	struct file *ctl;
	int err = -EBADF;

	if (GENL_REQ_ATTR_CHECK(info, RGPU_A_CTL_FD) || GENL_REQ_ATTR_CHECK(info, RGPU_A_ABI_MAJOR) ||
	    GENL_REQ_ATTR_CHECK(info, RGPU_A_ABI_MINOR) || GENL_REQ_ATTR_CHECK(info, RGPU_A_FEATURES))
		return -EINVAL;
	if (nla_get_u16(info->attrs[RGPU_A_ABI_MAJOR]) != RGPU_ABI_MAJOR) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[RGPU_A_ABI_MAJOR],
				    "the module speaks ABI " __stringify(RGPU_ABI_MAJOR) ": install the same release's proxy");
		return -EPROTONOSUPPORT;
	}
	ctl = fget(nla_get_u32(info->attrs[RGPU_A_CTL_FD]));
	if (ctl) {
		err = rgpu_nl_register_ctl(skb, info, ctl);
		fput(ctl);
	}
	if (err == -EBADF)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[RGPU_A_CTL_FD], "not an open /dev/rgpu-ctl");
	else if (err == -EBUSY)
		NL_SET_ERR_MSG(info->extack, "there is a proxy, or this /dev/rgpu-ctl was used before: open it anew");
	return err;
}

static int rgpu_nl_put_cookie(struct sk_buff *msg, struct rgpu_session *ses)
{
	int err;

	mutex_lock(&ses->lock);
	err = nla_put(msg, RGPU_A_COOKIE, ses->cookie_len, ses->cookie);
	mutex_unlock(&ses->lock);
	return err;
}

static int rgpu_nl_put_device(struct sk_buff *msg, struct rgpu_device *dev)
{
	int err;

	mutex_lock(&dev->lock);
	err = nla_put_u32(msg, RGPU_A_DEVICE, dev->minor) ? -EMSGSIZE :
							    nla_put(msg, RGPU_A_DEV_COOKIE, dev->cookie_len, dev->cookie);
	mutex_unlock(&dev->lock);
	return err;
}

static int rgpu_nl_put_data(struct sk_buff *msg, const struct rgpu_request *req)
{
	return nla_put(msg, RGPU_A_DATA, req->in_len, req->in) || nla_put_u32(msg, RGPU_A_DATA_ROOM, req->room) ? -EMSGSIZE : 0;
}

static int rgpu_nl_put_request(struct sk_buff *msg, struct rgpu_request *req)
{
	struct rgpu_session *ses = req->ses;

	if (nla_put_u64_64bit(msg, RGPU_A_REQ_ID, req->id, RGPU_A_PAD) || nla_put_u32(msg, RGPU_A_REQ_TYPE, req->type) ||
	    nla_put_u32(msg, RGPU_A_REQ_FLAGS, READ_ONCE(req->flags)) ||
	    nla_put_u64_64bit(msg, RGPU_A_SESSION, ses->id, RGPU_A_PAD) || nla_put(msg, RGPU_A_SID, RGPU_SID_LEN, ses->sid))
		return -EMSGSIZE;
	switch (req->type) {
	case RGPU_REQ_START:
		if (rgpu_nl_put_device(msg, req->dev) || rgpu_nl_put_who(msg, ses) ||
		    nla_put_u64_64bit(msg, RGPU_A_CGROUP, ses->cgroup, RGPU_A_PAD))
			return -EMSGSIZE;
		return rgpu_nl_put_data(msg, req);
	case RGPU_REQ_JOIN:
		if (rgpu_nl_put_device(msg, req->dev) || nla_put_u32(msg, RGPU_A_DEVICE_INDEX, req->device_index))
			return -EMSGSIZE;
		break;
	case RGPU_REQ_CONTROL:
		if (nla_put_u32(msg, RGPU_A_OP, req->op) || rgpu_nl_put_data(msg, req))
			return -EMSGSIZE;
		break;
	}
	return rgpu_nl_put_cookie(msg, ses);
}

static int rgpu_nl_pull(struct sk_buff *skb, struct genl_info *info)
{
	struct rgpu_request *req;
	struct sk_buff *msg;
	int err = -EMSGSIZE;
	void *hdr;

	msg = genlmsg_new(RGPU_CONTROL_MAX + 2 * RGPU_COOKIE_MAX + 512, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	req = rgpu_relay_pull(NETLINK_CB(skb).sk);
	if (IS_ERR(req)) {
		nlmsg_free(msg);
		return PTR_ERR(req);
	}
	hdr = genlmsg_put_reply(msg, info, &rgpu_genl, 0, RGPU_CMD_PULL);
	if (hdr)
		err = rgpu_nl_put_request(msg, req);
	if (err) {
		nlmsg_free(msg);
	} else {
		genlmsg_end(msg, hdr);
		err = genlmsg_reply(msg, info);
	}
	if (err)
		rgpu_relay_unpull(NETLINK_CB(skb).sk, req);
	rgpu_request_put(req);
	return err;
}

static int rgpu_nl_reply(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *data = info->attrs[RGPU_A_DATA];
	int err;

	if (GENL_REQ_ATTR_CHECK(info, RGPU_A_REQ_ID) || GENL_REQ_ATTR_CHECK(info, RGPU_A_STATUS))
		return -EINVAL;
	err = rgpu_relay_reply(NETLINK_CB(skb).sk, nla_get_u64(info->attrs[RGPU_A_REQ_ID]),
			       nla_get_s32(info->attrs[RGPU_A_STATUS]), data ? nla_data(data) : NULL, data ? nla_len(data) : 0);
	if (err == -ENOTCONN)
		NL_SET_ERR_MSG(info->extack, "take the session's fd (RGPU_CTL_SESSION_FD) before START is answered with success");
	else if (err == -EMSGSIZE)
		NL_SET_ERR_MSG_ATTR(info->extack, data, "longer than the request's DATA_ROOM");
	return err;
}

#define RGPU_OP(c, pol) .cmd = RGPU_CMD_##c, .policy = (pol), .maxattr = ARRAY_SIZE(pol) - 1

static const struct genl_ops rgpu_genl_ops[] = {
	{ RGPU_OP(REGISTER, rgpu_register_policy), .doit = rgpu_nl_register },
	{ RGPU_OP(PULL, rgpu_no_policy), .doit = rgpu_nl_pull },
	{ RGPU_OP(REPLY, rgpu_reply_policy), .doit = rgpu_nl_reply },
	{ RGPU_OP(SESSION_GET, rgpu_session_policy), .doit = rgpu_nl_session_get, .dumpit = rgpu_nl_session_dump },
	{ RGPU_OP(SESSION_SET, rgpu_session_set_policy), .doit = rgpu_nl_session_set },
	{ RGPU_OP(DEV_GET, rgpu_dev_policy), .doit = rgpu_nl_dev_get, .dumpit = rgpu_nl_dev_dump },
	{ RGPU_OP(DEV_ADD, rgpu_dev_policy), .doit = rgpu_nl_dev_add },
	{ RGPU_OP(DEV_DEL, rgpu_dev_policy), .doit = rgpu_nl_dev_del },
	{ RGPU_OP(DEV_SET, rgpu_dev_set_policy), .doit = rgpu_nl_dev_set },
	{ RGPU_OP(LIMITS_GET, rgpu_no_policy), .doit = rgpu_nl_limits_get },
	{ RGPU_OP(LIMITS_SET, rgpu_limits_policy), .doit = rgpu_nl_limits_set, .flags = GENL_ADMIN_PERM },
};

static const struct genl_multicast_group rgpu_genl_groups[] = {
	{ .name = RGPU_MCGRP_MONITOR, .flags = GENL_MCAST_CAP_NET_ADMIN },
};

/* parallel_ops: commands take our own locks, and none waits for another process. */
struct genl_family rgpu_genl __ro_after_init = {
	.name = RGPU_GENL_NAME,
	.version = RGPU_GENL_VERSION,
	.maxattr = RGPU_A_MAX,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = rgpu_genl_ops,
	.n_ops = ARRAY_SIZE(rgpu_genl_ops),
	.mcgrps = rgpu_genl_groups,
	.n_mcgrps = ARRAY_SIZE(rgpu_genl_groups),
};

bool rgpu_nl_up; /* between registering the family and unregistering it */

int rgpu_netlink_init(void)
{
	int err = genl_register_family(&rgpu_genl);

	if (!err)
		WRITE_ONCE(rgpu_nl_up, true);
	return err;
}

void rgpu_netlink_exit(void)
{
	WRITE_ONCE(rgpu_nl_up, false);
	genl_unregister_family(&rgpu_genl);
}
