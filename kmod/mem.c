// SPDX-License-Identifier: GPL-2.0
/* Pages that program and proxy share: allocation against the session's limit, mmap with each side's rights, faults. */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "rgpu.h"
#include "rgpu_compat.h"

/*
 * Why plain pages also for buffer objects, and not a shmem file: a mapping of a shmem file belongs to that file, for program and
 * proxy alike, and comes back by a fault after it was zapped. A proxy that was superseded must lose its mappings for good. Here
 * the proxy's mappings belong to its session fd and every one of its faults asks first. get_user_pages() works on both sides.
 */

#define RGPU_FAULT_AROUND 128ul /* pages that one fault maps */

static void rgpu_mem_free(struct kref *ref)
{
	struct rgpu_mem *mem = container_of(ref, struct rgpu_mem, ref);
	u64 bytes = (u64)mem->npages << PAGE_SHIFT;
	unsigned long i;

	for (i = 0; i < mem->npages && mem->pages[i]; i++) {
		__free_page(mem->pages[i]);
		cond_resched();
	}
	atomic_long_sub(i, &rgpu_stats.pages);
	rgpu_uncharge(mem->ses, bytes, mem->bo);
	kvfree(mem->pages);
	rgpu_track_free(mem->track);
	rgpu_session_put(mem->ses);
	kfree(mem);
}

void rgpu_mem_put(struct rgpu_mem *mem)
{
	if (mem)
		kref_put(&mem->ref, rgpu_mem_free);
}

/*
 * Allocates @bytes (a multiple of the page size), zeroed, and charges them to @ses and to the caller's memory cgroup. EDQUOT
 * beyond the limit of the session, its user or its cgroup; EINTR when the caller is being killed.
 */
struct rgpu_mem *rgpu_mem_new(struct rgpu_session *ses, u64 bytes, bool bo)
{
	/* A large buffer object shall fail rather than have somebody shot. */
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | (bo ? __GFP_RETRY_MAYFAIL | __GFP_NOWARN : 0);
	struct rgpu_mem *mem;
	unsigned long i;
	int err;

	err = rgpu_charge(ses, bytes, bo);
	if (err)
		return ERR_PTR(err);
	err = -ENOMEM;
	mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	if (!mem)
		goto no_mem;
	kref_init(&mem->ref);
	mem->pages = kvcalloc(bytes >> PAGE_SHIFT, sizeof(*mem->pages), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!mem->pages)
		goto no_pages;
	mem->npages = bytes >> PAGE_SHIFT;
	mem->bo = bo;
	mem->ses = rgpu_session_get(ses);

	for (i = 0; i < mem->npages; i++) {
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			goto fail;
		}
		mem->pages[i] = alloc_page(gfp);
		if (!mem->pages[i])
			goto fail;
		atomic_long_inc(&rgpu_stats.pages);
		cond_resched();
	}
	return mem;
fail:
	rgpu_mem_put(mem);
	return ERR_PTR(err);

no_pages:
	kfree(mem);
no_mem:
	rgpu_uncharge(ses, bytes, bo);
	return ERR_PTR(err);
}

static void rgpu_vma_open(struct vm_area_struct *vma)
{
	struct rgpu_mem *mem = vma->vm_private_data;

	kref_get(&mem->ref);
}

static void rgpu_vma_close(struct vm_area_struct *vma)
{
	rgpu_mem_put(vma->vm_private_data);
}

/* Maps the page that is wanted and some that follow. A page that is there already was put in by another thread's fault. */
static vm_fault_t rgpu_app_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct rgpu_mem *mem = vma->vm_private_data;
	unsigned long first = vmf->pgoff, n;
	int err;

	if (first >= mem->npages)
		return VM_FAULT_SIGBUS;
	n = min3(RGPU_FAULT_AROUND, mem->npages - first, (vma->vm_end - vmf->address) >> PAGE_SHIFT);
	err = vm_insert_pages(vma, vmf->address, mem->pages + first, &n);
	if (err == -ENOMEM)
		return VM_FAULT_OOM;
	return err && err != -EBUSY ? VM_FAULT_SIGBUS : VM_FAULT_NOPAGE;
}

static vm_fault_t rgpu_proxy_fault(struct vm_fault *vmf)
{
	vm_fault_t ret;

	if (!rgpu_sesfd_enter(vmf->vma))
		return VM_FAULT_SIGBUS;
	ret = rgpu_app_fault(vmf);
	rgpu_sesfd_leave(vmf->vma);
	return ret;
}

