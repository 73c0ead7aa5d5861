#pragma once
/* A header field, for requests and replies. */
#include "base/str.h"

struct http_header {
	const char *name;
	struct str value; /* no control characters; a reply with one becomes a 500 */
};
