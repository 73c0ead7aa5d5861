#include "op/sandbox_view.h"

#include "base/clock.h"
#include "box/host/box.h"
#include "base/when.h"
#include "base/words.h"
#include "op/label.h"

static const struct field limits_fields[] = {
	FIELD(struct sandbox_limits_view, memory_mb, .flags = FIELD_REQUIRED,
	      .doc = "Memory in MiB for processes and files together."),
	FIELD(struct sandbox_limits_view, disk_mb, .flags = FIELD_REQUIRED,
	      .doc = "MiB of this memory that files may take."),
	FIELD(struct sandbox_limits_view, pids, .flags = FIELD_REQUIRED,
	      .doc = "Processes and threads at once."),
	FIELD(struct sandbox_limits_view, cpus,
	      .has = FIELD_HAS(struct sandbox_limits_view, has_cpus),
	      .doc = "Number of processors; absent: all."),
	FIELD(struct sandbox_limits_view, open_files,
	      .has = FIELD_HAS(struct sandbox_limits_view, has_open_files),
	      .doc = "Open files of each process; absent: what the host allows."),
	FIELD(struct sandbox_limits_view, enforced_by, .flags = FIELD_REQUIRED,
	      .doc = "cgroup2 and cgroup1 limit the whole sandbox; rlimit limits the memory "
		     "of each process alone."),
};
const struct field_table sandbox_limits_table = FIELD_TABLE(struct sandbox_limits_view,
							    limits_fields);

const char *const sandbox_user_names[SANDBOX_USERS] = { "user", "root" };

static const struct field volume_fields[] = {
	FIELD(struct volume_view, host,
	      .doc = "Path on the host; absent where only the operator may know it."),
	FIELD(struct volume_view, inside, .flags = FIELD_REQUIRED, .doc = "Path in the sandbox."),
	FIELD_ENUM(struct volume_view, mode, volume_mode_names, .flags = FIELD_REQUIRED,
		   .doc = "Read-only or writable."),
};
const struct field_table volume_view_table = FIELD_TABLE(struct volume_view, volume_fields);

static const struct field view_fields[] = {
	VIEW_ROWS("sandbox", "template", "made_ms", "ttl_seconds"),
	VIEW_TTL_LEFT,
};
const struct field_table sandbox_view_table = FIELD_TABLE(struct sandbox_view, view_fields);

static struct sandbox_limits_view limits_view(const struct limits *l, const char *enforced_by)
{
	return (struct sandbox_limits_view){
		.memory_mb = l->memory / MIB,
		.disk_mb = l->disk / MIB,
		.pids = l->pids,
		.has_cpus = l->cpu_milli > 0,
		.cpus = l->cpu_milli / 1000.0,
		.has_open_files = l->files > 0,
		.open_files = l->files,
		.enforced_by = str_of(enforced_by),
	};
}

static int view_volumes(struct call *c, const struct volumes *of, struct sandbox_view *ret,
			struct err *e)
{
	struct volume_view *v;

	if (!of)
		return 0;
	v = arena_array(call_arena(c), of->n, sizeof(*v), e);
	if (!v)
		return -1;
	for (size_t i = 0; i < of->n; i++) {
		bool shown = of->v[i].granted || call_is_operator(c);

		v[i] = (struct volume_view){ .host = shown ? of->v[i].host : STR_NONE,
					     .inside = of->v[i].inside,
					     .mode = of->v[i].mode };
	}
	ret->has_volumes = true;
	ret->volumes.p = v;
	ret->volumes.n = of->n;
	return 0;
}

static int view_modules(struct call *c, struct str of, struct sandbox_view *ret, struct err *e)
{
	struct str *p = arena_array(call_arena(c), of.n, sizeof(*p), e);
	size_t n = 0;

	if (!p)
		return -1;
	while (str_word(&of, &p[n]))
		n++;
	ret->has_modules = n > 0;
	ret->modules = (struct field_strs){ p, n };
	return 0;
}

static uint64_t left_seconds(int64_t deadline_ms)
{
	int64_t left = deadline_ms - clock_unix_ms();

	return left > 0 ? (uint64_t)(left + 999) / 1000 : 0;
}

int sandbox_view(struct call *c, struct hub_sandbox *l, struct sandbox_view *ret, struct err *e)
{
	char *created = arena_alloc(call_arena(c), WHEN_MAX, e);
	struct box_stats stats;
	struct hub_sandbox_info i;
	struct err none;

	if (!created)
		return -1;
	hub_sandbox_info(l, &i);
	box_stats(call_box(c), &stats);
	when_text(created, i.created_ms);
	*ret = (struct sandbox_view){
		.sandbox = i.id,
		.template = i.template,
		.endpoint = call_endpoint(c),
		.created_at = str_of(created),
		.source = i.source,
		.tier = str_of(stats.tier),
		.cause = i.why ? str_of(i.why->msg) : STR_NONE,
		.state = i.state,
		.generation = i.generation,
		.has_deadline_unix = i.deadline_ms > 0,
		.deadline_unix = (i.deadline_ms + 999) / 1000,
		.has_ttl = i.ttl_ms > 0,
		.ttl_seconds = i.ttl_ms / 1000,
		.has_ttl_left = i.deadline_ms > 0 && hub_sandbox_machine(l, &none),
		.ttl_left_seconds = left_seconds(i.deadline_ms),
		.has_idle_seconds = i.idle_ms > 0,
		.idle_seconds = i.idle_ms / 1000,
		.retention = i.retention,
		.limits = limits_view(i.limits, stats.limits),
		.user = i.limits->root ? SANDBOX_ROOT : SANDBOX_USER,
		.debug = i.limits->debug,
		.from_pool = i.from_pool,
		.made_ms = i.made_ms, /* shown where has_made_ms is set */
		.has_labels = i.labels.p != NULL,
	};
	if (view_volumes(c, i.volumes, ret, e) < 0 ||
	    view_modules(c, i.modules.names, ret, e) < 0 ||
	    labels_of(i.labels, call_arena(c), &ret->labels, e) < 0)
		return -1;
	return network_view(c, i.network, &ret->network, e);
}
