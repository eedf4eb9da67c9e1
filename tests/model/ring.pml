/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* The ring of uapi/linux/rgpu.h as a Promela model: publishing, going to sleep, the latched kick. Spin looks at every interleaving.
 *
 * Memory is weaker than any machine that we run on: each side's stores wait in a buffer with one place a variable, and reach
 * memory in any order, some time later. What the protocol needs of order it must ask for:
 *	RELEASE	  the entry's bytes are in memory before the tail is		(-DNO_RELEASE takes it out)
 *	FULL_PROD the tail is in memory before the event word is read		(-DNO_FULL_PROD)
 *	FULL_CONS the event word is in memory before the tail is read again	(-DNO_FULL_CONS)
 *	LATCH	  a kick that comes before the wait ends that wait at once	(-DNO_LATCH)
 *	RECHECK	  the tail is read again after the event word was set		(-DNO_RECHECK)
 *	SPACE	  an entry is filled only once the head has passed it	(-DNO_SPACE)
 * Checked: entries come in order and whole, none is lost, nobody sleeps for ever (no invalid end state).
 */
#define SIZE  2 /* entries of the ring */
#define TOTAL 5 /* entries that pass through it */

/* Memory, and the buffers before it. A place that is not pending has reached memory. */
byte slot[SIZE], tail, head;
bool asleep;
byte slot_buf[SIZE], tail_buf, head_buf;
bool asleep_buf;
bool slot_pending[SIZE], tail_pending, head_pending, asleep_pending;
bool kicked, done;

/* Stores reach memory when they like. */
active proctype machine()
{
end:	do
	:: atomic { slot_pending[0] -> slot[0] = slot_buf[0]; slot_pending[0] = false }
	:: atomic { slot_pending[1] -> slot[1] = slot_buf[1]; slot_pending[1] = false }
	:: atomic { tail_pending -> tail = tail_buf; tail_pending = false }
	:: atomic { head_pending -> head = head_buf; head_pending = false }
	:: atomic { asleep_pending -> asleep = asleep_buf; asleep_pending = false }
	:: done && !slot_pending[0] && !slot_pending[1] && !tail_pending && !head_pending && !asleep_pending -> break
	od
}

active proctype producer()
{
	byte n = 0;

	do
	:: n == TOTAL -> break
	:: n < TOTAL ->
#ifndef NO_SPACE
		/* Here the producer waits for space by looking: how it sleeps for it is the same protocol the other way. */
		n - head < SIZE;
#endif
		/* An older store to this place is gone before a newer one can be: one address, one order. */
		atomic { !slot_pending[n % SIZE] -> slot_buf[n % SIZE] = n + 1; slot_pending[n % SIZE] = true }
#ifndef NO_RELEASE
		!slot_pending[0] && !slot_pending[1];
#endif
		n++;
		atomic { !tail_pending -> tail_buf = n; tail_pending = true }
#ifndef NO_FULL_PROD
		!tail_pending;
#endif
		if
		:: asleep -> kicked = true
		:: else
		fi
	od
}

active proctype consumer()
{
	byte n = 0, seen;

	do
	:: n == TOTAL -> break
	:: n < TOTAL ->
		seen = tail;
		if
		:: seen != n ->
			/* The bytes are read after the tail (acquire), and the space is given back after the bytes. */
			assert(slot[n % SIZE] == n + 1);
			n++;
			atomic { !head_pending -> head_buf = n; head_pending = true }
		:: else ->
			atomic { !asleep_pending -> asleep_buf = true; asleep_pending = true }
#ifndef NO_FULL_CONS
			!asleep_pending;
#endif
#ifndef NO_RECHECK
			seen = tail;
#endif
			if
			:: seen != n
			:: else ->
#ifdef NO_LATCH
				kicked = false;
#endif
				atomic { kicked -> kicked = false }
			fi;
			atomic { !asleep_pending -> asleep_buf = false; asleep_pending = true }
		fi
	od;
	done = true
}
