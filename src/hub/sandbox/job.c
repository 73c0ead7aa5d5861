#include "hub/sandbox/job.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"

/* Blocks of output in memory, besides the one being filled. */
enum { MEMORY_WITH_FILE = 4, MEMORY_ALONE = 1 };

const char *const job_state_names[JOB_STATES] = {
	[JOB_RUNNING] = "running",     [JOB_EXITED] = "exited", [JOB_SIGNALED] = "signaled",
	[JOB_TIMED_OUT] = "timed_out", [JOB_FAILED] = "failed", [JOB_LOST] = "lost",
};
const char *const job_stream_names[SPOOL_STREAMS] = { "stdout", "stderr" };

struct job *job_ref(struct job *j)
{
	j->refs++;
	return j;
}

void job_unref(struct job *j)
{
	if (!j || --j->refs)
		return;
	spool_unref(j->output);
	free(j);
}

struct exec *job_exec(const struct job *j)
{
	return j->exec;
}

struct spool *job_output(const struct job *j)
{
	return j->output;
}

void job_info(const struct job *j, struct job_info *ret)
{
	*ret = (struct job_info){
		.id = str_of(j->id),
		.sandbox = str_of(j->sandbox),
		.command = str_of(j->command),
		.state = j->state,
		.background = j->background,
		.terminal = j->terminal,
		.reads = j->exec && exec_reads(j->exec),
		.started_ms = j->started_ms,
		.ended_ms = j->ended_ms,
		.has_result = j->state == JOB_EXITED || j->state == JOB_SIGNALED ||
			      j->state == JOB_TIMED_OUT,
		.result = j->result,
		.why = j->why.code ? &j->why : NULL,
	};
	spool_stats(j->output, &ret->output);
}

/* ---- while it runs ------------------------------------------------------------------------- */

static void job_hold(struct job *j, bool held)
{
	if (!j->exec)
		return;
	exec_hold(j->exec, EXEC_STDOUT, held);
	exec_hold(j->exec, EXEC_STDERR, held);
}

static void on_room(void *arg)
{
	job_hold(arg, false);
}

static void on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
	struct job *j = arg;

	if (spool_add(j->output, stream == EXEC_STDOUT ? 0 : 1, (struct str){ p, n }))
		job_hold(j, true);
	if (j->also)
		j->also->on_output(j->also_arg, stream, p, n);
}

static enum job_state state_of(const struct exec_result *result, const struct err *err)
{
	static const enum job_state states[] = {
		[EXEC_EXITED] = JOB_EXITED,
		[EXEC_SIGNALED] = JOB_SIGNALED,
		[EXEC_TIMED_OUT] = JOB_TIMED_OUT,
	};

	if (result)
		return states[result->end];
	return err->code == ERR_GUEST || err->code == ERR_CANCELLED ? JOB_LOST : JOB_FAILED;
}

static void leave_running(struct job *j)
{
	j->exec = NULL;
	if (j->background) {
		j->hs->jobs.running--;
		j->all->jobs.running--;
	}
	hub_sandbox_busy(j->hs, -1);
	if (!j->listed)
		j->hs = NULL;
}

/* Set the final state before waking readers. */
/* Whether that is why the sandbox ends, and its programs with it. */
static bool is_over_budget(const struct hub_sandbox *l, struct err *ret)
{
	if (!l || !l->overspent || hub_sandbox_check_budget(l, ret) == 0)
		return false;
	ret->code = ERR_GUEST;
	err_wrap(ret, "sandbox %s ended", l->id);
	return true;
}

static void on_exit_(void *arg, const struct exec_result *result, const struct err *err)
{
	struct job *j = arg;
	struct err over = ERR_INIT, e;

	if (err && is_over_budget(j->hs, &over))
		err = &over;
	j->state = state_of(result, err);
	j->ended_ms = clock_unix_ms();
	j->ended_at = clock_ms();
	if (result)
		j->result = *result;
	else
		j->why = *err;
	leave_running(j);
	spool_end(j->output);
	if (j->listed && j->stored && !j->hs->ending && job_save(j, &e) < 0)
		log_warn("exec %s of sandbox %s: its end is not in the registry: %s", j->id,
			 j->sandbox, e.msg);
	if (j->listed) {
		jobs_remember(j);
		jobs_trim(j->hs);
	}
	if (j->also)
		j->also->on_exit(j->also_arg, result, err);
	job_unref(j);
}

static const struct exec_events events = { .on_output = on_output, .on_exit = on_exit_ };

