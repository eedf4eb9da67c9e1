// SPDX-License-Identifier: GPL-2.0
/* /dev/rgpu-ctl: the descriptor that makes a process the proxy, and the module's counters in sysfs. */
#include <linux/file.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "rgpu.h"

struct rgpu_stats rgpu_stats;

static int rgpu_ctl_open(struct inode *inode, struct file *file)
{
	struct rgpu_ctl *rc = kzalloc(sizeof(*rc), GFP_KERNEL_ACCOUNT);

	if (!rc)
		return -ENOMEM;
	file->private_data = rc;
	return nonseekable_open(inode, file);
}

static int rgpu_ctl_release(struct inode *inode, struct file *file)
{
	rgpu_proxy_ctl_closed(file->private_data);
	kfree(file->private_data);
	return 0;
}

/* Readable while there is something to pull, for its proxy; hung up once the registration has ended. */
static __poll_t rgpu_ctl_poll(struct file *file, struct poll_table_struct *wait)
{
	struct rgpu_ctl *ctl = file->private_data;

	poll_wait(file, &rgpu_proxy.wq, wait);
	if (!READ_ONCE(ctl->used))
		return 0;
	if (READ_ONCE(rgpu_proxy.ctl) != ctl)
		return EPOLLHUP;
	return rgpu_relay_ready() ? EPOLLIN | EPOLLRDNORM : 0;
}

static long rgpu_ctl_session_fd(struct rgpu_ctl *ctl, unsigned long arg)
{
	struct rgpu_session_fd arg_fd;
	struct file *file;
	u32 usize;
	int err, fd;

	err = rgpu_copy_in(&arg_fd, sizeof(arg_fd), arg, &usize);
	if (err)
		return err;
	if (arg_fd.flags || arg_fd.pad)
		return -EINVAL;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	err = rgpu_proxy_attach(ctl, arg_fd.id, &file);
	if (err)
		goto no_file;
	arg_fd.fd = fd;
	err = rgpu_copy_out(arg, &arg_fd, sizeof(arg_fd), usize);
	if (err)
		goto no_copy;
	fd_install(fd, file); /* last: from here on another thread can close it */
	return 0;
no_copy:
	fput(file);
no_file:
	put_unused_fd(fd);
	return err;
}

static long rgpu_ctl_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	switch (RGPU_NOSIZE(cmd)) {
	case RGPU_NOSIZE(RGPU_CTL_SESSION_FD):
		return rgpu_ctl_session_fd(file->private_data, arg);
	}
	return -ENOTTY;
}

static const struct file_operations rgpu_ctl_fops = {
	.owner = THIS_MODULE,
	.open = rgpu_ctl_open,
	.release = rgpu_ctl_release,
	.poll = rgpu_ctl_poll,
	.unlocked_ioctl = rgpu_ctl_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

bool rgpu_is_ctl(struct file *file)
{
	return file->f_op == &rgpu_ctl_fops;
}

#define RGPU_STAT(name)                                                                                                          \
	static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf)                                 \
	{                                                                                                                        \
		return sysfs_emit(buf, "%ld\n", atomic_long_read(&rgpu_stats.name));                                             \
	}                                                                                                                        \
	static DEVICE_ATTR_RO(name)

RGPU_STAT(files);
RGPU_STAT(sessions);
RGPU_STAT(gone);
RGPU_STAT(channels);
RGPU_STAT(bos);
RGPU_STAT(bo_bytes);
RGPU_STAT(pages);
RGPU_STAT(requests);

static ssize_t proxy_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(rgpu_proxy.registered));
}
static DEVICE_ATTR_RO(proxy);

static ssize_t epoch_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(rgpu_proxy.epoch));
}
static DEVICE_ATTR_RO(epoch);

static ssize_t abi_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d.%d\n", RGPU_ABI_MAJOR, RGPU_ABI_MINOR);
}
static DEVICE_ATTR_RO(abi);

static struct attribute *rgpu_ctl_attrs[] = {
	&dev_attr_files.attr, &dev_attr_sessions.attr, &dev_attr_gone.attr,  &dev_attr_channels.attr,
	&dev_attr_bos.attr,   &dev_attr_bo_bytes.attr, &dev_attr_pages.attr, &dev_attr_requests.attr,
	&dev_attr_proxy.attr, &dev_attr_epoch.attr,    &dev_attr_abi.attr,   NULL,
};
ATTRIBUTE_GROUPS(rgpu_ctl);

static struct cdev rgpu_ctl_cdev;
static struct device *rgpu_ctl_dev;

int rgpu_ctl_init(void)
{
	dev_t devt = rgpu_devt + RGPU_DEVICES_MAX;
	int err;

	cdev_init(&rgpu_ctl_cdev, &rgpu_ctl_fops);
	rgpu_ctl_cdev.owner = THIS_MODULE;
	err = cdev_add(&rgpu_ctl_cdev, devt, 1);
	if (err)
		return err;
	rgpu_ctl_dev = device_create_with_groups(&rgpu_class, NULL, devt, NULL, rgpu_ctl_groups, "rgpu-ctl");
	if (IS_ERR(rgpu_ctl_dev)) {
		cdev_del(&rgpu_ctl_cdev);
		return PTR_ERR(rgpu_ctl_dev);
	}
	return 0;
}

void rgpu_ctl_exit(void)
{
	device_unregister(rgpu_ctl_dev);
	cdev_del(&rgpu_ctl_cdev);
}
