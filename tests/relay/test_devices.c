// SPDX-License-Identifier: MIT
/* The proxy's way back to a server that takes it in and hangs up again. */
#include <string.h>
#include <unistd.h>
#include "lib/clock.h"
#include "tests/tap.h"
#include "usermode-proxy/devices.h"

/* The server: lets in and closes at once. The module: has nothing, and takes all. */
static unsigned greeted; /* atomic */
static unsigned offline; /* atomic */
static int closed_fd;

int rgpu_ctl_hello(struct rgpu_ctl *c, struct rgpu_welcome *out, char why[RGPU_WHY_MAX])
{
	(void)c;
	(void)why;
	memset(out, 0, sizeof(*out));
	__atomic_add_fetch(&greeted, 1, __ATOMIC_SEQ_CST);
	return 0;
}

int rgpu_ctl_devices(struct rgpu_ctl *c, struct rgpu_devices *out, char why[RGPU_WHY_MAX])
{
	(void)c;
	(void)why;
	memset(out, 0, sizeof(*out));
	return 0;
}

void rgpu_devices_free(struct rgpu_devices *d)
{
	(void)d;
}

int rgpu_ctl_fd(struct rgpu_ctl *c)
{
	(void)c;
	return closed_fd;
}

void rgpu_ctl_drop(struct rgpu_ctl *c)
{
	(void)c;
}

bool rgpu_ctl_retryable(int err)
{
	(void)err;
	return true;
}

int kern_devices(struct kern *nl, struct kern_device **out, unsigned *n, char why[RGPU_WHY_MAX])
{
	(void)nl;
	(void)why;
	*out = NULL;
	*n = 0;
	return 0;
}

int kern_dev_add(struct kern *nl, uint32_t *minor, char why[RGPU_WHY_MAX])
{
	(void)nl;
	(void)why;
	*minor = 0;
	return 0;
}

int kern_dev_online(struct kern *nl, uint32_t minor, const char *name, const uint8_t uuid[RGPU_UUID_LEN],
		    const uint8_t server[RGPU_UUID_LEN], uint64_t mem_total, const void *props, uint32_t props_len,
		    char why[RGPU_WHY_MAX])
{
	(void)nl;
	(void)minor;
	(void)name;
	(void)uuid;
	(void)server;
	(void)mem_total;
	(void)props;
	(void)props_len;
	(void)why;
	return 0;
}

int kern_dev_offline(struct kern *nl, uint32_t minor, char why[RGPU_WHY_MAX])
{
	(void)nl;
	(void)minor;
	(void)why;
	__atomic_add_fetch(&offline, 1, __ATOMIC_SEQ_CST);
	return 0;
}

int main(void)
{
	const struct rgpu_addr server = {.host = "127.0.0.1", .port = 1};
	char why[RGPU_WHY_MAX];
	int64_t began = rgpu_now_ns();
	int p[2];

	if (pipe(p))
		return 1;
	close(p[1]);
	closed_fd = p[0];
	is_int(devices_run(NULL, NULL, &server, why), 0, "a server that hangs up at once");
	while (__atomic_load_n(&greeted, __ATOMIC_SEQ_CST) < 4)
		usleep(1000);
	/* 200, 400, 800 ms; a slow machine only takes longer. */
	ok(rgpu_now_ns() - began >= 1400000000, "four tries take a second and a half, at least (%lld ms)",
	   (long long)(rgpu_now_ns() - began) / 1000000);
	is_int(__atomic_load_n(&offline, __ATOMIC_SEQ_CST), 0, "and meanwhile no device goes");
	return tap_done();
}
