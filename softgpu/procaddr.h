/* SPDX-License-Identifier: MIT */
/* The table behind cuGetProcAddress. */
#ifndef SOFTGPU_PROCADDR_H
#define SOFTGPU_PROCADDR_H

struct procaddr {
	const char *name;
	void (*fn)(void);
	int version;	/* the CUDA version that brought this ABI */
	int per_thread; /* NULL stream means the thread's own */
};

extern const struct procaddr procaddr_table[];
extern const unsigned int procaddr_count;

#endif
