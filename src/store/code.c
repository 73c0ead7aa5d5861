/* Rows of JavaScript modules that clients have registered. */
#include "store/internal.h"

int store_code_put(struct store *s, const struct store_code *r, struct err *e)
{
	return db_put(s->db, CODE_PUT, &code_row, r, e);
}

int store_code_drop(struct store *s, struct str owner, struct str name, struct err *e)
{
	autorows struct db_rows rows = { .db = s->db };
	int more = db_rows(s->db, CODE_DROP, &rows, e, DB_TEXT(owner), DB_TEXT(name));

	int dropped = 0;

	while (more >= 0 && (more = db_next(&rows, e)) > 0)
		dropped = 1; /* and is written by the step behind it, which may fail */
	return more < 0 ? -1 : dropped;
}

int store_code_drop_all(struct store *s, struct str owner, struct err *e)
{
	return db_run(s->db, CODE_DROP_OWNER, e, DB_TEXT(owner));
}

int store_codes(struct store *s, struct str owner, struct str name,
		int (*each)(void *arg, const struct store_code *r, struct err *e), void *arg,
		struct err *e)
{
	autorows struct db_rows rows = { .db = s->db };
	struct store_code r = { 0 };
	int more = db_rows(s->db, CODE_OF, &rows, e, DB_TEXT(owner), DB_TEXT(name));

	while (more >= 0 && (more = db_next_row(&rows, &code_row, &r, e)) > 0) {
		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}

int store_code_owners(struct store *s, int (*each)(void *arg, struct str owner, struct err *e),
		      void *arg, struct err *e)
{
	autorows struct db_rows rows = { .db = s->db };
	int more = db_rows_values(s->db, CODE_OWNERS, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next(&rows, e)) > 0) {
		if (each(arg, db_text(&rows, 0), e) < 0)
			return -1;
	}
	return more;
}
