/* Rows of programs of sandboxes. */
#include "store/internal.h"

int store_job_put(struct store *s, const struct store_job *j, struct err *e)
{
	return db_run(s->db, JOB_PUT, e, DB_INT(j->sandbox), DB_TEXT(j->id), DB_TEXT(j->command),
		      DB_TEXT(j->state), DB_INT(j->started_ms), DB_INT(j->ended_ms),
		      DB_INT(j->exit_code), DB_INT(j->signal), DB_INT(j->hit_memory),
		      DB_INT(j->hit_pids), DB_INT(j->wall_us), DB_INT(j->bytes[0]),
		      DB_INT(j->bytes[1]), DB_TEXT(j->code), DB_TEXT(j->why));
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
	int more = db_rows_values(s->db, JOB_ALL, NULL, 0, &rows, e);

	while (more >= 0 && (more = db_next(&rows, e)) > 0) {
		const struct store_job j = {
			.sandbox = (uint64_t)db_int(&rows, 0),
			.sandbox_id = db_text(&rows, 1),
			.id = db_text(&rows, 2),
			.command = db_text(&rows, 3),
			.state = db_text(&rows, 4),
			.started_ms = db_int(&rows, 5),
			.ended_ms = db_int(&rows, 6),
			.exit_code = (int)db_int(&rows, 7),
			.signal = (int)db_int(&rows, 8),
			.hit_memory = db_int(&rows, 9) != 0,
			.hit_pids = db_int(&rows, 10) != 0,
			.wall_us = (uint64_t)db_int(&rows, 11),
			.bytes = { (uint64_t)db_int(&rows, 12), (uint64_t)db_int(&rows, 13) },
			.code = db_text(&rows, 14),
			.why = db_text(&rows, 15),
		};

		if (each(arg, &j, e) < 0)
			return -1;
	}
	return more;
}
