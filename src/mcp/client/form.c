/* Questions to people: forms, whose schema must be valid, and URLs, which are shown in full and
 * opened only by the user. MCP 2026-07-28, client/elicitation. */
#include "mcp/client/internal.h"

#include <stdlib.h>
#include <strings.h>

#include "json/schema/schema.h"

enum { URLS_MAX = 64, URL_ID_MAX = 1024, URL_MAX = 8192 };

/* --- URLs --- */

static bool has_scheme(struct str url, const char *scheme)
{
	size_t n = strlen(scheme);

	return url.n > n && strncasecmp(url.p, scheme, n) == 0;
}

/* The part between the scheme and the path; STR_NONE if the URL is not http or https. */
static struct str authority_of(struct str url)
{
	size_t at = has_scheme(url, "https://") ? 8 : has_scheme(url, "http://") ? 7 : 0;
	size_t n = 0;

	if (at == 0)
		return STR_NONE;
	while (at + n < url.n && !strchr("/?#", url.p[at + n]))
		n++;
	return n > 0 ? (struct str){ url.p + at, n } : STR_NONE;
}

static int check_url(struct str url, struct err *e)
{
	struct str authority = authority_of(url);

	if (url.n > URL_MAX)
		return err_set(e, ERR_INVALID, "url has more than %d bytes", URL_MAX);
	for (size_t i = 0; i < url.n; i++) {
		if (url.p[i] <= ' ' || url.p[i] > '~' || url.p[i] == '\\')
			return err_set(e, ERR_INVALID, "url has characters that no URL has");
	}
	if (!authority.p || *authority.p == ':')
		return err_set(e, ERR_INVALID, "url takes an address of http: or https:");
	if (memchr(authority.p, '@', authority.n))
		return err_set(e, ERR_INVALID, "url has a user name in it");
	return 0;
}

/* --- forms --- */

static const struct schema_options formats = { .formats = true };

static int check_form(const struct json_val *params, struct err *e)
{
	const struct json_val *schema = json_get(params, "requestedSchema");
	struct str mode = json_str(json_get(params, "mode"));
	AUTO(schema_free) struct schema *s = NULL;

	if (json_get(params, "mode") && !str_is(mode, "form"))
		return err_set(e, ERR_INVALID, "mode takes form or url");
	if (!str_is(json_str(json_get(schema, "type")), "object") ||
	    json_type(json_get(schema, "properties")) != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "requestedSchema takes an object with properties");
	s = schema_new(schema, &formats, e);
	if (s)
		return 0;
	e->code = e->code == ERR_LIMIT ? ERR_LIMIT : ERR_INVALID;
	return err_wrap(e, "requestedSchema");
}

int mcp_question_find(struct str method, const struct json_val *params)
{
	bool url = str_is(json_str(json_get(params, "mode")), "url");

	if (str_is(method, mcp_question_method(MCP_ASK_FORM)))
		return url ? MCP_ASK_URL : MCP_ASK_FORM;
	if (str_is(method, mcp_question_method(MCP_ASK_SAMPLING)))
		return MCP_ASK_SAMPLING;
	return str_is(method, mcp_question_method(MCP_ASK_ROOTS)) ? MCP_ASK_ROOTS : -1;
}

int mcp_question_read(enum mcp_ask_kind kind, const struct json_val *params, struct err *e)
{
	if (mcp_question_check(kind, params, e) < 0) {
		e->code = ERR_INVALID;
		return -1;
	}
	if (kind == MCP_ASK_FORM)
		return check_form(params, e);
	return kind == MCP_ASK_URL ? check_url(json_str(json_get(params, "url")), e) : 0;
}

/* Ignores a default that its own schema refuses. */
static bool is_default(const struct json_val *field, const struct json_val *v)
{
	AUTO(schema_free) struct schema *s = NULL;
	struct err e;

	if (!v || json_type(v) == JSON_OBJECT || json_type(v) == JSON_NULL)
		return false;
	s = schema_new(field, &formats, &e);
	return s && schema_check(s, v, NULL, &e) == 0;
}

int mcp_form_defaults(const struct json_val *params, struct buf *to, struct err *e)
{
	struct json_iter it =
		json_iter(json_get(json_get(params, "requestedSchema"), "properties"));
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	while (json_next(&it)) {
		const struct json_val *v = json_get(it.val, "default");

		if (!it.key.p || !is_default(it.val, v))
			continue;
		json_write_key_str(&w, it.key);
		json_write_val(&w, v);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* --- URLs that the server may report as complete --- */

/* The newest URLs; older ones are forgotten, and not reported. */
struct mcp_urls {
	char *id[URLS_MAX]; /* NULL: unused */
	size_t next;
};

void mcp_urls_free(struct mcp_urls *urls)
{
	for (size_t i = 0; urls && i < URLS_MAX; i++)
		free(urls->id[i]);
	free(urls);
}

void mcp_urls_note(struct mcp_client *c, const struct json_val *params)
{
	struct str id = json_str(json_get(params, "elicitationId"));
	char **to;

	if (id.n == 0 || id.n > URL_ID_MAX || memchr(id.p, '\0', id.n))
		return;
	if (!c->urls)
		c->urls = calloc(1, sizeof(*c->urls));
	if (!c->urls)
		return;
	to = &c->urls->id[c->urls->next++ % URLS_MAX];
	free(*to);
	*to = strndup(id.p, id.n);
}

bool mcp_urls_done(struct mcp_client *c, struct str id)
{
	for (size_t i = 0; c->urls && i < URLS_MAX; i++) {
		char **at = &c->urls->id[i];

		if (!*at || !str_is(id, *at))
			continue;
		free(take_ptr(*at));
		return true;
	}
	return false;
}
