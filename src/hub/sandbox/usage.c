#include "hub/sandbox/usage.h"

#include <stdlib.h>

#include "base/clock.h"
#include "hub/sandbox/internal.h"

#define SINCE "since this server has it"

static const struct field rows[] = {
	FIELD(struct usage_view, sandbox, .flags = FIELD_REQUIRED, .doc = "Its id."),
	FIELD_ENUM(struct usage_view, state, hub_sandbox_state_names, .flags = FIELD_REQUIRED,
		   .doc = "Whether it runs."),
	FIELD(struct usage_view, memory_bytes, .has = FIELD_HAS(struct usage_view, has_memory),
	      .doc = "Memory of its processes and files now; absent where the host can't tell, as "
		     "all that may be absent here."),
	FIELD(struct usage_view, memory_peak_bytes,
	      .has = FIELD_HAS(struct usage_view, has_memory_peak), .doc = "The most it ever was."),
	FIELD(struct usage_view, memory_limit_bytes,
	      .has = FIELD_HAS(struct usage_view, has_memory),
	      .doc = "The most it may be; absent where it is limited for each process only."),
	FIELD(struct usage_view, cpu_ms, .has = FIELD_HAS(struct usage_view, has_cpu),
	      .doc = "Processor time that it had, in milliseconds."),
	FIELD(struct usage_view, cpus_limit, .has = FIELD_HAS(struct usage_view, has_cpus),
	      .doc = "Processors that it may use; absent: all."),
	FIELD(struct usage_view, processes, .has = FIELD_HAS(struct usage_view, has_processes),
	      .doc = "Processes and threads now, its first process counted."),
	FIELD(struct usage_view, processes_limit, .flags = FIELD_REQUIRED,
	      .doc = "The most there may be."),
	FIELD(struct usage_view, disk_bytes, .has = FIELD_HAS(struct usage_view, has_disk),
	      .doc = "Of the memory what its files take, without those of its template."),
	FIELD(struct usage_view, disk_limit_bytes, .flags = FIELD_REQUIRED,
	      .doc = "The most they may take."),
	FIELD(struct usage_view, execs, .flags = FIELD_REQUIRED,
	      .doc = "Commands that were run in it, " SINCE "."),
	FIELD(struct usage_view, execs_running, .flags = FIELD_REQUIRED,
	      .doc = "Of them those that run."),
	FIELD(struct usage_view, bytes_in, .flags = FIELD_REQUIRED,
	      .doc = "Standard input and files written, " SINCE "."),
	FIELD(struct usage_view, bytes_out, .flags = FIELD_REQUIRED,
	      .doc = "Output of commands and files read, " SINCE "."),
	FIELD(struct usage_view, age_ms, .flags = FIELD_REQUIRED,
	      .doc = "How long it has been there."),
};
const struct field_table usage_view_table = FIELD_TABLE(struct usage_view, rows);

struct usage_question {
	struct hub_sandbox *of[USAGE_MAX]; /* references */
	size_t n;
	hub_sandbox_usage_cb on_done;
	void *arg;
};

static uint64_t age_ms(const struct hub_sandbox *l)
{
	int64_t now = clock_unix_ms();

	return now > l->created_ms ? (uint64_t)(now - l->created_ms) : 0;
}

static struct usage_view view_of(const struct hub_sandbox *l, const struct usage *u)
{
	return (struct usage_view){
		.sandbox = str_of(l->id),
		.state = l->state,
		.has_memory = u->has_memory,
		.has_memory_peak = u->has_memory_peak,
		.has_cpu = u->has_cpu,
		.has_cpus = l->limits.cpu_milli > 0,
		.has_processes = u->has_pids,
		.has_disk = u->has_disk,
		.memory_bytes = u->memory,
		.memory_peak_bytes = u->memory_peak,
		.memory_limit_bytes = l->limits.memory,
		.cpu_ms = (double)u->cpu_us / 1000,
		.cpus_limit = l->limits.cpu_milli / 1000.0,
		.processes = u->pids,
		.processes_limit = l->limits.pids,
		.disk_bytes = u->disk,
		.disk_limit_bytes = l->limits.disk,
		.execs = u->execs,
		.execs_running = u->execs_running,
		.bytes_in = u->bytes_in,
		.bytes_out = u->bytes_out,
		.age_ms = age_ms(l),
	};
}

static void on_usage(void *arg, const struct usage *u, size_t n, const struct err *err)
{
	struct usage_question *q = arg;
	struct usage_view views[USAGE_MAX];

	for (size_t i = 0; i < n; i++)
		views[i] = view_of(q->of[i], &u[i]);
	q->on_done(q->arg, err ? NULL : views, n, err);
	for (size_t i = 0; i < q->n; i++)
		hub_sandbox_unref(q->of[i]);
	free(q);
}

void hub_sandbox_usage_start(struct box *box, struct hub_sandbox *const *of, size_t n,
			     hub_sandbox_usage_cb on_done, void *arg)
{
	struct usage_question *q = calloc(1, sizeof(*q));
	struct sandbox *machines[USAGE_MAX];

	assert(n > 0 && n <= USAGE_MAX);
	if (!q)
		abort(); /* out of memory: no callback could report it */
	q->n = n;
	q->on_done = on_done;
	q->arg = arg;
	for (size_t i = 0; i < n; i++) {
		q->of[i] = hub_sandbox_ref(of[i]);
		machines[i] = of[i]->box;
	}
	usage_start(box, machines, n, on_usage, q);
}
