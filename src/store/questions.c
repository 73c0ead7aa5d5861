/* Rows of questions. */
#include "store/internal.h"

int store_question_put(struct store *s, const struct store_question *r, struct err *e)
{
	return db_put(s->db, QUESTION_PUT, &question_row, r, e);
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
	struct store_question r = { 0 };
	int more = db_rows_values(s->db, QUESTION_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next_row(&rows, &question_row, &r, e)) > 0) {
		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}
