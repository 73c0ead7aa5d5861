/*
 * What sandboxes use: /v1/sandboxes/{id}/usage and /v1/vitals of one, /v1/usage of all that have a machine, in pages, and Vitals over
 * Connect, which says it again and again. To be looked at is no use of a sandbox.
 */
#include "door/connect/connect.h"
#include "base/clock.h"
#include "hub/sandbox/usage.h"
#include "op/page.h"

#include <stdlib.h>

/* ---- one ----------------------------------------------------------------------------------- */

struct one_params {
	struct id_path path;
};
static const struct field one_parts[] = { API_ID_PATH(struct one_params) };
static const struct field_table one_input = FIELD_TABLE(struct one_params, one_parts);

struct now_body {
	struct str sandbox;
};
static const struct field now_fields[] = { API_SANDBOX_ROW(struct now_body) };
static const struct field_table now_body_table = FIELD_TABLE(struct now_body, now_fields);

struct now_params {
	struct now_body body;
};
static const struct field now_parts[] = {
	FIELD_OBJECT(struct now_params, body, now_body_table, .flags = FIELD_REQUIRED,
		     .doc = "The sandbox."),
};
static const struct field_table now_input = FIELD_TABLE(struct now_params, now_parts);

static void on_one(void *arg, const struct usage_view *v, size_t n, const struct err *err)
{
	if (err)
		call_fail(arg, err);
	else
		call_answer(arg, v);
}

static void answer_one(struct call *c, struct str id)
{
	struct err e = ERR_INIT;
	struct life *l = call_life(c, id, &e);

	if (l && life_machine(l, &e))
		life_usage_start(call_box(c), &l, 1, on_one, c);
	else
		call_fail(c, &e);
}

static void run_one(struct call *c, const void *params)
{
	answer_one(c, ((const struct one_params *)params)->path.id);
}

static void run_now(struct call *c, const void *params)
{
	answer_one(c, ((const struct now_params *)params)->body.sandbox);
}

/* ---- all ----------------------------------------------------------------------------------- */

struct all_query {
	uint32_t limit;
	struct str cursor;
};
static const struct field query_fields[] = {
	FIELD(struct all_query, limit, .min = 1, .max = USAGE_MAX, .def = DEFAULT_INT(USAGE_MAX),
	      .doc = "How many at once."),
	CURSOR_ROW(struct all_query),
};
static const struct field_table query_table = FIELD_TABLE(struct all_query, query_fields);

struct all_params {
	struct all_query query;
};
static const struct field all_parts[] = {
	FIELD_OBJECT(struct all_params, query, query_table, .doc = "Which of them."),
};
static const struct field_table all_input = FIELD_TABLE(struct all_params, all_parts);

struct all_view {
	struct {
		const struct usage_view *p;
		size_t n;
	} sandboxes;
	struct str next_cursor;
};
static const struct field all_fields[] = {
	FIELD_OBJECTS(struct all_view, sandboxes, usage_view_table, .flags = FIELD_REQUIRED,
		      .doc = "Those that run or are paused, in order of creation."),
	NEXT_CURSOR_ROW(struct all_view),
};
static const struct field_table all_table = FIELD_TABLE(struct all_view, all_fields);

struct listing {
	struct call *call;
	struct life *of[USAGE_MAX];
	size_t n, max;
	uint64_t after; /* of the last one that was taken */
	bool more;
	char cursor[CURSOR_MAX];
};

/* Those behind `after` that have a machine, until there is one more than the page takes. */
static void collect(struct listing *l)
{
	enum { STEP = 256 };
	struct life *step[STEP];
	uint64_t after = l->after;
	size_t got = STEP;

	while (got == STEP && !l->more) {
		got = lives_list(call_lives(l->call), after, step, STEP);
		for (size_t i = 0; i < got && !l->more; i++) {
			struct life_info info;
			struct err e;

			life_info(step[i], &info);
			after = info.seq;
			if (!call_sees(l->call, step[i]) || !life_machine(step[i], &e))
				continue;
			l->more = l->n == l->max;
			if (l->more)
				continue;
			l->of[l->n++] = step[i];
			l->after = info.seq;
		}
	}
}

