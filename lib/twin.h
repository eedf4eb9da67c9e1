/* SPDX-License-Identifier: MIT */
/* Memory that exists at both ends: finds what changed at this end, and puts down what changed at the other. */
#ifndef RGPU_LIB_TWIN_H
#define RGPU_LIB_TWIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One end keeps a shadow of what the other is known to have. A change is a word of 4 bytes that differs from the shadow, whoever
 * wrote it and in whatever way: also the kernel for a system call, and a GPU by DMA, where page faults would not tell. Words that
 * did not change are never sent, so that the two ends may write neighbouring words at the same time.
 */
struct twin {
	uint8_t *mem, *shadow; /* of @bytes each, at multiples of TWIN_LINE. No shadow: somebody else knows what changed */
	uint64_t addr, bytes;  /* what both ends call it: a device address */
};

#define TWIN_LINE 64u
#define TWIN_WORD 4u
#define TWIN_PAGE 4096u

/* A changed line as it travels. */
struct twin_line {
	uint64_t head; /* address / TWIN_LINE << 16, and a bit for each word that changed, the lowest for the first */
	uint8_t data[TWIN_LINE];
};

/*
 * Writes lines that changed from offset *at on to @out, at most @room of them, and takes them into the shadow. *at moves to where
 * to go on: the end when all was seen. Returns how many.
 */
size_t twin_changes(struct twin *t, uint64_t *at, struct twin_line *out, size_t room);
/*
 * The same for a twin without a shadow: whole pages, those whose bit in @bits is set (bit i of the words: page i of TWIN_PAGE
 * bytes); their bits are cleared.
 */
size_t twin_pages(struct twin *t, uint64_t *bits, uint64_t *at, struct twin_line *out, size_t room);
/* Bytes that twin_changes() compared so far, in all twins of this process. */
uint64_t twin_compared(void);
uint64_t twin_address(const struct twin_line *l);
/* Puts a line down in memory and shadow. @t contains its address. */
void twin_put(struct twin *t, const struct twin_line *l);

#endif
