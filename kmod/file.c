// SPDX-License-Identifier: GPL-2.0
/* /dev/rgpuN: open, the program's ioctls, mmap, close. */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "rgpu.h"

/*
 * Copies an argument that begins with its size: shorter ones are filled with zeros, longer ones must be zero beyond what we know
 * (E2BIG). *@usize is for rgpu_copy_out().
 */
int rgpu_copy_in(void *dst, size_t ksize, unsigned long arg, u32 *usize)
{
	if (get_user(*usize, (u32 __user *)arg))
		return -EFAULT;
	if (*usize < 2 * sizeof(u32))
		return -EINVAL;
	if (*usize > PAGE_SIZE)
		return -E2BIG;
	return copy_struct_from_user(dst, ksize, (void __user *)arg, *usize);
}

/* Copies an argument back, as much as the caller knows of it. */
int rgpu_copy_out(unsigned long arg, const void *src, size_t ksize, u32 usize)
{
	return copy_to_user((void __user *)arg, src, min_t(size_t, ksize, usize)) ? -EFAULT : 0;
}

static int rgpu_open(struct inode *inode, struct file *file)
{
	struct rgpu_device *dev = container_of(inode->i_cdev, struct rgpu_device, cdev);
	struct rgpu_file *rf;

	if (!current->mm)
		return -EINVAL;
	if (!rgpu_device_usable(dev))
		return -ENODEV;
	rf = kzalloc(sizeof(*rf), GFP_KERNEL_ACCOUNT);
	if (!rf)
		return -ENOMEM;
	get_device(&dev->dev);
	rf->dev = dev;
	mmgrab(current->mm);
	rf->mm = current->mm;
	rf->uid = current_euid();
	file->private_data = rf;
	atomic_long_inc(&rgpu_stats.files);
	return nonseekable_open(inode, file);
}

static int rgpu_release(struct inode *inode, struct file *file)
{
	struct rgpu_file *rf = file->private_data;

	if (rf->ses)
		rgpu_session_close(rf->ses);
	mmdrop(rf->mm);
	put_device(&rf->dev->dev);
	atomic_long_dec(&rgpu_stats.files);
	kfree(rf);
	return 0;
}

/* The file's session; ENOTCONN before SESSION_START or JOIN. It stays for as long as the file is open. */
static struct rgpu_session *rgpu_file_session(struct rgpu_file *rf)
{
	struct rgpu_session *ses = smp_load_acquire(&rf->ses); /* and with it what START or JOIN made */

	return ses ? ses : ERR_PTR(-ENOTCONN);
}

/* One START or JOIN at a time and one that succeeds: EALREADY for others. */
static int rgpu_file_begin(struct rgpu_file *rf)
{
	return test_and_set_bit(0, &rf->starting) ? -EALREADY : 0;
}

static void rgpu_file_end(struct rgpu_file *rf, struct rgpu_session *ses)
{
	if (ses)
		smp_store_release(&rf->ses, ses); /* for rgpu_file_session() */
	else
		clear_bit(0, &rf->starting);
}

static long rgpu_ioc_info(struct rgpu_file *rf, unsigned long arg)
{
	struct rgpu_device *dev = rf->dev;
	void *props = NULL;
	struct rgpu_info info;
	u32 usize, room;
	int err = rgpu_copy_in(&info, sizeof(info), arg, &usize);

	if (err)
		return err;
	if (info.flags || info.pad)
		return -EINVAL;
	room = info.props_len;
	info.abi_major = RGPU_ABI_MAJOR;
	info.abi_minor = RGPU_ABI_MINOR;
	info.minor = dev->minor;
	info.features = RGPU_FEATURES;

	/* A snapshot: what is copied to user space must not be held up with the lock. */
	mutex_lock(&dev->lock);
	memcpy(info.uuid, dev->uuid, sizeof(info.uuid));
	memcpy(info.server, dev->server, sizeof(info.server));
	memcpy(info.name, dev->name, sizeof(info.name));
	info.mem_total = dev->mem_total;
	info.props_len = dev->props_len;
	room = min(room, dev->props_len);
	if (room) {
		props = kmemdup(dev->props, room, GFP_KERNEL);
		err = props ? 0 : -ENOMEM;
	}
	mutex_unlock(&dev->lock);

	if (room && !err && copy_to_user(u64_to_user_ptr(info.props), props, room))
		err = -EFAULT;
	kfree(props);
	return err ? err : rgpu_copy_out(arg, &info, sizeof(info), usize);
}

