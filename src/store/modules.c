/* Rows of modules. */
#include <stdio.h>

#include "store/internal.h"

int store_module_put(struct store *s, const struct store_module *r, struct err *e)
{
	return db_put(s->db, MODULE_PUT, &module_row, r, e);
}

int store_module_let_go(struct store *s, struct str name, struct err *e)
{
	return db_run(s->db, MODULE_LET_GO, e, DB_TEXT(name));
}

int store_modules(struct store *s,
		  int (*each)(void *arg, const struct store_module *r, struct err *e), void *arg,
		  struct err *e)
{
	autorows struct db_rows rows = { .db = s->db };
	struct store_module r = { 0 };
	int more = db_rows_values(s->db, MODULE_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next_row(&rows, &module_row, &r, e)) > 0) {
		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}

int store_module_key(struct store *s, char ret[STORE_MODULE_KEY], struct err *e)
{
	autorows struct db_rows rows = { .db = s->db };
	int more = db_rows_values(s->db, MODULE_KEY, NULL, 0, &rows, e);

	if (more >= 0)
		more = db_next(&rows, e);
	if (more <= 0)
		return more < 0 ? -1 : err_set(e, ERR_STORE_CORRUPT, "the key of modules is gone");
	snprintf(ret, STORE_MODULE_KEY, "%.*s", STR_CUT(db_text(&rows, 0), STORE_MODULE_KEY - 1));
	return 0;
}
