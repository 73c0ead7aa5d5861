/*
 * Makes sandboxes: POST /v1/fork, which is mitos' way and takes a template and an id, and POST
 * /v1/sandboxes, which takes all that a sandbox can be given.
 */
#include "door/http/once.h"
#include "door/rest/view.h"
#include "base/clock.h"
#include "base/id.h"

enum { TIMEOUT_MAX = 30 * 86400 };

/* ---- what is taken ------------------------------------------------------------------------- */

struct limits_wish {
	uint64_t memory_mb, disk_mb;
	uint32_t pids, open_files;
	bool has_cpus;
	double cpus;
};
static const struct field limits_fields[] = {
	FIELD(struct limits_wish, memory_mb, .max = LIMIT_MEMORY_MAX / MIB,
	      .doc = "MiB for processes and files together; 0: the server's default."),
	FIELD(struct limits_wish, disk_mb, .max = LIMIT_MEMORY_MAX / MIB,
	      .doc = "MiB of it that files may take; 0: the server's default."),
	FIELD(struct limits_wish, pids, .max = LIMIT_PIDS_MAX,
	      .doc = "Processes and threads at once; 0: the server's default."),
	FIELD(struct limits_wish, cpus, .max = LIMIT_CPU_MAX / 1000,
	      .has = FIELD_HAS(struct limits_wish, has_cpus),
	      .doc = "Share of processors, such as 0.5; at least 0.01."),
	FIELD(struct limits_wish, open_files, .max = LIMIT_FILES_MAX,
	      .doc = "Open files of each program, at least 16, and never more than the host gives; 0: the server's default."),
};
static const struct field_table limits_table = FIELD_TABLE(struct limits_wish, limits_fields);

struct wish {
	struct str template, id;
	bool has_network;
	struct api_network_wish network;
	struct limits_wish limits;
	struct field_map env;
	struct str cwd;
	uint64_t timeout_seconds, idle_seconds;
	enum life_retention retention;
};

#define ID_ROW                                                                                     \
	FIELD(struct wish, id, .min = 1, .max = API_ID_MAX,                                        \
	      .doc = "Its name: letters, digits, _ and -, not the last two at the front. Absent: " \
		     "one is made.")
#define NETWORK_ROW                                                                                \
	FIELD_OBJECT(struct wish, network, api_network_wish_table,                                 \
		     .has = FIELD_HAS(struct wish, has_network),                                   \
		     .doc = "Anything but none is refused by this version.")

static const struct field fork_fields[] = {
	FIELD(struct wish, template, .flags = FIELD_REQUIRED, .min = 1, .max = API_TEMPLATE_MAX,
	      .doc = "The template, such as \"host\"."),
	ID_ROW,
	NETWORK_ROW,
};
static const struct field_table fork_body = FIELD_TABLE(struct wish, fork_fields);

static const struct field create_fields[] = {
	FIELD(struct wish, template, .min = 1, .max = API_TEMPLATE_MAX, .def = DEFAULT_STR("host"),
	      .doc = "The template."),
	ID_ROW,
	NETWORK_ROW,
	FIELD_OBJECT(struct wish, limits, limits_table, .doc = "What it may use."),
	FIELD(struct wish, env, .max = API_ENV_MAX, .doc = "Environment of all that runs in it."),
	FIELD(struct wish, cwd, .min = 1, .max = API_PATH_MAX,
	      .doc = "Directory that programs start in and relative paths begin at; "
		     "/workspace if absent."),
	FIELD(struct wish, timeout_seconds, .max = TIMEOUT_MAX,
	      .doc = "Its time to live; 0: no end. /v1/set_timeout changes it."),
	FIELD(struct wish, idle_seconds, .max = TIMEOUT_MAX,
	      .doc = "How long it may be unused; 0: for ever. An open stream is a use."),
	FIELD_ENUM(struct wish, retention, life_retention_names,
		   .def = DEFAULT_ENUM(RETAIN_DESTROY),
		   .doc = "What becomes of it when its time is over; what this version can't do is "
			  "refused."),
};
static const struct field_table create_body = FIELD_TABLE(struct wish, create_fields);

struct create_params {
	struct once_header header;
	struct wish body;
};
static const struct field fork_parts[] = {
	ONCE_HEADER(struct create_params),
	FIELD_OBJECT(struct create_params, body, fork_body, .flags = FIELD_REQUIRED,
		     .doc = "What to make it from."),
};
static const struct field_table fork_input = FIELD_TABLE(struct create_params, fork_parts);
static const struct field create_parts[] = {
	ONCE_HEADER(struct create_params),
	FIELD_OBJECT(struct create_params, body, create_body, .flags = FIELD_REQUIRED,
		     .doc = "What to make."),
};
static const struct field_table create_input = FIELD_TABLE(struct create_params, create_parts);

