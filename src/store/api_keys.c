/* Rows of API keys. */
#include "store/internal.h"

int store_api_key_put(struct store *s, const struct store_api_key *r, struct err *e)
{
	return db_put(s->db, API_KEY_PUT, &api_key_row, r, e);
}

int store_api_key_used(struct store *s, struct str name, int64_t at_ms, struct err *e)
{
	return db_run(s->db, API_KEY_USED, e, DB_TEXT(name), DB_INT(at_ms));
}

int store_api_key_drop(struct store *s, struct str name, struct err *e)
{
	return db_run(s->db, API_KEY_DROP, e, DB_TEXT(name));
}

int store_api_keys(struct store *s,
		   int (*each)(void *arg, const struct store_api_key *r, struct err *e), void *arg,
		   struct err *e)
{
	autorows struct db_rows rows;
	struct store_api_key r = { 0 };
	int more = db_rows_values(s->db, API_KEY_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next_row(&rows, &api_key_row, &r, e)) > 0) {
		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}

int store_api_keys_ended(struct store *s,
			 int (*each)(void *arg, struct str owner, struct str makers, struct err *e),
			 void *arg, struct err *e)
{
	autorows struct db_rows rows;
	int more = db_rows_values(s->db, API_KEY_ENDED, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next(&rows, e)) > 0) {
		if (each(arg, db_text(&rows, 0), db_text(&rows, 1), e) < 0)
			return -1;
	}
	return more;
}
