// SPDX-License-Identifier: GPL-2.0
/* Devices: the table, /dev/rgpuN's node and sysfs attributes, adding and removing. */
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include "rgpu.h"

struct class rgpu_class = { .name = "rgpu" };
dev_t rgpu_devt;

/* By N. The table holds a reference to each device; its own lock guards that. Adding and removing is under rgpu_proxy.reg. */
static DEFINE_XARRAY_ALLOC(rgpu_devices);

static struct rgpu_device *to_rgpu(struct device *dev)
{
	return container_of(dev, struct rgpu_device, dev);
}

static ssize_t name_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct rgpu_device *d = to_rgpu(dev);
	ssize_t n;

	mutex_lock(&d->lock);
	n = sysfs_emit(buf, "%s\n", d->name);
	mutex_unlock(&d->lock);
	return n;
}
static DEVICE_ATTR_RO(name);

static ssize_t rgpu_uuid_emit(struct rgpu_device *d, char *buf, const u8 *uuid, const bool *there)
{
	ssize_t n;

	mutex_lock(&d->lock);
	n = *there ? sysfs_emit(buf, "%pUb\n", uuid) : sysfs_emit(buf, "\n");
	mutex_unlock(&d->lock);
	return n;
}

static ssize_t uuid_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct rgpu_device *d = to_rgpu(dev);

	return rgpu_uuid_emit(d, buf, d->uuid, &d->has_uuid);
}
static DEVICE_ATTR_RO(uuid);

static ssize_t server_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct rgpu_device *d = to_rgpu(dev);

	return rgpu_uuid_emit(d, buf, d->server, &d->has_server);
}
static DEVICE_ATTR_RO(server);

static ssize_t mem_total_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct rgpu_device *d = to_rgpu(dev);
	ssize_t n;

	mutex_lock(&d->lock);
	n = sysfs_emit(buf, "%llu\n", d->mem_total);
	mutex_unlock(&d->lock);
	return n;
}
static DEVICE_ATTR_RO(mem_total);

/* "no-proxy" and "offline" tell apart what open() reports as ENODEV. */
static ssize_t state_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const char *state = READ_ONCE(to_rgpu(dev)->online) ? "online" : "offline";

	return sysfs_emit(buf, "%s\n", READ_ONCE(rgpu_proxy.registered) ? state : "no-proxy");
}
static DEVICE_ATTR_RO(state);

static ssize_t sessions_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", atomic_read(&to_rgpu(dev)->sessions));
}
static DEVICE_ATTR_RO(sessions);

/* Of these, how many have no connection to the server now. */
static ssize_t links_down_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", rgpu_sessions_down(to_rgpu(dev)));
}
static DEVICE_ATTR_RO(links_down);

static const char *const rgpu_policies[] = { [RGPU_POLICY_QUEUE] = "queue", [RGPU_POLICY_FAIL] = "fail" };

static ssize_t policy_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", rgpu_policies[READ_ONCE(to_rgpu(dev)->policy)]);
}

static ssize_t policy_store(struct device *dev, struct device_attribute *attr, const char *buf, size_t count)
{
	int policy = sysfs_match_string(rgpu_policies, buf);

	if (policy < 0)
		return policy;
	mutex_lock(&to_rgpu(dev)->lock);
	WRITE_ONCE(to_rgpu(dev)->policy, policy);
	mutex_unlock(&to_rgpu(dev)->lock);
	return count;
}
static DEVICE_ATTR_RW(policy);

static struct attribute *rgpu_device_attrs[] = {
	&dev_attr_name.attr,	  &dev_attr_uuid.attr,	     &dev_attr_server.attr,
	&dev_attr_mem_total.attr, &dev_attr_state.attr,	     &dev_attr_sessions.attr,
	&dev_attr_policy.attr,	  &dev_attr_links_down.attr, NULL,
};
ATTRIBUTE_GROUPS(rgpu_device);

static void rgpu_device_release(struct device *dev)
{
	struct rgpu_device *d = to_rgpu(dev);

	kfree(d->props);
	kfree(d);
}

/* Whether a program may begin to use it: open and SESSION_START ask. */
bool rgpu_device_usable(struct rgpu_device *dev)
{
	bool usable;

	mutex_lock(&dev->lock);
	usable = dev->online && !dev->dead;
	mutex_unlock(&dev->lock);
	return usable;
}

