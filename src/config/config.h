#pragma once
/*
 * The operator's file, config.json: JSON (RFC 8259) with comments, read strictly. What is unknown,
 * of a wrong type or out of bounds is refused with the file's name, the line and the JSON pointer.
 * Each section is a struct with a field table, from which its JSON Schema is printed too.
 *
 * What was read never changes; who uses it holds a reference.
 */
#include "json/document/pointer.h"
#include "json/field/field.h"

enum {
	CONFIG_BYTES_MAX = 1 << 20,
	CONFIG_LIST_MAX = 1024, /* entries of a list, at most */
	CONFIG_NAME_MAX = 64, /* characters of a rule's, a preset's or a secret's name */
	CONFIG_TEXT_MAX = 1024, /* characters of patterns, paths and other texts */
	CONFIG_PLACE_MAX = 96, /* "config.json:12" */
	CONFIG_SERVER_NAME_MAX = 32,
};

/* ---- sections ------------------------------------------------------------------------------ */

enum config_then { CONFIG_ALLOW, CONFIG_ASK, CONFIG_DENY, CONFIG_THENS };
extern const char *const config_then_names[CONFIG_THENS]; /* "allow" and so on */

/* An empty list matches everything. Texts are patterns, in which '*' stands for any characters. */
struct config_rule {
	struct str name;
	struct field_strs who, tools, actions, effects;
	struct field_map when; /* JSON pointers into the canonical request, and patterns */
	enum config_then then;
	unsigned line; /* not of the file's: where it stands */
};

struct config_rules {
	struct config_rule *p;
	size_t n;
};

struct config_policy {
	enum config_then def; /* what no rule matches */
	struct config_rules rules;
	unsigned line;
};

/* Each may be without a limit: has_. */
struct config_limits {
	uint64_t sandboxes, forks, wall_seconds, cpu_seconds, bytes_out;
	bool has_sandboxes, has_forks, has_wall_seconds, has_cpu_seconds, has_bytes_out;
};

struct config_storage {
	uint64_t objects_mb; /* 0: no bound */
};

/* The limits of a run of code or of a sandbox with the profile. */
struct config_profile_limits {
	uint32_t cpu_ms, wall_ms, heap_mb, output_kb, max_calls, memory_mb, disk_mb, pids;
	uint32_t ttl_seconds;
	bool has_cpu_ms, has_wall_ms, has_heap_mb, has_output_kb, has_max_calls, has_memory_mb,
		has_disk_mb, has_pids, has_ttl_seconds;
};

/* A client asks for it by name. It gives nothing that the rest of the file denies. */
struct config_profile {
	struct str name;
	struct config_profile_limits limits;
	struct field_strs mcp_servers, network, tools;
	enum config_then approval;
	bool has_approval, has_tools; /* without tools it says nothing of them */
};

struct config_profiles {
	struct config_profile *p;
	size_t n;
};

/* A principal's own restrictions. has_: without it the list is the hub's. */
struct config_principal {
	struct str name; /* "local", "token", "key:NAME"; '*' stands for any characters */
	struct config_policy policy;
	struct field_strs images, network, secrets, profiles, agents, workspaces;
	struct config_limits limits;
	bool has_images, has_network, has_secrets, has_profiles, has_agents, has_workspaces;
	unsigned line;
};

struct config_principals {
	struct config_principal *p;
	size_t n;
};

struct config_preset {
	struct str name;
	struct field_strs rules; /* "pypi.org:443" */
};

struct config_resolvers {
	struct str name; /* a suffix: "corp.example" */
	struct field_strs servers; /* addresses, with or without a port */
};

/* How the hub reaches what sandboxes are granted; read when it starts. */
struct config_network {
	struct {
		struct config_preset *p;
		size_t n;
	} presets;
	bool has_proxy; /* else the environment says it */
	struct str proxy; /* http://HOST:PORT; empty: none */
	struct str proxy_secret; /* its value is "user:password" */
	struct field_strs no_proxy; /* names, each with all below it */
	struct str ca; /* absolute path of certificates (PEM) */
	struct {
		struct config_resolvers *p;
		size_t n;
	} resolvers;
	struct field_strs private; /* names that may have private addresses */
};

