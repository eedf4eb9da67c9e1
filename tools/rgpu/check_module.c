// SPDX-License-Identifier: MIT
/* rgpu doctor on the kernel module: is it built for this kernel, may it be loaded, is it loaded, is it this release's. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/rgpu.h>
#include "tools/rgpu/doctor.h"
#include "tools/rgpu/sys.h"

/* The version whose source DKMS has, newest last; NULL: none. */
static const char *dkms_source(void)
{
	static char version[64];
	glob_t g;

	if (glob(sys_path("/usr/src/rgpu-*"), 0, NULL, &g) || !g.gl_pathc)
		return NULL;
	snprintf(version, sizeof(version), "%s", strrchr(g.gl_pathv[g.gl_pathc - 1], '-') + 1);
	globfree(&g);
	return version;
}

/* What modprobe would take, by modules.dep. */
static bool find_module(char out[512])
{
	char path[300], line[4096], *colon;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", sys_release());
	f = fopen(sys_path(path), "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = 0;
		if (strncmp(strrchr(line, '/') ? strrchr(line, '/') : line, "/rgpu.ko", 8))
			continue;
		if (*line == '/')
			snprintf(out, 512, "%.500s", line);
		else
			snprintf(out, 512, "/lib/modules/%.200s/%.200s", sys_release(), line);
		found = !access(sys_path(out), F_OK);
	}
	if (f)
		fclose(f);
	return found;
}

static void look_file(struct doctor *d, struct finding *f)
{
	const char *version = dkms_source(), *release = sys_release();
	char headers[300];

	d->loaded = !access(sys_path("/sys/module/rgpu"), F_OK);
	d->have_module = find_module(d->module);
	if (d->have_module) {
		good(f, "%s", d->module);
		return;
	}
	if (sys_in_container()) {
		skip(f, "this is a container: the module is the host's");
		return;
	}
	bad(f, "there is no rgpu.ko for this kernel (%s)", release);
	snprintf(headers, sizeof(headers), "/lib/modules/%s/build/Makefile", release);
	if (!version)
		fix(f, "apt-get install rgpu-dkms linux-headers-%s", release);
	else if (access(sys_path(headers), F_OK))
		fix(f, "apt-get install linux-headers-%s && dkms install rgpu/%s -k %s", release, version, release);
	else
		fix(f, "dkms install --force rgpu/%s -k %s", version, release);
}

/* Whether this kernel takes signed modules only; @why: what says so. */
static bool wants_signature(const char **why)
{
	const char *enforce = sys_line("/sys/module/module/parameters/sig_enforce"),
		   *lockdown = sys_line("/sys/kernel/security/lockdown");
	FILE *f = fopen(sys_path("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"), "re");
	unsigned char secure[5] = {0};
	size_t n = f ? fread(secure, 1, sizeof(secure), f) : 0;

	if (f)
		fclose(f);
	*why = n == 5 && secure[4] ? "Secure Boot is on" : "module.sig_enforce is set";
	return (n == 5 && secure[4]) || (enforce && *enforce == 'Y') || (lockdown && !strstr(lockdown, "[none]"));
}

static bool is_signed(const char *path)
{
	static const char magic[] = "~Module signature appended~\n";
	char end[sizeof(magic)] = "";
	FILE *f = fopen(sys_path(path), "re");
	bool yes;

	yes = f && !fseek(f, -(long)(sizeof(magic) - 1), SEEK_END) && fread(end, 1, sizeof(magic) - 1, f) == sizeof(magic) - 1 &&
	      !strcmp(end, magic);
	if (f)
		fclose(f);
	return yes;
}

static void look_signature(struct doctor *d, struct finding *f)
{
	const char *why, *version = dkms_source(), *release = sys_release();

	if (!d->have_module) {
		skip(f, "there is no module");
		return;
	}
	if (!wants_signature(&why)) {
		good(f, "this kernel takes unsigned modules");
		return;
	}
	if (is_signed(d->module)) {
		good(f, "%s, and the module is signed", why);
		return;
	}
	bad(f, "%s, and %s has no signature", why, d->module);
	fix(f, "dkms build --force rgpu/%s -k %s && dkms install --force rgpu/%s -k %s", version ? version : RGPU_VERSION,
	    release, version ? version : RGPU_VERSION, release);
}

/* The key that DKMS signed with is this machine's own: its firmware has to be told, once. */
static void look_key(struct doctor *d, struct finding *f)
{
	static const char *const test[] = {"mokutil", "--test-key", "/var/lib/dkms/mok.pub", NULL};
	char out[300];
	const char *why;

	if (!d->have_module || !wants_signature(&why) || !is_signed(d->module)) {
		skip(f, "no signature is asked for, or there is none");
		return;
	}
	if (d->loaded || *sys_root) {
		good(f, "the kernel has taken the module");
		return;
	}
	if (!sys_run(test, out, sizeof(out)) && strstr(out, "is already enrolled")) {
		good(f, "the key of /var/lib/dkms/mok.pub is enrolled");
		return;
	}
	bad(f, "%s, and the kernel does not know the key that this machine signs its modules with", why);
	fix(f, "mokutil --import /var/lib/dkms/mok.pub && reboot   # asks for a password, which the firmware asks for again at "
	       "the start");
}

static void look_loaded(struct doctor *d, struct finding *f)
{
	if (d->loaded) {
		good(f, "it is");
		return;
	}
	if (sys_in_container()) {
		bad(f, "the host of this container has not loaded the module");
		fix(f, "modprobe rgpu   # on the host");
		return;
	}
	bad(f, "the module is not loaded");
	fix(f, "modprobe rgpu");
}

static void look_version(struct doctor *d, struct finding *f)
{
	const char *version = sys_line("/sys/module/rgpu/version"), *abi = sys_line("/sys/class/rgpu/rgpu-ctl/abi");
	const char *const ask[] = {"modinfo", "-F", "version", d->module, NULL};
	char file[64] = "";

	if (!d->loaded || !version) {
		skip(f, "the module is not loaded");
		return;
	}
	if (d->have_module && !*sys_root && sys_run(ask, file, sizeof(file)))
		file[0] = 0;
	file[strcspn(file, "\n")] = 0;
	if (!strcmp(version, RGPU_VERSION) && (!abi || atoi(abi) == RGPU_ABI_MAJOR)) {
		good(f, "%s, as the rest", version);
		return;
	}
	bad(f, "the loaded module is %s (interface %s), the rest %s (%d.%d)", version, abi ? abi : "unknown", RGPU_VERSION,
	    RGPU_ABI_MAJOR, RGPU_ABI_MINOR);
	if (!strcmp(file, RGPU_VERSION))
		fix(f, "systemctl stop rgpu-proxy; modprobe -r rgpu && modprobe rgpu && systemctl start rgpu-proxy   # ends "
		       "running programs");
	else
		fix(f, "apt-get install --only-upgrade rgpu-dkms rgpu-proxy rgpu-utils librgpu-cuda1");
}

const struct check checks_module[] = {
	{"module-file", "rgpu.ko is built for the running kernel", look_file},
	{"module-signature", "where the kernel wants signed modules, it is signed", look_signature},
	{"module-key", "and the kernel knows the key", look_key},
	{"module-loaded", "the module is loaded", look_loaded},
	{"module-version", "the loaded module is of this release", look_version},
	{0},
};
