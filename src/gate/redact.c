/* What leaves: the hook redact. It finds exact values within one text. */
#include <stdlib.h>

#include "base/secret.h"
#include "gate/internal.h"

enum { VALUES_MAX = 4096, REDACTED_MAX = 256 << 20 };

struct redact_value {
	struct redact_value *next;
	struct secret *bytes;
	char *mark; /* [REDACTED:name] */
};

struct gate_redact {
	struct redact_value *values;
	size_t n;
};

/* The first value in the text, and where. */
static const struct redact_value *redact_find(const struct gate_redact *r, struct str text,
					      struct str *ret)
{
	const struct redact_value *found = NULL;

	for (const struct redact_value *v = r->values; v; v = v->next) {
		struct str value = secret_expose(v->bytes, "to be redacted");
		const char *at = memmem(text.p, text.n, value.p, value.n);

		if (at && (!found || at < ret->p || (at == ret->p && value.n > ret->n))) {
			found = v;
			*ret = (struct str){ at, value.n };
		}
	}
	return found;
}

static struct str gate_redact(void *data, struct call *c, const struct field *row, struct str text)
{
	const struct gate_redact *r = ((const struct gate *)data)->redact;
	autobuf struct buf b = BUF_INIT(REDACTED_MAX);
	const struct redact_value *v = text.n && r->n ? redact_find(r, text, &(struct str){ 0 })
						      : NULL;
	struct str at = STR_NONE, rest = text;
	struct err e;
	char *copy;

	if (!v)
		return text;
	while ((v = redact_find(r, rest, &at))) {
		if (buf_add(&b, rest.p, (size_t)(at.p - rest.p), &e) < 0 ||
		    buf_add(&b, v->mark, strlen(v->mark), &e) < 0)
			return STR_LIT("[REDACTED]");
		rest = (struct str){ at.p + at.n, rest.n - (size_t)(at.p + at.n - rest.p) };
	}
	copy = buf_add(&b, rest.p, rest.n, &e) < 0 ? NULL
						   : arena_dup(call_arena(c), buf_str(&b), &e);
	return copy ? (struct str){ copy, b.n } : STR_LIT("[REDACTED]");
}

int gate_redact_value(struct gate *g, struct str name, struct str value, struct err *e)
{
	struct gate_redact *r = g->redact;
	struct redact_value *v;

	for (v = r->values; v; v = v->next) {
		if (secret_is(v->bytes, value))
			return 0;
	}
	if (r->n >= VALUES_MAX)
		return err_set(e, ERR_LIMIT,
			       "too many secrets were used; the hub must be started again");
	v = calloc(1, sizeof(*v));
	if (!v || asprintf(&v->mark, "[REDACTED:%.*s]", STR_ARG(name)) < 0 ||
	    !(v->bytes = secret_new(value, e))) {
		free(v);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	v->next = r->values;
	r->values = v;
	r->n++;
	return 0;
}

int gate_redact_open(struct gate *g, struct err *e)
{
	g->redact = calloc(1, sizeof(*g->redact));
	if (!g->redact)
		return err_set(e, ERR_LIMIT, "out of memory");
	g->hooks.redact = gate_redact;
	return 0;
}

void gate_redact_close(struct gate *g)
{
	struct gate_redact *r = take_ptr(g->redact);

	for (struct redact_value *v; r && (v = r->values);) {
		r->values = v->next;
		secret_free(v->bytes);
		free(v->mark);
		free(v);
	}
	free(r);
}
