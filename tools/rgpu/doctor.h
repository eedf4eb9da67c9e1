/* SPDX-License-Identifier: MIT */
/* The checks of rgpu doctor: each looks at one thing and, when it is wrong, has one command that mends it. */
#ifndef RGPU_TOOLS_DOCTOR_H
#define RGPU_TOOLS_DOCTOR_H

#include <stdbool.h>
#include "usermode-proxy/config.h"

enum verdict {
	GOOD, /* text: what was found */
	BAD,  /* text: the cause; fix: the command */
	SKIP, /* it has no subject here, or cannot be looked at: text says why */
};

struct finding {
	enum verdict verdict;
	char text[400];
	char fix[700];
};

/* What checks leave for those after them. */
struct doctor {
	const char *conf;	  /* the proxy's configuration file */
	bool have_module;	  /* a file that modprobe would take */
	char module[512];	  /* that file */
	bool loaded;		  /* the module */
	bool conf_good, key_good; /* cfg has the server; and the key */
	struct proxy_config cfg;
	char host[300];	     /* the server's, as ssh wants it; empty: this machine */
	bool reached, known; /* the server answers; and takes the key */
	unsigned gpus;	     /* that it has */
};

struct check {
	const char *name, *what;
	void (*look)(struct doctor *d, struct finding *f);
};

/* One list for each topic, ended by a name of NULL; run in this order. */
extern const struct check checks_module[], checks_node[], checks_proxy[], checks_server[], checks_lib[];

void good(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void skip(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The cause; then fix(). */
void bad(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fix(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
