// SPDX-License-Identifier: MIT
/*
 * A view as Prometheus reads it. Source of the format: prometheus.io, "Text-based format" (version 0.0.4); of the DCGM_FI_DEV_*
 * names and their labels: NVIDIA's dcgm-exporter. They are given only where they mean the same.
 */
#include <inttypes.h>
#include "lib/uuid.h"
#include "web/text.h"
#include "web/view.h"

static void head(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void label(FILE *to, const char *name, const char *value, char after)
{
	fprintf(to, "%s=\"", name);
	web_quoted(to, value);
	fprintf(to, "\"%c", after);
}

/* The number that users know a device by: N of /dev/rgpuN, else the server's own. */
static unsigned number(const struct web_view *v, unsigned i)
{
	return v->device[i].minor == WEB_UNKNOWN ? i : (unsigned)v->device[i].minor;
}

static void device_labels(FILE *to, const char *metric, const struct web_view *v, unsigned i, bool dcgm)
{
	char uuid[RGPU_UUID_TEXT_MAX];

	rgpu_uuid_text(uuid, v->device[i].uuid);
	fprintf(to, "%s{gpu=\"%u\",", metric, number(v, i));
	label(to, dcgm ? "UUID" : "uuid", uuid, ',');
	label(to, dcgm ? "modelName" : "name", v->device[i].name, '}');
	fputc(' ', to);
}

/* One figure of every device that has it; the function returns whether. */
typedef bool device_figure(const struct web_device *d, uint64_t *out);

static void devices(FILE *to, const struct web_view *v, const char *name, const char *help, bool dcgm, device_figure *figure)
{
	uint64_t value;
	bool begun = false;

	for (unsigned i = 0; i < v->ndevices; i++) {
		if (!figure(&v->device[i], &value))
			continue;
		if (!begun)
			head(to, name, "gauge", help);
		begun = true;
		device_labels(to, name, v, i, dcgm);
		fprintf(to, "%" PRIu64 "\n", value);
	}
}

static bool online(const struct web_device *d, uint64_t *out)
{
	*out = d->online;
	return true;
}

static bool mem_total(const struct web_device *d, uint64_t *out)
{
	*out = d->mem_total;
	return d->online;
}

static bool mem_used(const struct web_device *d, uint64_t *out)
{
	*out = d->mem_used;
	return d->online;
}

static bool utilization(const struct web_device *d, uint64_t *out)
{
	*out = d->utilization;
	return d->online && d->utilization != WEB_UNKNOWN;
}

static bool used_mib(const struct web_device *d, uint64_t *out)
{
	*out = d->mem_used >> 20;
	return d->online;
}

static bool free_mib(const struct web_device *d, uint64_t *out)
{
	*out = (d->mem_total - d->mem_used) >> 20;
	return d->online && d->mem_total >= d->mem_used;
}

static void device_metrics(const struct web_view *v, FILE *to)
{
	devices(to, v, "rgpu_device_online", "Whether a GPU stands behind the device.", false, online);
	devices(to, v, "rgpu_device_memory_bytes", "Memory of the device.", false, mem_total);
	devices(to, v, "rgpu_device_memory_used_bytes", "Memory that sessions of all clients hold.", false, mem_used);
	devices(to, v, "rgpu_device_utilization_percent", "Share of the last moments in which it worked.", false, utilization);
	devices(to, v, "DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", true, used_mib);
	devices(to, v, "DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", true, free_mib);
	devices(to, v, "DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", true, utilization);
}

static void session_labels(FILE *to, const char *metric, const struct web_view *v, const struct web_session *s)
{
	char sid[9];

	web_sid(sid, s->sid);
	fprintf(to, "%s{session=\"%s\",", metric, sid);
	if (s->device >= 0 && (unsigned)s->device < v->ndevices)
		fprintf(to, "gpu=\"%u\",", number(v, s->device));
	label(to, "comm", s->comm, ',');
	fprintf(to, "uid=\"%" PRIu32 "\",pid=\"%" PRIu32 "\"} ", s->uid, s->pid);
}

static const struct session_metric {
	const char *name, *type, *help;
	size_t at;
	bool carried; /* only of sessions that the one that is asked carries */
} session_metrics[] = {
	{"rgpu_session_memory_bytes", "gauge", "Device memory that the session holds.", offsetof(struct web_session, mem_used),
	 false},
	{"rgpu_session_records_total", "counter", "Calls that were sent to the server.", offsetof(struct web_session, records),
	 false},
	{"rgpu_session_round_trips_total", "counter", "Calls among them that waited for an answer.",
	 offsetof(struct web_session, round_trips), false},
	{"rgpu_session_sent_bytes_total", "counter", "Bytes to the server, before TLS.", offsetof(struct web_session, sent_bytes),
	 true},
	{"rgpu_session_received_bytes_total", "counter", "Bytes from the server, before TLS.",
	 offsetof(struct web_session, received_bytes), true},
	{"rgpu_session_connections_total", "counter", "Connections that the session has had.",
	 offsetof(struct web_session, connections), true},
	{"rgpu_session_link_up", "gauge", "Whether the session has a connection to the server now.",
	 offsetof(struct web_session, linked), true},
	{"rgpu_session_compressed_bytes_total", "counter", "Bytes to the server that were compressed.",
	 offsetof(struct web_session, pack_in), true},
	{"rgpu_session_compressed_to_bytes_total", "counter", "What they became.", offsetof(struct web_session, pack_out), true},
	{"rgpu_session_known_blocks", "gauge", "Blocks of uploads that the server says it keeps.",
	 offsetof(struct web_session, known), true},
	{"rgpu_session_named_blocks_total", "counter", "Blocks of uploads that the server had already.",
	 offsetof(struct web_session, named), true},
	{"rgpu_session_saved_bytes_total", "counter", "Their bytes, which were not sent.",
	 offsetof(struct web_session, saved_bytes), true},
	{"rgpu_session_needed_blocks_total", "counter", "Blocks that it was thought to have and had not: a round trip each.",
	 offsetof(struct web_session, needed), true},
};

static const struct cache_metric {
	const char *name, *type, *help;
	size_t at;
} cache_metrics[] = {
	{"rgpu_cache_limit_bytes", "gauge", "Memory that kept uploads may take.", offsetof(struct web_cache, limit)},
	{"rgpu_cache_bytes", "gauge", "Memory that they take.", offsetof(struct web_cache, bytes)},
	{"rgpu_cache_blocks", "gauge", "Blocks that are kept.", offsetof(struct web_cache, blocks)},
	{"rgpu_cache_hits_total", "counter", "Blocks that clients did not have to send.", offsetof(struct web_cache, hits)},
	{"rgpu_cache_saved_bytes_total", "counter", "Their bytes.", offsetof(struct web_cache, saved)},
	{"rgpu_cache_misses_total", "counter", "Blocks that clients named in vain.", offsetof(struct web_cache, misses)},
	{"rgpu_cache_admitted_blocks_total", "counter", "Blocks that were taken in.", offsetof(struct web_cache, admitted)},
	{"rgpu_cache_evicted_blocks_total", "counter", "Blocks that had to go.", offsetof(struct web_cache, evicted)},
};

/* A session is listed once for each of its devices: memory is of the pair, all else of the session and told once. */
static bool told(const struct web_view *v, unsigned i, const struct session_metric *m)
{
	const struct web_session *s = v->session;

	if (m->carried && !s[i].carried)
		return false;
	if (m->at == offsetof(struct web_session, mem_used))
		return true;
	for (unsigned j = 0; j < i; j++)
		if (!__builtin_memcmp(s[j].sid, s[i].sid, sizeof(s[i].sid)))
			return false;
	return true;
}

static void session_metric(const struct web_view *v, const struct session_metric *m, FILE *to)
{
	bool begun = false;

	for (unsigned i = 0; i < v->nsessions; i++) {
		if (!told(v, i, m))
			continue;
		if (!begun)
			head(to, m->name, m->type, m->help);
		begun = true;
		session_labels(to, m->name, v, &v->session[i]);
		fprintf(to, "%" PRIu64 "\n", *(const uint64_t *)((const char *)&v->session[i] + m->at));
	}
}

void web_prometheus(const struct web_view *v, FILE *to)
{
	head(to, "rgpu_info", "gauge", "Who answers; the value is always 1.");
	fputs("rgpu_info{", to);
	label(to, "role", v->role, ',');
	label(to, "version", v->version, ',');
	label(to, "peer", v->peer, ',');
	label(to, "driver", v->driver, '}');
	fputs(" 1\n", to);
	head(to, "rgpu_up", "gauge", "Whether the server is reached.");
	fprintf(to, "rgpu_up %d\n", v->up);
	head(to, "rgpu_uptime_seconds", "gauge", "Since this program began.");
	fprintf(to, "rgpu_uptime_seconds %" PRId64 "\n", v->uptime_s);
	if (v->rtt_us != WEB_UNKNOWN) {
		head(to, "rgpu_link_rtt_seconds", "gauge", "Round trip to the server, smoothed by TCP.");
		fprintf(to, "rgpu_link_rtt_seconds %.6f\n", v->rtt_us / 1e6);
	}
	device_metrics(v, to);
	for (size_t i = 0; i < sizeof(session_metrics) / sizeof(session_metrics[0]); i++)
		session_metric(v, &session_metrics[i], to);
	for (size_t i = 0; v->cache.there && i < sizeof(cache_metrics) / sizeof(cache_metrics[0]); i++) {
		const struct cache_metric *m = &cache_metrics[i];

		head(to, m->name, m->type, m->help);
		fprintf(to, "%s %" PRIu64 "\n", m->name, *(const uint64_t *)((const char *)&v->cache + m->at));
	}
}
