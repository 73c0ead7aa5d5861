/*
 * What the HTTP door reads of a request before it knows anybody: the same bytes as an authority, a
 * path, a query, a type, a token. What is accepted is of the form that its reader promises.
 */
#include <string.h>

#include "fuzz.h"
#include "http/message/head.h"

static bool has(struct str s, const char *any)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!s.p[i] || strchr(any, s.p[i]))
			return true;
	}
	return false;
}

/* Host and port are all of it, so nothing is hidden between them. */
static void check_authority(struct str text)
{
	static const struct http_authority all[] = {
		{ STR_LIT("localhost"), -1 },
		{ STR_LIT("[::1]"), -1 },
		{ STR_LIT("a"), 80 },
	};
	struct http_authority a;
	char again[512];
	int n;

	if (!http_authority_parse(text, &a)) {
		MUST(!http_authority_in(text, all, 3));
		return;
	}
	MUST(!has(text, "@/\\?#% \t\r\n,;") && a.host.n > 0 && a.port >= -1 && a.port <= 65535);
	n = snprintf(again, sizeof(again), a.port < 0 ? "%.*s" : "%.*s:%d", STR_ARG(a.host),
		     a.port);
	MUST(n >= 0 && str_eq(text, (struct str){ again, (size_t)n }));
	MUST(http_authority_in(text, all, 3) ==
	     (http_same(a.host, STR_LIT("localhost")) || str_is(a.host, "[::1]") ||
	      (http_same(a.host, STR_LIT("a")) && a.port == 80)));
}

/* No part of an accepted path means another one. */
static void check_path(struct str text)
{
	if (!http_path_ok(text))
		return;
	MUST(text.p[0] == '/' && !has(text, "\\# \t\r\n"));
	for (size_t i = 0; i + 2 < text.n; i++) {
		struct str s = { text.p + i, text.n - i };

		MUST(!str_starts(s, "/../") && !str_starts(s, "/./") && !str_starts(s, "%00"));
		MUST((unsigned char)s.p[0] > 0x20 && (unsigned char)s.p[0] < 0x7f);
	}
}

static void check_query(struct str text)
{
	struct arena *arena = arena_new(1 << 20);
	struct str value = http_query_decode(text, arena);

	MUST(!value.p || (value.n <= text.n && !memchr(value.p, 0, value.n)));
	arena_free(arena);
}

static void check_fields(struct str text)
{
	struct str token = http_bearer(text), trimmed = str_trim(text);
	unsigned long long length = 0;

	MUST(!token.p || (token.n > 0 && !has(token, " \t\r\n\",;")));
	MUST(trimmed.n <= text.n &&
	     (trimmed.n == 0 || (trimmed.p[0] != ' ' && trimmed.p[0] != '\t')));
	MUST(!http_length_parse(text, &length) || length <= 999999999999999999u);
	MUST(!http_type_is_json(text) || text.n >= strlen("application/json"));
	MUST(!http_name_ok(text) || (text.n > 0 && http_value_ok(text)));
	MUST(!http_value_ok(text) || !has(text, "\r\n"));
	MUST(!http_list_has(text, "upgrade") || text.n >= 7);
	MUST(!http_origin_is(text, "http", STR_LIT("localhost")) ||
	     str_is(text, "http://localhost"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str text = { (const char *)data, n };

	if (n == 0 || n > 4096)
		return 0;
	check_authority(text);
	check_path(text);
	check_query(text);
	check_fields(text);
	return 0;
}
