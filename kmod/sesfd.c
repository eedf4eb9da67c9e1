// SPDX-License-Identifier: GPL-2.0
/* The session fd: a proxy's rights to one session, in one descriptor, and how they end. */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "rgpu.h"

static const struct address_space_operations rgpu_sesfd_aops = {};

/*
 * Takes the rights away, for good: from here on this fd's mappings are holes, and neither fault nor mmap nor ioctl gets through.
 * A page that the kernel itself still writes for the old proxy (a receive in flight) is not recalled. session.lock is held, which
 * keeps @sfd: its release wants it first.
 */
void rgpu_sesfd_revoke(struct rgpu_sesfd *sfd)
{
	lockdep_assert_held(&sfd->ses->lock);
	down_write(&sfd->map_lock);
	WRITE_ONCE(sfd->revoked, true);
	up_write(&sfd->map_lock);
	/* A VMA not linked to the mapping yet has no pages: they only come by faults, which ask rgpu_sesfd_enter(). */
	unmap_mapping_range(&sfd->mapping, 0, 0, 1);
}

/* Around a fault: false when the rights are gone, else rgpu_sesfd_leave() follows. */
bool rgpu_sesfd_enter(struct vm_area_struct *vma)
{
	struct rgpu_sesfd *sfd = vma->vm_file->private_data;

	down_read(&sfd->map_lock);
	if (!sfd->revoked)
		return true;
	up_read(&sfd->map_lock);
	return false;
}

void rgpu_sesfd_leave(struct vm_area_struct *vma)
{
	struct rgpu_sesfd *sfd = vma->vm_file->private_data;

	up_read(&sfd->map_lock);
}

static int rgpu_sesfd_release(struct inode *inode, struct file *file)
{
	struct rgpu_sesfd *sfd = file->private_data;

	rgpu_session_lost_proxy(sfd->ses, sfd);
	rgpu_session_put(sfd->ses);
	file->f_mapping = inode->i_mapping;
	kfree(sfd);
	return 0;
}

static int rgpu_sesfd_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct rgpu_sesfd *sfd = file->private_data;

	if (READ_ONCE(sfd->revoked))
		return -ESTALE;
	return rgpu_mem_mmap(sfd->ses, vma, true);
}

static __poll_t rgpu_sesfd_poll(struct file *file, struct poll_table_struct *wait)
{
	struct rgpu_sesfd *sfd = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &sfd->ses->proxy_wq, wait);
	if (READ_ONCE(sfd->revoked) || READ_ONCE(sfd->ses->ended))
		mask |= EPOLLHUP;
	/* A bit that is set while we look comes with a wake-up, and poll asks again. */
	if (!data_race(bitmap_empty(sfd->ses->proxy_kicked, RGPU_CHANNELS_MAX)))
		mask |= EPOLLIN | EPOLLRDNORM;
	return mask;
}

static long rgpu_sesfd_kicked(struct rgpu_session *ses, unsigned long arg)
{
	struct rgpu_kicked k;
	u32 usize, i;
	int err = rgpu_copy_in(&k, sizeof(k), arg, &usize);

	if (err)
		return err;
	if (k.flags)
		return -EINVAL;
	memset(k.channels, 0, sizeof(k.channels));
	for (i = 0; i < RGPU_CHANNELS_MAX; i++) {
		/* Clearing is ordered before the proxy's look at the ring: a kick after it sets the bit anew. */
		if (test_bit(i, ses->proxy_kicked) && test_and_clear_bit(i, ses->proxy_kicked))
			k.channels[i / 64] |= 1ull << i % 64;
	}
	err = rgpu_copy_out(arg, &k, sizeof(k), usize);
	if (err)
		rgpu_kick_all_proxy(ses); /* what was taken and could not be told */
	return err;
}

static long rgpu_sesfd_channel_info(struct rgpu_session *ses, unsigned long arg)
{
	struct rgpu_channel_info info;
	struct rgpu_channel *ch;
	u32 usize;
	int err = rgpu_copy_in(&info, sizeof(info), arg, &usize);

	if (err)
		return err;
	if (info.flags)
		return -EINVAL;
	ch = rgpu_channel_find(ses, info.channel);
	if (!ch)
		return -ENOENT;
	info.alive = READ_ONCE(ch->alive);
	info.sq_size = ch->sq_size;
	info.cq_size = ch->cq_size;
	return rgpu_copy_out(arg, &info, sizeof(info), usize);
}

