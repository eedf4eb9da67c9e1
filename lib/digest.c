// SPDX-License-Identifier: MIT
/* Names for bytes: a strong one, and a quick one that only finds. */
#include <pthread.h>
#include <sys/random.h>
#include <openssl/evp.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "lib/digest.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256;

/* A library context of our own, as lib/link_ctx.c has one: we may live in somebody's program. */
static void init(void)
{
	OSSL_LIB_CTX *lib = OSSL_LIB_CTX_new();

	sha256 = lib ? EVP_MD_fetch(lib, "SHA256", NULL) : NULL;
}

bool rgpu_sha256(const void *bytes, size_t len, uint8_t out[RGPU_SHA256_LEN])
{
	unsigned n = RGPU_SHA256_LEN;

	pthread_once(&once, init);
	return sha256 && EVP_Digest(bytes, len, out, &n, sha256, NULL) == 1;
}

uint64_t rgpu_hint(const void *bytes, size_t len)
{
	return XXH3_64bits(bytes, len);
}

uint64_t rgpu_hint_key(void)
{
	uint64_t key = 0x9e3779b97f4a7c15ull;

	/* Without random numbers it is a table as others are. */
	(void)!getrandom(&key, sizeof(key), GRND_NONBLOCK);
	return key | 1;
}
