#pragma once
/* URLs of http and https, parsed by libcurl, so that what is checked is what is connected to. */
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* ERR_INVALID unless url is an absolute URL of http or https. */
int http_url_check(const char *url, struct err *e) MUST_USE;

/* Resolves ref against base, which may be ref itself. The caller frees *ret. ERR_INVALID: the
 * result is not a URL of http or https, or ref has control characters or credentials. */
int http_url_join(const char *base, struct str ref, char **ret, struct err *e) MUST_USE;

/* "https://host:port" in lower case, without the scheme's default port; the caller frees it. NULL
 * if url is invalid. */
char *http_url_origin(const char *url) MUST_USE;

/* True if scheme, host and port are the same (RFC 6454). */
bool http_url_same_origin(const char *a, const char *b);
