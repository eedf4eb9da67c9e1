/* SPDX-License-Identifier: MIT */
/*
 * A network that breaks: passes TCP connections on to a port of this machine and cuts them, at any byte or between two TLS
 * records, by FIN or by RST; each new connection comes from another address of 127/8.
 *
 * Usage: cutter [ADDRESS:]PORT[@LISTEN] SEED MEAN CUTS [flip]; ADDRESS is 127.0.0.1, LISTEN a free port; prints its port, then
 * "done" after so many cuts, from which on it cuts no more. With "flip", where it would cut at a byte it changes one bit instead,
 * and does nothing else. SIGUSR1: a black hole, nothing moves and nothing is refused; SIGUSR2: it ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS 64
#define CHUNK 16384

struct way {
	uint8_t buf[CHUNK];
	size_t at, have;
	unsigned header; /* bytes of a TLS record's header seen */
	uint32_t body;	 /* bytes of its body to come */
	uint8_t len[2];
};

struct pair {
	int fd[2]; /* client's, server's; −1: free */
	struct way way[2];
	uint64_t bytes, records; /* until the cut; 0: the other one counts */
};

static struct pair pairs[PAIRS];
static struct sockaddr_in to = {.sin_family = AF_INET};
static unsigned seed, mean, wanted, cuts;
static bool flip;
static volatile sig_atomic_t hole;

static void on_signal(int sig)
{
	hole = sig == SIGUSR1;
}

static void shut(struct pair *p, bool hard)
{
	struct linger l = {.l_onoff = 1};

	for (int i = 0; i < 2; i++) {
		if (hard)
			setsockopt(p->fd[i], SOL_SOCKET, SO_LINGER, &l, sizeof(l));
		close(p->fd[i]);
		p->fd[i] = -1;
	}
}

static void cut(struct pair *p)
{
	if (!flip)
		shut(p, rand_r(&seed) % 2);
	if (++cuts == wanted) {
		printf("done\n");
		fflush(stdout);
	}
}

/* How many of these bytes pass before the cut. A data connection's preface is no TLS record, and is let by as one. */
static size_t until_cut(struct pair *p, struct way *w, uint8_t *buf, size_t n)
{
	if (cuts >= wanted)
		return n;
	if (flip && p->bytes <= n) {
		buf[p->bytes - 1] ^= 1 << rand_r(&seed) % 8;
		p->bytes = 1 + rand_r(&seed) % (2 * mean);
		cut(p);
		return n;
	}
	if (p->bytes) {
		if (n < p->bytes) {
			p->bytes -= n;
			return n;
		}
		n = p->bytes;
		p->bytes = 0;
		return n;
	}
	for (size_t i = 0; i < n;) {
		if (w->body) {
			size_t part = n - i < w->body ? n - i : w->body;

			i += part;
			w->body -= part;
			if (!w->body && !--p->records)
				return i;
			continue;
		}
		if (!w->header && buf[i] == 'R') {
			w->body = 32;
			continue;
		}
		if (w->header >= 3)
			w->len[w->header - 3] = buf[i];
		i++;
		if (++w->header == 5) {
			w->header = 0;
			w->body = w->len[0] << 8 | w->len[1];
		}
	}
	return n;
}

static bool over(const struct pair *p)
{
	return !flip && cuts < wanted && !p->bytes && !p->records;
}

/* false: the connection is over. */
static bool move(struct pair *p, int from)
{
	struct way *w = &p->way[from];
	ssize_t n;

	if (w->at == w->have) {
		n = recv(p->fd[from], w->buf, CHUNK, MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (!n)
			return false;
		w->at = 0;
		w->have = until_cut(p, w, w->buf, n);
	}
	n = send(p->fd[!from], w->buf + w->at, w->have - w->at, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	w->at += n;
	if (w->at == w->have && over(p)) {
		cut(p);
		return true;
	}
	return true;
}

static int dial(void)
{
	struct sockaddr_in from = {.sin_family = AF_INET};
	bool here = to.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	from.sin_addr.s_addr = htonl(0x7f000002 + rand_r(&seed) % 200);
	if ((here && bind(fd, (struct sockaddr *)&from, sizeof(from))) || connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void take(int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC), out;

	if (fd < 0)
		return;
	out = dial();
	for (int i = 0; i < PAIRS && out >= 0; i++) {
		struct pair *p = &pairs[i];

		if (p->fd[0] >= 0)
			continue;
		memset(p, 0, sizeof(*p));
		p->fd[0] = fd;
		p->fd[1] = out;
		/* Every eighth in its handshakes, the others on average after @mean bytes. */
		if (flip)
			p->bytes = 33 + rand_r(&seed) %
						(2 * mean); /* the preface has no sum, and a token that is not known no session */
		else if (rand_r(&seed) % 2)
			p->bytes = 1 + rand_r(&seed) % (rand_r(&seed) % 8 ? 2 * mean : 1500);
		else
			p->records = 1 + rand_r(&seed) % (rand_r(&seed) % 8 ? mean / 512 + 8 : 8);
		return;
	}
	close(fd);
	if (out >= 0)
		close(out);
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *colon, *at;
	int one = 1;

	if (argc != 5 && (argc != 6 || strcmp(argv[5], "flip")))
		return 2;
	flip = argc == 6;
	colon = strchr(argv[1], ':');
	at = strchr(argv[1], '@');
	if (colon)
		*colon = 0;
	to.sin_port = htons(atoi(colon ? colon + 1 : argv[1]));
	if (inet_pton(AF_INET, colon ? argv[1] : "127.0.0.1", &to.sin_addr) != 1)
		return 2;
	if (at)
		a.sin_port = htons(atoi(at + 1));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	seed = atoi(argv[2]);
	mean = atoi(argv[3]);
	wanted = atoi(argv[4]);
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 64) || getsockname(fd, (struct sockaddr *)&a, &len))
		return 1;
	printf("%u\n", ntohs(a.sin_port));
	fflush(stdout);
	for (int i = 0; i < PAIRS; i++)
		pairs[i].fd[0] = pairs[i].fd[1] = -1;
	for (;;) {
		struct pollfd p[1 + 2 * PAIRS] = {{.fd = fd, .events = POLLIN}};

		for (int i = 0; i < PAIRS; i++)
			for (int k = 0; k < 2; k++) {
				const struct way *in = &pairs[i].way[k], *out = &pairs[i].way[!k];

				p[1 + 2 * i + k] = (struct pollfd){.fd = pairs[i].fd[k],
								   .events = (in->at == in->have ? POLLIN : 0) |
									     (out->at < out->have ? POLLOUT : 0)};
			}
		if (hole) {
			poll(NULL, 0, 50);
			continue;
		}
		if (poll(p, 1 + 2 * PAIRS, 200) <= 0)
			continue;
		for (int i = 0; i < PAIRS; i++)
			for (int k = 0; k < 2; k++) {
				short e = p[1 + 2 * i + k].revents;

				if (pairs[i].fd[0] < 0 || !e)
					continue;
				if ((e & POLLOUT && !move(&pairs[i], !k)) ||
				    (pairs[i].fd[0] >= 0 && e & ~POLLOUT && !move(&pairs[i], k)))
					shut(&pairs[i], false);
			}
		if (p[0].revents)
			take(fd);
	}
}
