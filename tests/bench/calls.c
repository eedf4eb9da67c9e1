/* SPDX-License-Identifier: MIT */
/*
 * Times launches, small synchronous calls, copies and training-like steps through the driver API: the same program for every
 * transport and driver. Usage: calls [-r PORT] [-m MIB] [-l LAUNCHES] [-c CALLS] [-t TRIES] [-s STEPS] [-k KIND] [-p PID] [-p
 * PID] KERNELS.ptx; prints "name value" lines: µs a call, GB/s, round trips. Best of TRIES. With -r, raw TLS to PORT takes turns
 * with the calls, so that a busy moment of the machine hits both. With -p, CPU seconds that this process and the children of PID
 * (a server and raw TLS's other end) took for a GiB of each kind of copy: they tell the same on a busy machine. With -k, only
 * that kind of copy.
 */
#include <cuda.h>
#include <dirent.h>
#include <dlfcn.h>
#include <getopt.h>
#include <time.h>
#include <unistd.h>
#include "tests/bench/raw.h"
#include "tests/e2e/e2e.h"

#define STEP_BYTES    (4u << 20)
#define STEP_LAUNCHES 60
#define STEP_US	      50000

/* The null driver's own kernel: keeps its stream busy for so long. */
static const char busy_ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			       ".visible .entry null_busy(.param .u32 us)\n{\n\tret;\n}\n";

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* CPU time of this process and of the processes that were forked by those of -p. */
static pid_t parents[2];
static unsigned nparents;

static double cpu_of(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t) ? 0 : t.tv_sec + t.tv_nsec * 1e-9;
}

static double cpu(void)
{
	double sum = cpu_of(getpid());
	DIR *dir = nparents ? opendir("/proc") : NULL;

	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[64];
		int parent = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%.20s/stat", e->d_name);
		f = atoi(e->d_name) ? fopen(path, "r") : NULL;
		if (!f)
			continue;
		if (fscanf(f, "%*d (%*[^)]) %*c %d", &parent) == 1)
			for (unsigned i = 0; i < nparents; i++)
				sum += parent == parents[i] ? cpu_of(atoi(e->d_name)) : 0;
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static struct raw *raw;
static CUstream stream;
static CUfunction kernel, busy;
static CUdeviceptr a, b;
static int tries = 3;
static const char *only; /* kind of copy */

static double least(double best, double t)
{
	return t < best ? t : best;
}

static void launch(void)
{
	int count = 7;
	void *args[] = {&a, &b, &b, &count};

	DR(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, args, NULL));
}

/* −1: not rgpu's libcuda. */
static long round_trips(void)
{
	long (*count)(const char *) = (long (*)(const char *))dlvsym(RTLD_DEFAULT, "rgpuRoundTrips", "RGPU_PRIVATE");

	return count ? count(NULL) : -1;
}

/* So many find room in an empty ring: none waits for those before it. */
#define BURST 1000

static void bursts(void)
{
	double issue = 1e9, t0;

	for (int r = 0; r < 10 * tries; r++) {
		t0 = now();
		for (int i = 0; i < BURST; i++)
			launch();
		issue = least(issue, now() - t0);
		DR(cuStreamSynchronize(stream));
	}
	printf("launch_burst %.4f\n", issue / BURST * 1e6);
}

/* More than fit: then each waits until those long before it have crossed. */
static void launches(int n)
{
	double issue = 1e9, complete = 1e9, t0, t1;

	for (int r = 0; r < tries; r++) {
		t0 = now();
		for (int i = 0; i < n; i++)
			launch();
		t1 = now();
		DR(cuStreamSynchronize(stream));
		issue = least(issue, t1 - t0);
		complete = least(complete, now() - t0);
	}
	printf("launch_issue %.4f\nlaunch_complete %.4f\n", issue / n * 1e6, complete / n * 1e6);
}

static void small_calls(int n)
{
	double ping = 1e9, down = 1e9, sync = 1e9, t0;
	uint32_t word = 0;

	for (int r = 0; r < tries; r++) {
		t0 = now();
		for (int i = 0; raw && i < n; i++)
			raw_ping(raw);
		ping = least(ping, now() - t0);
		t0 = now();
		for (int i = 0; i < n; i++)
			DR(cuMemcpyDtoH(&word, a, 4));
		down = least(down, now() - t0);
		t0 = now();
		for (int i = 0; i < n; i++) {
			launch();
			DR(cuStreamSynchronize(stream));
		}
		sync = least(sync, now() - t0);
	}
	printf("ping %.3f\nd2h_4B %.3f\nlaunch_and_sync %.3f\n", ping / n * 1e6, down / n * 1e6, sync / n * 1e6);
}

