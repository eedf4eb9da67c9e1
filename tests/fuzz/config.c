// SPDX-License-Identifier: MIT
/* Fuzz target: any text as a configuration, a key file, an address: taken, or refused with a reason. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/addr.h"
#include "lib/conf.h"
#include "lib/key.h"
#include "tests/fuzz/fuzz.h"

static int taken, refused;

static int set(void *arg, const char *name, const char *value, char why[RGPU_WHY_MAX])
{
	(void)arg;
	taken++;
	/* Each is one line: who takes a setting relies on that. */
	if (strlen(name) != strcspn(name, "\n") || strlen(value) != strcspn(value, "\n") || rgpu_conf_bool(value) > 1)
		abort();
	return strcmp(name, "bad") ? 0 : rgpu_why(why, -22, "bad is no setting");
}

static void bad(void *arg, const char *path, int line, const char *why)
{
	(void)arg;
	refused++;
	if (!*path || line < 1 || !*why)
		abort();
}

static void all(const char *text, const char *path)
{
	struct rgpu_conf conf = {.section = "server", .set = set, .bad = bad};
	char why[RGPU_WHY_MAX], out[RGPU_ADDR_TEXT_MAX], file[RGPU_KEY_TEXT_MAX];
	struct rgpu_addr a, b;
	struct rgpu_key k, l;
	int n;

	taken = refused = 0;
	*why = 0;
	n = rgpu_conf_read(&conf, path, why);
	if (n < 0 ? !*why : n != refused)
		abort();
	*why = 0;
	if (rgpu_key_parse(text, &k, why)) {
		if (!*why)
			abort();
	} else {
		rgpu_key_text(&k, file);
		if (rgpu_key_parse(file, &l, why) || memcmp(k.secret, l.secret, RGPU_KEY_LEN) || strcmp(k.identity, l.identity))
			abort();
	}
	rgpu_key_load(path, &l, why);
	*why = 0;
	if (rgpu_addr_parse(text, true, &a, why)) {
		if (!*why)
			abort();
	} else {
		rgpu_addr_text(&a, out);
		if (rgpu_addr_parse(out, true, &b, why) || strcmp(a.host, b.host) || a.port != b.port)
			abort();
	}
	rgpu_addr_parse(text, false, &a, why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char path[64];
	static int fd = -1;
	char *text = malloc(size + 1);

	if (fd < 0) {
		fd = memfd_create("conf", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		fchmod(fd, 0600);
	}
	memcpy(text, data, size);
	text[size] = 0;
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	all(text, path);
	free(text);
	return 0;
}
