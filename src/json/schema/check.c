/*
 * Checks a value against a node, walking both at once. The place in the value is a chain on the
 * stack; it is written out only for a fault. Two more chains accompany the walk:
 *
 * - the dynamic scope: the resources that the check has entered, for $dynamicRef;
 * - marks: which members or elements of the value a subschema has evaluated. They are kept only if
 *   an unevaluated* keyword needs them. A subschema that may fail without failing its parent
 *   (anyOf, if…) gets marks of its own, which are merged when it succeeds.
 *
 * A failure is recorded unless it does not matter at that place. The check continues after it as
 * long as the caller wants more faults.
 */
#include <stdarg.h>
#include <stdio.h>

#include "json/schema/internal.h"

struct scope {
	const struct scope *up;
	const struct schema_resource *in;
};

struct marks {
	uint64_t few[2];
	uint64_t *bits; /* points to few, or to the heap */
	size_t words;
};

/* schema_frame, and what only this file needs. */
struct frame {
	struct schema_frame f;
	const struct scope *scope;
	struct marks *marks; /* NULL: no keyword needs them */
};

static bool eval(struct schema_run *r, const struct schema_node *n, const struct json_val *v,
		 const struct json_place *place, const struct scope *scope, struct marks *marks);

/* --- budget and faults ------------------------------------------------------------------- */

bool schema_spend(struct schema_run *r, uint64_t n)
{
	if (r->broken)
		return false;
	if (r->steps > n) {
		r->steps -= n;
		return true;
	}
	r->broken = true;
	err_set(r->e, ERR_TOO_LARGE, "checking it against its schema takes too many steps");
	return false;
}

bool schema_goes_on(const struct schema_run *r)
{
	return !r->broken && !r->trial && r->faults->n < r->faults->max;
}

bool schema_fault(struct schema_run *r, const struct schema_frame *f, const char *keyword,
		  const char *says, ...)
{
	struct json_pointer instance = JSON_POINTER_INIT, schema = JSON_POINTER_INIT;
	struct schema_fault *fault;
	va_list args;

	if (!schema_goes_on(r))
		return false;
	fault = &r->faults->p[r->faults->n++];
	json_pointer_place(&instance, f->place);
	schema_place(f->n, &schema);
	if (keyword)
		json_pointer_key(&schema, str_of(keyword));
	strcpy(fault->instance, instance.text);
	strcpy(fault->keyword, schema.text);
	va_start(args, says);
	vsnprintf(fault->says, sizeof(fault->says), says, args);
	va_end(args);
	return false;
}

bool schema_matches(struct schema_run *r, const struct regex *re, struct str text)
{
	int n = schema_spend(r, 2) ? regex_search(re, text, &r->steps, r->e) : -1;

	if (n < 0)
		r->broken = true;
	return n > 0;
}

/* --- marks ------------------------------------------------------------------------------- */

static void marks_fini(struct marks *m)
{
	if (m->bits != m->few)
		free(m->bits);
}

static bool marks_init(struct schema_run *r, struct marks *m, size_t n)
{
	m->words = (n + 63) / 64;
	m->bits = m->few;
	if (m->words <= ARRAY_LEN(m->few) || !schema_spend(r, m->words))
		return !r->broken;
	m->bits = calloc(m->words, sizeof(*m->bits));
	if (m->bits)
		return true;
	m->bits = m->few;
	r->broken = true;
	err_set(r->e, ERR_LIMIT, "out of memory");
	return false;
}

static void check_mark(struct marks *m, size_t i)
{
	if (m)
		m->bits[i / 64] |= 1ull << (i % 64);
}

static bool marked(const struct marks *m, size_t i)
{
	return m->bits[i / 64] >> (i % 64) & 1;
}

static void merge(struct marks *to, const struct marks *from)
{
	for (size_t i = 0; to && i < from->words; i++)
		to->bits[i] |= from->bits[i];
}

/* --- applied to the same value ----------------------------------------------------------- */

static bool check_apply(struct schema_run *r, const struct frame *f, const struct schema_node *n)
{
	return !n || eval(r, n, f->f.v, f->f.place, f->scope, f->marks);
}

/* Whether the value would be valid; looks: its evaluations count if it is. */
static bool would(struct schema_run *r, const struct frame *f, const struct schema_node *n,
		  bool looks)
{
	__attribute__((cleanup(marks_fini))) struct marks own = { .bits = own.few };
	bool asked = looks && f->marks, ok;

	if (asked && !marks_init(r, &own, json_len(f->f.v)))
		return false;
	r->trial++;
	ok = eval(r, n, f->f.v, f->f.place, f->scope, asked ? &own : NULL);
	r->trial--;
	if (ok && asked)
		merge(f->marks, &own);
	return ok;
}

static bool check_all_of(struct schema_run *r, const struct frame *f)
{
	bool ok = true;

	for (size_t i = 0; i < f->f.n->all_of.n && (ok || schema_goes_on(r)); i++)
		ok = check_apply(r, f, f->f.n->all_of.p[i].node) && ok;
	return ok;
}