/* A secret that is the tokens of a log-in (OAuth), and gets new ones. */
struct config_login {
	struct field_strs urls; /* that answer with tokens */
	struct field_strs members; /* of these answers, which are tokens; none: the usual ones */
};

/* One of env, file, command and store. */
struct config_secret {
	struct str name;
	struct str env, file, ca;
	struct field_strs command, hosts;
	bool store;
	bool has_login;
	struct config_login login;
};

struct config_secrets {
	struct config_secret *p;
	size_t n;
};

struct config_approvals {
	struct field_strs elicitation; /* of principals */
	struct str webhook;
	uint64_t expire_seconds;
};

struct config_audit {
	bool off;
	uint32_t file_mb, files, days; /* 0: as guard/audit/log.h says */
};

struct config_redaction {
	bool off;
	struct field_strs without; /* kinds */
	struct field_map patterns; /* kind: expression */
};

/* Files of the TLS addresses. */
struct config_tls {
	struct str certificate, key, client_ca;
};

/* ---- MCP servers: mcpServers, modules and inputs ------------------------------------------- */

enum config_wire { CONFIG_STDIO, CONFIG_HTTP, CONFIG_SSE, CONFIG_WIRES };
extern const char *const config_wire_names[CONFIG_WIRES]; /* "stdio" and so on */

/* In which a stdio server runs. */
struct config_server_sandbox {
	bool off; /* "sandbox": false */
	bool install_scripts; /* of a package (config/package.h): they run when it is fetched */
	struct str template;
	/* folders of the host, which are at the same place inside; state: may be written whole */
	struct field_strs read, write, state;
	struct field_strs network; /* rules and presets, as those of a principal */
};

struct config_approval {
	struct str name; /* of a tool, as its server calls it */
	enum config_then then;
};

/* A text with (v) may have variables (config/variables.h): config_server_texts(). */
struct config_server {
	struct str name; /* a-z, then a-z 0-9 - */
	bool has_type;
	enum config_wire type; /* decided, though the file need not say it */
	struct str command; /* STDIO: an absolute path, or searched in PATH; no variables */
	struct field_strs args; /* (v) */
	struct field_map env; /* (v) all that the program has beside PATH, HOME and the like */
	struct str cwd; /* (v) absolute; STR_NONE */
	struct str url; /* (v) of the others */
	struct field_map headers; /* (v) */
	struct config_server_sandbox sandbox; /* (v) read, write and state */
	/* Names of the server's own. Those of allow, or all without has_, less those of deny. */
	struct field_strs allow_tools, deny_tools;
	bool has_allow_tools;
	enum config_then approval; /* of a call */
	struct {
		const struct config_approval *p;
		size_t n;
	} approvals; /* of calls of single tools, instead */
	struct field_strs read_only_tools; /* as the operator says; a server's hint is none */
	uint32_t timeout_seconds, connect_seconds;
	bool disabled;
	unsigned line;
	const char *section; /* in which it stands: "mcpServers", or "agents" */
};

struct config_servers {
	struct config_server *p;
	size_t n;
};

struct config_modules {
	bool enabled, has_enabled;
	uint32_t servers; /* configured, at most */
	uint32_t connected; /* at once, at most */
	uint32_t package_mb; /* files of a package that is fetched, MiB */
};

enum config_input_type { CONFIG_INPUT_TEXT, CONFIG_INPUT_CHOICE, CONFIG_INPUT_TYPES };

/* The question behind ${input:ID}. */
struct config_input {
	enum config_input_type type;
	struct str id, description, def;
	struct field_strs options;
	bool password;
};

struct config_inputs {
	const struct config_input *p;
	size_t n;
};

/* ---- conversations and workspaces ------------------------------------------------------------ */

/* A folder of the host in which an agent works. */
struct config_workspace {
	struct str name;
	struct str dir; /* absolute */
	struct str agent; /* of conversations in it that name none; may be STR_NONE */
	bool toolchains, has_toolchains; /* config/toolchains.h */
};

