/* SPDX-License-Identifier: MIT */
/* A module of another version, to be preloaded: /dev/rgpu0 is there, and says that its interface is OLDMODULE ("MAJOR.MINOR"). */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/rgpu.h>

static int device = -1;

static int open_real(const char *path, int flags, mode_t mode)
{
	int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");

	if (strcmp(path, "/dev/rgpu0"))
		return real(path, flags, mode);
	device = real("/dev/null", flags);
	return device;
}

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return open_real(path, flags, mode);
}

/* The same on machines of 64 bits. */
__attribute__((visibility("default"), alias("open"))) int open64(const char *path, int flags, ...);

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	int (*real)(int, unsigned long, ...) = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	unsigned major = 0, minor = 0;
	struct rgpu_info *info;
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fd != device || device < 0)
		return real(fd, request, arg);
	info = arg;
	sscanf(getenv("OLDMODULE"), "%u.%u", &major, &minor);
	info->abi_major = major;
	info->abi_minor = minor;
	return request == RGPU_IOC_INFO ? 0 : -1;
}
