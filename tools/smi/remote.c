/* SPDX-License-Identifier: MIT */
/* The box below the table: the way to the devices, which nvidia-smi has none of. */
#include <stdarg.h>
#include "tools/smi/smi.h"

static const char rule[] = "+-----------------------------------------------------------------------------------------+\n";

__attribute__((format(printf, 3, 4))) static void line(FILE *to, const char *what, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(to, "|  %-14s %-71.71s |\n", what, text);
}

/* Bytes per second, in what people read. */
static const char *rate(uint64_t v, char out[32])
{
	if (v >= 1000000000)
		snprintf(out, 32, "%.2f GB/s", v / 1e9);
	else if (v >= 1000000)
		snprintf(out, 32, "%.2f MB/s", v / 1e6);
	else
		snprintf(out, 32, "%.1f kB/s", v / 1e3);
	return out;
}

void smi_remote(const struct smi *smi, FILE *to)
{
	const struct smi_remote *r = &smi->remote;
	uint64_t saved = r->records > r->fences ? r->records - r->fences : 0;
	char up[32], down[32];

	fputc('\n', to);
	fputs(rule, to);
	fputs("| Remote                                                                                  |\n"
	      "|=========================================================================================|\n",
	      to);
	if (!r->known) {
		line(to, "Server", "its release does not tell");
		fputs(rule, to);
		return;
	}
	line(to, "Server", "%.80s, %.40s, %.40s", r->link.server, r->link.agent, r->link.driver);
	line(to, "Link", "%.64s, %s", r->link.tls, r->through_module ? "through the rgpu module" : "directly");
	line(to, "Round trip", "p50 %.3f ms, p99 %.3f ms, of the last %u", r->link.rtt_p50 / 1e6, r->link.rtt_p99 / 1e6,
	     r->link.samples);
	line(to, "Throughput", "up %s, down %s", rate(r->rate_up, up), rate(r->rate_down, down));
	line(to, "Sessions", "%u", r->sessions);
	line(to, "Calls", "%llu, of which %llu waited for an answer: %llu round trips saved", (unsigned long long)r->records,
	     (unsigned long long)r->fences, (unsigned long long)saved);
	fputs(rule, to);
}