struct config_workspaces {
	struct config_workspace *p;
	size_t n;
};

struct config_conversations {
	struct str tool_prefix; /* before the names of their tools */
	uint32_t trash_days, archive_days; /* archive_days: 0: none is archived by itself */
};

/* ---- clients of others ----------------------------------------------------------------------- */

enum { CONFIG_COMPAT_APIS = 8 };

struct config_compat {
	struct field_strs apis;
	struct field_map templates;
};

/* ---- agents of conversations (servers.c) ---------------------------------------------------- */

struct config_agent {
	union {
		struct str name;
		/* as a stdio server; no cwd and nothing of tools */
		struct config_server program;
	};
	/* What it does not say, this preset does (config/agent_preset.h); STR_NONE: none, and then
	 * it has a command. */
	struct str preset;
	struct str auth_method; /* STR_NONE: none */
	struct field_map options; /* values for options of its sessions, such as mode */
	uint32_t start_seconds, stall_seconds, cancel_seconds, permission_seconds;
};

struct config_agents {
	struct config_agent *p;
	size_t n;
};

/* ---- the whole file ------------------------------------------------------------------------ */

struct config_file {
	struct config_policy policy;
	struct field_strs images;
	bool has_images;
	unsigned images_line;
	struct field_strs env;
	struct config_network network;
	struct config_limits limits;
	struct config_storage storage;
	struct config_principals principals;
	struct config_secrets secrets;
	struct config_approvals approvals;
	struct config_audit audit;
	struct config_redaction redaction;
	struct config_tls tls;
	bool has_tls;
	struct config_servers mcp_servers;
	struct config_modules modules;
	struct config_inputs inputs;
	struct config_workspaces workspaces;
	struct config_conversations conversations;
	struct config_profiles profiles;
	struct config_agents agents;
	struct config_compat compat;
};

/* One file each, src/config/SECTION.c. */
extern const struct field_table config_policy_table;
extern const struct field_table config_network_table;
extern const struct field_table config_limits_table;
extern const struct field_table config_storage_table;
extern const struct field_table config_principal_table;
extern const struct field_table config_secret_table;
extern const struct field_table config_approvals_table;
extern const struct field_table config_audit_table;
extern const struct field_table config_redaction_table;
extern const struct field_table config_tls_table;
extern const struct field_table config_server_table;
extern const struct field_table config_agent_table;
extern const struct field_table config_modules_table;
extern const struct field_table config_input_table;
extern const struct field_table config_workspace_table;
extern const struct field_table config_conversations_table;
extern const struct field_table config_profile_table;
extern const struct field_table config_compat_table;
/* The table of the whole file. */
extern const struct field_table config_table;

/* ---- reading ------------------------------------------------------------------------------- */

struct config;

/* path: copied. must: else a file that is not there is one that says nothing. ERR_DENIED where
 * others than its owner may write it, or its owner is neither this user nor root; ERR_INVALID with
 * its place where something in it is wrong. */
struct config *config_open(const char *path, bool must, struct err *e) MUST_USE;

/* The same of a text. name: of the file, for messages. */
struct config *config_parse(struct str text, const char *name, struct err *e) MUST_USE;

struct config *config_ref(struct config *c);
void config_unref(struct config *c); /* NULL-safe */
AUTO_DEFINE(config_unref, struct config)

const struct config_file *config_file(const struct config *c);
/* The path that it was opened by; NULL: it was parsed from a text. */
const char *config_path(const struct config *c);
/* Whether there is a file. */
bool config_exists(const struct config *c);
/* "config.json:12", in ret. */
const char *config_place(const struct config *c, unsigned line, char ret[CONFIG_PLACE_MAX]);

/* ---- profiles ------------------------------------------------------------------------------ */

/* The profile of clients that ask for none. It has no servers. */
#define CONFIG_PROFILE_DEFAULT "default"
enum { CONFIG_PROFILES_ASKED = 8 };

/* All of these in one: limits by the largest, lists by union, approval by the strictest; its name
 * is empty. No names: that of the default. ERR_INVALID: there is none of a name. */
