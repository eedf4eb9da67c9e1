/* SPDX-License-Identifier: MIT */
/* An intrusive doubly linked list; a node that is in no list points at itself. */
#ifndef SOFTGPU_LIST_H
#define SOFTGPU_LIST_H

#include <stdbool.h>

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_add_tail(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void list_del(struct list *node)
{
	node->next->prev = node->prev;
	node->prev->next = node->next;
	list_init(node);
}

#endif
