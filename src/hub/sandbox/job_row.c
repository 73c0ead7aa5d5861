/* A job in the background as a row of the registry, and back. */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"

/* ---- writing ------------------------------------------------------------------------------- */

int job_save(struct job *j, struct err *e)
{
	struct spool_stats output;
	struct store_job row = {
		.sandbox = j->hs->seq,
		.id = str_of(j->id),
		.command = str_of(j->command),
		.state = str_of(job_state_names[j->state]),
		.started_ms = j->started_ms,
		.ended_ms = j->ended_ms,
		.exit_code = j->result.exit_code,
		.signal = j->result.signal,
		.hit_memory = j->result.hit_memory,
		.hit_pids = j->result.hit_pids,
		.wall_us = j->result.wall_us,
		.code = j->why.code ? str_of(err_info(j->why.code)->name) : STR_NONE,
		.why = j->why.code ? str_of(j->why.msg) : STR_NONE,
	};

	if (!j->all->store)
		return 0;
	spool_stats(j->output, &output);
	memcpy(row.bytes, output.came, sizeof(row.bytes));
	if (store_job_put(j->all->store, &row, e) < 0)
		return -1;
	j->stored = true;
	j->row_of = j->hs->seq;
	if (!j->all->batch)
		hub_sandboxes_written(j->all);
	return 0;
}

void job_drop_row(struct job *j)
{
	struct err e;

	if (!j->stored)
		return;
	j->stored = false;
	if (store_job_drop(j->all->store, j->row_of, str_of(j->id), &e) < 0)
		log_warn("exec %s of sandbox %s is still in the registry: %s", j->id, j->sandbox,
			 e.msg);
}

/* ---- reading ------------------------------------------------------------------------------- */

static int read_state(struct job *j, const struct store_job *r, struct err *e)
{
	size_t state = 0;

	while (state < JOB_STATES && !str_is(r->state, job_state_names[state]))
		state++;
	if (state == JOB_STATES)
		return err_set(e, ERR_STORE_CORRUPT, "the registry has an exec that can't be");
	j->state = (enum job_state)state;
	if (j->state == JOB_RUNNING) {
		j->state = JOB_LOST;
		j->ended_ms = clock_unix_ms();
		err_set(&j->why, ERR_GUEST,
			"the hub that ran it ended or was killed, and it with it");
	} else if (r->code.p) {
		err_set(&j->why, hub_sandbox_code_of(r->code), "%.*s", STR_ARG(r->why));
	}
	return 0;
}

static int load_one(void *arg, const struct store_job *r, struct err *e)
{
	struct hub_sandboxes *all = arg;
	struct hub_sandbox *l = hub_sandboxes_get(all, r->sandbox_id);
	struct job *j;

	if (!l || l->seq != r->sandbox || sandbox_id_check(r->id, e) < 0)
		return err_set(e, ERR_STORE_CORRUPT, "the registry has an exec that can't be");
	j = job_new(l, r->id, r->command, true, 0, e);
	if (!j)
		return -1;
	j->started_ms = r->started_ms;
	j->ended_ms = r->ended_ms;
	j->ended_at = clock_ms();
	j->result = (struct exec_result){
		.end = EXEC_EXITED,
		.exit_code = r->exit_code,
		.signal = r->signal,
		.hit_memory = r->hit_memory,
		.hit_pids = r->hit_pids,
		.wall_us = r->wall_us,
	};
	j->stored = true;
	j->row_of = r->sandbox;
	for (unsigned i = 0; i < SPOOL_STREAMS; i++)
		spool_skip(j->output, i, r->bytes[i]);
	spool_end(j->output);
	if (read_state(j, r, e) < 0) {
		job_unref(j);
		return -1;
	}
	jobs_list(j);
	jobs_remember(j);
	return 0;
}

int jobs_load(struct hub_sandboxes *all, struct err *e)
{
	return all->store ? store_jobs(all->store, load_one, all, e) : 0;
}

void jobs_settle(struct hub_sandboxes *all)
{
	struct err e;

	if (all->store && store_jobs_clear(all->store, &e) < 0)
		log_warn("execs of sandboxes that have ended are still in the registry: %s", e.msg);
	for (struct hub_sandbox *l = all->oldest; l; l = l->newer) {
		for (struct job *j = l->jobs.newest; j; j = j->older) {
			if (j->state == JOB_LOST && job_save(j, &e) < 0)
				log_warn("exec %s of sandbox %s: %s", j->id, j->sandbox, e.msg);
		}
		jobs_trim(l);
	}
}
