// SPDX-License-Identifier: GPL-2.0
/* The module's parameters, and the order in which its parts come and go. */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include "rgpu.h"

#define CREATE_TRACE_POINTS
#include "rgpu_trace.h"

static unsigned int rgpu_max_devices = 4;
module_param_named(max_devices, rgpu_max_devices, uint, 0444);
MODULE_PARM_DESC(max_devices, "nodes /dev/rgpu0 … made at load (4); more by netlink");

unsigned int rgpu_recover_secs = 120;
module_param_named(recover_secs, rgpu_recover_secs, uint, 0644);
MODULE_PARM_DESC(recover_secs, "seconds that a session waits for the next proxy after its own died (120)");

unsigned int rgpu_reply_secs = 120;
module_param_named(reply_secs, rgpu_reply_secs, uint, 0644);
MODULE_PARM_DESC(reply_secs, "seconds that a start, join or control request waits for its answer (120, 0: for ever)");

struct rgpu_limits rgpu_limits = { .max_sessions = 1024, .max_user_sessions = 256 };

module_param_named(max_sessions, rgpu_limits.max_sessions, uint, 0644);
MODULE_PARM_DESC(max_sessions, "sessions at one time, with those whose end the proxy did not acknowledge yet (1024)");

module_param_named(max_user_sessions, rgpu_limits.max_user_sessions, uint, 0644);
MODULE_PARM_DESC(max_user_sessions, "of these, how many one user may have (256)");

module_param_named(max_cgroup_sessions, rgpu_limits.max_cgroup_sessions, uint, 0644);
MODULE_PARM_DESC(max_cgroup_sessions, "of these, how many one cgroup may have (0: no limit)");

module_param_named(session_mib, rgpu_limits.session_mib, uint, 0644);
MODULE_PARM_DESC(session_mib, "MiB of rings and buffer objects that one session may have (0: half of the memory)");

module_param_named(user_mib, rgpu_limits.user_mib, uint, 0644);
MODULE_PARM_DESC(user_mib, "MiB that all sessions of one user may have together (0: no limit)");

module_param_named(cgroup_mib, rgpu_limits.cgroup_mib, uint, 0644);
MODULE_PARM_DESC(cgroup_mib, "MiB that all sessions started in one cgroup may have together (0: no limit)");

/* In bytes. */
u64 rgpu_session_limit(void)
{
	unsigned int mib = READ_ONCE(rgpu_limits.session_mib);

	return mib ? (u64)mib << 20 : (u64)totalram_pages() << PAGE_SHIFT >> 1;
}

static int __init rgpu_make_devices(void)
{
	u32 n;
	int err = 0;

	for (n = 0; n < rgpu_max_devices && !err; n++)
		err = rgpu_device_add(&n, false);
	return err;
}

static int __init rgpu_init(void)
{
	int err;

	if (rgpu_max_devices > RGPU_DEVICES_MAX) {
		pr_err("max_devices=%u is more than %u\n", rgpu_max_devices, RGPU_DEVICES_MAX);
		return -EINVAL;
	}
	rgpu_relay_init();
	err = alloc_chrdev_region(&rgpu_devt, 0, RGPU_DEVICES_MAX + 1, "rgpu");
	if (err)
		return err;
	err = class_register(&rgpu_class);
	if (err)
		goto no_class;
	err = rgpu_proxy_init();
	if (err)
		goto no_proxy;
	err = rgpu_make_devices();
	if (err)
		goto no_devices;
	err = rgpu_ctl_init();
	if (err)
		goto no_devices;
	/* Last: from here on others can use all of it. */
	err = rgpu_netlink_init();
	if (err)
		goto no_netlink;
	return 0;

no_netlink:
	rgpu_ctl_exit();
no_devices:
	rgpu_devices_exit();
	rgpu_proxy_exit();
no_proxy:
	class_unregister(&rgpu_class);
no_class:
	unregister_chrdev_region(rgpu_devt, RGPU_DEVICES_MAX + 1);
	return err;
}

/*
 * No file of ours is open, so there is no proxy and no program. First nobody can come in any more by netlink, then by nodes; what
 * is left are ended sessions that wait for an acknowledgement, and the work of deadlines.
 */
static void __exit rgpu_exit(void)
{
	rgpu_netlink_exit();
	rgpu_ctl_exit();
	rgpu_devices_exit();
	rgpu_proxy_exit();
	rgpu_sessions_exit();
	class_unregister(&rgpu_class);
	unregister_chrdev_region(rgpu_devt, RGPU_DEVICES_MAX + 1);
}

module_init(rgpu_init);
module_exit(rgpu_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("GPUs of other machines as character devices");
MODULE_VERSION(RGPU_VERSION);