/* ---- the start ----------------------------------------------------------------------------- */

/* The start of a text, without a partial character at its end. */
static void job_cut(char *to, size_t size, struct str text)
{
	size_t n = text.n < size ? text.n : size - 1;

	while (n < text.n && n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
		n--;
	memcpy(to, text.p ? text.p : "", n);
	to[n] = '\0';
}

struct job *job_new(struct hub_sandbox *l, struct str id, struct str command, bool background,
		    uint64_t keep, struct err *e)
{
	struct job *j = calloc(1, sizeof(*j));
	const struct spool_options o = {
		.keep = keep,
		.memory = keep ? MEMORY_WITH_FILE : MEMORY_ALONE,
		.on_room = on_room,
		.arg = j,
	};

	if (!j)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	j->refs = 1;
	j->all = l->all;
	j->hs = l;
	j->background = background;
	j->started_ms = clock_unix_ms();
	snprintf(j->id, sizeof(j->id), "%.*s", STR_ARG(id));
	snprintf(j->sandbox, sizeof(j->sandbox), "%s", l->id);
	job_cut(j->command, sizeof(j->command), command);
	j->output = spool_new(&l->all->jobs.spools, &o, e);
	if (j->output)
		return j;
	free(j);
	return NULL;
}

static struct job *job_get(const struct hub_sandbox *l, struct str id)
{
	struct job *j = l->jobs.newest;

	while (j && !str_is(id, j->id))
		j = j->older;
	return j;
}

static int job_check(const struct hub_sandbox *l, const struct job_spec *spec, struct str id,
		     struct err *e)
{
	if (sandbox_id_check(id, e) < 0)
		return err_wrap(e, "exec_id");
	if (job_get(l, id))
		return err_set(e, ERR_NAME_TAKEN, "sandbox %s has an exec %.*s already", l->id,
			       STR_ARG(id));
	if (spec->background && l->jobs.running >= JOBS_RUNNING_MAX)
		return err_set(e, ERR_LIMIT, "%d execs run in the background of sandbox %s",
			       JOBS_RUNNING_MAX, l->id);
	if (spec->background && l->all->jobs.running >= JOBS_RUNNING_ALL_MAX)
		return err_set(e, ERR_LIMIT, "%d execs run in the background",
			       JOBS_RUNNING_ALL_MAX);
	return 0;
}

/* Write the row first: it may hold a job that no client knows, but never the other way round. */
static int launch(struct job *j, struct sandbox *sb, const struct job_spec *spec, struct err *e)
{
	if (j->background && job_save(j, e) < 0)
		return -1;
	j->exec = exec_start(sb, &spec->exec, &events, j, e);
	if (j->exec)
		return 0;
	job_drop_row(j);
	return -1;
}

struct job *job_start(struct hub_sandbox *l, const struct job_spec *spec, struct err *e)
{
	struct sandbox *sb = hub_sandbox_sandbox(l, e);
	char made[ID_MAX];
	struct str id = spec->id;
	struct job *j;

	if (!id.p) {
		id_make(made, "exec");
		id = str_of(made);
	}
	if (!sb || job_check(l, spec, id, e) < 0)
		return NULL;
	j = job_new(l, id, spec->command, spec->background, spec->keep, e);
	if (!j)
		return NULL;
	j->terminal = spec->exec.terminal != NULL;
	j->also = spec->events;
	j->also_arg = spec->arg;
	if (launch(j, sb, spec, e) < 0) {
		job_unref(j);
		return NULL;
	}
	hub_sandbox_busy(l, 1);
	if (j->background) {
		l->jobs.running++;
		l->all->jobs.running++;
	}
	jobs_list(job_ref(j)); /* the first reference is the exec's */
	return j;
}

/* ---- for others ---------------------------------------------------------------------------- */

struct job *job_find(struct hub_sandbox *l, struct str id, struct err *e)
{
	struct job *j = job_get(l, id);

	if (!j)
		err_set(e, ERR_PROCESS_NOT_FOUND, "sandbox %s has no exec '%.*s'", l->id,
			id.n > SANDBOX_ID_MAX ? SANDBOX_ID_MAX : (int)id.n, id.p ? id.p : "");
	return j;
}

size_t job_list(struct hub_sandbox *l, struct job **ret, size_t max)
{
	size_t n = 0;

	for (struct job *j = l->jobs.newest; j && n < max; j = j->older)
		ret[n++] = j;
	return n;
}
