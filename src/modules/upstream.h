#pragma once
/*
 * Modules: MCP servers of others, which the hub runs or asks for its clients. They are those of
 * mcpServers in the operator's file.
 *
 *	idle ── connecting ── connected ── idle	another needs its place, and nobody uses it
 *
 * It is in error where it did not start or has ended, and closed where the operator has disabled
 * it, or has not approved it.
 *
 * A module is connected by the first call that needs it, and not before the operator has approved
 * it: its command and arguments, the values of its variables, its address, its sandbox. An approval
 * is a row of the registry with a keyed digest of all that, so any change of it wants another.
 *
 * Its tools are pinned by what they say of themselves (modules/pins.c): one that is another, or
 * new, is quarantined until the operator approves the module again.
 *
 * A program runs in a sandbox of its own that no operation reaches, with nothing but its declared
 * environment, folders and hosts, unless the operator's file says "sandbox": false. All that it
 * started ends with it, and with the hub, also where that is killed.
 *
 * One that can't be connected, or ends before it has answered a call, is tried again after a while,
 * UPSTREAM_TRIES times; a call that is answered forgets that. All that modules say is untrusted.
 *
 * One loop. Callbacks never come from inside the function that starts something.
 */
#include <uv.h>

#include "config/config.h"
#include "mcp/client/client.h"
#include "net/wire/rule.h"

struct upstreams; /* all of a hub */
struct upstream; /* one */
struct upstream_question;
struct arena;
struct hub;
struct net_grant;
struct package;
struct secrets;

enum upstream_state {
	UPSTREAM_IDLE,
	UPSTREAM_CONNECTING,
	UPSTREAM_CONNECTED,
	UPSTREAM_ERROR,
	UPSTREAM_CLOSED,
	UPSTREAM_STATES
};
extern const char *const upstream_state_names[UPSTREAM_STATES];

enum {
	UPSTREAM_TRIES = 4, /* the first and three more */
	UPSTREAM_RESULT_MAX = 1 << 20, /* bytes of a result that a call gives */
	UPSTREAM_MESSAGE_MAX = 16 << 20, /* bytes of a message, and so of a result that is kept */
	UPSTREAM_KEPT_S = 600, /* how long it is */
	UPSTREAM_LOG_MAX = 64 << 10, /* bytes of what it says besides that are kept */
	UPSTREAM_WATCHED_MAX = 256, /* resources of one module that clients watch */
};

struct upstreams_options {
	struct hub *hub; /* borrowed until upstreams_close() has ended */
	struct config *config; /* a reference is taken */
	struct secrets *secrets; /* borrowed likewise; NULL: there are none */
	/* The rules that a text of a server's network means (op/network.h). */
	int (*rules)(const struct config_file *f, struct str text, struct net_grant *to,
		     struct err *e);
	/* Options that builds of this hub have: services, resolvers and the like, ending with NULL.
	 * Borrowed likewise; NULL: none. */
	const char *const *build;
	/* Says that a secret's value is given to a program, before it is. */
	int (*gave_secret)(void *data, struct str name, struct str value, struct err *e);
	void *data;
};
/* Reads the approvals. */
struct upstreams *upstreams_new(const struct upstreams_options *o, struct err *e) MUST_USE;
/* Another file holds. Calls that are under way go on; a module that is another now is connected
 * anew by its next call. A reference is taken. */
void upstreams_configure(struct upstreams *all, struct config *c);
/* For other programs of the operator's file; as long as all. */
struct program_sandbox_of;
const struct program_sandbox_of *upstreams_programs(const struct upstreams *all);

/* No call is under way. Ends all modules, then calls on_closed. NULL-safe: it is called later, from
 * the loop. */
void upstreams_close(struct upstreams *all, void (*on_closed)(void *arg), void *arg);

/* Whether there are modules at all: the operator may have switched them off (ERR_DENIED). */
int upstreams_check(const struct upstreams *all, struct err *e) MUST_USE;
/* In the order of the file; NULL: the next of the last, or there are none. */
struct upstream *upstreams_next(const struct upstreams *all, const struct upstream *after);
/* By any of its spellings: "weather", "mcp-weather", "host:mcp-weather", and as Python has it.
 * NULL with ERR_MODULE_NOT_FOUND. */
