#include "op/usage.h"

#include <stdlib.h>

#include "base/clock.h"
#include "call/call.h"

/* ---- sandbox.usage ------------------------------------------------------------------------- */

static void usage_on_one(void *arg, const struct usage_view *v, size_t n, const struct err *err)
{
	if (err)
		call_fail(arg, err);
	else
		call_answer(arg, v);
}

static void sandbox_usage_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, ((const struct op_sandbox *)request)->sandbox,
						 &e);

	if (l && hub_sandbox_machine(l, &e))
		hub_sandbox_usage_start(call_box(c), &l, 1, usage_on_one, c);
	else
		call_fail(c, &e);
}

const struct op sandbox_usage_op = {
	.action = "sandbox.usage",
	.doc = "Returns what a sandbox uses of its limits now, even while it is paused.",
	.effect = OP_READ,
	.flags = OP_NO_WAKE,
	.request = &op_sandbox_table,
	.target = OP_TARGET(struct op_sandbox, sandbox),
	.result = &usage_view_table,
	.run = sandbox_usage_run,
};

/* ---- hub.usage ----------------------------------------------------------------------------- */

struct all_request {
	uint32_t limit;
	struct str cursor;
};
static const struct field all_fields[] = {
	FIELD(struct all_request, limit, .min = 1, .max = USAGE_MAX, .def = DEFAULT_INT(USAGE_MAX),
	      .doc = "Page size."),
	CURSOR_ROW(struct all_request),
};
static const struct field_table all_table = FIELD_TABLE(struct all_request, all_fields);

static const struct field usages_fields[] = {
	FIELD_OBJECTS(struct usages_view, sandboxes, usage_view_table, .flags = FIELD_REQUIRED,
		      .doc = "Running and paused sandboxes, in order of creation."),
	NEXT_CURSOR_ROW(struct usages_view),
};
static const struct field_table usages_table = FIELD_TABLE(struct usages_view, usages_fields);

struct usage_listing {
	struct call *call;
	struct hub_sandbox *of[USAGE_MAX];
	size_t n, max;
	uint64_t after; /* of the last one that was taken */
	bool more;
	char cursor[CURSOR_MAX];
};

/* Those behind `after` that have a machine, until there is one more than the page takes. */
static void usage_collect(struct usage_listing *l)
{
	enum { STEP = 256 };
	struct hub_sandbox *step[STEP];
	uint64_t after = l->after;
	size_t got = STEP;

	while (got == STEP && !l->more) {
		got = hub_sandboxes_list(call_sandboxes(l->call), after, step, STEP);
		for (size_t i = 0; i < got && !l->more; i++) {
			struct hub_sandbox_info info;
			struct err e;

			hub_sandbox_info(step[i], &info);
			after = info.seq;
			if (!call_sees(l->call, step[i]) || !hub_sandbox_machine(step[i], &e))
				continue;
			l->more = l->n == l->max;
			if (l->more)
				continue;
			l->of[l->n++] = step[i];
			l->after = info.seq;
		}
	}
}

static void usage_on_all(void *arg, const struct usage_view *v, size_t n, const struct err *err)
{
	struct usage_listing *l = arg;
	struct usages_view all = { .sandboxes = { v, n } };

	if (err) {
		call_fail(l->call, err);
		return;
	}
	if (l->more) {
		cursor_text(l->cursor, l->after);
		all.next_cursor = str_of(l->cursor);
	}
	call_answer(l->call, &all);
}

static void hub_usage_run(struct call *c, const void *request)
{
	const struct all_request *q = request;
	struct err e = ERR_INIT;
	struct usage_listing *l = arena_alloc(call_arena(c), sizeof(*l), &e);

	if (l)
		*l = (struct usage_listing){ .call = c, .max = q->limit };
	if (!l || (q->cursor.p && cursor_read(q->cursor, &l->after, &e) < 0)) {
		call_fail(c, &e);
		return;
	}
	usage_collect(l);
	if (l->n > 0)
		hub_sandbox_usage_start(call_box(c), l->of, l->n, usage_on_all, l);
	else
		usage_on_all(l, NULL, 0, NULL);
}

const struct op hub_usage_op = {
	.action = "hub.usage",
	.doc = "Returns what all sandboxes use now, in pages.",
	.effect = OP_READ,
	.request = &all_table,
	.result = &usages_table,
	.run = hub_usage_run,
};

/* ---- sandbox.vitals ------------------------------------------------------------------------ */

enum { INTERVAL_MAX = 3600 };

struct vitals_request {
	struct str sandbox;
	uint32_t interval_seconds;
};
static const struct field vitals_fields[] = {
	OP_SANDBOX_ROW(struct vitals_request),
	FIELD(struct vitals_request, interval_seconds, .max = INTERVAL_MAX,
	      .doc = "Seconds between two samples; 0: one second."),
};
static const struct field_table vitals_table = FIELD_TABLE(struct vitals_request, vitals_fields);

