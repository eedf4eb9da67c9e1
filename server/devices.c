// SPDX-License-Identifier: MIT
/* The driver's devices: read once by a child process, so that the listener never loads a driver. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
#include "lib/clock.h"
#include "server/devices.h"
#include "server/dispatch.h"
#include "server/process.h"
#include "server/spawn.h"

#define CHILD_MS 60000 /* a driver with many GPUs takes seconds to start */

/* What the child writes; then len bytes. */
struct answer {
	int32_t err;
	uint32_t driver_version, len;
	char driver[64];
	char why[RGPU_WHY_MAX];
};

static int write_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			len -= n;
		}
	}
	return 0;
}

int devices_process(int fd, const char *driver, const char *blas)
{
	uint8_t *list = calloc(1, RGPU_FRAME_MAX);
	struct answer a = {0};
	int n;

	if (!list)
		return 1;
	a.err = srv_driver_load(driver, *blas ? blas : NULL, a.why, sizeof(a.why));
	if (!a.err) {
		n = srv_driver_devices(list, RGPU_FRAME_MAX, &a.driver_version, a.driver, sizeof(a.driver));
		if (n < 0)
			a.err = rgpu_why(a.why, n, "%s: the devices' properties cannot be read: %s", driver, strerror(-n));
		else
			a.len = n;
	}
	if (write_all(fd, &a, sizeof(a)) || write_all(fd, list, a.len))
		return 1;
	return a.err != 0;
}

static int read_all(int fd, void *buf, size_t len, int64_t deadline)
{
	char *p = buf;

	while (len) {
		struct pollfd pfd = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&pfd, 1, rgpu_ms_left(deadline)) == 0)
			return -ETIMEDOUT;
		n = read(fd, p, len);
		if (!n)
			return -EPIPE;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			len -= n;
		}
	}
	return 0;
}

/* Walks the list, to count it and to know the memory sizes. */
static int survey(struct devices *d)
{
	uint32_t at = 0;

	while (at < d->len) {
		struct rgpu_device_entry e;
		uint64_t size;

		if (d->len - at < sizeof(e) || d->n == DEVICES_MAX)
			return -EPROTO;
		memcpy(&e, d->list + at, sizeof(e));
		size = sizeof(e) + ((uint64_t)e.props_len + 7) / 8 * 8;
		if (size > d->len - at)
			return -EPROTO;
		d->mem_total[d->n++] = e.mem_total;
		at += size;
	}
	return d->n ? 0 : -ENODEV;
}

static int hear(int fd, struct devices *d, const char *driver, char why[RGPU_WHY_MAX])
{
	int64_t deadline = rgpu_deadline(CHILD_MS);
	struct answer a;
	int err = read_all(fd, &a, sizeof(a), deadline);

	if (err == -ETIMEDOUT)
		return rgpu_why(why, err, "%s did not start within %d s", driver, CHILD_MS / 1000);
	if (err)
		return rgpu_why(why, -EIO, "%s crashed while it was loaded", driver);
	if (a.err) {
		memcpy(why, a.why, RGPU_WHY_MAX);
		why[RGPU_WHY_MAX - 1] = 0;
		return a.err;
	}
	d->driver_version = a.driver_version;
	d->len = a.len;
	memcpy(d->driver, a.driver, sizeof(d->driver));
	d->driver[sizeof(d->driver) - 1] = 0;
	d->list = a.len <= RGPU_FRAME_MAX ? malloc(a.len + 1) : NULL;
	if (!d->list)
		return rgpu_why(why, -ENOMEM, "out of memory for the device list");
	err = read_all(fd, d->list, a.len, deadline);
	if (!err)
		err = survey(d);
	if (err == -ENODEV)
		return rgpu_why(why, err, "%s has no device", driver);
	return err ? rgpu_why(why, err, "%s: the device list is damaged", driver) : 0;
}

int devices_read(const struct server_opts *o, struct devices *d, char why[RGPU_WHY_MAX])
{
	const char *args[] = {"--driver", o->driver, *o->blas ? "--blas" : NULL, o->blas, NULL};
	int p[2], err;
	pid_t pid;

	*d = (struct devices){0};
	if (pipe2(p, O_CLOEXEC))
		return rgpu_why(why, -errno, "pipe: %s", strerror(errno));
	err = spawn_self("--devices", p[1], args, &pid);
	close(p[1]);
	if (!err) {
		err = hear(p[0], d, o->driver, why);
		kill(-pid, SIGKILL);
		waitpid(pid, NULL, 0);
	} else {
		rgpu_why(why, err, "cannot start a child process: %s", strerror(-err));
	}
	close(p[0]);
	return err;
}
