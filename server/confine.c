// SPDX-License-Identifier: MIT
/*
 * What a worker may not do any more once its driver is loaded and before it sees its client's first byte.
 *
 * The filter denies by list: which calls a genuine driver needs (ioctl, mmap, open of its devices, memfd, futex …) is its
 * vendor's to change, which ones it has no use for is not. What is denied are ways out of the process: to other programs and
 * processes, to the kernel's own configuration and code, to new privileges and name spaces, and to the network: the worker is
 * given its connection as a descriptor, and has local sockets only.
 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <malloc.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "server/confine.h"

#define FILES_MAX 4096

static const char *const denied[] = {
	/* Other programs, other processes. */
	"execve",
	"execveat",
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"process_madvise",
	"kcmp",
	"pidfd_getfd",
	"pidfd_send_signal",
	"tkill",
	"rt_sigqueueinfo",
	"rt_tgsigqueueinfo",
	"setsid", /* its process group is how it is ended, with what it has started */
	"setpgid",
	"migrate_pages",
	"move_pages",
	/* Mounts and roots. */
	"mount",
	"umount",
	"umount2",
	"pivot_root",
	"chroot",
	"move_mount",
	"open_tree",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"mount_setattr",
	"quotactl",
	"quotactl_fd",
	"fanotify_init",
	"open_by_handle_at",
	"name_to_handle_at",
	"mknod",
	"mknodat",
	/* The kernel: its code, its settings, its faults. */
	"init_module",
	"finit_module",
	"delete_module",
	"create_module",
	"kexec_load",
	"kexec_file_load",
	"bpf",
	"perf_event_open",
	"userfaultfd",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"lookup_dcookie",
	"syslog",
	"_sysctl",
	"uselib",
	"reboot",
	"swapon",
	"swapoff",
	"acct",
	"sethostname",
	"setdomainname",
	"settimeofday",
	"stime",
	"clock_settime",
	"clock_adjtime",
	"adjtimex",
	"iopl",
	"ioperm",
	"vhangup",
	"nfsservctl",
	"personality",
	/* Keys, privileges, name spaces. */
	"keyctl",
	"add_key",
	"request_key",
	"setuid",
	"setgid",
	"setreuid",
	"setregid",
	"setresuid",
	"setresgid",
	"setfsuid",
	"setfsgid",
	"setgroups",
	"capset",
	"setns",
	"unshare",
};

void confine_early(void)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_NAME, "rgpu-worker");
	signal(SIGPIPE, SIG_IGN);
	/* From a terminal, ^C is for the listener, which tells us. */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	/* Payloads and answers of up to 2 MiB come and go all the time: keep their memory mapped. */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

static int become(const char *name, char why[RGPU_WHY_MAX])
{
	struct passwd *pw;

	if (!*name || geteuid())
		return 0;
	errno = 0;
	pw = getpwnam(name);
	if (!pw)
		return rgpu_why(why, errno ? -errno : -ENOENT, "worker-user: there is no user \"%.60s\" on this machine", name);
	/* glibc's calls change all threads of the process. */
	if (initgroups(name, pw->pw_gid) || setgid(pw->pw_gid) || setuid(pw->pw_uid))
		return rgpu_why(why, -errno, "cannot become the user %.60s: %s", name, strerror(errno));
	return 0;
}

/* Of this thread and of those that it makes; the driver's own threads are those of a library that the server's owner chose. */
static int drop_capabilities(char why[RGPU_WHY_MAX])
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &head, none))
		return rgpu_why(why, -errno, "cannot drop capabilities: %s", strerror(errno));
	return 0;
}

static int fill(scmp_filter_ctx f)
{
	static const int families[] = {AF_INET, AF_INET6, AF_PACKET, AF_VSOCK, AF_ALG, AF_XDP};
	static const uint64_t spaces =
		CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	int err = 0, pid = getpid();

	for (size_t i = 0; i < sizeof(denied) / sizeof(*denied) && !err; i++) {
		int nr = seccomp_syscall_resolve_name(denied[i]);

		/* A name that this architecture or library does not know cannot be called by it either. */
		if (nr != __NR_SCMP_ERROR)
			err = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), nr, 0);
	}
	/* The kernel takes an int: what stands in the register's upper half is nothing to it, and must be nothing to the filter.
	 */
	for (size_t i = 0; i < sizeof(families) / sizeof(*families) && !err; i++)
		err = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, families[i]));
	for (uint64_t bit = 1; bit <= spaces && !err; bit <<= 1)
		if (spaces & bit)
			err = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
					       SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
	/* Its flags lie in memory, where a filter cannot look: libraries fall back to clone. */
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	/* Signals to its own group, at its end, and to its own threads. */
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(kill), 1, SCMP_A0(SCMP_CMP_NE, 0));
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_NE, (unsigned)pid));
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_NE, 0));
	return err;
}

static int filter(char why[RGPU_WHY_MAX])
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	int err = f ? seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1) : -ENOMEM;

	/* Foreign architectures' calls have other numbers: none. */
	if (!err)
		err = seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (!err)
		err = fill(f);
	if (!err)
		err = seccomp_load(f);
	seccomp_release(f);
	return err ? rgpu_why(why, err, "cannot load the system call filter: %s", strerror(-err)) : 0;
}

int confine_worker(const char *user, char why[RGPU_WHY_MAX])
{
	struct rlimit files;
	int err;

	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_max = files.rlim_max < FILES_MAX ? files.rlim_max : FILES_MAX;
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	setrlimit(RLIMIT_MSGQUEUE, &(struct rlimit){0, 0});
	err = become(user, why);
	if (!err)
		err = drop_capabilities(why);
	return err ? err : filter(why);
}
