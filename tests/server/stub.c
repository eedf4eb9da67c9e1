// SPDX-License-Identifier: MIT
/* A dispatch of the tests' own instead of the API code: calls that record their order, echo, wait at a gate, fail. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/server/stub.h"

static pthread_mutex_t stub_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t log_bytes[STUB_LOG_MAX];
uint64_t *stub_log = log_bytes;
_Atomic uint64_t stub_log_len;
_Atomic int stub_gate, stub_count, stub_lanes;
_Atomic bool stub_no_crash;

void stub_reset(void)
{
	stub_log_len = 0;
	stub_gate = 0;
	stub_count = 0;
}

uint8_t stub_pattern(uint32_t seed, uint64_t i)
{
	return seed * 31 + i * 7 + (i >> 8);
}

uint64_t stub_sum(const uint8_t *p, uint64_t n)
{
	uint64_t h = 1469598103934665603ull;

	for (uint64_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211ull;
	return h;
}

static uint32_t word(const struct srv_call *c, unsigned i)
{
	uint32_t v = 0;

	if ((i + 1) * 4 <= c->body_len)
		memcpy(&v, c->body + i * 4, 4);
	return v;
}

static void echo(struct srv_call *c)
{
	c->out_len = c->body_len < SRV_OUT_MAX ? c->body_len : SRV_OUT_MAX;
	memcpy(c->out, c->body, c->out_len);
}

static void log_stamp(struct srv_call *c)
{
	pthread_mutex_lock(&stub_lock);
	if (stub_log_len < STUB_LOG_MAX)
		stub_log[stub_log_len++] = c->rec.stamp;
	pthread_mutex_unlock(&stub_lock);
}

static void gate(struct srv_call *c)
{
	while (!stub_gate)
		usleep(100);
	log_stamp(c);
}

static void fail(struct srv_call *c)
{
	c->status = word(c, 0);
}

static void fill(struct srv_call *c)
{
	uint8_t *p = srv_recv_buffer(c);

	for (uint64_t i = 0; p && i < c->recv_len; i++)
		p[i] = stub_pattern(word(c, 0), i);
	c->recv_used = p ? c->recv_len : 0;
}

static int32_t later_ready(struct srv_call *c)
{
	if (!stub_gate)
		return SRV_PENDING;
	if (c->recv_len)
		fill(c);
	return word(c, 1);
}

static void later(struct srv_call *c)
{
	c->ready = later_ready;
}

static void sum(struct srv_call *c)
{
	uint64_t v = stub_sum(c->payload, c->payload_len);

	memcpy(c->out, &v, 8);
	c->out_len = 8;
}

static void count(struct srv_call *c)
{
	int v = ++stub_count;

	memcpy(c->out, &v, 4);
	c->out_len = 4;
}

static void crash(struct srv_call *c)
{
	(void)c;
	raise(SIGKILL); /* kill() of a process is not a worker's any more */
}

static void child(struct srv_call *c)
{
	pid_t pid = fork();
	sigset_t all;

	if (!pid) {
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
		execlp("sleep", "sleep", "1000", NULL);
		_exit(127);
	}
	memcpy(c->out, &pid, sizeof(pid));
	c->out_len = sizeof(pid);
}

static void fork_only(struct srv_call *c)
{
	pid_t pid = fork();

	while (!pid)
		pause();
	memcpy(c->out, &pid, sizeof(pid));
	c->out_len = sizeof(pid);
}

srv_fn srv_find(uint16_t op)
{
	static const srv_fn fn[] = {
		[STUB_ECHO] = echo,   [STUB_LOG] = log_stamp, [STUB_GATE] = gate,      [STUB_FAIL] = fail,
		[STUB_FILL] = fill,   [STUB_LATER] = later,   [STUB_SUM] = sum,	       [STUB_COUNT] = count,
		[STUB_CRASH] = crash, [STUB_CHILD] = child,   [STUB_FORK] = fork_only,
	};

	if ((op == STUB_CRASH || op == STUB_CHILD || op == STUB_FORK) && stub_no_crash)
		return NULL;
	return op < sizeof(fn) / sizeof(*fn) ? fn[op] : NULL;
}

const char *srv_op_name(uint16_t op)
{
	return op == STUB_ECHO ? "echo" : "stub";
}

int32_t srv_not_supported(uint16_t op)
{
	(void)op;
	return STUB_NOT_SUPPORTED;
}

/* A session: refuses when its data says so. */
int srv_session_open(struct srv_session **out, const struct rgpu_start *start, const void *data, uint32_t data_len, char *why,
		     size_t size)
{
	(void)start;
	if (data_len >= 6 && !memcmp(data, "refuse", 6)) {
		snprintf(why, size, "the stub refuses this session, as asked");
		return -EINVAL;
	}
	while (data_len >= 4 && !memcmp(data, "hang", 4))
		pause();
	*out = malloc(1);
	return *out ? 0 : -ENOMEM;
}

int srv_session_join(struct srv_session *s, uint32_t device)
{
	(void)s;
	return device < 2 ? 0 : -ENODEV;
}

void srv_session_close(struct srv_session *s)
{
	free(s);
}

struct srv_lane_state *srv_lane_open(struct srv_session *s)
{
	(void)s;
	stub_lanes++;
	return malloc(1);
}

void srv_lane_close(struct srv_session *s, struct srv_lane_state *l)
{
	(void)s;
	stub_lanes--;
	free(l);
}

int srv_driver_load(const char *lib, const char *blas, char *why, size_t size)
{
	const char *slow = getenv("STUB_LOAD_MS");

	(void)blas;
	if (slow)
		usleep(atoi(slow) * 1000);
	if (!lib || strcmp(lib, "stub")) {
		snprintf(why, size, "%s: no such driver", lib ? lib : "libcuda.so.1");
		return -ENOENT;
	}
	return 0;
}

int srv_driver_devices(void *buf, size_t room, uint32_t *version, char *name, size_t size)
{
	uint8_t *p = buf;

	*version = 13000;
	snprintf(name, size, "stub");
	for (unsigned i = 0; i < 2; i++) {
		struct rgpu_device_entry e = {.uuid = {1, i}, .mem_total = 1 << 30, .props_len = 5};

		if (room < sizeof(e) + 8)
			return -ENOSPC;
		snprintf(e.name, sizeof(e.name), "Stub GPU %u", i);
		memcpy(p, &e, sizeof(e));
		memcpy(p + sizeof(e), "props\0\0", 8);
		p += sizeof(e) + 8;
		room -= sizeof(e) + 8;
	}
	return p - (uint8_t *)buf;
}

uint64_t srv_session_mem(struct srv_session *s, unsigned i)
{
	(void)s;
	return 4096 * (i + 1);
}
