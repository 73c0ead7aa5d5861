#pragma once
/*
 * A sequence of keys that detaches from a terminal while its program runs on. Keys that may begin
 * the sequence are held back until the next key.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { DETACH_KEYS_MAX = 8 };
#define DETACH_KEYS_DEFAULT "ctrl-p,ctrl-q"

struct detach {
	char keys[DETACH_KEYS_MAX];
	size_t n, came;
};

/* Parses key names, separated by commas: a character, or ctrl- and a letter or one of @[\]^_. */
int detach_parse(const char *text, struct detach *ret, struct err *e) MUST_USE;

/* Copies the program's keys to `to`, which has room for n + DETACH_KEYS_MAX bytes. True if the
 * sequence is complete; what follows it is dropped. */
bool detach_scan(struct detach *d, const char *p, size_t n, char *to, size_t *ret_n);