static const struct vm_operations_struct rgpu_app_vm_ops = {
	.open = rgpu_vma_open,
	.close = rgpu_vma_close,
	.fault = rgpu_app_fault,
};

/* Having page_mkwrite makes the kernel map its pages for reading only at first. */
static const struct vm_operations_struct rgpu_tracked_vm_ops = {
	.open = rgpu_vma_open,
	.close = rgpu_vma_close,
	.fault = rgpu_app_fault,
	.page_mkwrite = rgpu_track_mkwrite,
};

static const struct vm_operations_struct rgpu_proxy_vm_ops = {
	.open = rgpu_vma_open,
	.close = rgpu_vma_close,
	.fault = rgpu_proxy_fault,
};

/*
 * Finds what an mmap offset names, whether the caller's side writes it, and whether its writes are to be tracked. Returns a
 * reference. session.lock is held.
 */
static struct rgpu_mem *rgpu_mem_find(struct rgpu_session *ses, u64 off, bool proxy, bool *writable, bool *tracked)
{
	struct rgpu_mem *mem = NULL;
	struct rgpu_channel *ch;
	u32 what;

	*tracked = false;
	if (ses->ended)
		return ERR_PTR(-ESHUTDOWN);
	if (off == RGPU_MMAP_KPAGE) {
		mem = ses->kmem;
		*writable = false;
	} else if (off >> 40 == RGPU_MMAP_CHANNEL(0, 0) >> 40) {
		what = off >> 28 & 0xf;
		ch = rgpu_channel_find(ses, off >> 32 & 0xff);
		if (!ch || what > RGPU_MMAP_CQ || off != RGPU_MMAP_CHANNEL(ch->index, what))
			return ERR_PTR(-ENOENT);
		mem = ch->mem[what];
		*writable = (what == RGPU_MMAP_PPAGE || what == RGPU_MMAP_CQ) == proxy;
	} else if (off >> 40 == RGPU_MMAP_BO(0) >> 40) {
		mem = xa_load(&ses->bos, (off & ~RGPU_MMAP_BO(0)) >> 12);
		*writable = true;
	} else if (off >> 40 == RGPU_MMAP_TRACKED(0) >> 40 && !proxy) {
		mem = xa_load(&ses->bos, (off & ~RGPU_MMAP_TRACKED(0)) >> 12);
		*writable = true;
		*tracked = true;
	}
	if (!mem)
		return ERR_PTR(-ENOENT);
	kref_get(&mem->ref);
	return mem;
}

/*
 * Shared, of exactly the object's size, never executable, and not writable (nor to become it by mprotect) where the other side
 * writes. Rings go to no child; a buffer object does, because it is memory that the program allocated.
 */
int rgpu_mem_mmap(struct rgpu_session *ses, struct vm_area_struct *vma, bool proxy)
{
	vm_flags_t set = VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTDUMP, clear = VM_MAYEXEC;
	struct rgpu_mem *mem;
	bool writable, tracked;
	int err = 0;

	mutex_lock(&ses->lock);
	mem = rgpu_mem_find(ses, (u64)vma->vm_pgoff << PAGE_SHIFT, proxy, &writable, &tracked);
	mutex_unlock(&ses->lock);
	if (IS_ERR(mem))
		return PTR_ERR(mem);

	if (!(vma->vm_flags & VM_SHARED) || vma_pages(vma) != mem->npages)
		err = -EINVAL;
	else if (vma->vm_flags & VM_EXEC || (!writable && vma->vm_flags & VM_WRITE))
		err = -EACCES;
	else if (tracked)
		err = rgpu_track_map(mem, vma);
	if (err) {
		rgpu_mem_put(mem);
		return err;
	}
	if (!writable)
		clear |= VM_MAYWRITE;
	if (!mem->bo || proxy || tracked)
		set |= VM_DONTCOPY;
	rgpu_vm_flags_mod(vma, set, clear);
	vma->vm_pgoff = 0; /* from here on the index into the object, also of a split VMA */
	vma->vm_private_data = mem;
	vma->vm_ops = proxy ? &rgpu_proxy_vm_ops : tracked ? &rgpu_tracked_vm_ops : &rgpu_app_vm_ops;
	return 0;
}
