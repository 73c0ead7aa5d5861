/* Rows of sandboxes. */
#include "store/internal.h"

int store_sandbox_add(struct store *s, const struct store_sandbox *r, uint64_t spec_of,
		      struct err *e)
{
	if (r->lasts)
		db_must_last(s->db);
	return db_run(s->db, SANDBOX_ADD, e, DB_INT(r->seq), DB_TEXT(r->id), DB_INT(r->generation),
		      DB_TEXT(r->template), DB_TEXT(r->spec), DB_TEXT(r->source), DB_TEXT(r->state),
		      DB_TEXT(r->retention), DB_INT(r->created_ms), DB_INT(r->changed_ms),
		      DB_INT(r->deadline_ms), DB_INT(r->ttl_ms), DB_INT(r->idle_ms),
		      DB_TEXT(r->code), DB_TEXT(r->why), DB_INT(r->memory), DB_INT(r->disk),
		      DB_INT(r->pids), DB_INT(r->cpu_milli), DB_INT(spec_of), DB_INT(r->files),
		      DB_INT(r->debug), DB_TEXT(r->labels), DB_INT(r->root), DB_TEXT(r->network),
		      DB_TEXT(r->owner), DB_INT(r->spent_cpu_ms), DB_INT(r->spent_out));
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
	int more = db_rows_values(s->db, SANDBOX_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next(&rows, e)) > 0) {
		const struct store_sandbox r = {
			.seq = (uint64_t)db_int(&rows, 0),
			.id = db_text(&rows, 1),
			.generation = (uint32_t)db_int(&rows, 2),
			.template = db_text(&rows, 3),
			.spec = db_text(&rows, 4),
			.source = db_text(&rows, 5),
			.state = db_text(&rows, 6),
			.retention = db_text(&rows, 7),
			.created_ms = db_int(&rows, 8),
			.changed_ms = db_int(&rows, 9),
			.deadline_ms = db_int(&rows, 10),
			.ttl_ms = (uint64_t)db_int(&rows, 11),
			.idle_ms = (uint64_t)db_int(&rows, 12),
			.code = db_text(&rows, 13),
			.why = db_text(&rows, 14),
			.memory = (uint64_t)db_int(&rows, 15),
			.disk = (uint64_t)db_int(&rows, 16),
			.pids = (uint32_t)db_int(&rows, 17),
			.cpu_milli = (uint32_t)db_int(&rows, 18),
			.files = (uint32_t)db_int(&rows, 19),
			.debug = (uint32_t)db_int(&rows, 20),
			.labels = db_text(&rows, 21),
			.root = (uint32_t)db_int(&rows, 22),
			.network = db_text(&rows, 23),
			.owner = db_text(&rows, 24),
			.spent_cpu_ms = (uint64_t)db_int(&rows, 25),
			.spent_out = (uint64_t)db_int(&rows, 26),
		};

		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}

int store_sandbox_last(struct store *s, uint64_t *ret_seq, struct err *e)
{
	autorows struct db_rows rows;

	if (db_rows_values(s->db, SANDBOX_LAST, NULL, 0, &rows, e) < 0 || db_next(&rows, e) < 0)
		return -1;
	*ret_seq = (uint64_t)db_int(&rows, 0);
	return 0;
}

int store_forgotten(struct store *s, uint32_t *ret_generation, struct err *e)
{
	autorows struct db_rows rows;

	if (db_rows_values(s->db, FORGOTTEN, NULL, 0, &rows, e) < 0 || db_next(&rows, e) < 0)
		return -1;
	*ret_generation = (uint32_t)db_int(&rows, 0);
	return 0;
}

int store_forgotten_set(struct store *s, uint32_t generation, struct err *e)
{
	return db_run(s->db, FORGOTTEN_SET, e, DB_INT(generation));
}
