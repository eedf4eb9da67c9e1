// SPDX-License-Identifier: GPL-2.0
/* Netlink: LIMITS_GET, LIMITS_SET. */
#include <net/genetlink.h>
#include "rgpu.h"

static const struct {
	u16 attr;
	unsigned int *value;
} rgpu_nl_limits[] = {
	{ RGPU_A_RECOVER_SECS, &rgpu_recover_secs },
	{ RGPU_A_MAX_SESSIONS, &rgpu_limits.max_sessions },
	{ RGPU_A_MAX_USER_SESSIONS, &rgpu_limits.max_user_sessions },
	{ RGPU_A_MAX_CGROUP_SESSIONS, &rgpu_limits.max_cgroup_sessions },
	{ RGPU_A_SESSION_MIB, &rgpu_limits.session_mib },
	{ RGPU_A_USER_MIB, &rgpu_limits.user_mib },
	{ RGPU_A_CGROUP_MIB, &rgpu_limits.cgroup_mib },
};

int rgpu_nl_limits_get(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	void *hdr;
	size_t i;

	if (!msg)
		return -ENOMEM;
	hdr = genlmsg_put_reply(msg, info, &rgpu_genl, 0, RGPU_CMD_LIMITS_GET);
	for (i = 0; hdr && i < ARRAY_SIZE(rgpu_nl_limits); i++) {
		if (nla_put_u32(msg, rgpu_nl_limits[i].attr, READ_ONCE(*rgpu_nl_limits[i].value)))
			hdr = NULL;
	}
	if (!hdr) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

int rgpu_nl_limits_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *a;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rgpu_nl_limits); i++) {
		a = info->attrs[rgpu_nl_limits[i].attr];
		if (a)
			WRITE_ONCE(*rgpu_nl_limits[i].value, nla_get_u32(a));
	}
	return 0;
}
