#include "http/client/url.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <strings.h>

#include "base/library.h"
#include "base/mem.h"

static void url_free(CURLU *u)
{
	curl_url_cleanup(u);
}
AUTO_DEFINE(url_free, CURLU)

static void part_free(char *p)
{
	curl_free(p);
}
AUTO_DEFINE(part_free, char)

static int no_url(struct err *e)
{
	return err_set(e, ERR_INVALID, "not a URL of http or https");
}

static char *part(CURLU *u, CURLUPart what, unsigned flags)
{
	char *p = NULL;

	return curl_url_get(u, what, &p, flags) == CURLUE_OK ? p : NULL;
}

static bool is_web(CURLU *u)
{
	AUTO(part_free) char *scheme = part(u, CURLUPART_SCHEME, 0);

	return scheme && (strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0);
}

static CURLU *url_parse(const char *url, struct err *e)
{
	AUTO(url_free) CURLU *u = NULL;

	if (library_load("curl", e) < 0)
		return NULL;
	u = curl_url();
	if (!u || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK || !is_web(u))
		return no_url(e), NULL;
	return take_ptr(u);
}

int http_url_check(const char *url, struct err *e)
{
	AUTO(url_free) CURLU *u = url_parse(url, e);

	return u ? 0 : -1;
}

static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f)
			return false;
	}
	return s.n > 0;
}

int http_url_join(const char *base, struct str ref, char **ret, struct err *e)
{
	AUTO(url_free) CURLU *u = url_parse(base, e);
	AUTO(part_free) char *whole = NULL, *user = NULL;
	autofree char *text = is_plain(ref) ? strndup(ref.p, ref.n) : NULL;

	if (!u)
		return -1;
	if (!text || curl_url_set(u, CURLUPART_URL, text, 0) != CURLUE_OK || !is_web(u))
		return no_url(e);
	whole = part(u, CURLUPART_URL, 0);
	user = part(u, CURLUPART_USER, 0);
	if (!whole || user)
		return user ? err_set(e, ERR_INVALID, "a URL with credentials in it") : no_url(e);
	*ret = strdup(whole);
	return *ret ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

char *http_url_origin(const char *url)
{
	struct err ignored = ERR_INIT;
	AUTO(url_free) CURLU *u = url_parse(url, &ignored);
	AUTO(part_free) char *scheme = NULL, *host = NULL, *port = NULL;
	char *origin = NULL;

	if (!u)
		return NULL;
	scheme = part(u, CURLUPART_SCHEME, 0);
	host = part(u, CURLUPART_HOST, 0);
	port = part(u, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
	if (!scheme || !host ||
	    asprintf(&origin, "%s://%s%s%s", scheme, host, port ? ":" : "", port ?: "") < 0)
		return NULL;
	for (char *c = origin; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return origin;
}

bool http_url_same_origin(const char *a, const char *b)
{
	autofree char *x = http_url_origin(a), *y = http_url_origin(b);

	return x && y && strcmp(x, y) == 0;
}
