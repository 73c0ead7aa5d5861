#include "store/internal.h"

struct store *store_open(const char *path, struct err *e)
{
	AUTO(store_close) struct store *s = calloc(1, sizeof(*s));

	if (!s) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	s->found = BUF_INIT(STORE_KEYS_BYTES_MAX);
	s->db = db_open(path, &store_schema, e);
	return s->db ? take_ptr(s) : NULL;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	buf_fini(&s->found);
	db_close(s->db);
	free(s);
}

int store_begin(struct store *s, struct err *e)
{
	return db_begin(s->db, e);
}

int store_commit(struct store *s, struct err *e)
{
	return db_commit(s->db, e);
}

void store_rollback(struct store *s)
{
	s->counted = false;
	db_rollback(s->db);
}

bool store_is_open(const struct store *s)
{
	return db_is_open(s->db);
}

bool store_wants_checkpoint(const struct store *s)
{
	return db_wants_checkpoint(s->db);
}

int store_checkpoint(struct store *s, struct err *e)
{
	return db_checkpoint(s->db, e);
}

int store_sync(const struct store *s, struct err *e)
{
	return db_sync(s->db, e);
}

uint64_t store_written(const struct store *s)
{
	return db_written(s->db);
}

void store_synced(struct store *s, uint64_t written)
{
	db_synced(s->db, written);
}

bool store_unsynced(const struct store *s)
{
	return db_unsynced(s->db);
}

int store_check(struct store *s, struct err *e)
{
	return db_check(s->db, e);
}

/* ---- what several kinds of rows need --------------------------------------------------------- */

int store_number(struct store *s, enum statement which, uint64_t *ret, struct err *e)
{
	autorows struct db_rows rows;

	if (db_rows_values(s->db, which, NULL, 0, &rows, e) < 0 || db_next(&rows, e) < 0)
		return -1;
	*ret = (uint64_t)db_int(&rows, 0);
	return 0;
}

int store_spec_of(struct store *s, uint64_t seq, struct str *spec, struct buf *to, struct err *e)
{
	autorows struct db_rows rows = { .db = s->db };
	int more;

	if (spec->p)
		return 0;
	more = db_rows(s->db, SPEC_OF, &rows, e, DB_INT(seq));
	while (more >= 0 && (more = db_next(&rows, e)) > 0) {
		struct str found = db_text(&rows, 0);

		if (buf_add(to, found.p, found.n, e) < 0)
			return -1;
		*spec = buf_str(to);
	}
	return more;
}
