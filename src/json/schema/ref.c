/*
 * Passes 2 and 3. A reference is resolved against the URI of the schema that contains it, and must
 * name a resource in the same document. A JSON pointer may lead to a place that belongs to no
 * keyword; that place is then read as a schema, and its own references are resolved in the same
 * pass.
 */
#include "json/schema/internal.h"

struct schema_anchor *schema_anchor(const struct schema *s, const struct schema_resource *in,
				    struct str name)
{
	for (struct schema_anchor *a = s->anchors; a; a = a->next) {
		if (a->resource == in && str_eq(a->name, name))
			return a;
	}
	return NULL;
}

static int ref_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %41 to A, in place. */
static size_t percent_decode(char *p, size_t n)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++, out++) {
		if (p[i] == '%' && n - i > 2 && ref_digit(p[i + 1]) >= 0 &&
		    ref_digit(p[i + 2]) >= 0) {
			p[out] = (char)(ref_digit(p[i + 1]) * 16 + ref_digit(p[i + 2]));
			i += 2;
		} else {
			p[out] = p[i];
		}
	}
	return out;
}

/* Decodes ~1 to / and ~0 to ~, in place. */
static size_t token_decode(char *p, size_t n)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++, out++) {
		p[out] = p[i];
		if (p[i] == '~' && i + 1 < n && (p[i + 1] == '0' || p[i + 1] == '1'))
			p[out] = p[++i] == '0' ? '~' : '/';
	}
	return out;
}

static const struct json_val *element(const struct json_val *v, struct str token)
{
	struct json_iter it = json_iter(v);
	size_t index = 0;

	if (token.n == 0 || token.n > 9 || (token.n > 1 && token.p[0] == '0'))
		return NULL;
	for (size_t i = 0; i < token.n; i++) {
		if (token.p[i] < '0' || token.p[i] > '9')
			return NULL;
		index = index * 10 + (size_t)(token.p[i] - '0');
	}
	while (json_next(&it)) {
		if (it.index == index)
			return it.val;
	}
	return NULL;
}

/* Overwrites p. */
static const struct json_val *ref_walk(const struct json_val *v, char *p, size_t n)
{
	for (size_t i = 0, end; v && i < n; i = end) {
		struct str token = { p + i + 1, 0 };

		for (end = i + 1; end < n && p[end] != '/'; end++) {
		}
		token.n = token_decode(p + i + 1, end - i - 1);
		v = json_type(v) == JSON_ARRAY ? element(v, token) : json_get_str(v, token);
	}
	return v;
}

static struct schema_node *by_pointer(struct schema *s, struct schema_resource *in,
				      struct str fragment, struct err *e)
{
	struct schema_node at = { .up = in->root, .key = fragment, .index = SCHEMA_NO_INDEX };
	const struct json_val *v;
	char *p = arena_dup(s->arena, fragment, e);

	if (!p)
		return NULL;
	v = ref_walk(in->root->v, p, percent_decode(p, fragment.n));
	if (!v)
		return err_set(e, ERR_INVALID, "leads to nothing"), NULL;
	for (struct schema_node *n = s->nodes; n; n = n->next) {
		if (n->v == v)
			return n;
	}
	return schema_read(s, v, &at, in, e);
}

static struct schema_node *by_name(struct schema *s, struct schema_resource *in,
				   struct str fragment, struct str *ret_dynamic, struct err *e)
{
	char *p = arena_dup(s->arena, fragment, e);
	struct schema_anchor *a;

	if (!p)
		return NULL;
	a = schema_anchor(s, in, (struct str){ p, percent_decode(p, fragment.n) });
	if (!a)
		return err_set(e, ERR_INVALID, "leads to nothing"), NULL;
	if (a->dynamic)
		*ret_dynamic = a->name;
	return a->node;
}

static struct schema_node *target(struct schema *s, const struct schema_node *from, struct str ref,
				  struct str *ret_dynamic, struct err *e)
{
	struct schema_resource *r;
	struct str uri, fragment;

	if (schema_uri(s->arena, from->resource->uri, ref, &uri, &fragment, e) < 0)
		return NULL;
	for (r = s->resources; r && !str_eq(r->uri, uri); r = r->next) {
	}
	if (!r) {
		err_set(e, ERR_INVALID, "leads out of the document, and nothing is fetched");
		return NULL;
	}
	if (fragment.n == 0)
		return r->root;
	return fragment.p[0] == '/' ? by_pointer(s, r, fragment, e)
				    : by_name(s, r, fragment, ret_dynamic, e);
}

int schema_resolve(struct schema *s, struct err *e)
{
	struct str ignored;

	for (struct schema_node *n = s->nodes; n; n = n->next) {
		if (n->ref_text) {
			n->ref = target(s, n, json_str(n->ref_text), &ignored, e);
			if (!n->ref)
				return schema_refuse(n, "$ref", e);
		}
		if (n->dynamic_ref_text) {
			n->dynamic_ref = target(s, n, json_str(n->dynamic_ref_text),
						&n->dynamic_name, e);
			if (!n->dynamic_ref)
				return schema_refuse(n, "$dynamicRef", e);
		}
	}
	return 0;
}

/* --- loops ------------------------------------------------------------------------------- */

static int ref_search(struct schema_node *n, struct err *e);

static int search_list(const struct schema_list *l, struct err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		if (ref_search(l->p[i].node, e) < 0)
			return -1;
	}
	return 0;
}

/* Follows everything that is applied to the same value; a cycle would never end. The target of a
 * $dynamicRef is known only during a check, whose depth is bounded. */
static int ref_search(struct schema_node *n, struct err *e)
{
	if (!n || n->search == SCHEMA_DONE)
		return 0;
	if (n->search == SCHEMA_OPEN) {
		err_set(e, ERR_INVALID, "a reference leads back to where it came from");
		return schema_refuse(n, NULL, e);
	}
	n->search = SCHEMA_OPEN;
	if (ref_search(n->ref, e) < 0 ||
	    ref_search(n->dynamic_name.p ? NULL : n->dynamic_ref, e) < 0 ||
	    ref_search(n->not_, e) < 0 || ref_search(n->if_, e) < 0 ||
	    ref_search(n->then_, e) < 0 || ref_search(n->else_, e) < 0 ||
	    search_list(&n->all_of, e) < 0 || search_list(&n->any_of, e) < 0 ||
	    search_list(&n->one_of, e) < 0 || search_list(&n->dependent_schemas, e) < 0)
		return -1;
	n->search = SCHEMA_DONE;
	return 0;
}

int schema_loops(struct schema *s, struct err *e)
{
	for (struct schema_node *n = s->nodes; n; n = n->next) {
		if (ref_search(n, e) < 0)
			return -1;
	}
	return 0;
}
