// SPDX-License-Identifier: MIT
/* What a link without TLS has in its place: records with a checksum. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/crc32c.h"
#include "lib/plain.h"

#define IN_SIZE (128 << 10) /* one read(2) may bring several records */

struct rgpu_plain {
	uint64_t sent, got; /* records */
	uint32_t left;	    /* of the current one's bytes, checked */
	size_t head, tail;  /* of in[] */
	uint8_t in[IN_SIZE];
};

struct rgpu_plain *rgpu_plain_new(void)
{
	struct rgpu_plain *p = malloc(sizeof(*p));

	if (p)
		memset(p, 0, offsetof(struct rgpu_plain, in));
	return p;
}

void rgpu_plain_free(struct rgpu_plain *p)
{
	free(p);
}

static void head_of(uint64_t number, uint32_t len, uint32_t head[3])
{
	head[0] = len;
	head[1] = rgpu_crc32c(rgpu_crc32c(0, &number, sizeof(number)), &len, sizeof(len));
}

size_t rgpu_plain_seal(struct rgpu_plain *p, const void *buf, size_t len, uint8_t *out)
{
	uint32_t head[3];

	head_of(p->sent++, len, head);
	head[2] = rgpu_crc32c(head[1], buf, len);
	memcpy(out, head, sizeof(head));
	if (len)
		memcpy(out + sizeof(head), buf, len);
	return sizeof(head) + len;
}

uint8_t *rgpu_plain_room(struct rgpu_plain *p, size_t *room)
{
	if (p->head) {
		memmove(p->in, p->in + p->head, p->tail - p->head);
		p->tail -= p->head;
		p->head = 0;
	}
	*room = IN_SIZE - p->tail;
	return p->in + p->tail;
}

void rgpu_plain_came(struct rgpu_plain *p, size_t n)
{
	p->tail += n;
}

/* 1: the next record is there; 0: not all of it; -EBADMSG: it is damaged. */
static int next(const struct rgpu_plain *p, uint32_t head[3])
{
	uint32_t want[3];

	if (p->tail - p->head < RGPU_PLAIN_HEAD)
		return 0;
	memcpy(head, p->in + p->head, RGPU_PLAIN_HEAD);
	head_of(p->got, head[0], want);
	if (head[0] > RGPU_PLAIN_MAX || head[1] != want[1])
		return -EBADMSG;
	return p->tail - p->head - RGPU_PLAIN_HEAD >= head[0];
}

bool rgpu_plain_ready(const struct rgpu_plain *p)
{
	uint32_t head[3];

	return p->left || next(p, head);
}

ssize_t rgpu_plain_take(struct rgpu_plain *p, void *buf, size_t len)
{
	uint32_t head[3];

	if (!p->left) {
		int there = next(p, head);

		if (there <= 0)
			return there;
		if (rgpu_crc32c(head[1], p->in + p->head + RGPU_PLAIN_HEAD, head[0]) != head[2])
			return -EBADMSG;
		if (!head[0])
			return -ENODATA;
		p->got++;
		p->head += RGPU_PLAIN_HEAD;
		p->left = head[0];
	}
	if (len > p->left)
		len = p->left;
	memcpy(buf, p->in + p->head, len);
	p->head += len;
	p->left -= len;
	return len;
}
