/* Assertions: keywords that check a value without subschemas. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "json/schema/internal.h"
#include "json/document/utf8.h"

static const char *types_text(unsigned types, char *text, size_t n)
{
	static const struct {
		unsigned is;
		const char *name;
	} names[] = {
		{ SCHEMA_TYPE(JSON_INT) | SCHEMA_TYPE(JSON_REAL), "a number" },
		{ SCHEMA_TYPE(JSON_INT) | SCHEMA_WHOLE, "an integer" },
		{ SCHEMA_TYPE(JSON_STR), "a string" },
		{ SCHEMA_TYPE(JSON_BOOL), "a boolean" },
		{ SCHEMA_TYPE(JSON_OBJECT), "an object" },
		{ SCHEMA_TYPE(JSON_ARRAY), "an array" },
		{ SCHEMA_TYPE(JSON_NULL), "null" },
	};
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if ((types & names[i].is) != names[i].is)
			continue;
		types &= ~names[i].is;
		at += (size_t)snprintf(text + at, n - at, "%s%s", at ? " or " : "", names[i].name);
	}
	return text;
}

static bool check_type(struct schema_run *r, const struct schema_frame *f)
{
	unsigned is = SCHEMA_TYPE(f->type);
	char text[96];

	if (!f->n->types)
		return true;
	if (f->type == JSON_REAL && json_real(f->v) == trunc(json_real(f->v)))
		is |= SCHEMA_WHOLE;
	if (f->n->types & is)
		return true;
	return schema_fault(r, f, "type", "is %s, not %s", json_type_name(f->type),
			    types_text(f->n->types, text, sizeof(text)));
}

static bool check_enum(struct schema_run *r, const struct schema_frame *f)
{
	struct json_iter it = json_iter(f->n->enum_);
	bool is = !f->n->const_ || schema_equal(f->v, f->n->const_, &r->steps);

	if (!is && schema_spend(r, 1))
		return schema_fault(r, f, "const", "is not the one value that is allowed");
	while (json_next(&it)) {
		if (schema_equal(f->v, it.val, &r->steps))
			return true;
	}
	if (!f->n->enum_ || !schema_spend(r, 1))
		return !r->broken;
	return schema_fault(r, f, "enum", "is none of the %zu allowed values",
			    json_len(f->n->enum_));
}

static bool check_number(struct schema_run *r, const struct schema_frame *f)
{
	const struct schema_node *n = f->n;

	if (n->minimum && schema_order(f->v, n->minimum) < 0)
		return schema_fault(r, f, "minimum", "is less than %.17g", json_real(n->minimum));
	if (n->exclusive_minimum && schema_order(f->v, n->exclusive_minimum) <= 0)
		return schema_fault(r, f, "exclusiveMinimum", "is not more than %.17g",
				    json_real(n->exclusive_minimum));
	if (n->maximum && schema_order(f->v, n->maximum) > 0)
		return schema_fault(r, f, "maximum", "is more than %.17g", json_real(n->maximum));
	if (n->exclusive_maximum && schema_order(f->v, n->exclusive_maximum) >= 0)
		return schema_fault(r, f, "exclusiveMaximum", "is not less than %.17g",
				    json_real(n->exclusive_maximum));
	if (n->multiple_of && !schema_multiple(f->v, n->multiple_of))
		return schema_fault(r, f, "multipleOf", "is not a multiple of %.17g",
				    json_real(n->multiple_of));
	return true;
}

static bool check_counts(struct schema_run *r, const struct schema_frame *f, size_t count,
			 const struct schema_count *min, const struct schema_count *max,
			 const char *min_keyword, const char *max_keyword, const char *what)
{
	if (min->is && count < min->n)
		return schema_fault(r, f, min_keyword, "has fewer than %" PRIu64 " %s", min->n,
				    what);
	if (max->is && count > max->n)
		return schema_fault(r, f, max_keyword, "has more than %" PRIu64 " %s", max->n,
				    what);
	return true;
}

static bool check_string(struct schema_run *r, const struct schema_frame *f)
{
	const struct schema_node *n = f->n;
	struct str s = json_str(f->v);

	if ((n->min_length.is || n->max_length.is) &&
	    (!schema_spend(r, s.n / 256) ||
	     !check_counts(r, f, utf8_count(s), &n->min_length, &n->max_length, "minLength",
			   "maxLength", "characters")))
		return false;
	if (n->pattern && !schema_matches(r, n->pattern, s))
		return schema_fault(r, f, "pattern", "does not match the pattern");
	if (n->format && schema_spend(r, s.n / 64) && !n->format->is(s))
		return schema_fault(r, f, "format", "is not of the format %s", n->format->name);
	return !r->broken;
}

static bool check_array(struct schema_run *r, const struct schema_frame *f)
{
	size_t at[2];
	int repeats;

	if (!check_counts(r, f, json_len(f->v), &f->n->min_items, &f->n->max_items, "minItems",
			  "maxItems", "items"))
		return false;
	if (!f->n->unique_items || json_len(f->v) < 2)
		return true;
	repeats = r->broken ? -1 : schema_repeats(f->v, at, &r->steps, r->e);
	if (repeats < 0) {
		r->broken = true;
		return false;
	}
	if (repeats == 0)
		return schema_spend(r, 1);
	return schema_fault(r, f, "uniqueItems", "has the same item at %zu and %zu", at[0], at[1]);
}

/* names: an array of strings */
static bool check_required(struct schema_run *r, const struct schema_frame *f, const char *keyword,
			   const struct json_val *names)
{
	struct json_iter it = json_iter(names);
	struct str name;
	bool ok = true;

	while (json_next(&it) && (ok || schema_goes_on(r))) {
		name = json_str(it.val);
		if (!schema_spend(r, 1 + json_len(f->v) / 16))
			return false;
		if (!json_get_str(f->v, name))
			ok = schema_fault(r, f, keyword, "lacks \"%.*s\"",
					  (int)(name.n < 80 ? name.n : 80), name.p);
	}
	return ok;
}

static bool check_dependent(struct schema_run *r, const struct schema_frame *f, const char *keyword,
			    const struct json_val *all)
{
	struct json_iter it = json_iter(all);

	while (json_next(&it)) {
		if (!schema_spend(r, 1 + json_len(f->v) / 16))
			return false;
		if (json_type(it.val) == JSON_ARRAY && json_get_str(f->v, it.key) &&
		    !check_required(r, f, keyword, it.val))
			return false;
	}
	return true;
}

static bool check_object(struct schema_run *r, const struct schema_frame *f)
{
	const struct schema_node *n = f->n;

	return check_counts(r, f, json_len(f->v), &n->min_properties, &n->max_properties,
			    "minProperties", "maxProperties", "members") &&
	       check_required(r, f, "required", n->required) &&
	       check_dependent(r, f, "dependentRequired", n->dependent_required) &&
	       check_dependent(r, f, "dependencies", n->dependencies);
}

bool schema_assert(struct schema_run *r, const struct schema_frame *f)
{
	if (!check_type(r, f) || !check_enum(r, f))
		return false;
	switch (f->type) {
	case JSON_INT:
	case JSON_REAL:
		return check_number(r, f);
	case JSON_STR:
		return check_string(r, f);
	case JSON_ARRAY:
		return check_array(r, f);
	case JSON_OBJECT:
		return check_object(r, f);
	default:
		return true;
	}
}
