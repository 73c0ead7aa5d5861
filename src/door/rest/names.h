#pragma once
/* The names of sandboxes that a request makes: known before they are made, so that a request with an
 * Idempotency-Key which was cut off finds what its first time has made. */
#include "door/http/once.h"

struct life;

enum { API_NAMES_MAX = 64 };

struct api_names {
	struct str p[API_NAMES_MAX];
	size_t n;
};

/* ids, or n of which id (STR_NONE: none) is the one, or made ones in the call's arena. */
int api_names(struct call *c, struct str id, const struct field_strs *ids, size_t n,
	      struct api_names *ret, struct err *e) MUST_USE;

/* ONCE_NEW: they are to be made, by these names. ONCE_AGAIN: they are, in made. */
enum once api_names_once(struct call *c, const struct once_header *h, struct api_names *names,
			 struct life *made[API_NAMES_MAX]);