static void allocations(int n)
{
	long before = 0;
	CUdeviceptr p;
	double t0 = 0;

	/* Idle, as a program is whose memory is all leased; the first of a size leases more. */
	DR(cuCtxSynchronize());
	for (int i = -2; i < n; i++) {
		if (!i) {
			before = round_trips();
			t0 = now();
		}
		DR(cuMemAlloc(&p, 1 << 20));
		DR(cuMemFree(p));
	}
	printf("malloc_free %.3f\nmalloc_free_trips %ld\n", (now() - t0) / n * 1e6, round_trips() - before);
}

/* Copies that end when the device has all: the raw ones do, too. */
static void copies(size_t bytes)
{
	enum { RAW_UP, RAW_DOWN, UP, DOWN, UP_PINNED, DOWN_PINNED, NONE };
	static const char *const name[] = {"raw_up", "raw_down", "h2d", "d2h", "h2d_pinned", "d2h_pinned"};
	uint32_t *out = malloc(bytes), *in = malloc(bytes), *pinned;
	double best[NONE], cpu_least[NONE];

	DR(cuMemHostAlloc((void **)&pinned, bytes, 0));
	if (!out || !in)
		die("no %zu bytes of memory", 2 * bytes);
	for (size_t i = 0; i < bytes / 4; i++)
		out[i] = i * 2654435761u;
	memset(in, 0, bytes);
	memcpy(pinned, out, bytes);
	for (int i = 0; i < NONE; i++)
		best[i] = cpu_least[i] = 1e9;
	for (int r = 0; r < tries; r++)
		for (int i = raw ? RAW_UP : UP; i < NONE; i++) {
			double cpu0, t0;

			if (only && strcmp(only, name[i]))
				continue;
			cpu0 = nparents ? cpu() : 0;
			t0 = now();
			switch (i) {
			case RAW_UP:
				raw_up(raw, bytes);
				break;
			case RAW_DOWN:
				raw_down(raw, bytes);
				break;
			case UP:
				DR(cuMemcpyHtoDAsync(a, out, bytes, stream));
				break;
			case DOWN:
				DR(cuMemcpyDtoHAsync(in, a, bytes, stream));
				break;
			case UP_PINNED:
				DR(cuMemcpyHtoDAsync(a, pinned, bytes, stream));
				break;
			case DOWN_PINNED:
				DR(cuMemcpyDtoHAsync(pinned, a, bytes, stream));
				break;
			}
			if (i == UP || i == UP_PINNED || i == DOWN_PINNED)
				DR(cuStreamSynchronize(stream));
			best[i] = least(best[i], now() - t0);
			cpu_least[i] = nparents ? least(cpu_least[i], cpu() - cpu0) : 0;
			if (only)
				continue;
			/* A copy that lost bytes would be a fast one. */
			if ((i == DOWN && memcmp(in, out, bytes)) || (i == DOWN_PINNED && memcmp(pinned, out, bytes)))
				die("%s: what came back is not what was sent", name[i]);
			if (i == DOWN)
				memset(in, 0, bytes);
			/* Nothing may be found here that was sent before. */
			for (size_t k = 0; i == DOWN_PINNED && k < bytes / 4; k += 256)
				pinned[k] = out[k] += 1;
		}
	for (int i = raw ? RAW_UP : UP; i < NONE; i++)
		if (best[i] < 1e9)
			printf("%s %.4f\n", name[i], bytes / best[i] / 1e9);
	for (int i = raw ? RAW_UP : UP; i < NONE && nparents; i++)
		if (best[i] < 1e9)
			printf("%s_cpu %.4f\n", name[i], cpu_least[i] / bytes * (1 << 30));
	DR(cuMemFreeHost(pinned));
	free(in);
	free(out);
}

