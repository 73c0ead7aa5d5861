/* Rows of workspaces and their revisions. */
#include "store/internal.h"

int store_workspace_put(struct store *s, const struct store_workspace *r, struct err *e)
{
	return db_put(s->db, WORKSPACE_PUT, &workspace_row, r, e);
}

int store_workspace_drop(struct store *s, uint64_t seq, struct err *e)
{
	return db_run(s->db, WORKSPACE_DROP, e, DB_INT(seq));
}

int store_workspaces(struct store *s,
		     int (*each)(void *arg, const struct store_workspace *r, struct err *e),
		     void *arg, struct err *e)
{
	autorows struct db_rows rows = { .db = s->db };
	struct store_workspace r = { 0 };
	int more = db_rows_values(s->db, WORKSPACE_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next_row(&rows, &workspace_row, &r, e)) > 0) {
		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}

int store_workspace_last(struct store *s, uint64_t *ret_seq, struct err *e)
{
	return store_number(s, WORKSPACE_LAST, ret_seq, e);
}

int store_revision_add(struct store *s, const struct store_revision *r, struct err *e)
{
	return db_put(s->db, REVISION_ADD, &revision_row, r, e);
}

int store_revision_drop(struct store *s, struct str id, struct err *e)
{
	return db_run(s->db, REVISION_DROP, e, DB_TEXT(id));
}

static int each_revision(struct db_rows *rows, bool numbered, store_revision_fn each, void *arg,
			 struct err *e)
{
	struct store_revision r = { 0 };
	int more;

	while ((more = db_next_row(rows, &revision_row, &r, e)) > 0) {
		r.number = numbered ? (uint64_t)db_int(rows, (int)revision_row.n) : 0;
		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}

int store_revisions(struct store *s, struct str id, store_revision_fn each, void *arg,
		    struct err *e)
{
	autorows struct db_rows rows;

	return db_rows(s->db, REVISION_ALL, &rows, e, DB_TEXT(id)) < 0
		     ? -1
		     : each_revision(&rows, false, each, arg, e);
}

/* ---- histories ------------------------------------------------------------------------------- */

int store_history_add(struct store *s, uint64_t workspace, uint64_t number, struct str revision,
		      struct err *e)
{
	return db_run(s->db, HISTORY_ADD, e, DB_INT(workspace), DB_INT(number), DB_TEXT(revision));
}

int store_history_copy(struct store *s, uint64_t from, uint64_t to, uint64_t number, struct err *e)
{
	return db_run(s->db, HISTORY_COPY, e, DB_INT(from), DB_INT(to), DB_INT(number));
}

int store_history_before(struct store *s, uint64_t workspace, uint64_t number, uint32_t limit,
			 store_revision_fn each, void *arg, struct err *e)
{
	autorows struct db_rows rows;

	return db_rows(s->db, HISTORY_BEFORE, &rows, e, DB_INT(workspace), DB_INT(number),
		       DB_INT(limit)) < 0
		     ? -1
		     : each_revision(&rows, true, each, arg, e);
}

int store_history_find(struct store *s, uint64_t workspace, struct str digits,
		       store_revision_fn each, void *arg, struct err *e)
{
	autorows struct db_rows rows;

	return db_rows(s->db, HISTORY_FIND, &rows, e, DB_INT(workspace), DB_TEXT(digits)) < 0
		     ? -1
		     : each_revision(&rows, true, each, arg, e);
}

int store_history_forget(struct store *s, uint32_t limit, struct err *e)
{
	autorows struct db_rows rows;
	int more = db_rows(s->db, HISTORY_FORGET, &rows, e, DB_INT(limit));
	uint32_t n = 0;

	while (more >= 0 && (more = db_next(&rows, e)) > 0)
		n++;
	return more < 0 ? -1 : n == limit;
}

int store_revisions_after(struct store *s, struct str id, uint32_t limit, store_revision_fn each,
			  void *arg, struct err *e)
{
	autorows struct db_rows rows;

	return db_rows(s->db, REVISION_AFTER, &rows, e, DB_TEXT(id), DB_INT(limit)) < 0
		     ? -1
		     : each_revision(&rows, true, each, arg, e);
}
