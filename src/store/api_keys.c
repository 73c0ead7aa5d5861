/* Rows of API keys. */
#include "store/internal.h"

int store_api_key_put(struct store *s, const struct store_api_key *r, struct err *e)
{
	return db_run(s->db, API_KEY_PUT, e, DB_TEXT(r->name), DB_BLOB(r->hash), DB_INT(r->scopes),
		      DB_INT(r->created_ms), DB_INT(r->expires_ms), DB_INT(r->used_ms),
		      DB_TEXT(r->makers));
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
	int more = db_rows_values(s->db, API_KEY_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next(&rows, e)) > 0) {
		const struct store_api_key r = {
			.name = db_text(&rows, 0),
			.hash = db_text(&rows, 1),
			.scopes = (uint32_t)db_int(&rows, 2),
			.created_ms = db_int(&rows, 3),
			.expires_ms = db_int(&rows, 4),
			.used_ms = db_int(&rows, 5),
			.makers = db_text(&rows, 6),
		};

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
