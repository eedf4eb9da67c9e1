// SPDX-License-Identifier: MIT
/* Finds the library that ours stands before: where the program's own libraries, the environment or the system would find it. */
#include "shim/jit/genuine.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct stat ours;

static void try(const char *dir, size_t len)
{
	char path[PATH_MAX];
	struct stat s;

	if (genuine.handle || !len || len + strlen(genuine.soname) + 2 > sizeof(path))
		return;
	snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, genuine.soname);
	if (stat(path, &s) || (s.st_dev == ours.st_dev && s.st_ino == ours.st_ino))
		return;
	genuine.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	/* It may be a copy of ours. */
	if (genuine.handle && dlsym(genuine.handle, "rgpu_jit_is_ours")) {
		dlclose(genuine.handle);
		genuine.handle = NULL;
	}
}

/* By this the next copy of our library knows this one. */
JIT_API const char rgpu_jit_is_ours = 1;

/* Where each loaded object's needs are looked for: run paths and LD_LIBRARY_PATH among them; and beside it. */
static void try_objects(void)
{
	void *self = dlopen(NULL, RTLD_LAZY);
	struct link_map *m;

	if (!self || dlinfo(self, RTLD_DI_LINKMAP, &m))
		return;
	for (; m && !genuine.handle; m = m->l_next) {
		const char *slash = strrchr(m->l_name, '/');
		void *h = dlopen(*m->l_name ? m->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
		Dl_serinfo size, *info;

		if (h && !dlinfo(h, RTLD_DI_SERINFOSIZE, &size) && (info = malloc(size.dls_size))) {
			if (!dlinfo(h, RTLD_DI_SERINFOSIZE, info) && !dlinfo(h, RTLD_DI_SERINFO, info))
				for (unsigned i = 0; i < info->dls_cnt; i++)
					try(info->dls_serpath[i].dls_name, strlen(info->dls_serpath[i].dls_name));
			free(info);
		}
		if (slash)
			try(m->l_name, slash - m->l_name);
		if (h)
			dlclose(h);
	}
	dlclose(self);
}

/* The folders of ld.so's configuration. */
static void try_configured(const char *pattern)
{
	char line[PATH_MAX];
	glob_t g;

	if (glob(pattern, 0, NULL, &g))
		return;
	for (size_t i = 0; i < g.gl_pathc; i++) {
		FILE *f = fopen(g.gl_pathv[i], "r");

		while (f && fgets(line, sizeof(line), f))
			if (*line == '/')
				try(line, strcspn(line, " \t\r\n"));
		if (f)
			fclose(f);
	}
	globfree(&g);
}

static void try_toolkit(const char *var)
{
	const char *home = getenv(var);
	char dir[PATH_MAX];

	if (home && *home && snprintf(dir, sizeof(dir), "%s/lib64", home) < (int)sizeof(dir))
		try(dir, strlen(dir));
}

static void find(void)
{
	Dl_info me;

	if (dladdr(&rgpu_jit_is_ours, &me))
		stat(me.dli_fname, &ours);
	try_objects();
	try_toolkit("CUDA_HOME");
	try_toolkit("CUDA_PATH");
	try_configured("/etc/ld.so.conf");
	try_configured("/etc/ld.so.conf.d/*.conf");
	if (!genuine.handle)
		fprintf(stderr,
			"rgpu: NVIDIA's %s was not found: rgpu hands calls on to it and brings none; install it, and name its "
			"folder "
			"in LD_LIBRARY_PATH\n",
			genuine.soname);
}

void *genuine_function(const char *name)
{
	void *f;

	pthread_once(&genuine.once, find);
	if (!genuine.handle)
		return NULL;
	f = dlsym(genuine.handle, name);
	if (!f)
		fprintf(stderr, "rgpu: NVIDIA's %s has no %s: it is older than this one was written for\n", genuine.soname, name);
	return f;
}

static bool wants_ptx;

static void ask(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	int (*takes_ptx_only)(void) = cuda ? (int (*)(void))dlsym(cuda, "rgpuTakesPtxOnly") : NULL;

	wants_ptx = takes_ptx_only && takes_ptx_only();
}

bool jit_wants_ptx(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, ask);
	return wants_ptx;
}
