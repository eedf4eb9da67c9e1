/* SPDX-License-Identifier: MIT */
/* rgpu-proxy's command line and configuration file. */
#ifndef RGPU_PROXY_CONFIG_H
#define RGPU_PROXY_CONFIG_H

#include "lib/addr.h"
#include "lib/auth.h"
#include "lib/pack.h"

#define PROXY_CONF "/etc/rgpu/proxy.conf"
#define PROXY_USER "rgpu-proxy" /* whom the unit runs it as */

#define WEB_OFF (-1)

struct proxy_config {
	struct rgpu_addr server;
	struct rgpu_auth auth;
	char ctl[256]; /* /dev/rgpu-ctl */
	int web;       /* port of the page on loopback, WEB_OFF */
	enum rgpu_pack_mode compress;
};

/* The settings as they are written; empty: not there. */
struct proxy_texts {
	char server[300], key[300], ctl[256], web[8];
	char tls_cert[300], tls_key[300], tls_ca[300], auth[16], compress[8];
};

/* Of them, how the proxy proves itself; see lib/auth.h. */
void proxy_auth_texts(const struct proxy_texts *t, const char *text[RGPU_AUTH_SETTINGS]);
extern const char *const proxy_auth_names[RGPU_AUTH_SETTINGS];

/*
 * Reads a file's settings, as rgpu-proxy does: how many lines are bad, each told to @bad; or a negative errno with @why when it
 * cannot be read.
 */
int proxy_conf_read(const char *path, struct proxy_texts *out,
		    void (*bad)(struct proxy_texts *out, const char *path, int line, const char *why), char why[RGPU_WHY_MAX]);

/* 0; 1: --help, --version or --check-config was answered; -EINVAL and others, with @why. Bad lines of the file are told by
 * rgpu_err(). */
int proxy_config(int argc, char **argv, struct proxy_config *out, char why[RGPU_WHY_MAX]);

#endif
