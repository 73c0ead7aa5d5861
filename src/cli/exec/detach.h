#pragma once
/*
 * Keys that leave a terminal elsewhere while its program runs on, as one after the other they come among those that are typed
 * for it. What may be their beginning is held back until the next key.
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

/* Names with commas between them: a character, or ctrl- and a letter or one of @[\]^_. */
int detach_parse(const char *text, struct detach *ret, struct err *e) MUST_USE;

/* What is for the program goes to `to`, which has room for n + DETACH_KEYS_MAX bytes. True: the keys have come; what stood behind
 * them is nobody's. */
bool detach_scan(struct detach *d, const char *p, size_t n, char *to, size_t *ret_n);
