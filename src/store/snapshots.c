/* Rows of snapshots. */
#include "store/internal.h"

int store_snapshot_add(struct store *s, const struct store_snapshot *r, uint64_t spec_of,
		       struct err *e)
{
	autobuf struct buf spec = BUF_INIT(SPEC_MAX);
	struct store_snapshot row = *r;

	if (!row.owner.p)
		row.owner = STR_LIT("");
	return store_spec_of(s, spec_of, &row.spec, &spec, e) < 0
		     ? -1
		     : db_put(s->db, SNAPSHOT_ADD, &snapshot_row, &row, e);
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
	struct store_snapshot r = { 0 };
	int more = db_rows(s->db, SNAPSHOT_ALL, &rows, e, DB_INT(seq));

	while (more >= 0 && (more = db_next_row(&rows, &snapshot_row, &r, e)) > 0) {
		if (each(arg, &r, e) < 0)
			return -1;
	}
	return more;
}

int store_snapshot_last(struct store *s, uint64_t *ret_seq, struct err *e)
{
	return store_number(s, SNAPSHOT_LAST, ret_seq, e);
}
