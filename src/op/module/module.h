#pragma once
/*
 * Modules as clients see them: MCP servers of others (modules/upstream.h). What they say is
 * untrusted; the operator alone approves them, and no agent can.
 */
#include "call/call.h"
#include "modules/code/declare.h"
#include "modules/upstream.h"

enum {
	MODULE_NAME_MAX = CONFIG_SERVER_NAME_MAX + 9, /* bytes, as code imports it */
	MODULE_QUERY_MAX = 256, /* bytes */
	MODULE_LIMIT_MAX = 50, /* tools */
};

/* NULL with *e: there are none here, or none of that name. */
struct upstreams *module_all(const struct call *c, struct err *e) MUST_USE;
struct upstream *module_find(const struct call *c, struct str name, struct err *e) MUST_USE;
/* The same; of an agent's call, ERR_DENIED where its profiles do not have the module. */
struct upstream *module_of(struct call *c, struct str name, struct err *e) MUST_USE;
/* For lists: whether module_of() finds it. */
bool module_is_seen(struct call *c, struct upstream *u);

/* op.expand where a request begins with a module's name: it gets the one spelling that rules and
 * records have, whichever was said. */
int module_expand(struct call *c, void *request, struct err *e) MUST_USE;

#define MODULE_NAME_ROW(S)                                                                         \
	FIELD(S, module, .flags = FIELD_REQUIRED, .min = 1, .max = MODULE_NAME_MAX,                \
	      .doc = "Name of the module.")

struct module_view {
	struct str module, transport, digest, cause;
	struct str hidden; /* which tools are not offered, and why; STR_NONE: all are */
	enum upstream_state state;
	bool approved, disabled, sandboxed;
	bool has_tools;
	uint32_t tools, held, calls, failures; /* held: tools that wait to be approved */
};
extern const struct field_table module_view_table;
int module_view(struct call *c, struct upstream *u, struct module_view *ret,
		struct err *e) MUST_USE;
/* How many tools of all modules that the caller sees are not offered, but for what the operator's
 * file hides. */
uint32_t modules_hidden(struct call *c, struct upstreams *all);

struct modules_view {
	struct {
		const struct module_view *p;
		size_t n;
	} modules;
	struct str cause; /* why there are no servers; STR_NONE: there may be some */
};

struct module_change {
	struct str where, old, now;
};

struct module_warning {
	struct str where, text, excerpt;
};

struct module_tool_view {
	struct str name, title, description;
	struct str function; /* in code; STR_NONE: it can't be called */
	enum upstream_pin pin;
	enum config_then approval;
	bool read_only;
	struct {
		const struct module_change *p;
		size_t n;
	} changes;
	struct {
		const struct module_warning *p;
		size_t n;
	} warnings;
	struct field_json input_schema, output_schema, annotations;
};

/* package.c: the package that a module runs; texts are cleaned. */
struct module_package {
	struct str kind, name, version, license, author, repository, lock, image;
	struct field_strs maintainers, scripts, changes;
	uint64_t bytes, files;
	uint32_t dependencies;
	bool scripts_run;
};
extern const struct field_table module_package_table;

struct module_info {
	struct module_view view;
	struct str approved_at, approved_by, server, revision, instructions;
	bool has_told, told;
	/* Of a registered one. */
	struct str description, source;
	/* As the operator's file has it: with variables, and without their values. */
	struct str command, cwd, url, template;
	struct field_strs args, env, headers, read, write, network, denied, advice;
	struct str wanted; /* "npm NAME@VERSION", as the entry has it; STR_NONE: it runs none */
	bool has_package, has_update;
	struct module_package package, update;
	struct {
		const struct module_tool_view *p;
		size_t n;
	} tools;
};

extern const struct field_table module_info_table;

/* Fills in the packages of i, in the call's arena. */
int module_packages(struct call *c, const struct upstream_info *i, struct module_info *ret,
		    struct err *e) MUST_USE;

/* As module_of(), for what no agent decides, whatever rights its principal has. */
struct upstream *module_to_decide(struct call *c, struct str name, struct err *e) MUST_USE;

/* Answers with the description of a module; q may be NULL. why: what has failed without being the
 * module's own failure; may be NULL. */
struct module_info_request;
void module_tell(struct call *c, struct upstream *u, const struct module_info_request *q,
		 const struct err *why);

/* ---- registered.c: JavaScript modules of clients --------------------------------------------- */

/* What they are called: "ha:NAME", as code imports them. Nobody sees those of another owner. */
#define MODULE_REGISTERED "ha:"

static inline bool module_is_registered(struct str name)
{
	return str_starts(name, MODULE_REGISTERED);
}

/* Holt's own modules, which code imports so. */
#define MODULE_HOLT "host:holt"
#define MODULE_HOLT_RESULT "host:mcp-holt"

static inline bool module_is_own(struct str name)
{
	return str_is(name, MODULE_HOLT) || str_is(name, MODULE_HOLT_RESULT);
}

/* Those that are code, and no server. */
static inline bool module_is_code(struct str name)
{
	return module_is_registered(name) || module_is_own(name);
}

