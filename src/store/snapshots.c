/* Rows of snapshots. */
#include "store/internal.h"

int store_snapshot_add(struct store *s, const struct store_snapshot *r, uint64_t spec_of,
		       struct err *e)
{
	return db_run(s->db, SNAPSHOT_ADD, e, DB_INT(r->seq), DB_TEXT(r->id), DB_TEXT(r->name),
		      DB_INT(r->of), DB_TEXT(r->source), DB_TEXT(r->template), DB_TEXT(r->base),
		      DB_TEXT(r->spec), DB_INT(spec_of), DB_INT(r->created_ms),
		      DB_INT(r->expires_ms), DB_INT(r->bytes), DB_INT(r->unpacked),
		      DB_TEXT(r->digest), DB_INT(r->memory), DB_INT(r->disk), DB_INT(r->pids),
		      DB_INT(r->cpu_milli), DB_INT(r->files), DB_INT(r->debug), DB_INT(r->root),
		      DB_TEXT(r->owner));
}

int store_snapshot_drop(struct store *s, uint64_t seq, struct err *e)
{
	return db_run(s->db, SNAPSHOT_DROP, e, DB_INT(seq));
}

int store_keeps_image(const char *path, const char *digest, struct err *e)
{
	/* A registry of an earlier version has no packages, nor their columns. */
	static const char packages[] = "SELECT count(*) FROM pragma_table_info('modules')"
				       " WHERE name = 'package_update' AND ?1 <> ''";
	int kept = db_look(path, "SELECT count(*) FROM snapshots WHERE base = ?", digest, e);

	if (kept == 0 && (kept = db_look(path, packages, digest, e)) > 0)
		kept = db_look(path,
			       "SELECT count(*) FROM modules"
			       " WHERE ?1 IN (package, package_update)",
			       digest, e);
	return kept;
}

int store_snapshots(struct store *s, uint64_t seq,
		    int (*each)(void *arg, const struct store_snapshot *r, struct err *e),
		    void *arg, struct err *e)
{
	autorows struct db_rows rows;
	int more = db_rows(s->db, SNAPSHOT_ALL, &rows, e, DB_INT(seq));

	while (more >= 0 && (more = db_next(&rows, e)) > 0) {
		const struct store_snapshot r = {
			.seq = (uint64_t)db_int(&rows, 0),
			.id = db_text(&rows, 1),
			.name = db_text(&rows, 2),
			.of = (uint64_t)db_int(&rows, 3),
			.source = db_text(&rows, 4),
			.template = db_text(&rows, 5),
			.base = db_text(&rows, 6),
			.spec = db_text(&rows, 7),
			.created_ms = db_int(&rows, 8),
			.expires_ms = db_int(&rows, 9),
			.bytes = (uint64_t)db_int(&rows, 10),
			.unpacked = (uint64_t)db_int(&rows, 11),
			.digest = db_text(&rows, 12),
			.memory = (uint64_t)db_int(&rows, 13),
			.disk = (uint64_t)db_int(&rows, 14),
			.pids = (uint32_t)db_int(&rows, 15),
			.cpu_milli = (uint32_t)db_int(&rows, 16),
			.files = (uint32_t)db_int(&rows, 17),
			.debug = (uint32_t)db_int(&rows, 18),
			.root = (uint32_t)db_int(&rows, 19),
			.owner = db_text(&rows, 20),
		};

		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}

int store_snapshot_last(struct store *s, uint64_t *ret_seq, struct err *e)
{
	autorows struct db_rows rows;

	if (db_rows_values(s->db, SNAPSHOT_LAST, NULL, 0, &rows, e) < 0 || db_next(&rows, e) < 0)
		return -1;
	*ret_seq = (uint64_t)db_int(&rows, 0);
	return 0;
}
