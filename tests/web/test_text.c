// SPDX-License-Identifier: MIT
/* The two texts of a view: what is unknown is left out or null, names cannot break out, and a session of two devices counts once.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/tap.h"
#include "web/view.h"

static char *written(const struct web_view *v, void (*write)(const struct web_view *, FILE *))
{
	char *body;
	size_t len;
	FILE *f = open_memstream(&body, &len);

	write(v, f);
	fclose(f);
	return body;
}

static unsigned times(const char *body, const char *what)
{
	unsigned n = 0;

	for (; (body = strstr(body, what)); body++)
		n++;
	return n;
}

static void fill(struct web_view *v)
{
	struct web_device *d = web_view_device(v);
	struct web_session *s;

	*d = (struct web_device){
		.name = "Soft \"GPU\"\\\n", .minor = 3, .online = true, .mem_total = 4096ull << 20, .mem_used = 96ull << 20};
	d->utilization = 25;
	memset(d->uuid, 0xab, sizeof(d->uuid));
	d = web_view_device(v);
	d->minor = 4;
	for (int i = 0; i < 2; i++) {
		s = web_view_session(v);
		memset(s->sid, 7, sizeof(s->sid));
		strcpy(s->comm, "a\x1b[31m\xc3");
		s->device = i;
		s->mem_used = 10 + i;
		s->records = 1000;
		s->round_trips = 7;
	}
	s->carried = true;
	v->session[0].carried = true;
	v->session[0].sent_bytes = 123456;
	v->session[0].down_s = 17; /* and not linked */
	s->linked = 1;
}

static void prometheus(const struct web_view *v)
{
	char *body = written(v, web_prometheus);

	ok(strstr(body, "rgpu_device_memory_used_bytes{gpu=\"3\",uuid=\"GPU-abababab-abab-abab-abab-abababababab\","
			"name=\"Soft \\\"GPU\\\"\\\\\\n\"} 100663296\n") != NULL,
	   "a figure has its labels, quoted");
	ok(strstr(body, "DCGM_FI_DEV_FB_USED{gpu=\"3\",UUID=") != NULL, "DCGM's name has DCGM's labels");
	ok(strstr(body, "} 4000\n") != NULL, "free memory is in MiB");
	is_int(times(body, "rgpu_device_memory_bytes{"), 1, "an offline device has no memory");
	is_int(times(body, "rgpu_device_online{"), 2, "but is listed");
	ok(!strstr(body, "rgpu_link_rtt_seconds"), "an unknown round trip is left out");
	is_int(times(body, "rgpu_session_memory_bytes{"), 2, "memory is told for each of a session's devices");
	is_int(times(body, "rgpu_session_records_total{"), 1, "calls once");
	ok(strstr(body, "comm=\"a?[31m?\"") != NULL, "control characters of a name are gone");
	ok(strstr(body, "rgpu_session_link_up{session=\"07070707\",gpu=\"3\"") && strstr(body, "pid=\"0\"} 0\n"),
	   "and whether it has a connection");
	ok(strstr(body, "rgpu_session_sent_bytes_total{session=\"07070707\",gpu=\"3\"") != NULL, "what is carried has its bytes");
	is_int(times(body, "# TYPE rgpu_session_memory_bytes "), 1, "a name has one header");
	free(body);
}

static void json(const struct web_view *v)
{
	char *body = written(v, web_json);

	ok(strstr(body, "\"name\":\"Soft \\\"GPU\\\"\\\\\\n\"") != NULL, "JSON: the name, quoted");
	ok(strstr(body, "\"rtt_us\":null") != NULL, "JSON: null for what is unknown");
	ok(strstr(body, "\"utilization\":25,") && strstr(body, "\"utilization\":null,"), "JSON: known and unknown use");
	ok(strstr(body, "\"linked\":false,\"down_s\":17}") && strstr(body, "\"linked\":true,"),
	   "JSON: a connection that is down, and one that is not");
	free(body);
}

int main(void)
{
	struct web_view v = {.role = "rgpu-proxy", .rtt_us = WEB_UNKNOWN, .up = true};

	fill(&v);
	prometheus(&v);
	json(&v);
	web_view_free(&v);
	return tap_done();
}
