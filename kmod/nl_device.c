// SPDX-License-Identifier: GPL-2.0
/* Netlink: DEV_GET, DEV_ADD, DEV_DEL, DEV_SET. */
#include <linux/kobject.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include "rgpu.h"

/* The description; the blob of properties only when @full. */
static int rgpu_nl_put_dev(struct sk_buff *msg, struct rgpu_device *dev, struct sk_buff *reader, bool full)
{
	int err = -EMSGSIZE;

	mutex_lock(&dev->lock);
	if (nla_put_u32(msg, RGPU_A_DEVICE, dev->minor) || nla_put_u8(msg, RGPU_A_ONLINE, dev->online) ||
	    nla_put_string(msg, RGPU_A_NAME, dev->name) || nla_put_u64_64bit(msg, RGPU_A_MEM_TOTAL, dev->mem_total, RGPU_A_PAD) ||
	    nla_put_u32(msg, RGPU_A_SESSIONS, atomic_read(&dev->sessions)) || nla_put_u8(msg, RGPU_A_POLICY, dev->policy))
		goto out;
	if (dev->has_uuid && nla_put(msg, RGPU_A_UUID, sizeof(dev->uuid), dev->uuid))
		goto out;
	if (dev->has_server && nla_put(msg, RGPU_A_SERVER, sizeof(dev->server), dev->server))
		goto out;
	if (rgpu_proxy_is(NETLINK_CB(reader).sk) && nla_put(msg, RGPU_A_DEV_COOKIE, dev->cookie_len, dev->cookie))
		goto out;
	if (full && nla_put(msg, RGPU_A_PROPS, dev->props_len, dev->props))
		goto out;
	err = 0;
out:
	mutex_unlock(&dev->lock);
	return err;
}

int rgpu_nl_dev_get(struct sk_buff *skb, struct genl_info *info)
{
	struct rgpu_device *dev;
	struct sk_buff *msg;
	int err = -EMSGSIZE;
	void *hdr;

	if (GENL_REQ_ATTR_CHECK(info, RGPU_A_DEVICE))
		return -EINVAL;
	msg = genlmsg_new(RGPU_PROPS_MAX + RGPU_COOKIE_MAX + 512, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	dev = rgpu_device_get(nla_get_u32(info->attrs[RGPU_A_DEVICE]));
	if (!dev) {
		nlmsg_free(msg);
		return -ENODEV;
	}
	hdr = genlmsg_put_reply(msg, info, &rgpu_genl, 0, RGPU_CMD_DEV_GET);
	if (hdr)
		err = rgpu_nl_put_dev(msg, dev, skb, true);
	put_device(&dev->dev);
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

int rgpu_nl_dev_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rgpu_device *dev;
	int err = 0;
	void *hdr;

	for (; !err && (dev = rgpu_device_next((unsigned long *)&cb->args[0])); cb->args[0] += !err) {
		hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &rgpu_genl, NLM_F_MULTI, RGPU_CMD_DEV_GET);
		err = hdr ? rgpu_nl_put_dev(skb, dev, cb->skb, false) : -EMSGSIZE;
		if (hdr && err)
			genlmsg_cancel(skb, hdr);
		else if (hdr)
			genlmsg_end(skb, hdr);
		put_device(&dev->dev);
	}
	return skb->len;
}

/* Trusted callers only, and one at a time: rgpu_proxy.reg is held when this says 0. */
static int rgpu_nl_dev_begin(struct sk_buff *skb)
{
	mutex_lock(&rgpu_proxy.reg);
	if (rgpu_nl_trusted(skb))
		return 0;
	mutex_unlock(&rgpu_proxy.reg);
	return -EPERM;
}

