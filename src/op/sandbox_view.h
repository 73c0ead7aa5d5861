#pragma once
/* A sandbox as clients see it. Doors show as much of it as they like, by names of their own. */
#include "call/call.h"
#include "hub/sandbox/sandbox.h"
#include "hub/sandbox/usage.h"
#include "op/network.h"
#include "op/ops.h"

struct sandbox_limits_view {
	uint64_t memory_mb, disk_mb;
	uint32_t pids, open_files;
	bool has_open_files, has_cpus;
	double cpus;
	struct str enforced_by;
};
extern const struct field_table sandbox_limits_table;

/* Who the programs of a sandbox are. */
enum sandbox_user { SANDBOX_USER, SANDBOX_ROOT, SANDBOX_USERS };
extern const char *const sandbox_user_names[SANDBOX_USERS];

/* host: STR_NONE where the client may not know it. */
struct volume_view {
	struct str host, inside;
	enum volume_mode mode;
};
extern const struct field_table volume_view_table;

struct sandbox_view {
	struct str sandbox, template, endpoint, created_at, source, tier, cause;
	enum hub_sandbox_state state;
	uint32_t generation;
	bool has_made_ms, has_deadline_unix, has_ttl, has_ttl_left, has_idle_seconds, has_usage;
	double made_ms;
	int64_t deadline_unix;
	uint64_t ttl_seconds, ttl_left_seconds, idle_seconds;
	enum hub_sandbox_retention retention;
	bool has_labels;
	struct field_map labels;
	struct network_view network;
	struct sandbox_limits_view limits;
	struct usage_view usage;
	enum sandbox_user user;
	bool debug, from_pool, has_volumes, has_modules;
	struct {
		const struct volume_view *p;
		size_t n;
	} volumes;
	struct field_strs modules;
};
/* Its texts are in the call's arena, or borrowed from the sandbox until its next change. */
int sandbox_view(struct call *c, struct hub_sandbox *l, struct sandbox_view *ret,
		 struct err *e) MUST_USE;
extern const struct field_table sandbox_view_table;

/* Rows of a table of it, one for each member that several doors show. */
#define VIEW_ID(as_, doc_)                                                                         \
	FIELD_NAMED(struct sandbox_view, sandbox, as_, .flags = FIELD_REQUIRED, .doc = doc_)
#define VIEW_TEMPLATE(as_)                                                                         \
	FIELD_NAMED(struct sandbox_view, template, as_, .flags = FIELD_REQUIRED,                   \
		    .doc = "Template that it was made from.")
#define VIEW_CREATED                                                                               \
	FIELD(struct sandbox_view, created_at, .flags = FIELD_REQUIRED,                            \
	      .doc = "When it was created, RFC 3339.")
#define VIEW_STATE                                                                                 \
	FIELD_ENUM(struct sandbox_view, state, hub_sandbox_state_names, .flags = FIELD_REQUIRED,   \
		   .doc = "State; only a running sandbox takes commands and gives files.")
#define VIEW_CAUSE                                                                                 \
	FIELD(struct sandbox_view, cause,                                                          \
	      .doc = "Why it was lost, failed or terminated, if nobody asked for that.")
#define VIEW_GENERATION                                                                            \
	FIELD(struct sandbox_view, generation, .flags = FIELD_REQUIRED,                            \
	      .doc = "Grows each time the sandbox behind the id is replaced.")
#define VIEW_SOURCE                                                                                \
	FIELD(struct sandbox_view, source, .doc = "Id of the sandbox that it was forked from.")
#define VIEW_LIMITS                                                                                \
	FIELD_OBJECT(struct sandbox_view, limits, sandbox_limits_table, .flags = FIELD_REQUIRED,   \
		     .doc = "Resource limits.")
#define VIEW_DEBUG                                                                                 \
	FIELD(struct sandbox_view, debug, .has = FIELD_HAS(struct sandbox_view, debug),            \
	      .doc = "Its programs may trace each other; absent: they may not.")
#define VIEW_USER                                                                                  \
	FIELD_ENUM(struct sandbox_view, user, sandbox_user_names, .flags = FIELD_REQUIRED,         \
		   .doc = "User that its programs run as.")
#define VIEW_FROM_POOL                                                                             \
	FIELD(struct sandbox_view, from_pool, .flags = FIELD_REQUIRED,                             \
	      .doc = "It was taken from the pool.")
#define VIEW_TIER                                                                                  \
	FIELD(struct sandbox_view, tier, .flags = FIELD_REQUIRED,                                  \
	      .doc = "Isolation; \"namespace\" shares the host's kernel.")
