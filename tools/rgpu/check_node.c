// SPDX-License-Identifier: MIT
/* rgpu doctor on the device nodes: are they there, whose are they, and may this user and this cgroup open them. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "tools/rgpu/doctor.h"
#include "tools/rgpu/sys.h"

#define UDEV "udevadm control --reload && udevadm trigger --settle --action=change --subsystem-match=rgpu"

static void look_users(struct doctor *d, struct finding *f)
{
	bool user = getpwnam(PROXY_USER), group = getgrnam(RGPU_GROUP);

	(void)d;
	if (*sys_root) {
		skip(f, "another root's users are not looked at");
		return;
	}
	if (sys_in_container()) {
		skip(f, "this is a container: they are the host's");
		return;
	}
	if (user && group) {
		good(f, "user " PROXY_USER ", group " RGPU_GROUP);
		return;
	}
	bad(f, "there is no %s", user ? "group " RGPU_GROUP : "user " PROXY_USER);
	fix(f, "systemd-sysusers");
}

static int wrong_node(const char *name, struct finding *f)
{
	char path[300];
	unsigned major, minor;
	const char *dev;
	struct stat st;

	snprintf(path, sizeof(path), "/sys/class/rgpu/%s/dev", name);
	dev = sys_line(path);
	if (!dev || sscanf(dev, "%u:%u", &major, &minor) != 2)
		return 0;
	snprintf(path, sizeof(path), "/dev/%s", name);
	if (!stat(sys_path(path), &st) && S_ISCHR(st.st_mode) && st.st_rdev == makedev(major, minor))
		return 0;
	if (sys_in_container()) {
		bad(f, "%s is not in this container", path);
		fix(f, "podman run --device %s …   # the container has to be started with it", path);
		return 1;
	}
	bad(f, "%s is %s", path, access(sys_path(path), F_OK) ? "missing" : "not the module's device");
	fix(f, "rm -f %s && mknod -m 0660 %s c %u %u && chgrp " RGPU_GROUP " %s", path, path, major, minor, path);
	return 1;
}

static void look_nodes(struct doctor *d, struct finding *f)
{
	unsigned n = 0;
	glob_t g;

	if (!d->loaded) {
		skip(f, "the module is not loaded");
		return;
	}
	if (glob(sys_path("/sys/class/rgpu/rgpu[0-9]*"), 0, NULL, &g)) {
		bad(f, "the module has no device at all (max_devices=0)");
		fix(f, "echo options rgpu max_devices=4 >/etc/modprobe.d/rgpu.conf && modprobe -r rgpu && modprobe rgpu");
		return;
	}
	for (size_t i = 0; i < g.gl_pathc; i++) {
		n++;
		if (wrong_node(strrchr(g.gl_pathv[i], '/') + 1, f))
			goto out;
	}
	good(f, "%u, from /dev/rgpu0 on", n);
out:
	globfree(&g);
}

static void look_permissions(struct doctor *d, struct finding *f)
{
	const struct group *gr = getgrnam(RGPU_GROUP);
	struct stat st;
	glob_t g;

	if (!d->loaded || *sys_root || sys_in_container() || !gr) {
		skip(f, "the module is not loaded here, or there is no group " RGPU_GROUP);
		return;
	}
	if (glob("/dev/rgpu[0-9]*", 0, NULL, &g)) {
		skip(f, "there is no node");
		return;
	}
	good(f, "group " RGPU_GROUP " may open them");
	for (size_t i = 0; i < g.gl_pathc; i++) {
		if (stat(g.gl_pathv[i], &st) || (st.st_gid == gr->gr_gid && (st.st_mode & 060) == 060))
			continue;
		bad(f, "%s has mode %04o and group %u; members of " RGPU_GROUP " may not open it", g.gl_pathv[i],
		    st.st_mode & 07777, st.st_gid);
		fix(f, !access("/run/udev/control", F_OK) ? UDEV
							  : "chgrp " RGPU_GROUP " /dev/rgpu[0-9]* && chmod 0660 /dev/rgpu[0-9]*");
		break;
	}
	globfree(&g);
}

static void look_ctl(struct doctor *d, struct finding *f)
{
	const struct passwd *pw = getpwnam(PROXY_USER);
	struct stat st;

	if (!d->loaded || *sys_root || sys_in_container() || !pw || stat("/dev/rgpu-ctl", &st)) {
		skip(f, "the module is not loaded here, or there is no user " PROXY_USER);
		return;
	}
	if (st.st_uid == pw->pw_uid && !(st.st_mode & 077) && (st.st_mode & 0600) == 0600) {
		good(f, "/dev/rgpu-ctl is " PROXY_USER "'s alone");
		return;
	}
	bad(f, "/dev/rgpu-ctl belongs to uid %u with mode %04o, and not to " PROXY_USER " alone", st.st_uid, st.st_mode & 07777);
	fix(f, !access("/run/udev/control", F_OK) ? UDEV : "chown " PROXY_USER " /dev/rgpu-ctl && chmod 0600 /dev/rgpu-ctl");
}

/* Who asks: behind sudo, the one who called it. */
static void look_user(struct doctor *d, struct finding *f)
{
	const char *name = getenv("SUDO_USER");
	const struct passwd *pw = name ? getpwnam(name) : getpwuid(getuid());
	const struct group *gr = getgrnam(RGPU_GROUP);
	gid_t groups[256];
	int n = 256;

	if (!d->loaded || *sys_root || !gr || !pw) {
		skip(f, "the module is not loaded, or there is no group " RGPU_GROUP);
		return;
	}
	if (!pw->pw_uid) {
		good(f, "root may");
		return;
	}
	if (!name && !access("/dev/rgpu0", R_OK | W_OK)) {
		good(f, "%s may", pw->pw_name);
		return;
	}
	if (!name && errno == EPERM) {
		skip(f, "a device cgroup is in the way");
		return;
	}
	if (getgrouplist(pw->pw_name, pw->pw_gid, groups, &n) < 0)
		n = 256;
	for (int i = 0; i < n; i++)
		if (groups[i] == gr->gr_gid) {
			if (name) {
				good(f, "%s is in the group " RGPU_GROUP, pw->pw_name);
				return;
			}
			bad(f, "%s is in the group " RGPU_GROUP ", but has not logged in since", pw->pw_name);
			fix(f, "newgrp " RGPU_GROUP "   # or log in again");
			return;
		}
	bad(f, "%s is not in the group " RGPU_GROUP, pw->pw_name);
	fix(f, "usermod -aG " RGPU_GROUP " %s   # as root; then log in again", pw->pw_name);
}