/* What stands before a module's name where code imports it. */
static inline const char *module_prefix(struct str name)
{
	return module_is_code(name) ? "" : "host:mcp-";
}

enum { REGISTERED_MAX = 64 /* of an owner */ };

struct registered {
	struct str name, description; /* name: with the prefix */
	struct str source; /* only of registered_one() */
	const struct str *exports;
	size_t n_exports;
};
/* Those of the call's owner, in its arena. */
int registered_all(struct call *c, struct registered **ret, size_t *ret_n, struct err *e) MUST_USE;
/* ERR_MODULE_NOT_FOUND. */
int registered_one(struct call *c, struct str name, struct registered *ret, struct err *e) MUST_USE;
void registered_view(const struct registered *r, struct module_view *ret);
int registered_info(struct call *c, const struct registered *r, struct module_info *ret,
		    struct err *e) MUST_USE;
/* Of module_is_own(). */
int registered_own(struct call *c, struct str name, struct module_info *ret,
		   struct err *e) MUST_USE;

/* tools, query, limit: where one is there, only such tools as can be called, the best first. */
struct module_info_request {
	struct str module;
	struct field_strs tools;
	struct str query;
	uint32_t limit;
};

/* args.c: arguments of a program, copied, without the secrets that redact() finds in them, and in
 * the defaults of their variables. It gives what may be shown, for as long as the arena. */
struct redact_part;
struct module_args {
	struct str (*redact)(void *data, const struct redact_part *part);
	void *data;
};
int module_args_show(const struct module_args *a, const struct field_strs *from,
		     struct arena *arena, struct field_strs *ret, struct err *e) MUST_USE;

/* search.c: which of the tools have words of a query, the best first. On any thread; the arena is
 * that of the texts. */
struct module_order {
	size_t *p, n;
};
struct aside_texts;
int module_order(const struct module_tool_view *p, size_t n, struct str query,
		 const struct aside_texts *texts, struct module_order *ret, struct err *e) MUST_USE;
/* Narrows *n tools of u to those that are asked for; order: by the query, where there is one. */
int module_narrow(struct call *c, struct upstream *u, const struct module_info_request *q,
		  const struct module_order *order, struct module_tool_view *p, size_t *n,
		  struct err *e) MUST_USE;

struct module_found {
	struct str module, function, name, description;
	enum config_then approval;
};

struct modules_found {
	struct {
		const struct module_found *p;
		size_t n;
	} tools;
	uint32_t total;
	uint32_t hidden; /* tools of the modules that are seen which are not offered */
};

enum module_action { MODULE_CONNECT, MODULE_DISCONNECT, MODULE_ACTIONS };

/* action: for clients with one name for module.test and module.disconnect. imports: code imports
 * it, which is no reason to try sooner than a call would; no client says so. */
struct module_manage_request {
	struct str module;
	enum module_action action;
	bool imports;
};

/* Connects a module that module_of() gives; then() is called later or at once and has the call.
 * err: why it could not be; NULL: it is connected. waits: as in struct upstream_call. */
typedef void module_connected_fn(struct call *c, const struct err *err);
void module_connect(struct call *c, struct upstream *u, bool waits, module_connected_fn *then);

/* sandbox: whose program asks; STR_NONE: a client does. No client says so. kind: where no tool is
 * called, tool is the method, and arguments are its params. */
struct module_call_request {
	enum upstream_kind kind;
	struct str module, tool;
	struct field_json arguments;
	struct field_strs profiles;
	struct str sandbox;
};

/* ask.c: a question of a module in the middle of a call is asked, or no longer. */
void module_ask(struct call *c, struct upstream_question *q);
void module_unask(struct upstream_question *q);

/* declare.c: appends declarations of all that can be called, by such a function. */
typedef int (*module_declare_fn)(struct buf *to, struct str server,
				 const struct declared_tool *tools, size_t n, struct err *e);
int module_declare(const struct module_info *m, module_declare_fn declare, struct buf *to,
		   struct err *e) MUST_USE;
/* The definition of a tool, as its server gave it but for its annotations. Owned. */
struct json_doc *module_definition(const struct module_tool_view *t, struct err *e) MUST_USE;

/* The result of a tool, as its server gave it. */
struct module_result {
	struct field_json result;
	bool kept; /* it was too large: this only says where it is */
};
/* result.c: keeps a large result, and fills in what stands for it. */
int module_result_keep(struct call *c, const struct mcp_answer *a, struct module_result *ret,
		       struct err *e) MUST_USE;

/* sandbox: as of module_call_request. */
struct module_result_request {
	struct str result, sandbox;
	uint64_t offset;
	uint32_t limit;
};
extern const struct field_table module_result_request_table;

struct module_result_part {
	struct str text;
	uint64_t offset, bytes, next;
	bool has_next;
};
/* The same as the result of a tool: the part is its text, and what tells of it the data. */
int module_result_write(struct buf *to, const struct module_result_part *p, struct err *e) MUST_USE;
/* Code and programs call it as a tool of a module, none of which may have that name. */
#define MODULE_OWN "holt"
#define MODULE_OWN_RESULT "result"
