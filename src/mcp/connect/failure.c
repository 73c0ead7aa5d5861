/* Turns a status of failure, and the server's own text, into an error. */
#include <string.h>

#include "json/document/raw.h"
#include "json/document/utf8.h"
#include "mcp/connect/exchange.h"

enum { SAID_MAX = 200 }; /* bytes of what the server says */

static const struct {
	int from, to;
	enum err_code code;
	const char *why;
} meanings[] = {
	{ 401, 401, ERR_LOGIN, ": it does not know who asks, or the token is wrong" },
	{ 403, 403, ERR_DENIED, ": who asks may not do that" },
	{ 404, 404, ERR_TRANSPORT, ": there is nothing at that address" },
	{ 413, 413, ERR_TOO_LARGE, ": the message is too large for it" },
	{ 429, 429, ERR_LIMIT, ": it is asked too much" },
	{ 503, 503, ERR_LIMIT, ": it has no room" },
	{ 0, 999, ERR_TRANSPORT, "" },
};

/* The reason in a JSON body, by the members that frameworks have for it. */
static struct str reason_in(struct str text, const struct json_val *v)
{
	static const char *const names[] = {
		"detail", "error_description", "message", "error", "msg", "reason", "title"
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct json_val *of = json_get(v, names[i]);

		if (json_str(of).n > 0)
			return json_str(of);
		if (json_type(of) == JSON_ARRAY)
			return json_raw_member(text, v, names[i]);
		if (json_type(of) == JSON_OBJECT)
			return reason_in(json_raw_member(text, v, names[i]), of);
	}
	return text;
}

/* The server's text about a failure. Pages are left out: they say no more than the status. */
static struct str said_in(struct str text, const struct json_doc *doc)
{
	if (doc && json_len(json_root(doc)) > 0)
		return reason_in(text, json_root(doc));
	while (text.n > 0 && strchr(" \t\r\n", text.p[0])) {
		text.p++;
		text.n--;
	}
	return doc || (text.n > 0 && text.p[0] == '<') ? STR_NONE : text;
}

int mcp_exchange_err(int status, struct str text, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(text, NULL, e);
	char room[SAID_MAX];
	struct str said;
	size_t i = 0;

	while (i < ARRAY_LEN(meanings) - 1 &&
	       (status < meanings[i].from || status > meanings[i].to))
		i++;
	/* both have to fit */
	said = utf8_line(said_in(text, doc), room, sizeof(room) - strlen(meanings[i].why));
	return err_set(e, meanings[i].code, "the server answered with HTTP status %d%s%s%.*s%s",
		       status, meanings[i].why, said.n > 0 ? ": \"" : "", STR_ARG(said),
		       said.n > 0 ? "\"" : "");
}
