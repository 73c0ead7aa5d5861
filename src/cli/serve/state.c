/*
 * What a hub says of itself: whether it lives, whether it is ready, its version, its numbers
 * (Prometheus text format 0.0.4), and whose tokens it takes (RFC 9728).
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "cli/serve/serve.h"
#include "guard/gate/gate.h"
#include "json/field/field.h"

enum { METRICS_MAX = 64 << 10 };

/* ---- small JSON ---------------------------------------------------------------------------- */

static void reply_json(struct http_request *q, int status, const struct field_table *t,
		       const void *from)
{
	struct err e = ERR_INIT;
	char *text = field_encode_text(t, from, 64 << 10, &e);

	if (!text)
		http_reply_error(q, &e);
	else
		http_reply(q, &(struct http_reply){ .status = status,
						    .type = "application/json",
						    .body = str_of(text),
						    .owned = text });
}

struct health {
	struct str status, cause, config;
	bool counts; /* the members that follow */
	uint32_t sandboxes, staying, commands, forwards;
	uint64_t longest_step_ms;
};
static const struct field health_fields[] = {
	FIELD(struct health, status, .flags = FIELD_REQUIRED,
	      .doc = "State of the hub: ok, starting, ending or refusing."),
	FIELD(struct health, cause, .doc = "Reason why calls are refused."),
	FIELD(struct health, config,
	      .doc = "Error in the configuration. The last valid one stays in effect."),
	FIELD(struct health, sandboxes, .has = FIELD_HAS(struct health, counts),
	      .doc = "Sandboxes that run."),
	FIELD(struct health, staying, .has = FIELD_HAS(struct health, counts),
	      .doc = "Those of them that the end of this hub stops, with their files."),
	FIELD(struct health, commands, .has = FIELD_HAS(struct health, counts),
	      .doc = "Commands that run in the background, which end with this hub."),
	FIELD(struct health, forwards, .has = FIELD_HAS(struct health, counts),
	      .doc = "Ports of sandboxes on this host, which end with this hub."),
	FIELD(struct health, longest_step_ms, .has = FIELD_HAS(struct health, counts),
	      .doc = "Longest time that one step of its event loop kept others waiting."),
};
static const struct field_table health_table = FIELD_TABLE(struct health, health_fields);

static void run_healthz(void *owner, struct http_request *q)
{
	reply_json(q, 200, &health_table, &(struct health){ STR_LIT("ok") });
}

static void run_readyz(void *owner, struct http_request *q)
{
	const struct serving *s = owner;
	const struct err *problem = gate_problem(s->gate);
	struct health h = { .status = STR_LIT("ok"),
			    .config = problem ? str_of(problem->msg) : STR_NONE,
			    .longest_step_ms = (s->lag.longest_ns + 999999) / 1000000 };
	struct hub_sandboxes_stats sandboxes;
	struct box_stats stats;
	struct err e;

	box_stats(hub_box(s->hub), &stats);
	hub_sandboxes_stats(hub_sandboxes(s->hub), &sandboxes);
	if (gate_ready(s->gate, &e) < 0 || hub_check(s->hub, &e) < 0)
		h.status = STR_LIT("refusing"), h.cause = str_of(e.msg);
	else if (s->stopping)
		h.status = STR_LIT("ending");
	else if (!stats.ready)
		h.status = STR_LIT("starting");
	h.counts = true;
	h.sandboxes = stats.live;
	h.staying = hub_sandboxes_staying(hub_sandboxes(s->hub));
	h.commands = sandboxes.commands;
	h.forwards = sandboxes.forwards;
	reply_json(q, str_is(h.status, "ok") ? 200 : 503, &health_table, &h);
}

struct version {
	struct str name, version, principal;
};
static const struct field version_fields[] = {
	FIELD(struct version, name, .flags = FIELD_REQUIRED, .doc = "Always \"holt\"."),
	FIELD(struct version, version, .flags = FIELD_REQUIRED, .doc = "Version of the hub."),
	FIELD(struct version, principal, .flags = FIELD_REQUIRED,
	      .doc = "Principal that sent the request."),
};
static const struct field_table version_table = FIELD_TABLE(struct version, version_fields);

static void run_version(void *owner, struct http_request *q)
{
	const struct principal *who = http_request_principal(q);

	reply_json(q, 200, &version_table,
		   &(struct version){ STR_LIT("holt"), STR_LIT(HOLT_VERSION), str_of(who->name) });
}

/* ---- numbers ------------------------------------------------------------------------------- */

struct numbers {
	struct http_stats http;
	struct box_stats box;
	struct hub_sandboxes_stats sandboxes;
	struct gate_stats gate;
	struct lag lag;
};

/* A metric is a member of the numbers, of this size. */
struct metric {
	const char *name, *kind, *help;
	size_t at, size;
};

#define METRIC(name_, kind_, m, help_)                                                             \
	{                                                                                          \
		.name = (name_), .kind = (kind_), .help = (help_),                                 \
		.at = offsetof(struct numbers, m), .size = sizeof(((struct numbers *)0)->m)        \
	}

