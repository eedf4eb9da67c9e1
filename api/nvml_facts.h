/* SPDX-License-Identifier: MIT */
/* The numbers of api/nvml_facts.def, and how facts lie in an answer. */
#ifndef RGPU_API_NVML_FACTS_H
#define RGPU_API_NVML_FACTS_H

#include <stdint.h>
#include <string.h>
#include <linux/rgpu.h>
#include <rgpu_wire.h>

enum nvml_fact {
#define FACT(id, name, group, shape, function, argument) FACT_##name = id,
#include "api/nvml_facts.def"
#undef FACT
	FACTS_MAX = 256, /* numbers are below */
};
#define FACT_TEXT_MAX 96 /* bytes of a string, with its end */

/* How a fact is fetched; also the request that brings it. */
enum nvml_fact_group {
	FACT_GROUP_FIXED = RGPU_TELEMETRY_FIXED,
	FACT_GROUP_LIVE = RGPU_TELEMETRY_LIVE,
	FACT_GROUP_SLOW = RGPU_TELEMETRY_SLOW,
};

/* An answer that is being written. */
struct fact_list {
	uint8_t *buf;
	uint32_t len, room;
};

/* A fact behind the others. One that has no room is left out: the client takes it for not supported. */
static inline void fact_add(struct fact_list *l, uint16_t id, uint8_t status, const void *value, uint32_t len)
{
	struct rgpu_telemetry_fact f = {.id = id, .status = status, .len = status ? 0 : len};
	uint32_t size = sizeof(f) + (f.len + 7) / 8 * 8;

	if (size > l->room - l->len)
		return;
	memset(l->buf + l->len, 0, size);
	memcpy(l->buf + l->len, &f, sizeof(f));
	memcpy(l->buf + l->len + sizeof(f), value, f.len);
	l->len += size;
}

static inline void fact_number(struct fact_list *l, uint16_t id, uint64_t value)
{
	fact_add(l, id, 0, &value, sizeof(value));
}

static inline void fact_text(struct fact_list *l, uint16_t id, const char *text)
{
	fact_add(l, id, 0, text, strlen(text));
}

#endif
