#pragma once
/* URLs of http and https, read by libcurl's own rules, so that what is checked is what is connected
 * to. */
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* ERR_INVALID unless url is an absolute one of http or https. */
int http_url_check(const char *url, struct err *e) MUST_USE;

/* What ref means on a page of base, which may be ref itself: *ret is the caller's to free.
 * ERR_INVALID where that is no URL of http or https, or ref has control characters or
 * credentials. */
int http_url_join(const char *base, struct str ref, char **ret, struct err *e) MUST_USE;

/* "https://host:port", without the port where it is the scheme's own; lower case; the caller's to
 * free. NULL where url is none. */
char *http_url_origin(const char *url) MUST_USE;

/* Scheme, host and port are the same (RFC 6454). */
bool http_url_same_origin(const char *a, const char *b);