static const struct metric metrics[] = {
	METRIC("holt_http_connections", "gauge", http.connections, "Open connections."),
	METRIC("holt_http_connections_total", "counter", http.connections_total,
	       "Connections so far."),
	METRIC("holt_http_requests", "gauge", http.requests, "Requests without an answer yet."),
	METRIC("holt_http_requests_total", "counter", http.requests_total, "Requests so far."),
	METRIC("holt_http_refused_total", "counter", http.refused,
	       "Requests that the door refused."),
	METRIC("holt_http_slow_total", "counter", http.slow, "Clients that were too slow."),
	METRIC("holt_http_stuck_total", "counter", http.stuck,
	       "Connections ended because what they sent led nowhere."),
	METRIC("holt_http_body_bytes", "gauge", http.body_bytes, "Memory for bodies of requests."),
	METRIC("holt_http_streams", "gauge", http.streams, "Open event streams."),
	METRIC("holt_http_websockets", "gauge", http.websockets, "Open WebSockets."),
	METRIC("holt_sandboxes", "gauge", box.live, "Sandboxes that live."),
	METRIC("holt_sandboxes_asleep", "gauge", box.asleep, "Of them those that sleep."),
	METRIC("holt_sandboxes_created_total", "counter", box.created, "Sandboxes created."),
	METRIC("holt_sandboxes_forked_total", "counter", box.forked, "Of them by fork."),
	METRIC("holt_sandboxes_destroyed_total", "counter", box.destroyed, "Sandboxes ended."),
	METRIC("holt_sandboxes_lost_total", "counter", box.lost,
	       "Sandboxes whose first process died."),
	METRIC("holt_execs_total", "counter", box.execs, "Commands run in sandboxes."),
	METRIC("holt_sandbox_input_bytes_total", "counter", box.bytes_in,
	       "Standard input of commands and files written."),
	METRIC("holt_sandbox_output_bytes_total", "counter", box.bytes_out,
	       "Output of commands and files read."),
	METRIC("holt_reaper_failures_total", "counter", sandboxes.reap_failures,
	       "Deadlines that could not be carried out at once."),
	METRIC("holt_registry_failures_total", "counter", sandboxes.store_failures,
	       "Changes that the registry did not take at once."),
	METRIC("holt_registry_unsaved", "gauge", sandboxes.unsaved,
	       "Sandboxes that the registry has otherwise than they are."),
	METRIC("holt_config_reads_total", "counter", gate.reads,
	       "How often the configuration was read again."),
	METRIC("holt_config_bad", "gauge", gate.bad,
	       "1: the configuration has a mistake, and an earlier one holds."),
	METRIC("holt_loop_steps_total", "counter", lag.steps,
	       "Steps of its event loop, each of which keeps all others waiting."),
	METRIC("holt_loop_long_steps_total", "counter", lag.steps_long,
	       "Those of them that took more than 50 ms."),
	METRIC("holt_pool_size", "gauge", box.pool_size, "Sandboxes to keep ready."),
	METRIC("holt_pool_ready", "gauge", box.pool_ready, "Sandboxes that are ready."),
	METRIC("holt_pool_hits_total", "counter", box.pool_hits,
	       "Sandboxes that came from the pool."),
	METRIC("holt_pool_misses_total", "counter", box.pool_misses,
	       "Sandboxes for which the pool was empty."),
};

