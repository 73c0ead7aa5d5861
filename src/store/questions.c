/* Rows of questions. */
#include "store/internal.h"

int store_question_put(struct store *s, const struct store_question *r, struct err *e)
{
	return db_run(s->db, QUESTION_PUT, e, DB_INT(r->seq), DB_INT(r->rev), DB_TEXT(r->id),
		      DB_TEXT(r->principal), DB_TEXT(r->session), DB_TEXT(r->kind),
		      DB_TEXT(r->origin), DB_TEXT(r->state), DB_TEXT(r->spec), DB_TEXT(r->reply),
		      DB_TEXT(r->who), DB_TEXT(r->surface), DB_INT(r->created_ms),
		      DB_INT(r->deadline_ms), DB_INT(r->ended_ms));
}

int store_question_drop(struct store *s, uint64_t seq, struct err *e)
{
	return db_run(s->db, QUESTION_DROP, e, DB_INT(seq));
}

int store_questions(struct store *s,
		    int (*each)(void *arg, const struct store_question *r, struct err *e),
		    void *arg, struct err *e)
{
	autorows struct db_rows rows = { .db = s->db };
	int more = db_rows_values(s->db, QUESTION_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next(&rows, e)) > 0) {
		const struct store_question r = {
			.seq = (uint64_t)db_int(&rows, 0),
			.rev = (uint64_t)db_int(&rows, 1),
			.id = db_text(&rows, 2),
			.principal = db_text(&rows, 3),
			.session = db_text(&rows, 4),
			.kind = db_text(&rows, 5),
			.origin = db_text(&rows, 6),
			.state = db_text(&rows, 7),
			.spec = db_text(&rows, 8),
			.reply = db_text(&rows, 9),
			.who = db_text(&rows, 10),
			.surface = db_text(&rows, 11),
			.created_ms = db_int(&rows, 12),
			.deadline_ms = db_int(&rows, 13),
			.ended_ms = db_int(&rows, 14),
		};

		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}
