// SPDX-License-Identifier: MIT
/* Connections that are cut anywhere, and relays that die between any two stores: every record is executed once, every reply comes
 * once. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/addr.h"
#include "lib/clock.h"
#include "tests/relay/workload.h"
#include "tests/tap.h"
#include "usermode-proxy/relay_int.h"

static unsigned runs; /* of each random part: 1, or what RGPU_CUT_RUNS says */

/* One run with a cut at event @at, and every @every after it. */
static const char *cut_run(bool inside, long at, long every, struct work w, unsigned *cuts)
{
	static char bad[160];
	struct fake f;
	struct app app;

	fake_start(&f);
	f.cut_at = at;
	f.cut_every = every;
	app_start(&app, &f, inside, 2, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	work_run(&app, &w);
	snprintf(bad, sizeof(bad), "%.150s", work_check(&app, &w));
	*cuts += f.cuts;
	app_stop(&app);
	if (!bad[0] && app.maps)
		snprintf(bad, sizeof(bad), "%d buffer objects stay mapped", app.maps);
	fake_stop(&f);
	return bad;
}

static void every_boundary(bool inside)
{
	long at, last = runs > 1 ? 1200 : 120;
	const char *bad = "";
	unsigned cuts = 0;

	/* 1: the first ATTACH; and on, until no cut happens any more. */
	for (at = 1; at <= last && !*bad; at++)
		bad = cut_run(inside, at, 0, (struct work){.rounds = last / 60, .bulk = 120000}, &cuts);
	is_str(bad, "", "cut before and after each frame, %s (last: %ld)", inside ? "inside" : "as a proxy", at - 1);
	ok(cuts > last / 2, "… %u cuts", cuts);
}

static void many_cuts(bool inside)
{
	const char *bad = "";
	unsigned cuts = 0;

	for (long every = 17; every <= 97 && !*bad; every += runs > 1 ? 1 : 20)
		bad = cut_run(inside, every, every, (struct work){.rounds = 12, .bulk = 200000}, &cuts);
	is_str(bad, "", "cut again and again, %s", inside ? "inside" : "as a proxy");
	ok(cuts > 20, "… %u cuts", cuts);
}

/* Between relay and server: cuts after a number of bytes, both ways together. */
struct middle {
	int listen_fd;
	struct rgpu_addr server;
	pthread_t thread;
	bool stop; /* atomic */
	unsigned seed, cuts;
};

static bool pump(int from, int to, uint64_t *left)
{
	char buf[4096];
	ssize_t n = recv(from, buf, *left < sizeof(buf) ? *left : sizeof(buf), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN;
	if (!n)
		return false;
	for (ssize_t at = 0; at < n;) {
		struct pollfd p = {.fd = to, .events = POLLOUT};
		ssize_t k = send(to, buf + at, n - at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k > 0)
			at += k;
		else if (errno != EAGAIN || poll(&p, 1, 5000) <= 0)
			return false;
	}
	*left -= n;
	return *left > 0;
}

static void *middle_main(void *arg)
{
	struct middle *m = arg;
	char why[RGPU_WHY_MAX];

	while (!__atomic_load_n(&m->stop, __ATOMIC_RELAXED)) {
		struct pollfd p[2] = {{.fd = m->listen_fd, .events = POLLIN}};
		uint64_t left;
		int a, b;

		if (poll(p, 1, 10) <= 0)
			continue;
		a = accept4(m->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		b = rgpu_addr_connect(&m->server, 5000, why);
		if (a < 0 || b < 0)
			break;
		rgpu_sock_tune(a);
		/* From within the handshake to late in the work. */
		left = rand_r(&m->seed) % (rand_r(&m->seed) % 2 ? 3000 : 600000) + 1;
		p[0].fd = a;
		p[1] = (struct pollfd){.fd = b, .events = POLLIN};
		p[0].events = POLLIN;
		while (!__atomic_load_n(&m->stop, __ATOMIC_RELAXED)) {
			if (poll(p, 2, 10) <= 0)
				continue;
			if ((p[0].revents && !pump(a, b, &left)) || (p[1].revents && !pump(b, a, &left)))
				break;
		}
		m->cuts += !left;
		close(a);
		close(b);
	}
	return NULL;
}

/* The relay connects to the port that it finds in the fake server's struct: here, the middle's. */
static void any_byte(bool inside, unsigned seed)
{
	struct middle m = {.server = {.host = "127.0.0.1"}, .seed = seed};
	struct rgpu_addr any = {.host = "127.0.0.1"};
	struct work w = {.rounds = 15, .bulk = 150000};
	char why[RGPU_WHY_MAX];
	struct fake f;
	struct app app;

	fake_start(&f);
	m.server.port = f.port;
	m.listen_fd = rgpu_addr_listen(&any, &f.port, why);
	f.cuts = 1; /* the first attach may fail */
	pthread_create(&m.thread, NULL, middle_main, &m);
	app_start(&app, &f, inside, 2, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	work_run(&app, &w);
	is_str(work_check(&app, &w), "", "cut at any byte, seed %u, %s: %u cuts", seed, inside ? "inside" : "as a proxy", m.cuts);
	app_stop(&app);
	__atomic_store_n(&m.stop, true, __ATOMIC_RELAXED);
	pthread_join(m.thread, NULL);
	close(m.listen_fd);
	fake_stop(&f);
}

static void cut_off(struct fake *f, struct rgpu_link *l)
{
	(void)f;
	shutdown(rgpu_link_fd(l), SHUT_RDWR);
}

/* A server that takes the session up and cuts it off, again and again: it is asked less and less often. */
static void hurries_not(void)
{
	const unsigned wanted = 9;
	unsigned leases, before;
	int64_t began, took;
	struct fake f;
	struct app app;

	fake_start(&f);
	app_start(&app, &f, false, 1, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
	app_acked(&app, 0, 1);
	pthread_mutex_lock(&f.lock);
	before = f.leases;
	f.on_attach = cut_off;
	f.cut_at = f.events + 1;
	pthread_mutex_unlock(&f.lock);
	began = rgpu_now_ns();
	app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
	do {
		usleep(1000);
		pthread_mutex_lock(&f.lock);
		leases = f.leases - before;
		if (leases >= wanted)
			f.on_attach = NULL;
		pthread_mutex_unlock(&f.lock);
	} while (leases < wanted);
	took = (rgpu_now_ns() - began) / 1000000;
	/* 10, 20, 40 … between the tries that brought nothing; a slow machine only takes longer. */
	ok(took >= 1000, "%u connections that bring nothing take a second at least (%lld ms)", wanted, (long long)took);
	is_int(app_acked(&app, 0, 2), 0, "one that lasts carries on");
	app_stop(&app);
	fake_stop(&f);
}

/* Kill points: the relay's thread ends where a store has just been made, holding whatever it holds. */
static const char *kill_where; /* atomic */
static int kill_after;
static bool killed; /* atomic */
static pthread_t victim;

static void kill_here(const char *where)
{
	const char *want = __atomic_load_n(&kill_where, __ATOMIC_ACQUIRE);

	if (!want || strcmp(where, want) || --kill_after)
		return;
	__atomic_store_n(&kill_where, NULL, __ATOMIC_RELEASE);
	victim = pthread_self();
	__atomic_store_n(&killed, true, __ATOMIC_SEQ_CST);
	pthread_exit(NULL);
}

/* What the dead relays leave, so that it is not lost from sight. */
static struct rgpu_relay *graveyard[256];
static unsigned ngraves;

static void *successor(void *arg)
{
	struct app *app = arg;

	for (int i = 0; i < 4000 && !__atomic_load_n(&killed, __ATOMIC_SEQ_CST); i++)
		usleep(1000);
	if (!__atomic_load_n(&killed, __ATOMIC_SEQ_CST))
		return NULL;
	pthread_join(victim, NULL);
	graveyard[ngraves++] = app->relay;
	close(app->relay->fd);
	app_restart(app);
	return app;
}

static void dies(const char *where, int after)
{
	struct work w = {.rounds = 4, .bulk = 60000};
	pthread_t t;
	struct fake f;
	struct app app;
	void *was = NULL;

	fake_start(&f);
	__atomic_store_n(&killed, false, __ATOMIC_SEQ_CST);
	kill_after = after;
	__atomic_store_n(&kill_where, where, __ATOMIC_RELEASE);
	app_start(&app, &f, false, 2, RGPU_RING_MIN, 4 * RGPU_RING_MIN);
	pthread_create(&t, NULL, successor, &app);
	work_run(&app, &w);
	pthread_join(t, &was);
	__atomic_store_n(&kill_where, NULL, __ATOMIC_RELEASE);
	ok(was != NULL, "killed at \"%s\", time %d", where, after);
	is_str(work_check(&app, &w), "", "… and its successor goes on");
	app_stop(&app);
	fake_stop(&f);
}

/* Each stage of a record's way and of its reply's. */
static void kill_points(void)
{
	static const char *const points[] = {"sent",	"acked",     "sq_head", "data",	     "bytes in place",
					     "cq_next", "delivered", "cq_tail", "published", "ack"};

	relay_kill_point = kill_here;
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		for (int after = 1; after <= 9; after += runs > 1 ? 1 : 4)
			dies(points[i], after);
	relay_kill_point = NULL;
}

int main(void)
{
	const char *n = getenv("RGPU_CUT_RUNS");

	runs = n ? strtoul(n, NULL, 0) : 1;
	for (int inside = 0; inside < 2; inside++) {
		every_boundary(inside);
		many_cuts(inside);
		for (unsigned seed = 1; seed <= 4 * runs; seed++)
			any_byte(inside, seed);
	}
	hurries_not();
	kill_points();
	return tap_done();
}