static bool check_any_of(struct schema_run *r, const struct frame *f)
{
	const struct schema_list *l = &f->f.n->any_of;
	bool any = l->n == 0;

	for (size_t i = 0; i < l->n && (!any || f->marks); i++)
		any = would(r, f, l->p[i].node, true) || any;
	return any || schema_fault(r, &f->f, "anyOf", "is none of the %zu alternatives", l->n);
}

static bool check_one_of(struct schema_run *r, const struct frame *f)
{
	const struct schema_list *l = &f->f.n->one_of;
	size_t first = l->n;

	for (size_t i = 0; i < l->n; i++) {
		if (!would(r, f, l->p[i].node, true))
			continue;
		if (first < l->n)
			return schema_fault(r, &f->f, "oneOf",
					    "is both of the alternatives %zu and %zu", first, i);
		first = i;
	}
	return first < l->n || l->n == 0 ||
	       schema_fault(r, &f->f, "oneOf", "is none of the %zu alternatives", l->n);
}

static bool check_condition(struct schema_run *r, const struct frame *f)
{
	const struct schema_node *n = f->f.n;

	if (!n->if_ || (!n->then_ && !n->else_ && !f->marks))
		return true;
	return check_apply(r, f, would(r, f, n->if_, true) ? n->then_ : n->else_);
}

static bool check_dependent(struct schema_run *r, const struct frame *f)
{
	const struct schema_list *l = &f->f.n->dependent_schemas;
	bool ok = true;

	for (size_t i = 0; i < l->n && (ok || schema_goes_on(r)); i++) {
		if (!schema_spend(r, 1 + json_len(f->f.v) / 16))
			return false;
		if (json_get_str(f->f.v, l->p[i].key))
			ok = check_apply(r, f, l->p[i].node) && ok;
	}
	return ok;
}

/* The outermost resource of the scope that has this anchor decides. */
static bool check_dynamic_ref(struct schema_run *r, const struct frame *f)
{
	const struct schema_node *to = f->f.n->dynamic_ref;

	for (const struct scope *s = f->scope; s && f->f.n->dynamic_name.p; s = s->up) {
		struct schema_anchor *a = schema_anchor(r->s, s->in, f->f.n->dynamic_name);

		if (!schema_spend(r, 1))
			return false;
		if (a && a->dynamic)
			to = a->node;
	}
	return check_apply(r, f, to);
}

static bool check_same(struct schema_run *r, const struct frame *f)
{
	const struct schema_node *n = f->f.n;

	if (!check_apply(r, f, n->ref) || !check_dynamic_ref(r, f) || !check_all_of(r, f))
		return false;
	if (n->not_ && would(r, f, n->not_, false))
		return schema_fault(r, &f->f, "not", "is what is not allowed");
	return !r->broken && check_any_of(r, f) && check_one_of(r, f) && check_condition(r, f) &&
	       check_dependent(r, f);
}

/* --- applied to what is in the value ----------------------------------------------------- */

static const struct schema_node *property(const struct schema_list *l, struct str key)
{
	size_t from = 0, to = l->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int order = schema_compare(key, l->p[middle].key);

		if (order == 0)
			return l->p[middle].node;
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return NULL;
}

static bool check_member(struct schema_run *r, const struct frame *f, const struct json_iter *it)
{
	struct json_place place = { .up = f->f.place, .key = it->key };
	const struct schema_node *n = f->f.n, *p = property(&n->properties, it->key);
	bool ok = !p || eval(r, p, it->val, &place, f->scope, NULL), known = p;

	for (size_t i = 0; i < n->patterns.n && (ok || schema_goes_on(r)); i++) {
		if (!schema_matches(r, n->patterns.p[i].regex, it->key))
			continue;
		known = true;
		ok = eval(r, n->patterns.p[i].node, it->val, &place, f->scope, NULL) && ok;
	}
	if (!known && n->additional) {
		known = true;
		ok = eval(r, n->additional, it->val, &place, f->scope, NULL);
	}
	if (known)
		check_mark(f->marks, it->index);
	if (n->names && (ok || schema_goes_on(r)))
		ok = eval(r, n->names, it->name, &place, f->scope, NULL) && ok;
	return ok;
}

static bool check_members(struct schema_run *r, const struct frame *f)
{
	const struct schema_node *n = f->f.n;
	struct json_iter it = json_iter(f->f.v);
	bool ok = true;

	if (!n->properties.n && !n->patterns.n && !n->additional && !n->names)
		return true;
	while ((ok || schema_goes_on(r)) && json_next(&it))
		ok = schema_spend(r, 1) && check_member(r, f, &it) && ok;
	return ok;
}

static bool check_contains(struct schema_run *r, const struct frame *f)
{
	const struct schema_node *n = f->f.n;
	uint64_t min = n->min_contains.is ? n->min_contains.n : 1, found = 0;
	struct json_iter it = json_iter(f->f.v);

	if (!n->contains)
		return true;
	r->trial++;
	while (!r->broken && json_next(&it)) {
		struct json_place place = { .up = f->f.place, .index = it.index };

		if (!eval(r, n->contains, it.val, &place, f->scope, NULL))
			continue;
		found++;
		check_mark(f->marks, it.index);
	}
	r->trial--;
	if (found < min)
		return schema_fault(r, &f->f, min == 1 ? "contains" : "minContains",
				    "has %zu of the items that it needs", (size_t)found);
	if (n->max_contains.is && found > n->max_contains.n)
		return schema_fault(r, &f->f, "maxContains",
				    "has %zu of the items that are counted", (size_t)found);
	return !r->broken;
}

