/*
 * Patterns of grants. Two documents of arguments are walked at once; where the pattern names a
 * value its text decides, everywhere else both must be equal. So a pattern frees what it names and
 * nothing else: a member that an operation gets later is not free.
 */
#include "base/glob.h"
#include "json/document/pointer.h"
#include "json/document/write.h"

#include "ask/approval_internal.h"

enum {
	POINTERS_MAX = 32,
	VALUE_MAX = 1 << 20,
	/* Of a pattern's text, and of what it is compared with. */
	GLOB_MAX = 512,
	TEXT_MAX = 64 << 10,
};

/* A string's bytes, of any other value its JSON. */
static bool value_text(const struct json_val *v, struct buf *room, struct str *ret)
{
	struct json_writer w = json_writer(room);
	struct err e;

	if (json_type(v) == JSON_STR) {
		*ret = json_str(v);
		return true;
	}
	json_write_val(&w, v);
	*ret = buf_str(room);
	return json_write_done(&w, &e) == 0;
}

static bool value_equal(const struct json_val *a, const struct json_val *b)
{
	autobuf struct buf ra = BUF_INIT(VALUE_MAX), rb = BUF_INIT(VALUE_MAX);
	struct str x, y;

	return json_type(a) == json_type(b) && value_text(a, &ra, &x) && value_text(b, &rb, &y) &&
	       str_eq(x, y);
}

static bool value_fits(struct str g, const struct json_val *v)
{
	autobuf struct buf room = BUF_INIT(VALUE_MAX);
	struct str s;

	return str_is(g, "*") || (value_text(v, &room, &s) && s.n <= TEXT_MAX && glob_allows(g, s));
}

static const struct json_val *pattern_at(const struct json_val *pattern,
					 const struct json_place *at)
{
	struct json_pointer p = JSON_POINTER_INIT;

	json_pointer_place(&p, at);
	return json_get_str(pattern, (struct str){ p.text, p.n });
}

static bool approval_match_walk(const struct json_val *pattern, const struct json_place *up,
				const struct json_val *a, const struct json_val *b)
{
	const struct json_val *g = pattern_at(pattern, up);
	struct json_iter it = json_iter(a), other = json_iter(b);

	if (g)
		return value_fits(json_str(g), b);
	if (json_type(a) != JSON_OBJECT && json_type(a) != JSON_ARRAY)
		return value_equal(a, b);
	if (json_type(a) != json_type(b) || json_len(a) != json_len(b))
		return false;
	while (json_next(&it)) {
		const struct json_place at = { up, it.key, it.index };
		const struct json_val *to;

		if (json_type(a) == JSON_OBJECT)
			to = json_get_str(b, it.key);
		else
			to = json_next(&other) ? other.val : NULL;
		if (!to || !approval_match_walk(pattern, &at, it.val, to))
			return false;
	}
	return true;
}

/* Texts with equal marks may differ in what redaction left out. */
bool approval_has_mark(struct str arguments)
{
	static const char mark[] = "[REDACTED";

	return memmem(arguments.p, arguments.n, mark, sizeof(mark) - 1) != NULL;
}

bool approval_pattern_fits(struct str pattern, struct str approved, struct str arguments)
{
	static const struct json_place root = { 0 };
	struct err e;
	AUTO(json_free) struct json_doc *g = json_parse(pattern, NULL, &e);
	AUTO(json_free) struct json_doc *a = g ? json_parse(approved, NULL, &e) : NULL;
	AUTO(json_free) struct json_doc *b = a ? json_parse(arguments, NULL, &e) : NULL;

	return b && !approval_has_mark(arguments) &&
	       approval_match_walk(json_root(g), &root, json_root(a), json_root(b));
}

/* ---- what may be one ----------------------------------------------------------------------- */

static bool is_place(const struct json_place *up, const struct json_val *v, struct str pointer)
{
	struct json_pointer p = JSON_POINTER_INIT;
	struct json_iter it = json_iter(v);

	json_pointer_place(&p, up);
	if (str_eq((struct str){ p.text, p.n }, pointer))
		return true;
	while (json_next(&it)) {
		const struct json_place at = { up, it.key, it.index };

		if (is_place(&at, it.val, pointer))
			return true;
	}
	return false;
}

static int check_row(struct str pointer, const struct json_val *g, const struct json_val *a,
		     struct err *e)
{
	static const struct json_place root = { 0 };
	struct json_iter it = json_iter(a);

	if (json_type(g) != JSON_STR)
		return err_set(e, ERR_INVALID, "pattern: \"%.*s\" is %s, not a string",
			       STR_CUT(pointer, 80), json_type_name(json_type(g)));
	if (json_str(g).n > GLOB_MAX)
		return err_set(e, ERR_INVALID, "pattern: \"%.*s\" has more than %d bytes",
			       STR_CUT(pointer, 80), GLOB_MAX);
	/* the root names every argument at once */
	while (json_next(&it)) {
		const struct json_place at = { &root, it.key, it.index };

		if (is_place(&at, it.val, pointer))
			return 0;
	}
	return err_set(e, ERR_INVALID, "pattern: \"%.*s\" is no JSON pointer to an argument",
		       STR_CUT(pointer, 80));
}

int approval_pattern_check(struct str pattern, struct str arguments, struct err *e)
{
	AUTO(json_free) struct json_doc *g = NULL;
	AUTO(json_free) struct json_doc *a = NULL;
	struct json_iter it;

	if (pattern.n > APPROVAL_PATTERN_MAX)
		return err_set(e, ERR_INVALID, "pattern: more than %d bytes", APPROVAL_PATTERN_MAX);
	if (approval_has_mark(arguments))
		return err_set(e, ERR_INVALID,
			       "pattern: a part of the arguments is redacted, so no pattern can be "
			       "compared with them");
	g = json_parse(pattern, NULL, e);
	a = g ? json_parse(arguments, NULL, e) : NULL;
	if (!a)
		return -1;
	if (json_type(json_root(g)) != JSON_OBJECT || json_len(json_root(g)) > POINTERS_MAX)
		return err_set(e, ERR_INVALID, "pattern: not an object of at most %d pointers",
			       POINTERS_MAX);
	it = json_iter(json_root(g));
	while (json_next(&it)) {
		if (check_row(it.key, it.val, json_root(a), e) < 0)
			return -1;
	}
	return 0;
}
