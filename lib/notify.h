/* SPDX-License-Identifier: MIT */
/* systemd's notification socket: ready, status, reload, watchdog. */
#ifndef RGPU_LIB_NOTIFY_H
#define RGPU_LIB_NOTIFY_H

/*
 * Sends lines of sd_notify(3), "READY=1" and so on; without a service manager it does nothing. By hand rather than by libsystemd,
 * which would bring six more libraries into each process that faces the network for the sake of one datagram.
 */
void rgpu_notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* RELOADING=1, with the time that systemd wants with it. READY=1 ends it. */
void rgpu_notify_reloading(void);

/* How often to say WATCHDOG=1, in milliseconds: half of what the unit allows; −1: nobody watches. */
int rgpu_notify_watchdog_ms(void);

/* Says WATCHDOG=1 when half of the time is over. For loops that come by more often. */
void rgpu_notify_watchdog(void);

#endif
