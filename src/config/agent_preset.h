#pragma once
/*
 * Presets of agents: what a coding agent of others needs to run in a sandbox, as data. Holt's own
 * are presets/agents/NAME.json, compiled in; the operator's are agents/NAME.json beside the
 * operator's file, and stand before Holt's of the same name.
 *
 * Paths that begin with ~/ are below the home of the sandbox, but for those of `find`, which are
 * below the user's.
 */
#include "json/field/field.h"

enum {
	AGENT_PRESET_BYTES_MAX = 64 << 10,
	AGENT_PRESETS_MAX = 64, /* Holt's and the operator's */
};

#define AGENT_PRESET_FOLDER "agents" /* beside the operator's file */

/* A file of the state that the agent has from its start. One of both. */
struct agent_preset_setting {
	struct str name; /* its path */
	struct field_json json; /* what it must say: the user's file may say more */
	struct str text; /* all of it, where there is none yet */
};

/* A value that the agent takes from its environment. In a sandbox it is a placeholder, for which
 * the value stands in requests to these hosts. */
struct agent_preset_secret {
	struct str name; /* of the variable */
	struct field_strs hosts;
};

/* How the tokens of its log-in stay outside (docs/secrets.md, "Log-ins"). */
struct agent_preset_tokens {
	struct field_strs urls, members, hosts; /* as of a secret of the operator's file */
	struct field_map env; /* where it works by the log-in */
	struct str auth_method; /* of ACP, likewise; STR_NONE: it needs none */
};

struct agent_preset {
	struct str name; /* of its file; a-z, then a-z 0-9 - */
	struct str title, about; /* about: its documentation; may be STR_NONE */
	struct field_strs run; /* its terminal interface; none: it has none */
	struct field_strs print; /* behind run, before one prompt, whose answer is all it prints */
	struct field_strs resume; /* behind run, to go on with the last session of the folder */
	struct field_strs acp; /* the program that speaks ACP; none: there is none */
	struct field_map npm; /* program of run or acp: the package that has it, NAME[@VERSION] */
	bool install_scripts; /* of the packages: they can't work without */
	struct field_strs find; /* folders, or patterns of them, where its installer puts it */
	uint32_t node; /* the least major version of Node.js; 0: it needs none */
	struct field_strs hosts, optional_hosts, login_hosts; /* rules (net/wire/rule.h) */
	struct field_map env; /* a value that begins with ~/ is a path, too */
	struct field_strs state; /* folders that are kept, and written to without guards */
	struct {
		struct agent_preset_setting *p;
		size_t n;
	} settings;
	struct {
		struct agent_preset_secret *p;
		size_t n;
	} secrets; /* any one of them is enough */
	struct field_strs credentials; /* files in which it keeps its log-in */
	struct field_strs login; /* the program that logs in, at a terminal */
	bool has_tokens;
	struct agent_preset_tokens tokens;
	struct str auth_method; /* of ACP; STR_NONE */
	struct str mode; /* of ACP, in which it asks; STR_NONE: the agent's own */
	struct field_strs autonomous_modes; /* in which it approves by itself */
	struct field_strs autonomous; /* behind run, to ask nothing */
	struct field_strs no_sandbox; /* behind run, to switch its own sandbox off */
};
extern const struct field_table agent_preset_table;

struct agent_presets;

/* All of them, sorted by name. config: the path of the operator's file; NULL: Holt's alone. One
 * file of the operator's that is wrong, or that others may write, is an error (ERR_INVALID,
 * ERR_DENIED) that names it. */
struct agent_presets *agent_presets_read(const char *config, struct err *e) MUST_USE;
void agent_presets_free(struct agent_presets *p); /* NULL-safe */
AUTO_DEFINE(agent_presets_free, struct agent_presets)

size_t agent_presets_n(const struct agent_presets *p);
/* Borrowed until agent_presets_free(). */
const struct agent_preset *agent_presets_at(const struct agent_presets *p, size_t i);
/* NULL: ERR_INVALID, which names the nearest. */
const struct agent_preset *agent_presets_find(const struct agent_presets *p, struct str name,
					      struct err *e) MUST_USE;
/* Whether it is the operator's own. */
bool agent_preset_is_own(const struct agent_presets *p, const struct agent_preset *of);

/* Reads one of this name. What it has is in a, or borrowed from v's document. */
int agent_preset_decode(const struct json_val *v, struct str name, struct arena *a,
			struct agent_preset *ret, struct err *e) MUST_USE;

/* A path of a preset below this home, in ret: "~/.claude" is HOME/.claude. Others stay. */
int agent_preset_path(struct str path, const char *home, char *ret, size_t size,
		      struct err *e) MUST_USE;
