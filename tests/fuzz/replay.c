// SPDX-License-Identifier: MIT
/* Runs a fuzz target over the files of a corpus, as part of the ordinary tests and for coverage. usage: replay [DIR | FILE]... */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/tap.h"

static unsigned long files;

static void replay_file(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *p;

	if (fd < 0 || fstat(fd, &st) || !(p = malloc((size_t)st.st_size))) {
		ok(false, "%s can be read", name);
		return;
	}
	if (read(fd, p, (size_t)st.st_size) != st.st_size)
		ok(false, "%s can be read", name);
	close(fd);
	/* On a crash the last line tells where. */
	printf("# %s\n", name);
	fflush(stdout);
	LLVMFuzzerTestOneInput(p, (size_t)st.st_size);
	free(p);
	files++;
}

static void replay_dir(const char *name)
{
	struct dirent **list;
	int n = scandir(name, &list, NULL, alphasort);

	if (n < 0) {
		replay_file(name);
		return;
	}
	for (int k = 0; k < n; k++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", name, list[k]->d_name);
		if (list[k]->d_name[0] != '.')
			replay_file(path);
		free(list[k]);
	}
	free(list);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		replay_dir(CORPUS);
	for (int k = 1; k < argc; k++)
		replay_dir(argv[k]);
	ok(files > 0, "%lu inputs end in order", files);
	return tap_done();
}
