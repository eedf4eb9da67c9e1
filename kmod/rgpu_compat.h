/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between kernels: the only place that asks which one this is. Kbuild probes and sets RGPU_HAVE_*. */
#ifndef RGPU_COMPAT_H
#define RGPU_COMPAT_H

#include <linux/mm.h>

/* 6.3 made vm_flags read-only to drivers and gave them this; some 6.1 stable trees have it too. */
static inline void rgpu_vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
#ifdef RGPU_HAVE_VM_FLAGS_MOD
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

/* 6.17 gave the queue for work that any processor may do another name, and later kernels complain about the old one. */
#ifdef RGPU_HAVE_SYSTEM_DFL_WQ
#define rgpu_workqueue system_dfl_wq
#else
#define rgpu_workqueue system_unbound_wq
#endif

#endif