static void step(uint32_t *batch, unsigned number)
{
	uint32_t us = STEP_US;
	void *args[] = {&us};

	for (size_t i = 0; i < STEP_BYTES / 4; i += 64)
		batch[i] = i + number;
	DR(cuMemcpyHtoDAsync(a, batch, STEP_BYTES, stream));
	for (int i = 1; i < STEP_LAUNCHES; i++)
		launch();
	DR(cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
}

/* A batch up, launches, 50 ms of work, a scalar back: read at once, and read one step late from page-locked memory. */
static void steps(int n)
{
	uint32_t *pinned, *batch[2];
	double best = 1e9, t0, t1;
	CUevent event[2];
	long trips;

	DR(cuMemHostAlloc((void **)&pinned, 64, 0));
	for (int i = 0; i < 2; i++) {
		DR(cuMemHostAlloc((void **)&batch[i], STEP_BYTES, 0));
		for (size_t k = 0; k < STEP_BYTES / 4; k++)
			batch[i][k] = k * 2654435761u;
		DR(cuEventCreate(&event[i], CU_EVENT_DISABLE_TIMING));
	}
	step(batch[0], 0);
	DR(cuStreamSynchronize(stream));
	trips = round_trips();
	for (int i = 0; i < n; i++) {
		t0 = now();
		step(batch[0], i);
		DR(cuMemcpyDtoHAsync(pinned, b, 4, stream));
		DR(cuStreamSynchronize(stream));
		best = least(best, now() - t0);
	}
	printf("step %.3f\nstep_trips %.2f\n", best * 1e3, (double)(round_trips() - trips) / n);
	/* The whole run counts here: its beginning, which fills the pipe, does not. */
	t0 = 0;
	for (int i = 0; i < n + 2; i++) {
		step(batch[i % 2], i);
		DR(cuMemcpyDtoHAsync(&pinned[i % 2], b, 4, stream));
		DR(cuEventRecord(event[i % 2], stream));
		if (i)
			DR(cuEventSynchronize(event[(i - 1) % 2]));
		if (i == 1)
			t0 = now();
	}
	t1 = now();
	DR(cuStreamSynchronize(stream));
	printf("step_late %.3f\n", (t1 - t0) / n * 1e3);
}

int main(int argc, char **argv)
{
	int nlaunch = 20000, ncalls = 2000, nsteps = 0, opt;
	size_t bytes = 256u << 20, room;
	CUmodule mod;
	CUdevice dev;
	CUcontext ctx;
	double t0;

	while ((opt = getopt(argc, argv, "r:m:l:c:t:s:p:k:")) != -1) {
		int n = opt == '?' ? 0 : atoi(optarg);

		switch (opt) {
		case 'r':
			raw = raw_open(n);
			break;
		case 'm':
			bytes = (size_t)n << 20;
			break;
		case 'l':
			nlaunch = n;
			break;
		case 'c':
			ncalls = n;
			break;
		case 't':
			tries = n;
			break;
		case 's':
			nsteps = n;
			break;
		case 'k':
			only = optarg;
			break;
		case 'p':
			if (nparents < 2)
				parents[nparents++] = n;
			break;
		default:
			die("usage: calls [-r PORT] [-m MIB] [-l LAUNCHES] [-c CALLS] [-t TRIES] [-s STEPS] [-k KIND] [-p PID] "
			    "[-p PID] KERNELS.ptx");
		}
	}
	if (optind + 1 != argc)
		die("calls: name the file of kernels (tests/e2e/kernels.ptx)");
	t0 = now();
	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	DR(cuModuleLoadData(&mod, e2e_read(argv[optind], NULL)));
	DR(cuModuleGetFunction(&kernel, mod, "vadd"));
	DR(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	room = bytes < STEP_BYTES ? STEP_BYTES : bytes;
	DR(cuMemAlloc(&a, room));
	DR(cuMemAlloc(&b, 4096));
	printf("start %.3f\n", (now() - t0) * 1e6);
	bursts();
	launches(nlaunch);
	small_calls(ncalls);
	allocations(200);
	if (bytes)
		copies(bytes);
	if (nsteps) {
		DR(cuModuleLoadData(&mod, busy_ptx));
		DR(cuModuleGetFunction(&busy, mod, "null_busy"));
		steps(nsteps);
	}
	if (raw)
		raw_close(raw);
	return 0;
}