int rgpu_nl_dev_add(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *want = info->attrs[RGPU_A_DEVICE];
	u32 minor = want ? nla_get_u32(want) : 0;
	struct sk_buff *msg;
	void *hdr;
	int err;

	msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	err = rgpu_nl_dev_begin(skb);
	if (!err) {
		err = rgpu_device_add(&minor, !want);
		if (!err)
			rgpu_nl_dev_event(minor, false, false);
		mutex_unlock(&rgpu_proxy.reg);
	}
	hdr = genlmsg_put_reply(msg, info, &rgpu_genl, 0, RGPU_CMD_DEV_ADD);
	if (!err && (!hdr || nla_put_u32(msg, RGPU_A_DEVICE, minor)))
		err = -EMSGSIZE;
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

int rgpu_nl_dev_del(struct sk_buff *skb, struct genl_info *info)
{
	int err;

	if (GENL_REQ_ATTR_CHECK(info, RGPU_A_DEVICE))
		return -EINVAL;
	err = rgpu_nl_dev_begin(skb);
	if (err)
		return err;
	err = rgpu_device_del(nla_get_u32(info->attrs[RGPU_A_DEVICE]));
	mutex_unlock(&rgpu_proxy.reg);
	return err;
}

/* Takes over what was given. device.lock is held; *@props is exchanged with the old blob. */
static int rgpu_nl_dev_apply(struct rgpu_device *dev, struct genl_info *info, void **props)
{
	struct nlattr **a = info->attrs;

	if (a[RGPU_A_ONLINE] && nla_get_u8(a[RGPU_A_ONLINE]) &&
	    !((dev->has_uuid || a[RGPU_A_UUID]) && (dev->has_server || a[RGPU_A_SERVER]))) {
		NL_SET_ERR_MSG_ATTR(info->extack, a[RGPU_A_ONLINE], "a device goes online with UUID and SERVER");
		return -EINVAL;
	}
	if (a[RGPU_A_NAME])
		strscpy_pad(dev->name, nla_data(a[RGPU_A_NAME]), sizeof(dev->name));
	if (a[RGPU_A_UUID]) {
		memcpy(dev->uuid, nla_data(a[RGPU_A_UUID]), sizeof(dev->uuid));
		dev->has_uuid = true;
	}
	if (a[RGPU_A_SERVER]) {
		memcpy(dev->server, nla_data(a[RGPU_A_SERVER]), sizeof(dev->server));
		dev->has_server = true;
	}
	if (a[RGPU_A_MEM_TOTAL])
		dev->mem_total = nla_get_u64(a[RGPU_A_MEM_TOTAL]);
	if (a[RGPU_A_PROPS]) {
		swap(dev->props, *props);
		dev->props_len = nla_len(a[RGPU_A_PROPS]);
	}
	if (a[RGPU_A_DEV_COOKIE]) {
		dev->cookie_len = nla_len(a[RGPU_A_DEV_COOKIE]);
		memcpy(dev->cookie, nla_data(a[RGPU_A_DEV_COOKIE]), dev->cookie_len);
	}
	if (a[RGPU_A_POLICY])
		WRITE_ONCE(dev->policy, nla_get_u8(a[RGPU_A_POLICY]));
	if (a[RGPU_A_ONLINE])
		WRITE_ONCE(dev->online, nla_get_u8(a[RGPU_A_ONLINE]));
	return 0;
}

int rgpu_nl_dev_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *online = info->attrs[RGPU_A_ONLINE], *blob = info->attrs[RGPU_A_PROPS];
	struct rgpu_device *dev;
	void *props = NULL;
	bool was, is;
	int err;

	if (GENL_REQ_ATTR_CHECK(info, RGPU_A_DEVICE))
		return -EINVAL;
	if (blob && nla_len(blob)) {
		props = nla_memdup(blob, GFP_KERNEL);
		if (!props)
			return -ENOMEM;
	}
	err = rgpu_nl_dev_begin(skb);
	if (err)
		goto out;
	if (online && nla_get_u8(online) && !rgpu_proxy_is(NETLINK_CB(skb).sk)) {
		NL_SET_ERR_MSG_ATTR(info->extack, online, "only the proxy puts a device online");
		err = -EPERM;
		goto unlock;
	}
	dev = rgpu_device_get(nla_get_u32(info->attrs[RGPU_A_DEVICE]));
	if (!dev) {
		err = -ENODEV;
		goto unlock;
	}
	mutex_lock(&dev->lock);
	was = dev->online;
	err = rgpu_nl_dev_apply(dev, info, &props);
	is = dev->online;
	mutex_unlock(&dev->lock);
	if (!err && was != is) {
		rgpu_nl_dev_event(dev->minor, is, false);
		kobject_uevent(&dev->dev.kobj, KOBJ_CHANGE);
	}
	put_device(&dev->dev);
unlock:
	mutex_unlock(&rgpu_proxy.reg);
out:
	kfree(props);
	return err;
}
