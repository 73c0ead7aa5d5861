/* Declarations of a module's tools, for those who write code that calls them. */
#include "op/module/module.h"

#include "json/document/put.h"

enum { MEMORY = 8 << 20, DEFINITION_MAX = 2 << 20 };

struct json_doc *module_definition(const struct module_tool_view *t, struct err *e)
{
	autobuf struct buf text = BUF_INIT(DEFINITION_MAX);
	struct json_writer w = json_writer(&text);

	json_write_object(&w);
	json_put_str(&w, "description", t->description);
	if (t->input_schema.text.n)
		json_put_raw(&w, "inputSchema", t->input_schema.text);
	if (t->output_schema.text.n)
		json_put_raw(&w, "outputSchema", t->output_schema.text);
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0 ? NULL : json_parse(buf_str(&text), NULL, e);
}

/* Their documents are freed by the caller. */
static int declare_read(const struct module_info *m, struct arena *a, struct json_doc **docs,
			struct declared_tool *shown, size_t *ret, struct err *e)
{
	struct tool_name *names = arena_array(a, m->tools.n, sizeof(*names), e);
	struct str *of = arena_array(a, m->tools.n, sizeof(*of), e);
	size_t n = 0;

	*ret = 0;
	if (!names || !of)
		return -1;
	for (size_t i = 0; i < m->tools.n; i++) {
		if (m->tools.p[i].function.n)
			of[n++] = m->tools.p[i].function;
	}
	/* Names of types are made from those of functions, which stay as they are. */
	if (names_make(m->view.module, of, n, a, names, e) < 0)
		return -1;
	for (size_t i = 0; i < m->tools.n; i++) {
		if (!m->tools.p[i].function.n)
			continue;
		docs[*ret] = module_definition(&m->tools.p[i], e);
		if (!docs[*ret])
			return -1;
		shown[*ret] = (struct declared_tool){ &names[*ret], json_root(docs[*ret]) };
		++*ret;
	}
	return 0;
}

int module_declare(const struct module_info *m, module_declare_fn declare, struct buf *to,
		   struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(MEMORY);
	struct json_doc **docs = a ? arena_array(a, m->tools.n, sizeof(*docs), e) : NULL;
	struct declared_tool *shown = docs ? arena_array(a, m->tools.n, sizeof(*shown), e) : NULL;
	size_t n = 0;
	int rc;

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (!shown)
		return -1;
	rc = declare_read(m, a, docs, shown, &n, e);
	if (rc == 0)
		rc = declare(to, m->view.module, shown, n, e);
	for (size_t i = 0; i < n; i++)
		json_free(docs[i]);
	return rc;
}
