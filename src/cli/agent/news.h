#pragma once
/*
 * News for the person at an agent's terminal: what its sandbox asked for in vain, with the command
 * that grants it. A process of its own follows the hub's events, and ends with this one.
 */
#include <sys/types.h>

#include "json/field/field.h"

struct news {
	pid_t pid; /* 0: none */
	int fd; /* its lines; -1: they go to standard error */
};
#define NEWS_INIT ((struct news){ 0, -1 })

/* From now on. lines: for fd; else it prints them itself. silent: hosts that an agent can do
 * without; borrowed. */
int news_start(struct news *n, const char *sandbox, const struct field_strs *silent, bool lines,
	       struct err *e) MUST_USE;
void news_stop(struct news *n);
