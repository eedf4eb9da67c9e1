/* SPDX-License-Identifier: MIT */
/* The worker as a process: its limits, its socket for the listener, its session, its end. */
#ifndef RGPU_SERVER_PROCESS_H
#define RGPU_SERVER_PROCESS_H

/* Runs the session that comes over @fd. Does not return. */
_Noreturn void worker_process(int fd);

/* The listener's short-lived child: writes struct devices_answer to @fd. Its exit status. */
int devices_process(int fd, const char *driver, const char *blas);

#endif
