/* SPDX-License-Identifier: MIT */
/* Device printf: walks the format with the argument block that the compiler laid out like a C struct. */
#include <stdio.h>
#include <string.h>

#include "softgpu/ptx/print.h"

#define MAX_TEXT   8192u /* what one call may print, CUDA has its FIFO for a limit */
#define MAX_FORMAT 4096u
#define MAX_STRING 4096u

struct printer {
	struct warp *w;
	const struct ins *i;
	u32 lane;
	u64 args;
	u32 at; /* bytes of arguments taken */
	s32 count;
	bool bad;
	char out[MAX_TEXT];
	size_t n;
};

static void put(struct printer *p, const char *s, size_t n)
{
	if (n > sizeof(p->out) - p->n)
		n = sizeof(p->out) - p->n;
	memcpy(p->out + p->n, s, n);
	p->n += n;
}

static u64 take(struct printer *p, u32 size)
{
	const void *a;
	u64 v = 0;

	p->at = (p->at + size - 1) & ~(size - 1);
	a = ptx_lane_addr(p->w, p->i, p->lane, SP_GENERIC, p->args + p->at, size);
	if (!a) {
		p->bad = true;
		return 0;
	}
	memcpy(&v, a, size);
	p->at += size;
	p->count++;
	return v;
}

struct spec {
	char text[32]; /* flags, width and precision, without length and conversion */
	size_t n;
	u32 longs;  /* l, ll, z, j, t: 64-bit */
	u32 shorts; /* h, hh */
};

static void spec_add(struct spec *s, const char *t, size_t n)
{
	if (s->n + n < sizeof(s->text) - 8) {
		memcpy(s->text + s->n, t, n);
		s->n += n;
	}
}

static void spec_number(struct printer *p, struct spec *s, const char **f, const char *end)
{
	if (*f < end && **f == '*') {
		char buf[16];
		s32 v = (s32)take(p, 4);

		if (v > 4096 || v < -4096)
			v = 0;
		spec_add(s, buf, (size_t)snprintf(buf, sizeof(buf), "%d", v));
		++*f;
		return;
	}
	for (u32 k = 0; *f < end && **f >= '0' && **f <= '9'; ++*f)
		if (k++ < 4)
			spec_add(s, *f, 1);
}

static void print_string(struct printer *p, struct spec *s)
{
	u64 addr = take(p, 8);
	char buf[MAX_STRING + 64];
	char str[MAX_STRING + 1];
	const char *d = "(null)";
	size_t len = 6;
	int n;

	if (p->bad)
		return;
	if (addr) {
		d = ptx_lane_string(p->w, p->lane, addr, MAX_STRING, &len);
		if (!d) {
			p->bad = true;
			return;
		}
	}
	memcpy(str, d, len);
	str[len] = 0;
	memcpy(s->text + s->n, "s", 2);
	n = snprintf(buf, sizeof(buf), s->text, str);
	put(p, buf, n < 0 ? 0 : (size_t)n < sizeof(buf) ? (size_t)n : sizeof(buf) - 1);
}

static void print_value(struct printer *p, struct spec *s, char conv)
{
	char buf[MAX_STRING + 512];
	int n = 0;

	if (strchr("dic", conv)) {
		s64 v = s->longs && conv != 'c' ? (s64)take(p, 8) : (s64)(s32)take(p, 4);

		if (s->shorts)
			v = s->shorts > 1 ? (s8)v : (s16)v;
		if (conv == 'c') {
			memcpy(s->text + s->n, "c", 2);
			n = snprintf(buf, sizeof(buf), s->text, (int)v);
		} else {
			memcpy(s->text + s->n, "lld", 4);
			n = snprintf(buf, sizeof(buf), s->text, (long long)v);
		}
	} else if (strchr("uoxX", conv)) {
		u64 v = s->longs ? take(p, 8) : take(p, 4);
		const char c[] = {'l', 'l', conv, 0};

		if (s->shorts)
			v = s->shorts > 1 ? (u8)v : (u16)v;
		memcpy(s->text + s->n, c, 4);
		n = snprintf(buf, sizeof(buf), s->text, (unsigned long long)v);
	} else if (strchr("fFeEgGaA", conv)) {
		u64 bits = take(p, 8);
		const char c[] = {conv, 0};
		double v;

		memcpy(&v, &bits, 8);
		memcpy(s->text + s->n, c, 2);
		n = snprintf(buf, sizeof(buf), s->text, v);
	} else if (conv == 'p') {
		memcpy(s->text + s->n, "p", 2);
		n = snprintf(buf, sizeof(buf), s->text, (void *)(uintptr_t)take(p, 8));
	}
	if (!p->bad && n > 0)
		put(p, buf, (size_t)n < sizeof(buf) ? (size_t)n : sizeof(buf) - 1);
}

/* One conversion after its '%'; returns where the format goes on. A conversion C does not have is printed as it is. */
static const char *convert(struct printer *p, const char *f, const char *end)
{
	struct spec s = {.text = "%", .n = 1};
	const char *start = f - 1;

	while (f < end && strchr("-+ #0", *f) && *f)
		spec_add(&s, f++, 1);
	spec_number(p, &s, &f, end);
	if (f < end && *f == '.') {
		spec_add(&s, f++, 1);
		spec_number(p, &s, &f, end);
	}
	for (; f < end && strchr("hlLqjzt", *f); f++) {
		s.shorts += *f == 'h';
		s.longs += *f != 'h' && *f != 'L';
	}
	if (f == end) {
		put(p, start, (size_t)(f - start));
		return f;
	}
	if (*f == '%')
		put(p, "%", 1);
	else if (*f == 's')
		print_string(p, &s);
	else if (strchr("diouxXcfFeEgGaAp", *f))
		print_value(p, &s, *f);
	else if (*f == 'n')
		take(p, 8); /* not supported by CUDA either: takes its argument and stores nothing */
	else
		put(p, start, (size_t)(f + 1 - start));
	return f + 1;
}

s32 ptx_print(struct warp *w, const struct ins *i, u32 lane, u64 fmt, u64 args)
{
	const struct ptx_launch *l = w->blk->l->p;
	struct printer p = {.w = w, .i = i, .lane = lane, .args = args};
	const char *f, *end;
	size_t len;

	f = ptx_lane_string(w, lane, fmt, MAX_FORMAT, &len);
	if (!f)
		return -1;
	for (end = f + len; f < end && !p.bad;) {
		const char *pc = memchr(f, '%', (size_t)(end - f));

		put(&p, f, (size_t)((pc ? pc : end) - f));
		f = pc ? convert(&p, pc + 1, end) : end;
	}
	if (p.bad)
		return -1;
	if (l->print && p.n) {
		pthread_mutex_lock(&w->blk->l->lock);
		l->print(l->print_arg, p.out, p.n);
		pthread_mutex_unlock(&w->blk->l->lock);
	}
	return p.count;
}
