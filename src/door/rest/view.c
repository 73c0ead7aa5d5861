#include "door/rest/view.h"

static const struct field limits_fields[] = {
	FIELD(struct sandbox_limits_view, memory_mb, .flags = FIELD_REQUIRED,
	      .doc = "MiB for processes and files together."),
	FIELD(struct sandbox_limits_view, disk_mb, .flags = FIELD_REQUIRED,
	      .doc = "MiB of it that files may take."),
	FIELD(struct sandbox_limits_view, pids, .flags = FIELD_REQUIRED,
	      .doc = "Processes and threads at once."),
	FIELD(struct sandbox_limits_view, cpus,
	      .has = FIELD_HAS(struct sandbox_limits_view, has_cpus),
	      .doc = "Share of processors; absent: all."),
	FIELD(struct sandbox_limits_view, open_files,
	      .has = FIELD_HAS(struct sandbox_limits_view, has_open_files),
	      .doc = "Open files of each program; absent: as many as the host gives."),
};
static const struct field_table limits_table = FIELD_TABLE(struct sandbox_limits_view,
							   limits_fields);

static const struct field view_fields[] = {
	FIELD(struct sandbox_view, id, .flags = FIELD_REQUIRED, .doc = "Its name everywhere."),
	FIELD(struct sandbox_view, template_id, .flags = FIELD_REQUIRED,
	      .doc = "What it was made from."),
	FIELD(struct sandbox_view, endpoint, .flags = FIELD_REQUIRED,
	      .doc = "Base URL of the server that has it."),
	FIELD(struct sandbox_view, created_at, .flags = FIELD_REQUIRED, .doc = "RFC 3339."),
	FIELD(struct sandbox_view, fork_time_ms,
	      .has = FIELD_HAS(struct sandbox_view, has_fork_time_ms),
	      .doc = "How long it took to make; in the answer that made it."),
	FIELD_OBJECT(struct sandbox_view, network, api_network_table, .flags = FIELD_REQUIRED,
		     .doc = "What it can reach."),
	FIELD_ENUM(struct sandbox_view, state, life_state_names, .flags = FIELD_REQUIRED,
		   .doc = "Only a running one takes commands and gives files."),
	FIELD(struct sandbox_view, cause,
	      .doc = "Why it is lost, failed or terminated, where nobody asked for that."),
	FIELD(struct sandbox_view, generation, .flags = FIELD_REQUIRED,
	      .doc = "Counts up each time that what is behind the id was replaced."),
	FIELD(struct sandbox_view, source, .doc = "Id of the sandbox that it was forked from."),
	FIELD(struct sandbox_view, deadline_unix,
	      .has = FIELD_HAS(struct sandbox_view, has_deadline_unix),
	      .doc = "When its time is over, in seconds since 1970; absent: never."),
	FIELD(struct sandbox_view, timeout_seconds,
	      .has = FIELD_HAS(struct sandbox_view, has_timeout_seconds),
	      .doc = "The time that it was given."),
	FIELD(struct sandbox_view, idle_seconds,
	      .has = FIELD_HAS(struct sandbox_view, has_idle_seconds),
	      .doc = "How long it may be unused."),
	FIELD_ENUM(struct sandbox_view, retention, life_retention_names, .flags = FIELD_REQUIRED,
		   .doc = "What becomes of it when its time is over."),
	FIELD_OBJECT(struct sandbox_view, limits, limits_table, .flags = FIELD_REQUIRED,
		     .doc = "What it may use."),
	FIELD(struct sandbox_view, from_pool, .flags = FIELD_REQUIRED,
	      .doc = "A ready one was taken."),
	FIELD(struct sandbox_view, tier, .flags = FIELD_REQUIRED, .doc = "What isolates it."),
};
const struct field_table sandbox_view_table = FIELD_TABLE(struct sandbox_view, view_fields);

static struct sandbox_limits_view view_limits(const struct limits *l)
{
	return (struct sandbox_limits_view){
		.memory_mb = l->memory / MIB,
		.disk_mb = l->disk / MIB,
		.pids = l->pids,
		.has_cpus = l->cpu_milli > 0,
		.cpus = l->cpu_milli / 1000.0,
		.has_open_files = l->files > 0,
		.open_files = l->files,
	};
}

/* As the client called us; the reply goes the same way. */
static char *endpoint(struct call *c, struct err *e)
{
	struct http_request *q = ask_request(c);
	struct str host = q ? http_request_header(q, STR_LIT("Host")) : STR_NONE;

	return arena_printf(call_arena(c), e, "%s://%.*s",
			    q && http_request_is_tls(q) ? "https" : "http", STR_ARG(host));
}

int sandbox_view(struct call *c, const struct life *l, struct sandbox_view *ret, struct err *e)
{
	char *created = arena_alloc(call_arena(c), WHEN_MAX, e);
	char *url = endpoint(c, e);
	struct box_stats stats;
	struct life_info i;

	if (!created || !url)
		return -1;
	life_info(l, &i);
	box_stats(call_box(c), &stats);
	when_text(created, i.created_ms);
	*ret = (struct sandbox_view){
		.id = i.id,
		.template_id = i.template,
		.endpoint = str_of(url),
		.created_at = str_of(created),
		.source = i.source,
		.tier = str_of(stats.tier),
		.cause = i.why ? str_of(i.why->msg) : STR_NONE,
		.state = i.state,
		.generation = i.generation,
		.has_deadline_unix = i.deadline_ms > 0,
		.deadline_unix = (i.deadline_ms + 999) / 1000,
		.has_timeout_seconds = i.ttl_ms > 0,
		.timeout_seconds = i.ttl_ms / 1000,
		.has_idle_seconds = i.idle_ms > 0,
		.idle_seconds = i.idle_ms / 1000,
		.retention = i.retention,
		.network = API_NETWORK_NONE,
		.limits = view_limits(i.limits),
		.from_pool = i.from_pool,
	};
	return 0;
}
