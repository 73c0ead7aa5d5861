/* Rows of approvals. */
#include "store/internal.h"

int store_approval_put(struct store *s, const struct store_approval *r, struct err *e)
{
	return db_put(s->db, APPROVAL_PUT, &approval_row, r, e);
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
	struct store_approval r = { 0 };
	int more = db_rows_values(s->db, APPROVAL_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next_row(&rows, &approval_row, &r, e)) > 0) {
		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}
