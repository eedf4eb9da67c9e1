// SPDX-License-Identifier: MIT
/* A view as the page reads it: what is not known is null. */
#include <inttypes.h>
#include "lib/uuid.h"
#include "web/text.h"
#include "web/view.h"

static void text(FILE *to, const char *name, const char *value, const char *after)
{
	fprintf(to, "\"%s\":\"", name);
	web_quoted(to, value);
	fprintf(to, "\"%s", after);
}

static void number_or_null(FILE *to, const char *name, int value, const char *after)
{
	if (value == WEB_UNKNOWN)
		fprintf(to, "\"%s\":null%s", name, after);
	else
		fprintf(to, "\"%s\":%d%s", name, value, after);
}

static void count(FILE *to, const char *name, uint64_t value, const char *after)
{
	fprintf(to, "\"%s\":%" PRIu64 "%s", name, value, after);
}

static void device(const struct web_device *d, FILE *to)
{
	char uuid[RGPU_UUID_TEXT_MAX];

	rgpu_uuid_text(uuid, d->uuid);
	fputc('{', to);
	text(to, "name", d->name, ",");
	text(to, "uuid", uuid, ",");
	number_or_null(to, "minor", d->minor, ",");
	fprintf(to, "\"online\":%s,", d->online ? "true" : "false");
	count(to, "mem_total", d->mem_total, ",");
	count(to, "mem_used", d->mem_used, ",");
	number_or_null(to, "utilization", d->utilization, ",");
	count(to, "sessions", d->sessions, "}");
}

static void session(const struct web_session *s, FILE *to)
{
	char sid[9];

	web_sid(sid, s->sid);
	fputc('{', to);
	text(to, "session", sid, ",");
	text(to, "comm", s->comm, ",");
	count(to, "uid", s->uid, ",");
	count(to, "pid", s->pid, ",");
	number_or_null(to, "device", s->device, ",");
	count(to, "mem_used", s->mem_used, ",");
	count(to, "records", s->records, ",");
	count(to, "round_trips", s->round_trips, ",");
	fprintf(to, "\"carried\":%s,", s->carried ? "true" : "false");
	count(to, "sent_bytes", s->sent_bytes, ",");
	count(to, "received_bytes", s->received_bytes, ",");
	count(to, "connections", s->connections, ",");
	fprintf(to, "\"linked\":%s,", s->linked || !s->carried ? "true" : "false");
	count(to, "down_s", s->down_s, "}");
}

void web_json(const struct web_view *v, FILE *to)
{
	fputc('{', to);
	text(to, "role", v->role, ",");
	text(to, "version", v->version, ",");
	text(to, "peer", v->peer, ",");
	text(to, "driver", v->driver, ",");
	fprintf(to, "\"up\":%s,", v->up ? "true" : "false");
	text(to, "why", v->why, ",");
	number_or_null(to, "rtt_us", v->rtt_us, ",");
	count(to, "uptime_s", v->uptime_s, ",\"devices\":[");
	for (unsigned i = 0; i < v->ndevices; i++) {
		fputs(i ? "," : "", to);
		device(&v->device[i], to);
	}
	fputs("],\"sessions\":[", to);
	for (unsigned i = 0; i < v->nsessions; i++) {
		fputs(i ? "," : "", to);
		session(&v->session[i], to);
	}
	fputs("]}\n", to);
}