#define S struct vitals_sample
static const struct field sample_fields[] = {
	FIELD(S, sampled_at_unix, .flags = FIELD_REQUIRED,
	      .doc = "When it was measured, in seconds since 1970."),
	FIELD(S, cpu_percent, .has = FIELD_HAS(S, has_percent),
	      .doc = "Percent of one processor, since the previous sample; absent in the first."),
	FIELD(S, memory, .has = FIELD_HAS(S, has_memory),
	      .doc = "Memory of its processes and files, in bytes."),
	FIELD(S, memory_total, .flags = FIELD_REQUIRED,
	      .doc = "Memory limit in bytes; of each process, if memory is absent."),
	FIELD(S, processes, .has = FIELD_HAS(S, has_processes),
	      .doc = "Number of processes and threads."),
	FIELD(S, disk, .has = FIELD_HAS(S, has_disk), .doc = "Bytes that its files take."),
	FIELD(S, disk_total, .flags = FIELD_REQUIRED, .doc = "Limit of disk in bytes."),
};
#undef S
static const struct field_table sample_table = FIELD_TABLE(struct vitals_sample, sample_fields);

struct vitals {
	uv_timer_t timer;
	struct call *call;
	struct str id;
	uint32_t generation;
	bool asking, over;
	bool has_last;
	double last_cpu_ms;
	uint64_t last_ns;
};

static void vitals_free(uv_handle_t *h)
{
	free(h->data);
}

/* err NULL: the client has gone, or the server goes. */
static void vitals_end(struct vitals *v, const struct err *err)
{
	struct call *c = v->call;

	uv_close((uv_handle_t *)&v->timer, vitals_free);
	if (err)
		call_fail(c, err);
	else
		call_answer(c, NULL);
}

static void vitals_stop(void *data)
{
	struct vitals *v = data;

	v->over = true;
	if (!v->asking)
		vitals_end(v, NULL);
}

static void vitals_send(struct vitals *v, const struct usage_view *u)
{
	uint64_t now = clock_ns();
	const struct vitals_sample s = {
		.sampled_at_unix = clock_unix_ms() / 1000,
		.has_percent = u->has_cpu && v->has_last && now > v->last_ns,
		.cpu_percent = v->has_last && now > v->last_ns
				     ? (u->cpu_ms - v->last_cpu_ms) * 1e8 /
					       (double)(now - v->last_ns)
				     : 0,
		.has_memory = u->has_memory,
		.memory = u->memory_bytes,
		.memory_total = u->memory_limit_bytes,
		.has_processes = u->has_processes,
		.processes = u->processes,
		.has_disk = u->has_disk,
		.disk = u->disk_bytes,
		.disk_total = u->disk_limit_bytes,
	};

	v->has_last = u->has_cpu;
	v->last_cpu_ms = u->cpu_ms;
	v->last_ns = now;
	call_send(v->call, &s);
}

static void vitals_on_usage(void *arg, const struct usage_view *u, size_t n, const struct err *err)
{
	struct vitals *v = arg;

	v->asking = false;
	if (v->over || err)
		vitals_end(v, v->over ? NULL : err);
	else
		vitals_send(v, u);
}

static struct hub_sandbox *vitals_sandbox(struct vitals *v, struct err *e)
{
	struct hub_sandbox *l = call_hub_sandbox(v->call, v->id, e);
	struct hub_sandbox_info i;

	if (!l || !hub_sandbox_machine(l, e))
		return NULL;
	hub_sandbox_info(l, &i);
	if (v->generation == 0)
		v->generation = i.generation;
	if (v->generation == i.generation)
		return l;
	err_set(e, ERR_SANDBOX_NOT_FOUND, "the sandbox has ended, and another has its id");
	return NULL;
}

/* A slow reader misses samples, but never the newest one. */
static void vitals_on_tick(uv_timer_t *t)
{
	struct vitals *v = t->data;
	struct err e = ERR_INIT;
	struct hub_sandbox *l;

	if (v->asking || call_full(v->call))
		return;
	l = vitals_sandbox(v, &e);
	if (!l) {
		vitals_end(v, &e);
		return;
	}
	v->asking = true;
	hub_sandbox_usage_start(call_box(v->call), &l, 1, vitals_on_usage, v);
}

static void vitals_on_room(void *data)
{
}

static void sandbox_vitals_run(struct call *c, const void *request)
{
	const struct vitals_request *q = request;
	uint64_t ms = q->interval_seconds > 0 ? q->interval_seconds * 1000ull : 1000;
	struct vitals *v = calloc(1, sizeof(*v));
	struct err e = ERR_INIT;

	if (!v) {
		err_set(&e, ERR_LIMIT, "out of memory");
		call_fail(c, &e);
		return;
	}
	v->call = c;
	v->id = q->sandbox;
	if (!vitals_sandbox(v, &e) || call_waits(c, &e) < 0 ||
	    call_open(c, vitals_on_room, v, &e) < 0) {
		free(v);
		call_fail(c, &e);
		return;
	}
	uv_timer_init(call_loop(c), &v->timer);
	v->timer.data = v;
	uv_timer_start(&v->timer, vitals_on_tick, 0, ms);
	call_on_cancel(c, vitals_stop, v);
}

/* Only for doors that take a stream. */
const struct op sandbox_vitals_op = {
	.action = "sandbox.vitals",
	.doc = "Streams what a sandbox uses, sample by sample.",
	.effect = OP_READ,
	.flags = OP_WAITS | OP_NO_WAKE,
	.request = &vitals_table,
	.target = OP_TARGET(struct vitals_request, sandbox),
	.event = &sample_table,
	.run = sandbox_vitals_run,
};
