/* SPDX-License-Identifier: MIT */
/* For tests of the server as processes: one with the stub behind it, its log, and clients of it. */
#ifndef RGPU_TESTS_PROCS_H
#define RGPU_TESTS_PROCS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include "lib/key.h"
#include "tests/server/peer.h"

extern char dir[64], stubd[PATH_MAX], log_path[128], key_path[128], key2_path[128], state_path[128];
extern struct rgpu_key key, key2;
extern pid_t server;
extern uint16_t port;

/* A folder of the test's own, and the names in it; @me: the test's own path, beside which the server is. false: there is none. */
bool procs_begin(const char *me);
void procs_end(void);

struct client {
	struct rgpu_link *link;
	struct rgpu_error_frame error; /* the last C_ERROR */
	struct rgpu_started started;
	struct rgpu_start start;
	uint8_t answer[RGPU_FRAME_MAX];
	ssize_t len;
	struct peer p;
};

char *read_file(const char *path);
/* Starts @argv with stderr and stdout into @log; its pid. */
pid_t spawn(char *const argv[], const char *log);
int run(char *const argv[], const char *log);
/* Waits until the log holds @text, @times times. */
bool log_has(const char *text, int times);
void server_at(const char *host, uint16_t at, const char *max);
void server_up(uint16_t at, const char *max);
int server_down(int sig);
int dial_from(uint32_t host);
int dial(void);
int request(struct client *c, uint16_t type, const void *buf, size_t len);
int hello(struct client *c, uint16_t major);
int control_as(struct client *c, const struct rgpu_key *k);
struct client *client_new(void);
void client_free(struct client *c);
/* A data connection for the last STARTED. 0, or what the handshake says. */
int data_with(struct client *c, const uint8_t token[16], uint32_t lease);
void attach(struct client *c);
int start(struct client *c, uint16_t type);
/* A client with a session and its data connection. */
struct client *whole(bool direct);
/* STUB_COUNT over channel 0: the worker's own counter, or −1. */
int count(struct client *c);
unsigned sessions(struct client *c);
bool sessions_become(struct client *c, unsigned n);
/* The pid in the last "worker N" of the log. */
pid_t last_worker(void);

#endif
