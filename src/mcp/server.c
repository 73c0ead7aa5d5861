#include "mcp/server.h"

#include <stdlib.h>

#include "base/clock.h"
#include "mcp/core.h"

enum {
	PAGE = 100,
	HELD_MAX = 64 << 20,
	REPLY_MAX = 64 << 20,
	PROGRESS_MS = 100,
};

struct mcp_server *mcp_server_new(const struct mcp_server_options *o, struct err *e)
{
	struct mcp_server *srv;

	if (!o->name || !o->version || !o->handler || !o->handler->tools || !o->handler->call) {
		err_set(e, ERR_BUG, "an MCP server needs a name, a version and a handler");
		return NULL;
	}
	srv = calloc(1, sizeof(*srv));
	if (!srv) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	srv->o = *o;
	srv->o.page = o->page ? o->page : PAGE;
	srv->o.inflight_max = o->inflight_max ? o->inflight_max : INFLIGHT_MAX_DEFAULT;
	srv->o.held_max = o->held_max ? o->held_max : HELD_MAX;
	srv->o.reply_max = o->reply_max ? o->reply_max : REPLY_MAX;
	srv->o.progress_ms = o->progress_ms ? o->progress_ms : PROGRESS_MS;
	srv->o.now_ms = o->now_ms ? o->now_ms : clock_ms;
	return srv;
}

void mcp_server_free(struct mcp_server *srv)
{
	free(srv);
}

static bool is_name(const char *name)
{
	size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				"0123456789_.-");

	return n >= 1 && n <= 64 && name[n] == '\0';
}

/* text is a JSON object on one line; a schema is of type object. */
static int check_text(const char *what, const char *text, bool schema, struct err *e)
{
	AUTO(json_free) struct json_doc *d = json_parse(str_of(text), NULL, e);
	const struct json_val *root;

	if (!d)
		return err_wrap(e, "%s", what);
	root = json_root(d);
	if (json_type(root) != JSON_OBJECT || strchr(text, '\n'))
		return err_set(e, ERR_BUG, "%s is not a JSON object on one line", what);
	if (schema && !str_is(json_str(json_get(root, "type")), "object"))
		return err_set(e, ERR_BUG, "%s is not of type object", what);
	return 0;
}

static int check_texts(const struct mcp_tool *t, struct err *e)
{
	if (check_text("input_schema", t->input_schema, true, e) < 0)
		return -1;
	if (t->output_schema && check_text("output_schema", t->output_schema, true, e) < 0)
		return -1;
	return t->meta ? check_text("meta", t->meta, false, e) : 0;
}

int mcp_tool_check(const struct mcp_tool *t, struct err *e)
{
	if (!t->name || !is_name(t->name))
		return err_set(e, ERR_BUG, "a tool's name takes 1 to 64 of A-Z a-z 0-9 _ . -");
	if (!t->description || !*t->description || !t->input_schema)
		return err_set(e, ERR_BUG, "%s: no description or no input_schema", t->name);
	if (check_texts(t, e) < 0) {
		e->code = ERR_BUG;
		return err_wrap(e, "%s", t->name);
	}
	return 0;
}
