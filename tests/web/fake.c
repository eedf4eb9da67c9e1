// SPDX-License-Identifier: MIT
/* Serves the page over made-up devices that move, for a browser to look at: web-fake NDEVICES prints the port. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/clock.h"
#include "web/view.h"

static unsigned ndevices;

static int fill(struct web_view *v, void *arg)
{
	double t = rgpu_now_ns() / 1e9;

	(void)arg;
	v->role = "rgpu-proxy";
	v->up = ndevices > 0;
	v->uptime_s = 93784;
	strcpy(v->version, "test");
	strcpy(v->peer, "a-gpu-host-with-a-long-name.example.com:7478");
	strcpy(v->driver, "CUDA 13.0");
	strcpy(v->why, ndevices ? "" : "server a-gpu-host-with-a-long-name.example.com:7478: cannot connect: Connection refused");
	v->rtt_us = ndevices ? (int)(480 + 60 * sin(t)) : WEB_UNKNOWN;
	for (unsigned i = 0; i < ndevices; i++) {
		struct web_device *d = web_view_device(v);

		strcpy(d->name, "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition");
		memset(d->uuid, i + 1, sizeof(d->uuid));
		d->minor = d->index = i;
		d->online = i != 5;
		d->mem_total = 96ull << 30;
		d->mem_used = (uint64_t)((0.1 + 0.1 * i + 0.05 * sin(t / 7 + i)) * d->mem_total);
		d->utilization = i == 2 ? WEB_UNKNOWN : (int)(50 + 45 * sin(t / 3 + i));
		d->sessions = i % 3;
	}
	for (unsigned i = 0; i < ndevices; i++) {
		struct web_session *s = web_view_session(v);

		memset(s->sid, i + 1, sizeof(s->sid));
		strcpy(s->comm, i ? "python3" : "a-program-name");
		s->device = i;
		s->uid = 1000;
		s->pid = 4242 + i;
		s->mem_used = (1ull << 30) * (i + 1);
		s->carried = true;
		s->linked = 1;
		s->records = (uint64_t)(t * 40000) * (i + 1);
		s->round_trips = (uint64_t)(t * 90);
		s->sent_bytes = (uint64_t)(t * 3e6);
		s->received_bytes = (uint64_t)(t * 4e5);
	}
	return 0;
}

int main(int argc, char **argv)
{
	char why[RGPU_WHY_MAX];
	int port;

	ndevices = argc > 1 ? atoi(argv[1]) : 1;
	port = web_serve(0, fill, NULL, why);
	if (port < 0) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	printf("%d\n", port);
	fflush(stdout);
	for (;;)
		pause();
}
