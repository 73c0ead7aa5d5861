/* Events, in order. The oldest are deleted, many at a time. */
#include "store/internal.h"

enum { TRIM_EVERY = 256 };

static int64_t trimmed_to(int64_t seq)
{
	return seq % TRIM_EVERY == 0 && seq > STORE_EVENTS_MAX ? seq - STORE_EVENTS_MAX : 0;
}

static int events_add(struct store *s, const struct store_event *v, int64_t *ret_seq, struct err *e)
{
	autorows struct db_rows rows;
	int more = db_rows(s->db, EVENT_ADD, &rows, e, DB_INT(v->at_ms), DB_TEXT(v->sandbox),
			   DB_TEXT(v->kind), DB_TEXT(v->detail), DB_TEXT(v->owner));

	while (more >= 0 && (more = db_next(&rows, e)) > 0)
		*ret_seq = db_int(&rows, 0);
	return more;
}

int store_event_add(struct store *s, const struct store_event *v, struct err *e)
{
	int64_t seq = 0;

	if (events_add(s, v, &seq, e) < 0)
		return -1;
	return trimmed_to(seq) ? db_run(s->db, EVENT_TRIM, e, DB_INT(trimmed_to(seq))) : 0;
}

int store_events(struct store *s, const struct store_events_of *of, unsigned max,
		 int (*each)(void *arg, const struct store_event *v, struct err *e), void *arg,
		 struct err *e)
{
	autorows struct db_rows rows;
	struct store_event v = { 0 };
	int more = of->sandbox.p ? db_rows(s->db, EVENT_AFTER_OF, &rows, e, DB_INT(of->after),
					   DB_INT(max), DB_TEXT(of->owner), DB_TEXT(of->sandbox))
				 : db_rows(s->db, EVENT_AFTER, &rows, e, DB_INT(of->after),
					   DB_INT(max), DB_TEXT(of->owner));

	while (more >= 0 && (more = db_next_row(&rows, &event_row, &v, e)) > 0) {
		if (each(arg, &v, e) < 0)
			return -1;
	}
	return more;
}

int store_events_kept(struct store *s, uint64_t *ret_oldest, uint64_t *ret_newest, struct err *e)
{
	autorows struct db_rows rows;
	int more = db_rows(s->db, EVENT_KEPT, &rows, e);

	while (more >= 0 && (more = db_next(&rows, e)) > 0) {
		*ret_oldest = (uint64_t)db_int(&rows, 0);
		*ret_newest = (uint64_t)db_int(&rows, 1);
	}
	return more;
}