static int put_head(struct buf *b, const char *name, const char *kind, const char *help,
		    struct err *e)
{
	return buf_addf(b, e, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static int put_metric(struct buf *b, const struct metric *m, const struct numbers *from,
		      struct err *e)
{
	const char *at = (const char *)from + m->at;
	uint64_t value = 0;
	uint32_t small;

	if (m->size == sizeof(small)) {
		memcpy(&small, at, sizeof(small));
		value = small;
	} else {
		memcpy(&value, at, sizeof(value));
	}
	if (put_head(b, m->name, m->kind, m->help, e) < 0)
		return -1;
	return buf_addf(b, e, "%s %" PRIu64 "\n", m->name, value);
}

static int put_responses(struct buf *b, const struct http_stats *http, struct err *e)
{
	if (put_head(b, "holt_http_responses_total", "counter", "Answers by class of status.", e) <
	    0)
		return -1;
	for (int i = 1; i < 6; i++) {
		if (buf_addf(b, e, "holt_http_responses_total{class=\"%dxx\"} %" PRIu64 "\n", i,
			     http->by_class[i]) < 0)
			return -1;
	}
	return 0;
}

static int put_sessions(struct buf *b, const struct serving *s, struct err *e)
{
	if (put_head(b, "holt_sessions", "gauge", "Sessions of clients by transport.", e) < 0)
		return -1;
	for (size_t i = 0; i < serve_parts_n; i++) {
		const struct serve_part *part = serve_parts[i];

		if (part->sessions && buf_addf(b, e, "holt_sessions{transport=\"%s\"} %u\n",
					       part->name, part->sessions(s->parts[i])) < 0)
			return -1;
	}
	return 0;
}

static int put_states(struct buf *b, const struct hub_sandboxes_stats *sandboxes, struct err *e)
{
	if (put_head(b, "holt_sandboxes_by_state", "gauge",
		     "Sandboxes that are known, those that ended lately among them.", e) < 0)
		return -1;
	for (int i = 0; i < SANDBOX_STATES; i++) {
		if (buf_addf(b, e, "holt_sandboxes_by_state{state=\"%s\"} %" PRIu64 "\n",
			     hub_sandbox_state_names[i], sandboxes->by_state[i]) < 0)
			return -1;
	}
	return 0;
}

static int put_number(struct buf *b, bool has, const char *name, const char *kind, const char *help,
		      double value, struct err *e)
{
	if (!has)
		return 0;
	return put_head(b, name, kind, help, e) < 0 ? -1
						    : buf_addf(b, e, "%s %.17g\n", name, value);
}

/* Sums over all sandboxes, also those of the pool. What this host does not count is left out. */
static int put_usage(struct buf *b, const struct usage *u, struct err *e)
{
	if (put_number(b, u->has_memory, "holt_sandboxes_memory_bytes", "gauge",
		       "Memory of all sandboxes, those that are ready too.", (double)u->memory,
		       e) < 0 ||
	    put_number(b, u->has_pids, "holt_sandboxes_processes", "gauge",
		       "Processes and threads of all sandboxes.", (double)u->pids, e) < 0)
		return -1;
	return put_number(b, u->has_cpu, "holt_sandboxes_cpu_seconds_total", "counter",
			  "Processor time of all sandboxes.", (double)u->cpu_us / 1e6, e);
}

static int put_metrics(struct buf *b, const struct serving *s, struct err *e)
{
	struct numbers n;

	http_server_stats(s->door, &n.http);
	box_stats(hub_box(s->hub), &n.box);
	hub_sandboxes_stats(hub_sandboxes(s->hub), &n.sandboxes);
	gate_stats(s->gate, &n.gate);
	n.lag = s->lag;
	for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
		if (put_metric(b, &metrics[i], &n, e) < 0)
			return -1;
	}
	if (put_number(b, true, "holt_loop_step_max_seconds", "gauge", "The longest step so far.",
		       (double)s->lag.longest_ns / 1e9, e) < 0 ||
	    put_number(b, true, "holt_loop_step_cpu_max_seconds", "gauge",
		       "The most time of the processor that one step has taken.",
		       (double)s->lag.longest_cpu_ns / 1e9, e) < 0 ||
	    put_states(b, &n.sandboxes, e) < 0 || put_responses(b, &n.http, e) < 0)
		return -1;
	return put_sessions(b, s, e);
}

struct scrape {
	const struct serving *s;
	struct http_request *q;
};

static void on_usage(void *arg, const struct usage *u, size_t n, const struct err *err)
{
	autofree struct scrape *scrape = arg;
	autobuf struct buf b = BUF_INIT(METRICS_MAX);
	struct err e = ERR_INIT;

	if (put_metrics(&b, scrape->s, &e) < 0 || (!err && put_usage(&b, u, &e) < 0))
		http_reply_error(scrape->q, &e);
	else
		http_reply(scrape->q, &(struct http_reply){ .status = 200,
							    .type = "text/plain; version=0.0.4",
							    .body = buf_str(&b) });
}

static void run_metrics(void *owner, struct http_request *q)
{
	const struct serving *s = owner;
	const struct principal *who = http_request_principal(q);
	struct scrape *scrape;
	struct err e;

	if (!who->sees_all) {
		err_set(&e, ERR_DENIED,
			"the numbers of the whole hub need a key with the scope admin");
		http_reply_error(q, &e);
		return;
	}
	scrape = malloc(sizeof(*scrape));
	if (!scrape) {
		err_set(&e, ERR_LIMIT, "out of memory");
		http_reply_error(q, &e);
		return;
	}
	*scrape = (struct scrape){ s, q };
	usage_start(hub_box(s->hub), NULL, 0, on_usage, scrape);
}

static const struct http_route state_rows[] = {
	{ .path = "/healthz",
	  .methods = HTTP_GET | HTTP_HEAD,
	  .open = true,
	  .run = run_healthz,
	  .doc = "Shows that the process is alive." },
	{ .path = "/readyz",
	  .methods = HTTP_GET | HTTP_HEAD,
	  .run = run_readyz,
	  .doc = "Answers 200 if sandboxes can be made, else 503." },
	{ .path = "/version",
	  .methods = HTTP_GET | HTTP_HEAD,
	  .run = run_version,
	  .doc = "Shows the name and version, and the principal of the request." },
	{ .path = "/metrics",
	  .methods = HTTP_GET | HTTP_HEAD,
	  .run = run_metrics,
	  .doc = "Metrics in the Prometheus text format." },
};

struct http_routes serve_state_routes(struct serving *s)
{
	return (struct http_routes){ state_rows, ARRAY_LEN(state_rows), s };
}
