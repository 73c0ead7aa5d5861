/*
 * JavaScript modules that clients have registered (op/code/register.c), as module.list, module.info
 * and module.search show them: one is a module that is always there, each export a tool of it.
 */
#include "op/module/module.h"
#include "store/store.h"

struct taking {
	struct call *call;
	bool source;
	struct registered *p;
	size_t n;
};

static int taking_text(struct taking *t, struct str from, struct str *ret, struct err *e)
{
	*ret = (struct str){ arena_dup(call_arena(t->call), from, e), from.n };
	return ret->p ? 0 : -1;
}

static int taking_exports(struct taking *t, struct str json, struct registered *r, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(json, NULL, e);
	struct json_iter it = json_iter(json_root(doc));
	struct str *p = arena_array(call_arena(t->call), json_len(json_root(doc)), sizeof(*p), e);

	if (!doc || !p)
		return -1;
	for (r->exports = p; json_next(&it); r->n_exports++) {
		if (taking_text(t, json_str(it.val), &p[it.index], e) < 0)
			return -1;
	}
	return 0;
}

static int taking_row(void *arg, const struct store_code *row, struct err *e)
{
	struct taking *t = arg;
	autobuf struct buf name = BUF_INIT(MODULE_NAME_MAX);
	struct registered *r = &t->p[t->n];

	if (t->n == REGISTERED_MAX)
		return 0;
	*r = (struct registered){ .n_exports = 0 };
	if (buf_addf(&name, e, MODULE_REGISTERED "%.*s", STR_ARG(row->name)) < 0 ||
	    taking_text(t, buf_str(&name), &r->name, e) < 0 ||
	    taking_text(t, row->description, &r->description, e) < 0 ||
	    (t->source && taking_text(t, row->source, &r->source, e) < 0) ||
	    taking_exports(t, row->exports, r, e) < 0)
		return -1;
	t->n++;
	return 0;
}

static int taking_start(struct taking *t, struct str name, struct err *e)
{
	struct store *s = call_store(t->call);

	t->p = arena_array(call_arena(t->call), REGISTERED_MAX, sizeof(*t->p), e);
	if (!t->p)
		return -1;
	return s ? store_codes(s, call_owner(t->call), name, taking_row, t, e) : 0;
}

int registered_all(struct call *c, struct registered **ret, size_t *ret_n, struct err *e)
{
	struct taking t = { .call = c };

	if (taking_start(&t, STR_NONE, e) < 0)
		return -1;
	*ret = t.p;
	*ret_n = t.n;
	return 0;
}

int registered_one(struct call *c, struct str name, struct registered *ret, struct err *e)
{
	struct taking t = { .call = c, .source = true };
	size_t prefix = strlen(MODULE_REGISTERED);

	if (taking_start(&t, (struct str){ name.p + prefix, name.n - prefix }, e) < 0)
		return -1;
	if (t.n == 0)
		return err_set(e, ERR_MODULE_NOT_FOUND, "no module \"%.*s\" is registered",
			       STR_CUT(name, MODULE_NAME_MAX));
	*ret = t.p[0];
	return 0;
}

void registered_view(const struct registered *r, struct module_view *ret)
{
	*ret = (struct module_view){
		.module = r->name,
		.transport = STR_LIT("code"),
		.state = UPSTREAM_IDLE,
		.approved = true,
		.sandboxed = true,
		.has_tools = true,
		.tools = (uint32_t)r->n_exports,
	};
}

/* Holt's own are shown like registered ones. */
int registered_own(struct call *c, struct str name, struct module_info *ret, struct err *e)
{
	static const struct str parallel = STR_LIT("parallel"), result = STR_LIT("result");
	static const struct registered holt = {
		.name = STR_LIT(MODULE_HOLT),
		.description = STR_LIT("calls functions of modules at once"),
		.source = STR_LIT(
			"// functions, or pairs of a function and its argument; their results\n"
			"export function parallel(calls: "
			"((() => any) | [Function, object])[]): any[];"),
		.exports = &parallel,
		.n_exports = 1,
	};
	static const struct registered results = {
		.name = STR_LIT(MODULE_HOLT_RESULT),
		.description = STR_LIT("reads results that were too large for their call"),
		.source = STR_LIT("export function result(a: { result: string; offset?: number; "
				  "limit?: number }): { text: string; "
				  "data: { bytes: number; next?: number } };"),
		.exports = &result,
		.n_exports = 1,
	};

	return registered_info(c, str_is(name, MODULE_HOLT) ? &holt : &results, ret, e);
}

int registered_info(struct call *c, const struct registered *r, struct module_info *ret,
		    struct err *e)
{
	struct module_tool_view *p = arena_array(call_arena(c), r->n_exports, sizeof(*p), e);

	if (!p)
		return -1;
	for (size_t i = 0; i < r->n_exports; i++)
		p[i] = (struct module_tool_view){ .name = r->exports[i],
						  .function = r->exports[i],
						  .description = STR_LIT(""),
						  .pin = UPSTREAM_PIN_APPROVED,
						  .approval = CONFIG_ALLOW };
	*ret = (struct module_info){ .description = r->description,
				     .source = r->source,
				     .tools = { p, r->n_exports } };
	registered_view(r, &ret->view);
	return 0;
}
