// SPDX-License-Identifier: MIT
/* Lanes over a real link: replies, order between channels, payloads, deferred calls, quiet errors. */
#include <errno.h>
#include <unistd.h>
#include "tests/server/peer.h"
#include "tests/server/stub.h"
#include "tests/tap.h"

static struct rig r;

static void up(void)
{
	stub_reset();
	rig_up(&r, &worker_times_default, false);
	rig_connect(&r);
	peer_attach(&r.p, NULL, 0);
}

static void echo(void)
{
	struct peer_reply rep;
	uint32_t ch;

	up();
	peer_rec(&r.p, 3, .op = STUB_ECHO, .fence = true, .body = "sixteen bytes ok", .body_len = 16);
	ok(peer_reply(&r.p, &rep, &ch), "a fence is answered");
	is_int(ch, 3, "on its channel");
	is_int(rep.rep.seq, 1, "seq is the record's");
	is_int(rep.rep.rseq, 1, "rseq begins at 1");
	ok(rep.rep.body_len == 16 && !memcmp(rep.body, "sixteen bytes ok", 16), "the body comes back");
	peer_rec(&r.p, 3, .op = 4000, .fence = true);
	peer_reply(&r.p, &rep, &ch);
	is_int(rep.rep.status, STUB_NOT_SUPPORTED, "an op that no table has is NOT_SUPPORTED");
	is_int(rep.rep.rseq, 2, "and the next reply");
	rig_down(&r);
	is_int(stub_lanes, 0, "no lane is left");
}

int main(void)
{
	alarm(120);
	echo();
	return tap_done();
}
