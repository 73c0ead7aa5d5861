#include "net/egress/exchange.h"

#include "net/egress/form.h"
#include "net/egress/head.h"

enum { NAME_MAX = 64 };

static const char too_many[] = "the body has too many members";
static const char twice[] = "a member of the body is there twice";
static const char no_json[] = "the body is no flat JSON object without escapes";
static const char no_form[] = "the body is no form";

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = head_lower(s.p[i]);

		if (!(c >= 'a' && c <= 'z') && !head_is_digit(c) && c != '_' && c != '-')
			return false;
	}
	return s.n > 0 && s.n <= NAME_MAX;
}

static const char *exchange_add(struct exchange *x, struct exchange_member m)
{
	if (x->n == EXCHANGE_MEMBERS_MAX)
		return too_many;
	for (size_t i = 0; i < x->n; i++) {
		if (str_eq(x->of[i].name, m.name))
			return twice;
	}
	x->of[x->n++] = m;
	return NULL;
}

static const char *read_form(struct str body, struct exchange *x)
{
	const char *why = NULL;

	while (body.n > 0 && !why) {
		struct str pair = str_before(body, '&'), name = str_before(pair, '=');
		struct str value = { name.p + name.n + 1, pair.n - name.n - 1 };

		if (pair.n == name.n || !is_name(name))
			return no_form;
		for (size_t i = 0; i < value.n; i++) {
			if (value.p[i] <= ' ' || value.p[i] == 0x7f || value.p[i] == ';')
				return no_form;
		}
		why = exchange_add(x, (struct exchange_member){ .name = name, .value = value });
		body.p += pair.n;
		body.n -= pair.n;
		if (body.n == 1)
			return no_form;
		body.p += body.n > 0;
		body.n -= body.n > 0;
	}
	return why;
}

static void skip_blanks(struct str *s)
{
	while (s->n > 0 && memchr(" \t\r\n", s->p[0], 4)) {
		s->p++;
		s->n--;
	}
}

/* Whether the next thing is c, which it takes. */
static bool take_char(struct str *s, char c)
{
	skip_blanks(s);
	if (s->n == 0 || s->p[0] != c)
		return false;
	s->p++;
	s->n--;
	return true;
}

static bool take_string(struct str *s, struct str *ret)
{
	if (!take_char(s, '"'))
		return false;
	*ret = str_before(*s, '"');
	if (ret->n == s->n)
		return false;
	for (size_t i = 0; i < ret->n; i++) {
		if ((unsigned char)ret->p[i] < ' ' || ret->p[i] == '\\')
			return false;
	}
	s->p += ret->n + 1;
	s->n -= ret->n + 1;
	return true;
}

/* A number, or true, false, null. */
static bool take_bare(struct str *s, struct str *ret)
{
	skip_blanks(s);
	*ret = (struct str){ s->p, 0 };
	while (s->n > 0 && (head_is_digit(s->p[0]) || s->p[0] == '-' || s->p[0] == '.' ||
			    (s->p[0] >= 'a' && s->p[0] <= 'z'))) {
		ret->n++;
		s->p++;
		s->n--;
	}
	return ret->n > 0;
}

static const char *read_json(struct str body, struct exchange *x)
{
	const char *why = NULL;

	if (!take_char(&body, '{'))
		return no_json;
	do {
		struct exchange_member m = { .bare = false };

		if (!take_string(&body, &m.name) || !is_name(m.name) || !take_char(&body, ':'))
			return no_json;
		skip_blanks(&body);
		m.bare = !str_starts(body, "\"");
		if (m.bare ? !take_bare(&body, &m.value) : !take_string(&body, &m.value))
			return no_json;
		why = exchange_add(x, m);
	} while (!why && take_char(&body, ','));
	if (!why && !take_char(&body, '}'))
		return no_json;
	skip_blanks(&body);
	return why ? why : body.n > 0 ? no_json : NULL;
}

const char *exchange_read(struct str type, struct str body, struct exchange *ret)
{
	struct exchange x = { .n = 0 };
	const char *why;

	type = str_trim(str_before(type, ';'));
	x.json = head_is(type, "application/json");
	if (!x.json && !head_is(type, "application/x-www-form-urlencoded"))
		return "the body is neither a form nor JSON";
	why = x.json ? read_json(body, &x) : read_form(body, &x);
	if (!why)
		*ret = x;
	return why;
}

bool exchange_refreshes(const struct exchange *x, struct str *ret_token)
{
	static const char *const others[] = { "client_id", "client_secret", "scope", "audience",
					      "resource" };
	bool refreshes = false, has_token = false;

	for (size_t i = 0; i < x->n; i++) {
		const struct exchange_member *m = &x->of[i];
		bool known = false;

		if (str_is(m->name, "grant_type")) {
			known = refreshes = !m->bare && str_is(m->value, "refresh_token");
		} else if (str_is(m->name, "refresh_token")) {
			known = has_token = !m->bare;
			*ret_token = m->value;
		}
		for (size_t k = 0; k < sizeof(others) / sizeof(*others); k++)
			known = known || str_is(m->name, others[k]);
		if (!known)
			return false;
	}
	return refreshes && has_token;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The value, as the body needs it: forms 1 and 5 are JSON's and the URL's. */
static int write_value(const struct exchange *x, const struct exchange_member *m,
		       const struct swaps *swaps, struct buf *out, struct err *e)
{
	struct swap *of = m->bare ? NULL : swaps_whole(swaps, m->value);

	if (!of)
		return buf_add(out, m->value.p, m->value.n, e);
	of->hits++;
	return form_add(out, of->to, x->json ? 1 : 5, e);
}

int exchange_write(const struct exchange *x, const struct swaps *swaps, struct buf *out,
		   struct err *e)
{
	if (x->json && buf_add(out, "{", 1, e) < 0)
		return -1;
	for (size_t i = 0; i < x->n; i++) {
		const struct exchange_member *m = &x->of[i];
		const char *quote = x->json && !m->bare ? "\"" : "";

		if ((x->json ? buf_addf(out, e, "%s\"%.*s\":%s", i ? "," : "", STR_ARG(m->name),
					quote)
			     : buf_addf(out, e, "%s%.*s=", i ? "&" : "", STR_ARG(m->name))) < 0 ||
		    write_value(x, m, swaps, out, e) < 0 || buf_addf(out, e, "%s", quote) < 0)
			return -1;
	}
	return x->json ? buf_add(out, "}", 1, e) : 0;
}
