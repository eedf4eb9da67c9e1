/* SPDX-License-Identifier: MIT */
/* The forms of rgpu bench's figures: a table for people, CSV for programs, a picture for reports. */
#include <math.h>
#include <string.h>
#include "tools/rgpu/bench.h"
#include "tools/xml.h"

const char *const bench_time_names[BENCH_TIMES] = {"round_trip", "small_call",	    "launch_issue",
						   "launch",	 "launch_and_wait", "step"};
const char *const bench_copy_names[BENCH_COPIES] = {"h2d", "d2h", "h2d_pinned", "d2h_pinned"};

static const char *const times[BENCH_TIMES] = {"round trip of the link",
					       "small call (4 bytes read)",
					       "launch, until the program goes on",
					       "launch, until it is done (of 1000)",
					       "launch and wait",
					       "step: 4 MiB up, 60 launches, a result"};
static const char *const copies[BENCH_COPIES] = {"host to device", "device to host", "host to device, page-locked",
						 "device to host, page-locked"};

static uint64_t size_of(unsigned i)
{
	return BENCH_SIZE_MIN << 2 * i;
}

static const char *size_text(uint64_t bytes, char out[16])
{
	if (bytes < 1 << 20)
		snprintf(out, 16, "%u KiB", (unsigned)(bytes >> 10));
	else
		snprintf(out, 16, "%u MiB", (unsigned)(bytes >> 20));
	return out;
}

static const char *time_text(double s, char out[16])
{
	if (s <= 0)
		strcpy(out, "-");
	else if (s < 1e-3)
		snprintf(out, 16, "%.2f µs", s * 1e6);
	else
		snprintf(out, 16, "%.2f ms", s * 1e3);
	return out;
}

static const char *rate_text(double bytes_per_s, char out[16])
{
	if (bytes_per_s < 1e9)
		snprintf(out, 16, "%.1f MB/s", bytes_per_s / 1e6);
	else
		snprintf(out, 16, "%.2f GB/s", bytes_per_s / 1e9);
	return out;
}

/* printf() counts bytes, and µ has two. */
static void column(FILE *to, const char *text, int width)
{
	int n = 0;

	for (const char *p = text; *p; p++)
		n += (*p & 0xc0) != 0x80;
	fprintf(to, "%*s%s", width > n ? width - n : 0, "", text);
}

static void title(const struct bench *b, FILE *to, const char *begin, const char *end)
{
	fprintf(to, "%s%s, %s%s", begin, b->device, b->through_module ? "through /dev/rgpuN" : "over a connection of its own",
		end);
	if (b->linked)
		fprintf(to, "%sserver %s (%s, %s), %s%s", begin, b->link.server, b->link.agent, b->link.driver, b->link.tls, end);
}

void bench_table(const struct bench *b, FILE *to)
{
	char x[16];

	title(b, to, "", "\n");
	fprintf(to, "\n%-40s", "time of");
	column(to, "median", 12);
	column(to, "p99", 12);
	fputc('\n', to);
	for (int i = 0; i < BENCH_TIMES; i++) {
		if (!b->time[i].samples)
			continue;
		fprintf(to, "%-40s", times[i]);
		column(to, time_text(b->time[i].median, x), 12);
		column(to, time_text(b->time[i].p99, x), 12);
		fputc('\n', to);
	}
	if (b->time[BENCH_LAUNCH].samples)
		fprintf(to, "\nlaunches per second: %.0f\n", 1 / b->time[BENCH_LAUNCH].median);
	fprintf(to, "\n%-28s", "bytes per second");
	for (unsigned k = 0; k < BENCH_SIZES; k++)
		column(to, size_text(size_of(k), x), 12);
	fputc('\n', to);
	for (int i = 0; i < BENCH_COPIES; i++) {
		fprintf(to, "%-28s", copies[i]);
		for (unsigned k = 0; k < BENCH_SIZES; k++)
			column(to, b->copy[i][k].samples ? rate_text(size_of(k) / b->copy[i][k].median, x) : "-", 12);
		fputc('\n', to);
	}
}

void bench_csv(const struct bench *b, FILE *to)
{
	fputs("measure,bytes,unit,median,p99,best,samples\n", to);
	for (int i = 0; i < BENCH_TIMES; i++) {
		const struct bench_time *t = &b->time[i];

		if (!t->samples)
			continue;
		fprintf(to, "%s,,us,%.3f,%.3f,", bench_time_names[i], t->median * 1e6, t->p99 * 1e6);
		if (t->best > 0)
			fprintf(to, "%.3f", t->best * 1e6);
		fprintf(to, ",%u\n", t->samples);
	}
	for (int i = 0; i < BENCH_COPIES; i++)
		for (unsigned k = 0; k < BENCH_SIZES; k++) {
			const struct bench_time *t = &b->copy[i][k];
			double mb = size_of(k) / 1e6;

			if (t->samples)
				fprintf(to, "%s,%llu,MB/s,%.3f,%.3f,%.3f,%u\n", bench_copy_names[i],
					(unsigned long long)size_of(k), mb / t->median, mb / t->p99, mb / t->best, t->samples);
		}
}