static bool check_elements(struct schema_run *r, const struct frame *f)
{
	const struct schema_node *n = f->f.n;
	struct json_iter it = json_iter(f->f.v);
	bool ok = true;

	if (!n->items && !n->prefix.n)
		return check_contains(r, f);
	while ((ok || schema_goes_on(r)) && json_next(&it)) {
		struct json_place place = { .up = f->f.place, .index = it.index };
		const struct schema_node *to = it.index < n->prefix.n ? n->prefix.p[it.index].node
								      : n->items;

		if (!to)
			break;
		check_mark(f->marks, it.index);
		ok = eval(r, to, it.val, &place, f->scope, NULL) && ok;
	}
	return (ok || schema_goes_on(r)) && check_contains(r, f) && ok;
}

/* Applies n to all that no subschema has evaluated. */
static bool check_unevaluated(struct schema_run *r, const struct frame *f,
			      const struct schema_node *n)
{
	struct json_iter it = json_iter(f->f.v);
	bool ok = true;

	while ((ok || schema_goes_on(r)) && json_next(&it)) {
		struct json_place place = { .up = f->f.place, .key = it.key, .index = it.index };

		if (marked(f->marks, it.index))
			continue;
		check_mark(f->marks, it.index);
		ok = eval(r, n, it.val, &place, f->scope, NULL) && ok;
	}
	return ok;
}

/* --- a node ------------------------------------------------------------------------------ */

static bool eval_parts(struct schema_run *r, struct frame *f)
{
	bool ok = schema_assert(r, &f->f);

	if (f->f.type == JSON_OBJECT && (ok || schema_goes_on(r)))
		ok = check_members(r, f) && ok;
	else if (f->f.type == JSON_ARRAY && (ok || schema_goes_on(r)))
		ok = check_elements(r, f) && ok;
	if (ok || schema_goes_on(r))
		ok = check_same(r, f) && ok;
	return ok;
}

/* Uses marks of its own, since its unevaluated* must not see what keywords beside the node
 * evaluated. */
static bool eval_unevaluated(struct schema_run *r, struct frame *f, const struct schema_node *rest)
{
	__attribute__((cleanup(marks_fini))) struct marks own = { .bits = own.few };
	struct marks *outer = f->marks;
	bool ok = marks_init(r, &own, json_len(f->f.v));

	f->marks = &own;
	ok = ok && eval_parts(r, f) && check_unevaluated(r, f, rest);
	if (ok)
		merge(outer, &own);
	return ok;
}

static const struct schema_node *unevaluated(const struct frame *f)
{
	if (f->f.type == JSON_OBJECT)
		return f->f.n->unevaluated_properties;
	return f->f.type == JSON_ARRAY ? f->f.n->unevaluated_items : NULL;
}

static bool eval(struct schema_run *r, const struct schema_node *n, const struct json_val *v,
		 const struct json_place *place, const struct scope *scope, struct marks *marks)
{
	const struct scope here = { scope, n->resource };
	struct frame f = { { n, v, place, json_type(v) }, scope, marks };
	bool ok;

	if (!schema_spend(r, 1))
		return false;
	if (n->never)
		return schema_fault(r, &f.f, NULL, "is not allowed");
	if (r->depth == r->s->options.depth) {
		r->broken = true;
		err_set(r->e, ERR_TOO_LARGE,
			"checking it needs more than %u schemas inside each other", r->depth);
		return false;
	}
	if (!scope || scope->in != n->resource)
		f.scope = &here;
	r->depth++;
	ok = unevaluated(&f) ? eval_unevaluated(r, &f, unevaluated(&f)) : eval_parts(r, &f);
	r->depth--;
	return ok && !r->broken;
}

int schema_check(const struct schema *s, const struct json_val *v, struct schema_faults *ret,
		 struct err *e)
{
	const struct json_place root = { .up = NULL };
	struct schema_fault one;
	struct schema_faults faults = { .p = &one, .max = 1 };
	struct schema_run r = { .s = s, .steps = s->options.steps, .e = e };

	r.faults = ret && ret->max > 0 ? ret : &faults;
	r.faults->n = 0;
	if (!v)
		return err_set(e, ERR_INVALID, "there is no value");
	if (eval(&r, s->root, v, &root, NULL, NULL))
		return 0;
	if (r.broken)
		return -1;
	return err_set(e, ERR_INVALID, "%s%s%s (schema: %s)",
		       r.faults->p->instance[0] ? r.faults->p->instance : "the value",
		       r.faults->p->instance[0] ? ": " : " ", r.faults->p->says,
		       r.faults->p->keyword[0] ? r.faults->p->keyword : "false");
}