/* The unit that this process runs in, of the v2 hierarchy; false: none is named. */
static bool own_unit(char unit[200])
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[512], *name, *c;
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "0::/", 4))
			continue;
		/* The innermost part that is a unit: its children are the unit's own. */
		while (!found && (name = strrchr(line, '/'))) {
			c = strrchr(name, '.');
			found = c && (!strcmp(c, ".service") || !strcmp(c, ".scope"));
			if (found)
				snprintf(unit, 200, "%s", name + 1);
			*name = 0;
		}
	}
	if (f)
		fclose(f);
	return found;
}

static void look_cgroup(struct doctor *d, struct finding *f)
{
	char unit[200];
	struct stat st;
	int fd, err;

	/* Not access(), which a cgroup denies, too. */
	if (!d->loaded || *sys_root || stat("/dev/rgpu0", &st)) {
		skip(f, "there is no /dev/rgpu0");
		return;
	}
	fd = open("/dev/rgpu0", O_RDWR | O_CLOEXEC);
	err = fd < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (err != EPERM) {
		good(f, "the device cgroup lets /dev/rgpu0 through");
		return;
	}
	if (sys_in_container()) {
		bad(f, "the container's device cgroup denies /dev/rgpu0: a bind mount alone does not give a device");
		fix(f, "podman run --device /dev/rgpu0 …   # the container has to be started with it");
	} else if (own_unit(unit)) {
		bad(f, "the device cgroup of %s denies /dev/rgpu0", unit);
		fix(f, "systemctl set-property %s DeviceAllow='char-rgpu rw'", unit);
	} else {
		bad(f, "a device cgroup denies /dev/rgpu0, and no unit of systemd is named in /proc/self/cgroup");
		fix(f, "cat /proc/self/cgroup   # whoever made that group has to allow the device");
	}
}

const struct check checks_node[] = {
	{"users", "the proxy's user and the devices' group exist", look_users},
	{"nodes", "there is a /dev/rgpuN for each device of the module", look_nodes},
	{"node-permissions", "the devices' group may open them", look_permissions},
	{"control-node", "/dev/rgpu-ctl is the proxy's", look_ctl},
	{"user", "this user may open the devices", look_user},
	{"cgroup", "this process's cgroup may open the devices", look_cgroup},
	{0},
};
