// SPDX-License-Identifier: GPL-2.0
/* Everything at once, at random, with kills: proxies, programs, threads, netlink. Asserts only that nothing is left; the log says
 * the rest. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

/* Seconds, and a seed to run the same choices again: RGPU_STRESS_SECS, RGPU_STRESS_SEED. */
static unsigned int env(const char *name, unsigned int otherwise)
{
	const char *s = getenv(name);

	return s ? strtoul(s, NULL, 0) : otherwise;
}

static unsigned int rnd(unsigned int *seed, unsigned int n)
{
	return rand_r(seed) % n;
}

static void *poke(void *p)
{
	volatile char *c = p;

	if (!MAP_BAD(c))
		(void)*c;
	return p;
}

struct shared {
	int fd[3];
	unsigned int seed;
	_Atomic int stop;
};

/* One thread of a program: any call, any channel, any buffer object. */
static void *program_thread(void *arg)
{
	struct shared *s = arg;
	unsigned int seed = s->seed + (unsigned long)pthread_self();
	char data[64];
	__u32 len, out;
	void *m;

	while (!s->stop) {
		int fd = s->fd[rnd(&seed, 3)];
		__u32 n = rnd(&seed, 6);

		switch (rnd(&seed, 14)) {
		case 0:
			app_start(fd, NULL);
			break;
		case 1:
			app_join(fd, s->fd[rnd(&seed, 3)], NULL);
			break;
		case 2:
			app_channel(fd, 4096u << rnd(&seed, 3), NULL);
			break;
		case 3:
			app_channel_destroy(fd, n);
			break;
		case 4:
			app_bo(fd, 4096u << rnd(&seed, 8), &out);
			break;
		case 5:
			app_bo_destroy(fd, n);
			break;
		case 6:
		case 7:
			app_kick(fd, n);
			break;
		case 8:
		case 9:
			app_wait(fd, n, rnd(&seed, 5));
			break;
		case 10:
			len = rnd(&seed, sizeof(data));
			app_control(fd, n, data, &len, sizeof(data));
			break;
		case 11:
			m = poke(map(fd, RGPU_MMAP_BO(n), 4096u << rnd(&seed, 3), PROT_READ | PROT_WRITE, MAP_SHARED));
			if (!MAP_BAD(m) && rnd(&seed, 2))
				munmap(m, 4096);
			break;
		case 12:
			m = poke(map(fd, RGPU_MMAP_CHANNEL(n, rnd(&seed, 4)), 4096, PROT_READ, MAP_SHARED));
			if (!MAP_BAD(m))
				munmap(m, 4096);
			break;
		case 13:
			m = poke(map(fd, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED));
			if (!MAP_BAD(m))
				munmap(m, 4096);
			break;
		}
	}
	return NULL;
}