struct upstream *upstreams_find(struct upstreams *all, struct str name, struct err *e) MUST_USE;

/* on_change is called, later and once for many, when tools that may be called, or what else is
 * listed, are others. on_updated: a module says that one of its resources has changed; not more
 * often than is good. May be NULL. The caller owns the struct. */
struct upstreams_watch {
	struct upstreams_watch *next;
	void (*on_change)(void *arg);
	void (*on_updated)(void *arg, struct str module, struct str uri);
	void *arg;
};
void upstreams_watch_add(struct upstreams *all, struct upstreams_watch *w);

/* Indexes of tools (store/tools.h), by a digest of what is in each: the last that were made are
 * kept. NULL: there is none, or another search has it. Owned by the caller until it keeps it. */
struct tools;
struct tools *upstreams_take_tools(struct upstreams *all, const char *key);
void upstreams_keep_tools(struct upstreams *all, const char *key, struct tools *t); /* takes t */

/* Results that are larger than UPSTREAM_RESULT_MAX, for who called. Borrowed until the loop's next
 * turn. ERR_TOO_LARGE: others keep too much. */
struct upstream_result {
	struct str id, text;
};
int upstreams_keep(struct upstreams *all, struct str owner, struct str text,
		   struct upstream_result *ret, struct err *e) MUST_USE;
/* ERR_MODULE_RESULT: this owner has none of that id. */
int upstreams_kept(const struct upstreams *all, struct str owner, struct str id,
		   struct upstream_result *ret, struct err *e) MUST_USE;

/* ---- one ----------------------------------------------------------------------------------- */

/* Whether a tool is what was approved; only such ones can be called. */
enum upstream_pin {
	UPSTREAM_PIN_APPROVED,
	UPSTREAM_PIN_NEW,
	UPSTREAM_PIN_CHANGED,
	UPSTREAM_PIN_WARNED, /* its text may be meant to mislead a model, and nobody has looked */
	UPSTREAM_PINS
};
extern const char *const upstream_pin_names[UPSTREAM_PINS];

/* A tool, as its server describes it: untrusted texts. */
struct upstream_tool {
	struct str name;
	struct str json; /* all of its description, one object */
	enum upstream_pin pin;
	bool odd; /* it describes no arguments that a client could send */
};

/* Why a tool is not offered to clients. */
enum upstream_hidden {
	UPSTREAM_OFFERED,
	UPSTREAM_HIDDEN_NEW,
	UPSTREAM_HIDDEN_CHANGED,
	UPSTREAM_HIDDEN_WARNED,
	UPSTREAM_HIDDEN_ODD,
	UPSTREAM_HIDDEN_FILE,
	UPSTREAM_HIDDEN_POLICY, /* of one principal; said by who knows it */
	UPSTREAM_HIDDENS
};
/* For a person and a model: "3 of its tools are …"; static. */
extern const char *const upstream_hidden_texts[UPSTREAM_HIDDENS];
extern const char *const upstream_hidden_names[UPSTREAM_HIDDENS]; /* on the wire */

/* Lists that a server has beside its tools. */
enum upstream_list { UPSTREAM_RESOURCES, UPSTREAM_TEMPLATES, UPSTREAM_PROMPTS, UPSTREAM_LISTS };

/* How a call asks, and what stands for a tool's name in the operator's file where it calls none:
 * "resources/read", "prompts/get", "completion/complete". */
enum upstream_kind {
	UPSTREAM_CALL,
	UPSTREAM_READ,
	UPSTREAM_GET,
	UPSTREAM_COMPLETE,
	UPSTREAM_KINDS
};
extern const char *const upstream_kind_methods[UPSTREAM_KINDS];