/* A request with @len bytes from @data, and room for @room in its answer. */
static struct rgpu_request *rgpu_file_request(u32 type, u64 data, u32 len, u32 room)
{
	struct rgpu_request *req;
	void *in;

	if (len > RGPU_CONTROL_MAX || room > RGPU_CONTROL_MAX)
		return ERR_PTR(-EMSGSIZE);
	req = rgpu_request_new(type);
	if (!req)
		return ERR_PTR(-ENOMEM);
	req->in_len = len;
	req->room = room;
	if (!len)
		return req;
	in = kmalloc(len, GFP_KERNEL_ACCOUNT);
	req->in = in;
	if (in && !copy_from_user(in, u64_to_user_ptr(data), len))
		return req;
	rgpu_request_put(req);
	return ERR_PTR(in ? -EFAULT : -ENOMEM);
}

/* The answer's bytes, which come with errors too: the proxy can say more than a number. */
static int rgpu_file_answer(struct rgpu_request *req, u64 data, u32 *len)
{
	*len = req->out_len;
	if (req->out_len && copy_to_user(u64_to_user_ptr(data), req->out, req->out_len))
		return -EFAULT;
	return 0;
}

static long rgpu_ioc_session_start(struct rgpu_file *rf, unsigned long arg)
{
	struct rgpu_session *ses = NULL;
	struct rgpu_session_start s;
	struct rgpu_request *req;
	u32 usize;
	int err = rgpu_copy_in(&s, sizeof(s), arg, &usize), fault;

	if (err)
		return err;
	if (s.flags)
		return -EINVAL;
	req = rgpu_file_request(RGPU_REQ_START, s.data, s.data_len, s.data_room);
	if (IS_ERR(req))
		return PTR_ERR(req);
	err = rgpu_file_begin(rf);
	if (err)
		goto out;
	err = rgpu_session_start(rf, req, &ses);
	if (err == -ERESTARTNOINTR) {
		rgpu_file_end(rf, NULL);
		goto out;
	}
	fault = rgpu_file_answer(req, s.data, &s.data_len);
	if (ses) {
		memcpy(s.sid, ses->sid, sizeof(s.sid));
		s.id = ses->id;
	}
	fault = fault ? fault : rgpu_copy_out(arg, &s, sizeof(s), usize);
	if (fault && ses) {
		/* Nobody knows of the session yet, nor could make use of it. */
		rgpu_session_close(ses);
		ses = NULL;
	}
	rgpu_file_end(rf, ses);
	err = err ? err : fault;
out:
	rgpu_request_put(req);
	return err;
}

static long rgpu_ioc_session_join(struct rgpu_file *rf, unsigned long arg)
{
	struct rgpu_session *ses = NULL;
	struct rgpu_session_join j;
	struct rgpu_file *other;
	struct file *file;
	u32 usize;
	int err = rgpu_copy_in(&j, sizeof(j), arg, &usize);

	if (err)
		return err;
	if (j.flags)
		return -EINVAL;
	file = fget(j.fd);
	if (!file)
		return -EBADF;
	if (file->f_op != &rgpu_file_fops) {
		err = -EBADF;
		goto out;
	}
	other = file->private_data;
	if (other->mm != current->mm) {
		err = -EPERM;
		goto out;
	}
	ses = rgpu_file_session(other);
	if (IS_ERR(ses)) {
		err = PTR_ERR(ses);
		goto out;
	}
	err = rgpu_file_begin(rf);
	if (err)
		goto out;
	err = rgpu_session_join(ses, rf, &j.device);
	if (!err) {
		err = rgpu_copy_out(arg, &j, sizeof(j), usize);
		if (err)
			rgpu_session_close(ses); /* the device stays known to the session: a second try finds it */
	}
	rgpu_file_end(rf, err ? NULL : ses);
out:
	fput(file);
	return err;
}