static void on_all(void *arg, const struct usage_view *v, size_t n, const struct err *err)
{
	struct listing *l = arg;
	struct all_view all = { .sandboxes = { v, n } };

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

static void run_all(struct call *c, const void *params)
{
	const struct all_query *q = &((const struct all_params *)params)->query;
	struct err e = ERR_INIT;
	struct listing *l = arena_alloc(call_arena(c), sizeof(*l), &e);

	if (l)
		*l = (struct listing){ .call = c, .max = q->limit };
	if (!l || (q->cursor.p && cursor_read(q->cursor, &l->after, &e) < 0)) {
		call_fail(c, &e);
		return;
	}
	collect(l);
	if (l->n > 0)
		life_usage_start(call_box(c), l->of, l->n, on_all, l);
	else
		on_all(l, NULL, 0, NULL);
}

/* ---- again and again ------------------------------------------------------------------------- */

enum { INTERVAL_MAX = 3600 };

struct vitals_body {
	int32_t interval_seconds;
};
static const struct field vitals_body_fields[] = {
	FIELD_NAMED(struct vitals_body, interval_seconds, "intervalSeconds", .min = 0,
		    .max = INTERVAL_MAX, .doc = "Between two samples; 0: one second."),
};
static const struct field_table vitals_body_table = FIELD_TABLE(struct vitals_body,
								vitals_body_fields);

struct vitals_params {
	struct connect_header header;
	struct vitals_body body;
};
static const struct field vitals_parts[] = {
	CONNECT_HEADER(struct vitals_params),
	CONNECT_BODY(struct vitals_params, vitals_body_table, "How often."),
};
static const struct field_table vitals_input = FIELD_TABLE(struct vitals_params, vitals_parts);

struct sample {
	int64_t sampled_at_unix;
	bool has_percent, has_memory, has_processes, has_disk;
	double cpu_percent;
	uint64_t memory, memory_total, processes, disk, disk_total;
};
static const struct field sample_fields[] = {
	FIELD_NAMED(struct sample, sampled_at_unix, "sampledAtUnix", .flags = FIELD_REQUIRED,
		    .doc = "When, in seconds since 1970."),
	FIELD_NAMED(
		struct sample, cpu_percent, "cpuPercent",
		.has = FIELD_HAS(struct sample, has_percent),
		.doc = "Of one processor, since the sample before; absent in the first, and where the "
		       "host can't tell, as all that may be absent here."),
	FIELD_NAMED(struct sample, memory, "memUsedBytes",
		    .has = FIELD_HAS(struct sample, has_memory),
		    .doc = "Memory of its processes and files."),
	FIELD_NAMED(struct sample, memory_total, "memTotalBytes", .flags = FIELD_REQUIRED,
		    .doc = "The most it may be."),
	FIELD_NAMED(struct sample, processes, "processCount",
		    .has = FIELD_HAS(struct sample, has_processes),
		    .doc = "Processes and threads, its first process counted."),
	FIELD_NAMED(struct sample, disk, "diskUsedBytes", .has = FIELD_HAS(struct sample, has_disk),
		    .doc = "What its files take."),
	FIELD_NAMED(struct sample, disk_total, "diskTotalBytes", .flags = FIELD_REQUIRED,
		    .doc = "The most they may take."),
};
static const struct field_table sample_table = FIELD_TABLE(struct sample, sample_fields);

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

static void free_vitals(uv_handle_t *h)
{
	free(h->data);
}

/* err NULL: the client has gone, or the server goes. */
static void vitals_end(struct vitals *v, const struct err *err)
{
	struct call *c = v->call;

	uv_close((uv_handle_t *)&v->timer, free_vitals);
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

static void say_sample(struct vitals *v, const struct usage_view *u)
{
	uint64_t now = clock_ns();
	const struct sample s = {
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
	ask_send(v->call, &sample_table, &s);
}

static void on_vitals(void *arg, const struct usage_view *u, size_t n, const struct err *err)
{
	struct vitals *v = arg;

	v->asking = false;
	if (v->over || err)
		vitals_end(v, v->over ? NULL : err);
	else
		say_sample(v, u);
}

static struct life *vitals_life(struct vitals *v, struct err *e)
{
	struct life *l = call_life(v->call, v->id, e);
	struct life_info i;

	if (!l || !life_machine(l, e))
		return NULL;
	life_info(l, &i);
	if (v->generation == 0)
		v->generation = i.generation;
	if (v->generation == i.generation)
		return l;
	err_set(e, ERR_SANDBOX_NOT_FOUND, "the sandbox has ended, and another has its id");
	return NULL;
}

/* Who does not read misses samples, not the newest one. */
static void on_tick(uv_timer_t *t)
{
	struct vitals *v = t->data;
	struct err e = ERR_INIT;
	struct life *l;

	if (v->asking || ask_stream_full(v->call))
		return;
	l = vitals_life(v, &e);
	if (!l) {
		vitals_end(v, &e);
		return;
	}
	v->asking = true;
	life_usage_start(call_box(v->call), &l, 1, on_vitals, v);
}

static void on_room(void *data)
{
}

static void run_vitals(struct call *c, const void *params)
{
	const struct vitals_params *p = params;
	uint64_t ms = p->body.interval_seconds > 0 ? (uint64_t)p->body.interval_seconds * 1000
						   : 1000;
	struct vitals *v = calloc(1, sizeof(*v));
	struct err e = ERR_INIT;

	if (!v) {
		err_set(&e, ERR_LIMIT, "out of memory");
		call_fail(c, &e);
		return;
	}
	v->call = c;
	v->id = p->header.sandbox;
	if (!vitals_life(v, &e) || ask_stream_start(c, on_room, v, &e) < 0) {
		free(v);
		call_fail(c, &e);
		return;
	}
	uv_timer_init(call_loop(c), &v->timer);
	v->timer.data = v;
	uv_timer_start(&v->timer, on_tick, 0, ms);
	ask_wait(c);
	call_on_cancel(c, vitals_stop, v);
	ask_on_drain(c, vitals_stop, v);
}

/* ---- the rows ------------------------------------------------------------------------------ */

static const struct api_route rows[] = {
	{ .id = "sandboxes.usage",
	  .op =
		  &(const struct op){
			  .action = "sandbox.usage",
			  .doc = "What a sandbox uses of its limits now, also while it is paused.",
			  .effect = OP_READ,
			  .request = &one_input,
			  .target = OP_TARGET(struct one_params, path.id),
			  .result = &usage_view_table,
			  .run = run_one },
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/usage",
	  .errors = API_MAY_SANDBOX | API_MAY(EXEC_TIMEOUT) },
	{ .id = "vitals",
	  .op = &(const struct
		  op){ .action = "sandbox.vitals",
		       .doc = "What a sandbox uses of its limits now, as sandboxes.usage has it; the "
			      "body names it.",
		       .effect = OP_READ,
		       .flags = OP_WAITS,
		       .request = &now_input,
		       .target = OP_TARGET(struct now_params, body.sandbox),
		       .result = &usage_view_table,
		       .run = run_now },
	  .method = HTTP_POST,
	  .path = "/v1/vitals",
	  .errors = API_MAY_SANDBOX | API_MAY(EXEC_TIMEOUT) },
	{ .id = "usage",
	  .op = &(const struct op){ .action = "hub.usage",
				    .doc = "What all sandboxes use now, in pages.",
				    .effect = OP_READ,
				    .request = &all_input,
				    .result = &all_table,
				    .run = run_all },
	  .method = HTTP_GET,
	  .path = "/v1/usage",
	  .errors = API_MAY(SANDBOX_LOST) | API_MAY(EXEC_TIMEOUT) },
	{ .id = "Vitals",
	  .op = &(const struct op){ .action = "sandbox.vitals",
				    .doc = "Says what a sandbox uses, again and again.",
				    .effect = OP_READ,
				    .request = &vitals_input,
				    .target = OP_TARGET(struct vitals_params, header.sandbox),
				    .result = &sample_table,
				    .run = run_vitals },
	  .kind = API_CONNECT,
	  .method = HTTP_POST,
	  .path = CONNECT_PATH "Vitals",
	  .shape = API_FRAMES,
	  .errors = API_MAY_SANDBOX | API_MAY(TOO_MANY_STREAMS) | API_MAY(EXEC_TIMEOUT) },
};
const struct api_resource api_usage = API_RESOURCE(rows);
