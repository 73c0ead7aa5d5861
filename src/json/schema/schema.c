#include "json/schema/schema.h"

#include "json/schema/internal.h"

enum {
	ARENA_MAX = 16 << 20,
	SUBSCHEMAS = 4096,
	SUBSCHEMAS_HARD = 8192, /* the search for loops recurses to this depth */
	DEPTH = 256,
	DEPTH_HARD = 1024, /* a check recurses to this depth */
	STEPS = 4000000,
};

static struct schema_options filled(const struct schema_options *o)
{
	struct schema_options f = o ? *o : (struct schema_options){ .depth = 0 };

	f.subschemas = f.subschemas ? f.subschemas : SUBSCHEMAS;
	if (f.subschemas > SUBSCHEMAS_HARD)
		f.subschemas = SUBSCHEMAS_HARD;
	f.depth = f.depth ? f.depth : DEPTH;
	if (f.depth > DEPTH_HARD)
		f.depth = DEPTH_HARD;
	f.steps = f.steps ? f.steps : STEPS;
	return f;
}

struct schema *schema_new(const struct json_val *v, const struct schema_options *o, struct err *e)
{
	const struct schema_node at = { .index = SCHEMA_NO_INDEX };
	AUTO(schema_free) struct schema *s = calloc(1, sizeof(*s));

	if (s)
		s->arena = arena_new(ARENA_MAX);
	if (!s || !s->arena)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	s->options = filled(o);
	s->nodes_end = &s->nodes;
	s->root = schema_read(s, v, &at, NULL, e);
	if (!s->root || schema_resolve(s, e) < 0 || schema_loops(s, e) < 0)
		return NULL;
	return take_ptr(s);
}

struct schema *schema_parse(struct str text, const struct schema_options *o, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(text, NULL, e);
	struct schema *s;

	if (!doc)
		return NULL;
	s = schema_new(json_root(doc), o, e);
	if (s)
		s->doc = take_ptr(doc);
	return s;
}

void schema_free(struct schema *s)
{
	if (!s)
		return;
	for (struct schema_node *n = s->nodes; n; n = n->next) {
		regex_free(n->pattern);
		for (size_t i = 0; i < n->patterns.n; i++)
			regex_free(n->patterns.p[i].regex);
	}
	arena_free(s->arena);
	json_free(s->doc);
	free(s);
}
