/* Idempotency keys with their answers, bounded in number and bytes. */
#include <sodium.h>

#include "store/internal.h"

enum { ROW_BYTES = 512 }; /* what a row takes besides plan and body */

void store_digest(struct str request, char ret[STORE_DIGEST_BYTES])
{
	crypto_generichash((unsigned char *)ret, STORE_DIGEST_BYTES,
			   (const unsigned char *)request.p, request.n, NULL, 0);
}

/* Copied: an open statement would keep the log from restarting. */
static int lend(struct store *s, const struct db_rows *rows, struct store_key *ret, struct err *e)
{
	struct {
		int column;
		struct str *to;
	} texts[] = { { 0, &ret->digest }, { 1, &ret->run }, { 3, &ret->plan }, { 6, &ret->body } };
	size_t at = 0;

	buf_fini(&s->found);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		*texts[i].to = db_text(rows, texts[i].column);
		if (buf_add(&s->found, texts[i].to->p, texts[i].to->n, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(texts); at += texts[i++].to->n)
		texts[i].to->p = buf_str(&s->found).p + at;
	ret->at_ms = db_int(rows, 2);
	ret->done = db_int(rows, 4) != 0;
	ret->status = (int)db_int(rows, 5);
	return 1;
}

int store_key_find(struct store *s, struct str scope, struct str key, struct store_key *ret,
		   struct err *e)
{
	autorows struct db_rows rows;
	int more = db_rows(s->db, KEY_FIND, &rows, e, DB_TEXT(scope), DB_TEXT(key));

	if (more < 0 || (more = db_next(&rows, e)) <= 0)
		return more;
	*ret = (struct store_key){ .scope = scope, .key = key };
	return lend(s, &rows, ret, e);
}

/* ---- bounds -------------------------------------------------------------------------------- */

static int keys_count(struct store *s, struct err *e)
{
	autorows struct db_rows rows = { .db = s->db };

	if (s->counted)
		return 0;
	if (db_rows_values(s->db, KEY_COUNT, NULL, 0, &rows, e) < 0 || db_next(&rows, e) < 0)
		return -1;
	s->n_keys = db_int(&rows, 0);
	s->key_bytes = db_int(&rows, 1);
	s->counted = true;
	return 0;
}

/* Runs a statement that deletes rows and returns their bytes. Returns how many rows. */
static int remove_rows(struct store *s, enum statement which, const struct db_value *values,
		       size_t n, struct err *e)
{
	autorows struct db_rows rows = { .db = s->db };
	int more, deleted = 0;

	if (keys_count(s, e) < 0 || db_rows_values(s->db, which, values, n, &rows, e) < 0)
		return -1;
	while ((more = db_next(&rows, e)) > 0) {
		s->n_keys--;
		s->key_bytes -= db_int(&rows, 0);
		deleted++;
	}
	if (more < 0)
		s->counted = false;
	return more < 0 ? -1 : deleted;
}

static int make_room(struct store *s, int64_t bytes, struct err *e)
{
	if (keys_count(s, e) < 0)
		return -1;
	while (s->n_keys >= STORE_KEYS_MAX || s->key_bytes + bytes > STORE_KEYS_BYTES_MAX) {
		int deleted = remove_rows(s, KEY_DROP_OLDEST, NULL, 0, e);

		if (deleted == 0)
			err_set(e, ERR_LIMIT,
				"too many requests with an Idempotency-Key are under way");
		if (deleted <= 0)
			return -1;
	}
	return 0;
}

/* ---- changes ------------------------------------------------------------------------------- */

int store_key_drop(struct store *s, struct str scope, struct str key, struct err *e)
{
	const struct db_value values[] = { DB_TEXT(scope), DB_TEXT(key) };

	return remove_rows(s, KEY_DROP, values, ARRAY_LEN(values), e) < 0 ? -1 : 0;
}

int store_keys_expire(struct store *s, int64_t before_ms, struct err *e)
{
	const struct db_value values[] = { DB_INT(before_ms) };

	return remove_rows(s, KEY_EXPIRE, values, ARRAY_LEN(values), e) < 0 ? -1 : 0;
}

static int keys_put(struct store *s, const struct store_key *k, struct err *e)
{
	int64_t bytes = (int64_t)(k->plan.n + k->body.n) + ROW_BYTES;

	if (store_key_drop(s, k->scope, k->key, e) < 0 || make_room(s, bytes, e) < 0 ||
	    db_run(s->db, KEY_PUT, e, DB_TEXT(k->scope), DB_TEXT(k->key), DB_BLOB(k->digest),
		   DB_TEXT(k->run), DB_INT(k->at_ms), DB_TEXT(k->plan), DB_INT(k->done),
		   DB_INT(k->status), DB_BLOB(k->body), DB_INT(bytes)) < 0)
		return -1;
	s->n_keys++;
	s->key_bytes += bytes;
	return 0;
}

int store_key_put(struct store *s, const struct store_key *k, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (keys_put(s, k, e) < 0) {
		store_rollback(s);
		return -1;
	}
	if (store_commit(s, e) == 0)
		return 0;
	s->counted = false;
	return -1;
}