/* Borrowed until the loop's next turn. */
/* What its program asked for and is not granted. */
struct upstream_denied {
	char host[NET_HOST_MAX]; /* cleaned */
	uint16_t port; /* 0: not known */
};
enum { UPSTREAM_DENIED = 8 /* kept of one connection */, UPSTREAM_DENIED_TEXT = 768 };
/* "it asked for api.example.com, which is not granted: holt mcp allow NAME api.example.com" */
void upstream_denied_text(const struct upstream *u, const struct upstream_denied *d,
			  char ret[UPSTREAM_DENIED_TEXT]);

struct upstream_info {
	struct str name;
	const struct config_server *server;
	/* What its sandbox may reach: each text of the file, and behind ": " what it means where
	 * that is not the same, such as the hosts of a preset. */
	struct field_strs network;
	enum upstream_state state;
	/* Of what is to be approved, its tools as well where they are listed; empty: it has
	 * none. */
	struct str digest;
	bool approved, disabled; /* disabled: by the operator's file or word */
	const struct err *why; /* of the last failure; NULL: none since it was connected */
	unsigned failures; /* in a row */
	unsigned calls; /* under way */
	uint64_t calls_total, connects;
	int64_t approved_ms; /* Unix time; 0: it is not */
	struct str approved_by;
	struct str pins; /* approved definitions: {"instructions":…,"tools":[…]}; empty: none */
	/* Of an entry that runs a package: what it runs, and what module.update has fetched and
	 * waits to be approved; NULL: none. Where an entry runs a package, and there is neither, it
	 * has no digest. */
	bool is_package;
	const struct package *package, *update;
	bool fetching;
	/* By its program since the last connection began; borrowed. */
	const struct upstream_denied *denied;
	size_t n_denied;
	/* Known while it is connected, and from then on. */
	struct str version, title; /* of the protocol; what the server calls itself */
	struct str instructions; /* untrusted */
	bool told; /* the instructions are those that were approved */
	const struct upstream_tool *tools;
	size_t n_tools;
	bool listed; /* the tools are known */
	/* Known likewise: JSON objects as the server gives them, untrusted. */
	struct {
		const struct str *p;
		size_t n;
	} lists[UPSTREAM_LISTS];
	/* The revision of pins, lists and what the operator's file says of it: new whenever they
	 * change, and never another module's. */
	uint64_t revision;
};
void upstream_info(struct upstream *u, struct upstream_info *ret);

/* Keeps the texts of its tools until they are given back. NULL: it has none. */
struct upstream_tools;
struct upstream_tools *upstream_tools_ref(const struct upstream *u);
void upstream_tools_unref(struct upstream_tools *t); /* NULL-safe */

/* Why clients are not offered this tool, which is one of u. */
enum upstream_hidden upstream_hidden(const struct upstream *u, const struct upstream_tool *t);

/* Whether calls of this tool can be made: else ERR_DENIED, ERR_MODULE_UNAPPROVED or
 * ERR_MODULE_TOOL, and nothing is connected for it. */
int upstream_check(const struct upstream *u, struct str tool, struct err *e) MUST_USE;
/* The same of calls that call no tool. Nobody is asked about a completion. */
int upstream_check_kind(const struct upstream *u, enum upstream_kind kind, struct err *e) MUST_USE;

/* Which of its resources clients watch, in place of those of before; it is not connected for that.
 * At most UPSTREAM_WATCHED_MAX; copied. */
int upstream_watch(struct upstream *u, const struct str *uris, size_t n, struct err *e) MUST_USE;

/* The name of an approved tool in a list of tools of all modules (modules/code/names.h). STR_NONE:
 * it is not listed. Borrowed until the loop's next turn. */
struct str upstream_listed(struct upstream *u, struct str tool);

/* The server's own name of a tool that may be called, by any of its spellings: that of its
 * function in code, and upstream_listed(). Others stay as they are. Copied to the arena; p is NULL
 * with *e. */
struct str upstream_tool_spelled(struct upstream *u, struct str tool, struct arena *a,
				 struct err *e) MUST_USE;

/* Its standard error and its log messages; untrusted bytes. */
struct str upstream_log(const struct upstream *u);

/* Of the operator alone. Approves it as it is, with the tools that it has listed and the operator's
 * file does not hide; of those only the named, where some are: all else that it says then stays as
 * it was approved. ERR_MODULE_TOOL: it has listed none of such a name. */