/* The picture: rates over sizes, both logarithmic, and the times below as text. */
enum { LEFT = 76, TOP = 76, WIDTH = 560, HEIGHT = 280, ALL_W = 760, ALL_H = 530 };

static double x_of(unsigned k)
{
	return LEFT + (double)WIDTH * k / (BENCH_SIZES - 1);
}

static double y_of(double rate, double low, double high)
{
	return TOP + HEIGHT - HEIGHT * (log10(rate) - low) / (high - low);
}

static void svg_text(FILE *to, double x, double y, const char *anchor, const char *text)
{
	fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	xml_text(text, to);
	fputs("</text>\n", to);
}

/* The decades that hold all rates. */
static void range(const struct bench *b, double *low, double *high)
{
	double least = 1e18, most = 1;

	for (int i = 0; i < BENCH_COPIES; i++)
		for (unsigned k = 0; k < BENCH_SIZES; k++) {
			double rate = b->copy[i][k].samples ? size_of(k) / b->copy[i][k].median : 0;

			if (rate > 0 && rate < least)
				least = rate;
			if (rate > most)
				most = rate;
		}
	*low = floor(log10(least));
	*high = ceil(log10(most));
	if (*low >= *high)
		*low = *high - 1;
}

static void svg_axes(FILE *to, double low, double high)
{
	char text[32];

	for (double d = low; d <= high + 0.5; d++) {
		double y = y_of(pow(10, d), low, high);

		fprintf(to, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT, y, LEFT + WIDTH, y);
		snprintf(text, sizeof(text), "%g %s", pow(10, d >= 9 ? d - 9 : d - 6), d >= 9 ? "GB/s" : "MB/s");
		svg_text(to, LEFT - 8, y + 4, "end", text);
	}
	for (unsigned k = 0; k < BENCH_SIZES; k++)
		svg_text(to, x_of(k), TOP + HEIGHT + 20, "middle", size_text(size_of(k), text));
}

static void svg_curve(const struct bench *b, FILE *to, int i, double low, double high)
{
	static const char *const colour[BENCH_COPIES] = {"#1f77b4", "#d9480f", "#1f77b4", "#d9480f"};
	const char *dash = i == BENCH_UP_PINNED || i == BENCH_DOWN_PINNED ? " stroke-dasharray=\"6 4\"" : "";
	double y = TOP - 14;

	fprintf(to, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", colour[i], dash);
	for (unsigned k = 0; k < BENCH_SIZES && b->copy[i][k].samples; k++)
		fprintf(to, "%.1f,%.1f ", x_of(k), y_of(size_of(k) / b->copy[i][k].median, low, high));
	fputs("\"/>\n", to);
	for (unsigned k = 0; k < BENCH_SIZES && b->copy[i][k].samples; k++)
		fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x_of(k),
			y_of(size_of(k) / b->copy[i][k].median, low, high), colour[i]);
	fprintf(to, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"2\"%s/>\n", LEFT + i * 160,
		y - 4, LEFT + i * 160 + 24, y - 4, colour[i], dash);
	svg_text(to, LEFT + i * 160 + 30, y, "start", bench_copy_names[i]);
}

void bench_svg(const struct bench *b, FILE *to)
{
	char line[400], a[16], c[16];
	double low, high;

	range(b, &low, &high);
	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		ALL_W, ALL_H, ALL_W, ALL_H);
	snprintf(line, sizeof(line), "%s, %s", b->device,
		 b->through_module ? "through /dev/rgpuN" : "over a connection of its own");
	svg_text(to, LEFT, 20, "start", line);
	if (b->linked) {
		snprintf(line, sizeof(line), "%s (%s, %s), %s", b->link.server, b->link.agent, b->link.driver, b->link.tls);
		svg_text(to, LEFT, 38, "start", line);
	}
	svg_axes(to, low, high);
	for (int i = 0; i < BENCH_COPIES; i++)
		svg_curve(b, to, i, low, high);
	for (int i = 0, y = TOP + HEIGHT + 56; i < BENCH_TIMES; i++) {
		if (!b->time[i].samples)
			continue;
		svg_text(to, LEFT, y, "start", times[i]);
		snprintf(line, sizeof(line), "%s (p99 %s)", time_text(b->time[i].median, a), time_text(b->time[i].p99, c));
		svg_text(to, LEFT + WIDTH, y, "end", line);
		y += 20;
	}
	fputs("</svg>\n", to);
}