int config_profiles_join(const struct config_file *f, const struct field_strs *names,
			 struct arena *a, struct config_profile *ret, struct err *e) MUST_USE;
bool config_profile_names(const struct field_strs *names, struct str name);

/* ---- servers ------------------------------------------------------------------------------- */

bool config_server_name_reserved(struct str name);

/* NULL: there is none of that name. */
const struct config_server *config_server_find(const struct config_file *f, struct str name);

const struct config_agent *config_agent_find(const struct config_file *f, struct str name);

/* A secret with hosts, which only requests to these get. NULL: it is none of these. */
const struct config_secret *config_secret_bound(const struct config_file *f, struct str name);

/* Whether the operator lets anybody use this tool of the server, by its own name. */
bool config_server_shows(const struct config_server *s, struct str tool);
/* The decision about a call of it: deny, ask or allow. */
enum config_then config_server_approval(const struct config_server *s, struct str tool);

/* Its texts that may have variables. */
enum config_text {
	CONFIG_TEXT_ARG,
	CONFIG_TEXT_ENV,
	CONFIG_TEXT_CWD,
	CONFIG_TEXT_URL,
	CONFIG_TEXT_HEADER,
	CONFIG_TEXT_READ,
	CONFIG_TEXT_WRITE,
	CONFIG_TEXT_STATE,
};
/* Calls each with all of them, in this order and that of the file. An error, which ends it, gets
 * file, line and pointer. */
typedef int (*config_text_fn)(void *data, enum config_text what, struct str text, struct err *e);
int config_server_texts(const struct config *c, const struct config_server *s, config_text_fn each,
			void *data, struct err *e) MUST_USE;

/* The texts that a server is started or asked with, with values in place of variables. */
struct config_mount {
	const char *host, *inside; /* absolute paths */
	bool read_only;
};

struct config_target {
	const char **argv, **env; /* "NAME=value"; end with NULL; argv NULL: it has a url */
	const char *cwd, *url; /* NULL: none */
	const char **read, **write, **state; /* end with NULL */
	struct config_mount *mounts; /* of options of docker run */
	size_t mounts_n;
	struct field_pair *headers;
	size_t headers_n;
	struct buf text; /* private: all of the values */
	struct arena lists; /* private */
};

struct config_values; /* config/variables.h; inputs of the file without a value take defaults */
/* ERR_INVALID with file, line and pointer: a variable has no value, or what came of one is unfit
 * for its place. Messages never have a value. */
int config_target_init(struct config_target *t, const struct config *c,
		       const struct config_server *s, const struct config_values *v,
		       struct err *e) MUST_USE;
/* Wipes the values. A target of zeroes has nothing to free. */
void config_target_fini(struct config_target *t);

/* ---- editing --------------------------------------------------------------------------------- */

/* These append the text of a file that is changed in one place: all else stays as it is, comments
 * too. text: of a file that is right. Whether the new one is, the caller finds out. */

/* With more members of mcpServers and elements of inputs (may be none): JSON without the brackets
 * around it. text: may be empty. */
int config_add(struct str text, struct str servers, struct str inputs, struct buf *to,
	       struct err *e) MUST_USE;
/* Without this member of the section `of` (mcpServers, agents), which it has. What config_add() has
 * added is gone to the byte, but for inputs. */
int config_remove(struct str text, const char *of, struct str name, struct buf *to,
		  struct err *e) MUST_USE;
/* With one rule more in the network of this server, which it has. rule: without quotes. */
int config_allow(struct str text, struct str name, struct str rule, struct buf *to,
		 struct err *e) MUST_USE;

/* Appends the text of any JSON as editors take it with more in its member of this name, which is
 * made if it is not there; brackets: "{}" or "[]". */
int config_insert(struct str text, const char *name, const char brackets[2], struct str what,
		  struct buf *to, struct err *e) MUST_USE;

/* Overwrites comments with blanks, and commas that stand before a closing bracket: JSON as editors
 * take it. */
int config_strip_loosely(char *text, size_t n, struct err *e) MUST_USE;

/* Writes the JSON Schema of the file. */
void config_schema(struct json_writer *w);
