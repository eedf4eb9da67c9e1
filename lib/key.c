// SPDX-License-Identifier: MIT
/* Key files: the pairing secret that a client and a server share, made by rgpu-server --pair. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include "lib/key.h"

#define KEY_FILE_MAX 4096 /* a key and a few lines of comment */

static int set_id(struct rgpu_key *key, char why[RGPU_WHY_MAX])
{
	static const char label[] = "rgpu-key-id";
	uint8_t in[sizeof(label) - 1 + RGPU_KEY_LEN], hash[EVP_MAX_MD_SIZE];
	int good;

	/* The process's first use of OpenSSL, as often as not: without its exit handler, as in link_ctx.c. */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	memcpy(in, label, sizeof(label) - 1);
	memcpy(in + sizeof(label) - 1, key->secret, RGPU_KEY_LEN);
	good = EVP_Digest(in, sizeof(in), hash, NULL, EVP_sha256(), NULL);
	OPENSSL_cleanse(in, sizeof(in));
	if (!good)
		return rgpu_why(why, -EIO, "OpenSSL has no SHA-256: the installation is broken");
	snprintf(key->id, sizeof(key->id), "%02x%02x%02x%02x", hash[0], hash[1], hash[2], hash[3]);
	snprintf(key->identity, sizeof(key->identity), "%s/%s", RGPU_PSK_IDENTITY, key->id);
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool parse_secret(const char *line, size_t len, uint8_t secret[RGPU_KEY_LEN])
{
	if (len != 2 * RGPU_KEY_LEN)
		return false;
	for (int i = 0; i < RGPU_KEY_LEN; i++) {
		int hi = hex_digit(line[2 * i]), lo = hex_digit(line[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return false;
		secret[i] = hi << 4 | lo;
	}
	return true;
}

/* The next line that is neither empty nor a comment, without white space at its end. NULL at the end of the text. */
static const char *next_line(const char **text, size_t *len)
{
	while (**text) {
		const char *line = *text;
		size_t n = strcspn(line, "\n");

		*text = line + n + (line[n] == '\n');
		while (n && strchr(" \t\r", line[n - 1]))
			n--;
		if (n && *line != '#') {
			*len = n;
			return line;
		}
	}
	return NULL;
}

int rgpu_key_parse(const char *text, struct rgpu_key *out, char why[RGPU_WHY_MAX])
{
	const char *line;
	size_t len;

	line = next_line(&text, &len);
	if (!line || len != strlen(RGPU_KEY_FILE_MAGIC) || memcmp(line, RGPU_KEY_FILE_MAGIC, len))
		return rgpu_why(why, -EINVAL,
				"not a key file: its first line must be \"%s\" (make one with: rgpu-server --pair --key FILE)",
				RGPU_KEY_FILE_MAGIC);
	line = next_line(&text, &len);
	if (!line || !parse_secret(line, len, out->secret))
		return rgpu_why(why, -EINVAL, "damaged key file: its second line must be %d hex digits; copy the file again",
				2 * RGPU_KEY_LEN);
	if (next_line(&text, &len))
		return rgpu_why(why, -EINVAL, "damaged key file: a file holds one key, and something follows it");
	return set_id(out, why);
}

void rgpu_key_text(const struct rgpu_key *key, char out[RGPU_KEY_TEXT_MAX])
{
	int n = snprintf(out, RGPU_KEY_TEXT_MAX, "%s\n", RGPU_KEY_FILE_MAGIC);

	for (int i = 0; i < RGPU_KEY_LEN; i++)
		n += snprintf(out + n, RGPU_KEY_TEXT_MAX - n, "%02x", key->secret[i]);
	snprintf(out + n, RGPU_KEY_TEXT_MAX - n, "\n");
}

void rgpu_key_wipe(struct rgpu_key *key)
{
	OPENSSL_cleanse(key->secret, sizeof(key->secret));
}

static int read_text(int fd, char text[KEY_FILE_MAX + 1])
{
	size_t len = 0;

	for (;;) {
		ssize_t n = read(fd, text + len, KEY_FILE_MAX - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		len += n;
		if (len == KEY_FILE_MAX)
			return -EINVAL;
	}
	if (memchr(text, 0, len))
		return -EINVAL;
	text[len] = 0;
	return 0;
}

int rgpu_key_load(const char *path, struct rgpu_key *out, char why[RGPU_WHY_MAX])
{
	char text[KEY_FILE_MAX + 1], inner[RGPU_WHY_MAX];
	struct stat st;
	int fd, err;

	/* NONBLOCK: a FIFO by mistake must not hang us. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		err = -errno;
		return rgpu_why(why, err, "cannot read the key file %s: %s", path, strerror(-err));
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return rgpu_why(why, -EINVAL, "the key file %s is not a regular file", path);
	}
	if (st.st_mode & 077) {
		close(fd);
		return rgpu_why(why, -EACCES, "the key file %s may be used by others (mode %04o): chmod 600 it", path,
				st.st_mode & 07777);
	}
	err = read_text(fd, text);
	close(fd);
	if (err == -EINVAL)
		err = rgpu_why(inner, err, "not a key file: it is larger than one, or binary");
	else if (err)
		rgpu_why(inner, err, "%s", strerror(-err));
	else
		err = rgpu_key_parse(text, out, inner);
	OPENSSL_cleanse(text, sizeof(text));
	if (err)
		return rgpu_why(why, err, "%.120s: %.130s", path, inner);
	return 0;
}

static int random_secret(uint8_t secret[RGPU_KEY_LEN])
{
	size_t have = 0;

	while (have < RGPU_KEY_LEN) {
		ssize_t n = getrandom(secret + have, RGPU_KEY_LEN - have, 0);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			have += n;
	}
	return 0;
}

int rgpu_key_create(const char *path, struct rgpu_key *out, char why[RGPU_WHY_MAX])
{
	char text[RGPU_KEY_TEXT_MAX];
	int fd, err;
	size_t len;

	err = random_secret(out->secret);
	if (err)
		return rgpu_why(why, err, "no random bytes: %s", strerror(-err));
	err = set_id(out, why);
	if (err)
		return err;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		err = -errno;
		if (err == -EEXIST)
			return rgpu_why(why, err,
					"the key file %s exists already: remove it to make a new key (clients with the old one "
					"are then refused)",
					path);
		return rgpu_why(why, err, "cannot make the key file %s: %s", path, strerror(-err));
	}
	rgpu_key_text(out, text);
	len = strlen(text);
	err = 0;
	/* The umask may have taken owner's rights; fchmod gives the exact mode. */
	if (fchmod(fd, 0600) || write(fd, text, len) != (ssize_t)len || fsync(fd))
		err = errno ? -errno : -EIO;
	OPENSSL_cleanse(text, sizeof(text));
	if (close(fd) && !err)
		err = -errno;
	if (err) {
		unlink(path);
		return rgpu_why(why, err, "cannot write the key file %s: %s", path, strerror(-err));
	}
	return 0;
}
