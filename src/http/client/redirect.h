#pragma once
/*
 * Redirects, followed only where nothing new is trusted by it: within scheme, host and port, and
 * with the same method and body. 307 and 308 always keep both; 301, 302 and 303 do so for GET. The
 * caller limits their number (HTTP_REDIRECTS_MAX) and sends the request again.
 */
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

enum { HTTP_REDIRECTS_MAX = 5, HTTP_PLACE_MAX = 128 };

bool http_is_redirect(int status);

/* A Location as a message may show it: cut, and with "?" for all but visible ASCII. */
void http_redirect_place(struct str location, char ret[HTTP_PLACE_MAX]);

/* Where a redirect of a request to url leads; the caller frees *ret. ERR_TRANSPORT: it is not to be
 * followed; the message names the place. */
int http_redirect(const char *url, const char *method, int status, struct str location, char **ret,
		  struct err *e) MUST_USE;
