#include "http/client/redirect.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "http/client/url.h"

enum { SHOWN = 120 }; /* bytes of an address */

bool http_is_redirect(int status)
{
	return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

static bool keeps(const char *method, int status)
{
	return status == 307 || status == 308 || strcmp(method, "GET") == 0;
}

/* The address as it is, but for what isn't visible ASCII. */
static int refuse(int status, struct str location, const char *why, struct err *e)
{
	char shown[SHOWN + 1];
	size_t n = location.n < SHOWN ? location.n : SHOWN;

	for (size_t i = 0; i < n; i++)
		shown[i] = location.p[i] > ' ' && location.p[i] < 0x7f ? location.p[i] : '?';
	shown[n] = '\0';
	return err_set(e, ERR_TRANSPORT,
		       "the server answered with HTTP status %d, a redirect to %s%s, %s", status,
		       n ? shown : "nowhere", n < location.n ? "…" : "", why);
}

int http_redirect(const char *url, const char *method, int status, struct str location, char **ret,
		  struct err *e)
{
	struct err unused;
	autofree char *to = NULL;

	if (location.n == 0 || http_url_join(url, location, &to, &unused) < 0)
		return refuse(status, location, "which can't be followed", e);
	if (!http_url_same_origin(url, to))
		return refuse(status, str_of(to),
			      "another server, which is not followed: name its address if you "
			      "trust it",
			      e);
	if (!keeps(method, status))
		return refuse(status, str_of(to), "which would turn the POST into a GET", e);
	*ret = take_ptr(to);
	return 0;
}
