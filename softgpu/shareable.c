// SPDX-License-Identifier: MIT
/* Files of memory that other processes may open: what a descriptor of cuMemExportToShareableHandle is. */
#include "softgpu/shareable.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "softgpu/softgpu.h"

#define MAGIC "softgpu memory"
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

/* The file's last bytes. */
struct tail {
	char magic[16];
	uint64_t bytes;
	int32_t where;
	uint32_t reserved;
};

int shareable_create(int where, uint64_t bytes)
{
	struct tail t = {.magic = MAGIC, .bytes = bytes, .where = where};
	int fd = memfd_create("softgpu-shareable", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && !ftruncate(fd, (off_t)(bytes + sizeof(t))) && pwrite(fd, &t, sizeof(t), (off_t)bytes) == sizeof(t) &&
	    !fcntl(fd, F_ADD_SEALS, SEALS))
		return fd;
	log_line("cannot make a file for memory that is shared: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

int shareable_open(int fd, int *where, uint64_t *bytes)
{
	struct stat st;
	struct tail t;

	if (fstat(fd, &st) || st.st_size <= (off_t)sizeof(t) || fcntl(fd, F_GET_SEALS) != SEALS ||
	    pread(fd, &t, sizeof(t), st.st_size - (off_t)sizeof(t)) != sizeof(t) || memcmp(t.magic, MAGIC, sizeof(MAGIC)) ||
	    t.bytes != (uint64_t)st.st_size - sizeof(t) || !t.bytes || t.bytes % SOFTGPU_GRANULE)
		return -1;
	*where = t.where;
	*bytes = t.bytes;
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}
