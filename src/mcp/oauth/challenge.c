/*
 * Commas separate challenges, and the parameters of one challenge. A word followed by = is a
 * parameter; a word followed by a space or nothing begins the next challenge.
 */
#include "mcp/oauth/challenge.h"

#include <strings.h>

struct reader {
	const char *p, *end;
};

static bool is_token(char c)
{
	return c > ' ' && c < 0x7f && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

static void challenge_skip(struct reader *r, const char *chars)
{
	while (r->p < r->end && *r->p && strchr(chars, *r->p))
		r->p++;
}

static struct str token(struct reader *r)
{
	struct str t = { r->p, 0 };

	while (r->p < r->end && is_token(*r->p))
		r->p++;
	t.n = (size_t)(r->p - t.p);
	return t;
}

/* Copies a quoted string; one that does not fit becomes empty. False if it has no end. */
static bool quoted(struct reader *r, char *to, size_t max)
{
	size_t n = 0;

	for (r->p++; r->p < r->end && *r->p != '"'; r->p++) {
		if (*r->p == '\\' && ++r->p == r->end)
			return false;
		if ((unsigned char)*r->p < ' ' && *r->p != '\t')
			return false;
		if (n < max)
			to[n] = *r->p;
		n++;
	}
	to[n <= max ? n : 0] = '\0';
	return r->p < r->end && *r->p++ == '"';
}

/* Parses = and a value, which is a token or a quoted string. */
static bool read_value(struct reader *r, char *to, size_t max)
{
	struct str t;

	challenge_skip(r, " \t");
	r->p++;
	challenge_skip(r, " \t");
	if (r->p < r->end && *r->p == '"')
		return quoted(r, to, max);
	t = token(r);
	if (t.n <= max)
		memcpy(to, t.p, t.n);
	to[t.n <= max ? t.n : 0] = '\0';
	return t.n > 0;
}

static bool is(struct str word, const char *z)
{
	return word.n == strlen(z) && strncasecmp(word.p, z, word.n) == 0;
}

/* Stores a value, unless an earlier challenge had one. False: repeated in one challenge. */
static bool challenge_keep(struct str name, const char *value, unsigned *seen,
			   const struct oauth_challenge *was, struct oauth_challenge *c)
{
	struct {
		const char *name;
		char *to;
		size_t max;
		bool taken, ok;
	} const rows[] = {
		{ "resource_metadata", c->resource_metadata, OAUTH_URL_MAX,
		  was->resource_metadata[0], true },
		{ "scope", c->scope, OAUTH_SCOPE_MAX, was->scope[0],
		  oauth_scope_ok(str_of(value)) },
		{ "error", c->error, OAUTH_WORD_MAX, was->error[0], oauth_is_word(str_of(value)) },
		{ "algs", c->algs, OAUTH_ALGS_MAX, was->algs[0], oauth_scope_ok(str_of(value)) },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = strlen(value);

		if (!is(name, rows[i].name))
			continue;
		if (*seen & 1u << i)
			return false;
		*seen |= 1u << i;
		if (!rows[i].taken && rows[i].ok && n <= rows[i].max)
			memcpy(rows[i].to, value, n + 1);
	}
	return true;
}

/* Whether a parameter comes next: a token, followed by = that is not the padding of a token68. */
static bool is_param(const struct reader *at)
{
	struct reader r = *at;

	if (token(&r).n == 0)
		return false;
	challenge_skip(&r, " \t");
	if (r.p == r.end || *r.p != '=')
		return false;
	r.p++;
	challenge_skip(&r, " \t");
	return r.p < r.end && *r.p != '=' && *r.p != ',';
}

/* Parses the parameters of one challenge into c. False on a syntax error. */
static bool read_params(struct reader *r, struct oauth_challenge *c)
{
	const struct oauth_challenge was = *c;
	char value[OAUTH_SCOPE_MAX + 1];
	unsigned seen = 0;

	while (is_param(r)) {
		struct str name = token(r);

		if (!read_value(r, value, sizeof(value) - 1) ||
		    !challenge_keep(name, value, &seen, &was, c))
			return false;
		challenge_skip(r, " \t");
		if (r->p < r->end && *r->p != ',')
			return false;
		challenge_skip(r, " \t,");
	}
	return true;
}

/* Adds the values from the challenges of one scheme to c. */
static void read_scheme(struct str header, const char *name, struct oauth_challenge *c)
{
	struct reader r = { header.p, header.p + header.n };

	for (challenge_skip(&r, " \t,"); r.p < r.end; challenge_skip(&r, " \t,")) {
		struct oauth_challenge with = *c, other = { .bearer = false };
		struct str scheme = token(&r);
		bool bearer = is(scheme, "bearer"), dpop = is(scheme, "dpop");
		bool ours = is(scheme, name);

		if (scheme.n == 0 || (r.p < r.end && !strchr(" \t,", *r.p)))
			return;
		challenge_skip(&r, " \t");
		/* a token68, as other schemes have it */
		if (r.p < r.end && *r.p != ',' && !is_param(&r) && !bearer && !dpop) {
			while (r.p < r.end && (is_token(*r.p) || *r.p == '/' || *r.p == '='))
				r.p++;
		}
		challenge_skip(&r, " \t,");
		if (!read_params(&r, ours ? &with : &other))
			return;
		with.bearer |= ours && bearer;
		with.dpop |= ours && dpop;
		*c = with;
	}
}

void oauth_challenge_read(struct str header, bool dpop, struct oauth_challenge *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (header.n == 0 || header.n > OAUTH_CHALLENGE_MAX)
		return;
	read_scheme(header, dpop ? "dpop" : "bearer", ret);
	read_scheme(header, dpop ? "bearer" : "dpop", ret);
}
