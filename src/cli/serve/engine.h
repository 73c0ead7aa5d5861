#pragma once
/* Options of the verbs that make sandboxes, and what they mean to the engine and to a hub. */
#include <stdio.h>
#include <unistd.h>

#include "cli/common/home.h"
#include "cli/common/verb.h"
#include "cli/grants/grants.h"
#include "config/config.h"
#include "hub/core/hub.h"
#include "hub/sandbox/volumes.h"
#include "op/code/code.h"
#include "guard/gate/gate.h"
#include "op/coding/session.h"
#include "call/guard.h"
#include "op/network.h"
#include "modules/upstream.h"

struct engine_options {
	uint64_t memory, disk;
	uint32_t pids, cpu_milli, files;
	const char *allow;
};

/* The rows of a struct S with a member m, a struct engine_options. */
#define ENGINE_ROWS(S, m)                                                                          \
	OPTION(S, m.memory, OPTION_SIZE, "memory", .letter = 'm', .arg = "SIZE",                   \
	       .env = "HOLT_MEMORY", .min = LIMIT_MEMORY_MIN, .max = LIMIT_MEMORY_MAX,             \
	       .doc = "Memory of a sandbox, files included, such as 512M or 2G; 1G by default."),  \
		OPTION(S, m.disk, OPTION_SIZE, "disk", .arg = "SIZE", .env = "HOLT_DISK",          \
		       .min = LIMIT_DISK_MIN, .max = LIMIT_MEMORY_MAX,                             \
		       .doc = "Limit of its files, a part of the memory; by default 512M, or "     \
			      "half of a small memory."),                                          \
		OPTION(S, m.pids, OPTION_COUNT, "pids", .arg = "N", .env = "HOLT_PIDS",            \
		       .min = LIMIT_PIDS_MIN, .max = LIMIT_PIDS_MAX,                               \
		       .doc = "Maximum number of processes and threads; 512 by default."),         \
		OPTION(S, m.cpu_milli, OPTION_MILLI, "cpus", .arg = "N", .env = "HOLT_CPUS",       \
		       .min = LIMIT_CPU_MIN, .max = LIMIT_CPU_MAX,                                 \
		       .doc = "Share of processors, such as 0.5 or 2; by default all."),           \
		OPTION(S, m.files, OPTION_COUNT, "open-files", .arg = "N",                         \
		       .env = "HOLT_OPEN_FILES", .min = LIMIT_FILES_MIN, .max = LIMIT_FILES_MAX,   \
		       .doc = "Maximum number of open files per program; by default the host's "   \
			      "limit."),                                                           \
		OPTION(S, m.allow, OPTION_TEXT, "allow-missing", .arg = "LIST",                    \
		       .env = "HOLT_ALLOW_MISSING",                                                \
		       .doc = "Isolation features that may be missing, by the names that holt "    \
			      "doctor prints.")

struct limits engine_limits(const struct engine_options *o);

/* Paths of the host that are Holt's own, so that no sandbox sees them. */
struct engine_closed {
	char folders[HOME_FOLDERS][PATH_MAX];
	/* The operator's file, by its name and where that leads. */
	char config[PATH_MAX], real[PATH_MAX];
	const char *paths[HOME_FOLDERS + 2];
	size_t n;
};

/* config: what --config said, or NULL. */
void engine_close_own(struct engine_closed *c, const char *config);

/* Options of verbs that have a hub. */
struct hub_options {
	struct engine_options engine;
	struct network_options network;
	uint32_t pool, max_sandboxes;
	uint64_t sleep_after_ms;
	struct option_list volumes;
	const char *config;
};

enum {
	HUB_POOL_DEFAULT = 4,
	HUB_POOL_MAX = 64,
	HUB_SLEEP_DEFAULT_MS = 10000,
	HUB_SLEEP_MAX_MS = 86400000,
};

/* The rows of a struct S with a member `struct hub_options hub`. */
#define HUB_ROWS(S)                                                                                \
	OPTION(S, hub.pool, OPTION_COUNT, "pool", .arg = "N", .env = "HOLT_POOL",                  \
	       .max = HUB_POOL_MAX,                                                                \
	       .doc = "Number of sandboxes to keep ready, 0 to 64; 4 by default."),                \
		OPTION(S, hub.max_sandboxes, OPTION_COUNT, "max-sandboxes", .arg = "N",            \
		       .env = "HOLT_MAX_SANDBOXES", .min = 1, .max = 8000,                         \
		       .doc = "Maximum number of sandboxes, at most 8000; 4096 by default."),      \
		OPTION(S, hub.sleep_after_ms, OPTION_SECONDS, "sleep-after", .arg = "TIME",        \
		       .env = "HOLT_SLEEP_AFTER", .max = HUB_SLEEP_MAX_MS,                         \
		       .doc = "Time after which an idle sandbox sleeps; 10 s by default, 0 for "   \
			      "never."),                                                           \
		OPTION(S, hub.volumes, OPTION_LIST, "allow-volumes", .arg = "DIR[:rw|:rw-all]",    \
		       .doc = "Clients may give sandboxes folders within DIR. May be repeated."),  \
		NETWORK_ROWS(S, hub.network), CONFIG_ROW(S, hub.config),                           \
		ENGINE_ROWS(S, hub.engine)

/* The row of a struct S with a member tools: which tools are served over MCP. */
#define TOOLS_ROW(S)                                                                               \
	OPTION(S, tools, OPTION_TEXT, "tools", .arg = "LIST", .env = "HOLT_TOOLS",                 \
	       .value = tools_set_name,                                                            \
	       .doc = "Serve only these MCP tools: names and sets, such as sandbox_exec or "       \
		      "sandbox.")

/* The rows of a struct S with a member m, a struct coding_rows: what agents that write code get. */
struct coding_rows {
	struct option_list workspaces;
	bool readonly;
};
#define CODING_ROWS(S, m)                                                                          \
	OPTION(S, m.workspaces, OPTION_LIST, "workspace", .arg = "[NAME=]DIR",                     \
	       .doc = "Folder in which clients work with the MCP tools for code. May be "          \
		      "repeated."),                                                                \
		OPTION(S, m.readonly, OPTION_FLAG, "readonly",                                     \
		       .doc = "Serve only MCP tools that change nothing, and workspaces "          \
			      "read-only.")

struct coding *coding_of_options(const struct coding_rows *o, struct err *e);

/* Those of the engine are zeros. */
#define HUB_DEFAULTS                                                                               \
	((struct hub_options){ .pool = HUB_POOL_DEFAULT, .sleep_after_ms = HUB_SLEEP_DEFAULT_MS })

/* Refuses what hub_of_options() would refuse whatever runs. */
int hub_options_check(const struct hub_options *o, struct err *e);

/* What `holt build` has to be told of a hub's options: words, ending with NULL. */
struct build_words {
	const char *p[2 * (3 * OPTION_LIST_MAX + 1) + 1];
};
void hub_options_words(const struct hub_options *o, struct build_words *ret);

/* The modules of a hub that has a gate. words: borrowed until they are closed. */
struct upstreams *upstreams_of_gate(struct gate *gate, struct hub *hub, struct config *config,
				    const struct build_words *words, struct err *e);

/* g: of o->network, borrowed until the hub is closed. registry: see struct hub_config. warden_dir:
 * NULL, or where the sandboxes outlive a hub that is killed. */
struct hub *hub_of_options(uv_loop_t *loop, const struct hub_options *o, const struct grants *g,
			   const char *registry, const char *warden_dir, struct err *e);
