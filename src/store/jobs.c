/* Rows of programs of sandboxes. */
#include "store/internal.h"

int store_job_put(struct store *s, const struct store_job *j, struct err *e)
{
	return db_put(s->db, JOB_PUT, &job_row, j, e);
}

int store_job_drop(struct store *s, uint64_t sandbox, struct str id, struct err *e)
{
	return db_run(s->db, JOB_DROP, e, DB_INT(sandbox), DB_TEXT(id));
}

int store_jobs_clear(struct store *s, struct err *e)
{
	return db_run_values(s->db, JOB_CLEAR, NULL, 0, e);
}

int store_jobs(struct store *s, int (*each)(void *arg, const struct store_job *j, struct err *e),
	       void *arg, struct err *e)
{
	autorows struct db_rows rows;
	struct store_job j = { 0 };
	int more = db_rows_values(s->db, JOB_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next_row(&rows, &job_row, &j, e)) > 0) {
		j.sandbox_id = db_text(&rows, (int)job_row.n);
		if (each(arg, &j, e) < 0)
			return -1;
	}
	return more;
}
