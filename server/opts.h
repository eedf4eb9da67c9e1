/* SPDX-License-Identifier: MIT */
/* rgpu-server's command line and configuration file. */
#ifndef RGPU_SERVER_OPTS_H
#define RGPU_SERVER_OPTS_H

#include <stdbool.h>
#include "lib/addr.h"
#include "lib/cert.h"
#include "lib/key.h"
#include "lib/pack.h"
#include "server/clients.h"

#define SERVER_CONF	"/etc/rgpu/server.conf"
#define SERVER_USER	"rgpu-server" /* whom the unit runs it as */
#define SERVER_KEYS_MAX 64
#define WEB_OFF		(-1)
#define STATE_DIR_MAX	64 /* with "/", 32 digits and ".sock" it fits a socket's address */

enum server_mode {
	MODE_SERVE,
	MODE_PAIR,
	MODE_WORKER,	/* hidden: a session's process, started by the listener */
	MODE_TELEMETRY, /* hidden: asks NVML for the listener */
	MODE_DEVICES,	/* hidden: reads the devices' properties for the listener */
};

struct server_opts {
	enum server_mode mode;
	int fd; /* hidden modes: the socket or pipe to the listener */
	bool softgpu, verbose, plaintext;
	int web;	  /* port of the page on loopback, WEB_OFF */
	char driver[512]; /* file or name for dlopen(); the genuine one unless told otherwise */
	char blas[512];	  /* empty: the API code's own choice */
	char nvml[512];	  /* file or name for dlopen() of the genuine driver's NVML */
	struct rgpu_addr listen;
	int argc; /* as given, for a reload */
	char **argv;
	const char *conf; /* NULL: none was read */
	const char *key_file[SERVER_KEYS_MAX];
	unsigned nkeys;
	struct rgpu_cert_files tls; /* .cert NULL: keys only */
	int grace_s, direct_grace_s, drain_s;
	unsigned max_sessions, cache_mib;
	enum rgpu_pack_mode compress;
	struct client_limits client[CLIENTS_MAX];
	unsigned nclients;
	char worker_user[64];	       /* empty: the server's own */
	char state_dir[STATE_DIR_MAX]; /* empty: by port, see state.h */
};

/* 0 go on, 1 done (help was printed, the configuration is good), 2 wrong usage or configuration (said on stderr). */
int server_opts_parse(int argc, char **argv, struct server_opts *o);

/* Tries to read each key, and the certificate; tells on stderr what is wrong. How many cannot be used. */
int server_opts_keys(const struct server_opts *o);

/* How to be started with softgpu, from how it was started now. */
void server_opts_softgpu_line(const struct server_opts *o, char *line, unsigned size);

#endif
