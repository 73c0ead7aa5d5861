/* Rows of approvals. */
#include "store/internal.h"

int store_approval_put(struct store *s, const struct store_approval *r, struct err *e)
{
	return db_run(s->db, APPROVAL_PUT, e, DB_INT(r->seq), DB_INT(r->rev), DB_TEXT(r->id),
		      DB_TEXT(r->principal), DB_TEXT(r->action), DB_TEXT(r->target),
		      DB_INT(r->sandbox), DB_TEXT(r->digest), DB_TEXT(r->arguments),
		      DB_INT(r->size), DB_TEXT(r->conversation), DB_TEXT(r->rule),
		      DB_TEXT(r->state), DB_TEXT(r->scope), DB_TEXT(r->pattern), DB_TEXT(r->who),
		      DB_TEXT(r->surface), DB_INT(r->created_ms), DB_INT(r->deadline_ms),
		      DB_INT(r->answered_ms), DB_INT(r->used_ms));
}

int store_approval_drop(struct store *s, uint64_t seq, struct err *e)
{
	return db_run(s->db, APPROVAL_DROP, e, DB_INT(seq));
}

int store_approvals(struct store *s,
		    int (*each)(void *arg, const struct store_approval *r, struct err *e),
		    void *arg, struct err *e)
{
	autorows struct db_rows rows = { .db = s->db };
	int more = db_rows_values(s->db, APPROVAL_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next(&rows, e)) > 0) {
		const struct store_approval r = {
			.seq = (uint64_t)db_int(&rows, 0),
			.rev = (uint64_t)db_int(&rows, 1),
			.id = db_text(&rows, 2),
			.principal = db_text(&rows, 3),
			.action = db_text(&rows, 4),
			.target = db_text(&rows, 5),
			.sandbox = (uint64_t)db_int(&rows, 6),
			.digest = db_text(&rows, 7),
			.arguments = db_text(&rows, 8),
			.size = (uint64_t)db_int(&rows, 9),
			.conversation = db_text(&rows, 10),
			.rule = db_text(&rows, 11),
			.state = db_text(&rows, 12),
			.scope = db_text(&rows, 13),
			.pattern = db_text(&rows, 14),
			.who = db_text(&rows, 15),
			.surface = db_text(&rows, 16),
			.created_ms = db_int(&rows, 17),
			.deadline_ms = db_int(&rows, 18),
			.answered_ms = db_int(&rows, 19),
			.used_ms = db_int(&rows, 20),
		};

		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}
