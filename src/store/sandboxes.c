/* Rows of sandboxes. */
#include "store/internal.h"

int store_sandbox_add(struct store *s, const struct store_sandbox *r, uint64_t spec_of,
		      struct err *e)
{
	autobuf struct buf spec = BUF_INIT(SPEC_MAX);
	struct store_sandbox row = *r;

	if (r->lasts)
		db_must_last(s->db);
	if (!row.owner.p)
		row.owner = STR_LIT("");
	return store_spec_of(s, spec_of, &row.spec, &spec, e) < 0
		     ? -1
		     : db_put(s->db, SANDBOX_ADD, &sandbox_row, &row, e);
}

int store_sandbox_change(struct store *s, const struct store_sandbox *r, struct err *e)
{
	if (r->lasts)
		db_must_last(s->db);
	return db_run(s->db, SANDBOX_CHANGE, e, DB_INT(r->seq), DB_TEXT(r->state),
		      DB_INT(r->changed_ms), DB_INT(r->deadline_ms), DB_INT(r->ttl_ms),
		      DB_TEXT(r->code), DB_TEXT(r->why), DB_INT(r->generation), DB_TEXT(r->network),
		      DB_INT(r->spent_cpu_ms), DB_INT(r->spent_out));
}

int store_sandbox_drop(struct store *s, uint64_t seq, struct err *e)
{
	return db_run(s->db, SANDBOX_DROP, e, DB_INT(seq));
}

int store_sandboxes(struct store *s,
		    int (*each)(void *arg, const struct store_sandbox *r, struct err *e), void *arg,
		    struct err *e)
{
	autorows struct db_rows rows;
	struct store_sandbox r = { 0 };
	int more = db_rows_values(s->db, SANDBOX_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next_row(&rows, &sandbox_row, &r, e)) > 0) {
		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}

int store_sandbox_last(struct store *s, uint64_t *ret_seq, struct err *e)
{
	return store_number(s, SANDBOX_LAST, ret_seq, e);
}

int store_forgotten(struct store *s, uint32_t *ret_generation, struct err *e)
{
	uint64_t generation;

	if (store_number(s, FORGOTTEN, &generation, e) < 0)
		return -1;
	*ret_generation = (uint32_t)generation;
	return 0;
}

int store_forgotten_set(struct store *s, uint32_t generation, struct err *e)
{
	return db_run(s->db, FORGOTTEN_SET, e, DB_INT(generation));
}