int upstream_approve(struct upstream *u, struct str who, const struct field_strs *tools,
		     struct err *e) MUST_USE;
int upstream_revoke(struct upstream *u, struct err *e) MUST_USE;
int upstream_enable(struct upstream *u, bool on, struct err *e) MUST_USE;

/* Fetches the package of its entry anew. What was fetched waits for upstream_approve(), which then
 * has another digest; what was approved runs until then. 1: its entry runs none, and on_done is not
 * called; 0: it is fetched. ERR_CONFLICT: it is being fetched. on_done: once, later; e: why nothing
 * was fetched. The caller owns the struct until then, or until upstream_fetch_leave(): the fetch
 * goes on. */
struct upstream_fetching {
	void (*on_done)(void *owner, const struct err *e);
	void *owner;
	struct upstream *of; /* private */
};
int upstream_fetch_start(struct upstream *u, struct upstream_fetching *f, struct err *e) MUST_USE;
void upstream_fetch_leave(struct upstream_fetching *f);

/* The next call connects it again. ERR_CONFLICT: it has calls under way. */
int upstream_disconnect(struct upstream *u, struct err *e) MUST_USE;

/* ---- calls --------------------------------------------------------------------------------- */

/* A call of a tool, or with tool STR_NONE only a connection and its list of tools. The caller owns
 * it until on_done or upstream_call_cancel(). */
struct upstream_call {
	enum upstream_kind kind;
	bool waits; /* with tool STR_NONE: until it may be tried again, as a call of a tool does */
	/* Borrowed until it ends. arguments: JSON object; of another kind the params of its
	 * method. tool: of another kind not STR_NONE, and of no meaning. */
	struct str tool, arguments;
	uint64_t timeout_ms; /* at most that of the module; 0: that */
	struct str who; /* owner (struct principal) for whom it is made; borrowed likewise */
	/* Once. a: the answer as struct mcp_answer says, its e also where nothing was sent; NULL:
	 * it is connected. */
	void (*on_done)(void *owner, const struct mcp_answer *a);
	void (*on_progress)(void *owner, const struct mcp_progress *p); /* may be NULL */
	/* The server logs something from `level` on; it may be about another call of the same
	 * owner. Bounded for each call. May be NULL. */
	void (*on_log)(void *owner, const struct mcp_log_message *m);
	enum mcp_level level;
	/* The server asks something before it answers: one upstream_question_answer() or _fail(),
	 * now or later. NULL: it is refused. on_unasked: nobody wants to know any more, and the
	 * question is gone afterwards; always before the call ends. */
	void (*on_asked)(void *owner, struct upstream_question *q);
	void (*on_unasked)(void *owner, struct upstream_question *q);
	void *owner;
	/* Private. */
	struct upstream *of;
	struct upstream_conn *conn; /* NULL: it waits for one */
	struct mcp_pending *pending;
	struct upstream_call *next;
	struct upstream_question *asked; /* without an answer */
	unsigned asks; /* so far */
	size_t logged; /* bytes, likewise */
};
/* -1: it can't begin, and on_done is not called. */
int upstream_call_start(struct upstream *u, struct upstream_call *c, struct err *e) MUST_USE;
/* on_done is not called any more; the server is told. */
void upstream_call_cancel(struct upstream_call *c);

/* A question: a form or an address (MCP_ASK_FORM, MCP_ASK_URL), whose message says which module
 * asks, or words for a model (MCP_ASK_SAMPLING). Forms that ask for secrets are refused here
 * already. */
enum mcp_ask_kind upstream_question_kind(const struct upstream_question *q);
struct str upstream_question_params(const struct upstream_question *q); /* JSON object; cleaned */
void upstream_question_set_data(struct upstream_question *q, void *data);
void *upstream_question_data(const struct upstream_question *q);
/* Each frees q; the call may end inside. result: as MCP has it. One that the server would have to
 * refuse fails the question. */
void upstream_question_answer(struct upstream_question *q, struct str result);
void upstream_question_fail(struct upstream_question *q, const char *why);
