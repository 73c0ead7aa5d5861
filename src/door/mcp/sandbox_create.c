#include "door/mcp/tools.h"

#include "door/mcp/common.h"

struct create_params {
	struct str pool;
	uint64_t memory_mb, disk_mb;
	uint32_t pids, open_files;
	bool has_cpus;
	double cpus;
	struct field_map env;
	struct str cwd;
	uint32_t ttl_seconds;
};

static const struct field create_fields[] = {
	FIELD(struct create_params, pool, .flags = FIELD_REQUIRED, .min = 1, .max = 255,
	      .doc = "Template to make it from. \"host\" is always there: this machine's programs and "
		     "libraries, read-only, with an /etc of its own and an empty /workspace."),
	FIELD(struct create_params, memory_mb, .min = LIMIT_MEMORY_MIN / MIB,
	      .max = LIMIT_MEMORY_MAX / MIB,
	      .doc = "Memory for its processes and files together, in MiB; 1024 if absent."),
	FIELD(struct create_params, disk_mb, .min = LIMIT_DISK_MIN / MIB,
	      .max = LIMIT_MEMORY_MAX / MIB,
	      .doc = "How much of the memory its files may take, in MiB; 512, or half of a small "
		     "memory, if absent."),
	FIELD(struct create_params, pids, .min = LIMIT_PIDS_MIN, .max = LIMIT_PIDS_MAX,
	      .doc = "Processes and threads at once; 512 if absent."),
	FIELD(struct create_params, cpus, .max = LIMIT_CPU_MAX / 1000,
	      .has = FIELD_HAS(struct create_params, has_cpus),
	      .doc = "Processors it may use, such as 0.5 or 2, at least 0.01; all there are if absent."),
	FIELD(struct create_params, open_files, .min = LIMIT_FILES_MIN, .max = LIMIT_FILES_MAX,
	      .doc = "Files that each program may have open; what the host gives if absent."),
	FIELD(struct create_params, env, .max = TOOL_ENV_MAX,
	      .doc = "Environment variables of every command in it."),
	FIELD(struct create_params, cwd, .min = 1, .max = TOOL_PATH_MAX,
	      .doc = "Where commands start and relative paths begin; /workspace if absent."),
	FIELD(struct create_params, ttl_seconds, .min = 1, .max = 30 * 24 * 3600,
	      .doc = "Ends the sandbox this long after its creation; never if absent."),
};
static const struct field_table create_input = FIELD_TABLE(struct create_params, create_fields);

struct create_limits {
	uint64_t memory_mb, disk_mb;
	uint32_t pids, open_files;
	bool has_cpus, has_open_files;
	double cpus;
	struct str enforced_by;
};

static const struct field limits_fields[] = {
	FIELD(struct create_limits, memory_mb, .flags = FIELD_REQUIRED,
	      .doc = "MiB for processes and files together."),
	FIELD(struct create_limits, disk_mb, .flags = FIELD_REQUIRED, .doc = "MiB for files."),
	FIELD(struct create_limits, pids, .flags = FIELD_REQUIRED, .doc = "Processes and threads."),
	FIELD(struct create_limits, cpus, .has = FIELD_HAS(struct create_limits, has_cpus),
	      .doc = "Processors; absent where all may be used."),
	FIELD(struct create_limits, open_files,
	      .has = FIELD_HAS(struct create_limits, has_open_files),
	      .doc = "Open files of each program; absent where the host's limit holds."),
	FIELD(struct create_limits, enforced_by, .flags = FIELD_REQUIRED,
	      .doc = "cgroup2 and cgroup1 hold for the sandbox as a whole, rlimit for each process."),
};
static const struct field_table limits_table = FIELD_TABLE(struct create_limits, limits_fields);

struct create_result {
	struct str sandbox, template, tier;
	struct create_limits limits;
	bool from_pool;
	bool has_ttl;
	uint32_t ttl_seconds;
};

