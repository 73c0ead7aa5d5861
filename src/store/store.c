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
