/* SPDX-License-Identifier: MIT */
/* rgpu-proxy's command line and configuration file. */
#ifndef RGPU_PROXY_CONFIG_H
#define RGPU_PROXY_CONFIG_H

#include "lib/addr.h"
#include "lib/key.h"

struct proxy_config {
	struct rgpu_addr server;
	struct rgpu_key key;
	char ctl[256]; /* /dev/rgpu-ctl */
};

/* 0; 1: --help or --version was answered; -EINVAL and others, with @why. */
int proxy_config(int argc, char **argv, struct proxy_config *out, char why[RGPU_WHY_MAX]);

#endif
