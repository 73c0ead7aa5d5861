/* Tools: checked once, with the parts of their schemas compiled that every call needs. */
#include <stdlib.h>

#include "mcp/server/internal.h"

enum { OUTPUT_DEPTH = 512 };

static bool is_name(const char *name)
{
	size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				"0123456789_.-");

	return n >= 1 && n <= 64 && name[n] == '\0';
}

/* Parses text, which must be a JSON object on one line. */
static struct json_doc *tool_parse(const char *what, const char *text, struct err *e)
{
	AUTO(json_free) struct json_doc *d = json_parse(str_of(text), NULL, e);

	if (!d)
		return err_wrap(e, "%s", what), NULL;
	if (json_type(json_root(d)) != JSON_OBJECT || strchr(text, '\n'))
		return err_set(e, ERR_BUG, "%s is not a JSON object on one line", what), NULL;
	return take_ptr(d);
}

/* --- tools --- */

static void prepared_free(struct mcp_prepared *p)
{
	if (!p)
		return;
	json_free(p->input);
	mcp_params_fini(&p->params);
	schema_free(p->output);
	free(p);
}
AUTO_DEFINE(prepared_free, struct mcp_prepared)

static int prepare_output(const struct mcp_tool *t, struct mcp_prepared *p, struct err *e)
{
	AUTO(json_free) struct json_doc *d = NULL;

	if (!t->output_schema)
		return 0;
	d = tool_parse("output_schema", t->output_schema, e);
	if (!d)
		return -1;
	p->object_output = str_is(json_str(json_get(json_root(d), "type")), "object");
	p->output = schema_parse(str_of(t->output_schema), NULL, e);
	return p->output ? 0 : err_wrap(e, "output_schema");
}

static int check_meta(const struct mcp_tool *t, struct err *e)
{
	AUTO(json_free) struct json_doc *d = NULL;

	if (!t->meta)
		return 0;
	d = tool_parse("meta", t->meta, e);
	return d ? 0 : -1;
}

static struct mcp_prepared *tool_prepare(const struct mcp_tool *t, struct err *e)
{
	AUTO(prepared_free) struct mcp_prepared *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	p->input = tool_parse("input_schema", t->input_schema, e);
	if (!p->input)
		return NULL;
	if (!str_is(json_str(json_get(json_root(p->input), "type")), "object"))
		return err_set(e, ERR_BUG, "input_schema is not of type object"), NULL;
	if (mcp_params_find(json_root(p->input), &p->params, e) < 0 ||
	    prepare_output(t, p, e) < 0 || check_meta(t, e) < 0 ||
	    mcp_icons_check(&t->icons, e) < 0)
		return NULL;
	if (p->params.n == 0)
		json_free(take_ptr(p->input));
	return take_ptr(p);
}

int mcp_tool_prepare(struct mcp_tool *t, struct err *e)
{
	if (!t->name || !is_name(t->name))
		return err_set(e, ERR_BUG, "a tool's name takes 1 to 64 of A-Z a-z 0-9 _ . -");
	if (!t->description || !*t->description || !t->input_schema)
		return err_set(e, ERR_BUG, "%s: no description or no input_schema", t->name);
	if (t->prepared)
		return 0;
	t->prepared = tool_prepare(t, e);
	if (!t->prepared) {
		if (e->code != ERR_LIMIT)
			e->code = ERR_BUG;
		return err_wrap(e, "%s", t->name);
	}
	return 0;
}

void mcp_tool_release(struct mcp_tool *t)
{
	prepared_free(take_ptr(t->prepared));
}

bool mcp_tool_is_structured(const struct mcp_tool *t, const struct mcp_profile *p)
{
	if (!t->output_schema)
		return false;
	return p->any_structured || (p->structured && t->prepared && t->prepared->object_output);
}

int mcp_tool_check_output(const struct mcp_tool *t, struct str structured, struct err *e)
{
	/* as large as an answer may be, which is more than a client's message */
	const struct json_options o = { .bytes = structured.n + 1,
					.values = structured.n + 1,
					.depth = OUTPUT_DEPTH };
	AUTO(json_free) struct json_doc *d = json_parse(structured, &o, e);
	int rc = d ? schema_check(t->prepared->output, json_root(d), NULL, e) : -1;

	if (rc == 0)
		return 0;
	if (e->code == ERR_INVALID)
		e->code = ERR_BUG;
	return err_wrap(e, "%s gave what its output schema refuses", t->name);
}
