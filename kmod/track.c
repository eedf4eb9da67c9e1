// SPDX-License-Identifier: GPL-2.0
/* Tracked maps of a buffer object: which pages the program wrote, as its faults tell. */
#include <linux/anon_inodes.h>
#include <linux/bitmap.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "rgpu.h"

/*
 * A page of such a map is there for reading only, until the first write faults: that sets its bit and lets the writes go on. Who
 * takes the bits (RGPU_IOC_BO_DIRTY) takes the pages out of the maps, too, so that the next write faults anew. It is the
 * kernel's usual way to know of dirty pages, so it sees what system calls write as well, and no signal handler is needed.
 *
 * Order: a fault holds the page's lock from before it sets the bit until the page is writable (the kernel unlocks it then); the
 * taker holds it from before he clears the bit until the page is out of the maps. So a page that is writable has its bit. What
 * was written before it was taken out is in memory when he reads it, and what comes after has a bit of its own.
 */
struct rgpu_track {
	struct address_space mapping; /* finds the tracked maps of this object, and only these */
	unsigned long dirty[];	      /* bit per page */
};

#define RGPU_TRACK_CHUNK (8 * PAGE_SIZE) /* pages that one round of BO_DIRTY looks at */
#define RGPU_TRACK_GAP	 8		 /* clean pages between dirty ones that are rather taken out too */

static const struct address_space_operations rgpu_track_aops = {};

static int rgpu_track_release(struct inode *inode, struct file *file)
{
	file->f_mapping = inode->i_mapping;
	rgpu_mem_put(file->private_data);
	return 0;
}

static const struct file_operations rgpu_track_fops = {
	.owner = THIS_MODULE,
	.release = rgpu_track_release,
};

static struct rgpu_track *rgpu_track_of(struct rgpu_mem *mem)
{
	struct rgpu_track *track = READ_ONCE(mem->track), *old;

	if (track)
		return track;
	track = kvzalloc(struct_size(track, dirty, BITS_TO_LONGS(mem->npages)), GFP_KERNEL_ACCOUNT);
	if (!track)
		return NULL;
	address_space_init_once(&track->mapping);
	track->mapping.a_ops = &rgpu_track_aops;
	old = cmpxchg(&mem->track, NULL, track);
	if (!old)
		return track;
	kvfree(track);
	return old;
}

/* For a map that is being made: gives it a file that finds it among the object's tracked maps alone. */
int rgpu_track_map(struct rgpu_mem *mem, struct vm_area_struct *vma)
{
	struct rgpu_track *track = rgpu_track_of(mem);
	struct file *file;

	if (!track)
		return -ENOMEM;
	file = anon_inode_getfile("[rgpu-tracked]", &rgpu_track_fops, mem, O_RDWR);
	if (IS_ERR(file))
		return PTR_ERR(file);
	kref_get(&mem->ref);
	track->mapping.host = file_inode(file); /* of all anonymous files the same */
	file->f_mapping = &track->mapping;
	vma_set_file(vma, file);
	fput(file);
	return 0;
}

vm_fault_t rgpu_track_mkwrite(struct vm_fault *vmf)
{
	struct rgpu_mem *mem = vmf->vma->vm_private_data;

	lock_page(vmf->page);
	set_bit(vmf->pgoff, mem->track->dirty);
	return VM_FAULT_LOCKED;
}

/* Takes out of the maps what runs of dirty pages lie in @bits, of @n pages from @first. */
static void rgpu_track_protect(struct rgpu_track *track, const unsigned long *bits, unsigned long first, unsigned long n)
{
	unsigned long from = find_first_bit(bits, n), to, next;

	while (from < n) {
		to = find_next_zero_bit(bits, n, from);
		next = find_next_bit(bits, n, to);
		while (next < n && next - to <= RGPU_TRACK_GAP) {
			to = find_next_zero_bit(bits, n, next);
			next = find_next_bit(bits, n, to);
		}
		unmap_mapping_range(&track->mapping, (loff_t)(first + from) << PAGE_SHIFT, (loff_t)(to - from) << PAGE_SHIFT, 1);
		from = next;
	}
}

/*
 * Moves the bits of @n pages from @first to @bits, which are zero. Returns how many were set. Takers lock pages in the order of
 * their numbers, and a fault locks one alone, so nobody waits in a circle.
 */
static unsigned long rgpu_track_take(struct rgpu_mem *mem, unsigned long *bits, unsigned long first, unsigned long n)
{
	struct rgpu_track *track = mem->track;
	unsigned long i, count = 0;

	for (i = first;; i++) {
		/* A bit that a fault sets while we look is this call's or the next one's; which, its page's lock decides. */
		i = data_race(find_next_bit(track->dirty, first + n, i));
		if (i >= first + n)
			break;
		lock_page(mem->pages[i]);
		if (test_and_clear_bit(i, track->dirty)) {
			__set_bit(i - first, bits);
			count++;
		} else {
			unlock_page(mem->pages[i]);
		}
	}
	if (count)
		rgpu_track_protect(track, bits, first, n);
	for_each_set_bit(i, bits, n) unlock_page(mem->pages[first + i]);
	return count;
}

/*
 * What was dirty of @n pages from @first: bits to the user's @bitmap, whole u64s, their number to his @count, unless that is
 * NULL. EINVAL beyond the object or when it has no tracked map. With another error no bit is lost, so all of them are kept here
 * until the user has them.
 */
int rgpu_track_fetch(struct rgpu_mem *mem, u64 first, u64 n, u64 __user *bitmap, u64 __user *count)
{
	struct rgpu_track *track = READ_ONCE(mem->track);
	unsigned long *bits, at, i;
	u64 some = 0;
	int err = 0;

	if (!track || !n || first >= mem->npages || n > mem->npages - first)
		return -EINVAL;
	bits = kvcalloc(DIV_ROUND_UP(n, 64), sizeof(u64), GFP_KERNEL_ACCOUNT);
	if (!bits)
		return -ENOMEM;
	for (at = 0; at < n && !err; at += RGPU_TRACK_CHUNK) {
		some += rgpu_track_take(mem, bits + BIT_WORD(at), first + at, min_t(u64, n - at, RGPU_TRACK_CHUNK));
		if (fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	if (!err && (copy_to_user(bitmap, bits, DIV_ROUND_UP(n, 64) * sizeof(u64)) ||
		     (count && copy_to_user(count, &some, sizeof(some)))))
		err = -EFAULT;
	if (err)
		for_each_set_bit(i, bits, n) set_bit(first + i, track->dirty);
	kvfree(bits);
	return err;
}

void rgpu_track_free(struct rgpu_track *track)
{
	kvfree(track);
}