static const struct field result_fields[] = {
	FIELD(struct create_result, sandbox, .flags = FIELD_REQUIRED,
	      .doc = "Id for the other tools; who knows it can use the sandbox."),
	FIELD(struct create_result, template, .flags = FIELD_REQUIRED,
	      .doc = "What it is made from."),
	FIELD(struct create_result, tier, .flags = FIELD_REQUIRED,
	      .doc = "Kind of isolation: \"namespace\" shares the host's kernel."),
	FIELD_OBJECT(struct create_result, limits, limits_table, .flags = FIELD_REQUIRED,
		     .doc = "What it may use."),
	FIELD(struct create_result, from_pool, .flags = FIELD_REQUIRED,
	      .doc = "It was ready before it was asked for."),
	FIELD(struct create_result, ttl_seconds, .has = FIELD_HAS(struct create_result, has_ttl),
	      .doc = "Seconds until it ends by itself."),
};
static const struct field_table create_output = FIELD_TABLE(struct create_result, result_fields);

static void answer(struct call *c, const struct life_info *info)
{
	const struct limits *l = info->limits;
	struct box_stats stats;
	struct create_result r = {
		.sandbox = info->id,
		.template = info->template,
		.limits = { .memory_mb = l->memory / MIB,
			    .disk_mb = l->disk / MIB,
			    .pids = l->pids,
			    .has_cpus = l->cpu_milli != 0,
			    .cpus = l->cpu_milli / 1000.0,
			    .has_open_files = l->files > 0,
			    .open_files = l->files },
		.from_pool = info->from_pool,
		.has_ttl = info->ttl_ms > 0,
		.ttl_seconds = (uint32_t)(info->ttl_ms / 1000),
	};

	box_stats(call_box(c), &stats);
	r.tier = str_of(stats.tier);
	r.limits.enforced_by = str_of(stats.limits);
	call_answer(c, &r);
}

static void on_created(void *arg, struct life *l, const struct err *err)
{
	struct call *c = arg;
	struct life_info info;
	struct err e = ERR_INIT;

	if (err) {
		call_fail(c, err);
	} else if (call_cancelled(c)) {
		/* Nobody will learn its id. */
		tool_discard(l);
		err_set(&e, ERR_CANCELLED, "sandbox_create was cancelled");
		call_fail(c, &e);
	} else {
		life_info(l, &info);
		answer(c, &info);
	}
}

static void run(struct call *c, const void *params)
{
	const struct create_params *p = params;
	struct err e = ERR_INIT;
	struct life_spec spec = {
		.box = { .template = p->pool,
			 .limits = { .memory = p->memory_mb * MIB,
				     .disk = p->disk_mb * MIB,
				     .pids = p->pids,
				     .cpu_milli = (uint32_t)(p->cpus * 1000 + 0.5),
				     .files = p->open_files },
			 .ttl_ms = p->ttl_seconds * 1000ull,
			 .n_env = p->env.n,
			 .cwd = p->cwd },
	};

	/* 0 would mean the default to the engine. */
	if (p->has_cpus && spec.box.limits.cpu_milli < LIMIT_CPU_MIN)
		err_set(&e, ERR_INVALID, "cpus: at least 0.01");
	if (e.code != ERR_NONE || tool_env(c, &p->env, &spec.box.env, &e) < 0)
		call_fail(c, &e);
	else
		life_create_start(call_lives(c), &spec, on_created, c);
}

const struct tool sandbox_create_tool = {
	.op =
		&(const struct op){
			.action = "sandbox.create",
			.effect = OP_WRITE,
			.request = &create_input,
			.result = &create_output,
			.run = run,
		},
	.name = "sandbox_create",
	.title = "Create a sandbox",
	.doc = "Makes a new sandbox, a small isolated Linux system without a network, and returns its "
	       "id. Takes milliseconds. It lasts until sandbox_terminate, its ttl_seconds, or the end "
	       "of this server.",
	.says = "Created sandbox {sandbox}",
};