#define VIEW_LABELS                                                                                \
	FIELD(struct sandbox_view, labels, .has = FIELD_HAS(struct sandbox_view, has_labels),      \
	      .doc = "Labels that its creator set.")
#define VIEW_TTL(as_)                                                                              \
	FIELD_NAMED(struct sandbox_view, ttl_seconds, as_,                                         \
		    .has = FIELD_HAS(struct sandbox_view, has_ttl),                                \
		    .doc = "Time to live in seconds, as it was set; absent: no end.")
#define VIEW_TTL_LEFT                                                                              \
	FIELD(struct sandbox_view, ttl_left_seconds,                                               \
	      .has = FIELD_HAS(struct sandbox_view, has_ttl_left),                                 \
	      .doc = "Seconds until it ends by itself; absent: never.")
#define VIEW_VOLUMES                                                                               \
	FIELD_OBJECTS(struct sandbox_view, volumes, volume_view_table,                             \
		      .has = FIELD_HAS(struct sandbox_view, has_volumes),                          \
		      .doc = "Folders and files of the host in it; absent: none.")
#define VIEW_MODULES                                                                               \
	FIELD(struct sandbox_view, modules, .has = FIELD_HAS(struct sandbox_view, has_modules),    \
	      .doc = "Modules that its programs may call; absent: none.")
#define VIEW_USAGE                                                                                 \
	FIELD_OBJECT(                                                                              \
		struct sandbox_view, usage, usage_view_table,                                      \
		.has = FIELD_HAS(struct sandbox_view, has_usage),                                  \
		.doc = "What it uses of its limits, if that was asked for and could be measured.")
/* Those that a request for a new one, a list and a look at one have in HTTP. */
#define VIEW_ROWS(id_, template_, made_, ttl_)                                                     \
	VIEW_ID(id_, "Id of the sandbox."), VIEW_TEMPLATE(template_),                              \
		FIELD(struct sandbox_view, endpoint, .flags = FIELD_REQUIRED,                      \
		      .doc = "Base URL of the server that "                                        \
			     "runs it."),                                                          \
		VIEW_CREATED,                                                                      \
		FIELD_NAMED(                                                                       \
			struct sandbox_view, made_ms, made_,                                       \
			.has = FIELD_HAS(struct sandbox_view, has_made_ms),                        \
			.doc = "How long its creation took, in milliseconds; only in the answer "  \
			       "that created it."),                                                \
		FIELD_OBJECT(struct sandbox_view, network, network_view_table,                     \
			     .flags = FIELD_REQUIRED, .doc = "What it can reach."),                \
		VIEW_STATE, VIEW_CAUSE, VIEW_GENERATION, VIEW_SOURCE,                              \
		FIELD(struct sandbox_view, deadline_unix,                                          \
		      .has = FIELD_HAS(struct sandbox_view, has_deadline_unix),                    \
		      .doc = "When its time is over, in seconds since 1970; absent: never."),      \
		VIEW_TTL(ttl_),                                                                    \
		FIELD(struct sandbox_view, idle_seconds,                                           \
		      .has = FIELD_HAS(struct sandbox_view, has_idle_seconds),                     \
		      .doc = "Seconds that it may be unused."),                                    \
		FIELD_ENUM(struct sandbox_view, retention, hub_sandbox_retention_names,            \
			   .flags = FIELD_REQUIRED,                                                \
			   .doc = "What happens to it when its time "                              \
				  "is over."),                                                     \
		VIEW_LIMITS, VIEW_LABELS, VIEW_USER, VIEW_DEBUG, VIEW_FROM_POOL, VIEW_TIER,        \
		VIEW_VOLUMES, VIEW_MODULES, VIEW_USAGE

/* Several: a page of a list, or new ones. */
struct sandboxes_view {
	struct {
		const struct sandbox_view *p;
		size_t n;
	} sandboxes;
	struct field_strs ids;
	/* Of a list: where the next page begins, as a number and as text. */
	bool has_next;
	uint64_t next_after;
	struct str next_cursor;
	/* Of new ones. */
	struct str first;
	enum hub_sandbox_state first_state;
	double made_ms;
};
#define VIEWS_ROW(table_, doc_)                                                                    \
	FIELD_OBJECTS(struct sandboxes_view, sandboxes, table_, .flags = FIELD_REQUIRED,           \
		      .doc = doc_)

/* sandbox.list; normalized, cursor has become after. */
struct list_request {
	bool has_state;
	enum hub_sandbox_state state;
	struct field_strs labels; /* KEY or KEY=VALUE, all of which it must have */
	uint32_t limit; /* 0: all */
	uint64_t after;
	struct str cursor;
};