/* Makes /dev/rgpuN: N is *@minor, or with @any the first that is free, then told in *@minor. EEXIST, ENOSPC. */
int rgpu_device_add(u32 *minor, bool any)
{
	struct rgpu_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	u32 n;
	int err;

	if (!dev)
		return -ENOMEM;
	device_initialize(&dev->dev);
	dev->dev.class = &rgpu_class;
	dev->dev.release = rgpu_device_release;
	dev->dev.groups = rgpu_device_groups;
	mutex_init(&dev->lock);
	cdev_init(&dev->cdev, &rgpu_file_fops);
	dev->cdev.owner = THIS_MODULE;

	/* The number is taken first; others see the device once it stands. */
	if (any) {
		err = xa_alloc(&rgpu_devices, &n, NULL, XA_LIMIT(0, RGPU_DEVICES_MAX - 1), GFP_KERNEL);
		if (err == -EBUSY)
			err = -ENOSPC;
	} else {
		n = *minor;
		err = n < RGPU_DEVICES_MAX ? xa_insert(&rgpu_devices, n, NULL, GFP_KERNEL) : -ENOSPC;
		if (err == -EBUSY)
			err = -EEXIST;
	}
	if (err)
		goto fail;
	dev->minor = n;
	dev->dev.devt = rgpu_devt + n;
	err = dev_set_name(&dev->dev, "rgpu%u", n);
	if (!err)
		err = cdev_device_add(&dev->cdev, &dev->dev);
	if (err) {
		xa_erase(&rgpu_devices, n);
		goto fail;
	}
	xa_store(&rgpu_devices, n, dev, GFP_KERNEL); /* the place was reserved: needs no memory */
	*minor = n;
	return 0;
fail:
	put_device(&dev->dev);
	return err;
}

/* Returns a reference, or NULL. */
struct rgpu_device *rgpu_device_get(u32 minor)
{
	struct rgpu_device *dev;

	xa_lock(&rgpu_devices);
	dev = xa_load(&rgpu_devices, minor);
	if (dev)
		get_device(&dev->dev);
	xa_unlock(&rgpu_devices);
	return dev;
}

/* The first device at or after *@minor, which it sets: a reference, or NULL at the end. */
struct rgpu_device *rgpu_device_next(unsigned long *minor)
{
	struct rgpu_device *dev;

	xa_lock(&rgpu_devices);
	dev = xa_find(&rgpu_devices, minor, ULONG_MAX, XA_PRESENT);
	if (dev)
		get_device(&dev->dev);
	xa_unlock(&rgpu_devices);
	return dev;
}

/* Removes the node and fails the sessions; files that are open keep the rest alive. ENODEV when there is no such device. */
int rgpu_device_del(u32 minor)
{
	struct rgpu_device *dev = xa_erase(&rgpu_devices, minor);

	if (!dev)
		return -ENODEV;
	cdev_device_del(&dev->cdev, &dev->dev);
	mutex_lock(&dev->lock);
	WRITE_ONCE(dev->dead, true);
	WRITE_ONCE(dev->online, false);
	mutex_unlock(&dev->lock);
	rgpu_sessions_lost_device(dev);
	rgpu_nl_dev_event(minor, false, true);
	put_device(&dev->dev);
	return 0;
}

/* The proxy went away, and with it what it said was there. */
void rgpu_devices_offline(void)
{
	struct rgpu_device *dev;
	unsigned long n = 0;
	bool was;

	for (; (dev = rgpu_device_next(&n)); n++) {
		mutex_lock(&dev->lock);
		was = dev->online;
		WRITE_ONCE(dev->online, false);
		mutex_unlock(&dev->lock);
		if (was) {
			rgpu_nl_dev_event(dev->minor, false, false);
			kobject_uevent(&dev->dev.kobj, KOBJ_CHANGE);
		}
		put_device(&dev->dev);
	}
}

void rgpu_devices_exit(void)
{
	struct rgpu_device *dev;
	unsigned long n = 0;

	for (; (dev = rgpu_device_next(&n)); n++) {
		rgpu_device_del(n);
		put_device(&dev->dev);
	}
	xa_destroy(&rgpu_devices);
}
