#include "call/aside.h"

#include <stdlib.h>

#include "base/arena.h"

enum {
	LONG = 64 << 10, /* bytes of texts */
	REDACTED_MAX = 256 << 20,
};

/* ---- work ---------------------------------------------------------------------------------- */

static void aside_in_pool(uv_work_t *pool)
{
	struct aside_work *w = pool->data;

	w->run(w);
}

static void aside_on_worked(uv_work_t *pool, int status)
{
	struct aside_work *w = pool->data;

	redactor_free(take_ptr(w->redactor));
	w->then(w);
}

int aside_work_start(struct aside_work *w, uv_loop_t *loop, struct redactor *r, size_t bytes,
		     struct err *e)
{
	w->redactor = r;
	if (bytes <= LONG) {
		w->run(w);
		w->then(w);
		return 0;
	}
	w->pool.data = w;
	w->redactor = r ? redactor_share(r, e) : NULL;
	if (r && !w->redactor)
		return -1;
	if (uv_queue_work(loop, &w->pool, aside_in_pool, aside_on_worked) == 0)
		return 0;
	redactor_free(take_ptr(w->redactor));
	return err_set(e, ERR_LIMIT, "out of memory");
}

static struct str aside_redact_part(const struct aside_texts *t, const struct redact_part *part)
{
	struct buf b = BUF_INIT(REDACTED_MAX);
	struct str said = part->text;
	struct err e;
	int rc = t->redactor ? redact_text(t->redactor, part, &b, &e) : 0;

	if (rc > 0)
		said = (struct str){ arena_dup(t->arena, buf_str(&b), &e), b.n };
	buf_fini(&b);
	return rc < 0 || (said.n > 0 && !said.p) ? STR_LIT("[REDACTED]") : said;
}

struct str aside_redact(void *texts, const struct field *row, struct str text)
{
	const struct redact_part part = { .text = text };

	return row && row->flags & FIELD_PLAIN ? text : aside_redact_part(texts, &part);
}

/* ---- answers ------------------------------------------------------------------------------- */

const struct redact_part *aside_part_of(struct aside_parts *parts, struct str text)
{
	for (size_t i = 0; i < parts->n; i++) {
		size_t at = (parts->next + i) % parts->n;
		const struct redact_part *p = &parts->p[at];

		if (p->text.p == text.p && p->text.n == text.n) {
			parts->next = at + 1;
			return p;
		}
	}
	return NULL;
}

bool aside_takes(struct aside_count *k, struct str text)
{
	k->bytes += text.n;
	if (!k->is_long && k->bytes > LONG) {
		k->is_long = true;
		k->first = k->texts;
	}
	k->texts++;
	return !k->is_long;
}

/* The same texts come in the same order as in the first copy. */
static struct str aside_text(void *data, const struct field *row, struct str text)
{
	struct aside *a = data;
	size_t nth = a->at++;
	struct redact_part part = { .text = text };
	const struct aside_texts texts = { a->work.redactor, a->arena };

	if (a->place < a->n_places && a->places[a->place].text == nth) {
		part.before = a->places[a->place].part.before;
		part.after = a->places[a->place++].part.after;
	}
	if (nth < a->first || (row && row->flags & FIELD_PLAIN))
		return text;
	return aside_redact_part(&texts, &part);
}

static void aside_copy(struct aside_work *w)
{
	struct aside *a = (struct aside *)w;
	struct err e;

	a->result = field_copy(a->table, a->from, a->arena, aside_text, a, &e);
	if (a->result && a->write)
		a->write(a->client, a->table, a->result);
}

static void aside_copied(struct aside_work *w)
{
	struct aside *a = (struct aside *)w;

	a->on_done(a);
}

int aside_start(struct aside *a, uv_loop_t *loop, struct redactor *r, size_t max, struct err *e)
{
	a->work.run = aside_copy;
	a->work.then = aside_copied;
	a->arena = arena_new(max);
	if (!a->arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	return aside_work_start(&a->work, loop, r, SIZE_MAX, e);
}

int aside_take(struct aside *a, struct arena *to, struct err *e)
{
	if (!a->result)
		return err_set(e, ERR_LIMIT, "out of memory");
	return arena_take(to, a->arena, e);
}

void aside_fini(struct aside *a)
{
	arena_free(take_ptr(a->arena));
	free(take_ptr(a->places));
}
