/* SPDX-License-Identifier: MIT */
/* Workers: the memory of blocks and frames that one host thread uses in a launch, kept from launch to launch. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/exec.h"

#define KEEP_FRAME_BYTES (64u << 20)
#define KEEP_BLOCK_BYTES (16u << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* idle */
static struct worker *idle;

struct worker *ptx_worker_get(void)
{
	struct worker *wk;

	pthread_mutex_lock(&lock);
	wk = idle;
	if (wk)
		idle = wk->next;
	pthread_mutex_unlock(&lock);
	if (wk)
		return wk;
	/* in cache lines of its own: its thread writes to it all the time */
	wk = aligned_alloc(64, (sizeof(*wk) + 63) & ~(size_t)63);
	return wk ? memset(wk, 0, sizeof(*wk)) : NULL;
}

static void trim(struct worker *wk)
{
	for (u32 k = 0; k < wk->cap; k++)
		if (wk->blocks[k].mem_size > KEEP_BLOCK_BYTES || k >= 4) {
			free(wk->blocks[k].mem);
			wk->blocks[k].mem = NULL;
			wk->blocks[k].mem_size = 0;
		}
	if (wk->frame_bytes <= KEEP_FRAME_BYTES)
		return;
	for (u32 c = 0; c < FRAME_CLASSES; c++)
		while (wk->free_frames[c]) {
			struct frame *fr = wk->free_frames[c];

			wk->free_frames[c] = fr->parent;
			wk->frame_bytes -= (size_t)256 << c;
			free(fr);
		}
}

void ptx_worker_put(struct worker *wk)
{
	trim(wk);
	pthread_mutex_lock(&lock);
	wk->next = idle;
	idle = wk;
	pthread_mutex_unlock(&lock);
}
