#include "hub/sandbox/usage.h"

#include <stdlib.h>

#include "base/clock.h"
#include "hub/sandbox/internal.h"

#define SINCE "since this server manages it"

static const struct field rows[] = {
	FIELD(struct usage_view, sandbox, .flags = FIELD_REQUIRED, .doc = "Sandbox id."),
	FIELD_ENUM(struct usage_view, state, hub_sandbox_state_names, .flags = FIELD_REQUIRED,
		   .doc = "State of the sandbox."),
	FIELD(struct usage_view, memory_bytes, .has = FIELD_HAS(struct usage_view, has_memory),
	      .doc = "Memory of its processes and files now, in bytes; absent where the host "
		     "can't tell, as all members here that may be absent."),
	FIELD(struct usage_view, memory_peak_bytes,
	      .has = FIELD_HAS(struct usage_view, has_memory_peak),
	      .doc = "Largest value of memory_bytes so far."),
	FIELD(struct usage_view, memory_limit_bytes,
	      .has = FIELD_HAS(struct usage_view, has_memory),
	      .doc = "Memory limit in bytes; absent where only each process is limited."),
	FIELD(struct usage_view, cpu_ms, .has = FIELD_HAS(struct usage_view, has_cpu),
	      .doc = "Processor time used, in milliseconds."),
	FIELD(struct usage_view, cpus_limit, .has = FIELD_HAS(struct usage_view, has_cpus),
	      .doc = "Number of processors that it may use; absent: all."),
	FIELD(struct usage_view, processes, .has = FIELD_HAS(struct usage_view, has_processes),
	      .doc = "Number of processes and threads now, including its first process."),
	FIELD(struct usage_view, processes_limit, .flags = FIELD_REQUIRED,
	      .doc = "Limit of processes and threads."),
	FIELD(struct usage_view, disk_bytes, .has = FIELD_HAS(struct usage_view, has_disk),
	      .doc = "Part of the memory that its files take, in bytes, without the template."),
	FIELD(struct usage_view, disk_limit_bytes, .flags = FIELD_REQUIRED,
	      .doc = "Limit of disk_bytes."),
	FIELD(struct usage_view, execs, .flags = FIELD_REQUIRED,
	      .doc = "Number of commands run in it " SINCE "."),
	FIELD(struct usage_view, execs_running, .flags = FIELD_REQUIRED,
	      .doc = "Number of commands that are running."),
	FIELD(struct usage_view, bytes_in, .flags = FIELD_REQUIRED,
	      .doc = "Bytes of standard input and of files written, " SINCE "."),
	FIELD(struct usage_view, bytes_out, .flags = FIELD_REQUIRED,
	      .doc = "Bytes of output and of files read, " SINCE "."),
	FIELD(struct usage_view, age_ms, .flags = FIELD_REQUIRED,
	      .doc = "Time since it was created, in milliseconds."),
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