static void program(unsigned int seed)
{
	struct shared s = { .seed = seed };
	pthread_t t[4];
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(100);
	for (;;) {
		for (i = 0; i < 3; i++)
			s.fd[i] = app_open(i % 2);
		s.stop = 0;
		for (i = 0; i < 4; i++)
			pthread_create(&t[i], NULL, program_thread, &s);
		if (!rnd(&seed, 3) && !fork()) {
			usleep(rnd(&seed, 50000)); /* holds descriptors and buffer objects for a while */
			_exit(0);
		}
		usleep(rnd(&seed, 200000));
		for (i = 0; i < 3; i++) {
			if (rnd(&seed, 2)) {
				close(s.fd[i]);
				s.fd[i] = -1;
			}
		}
		s.stop = 1;
		for (i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
		for (i = 0; i < 3; i++)
			close(s.fd[i]);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

/* A proxy that answers most things, some wrongly, and sometimes loses interest. */
static void wild_proxy(unsigned int seed)
{
	int sfds[16] = { 0 }, n = 0, i;
	struct request r;
	struct proxy p;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(100);
	while (proxy_open(&p))
		usleep(1000);
	proxy_online(&p, 0, 1);
	proxy_online(&p, 1, 1);
	for (;;) {
		if (rnd(&seed, 100) == 0)
			nl_dump(&p.nl, RGPU_CMD_SESSION_GET, NULL, NULL);
		if (rnd(&seed, 50) == 0)
			nl_dump(&p.nl, RGPU_CMD_DEV_GET, NULL, NULL);
		i = rnd(&seed, 16);
		if (sfds[i] > 0) {
			struct rgpu_kicked k = { .size = sizeof(k) };
			void *m;

			switch (rnd(&seed, 8)) {
			case 0:
				ioctl(sfds[i], RGPU_SES_KICKED, &k);
				break;
			case 1:
				m = map(sfds[i], RGPU_MMAP_BO(rnd(&seed, 6)), 4096, PROT_READ | PROT_WRITE, MAP_SHARED);
				if (!MAP_BAD(poke(m)))
					munmap(m, 4096);
				break;
			case 2:
				session_set(sfds[i], rnd(&seed, 20) ? RGPU_SESSION_LIVE : RGPU_SESSION_FAILED,
					    rnd(&seed, 2) ? 0 : -EIO);
				break;
			case 3:
				if (!rnd(&seed, 10)) {
					close(sfds[i]);
					sfds[i] = 0;
				}
				break;
			default:
				app_kick(sfds[i], rnd(&seed, 6));
			}
		}
		if (proxy_pull(&p, &r)) {
			usleep(500);
			continue;
		}
		if (r.type == RGPU_REQ_START) {
			i = n++ % 16;
			if (sfds[i] > 0)
				close(sfds[i]);
			sfds[i] = proxy_attach(&p, r.session);
			session_cookie(&p, r.session, &n, sizeof(n));
		}
		if (rnd(&seed, 30))
			proxy_reply(&p, r.id, rnd(&seed, 20) ? 0 : -EIO, r.data, r.len < r.room ? r.len : r.room);
	}
}

/* Devices go and come. */
static void administrator(unsigned int seed)
{
	struct msg m;
	struct nl nl;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(100);
	if (nl_open(&nl))
		_exit(1);
	for (;;) {
		usleep(rnd(&seed, 300000));
		msg_begin(&nl, &m, RGPU_CMD_DEV_DEL);
		msg_u32(&m, RGPU_A_DEVICE, 1);
		nl_call(&nl, &m, NULL);
		msg_begin(&nl, &m, RGPU_CMD_DEV_ADD);
		msg_u32(&m, RGPU_A_DEVICE, 1);
		nl_call(&nl, &m, NULL);
	}
}

static pid_t spawn(void (*f)(unsigned int), unsigned int seed)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		f(seed);
		_exit(0);
	}
	return pid;
}

static void reap(pid_t pid)
{
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	unsigned int seed = env("RGPU_STRESS_SEED", time(NULL)), secs = env("RGPU_STRESS_SECS", 10);
	pid_t programs[3], proxy, admin;
	int i, rounds = 0;
	time_t end = time(NULL) + secs;
	struct proxy p;

	printf("# RGPU_STRESS_SEED=%u\n", seed);
	parameter("recover_secs", "2");
	parameter("reply_secs", "1");
	parameter("session_mib", "8");
	proxy = spawn(wild_proxy, rand_r(&seed));
	admin = spawn(administrator, rand_r(&seed));
	for (i = 0; i < 3; i++)
		programs[i] = spawn(program, rand_r(&seed));
	while (time(NULL) < end) {
		usleep(rnd(&seed, 400000));
		if (rnd(&seed, 3) == 0) {
			reap(proxy);
			proxy = spawn(wild_proxy, rand_r(&seed));
		} else {
			i = rnd(&seed, 3);
			reap(programs[i]);
			programs[i] = spawn(program, rand_r(&seed));
		}
		rounds++;
	}
	for (i = 0; i < 3; i++)
		reap(programs[i]);
	reap(proxy);
	reap(admin);
	ok(rounds > 0, "killed somebody %d times", rounds);
	parameters_reset();
	if (ok(!proxy_open(&p), "a sound proxy registers after all that")) {
		struct msg m;
		int fd, sfd;

		counter_becomes("sessions", 0);
		acknowledge(&p);
		msg_begin(&p.nl, &m, RGPU_CMD_DEV_ADD);
		msg_u32(&m, RGPU_A_DEVICE, 1);
		nl_call(&p.nl, &m, NULL); /* if the administrator was killed between the two */
		is_int(proxy_online(&p, 0, 1), 0, "a device online");
		fd = app_open(0);
		sfd = start_with(&p, fd, NULL);
		ok(sfd >= 0, "a session starts");
		close(fd);
		close(sfd);
		acknowledge(&p);
		proxy_close(&p);
	}
	nothing_left();
	return tap_done();
}
