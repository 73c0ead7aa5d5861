#include "config/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 80 };

static bool variable_is_name(struct str s, const char *more, bool digit_first)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		bool digit = c >= '0' && c <= '9';

		if (!letter && !(digit && (i > 0 || digit_first)) && !(i > 0 && strchr(more, c)))
			return false;
	}
	return s.n > 0 && s.n <= CONFIG_VARIABLE_MAX;
}

/* Reads the text between the braces. */
static int variable_read(struct str in, struct config_part *ret, struct err *e)
{
	static const struct {
		const char *prefix, *more;
		enum config_part_kind kind;
	} kinds[] = {
		{ "env:", "", CONFIG_PART_ENV },
		{ "input:", ".-", CONFIG_PART_INPUT },
		{ "secret:", ".-", CONFIG_PART_SECRET },
		{ "", "", CONFIG_PART_ENV },
	};
	struct config_part part = { .otherwise = STR_NONE };
	const char *end;
	size_t k = 0;

	while (!str_starts(in, kinds[k].prefix))
		k++;
	part.kind = kinds[k].kind;
	part.text = (struct str){ in.p + strlen(kinds[k].prefix), in.n - strlen(kinds[k].prefix) };
	end = part.kind == CONFIG_PART_ENV && part.text.n
		    ? memmem(part.text.p, part.text.n, ":-", 2)
		    : NULL;
	if (end) {
		part.otherwise = (struct str){ end + 2, in.n - (size_t)(end + 2 - in.p) };
		part.text.n = (size_t)(end - part.text.p);
	}
	if (!variable_is_name(part.text, kinds[k].more, part.kind != CONFIG_PART_ENV))
		return err_set(e, ERR_INVALID,
			       "${%.*s} is no variable: write ${NAME}, ${NAME:-default}, "
			       "${input:ID}, ${secret:NAME}, or $${ for the two characters",
			       STR_CUT(in, SHOWN_MAX));
	if (part.otherwise.n && memmem(part.otherwise.p, part.otherwise.n, "${", 2))
		return err_set(e, ERR_INVALID, "the default of ${%.*s} has a variable in it",
			       STR_CUT(part.text, SHOWN_MAX));
	*ret = part;
	return 1;
}

static void variable_take(struct str *rest, size_t n)
{
	rest->p += n;
	rest->n -= n;
}

int config_part_next(struct str *rest, struct config_part *ret, struct err *e)
{
	const char *open, *end;
	size_t before;

	if (rest->n == 0)
		return 0;
	open = memmem(rest->p, rest->n, "${", 2);
	before = open ? (size_t)(open - rest->p) : rest->n;
	*ret = (struct config_part){ .kind = CONFIG_PART_TEXT, .text = { rest->p, before } };
	if (open && before > 0 && open[-1] == '$') {
		/* Of "$${" the first '$' is dropped: the part ends before it, or begins with the
		 * second. */
		if (before > 1) {
			ret->text.n = before - 1;
			variable_take(rest, before - 1);
		} else {
			ret->text = (struct str){ open, 2 };
			variable_take(rest, 3);
		}
		return 1;
	}
	if (before > 0) {
		variable_take(rest, before);
		return 1;
	}
	end = memchr(rest->p, '}', rest->n);
	if (!end)
		return err_set(e, ERR_INVALID, "${ has no end: write $${ for the two characters");
	before = (size_t)(end - rest->p);
	if (variable_read((struct str){ rest->p + 2, before - 2 }, ret, e) < 0)
		return -1;
	variable_take(rest, before + 1);
	return 1;
}

static int variable_missing(const struct config_part *part, struct err *e)
{
	struct str name = part->text;

	if (part->kind == CONFIG_PART_SECRET)
		return err_set(e, ERR_INVALID, "there is no secret %.*s", STR_CUT(name, SHOWN_MAX));
	if (part->kind == CONFIG_PART_INPUT)
		return err_set(e, ERR_INVALID,
			       "nobody can be asked for the input %.*s, and it has no default",
			       STR_CUT(name, SHOWN_MAX));
	return err_set(e, ERR_INVALID, "the variable %.*s is not set, and has no default",
		       STR_CUT(name, SHOWN_MAX));
}

static int variable_put(const struct config_part *part, const struct config_values *v,
			struct buf *to, struct err *e)
{
	size_t from = to->n;
	int has;

	if (part->kind == CONFIG_PART_TEXT)
		return buf_add(to, part->text.p, part->text.n, e);
	has = v->value(v->data, part->kind, part->text, to, e);
	if (has < 0)
		return -1;
	/* As in a shell, an empty variable takes the default, too. */
	if (part->otherwise.p && to->n == from)
		return buf_add(to, part->otherwise.p, part->otherwise.n, e);
	if (!has)
		return variable_missing(part, e);
	if (to->n > from && memchr(to->p + from, '\0', to->n - from))
		return err_set(e, ERR_INVALID, "the value of %.*s has a NUL",
			       STR_CUT(part->text, SHOWN_MAX));
	return 0;
}

int config_expand(struct str text, const struct config_values *v, struct buf *to, struct err *e)
{
	struct config_part part;
	int more;

	while ((more = config_part_next(&text, &part, e)) > 0) {
		if (variable_put(&part, v, to, e) < 0)
			return -1;
	}
	return more;
}

int config_value_here(void *data, enum config_part_kind kind, struct str name, struct buf *to,
		      struct err *e)
{
	char text[CONFIG_VARIABLE_MAX + 1];
	const char *value;

	snprintf(text, sizeof(text), "%.*s", STR_ARG(name));
	value = kind == CONFIG_PART_ENV ? getenv(text) : "";
	if (!value)
		return 0;
	return buf_add(to, value, strlen(value), e) < 0 ? -1 : 1;
}
