// SPDX-License-Identifier: GPL-2.0
/* Netlink: SESSION_GET and SESSION_SET, and who may see which session. */
#include <linux/cred.h>
#include <linux/pid_namespace.h>
#include <net/genetlink.h>
#include "rgpu.h"

/* Who started it, in the eyes of the reader, who is the caller. */
int rgpu_nl_put_who(struct sk_buff *msg, const struct rgpu_session *ses)
{
	if (nla_put_u32(msg, RGPU_A_UID, from_kuid_munged(current_user_ns(), ses->uid)) ||
	    nla_put_u32(msg, RGPU_A_PID, pid_nr_ns(ses->tgid, task_active_pid_ns(current))) ||
	    nla_put_string(msg, RGPU_A_COMM, ses->comm))
		return -EMSGSIZE;
	return 0;
}

static bool rgpu_nl_visible(const struct rgpu_session *ses, struct sk_buff *reader)
{
	return (uid_eq(ses->uid, current_euid()) && pid_nr_ns(ses->tgid, task_active_pid_ns(current))) || rgpu_nl_trusted(reader);
}

/* session.lock is held. */
static int rgpu_nl_put_session_locked(struct sk_buff *msg, const struct rgpu_session *ses, struct sk_buff *reader)
{
	u32 i;

	if (nla_put_u64_64bit(msg, RGPU_A_SESSION, ses->id, RGPU_A_PAD) || nla_put_u32(msg, RGPU_A_STATE, ses->state) ||
	    nla_put_s32(msg, RGPU_A_REASON, ses->reason) || nla_put_u32(msg, RGPU_A_EPOCH, ses->epoch) ||
	    rgpu_nl_put_who(msg, ses) || nla_put_u64_64bit(msg, RGPU_A_BO_BYTES, atomic64_read(&ses->bo_bytes), RGPU_A_PAD) ||
	    nla_put_u32(msg, RGPU_A_NCHANNELS, ses->nchannels))
		return -EMSGSIZE;
	for (i = 0; i < ses->ndevices; i++) {
		if (nla_put_u32(msg, RGPU_A_DEVICE, ses->devices[i]->minor))
			return -EMSGSIZE;
	}
	if (ses->down_since && nla_put_u64_64bit(msg, RGPU_A_LINK_DOWN, rgpu_boot_ms() - ses->down_since, RGPU_A_PAD))
		return -EMSGSIZE;
	if (rgpu_nl_trusted(reader) &&
	    (nla_put(msg, RGPU_A_SID, RGPU_SID_LEN, ses->sid) || nla_put_u64_64bit(msg, RGPU_A_CGROUP, ses->cgroup, RGPU_A_PAD)))
		return -EMSGSIZE;
	if (rgpu_proxy_is(NETLINK_CB(reader).sk))
		return nla_put(msg, RGPU_A_COOKIE, ses->cookie_len, ses->cookie);
	return 0;
}

/* ENOENT when the session is over. */
static int rgpu_nl_put_session(struct sk_buff *msg, struct rgpu_session *ses, struct sk_buff *reader)
{
	int err = -ENOENT;

	mutex_lock(&ses->lock);
	if (!ses->ended)
		err = rgpu_nl_put_session_locked(msg, ses, reader);
	mutex_unlock(&ses->lock);
	return err;
}

int rgpu_nl_session_get(struct sk_buff *skb, struct genl_info *info)
{
	struct rgpu_session *ses;
	struct sk_buff *msg;
	int err = -ENOENT;
	void *hdr;

	if (GENL_REQ_ATTR_CHECK(info, RGPU_A_SESSION))
		return -EINVAL;
	msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	ses = rgpu_session_find(nla_get_u64(info->attrs[RGPU_A_SESSION]));
	hdr = genlmsg_put_reply(msg, info, &rgpu_genl, 0, RGPU_CMD_SESSION_GET);
	if (ses && rgpu_nl_visible(ses, skb))
		err = hdr ? rgpu_nl_put_session(msg, ses, skb) : -EMSGSIZE;
	if (ses)
		rgpu_session_put(ses);
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

int rgpu_nl_session_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rgpu_session *ses;
	int err = 0;
	void *hdr;

	for (; !err && (ses = rgpu_session_next((unsigned long *)&cb->args[0])); cb->args[0] += !err) {
		if (rgpu_nl_visible(ses, cb->skb)) {
			hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &rgpu_genl, NLM_F_MULTI,
					  RGPU_CMD_SESSION_GET);
			err = hdr ? rgpu_nl_put_session(skb, ses, cb->skb) : -EMSGSIZE;
			if (hdr && err)
				genlmsg_cancel(skb, hdr);
			else if (hdr)
				genlmsg_end(skb, hdr);
			if (err == -ENOENT)
				err = 0;
		}
		rgpu_session_put(ses);
	}
	/* A session that did not fit begins the next part. One alone always fits. */
	return skb->len;
}

int rgpu_nl_session_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *cookie = info->attrs[RGPU_A_COOKIE];
	struct rgpu_session *ses;
	int err = 0;

	if (GENL_REQ_ATTR_CHECK(info, RGPU_A_SESSION) || GENL_REQ_ATTR_CHECK(info, RGPU_A_COOKIE))
		return -EINVAL;
	ses = rgpu_session_find(nla_get_u64(info->attrs[RGPU_A_SESSION]));
	mutex_lock(&rgpu_proxy.reg);
	if (!rgpu_proxy_is(NETLINK_CB(skb).sk)) {
		err = -EPERM;
	} else if (!ses) {
		err = -ENOENT;
	} else {
		mutex_lock(&ses->lock);
		ses->cookie_len = nla_len(cookie);
		memcpy(ses->cookie, nla_data(cookie), nla_len(cookie));
		mutex_unlock(&ses->lock);
	}
	mutex_unlock(&rgpu_proxy.reg);
	if (ses)
		rgpu_session_put(ses);
	return err;
}
