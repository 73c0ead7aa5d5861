#include "door/mcp/common.h"

#include "base/base64.h"
#include "base/log.h"

const char *const encoding_names[ENCODINGS] = {
	[ENCODING_UTF8] = "utf-8",
	[ENCODING_BASE64] = "base64",
};

static const struct field sandbox_fields[] = { SANDBOX_ROW(struct sandbox_params) };
const struct field_table sandbox_params_table = FIELD_TABLE(struct sandbox_params, sandbox_fields);

static const struct field state_fields[] = {
	FIELD(struct state_result, sandbox, .flags = FIELD_REQUIRED, .doc = "Its id."),
	FIELD_ENUM(struct state_result, state, life_state_names, .flags = FIELD_REQUIRED,
		   .doc = "What it is now."),
};
const struct field_table state_result_table = FIELD_TABLE(struct state_result, state_fields);

struct tool_wait *tool_wait(struct call *c, const void *params)
{
	struct err e = ERR_INIT;
	struct tool_wait *w = arena_alloc(call_arena(c), sizeof(*w), &e);

	if (w)
		*w = (struct tool_wait){ c, params };
	else
		call_fail(c, &e);
	return w;
}

int tool_env(struct call *c, const struct field_map *map, const struct env_var **ret, struct err *e)
{
	struct env_var *vars = arena_array(call_arena(c), map->n, sizeof(*vars), e);

	if (!vars)
		return -1;
	for (size_t i = 0; i < map->n; i++) {
		vars[i] = (struct env_var){ .name = map->p[i].key, .value = map->p[i].value };
		if (vars[i].name.n == 0 || memchr(vars[i].name.p, '=', vars[i].name.n) ||
		    memchr(vars[i].name.p, '\0', vars[i].name.n))
			return err_set(e, ERR_INVALID,
				       "env: a variable's name is not empty and has no '='");
	}
	*ret = vars;
	return 0;
}

int tool_bytes(struct call *c, const char *name, struct str text, enum encoding encoding,
	       struct str *ret, struct err *e)
{
	char *room;
	autobuf struct buf bytes = BUF_INIT(text.n);

	*ret = text;
	if (encoding != ENCODING_BASE64 || text.n == 0)
		return 0;
	if (base64_decode(&bytes, text, e) < 0)
		return err_wrap(e, "%s", name);
	room = arena_dup(call_arena(c), buf_str(&bytes), e);
	if (!room)
		return -1;
	*ret = (struct str){ room, bytes.n };
	return 0;
}

static void on_discarded(void *arg, struct life *l, const struct err *err)
{
	if (err)
		log_warn("could not end a sandbox: %s", err->msg);
}

void tool_discard(struct life *l)
{
	life_terminate_start(l, on_discarded, NULL);
}
