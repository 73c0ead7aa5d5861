#include "http/client/redirect.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "http/client/url.h"

bool http_is_redirect(int status)
{
	return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

static bool keeps(const char *method, int status)
{
	return status == 307 || status == 308 || strcmp(method, "GET") == 0;
}

void http_redirect_place(struct str location, char ret[HTTP_PLACE_MAX])
{
	static const char none[] = "nowhere", cut[] = "...";
	size_t n = location.n < HTTP_PLACE_MAX - sizeof(cut) ? location.n
							     : HTTP_PLACE_MAX - sizeof(cut);

	for (size_t i = 0; i < n; i++)
		ret[i] = location.p[i] > ' ' && location.p[i] < 0x7f ? location.p[i] : '?';
	strcpy(ret + n, n == 0 ? none : n < location.n ? cut : "");
}

static int redirect_refuse(int status, struct str location, const char *why, struct err *e)
{
	char place[HTTP_PLACE_MAX];

	http_redirect_place(location, place);
	return err_set(e, ERR_TRANSPORT,
		       "the server answered with HTTP status %d, a redirect to %s, %s", status,
		       place, why);
}

int http_redirect(const char *url, const char *method, int status, struct str location, char **ret,
		  struct err *e)
{
	struct err unused;
	autofree char *to = NULL;

	if (location.n == 0 || http_url_join(url, location, &to, &unused) < 0)
		return redirect_refuse(status, location, "which can't be followed", e);
	if (!http_url_same_origin(url, to))
		return redirect_refuse(
			status, str_of(to),
			"another server, which is not followed: name its address if you "
			"trust it",
			e);
	if (!keeps(method, status))
		return redirect_refuse(status, str_of(to), "which would turn the POST into a GET",
				       e);
	*ret = take_ptr(to);
	return 0;
}
