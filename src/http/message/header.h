#pragma once
/* A field of a message's head, as both sides write them. */
#include "base/str.h"

struct http_header {
	const char *name;
	struct str value; /* no control characters; a reply with one is a 500 */
};
