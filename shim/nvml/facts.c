// SPDX-License-Identifier: MIT
/* Facts: fetched group by group, kept for as long as they are true. */
#include <errno.h>
#include "lib/clock.h"
#include "shim/nvml/lib_int.h"

#define FRESH_NS 100000000LL /* live facts: a program that reads twenty of them asks the server once */

static uint8_t group_of(enum nvml_fact id)
{
	static const uint8_t group[FACTS_MAX] = {
#define FACT(id, name, group, shape, function, argument) [id] = FACT_GROUP_##group,
#include "api/nvml_facts.def"
#undef FACT
	};

	return group[id];
}

int nvml_ask(uint32_t what, uint32_t device, uint32_t first, void *buf)
{
	struct rgpu_telemetry_ask ask = {.what = what, .device = device, .first = first};

	if (!nvml.transport)
		return -ENODEV;
	memcpy(buf, &ask, sizeof(ask));
	return rgpu_transport_control(nvml.transport, RGPU_CONTROL_TELEMETRY, buf, sizeof(ask), RGPU_CONTROL_MAX);
}

static void take(struct gpu *g, const struct rgpu_telemetry_fact *f, const uint8_t *bytes)
{
	if (f->id < FACT_TEXTS) {
		uint32_t len = f->len < FACT_TEXT_MAX ? f->len : FACT_TEXT_MAX - 1;

		memcpy(g->text[f->id], bytes, len);
		g->text[f->id][len] = 0;
		g->fact[f->id].status = f->status;
	} else if (f->id < FACTS_MAX && (f->status || f->len == 8)) {
		g->fact[f->id].status = f->status;
		memcpy(&g->fact[f->id].value, bytes, f->status ? 0 : 8);
	}
}

/* nvml.lock is held. An older proxy or server knows no facts: nothing is supported then. */
static enum nvml_result fetch(struct gpu *g, unsigned group)
{
	_Alignas(8) uint8_t buf[RGPU_CONTROL_MAX];
	int64_t now = rgpu_now_ns();
	int n;

	if (g->group[group].at && (group == FACT_GROUP_FIXED || now - g->group[group].at < FRESH_NS))
		return g->group[group].failed;
	n = nvml_ask(group, g->server_index, 0, buf);
	/* A loss is no fact: the server may be back for the next call. */
	if (n < 0 && n != -EOPNOTSUPP)
		return nvml_from_errno(n) == NVML_SUCCESS ? NVML_UNKNOWN : nvml_from_errno(n);
	for (unsigned id = 0; id < FACTS_MAX; id++)
		if (group_of(id) == group)
			g->fact[id].status = NVML_NOT_SUPPORTED;
	for (int at = 0; n - at >= (int)sizeof(struct rgpu_telemetry_fact);) {
		struct rgpu_telemetry_fact f;

		memcpy(&f, buf + at, sizeof(f));
		at += sizeof(f);
		if (f.len > (uint32_t)(n - at))
			break;
		take(g, &f, buf + at);
		at += (f.len + 7) / 8 * 8;
	}
	g->group[group].at = now;
	g->group[group].failed = n == -EOPNOTSUPP ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
	return g->group[group].failed;
}

enum nvml_result nvml_fact(struct gpu *g, enum nvml_fact id, uint64_t *value)
{
	enum nvml_result r;

	pthread_mutex_lock(&nvml.lock);
	r = fetch(g, group_of(id));
	if (!r)
		r = g->fact[id].status == 255 ? NVML_UNKNOWN : g->fact[id].status;
	if (!r)
		*value = g->fact[id].value;
	pthread_mutex_unlock(&nvml.lock);
	return r;
}

enum nvml_result nvml_text(struct gpu *g, enum nvml_fact id, char out[FACT_TEXT_MAX])
{
	enum nvml_result r;

	pthread_mutex_lock(&nvml.lock);
	r = fetch(g, group_of(id));
	if (!r)
		r = g->fact[id].status;
	if (!r)
		memcpy(out, g->text[id], FACT_TEXT_MAX);
	pthread_mutex_unlock(&nvml.lock);
	return r;
}

enum nvml_result nvml_link(struct rgpu_telemetry_link *out)
{
	_Alignas(8) uint8_t buf[RGPU_CONTROL_MAX];
	int n;

	pthread_mutex_lock(&nvml.lock);
	n = nvml_ask(RGPU_TELEMETRY_LINK, 0, 0, buf);
	pthread_mutex_unlock(&nvml.lock);
	if (n < 0)
		return nvml_from_errno(n);
	memset(out, 0, sizeof(*out));
	memcpy(out, buf, n < (int)sizeof(*out) ? n : (int)sizeof(*out));
	return NVML_SUCCESS;
}
