/* Rows of workspaces and their revisions. */
#include "store/internal.h"

int store_workspace_put(struct store *s, const struct store_workspace *r, struct err *e)
{
	return db_run(s->db, WORKSPACE_PUT, e, DB_INT(r->seq), DB_TEXT(r->name), DB_TEXT(r->owner),
		      DB_TEXT(r->tip), DB_INT(r->created_ms), DB_INT(r->sandbox), DB_TEXT(r->base));
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
	int more = db_rows_values(s->db, WORKSPACE_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next(&rows, e)) > 0) {
		const struct store_workspace r = {
			.seq = (uint64_t)db_int(&rows, 0),
			.name = db_text(&rows, 1),
			.owner = db_text(&rows, 2),
			.tip = db_text(&rows, 3),
			.created_ms = db_int(&rows, 4),
			.sandbox = (uint64_t)db_int(&rows, 5),
			.base = db_text(&rows, 6),
		};

		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}

int store_workspace_last(struct store *s, uint64_t *ret_seq, struct err *e)
{
	autorows struct db_rows rows = { .db = s->db };

	if (db_rows_values(s->db, WORKSPACE_LAST, NULL, 0, &rows, e) < 0 || db_next(&rows, e) < 0)
		return -1;
	*ret_seq = (uint64_t)db_int(&rows, 0);
	return 0;
}

int store_revision_add(struct store *s, const struct store_revision *r, struct err *e)
{
	return db_run(s->db, REVISION_ADD, e, DB_TEXT(r->id), DB_TEXT(r->parent), DB_TEXT(r->tree),
		      DB_INT(r->files), DB_INT(r->bytes), DB_INT(r->created_ms), DB_TEXT(r->source),
		      DB_TEXT(r->message), DB_INT(r->left_out));
}

int store_revision_drop(struct store *s, struct str id, struct err *e)
{
	return db_run(s->db, REVISION_DROP, e, DB_TEXT(id));
}

static int each_revision(struct db_rows *rows, bool numbered, store_revision_fn each, void *arg,
			 struct err *e)
{
	int more;

	while ((more = db_next(rows, e)) > 0) {
		const struct store_revision r = {
			.id = db_text(rows, 0),
			.parent = db_text(rows, 1),
			.tree = db_text(rows, 2),
			.files = (uint64_t)db_int(rows, 3),
			.bytes = (uint64_t)db_int(rows, 4),
			.created_ms = db_int(rows, 5),
			.source = db_text(rows, 6),
			.message = db_text(rows, 7),
			.left_out = (uint64_t)db_int(rows, 8),
			.number = numbered ? (uint64_t)db_int(rows, 9) : 0,
		};

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