static long rgpu_ioc_channel_create(struct rgpu_session *ses, unsigned long arg)
{
	struct rgpu_channel_create c;
	u32 usize;
	int err = rgpu_copy_in(&c, sizeof(c), arg, &usize);

	if (err)
		return err;
	if (c.flags || c.pad)
		return -EINVAL;
	err = rgpu_channel_create(ses, c.sq_size, c.cq_size, &c.channel);
	if (err)
		return err;
	err = rgpu_copy_out(arg, &c, sizeof(c), usize);
	if (err)
		rgpu_channel_destroy(ses, c.channel);
	return err;
}

/* What KICK and CHANNEL_DESTROY take. */
static int rgpu_channel_arg(unsigned long arg, u32 *channel)
{
	struct rgpu_channel_ref ref;
	u32 usize;
	int err = rgpu_copy_in(&ref, sizeof(ref), arg, &usize);

	if (err)
		return err;
	*channel = ref.channel;
	return ref.flags || ref.pad ? -EINVAL : 0;
}

static long rgpu_ioc_channel_destroy(struct rgpu_session *ses, unsigned long arg)
{
	u32 channel;
	int err = rgpu_channel_arg(arg, &channel);

	return err ? err : rgpu_channel_destroy(ses, channel);
}

static long rgpu_ioc_kick(struct rgpu_session *ses, unsigned long arg)
{
	u32 channel;
	int err = rgpu_channel_arg(arg, &channel);

	return err ? err : rgpu_kick_proxy(ses, channel);
}

static long rgpu_ioc_wait(struct rgpu_session *ses, unsigned long arg)
{
	struct rgpu_wait w;
	u32 usize;
	int err = rgpu_copy_in(&w, sizeof(w), arg, &usize);

	if (err)
		return err;
	return w.flags ? -EINVAL : rgpu_wait(ses, w.channel, w.timeout_ms);
}

static long rgpu_ioc_bo_create(struct rgpu_session *ses, unsigned long arg)
{
	struct rgpu_bo_create c;
	u32 usize;
	int err = rgpu_copy_in(&c, sizeof(c), arg, &usize);

	if (err)
		return err;
	if (c.flags || c.pad)
		return -EINVAL;
	err = rgpu_bo_create(ses, c.bytes, &c.handle);
	if (err)
		return err;
	err = rgpu_copy_out(arg, &c, sizeof(c), usize);
	if (err)
		rgpu_bo_destroy(ses, c.handle);
	return err;
}

static long rgpu_ioc_bo_destroy(struct rgpu_session *ses, unsigned long arg)
{
	struct rgpu_bo_ref ref;
	u32 usize;
	int err = rgpu_copy_in(&ref, sizeof(ref), arg, &usize);

	if (err)
		return err;
	return ref.flags || ref.pad ? -EINVAL : rgpu_bo_destroy(ses, ref.handle);
}

static long rgpu_ioc_bo_dirty(struct rgpu_session *ses, unsigned long arg)
{
	struct rgpu_bo_dirty __user *out = (void __user *)arg;
	struct rgpu_bo_dirty d;
	u32 usize;
	int err = rgpu_copy_in(&d, sizeof(d), arg, &usize);

	if (err)
		return err;
	if (d.flags || d.pad)
		return -EINVAL;
	return rgpu_bo_dirty(ses, d.handle, d.first, d.pages, u64_to_user_ptr(d.bitmap), usize < sizeof(d) ? NULL : &out->count);
}

static long rgpu_ioc_control(struct rgpu_session *ses, unsigned long arg)
{
	struct rgpu_request *req;
	struct rgpu_control c;
	u32 usize;
	int err = rgpu_copy_in(&c, sizeof(c), arg, &usize), fault;

	if (err)
		return err;
	if (c.flags || c.pad)
		return -EINVAL;
	req = rgpu_file_request(RGPU_REQ_CONTROL, c.data, c.data_len, c.data_room);
	if (IS_ERR(req))
		return PTR_ERR(req);
	req->op = c.op;
	req->ses = rgpu_session_get(ses);
	err = rgpu_relay_call(req);
	fault = rgpu_file_answer(req, c.data, &c.data_len);
	fault = fault ? fault : rgpu_copy_out(arg, &c, sizeof(c), usize);
	rgpu_request_put(req);
	return err ? err : fault;
}