static long rgpu_sesfd_bo_info(struct rgpu_session *ses, unsigned long arg)
{
	struct rgpu_bo_ref ref;
	struct rgpu_mem *mem;
	u32 usize;
	int err = rgpu_copy_in(&ref, sizeof(ref), arg, &usize);

	if (err)
		return err;
	if (ref.flags || ref.pad)
		return -EINVAL;
	mutex_lock(&ses->lock);
	mem = xa_load(&ses->bos, ref.handle);
	if (mem)
		ref.bytes = (u64)mem->npages << PAGE_SHIFT;
	mutex_unlock(&ses->lock);
	return mem ? rgpu_copy_out(arg, &ref, sizeof(ref), usize) : -ENOENT;
}

static long rgpu_sesfd_kick(struct rgpu_session *ses, unsigned long arg)
{
	struct rgpu_channel_ref ref;
	u32 usize;
	int err = rgpu_copy_in(&ref, sizeof(ref), arg, &usize);

	if (err)
		return err;
	return ref.flags || ref.pad ? -EINVAL : rgpu_kick_app(ses, ref.channel);
}

/* LIVE ends a recovery (a start is ended by REPLY); FAILED is allowed always. */
static long rgpu_sesfd_set(struct rgpu_sesfd *sfd, unsigned long arg)
{
	struct rgpu_session *ses = sfd->ses;
	struct rgpu_session_set set;
	u32 usize;
	int err = rgpu_copy_in(&set, sizeof(set), arg, &usize);

	if (err)
		return err;
	if (set.flags & ~RGPU_SET_LINK_DOWN || (set.flags && set.state != RGPU_SESSION_LIVE) ||
	    (set.state != RGPU_SESSION_LIVE && set.state != RGPU_SESSION_FAILED))
		return -EINVAL;
	if (set.state == RGPU_SESSION_FAILED ? set.reason >= 0 || set.reason < -511 : set.reason != 0)
		return -EINVAL;
	mutex_lock(&ses->lock);
	if (ses->sesfd != sfd)
		err = -ESTALE;
	else if (ses->state == RGPU_SESSION_FAILED)
		err = -ESHUTDOWN;
	else if (set.state == RGPU_SESSION_LIVE && ses->state == RGPU_SESSION_STARTING)
		err = -EINVAL;
	else if (set.state != ses->state)
		rgpu_session_set_state(ses, set.state, set.reason);
	if (!err && set.state == RGPU_SESSION_LIVE)
		rgpu_session_set_link(ses, set.flags & RGPU_SET_LINK_DOWN);
	mutex_unlock(&ses->lock);
	return err;
}

static long rgpu_sesfd_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct rgpu_sesfd *sfd = file->private_data;

	if (READ_ONCE(sfd->revoked))
		return -ESTALE;
	switch (RGPU_NOSIZE(cmd)) {
	case RGPU_NOSIZE(RGPU_SES_KICKED):
		return rgpu_sesfd_kicked(sfd->ses, arg);
	case RGPU_NOSIZE(RGPU_SES_CHANNEL_INFO):
		return rgpu_sesfd_channel_info(sfd->ses, arg);
	case RGPU_NOSIZE(RGPU_SES_BO_INFO):
		return rgpu_sesfd_bo_info(sfd->ses, arg);
	case RGPU_NOSIZE(RGPU_SES_SET):
		return rgpu_sesfd_set(sfd, arg);
	case RGPU_NOSIZE(RGPU_IOC_KICK):
		return rgpu_sesfd_kick(sfd->ses, arg);
	}
	return -ENOTTY;
}

static const struct file_operations rgpu_sesfd_fops = {
	.owner = THIS_MODULE,
	.release = rgpu_sesfd_release,
	.mmap = rgpu_sesfd_mmap,
	.poll = rgpu_sesfd_poll,
	.unlocked_ioctl = rgpu_sesfd_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* A file with no rights yet: rgpu_proxy_attach() gives them by making it the session's. */
struct file *rgpu_sesfd_open(struct rgpu_session *ses, struct rgpu_sesfd **out)
{
	struct rgpu_sesfd *sfd = kzalloc(sizeof(*sfd), GFP_KERNEL_ACCOUNT);
	struct file *file;

	if (!sfd)
		return ERR_PTR(-ENOMEM);
	file = anon_inode_getfile("[rgpu-session]", &rgpu_sesfd_fops, sfd, O_RDWR | O_CLOEXEC);
	if (IS_ERR(file)) {
		kfree(sfd);
		return file;
	}
	init_rwsem(&sfd->map_lock);
	sfd->ses = rgpu_session_get(ses);
	/* All anonymous inodes are one: a mapping of our own, or unmap_mapping_range() would hit everybody's. */
	address_space_init_once(&sfd->mapping);
	sfd->mapping.a_ops = &rgpu_sesfd_aops;
	sfd->mapping.host = file_inode(file);
	file->f_mapping = &sfd->mapping;
	*out = sfd;
	return file;
}
