/* SPDX-License-Identifier: MIT */
/* The kernel's TLS (CONFIG_TLS) for what a link sends: it encrypts from where the bytes lie, on their way into the socket. */
#ifndef RGPU_LIB_KTLS_H
#define RGPU_LIB_KTLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * OpenSSL 3 hands the keys of its side to the BIO that it writes to, if that takes them, and names the type of each record that
 * is not data. Its headers give these controls' numbers, but no names: BIO_CTRL_GET_KTLS_SEND has one.
 */
#define RGPU_BIO_SET_KTLS	 72 /* num: 1 for sending; ptr: struct tls_crypto_info and the cipher's keys. Returns whether taken */
#define RGPU_BIO_SET_KTLS_TYPE	 74 /* num: the type of the record that is written next */
#define RGPU_BIO_CLEAR_KTLS_TYPE 75

/* From the next send(2) on, the kernel makes records of what @fd is given, with the keys in @info. False: it cannot. */
bool rgpu_ktls_start(int fd, const void *info);
/* One record of another type than data. As sendmsg(2). */
ssize_t rgpu_ktls_send_record(int fd, uint8_t type, const void *buf, size_t len);

#endif
