#include "op/aside.h"

#include <stdlib.h>

#include "base/arena.h"

enum {
	LONG = 64 << 10, /* bytes of texts */
	REDACTED_MAX = 256 << 20,
};

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
	struct buf b = BUF_INIT(REDACTED_MAX);
	struct str said = text;
	struct err e;
	int rc;

	if (a->place < a->n_places && a->places[a->place].text == nth) {
		part.before = a->places[a->place].part.before;
		part.after = a->places[a->place++].part.after;
	}
	if (nth < a->first || (row && row->flags & FIELD_PLAIN))
		return text;
	rc = redact_text(a->redactor, &part, &b, &e);
	if (rc > 0)
		said.p = arena_dup(a->arena, buf_str(&b), &e);
	said.n = rc > 0 ? b.n : said.n;
	buf_fini(&b);
	return rc < 0 || (said.n > 0 && !said.p) ? STR_LIT("[REDACTED]") : said;
}

static void aside_work(uv_work_t *work)
{
	struct aside *a = work->data;
	struct err e;

	a->result = field_copy(a->table, a->from, a->arena, aside_text, a, &e);
}

static void aside_worked(uv_work_t *work, int status)
{
	struct aside *a = work->data;

	a->on_done(a);
}

int aside_start(struct aside *a, uv_loop_t *loop, struct redactor *r, size_t max, struct err *e)
{
	a->work.data = a;
	a->arena = arena_new(max);
	if (!a->arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	a->redactor = redactor_share(r, e);
	if (!a->redactor)
		return -1;
	if (uv_queue_work(loop, &a->work, aside_work, aside_worked) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	return 0;
}

int aside_take(struct aside *a, struct arena *to, struct err *e)
{
	if (!a->result)
		return err_set(e, ERR_LIMIT, "out of memory");
	return arena_take(to, a->arena, e);
}

void aside_fini(struct aside *a)
{
	redactor_free(take_ptr(a->redactor));
	arena_free(take_ptr(a->arena));
	free(take_ptr(a->places));
}
