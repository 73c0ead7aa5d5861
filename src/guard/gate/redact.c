/* What leaves: the hook redact, the redactor that operations use for streams and pages, and the
 * hub's log. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "guard/gate/internal.h"
#include "guard/redact/redact.h"
#include "json/document/hidden.h"

enum { REDACTED_MAX = 256 << 20 };

static bool gate_redact_keeps_length(const struct call *c, const struct field *row)
{
	return (!row || (row->flags & FIELD_BYTES)) && (call_op(c)->flags & OP_ARCHIVE);
}

/* Where redaction fails, nothing of the text leaves. */
static struct str gate_redact_part(struct redactor *r, const struct redact_part *part,
				   struct arena *a)
{
	autobuf struct buf b = BUF_INIT(REDACTED_MAX);
	struct err e;
	int rc = redact_text(r, part, &b, &e);
	char *copy;

	if (rc == 0)
		return part->text;
	copy = rc < 0 ? NULL : arena_dup(a, buf_str(&b), &e);
	return copy ? (struct str){ copy, b.n } : STR_LIT("[REDACTED]");
}

static struct str gate_redact(void *data, struct call *c, const struct field *row, struct str text)
{
	struct redact_part part = { .text = text, .keep_length = gate_redact_keeps_length(c, row) };

	return gate_redact_part(((struct gate *)data)->redactor, &part, call_arena(c));
}

struct str gate_redact_text(const struct gate *g, struct str text, struct arena *a)
{
	return gate_redact_part(g->redactor, &(struct redact_part){ .text = text }, a);
}

/* Twice: with the values already hidden, what is hidden now was found by patterns. And what is not
 * altered now is not altered where it is shown. */
struct str gate_redact_asked(struct redactor *r, struct str json, struct arena *a, bool *ret_hides)
{
	const struct redact_part part = { .text = json, .values_only = true };
	struct str values = gate_redact_part(r, &part, a), shown;
	autobuf struct buf b = BUF_INIT(REDACTED_MAX);
	struct err e;
	char *copy = NULL;

	if (hidden_escape_json(&b, values, &e) == 0)
		copy = arena_dup(a, buf_str(&b), &e);
	*ret_hides = true;
	if (!copy)
		return STR_LIT("[REDACTED]");
	values = (struct str){ copy, b.n };
	shown = gate_redact_part(r, &(struct redact_part){ .text = values }, a);
	*ret_hides = !str_eq(shown, values);
	return shown;
}

int gate_redact_value(struct gate *g, struct str name, struct str value, struct err *e)
{
	return redact_value_add(g->redactor, name, value, e);
}

/* Redacts log texts: paths and ids that clients chose, names, causes of failures. */
static void gate_redact_log(void *data, char *text, size_t size)
{
	struct gate *g = data;
	struct redact_part part = { .text = str_of(text), .quotes = true };
	autobuf struct buf b = BUF_INIT(REDACTED_MAX);
	struct err e;
	int rc = *text ? redact_text(g->redactor, &part, &b, &e) : 0;

	if (rc != 0)
		snprintf(text, size, "%.*s", STR_ARG(rc > 0 ? buf_str(&b) : STR_LIT("[REDACTED]")));
}

/* Makes *r, or gives it the options of a file. A program without a hub prints for its user alone,
 * whose own secrets are no secrets to him: only what it was granted by name is not shown. */
static int gate_redact_set(struct redactor **r, const struct config_file *f, bool hub,
			   struct err *e)
{
	const struct config_redaction *c = &f->redaction;
	autofree struct redact_pattern *extra = calloc(c->patterns.n + 1, sizeof(*extra));
	const struct redact_options o = { .nothing = c->off,
					  .no_patterns = !hub,
					  .off = c->without.p,
					  .n_off = c->without.n,
					  .extra = extra,
					  .n_extra = hub ? c->patterns.n : 0 };

	if (!extra)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < c->patterns.n; i++)
		extra[i] = (struct redact_pattern){ c->patterns.p[i].key, c->patterns.p[i].value };
	if (*r)
		return redactor_set(*r, &o, e);
	*r = redactor_new(&o, e);
	return *r ? 0 : -1;
}

int gate_redact_check_file(const struct config_file *f, struct err *e)
{
	AUTO(redactor_free) struct redactor *r = NULL;

	return gate_redact_set(&r, f, true, e) < 0 ? err_wrap(e, "redaction") : 0;
}

int gate_redact_open(struct gate *g, struct err *e)
{
	if (gate_redact_set(&g->redactor, config_file(g->config), g->hub, e) < 0)
		return err_wrap(e, "redaction");
	g->hooks.redact = gate_redact;
	if (g->hub)
		log_filter(gate_redact_log, g);
	return 0;
}

void gate_redact_reload(struct gate *g)
{
	struct err e;

	if (gate_redact_set(&g->redactor, config_file(g->config), g->hub, &e) < 0)
		log_warn("redaction stays as it was: %s", e.msg);
}

void gate_redact_close(struct gate *g)
{
	if (g->hub)
		log_filter(NULL, NULL);
	redactor_free(take_ptr(g->redactor));
}
