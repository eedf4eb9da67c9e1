// SPDX-License-Identifier: GPL-2.0
/* What the sessions of one user, and of one cgroup, have together, against the limits: their number, their memory. */
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include "rgpu.h"

/*
 * One for each user and each cgroup (that of the program when it started; not its parents) that has a session. Everything here is
 * under the one lock, which is innermost and held for a few comparisons: a limit is never passed by two who look at once.
 */
struct rgpu_account {
	struct list_head node;
	bool cgroup;
	u64 id; /* kuid or cgroup id */
	unsigned int refs;
	unsigned int sessions; /* in the table, also those that wait for their GONE's acknowledgement */
	u64 bytes;	       /* of everything mappable */
};

static DEFINE_SPINLOCK(rgpu_account_lock);
static LIST_HEAD(rgpu_accounts);
static unsigned int rgpu_all_sessions;

static struct rgpu_account *rgpu_account_get(bool cgroup, u64 id)
{
	struct rgpu_account *spare = kzalloc(sizeof(*spare), GFP_KERNEL_ACCOUNT), *a;

	if (!spare)
		return NULL;
	spin_lock(&rgpu_account_lock);
	list_for_each_entry(a, &rgpu_accounts, node) {
		if (a->cgroup == cgroup && a->id == id)
			goto found;
	}
	a = spare;
	spare = NULL;
	a->cgroup = cgroup;
	a->id = id;
	list_add(&a->node, &rgpu_accounts);
found:
	a->refs++;
	spin_unlock(&rgpu_account_lock);
	kfree(spare);
	return a;
}

static void rgpu_account_put(struct rgpu_account *a)
{
	bool last;

	if (!a)
		return;
	spin_lock(&rgpu_account_lock);
	last = --a->refs == 0;
	if (last)
		list_del(&a->node);
	spin_unlock(&rgpu_account_lock);
	if (last)
		kfree(a);
}

/* Finds the accounts of a new session by its uid and cgroup. ENOMEM. */
int rgpu_accounts_open(struct rgpu_session *ses)
{
	ses->user = rgpu_account_get(false, __kuid_val(ses->uid));
	ses->group = rgpu_account_get(true, ses->cgroup);
	return ses->user && ses->group ? 0 : -ENOMEM;
}

void rgpu_accounts_close(struct rgpu_session *ses)
{
	rgpu_account_put(ses->user);
	rgpu_account_put(ses->group);
}

/* One session more. EUSERS when all, or those of its user or cgroup, are as many as may be. */
int rgpu_accounts_enter(struct rgpu_session *ses)
{
	unsigned int group = READ_ONCE(rgpu_limits.max_cgroup_sessions);
	int err = -EUSERS;

	spin_lock(&rgpu_account_lock);
	if (rgpu_all_sessions < READ_ONCE(rgpu_limits.max_sessions) &&
	    ses->user->sessions < READ_ONCE(rgpu_limits.max_user_sessions) && (!group || ses->group->sessions < group)) {
		rgpu_all_sessions++;
		ses->user->sessions++;
		ses->group->sessions++;
		err = 0;
	}
	spin_unlock(&rgpu_account_lock);
	return err;
}

void rgpu_accounts_leave(struct rgpu_session *ses)
{
	spin_lock(&rgpu_account_lock);
	rgpu_all_sessions--;
	ses->user->sessions--;
	ses->group->sessions--;
	spin_unlock(&rgpu_account_lock);
}

/* @mib of 0 is no limit. */
static bool rgpu_fits(u64 have, u64 more, unsigned int mib)
{
	u64 limit = mib ? (u64)mib << 20 : U64_MAX;

	return more <= limit && have <= limit - more;
}

/* @bytes more for @ses. EDQUOT beyond the limit of the session, its user or its cgroup: nothing is charged then. */
int rgpu_charge(struct rgpu_session *ses, u64 bytes, bool bo)
{
	u64 limit = rgpu_session_limit();
	int err = -EDQUOT;

	spin_lock(&rgpu_account_lock);
	if (bytes <= limit && atomic64_read(&ses->bytes) <= limit - bytes &&
	    rgpu_fits(ses->user->bytes, bytes, READ_ONCE(rgpu_limits.user_mib)) &&
	    rgpu_fits(ses->group->bytes, bytes, READ_ONCE(rgpu_limits.cgroup_mib))) {
		ses->user->bytes += bytes;
		ses->group->bytes += bytes;
		atomic64_add(bytes, &ses->bytes);
		if (bo) {
			atomic64_add(bytes, &ses->bo_bytes);
			atomic_long_add(bytes, &rgpu_stats.bo_bytes);
		}
		err = 0;
	}
	spin_unlock(&rgpu_account_lock);
	return err;
}

void rgpu_uncharge(struct rgpu_session *ses, u64 bytes, bool bo)
{
	spin_lock(&rgpu_account_lock);
	ses->user->bytes -= bytes;
	ses->group->bytes -= bytes;
	atomic64_sub(bytes, &ses->bytes);
	if (bo) {
		atomic64_sub(bytes, &ses->bo_bytes);
		atomic_long_sub(bytes, &rgpu_stats.bo_bytes);
	}
	spin_unlock(&rgpu_account_lock);
}