/* ---- how it is made ------------------------------------------------------------------------ */

struct making {
	struct call *call;
	uint64_t begun_ns;
};

static void answer(struct making *m, struct life *l)
{
	struct sandbox_view view;
	struct err e = ERR_INIT;

	if (sandbox_view(m->call, l, &view, &e) < 0) {
		call_fail(m->call, &e);
		return;
	}
	view.has_made_ms = true;
	view.made_ms = (double)(clock_ns() - m->begun_ns) / 1e6;
	call_answer(m->call, &view);
}

static void on_created(void *arg, struct life *l, const struct err *err)
{
	struct making *m = arg;

	if (err) {
		call_fail(m->call, err);
	} else if (call_cancelled(m->call) && !once_kept(m->call)) {
		api_discard(l);
		ask_fail_gone(m->call);
	} else {
		answer(m, l);
	}
}

static int spec_of(struct call *c, const struct wish *w, struct life_spec *ret, struct err *e)
{
	*ret = (struct life_spec){
		.box = { .template = w->template,
			 .limits = { .memory = w->limits.memory_mb * MIB,
				     .disk = w->limits.disk_mb * MIB,
				     .pids = w->limits.pids,
				     .cpu_milli = (uint32_t)(w->limits.cpus * 1000 + 0.5),
				     .files = w->limits.open_files },
			 .ttl_ms = w->timeout_seconds * 1000,
			 .n_env = w->env.n,
			 .cwd = w->cwd },
		.id = w->id,
		.idle_ms = w->idle_seconds * 1000,
		.retention = w->retention,
	};
	/* 0 would mean the default to the engine. */
	if (w->limits.has_cpus && ret->box.limits.cpu_milli < LIMIT_CPU_MIN)
		return err_set(e, ERR_INVALID, "limits.cpus: at least 0.01");
	if (w->has_network && api_network_refuse(&w->network, e) < 0)
		return -1;
	return api_env(call_arena(c), &w->env, &ret->box.env, e);
}

/* The name of what will be made, so that it is known before. */
static int name_it(struct call *c, const struct wish *w, struct str *ret, struct err *e)
{
	char id[ID_MAX], *copy;

	*ret = w->id;
	if (w->id.p)
		return 0;
	id_make(id, "sbx");
	copy = arena_dup(call_arena(c), str_of(id), e);
	*ret = str_of(copy);
	return copy ? 0 : -1;
}

/* Made by a request that was cut off, so by an earlier hub; NULL if not. */
static struct life *made_before(struct call *c, struct str id)
{
	struct err e;
	struct life *l = call_life(c, id, &e);
	struct life_info i = { .adopted = false };

	if (l)
		life_info(l, &i);
	return i.adopted ? l : NULL;
}

static void make(struct making *m, const struct once_header *h, struct life_spec *spec)
{
	enum once once = once_begin(m->call, h, &spec->id);
	struct life *l = once == ONCE_AGAIN ? made_before(m->call, spec->id) : NULL;

	if (l)
		answer(m, l);
	else if (once != ONCE_OVER)
		life_create_start(call_lives(m->call), spec, on_created, m);
}

static void run(struct call *c, const void *params)
{
	const struct create_params *p = params;
	struct err e = ERR_INIT;
	struct life_spec spec;
	struct making *m = arena_alloc(call_arena(c), sizeof(*m), &e);

	call_about(c)->sandbox = p->body.id;
	if (!m || spec_of(c, &p->body, &spec, &e) < 0 || name_it(c, &p->body, &spec.id, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	*m = (struct making){ .call = c, .begun_ns = clock_ns() };
	make(m, &p->header, &spec);
}

#define MAY                                                                                        \
	(API_MAY(NOT_FOUND) | API_MAY(CONFLICT) | API_MAY(QUOTA_EXCEEDED) | API_MAY(CANCELED) |    \
	 API_MAY(UNSUPPORTED))

static const struct api_route rows[] = {
	{ .id = "fork",
	  .op = &(const struct
		  op){ .action = "sandbox.create",
		       .doc = "Makes a sandbox from a template, under an id of the client's choice.",
		       .effect = OP_WRITE,
		       .request = &fork_input,
		       .result = &api_sandbox_table,
		       .run = run },
	  .method = HTTP_POST,
	  .path = "/v1/fork",
	  .errors = MAY },
	{ .id = "sandboxes.create",
	  .op = &(const struct op){ .action = "sandbox.create",
				    .doc = "Makes a sandbox.",
				    .effect = OP_WRITE,
				    .request = &create_input,
				    .result = &api_sandbox_table,
				    .run = run },
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes",
	  .errors = MAY },
};
const struct api_resource api_create = API_RESOURCE(rows);