/* What needs a session, the most frequent first. */
static const struct {
	unsigned int cmd;
	long (*call)(struct rgpu_session *ses, unsigned long arg);
} rgpu_session_ioctls[] = {
	{ RGPU_IOC_KICK, rgpu_ioc_kick },
	{ RGPU_IOC_WAIT, rgpu_ioc_wait },
	{ RGPU_IOC_CONTROL, rgpu_ioc_control },
	{ RGPU_IOC_BO_DIRTY, rgpu_ioc_bo_dirty },
	{ RGPU_IOC_BO_CREATE, rgpu_ioc_bo_create },
	{ RGPU_IOC_BO_DESTROY, rgpu_ioc_bo_destroy },
	{ RGPU_IOC_CHANNEL_CREATE, rgpu_ioc_channel_create },
	{ RGPU_IOC_CHANNEL_DESTROY, rgpu_ioc_channel_destroy },
};

static long rgpu_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct rgpu_file *rf = file->private_data;
	struct rgpu_session *ses;
	int i;

	if (current->mm != rf->mm)
		return -EPERM;
	if (READ_ONCE(rf->dev->dead))
		return -ENODEV;
	switch (RGPU_NOSIZE(cmd)) {
	case RGPU_NOSIZE(RGPU_IOC_INFO):
		return rgpu_ioc_info(rf, arg);
	case RGPU_NOSIZE(RGPU_IOC_SESSION_START):
		return rgpu_ioc_session_start(rf, arg);
	case RGPU_NOSIZE(RGPU_IOC_SESSION_JOIN):
		return rgpu_ioc_session_join(rf, arg);
	}
	for (i = 0; i < ARRAY_SIZE(rgpu_session_ioctls); i++) {
		if (RGPU_NOSIZE(cmd) != RGPU_NOSIZE(rgpu_session_ioctls[i].cmd))
			continue;
		ses = rgpu_file_session(rf);
		return IS_ERR(ses) ? PTR_ERR(ses) : rgpu_session_ioctls[i].call(ses, arg);
	}
	return -ENOTTY;
}

static int rgpu_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct rgpu_file *rf = file->private_data;
	struct rgpu_session *ses = rgpu_file_session(rf);

	if (vma->vm_mm != rf->mm)
		return -EPERM;
	if (READ_ONCE(rf->dev->dead))
		return -ENODEV;
	return IS_ERR(ses) ? PTR_ERR(ses) : rgpu_mem_mmap(ses, vma, false);
}

/* /proc/PID/fdinfo/FD: what `lsof` cannot know. Whoever may read that file may know this. */
static void rgpu_show_fdinfo(struct seq_file *m, struct file *file)
{
	static const char *const states[] = { "starting", "live", "recovering", "failed" };
	struct rgpu_file *rf = file->private_data;
	struct rgpu_session *ses = rgpu_file_session(rf);

	seq_printf(m, "rgpu-device:\t%u\n", rf->dev->minor);
	if (IS_ERR(ses))
		return;
	seq_printf(m, "rgpu-session:\t%llx\n", ses->id);
	seq_printf(m, "rgpu-sid:\t%*phN\n", RGPU_SID_LEN, ses->sid);
	seq_printf(m, "rgpu-state:\t%s\n", states[READ_ONCE(ses->state)]);
	seq_printf(m, "rgpu-link:\t%s\n", READ_ONCE(ses->down_since) ? "down" : "up");
	seq_printf(m, "rgpu-channels:\t%u\n", READ_ONCE(ses->nchannels));
	seq_printf(m, "rgpu-memory:\t%llu KiB\n", (u64)atomic64_read(&ses->bytes) >> 10);
}

const struct file_operations rgpu_file_fops = {
	.owner = THIS_MODULE,
	.open = rgpu_open,
	.release = rgpu_release,
	.mmap = rgpu_mmap,
	.show_fdinfo = rgpu_show_fdinfo,
	.unlocked_ioctl = rgpu_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
