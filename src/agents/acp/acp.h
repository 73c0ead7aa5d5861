#pragma once
/*
 * The client of the Agent Client Protocol as a core without I/O: one connection to one agent, with
 * one session. The transport passes whole lines in, and gets whole lines through a callback.
 * Protocol version 1, and the draft of version 2 where the agent answers that
 * (agentclientprotocol.com/protocol).
 *
 *	NEW ── INITIALIZING ── OPENING ── IDLE ── PROMPTING ── IDLE
 *	                         │  │               └ CANCELLING ┘
 *	                     AUTHENTICATING			any ── OVER
 *
 * A session has one prompt in flight. What the agent asks (permissions, files, terminals) is given
 * to the owner, who answers now or later; what it may not ask is refused here. All input is
 * untrusted: what fits nothing is counted and dropped, and an agent can at most end its own
 * connection. There is no clock: the owner decides how long anything may take.
 *
 * All functions must be called on one thread. Callbacks come from inside acp_take(), acp_dropped(),
 * acp_lost() and acp_cancel(), and `send` from inside any. They may call any function, except
 * acp_free() inside `send`.
 */
#include "base/buf.h"
#include "json/field/field.h"

struct acp;
struct acp_ask;
struct rpc_sniff;

enum {
	ACP_MESSAGE_MAX = 10 << 20, /* bytes of a message, either way */
	ACP_ASKS_MAX = 32, /* requests of the agent without an answer */
	ACP_OPTIONS_MAX = 16, /* of a permission */
	ACP_PATH_MAX = 4095,
	ACP_ID_MAX = 256, /* bytes of ids of sessions, modes and options */
};

enum acp_state {
	ACP_NEW,
	ACP_INITIALIZING,
	ACP_AUTHENTICATING,
	ACP_OPENING,
	ACP_IDLE,
	ACP_PROMPTING,
	ACP_CANCELLING,
	ACP_OVER,
};

/* ---- what the agent reports ---------------------------------------------------------------- */

enum acp_update_kind {
	ACP_USER_MESSAGE, /* what the user said, as the agent has it */
	ACP_MESSAGE,
	ACP_THOUGHT,
	ACP_TOOL_CALL, /* a new one; version 2 has only updates */
	ACP_TOOL_UPDATE,
	ACP_PLAN, /* replaces the last */
	ACP_COMMANDS,
	ACP_MODE,
	ACP_CONFIG,
	ACP_INFO,
	ACP_USAGE,
	ACP_RUNS, /* version 2: it works, or waits for an answer */
	ACP_OTHER, /* of a kind that this client does not know */
	ACP_LOGINS, /* `all` is the answer to initialize: how one can log in */
	ACP_OPENED, /* `all` is the answer to what opened the session: its modes and options */
};

/* Borrowed for the callback. */
struct acp_update {
	enum acp_update_kind kind;
	struct str name; /* of the kind, as sent */
	/* The markdown of messages and thoughts. Blocks that are no text are named in it. */
	struct str text;
	struct str message_id; /* may be NONE; another one begins another message */
	bool whole; /* it replaces the message instead of continuing it */
	struct str tool_call_id; /* of tool calls; never empty there */
	struct str mode_id; /* of ACP_MODE */
	bool waits; /* of ACP_RUNS: requires_action */
	const struct json_val *all; /* the update as sent, an object */
};

/* ---- what the agent asks ------------------------------------------------------------------- */

enum acp_option_kind {
	ACP_ALLOW_ONCE,
	ACP_ALLOW_ALWAYS,
	ACP_REJECT_ONCE,
	ACP_REJECT_ALWAYS,
	ACP_OPTION_OTHER,
};

struct acp_option {
	struct str id, name, kind_name;
	enum acp_option_kind kind;
};

struct acp_pair {
	struct str name, value;
};

enum acp_ask_kind {
	ACP_ASK_PERMISSION, /* acp_permit(), acp_deny() */
	ACP_ASK_READ, /* acp_answer_content() */
	ACP_ASK_WRITE, /* acp_answer_done() */
	ACP_ASK_TERMINAL, /* acp_answer_terminal() */
	ACP_ASK_OUTPUT, /* acp_answer_output() */
	ACP_ASK_EXIT, /* acp_answer_exit() */
	ACP_ASK_KILL, /* acp_answer_done() */
	ACP_ASK_RELEASE, /* the same */
	ACP_ASKS,
};

/* A request of the agent; its texts are borrowed from it. */
struct acp_ask {
	enum acp_ask_kind kind;
	union {
		struct {
			/* They have any length. command: what is to run; version 2. */
			struct str title, description, command;
			struct str tool_call_id;
			const struct json_val *tool_call; /* an object; NULL: there is none */
			struct {
				struct acp_option *p;
				size_t n; /* at least 1 */
			} options;
		} permission;
		struct {
			struct str path; /* absolute */
			uint32_t line, limit; /* lines count from 1; 0: not said */
		} read;
		struct {
			struct str path, content;
		} write;
		struct {
			struct str command, cwd; /* cwd absolute, or NONE */
			struct field_strs args;
			struct {
				struct acp_pair *p;
				size_t n;
			} env;
			uint64_t output_limit;
			bool has_output_limit;
		} terminal;
		struct str terminal_id; /* OUTPUT, EXIT, KILL, RELEASE */
	};
	void *data; /* the owner's */
};

/* Each answers and frees the ask. */

/* ERR_INVALID: that is none of its options, and the ask stays. */
int acp_permit(struct acp_ask *q, struct str option_id, struct err *e) MUST_USE;
void acp_deny(struct acp_ask *q); /* "cancelled" */
void acp_answer_content(struct acp_ask *q, struct str text);
void acp_answer_done(struct acp_ask *q);
void acp_answer_terminal(struct acp_ask *q, struct str terminal_id);

struct acp_exit {
	bool has_code, over; /* over: it has ended */
	uint32_t code;
	struct str signal; /* its name; NONE */
};
void acp_answer_output(struct acp_ask *q, struct str output, bool truncated,
		       const struct acp_exit *x);
void acp_answer_exit(struct acp_ask *q, const struct acp_exit *x);
void acp_refuse(struct acp_ask *q, const struct err *why);

/* ---- the connection ------------------------------------------------------------------------ */

/* An MCP server for the session: by its URL where the agent can, else by a program. */
struct acp_server {
	struct str name;
	struct str url; /* NONE: only the program */
	const struct acp_pair *headers;
	size_t n_headers;
	struct str command; /* absolute path; NONE: only the URL */
	const struct str *args;
	size_t n_args;
	const struct acp_pair *env;
	size_t n_env;
};

struct acp_handler {
	/* Queues a line, which has no line breaks; borrowed. */
	void (*send)(void *owner, struct str line);
	/* The session is open and idle. kept: it is the one of the options. */
	void (*ready)(void *owner, struct str session_id, bool kept);
	void (*update)(void *owner, const struct acp_update *u);
	void (*asked)(void *owner, struct acp_ask *q);
	/* The ask needs no answer any more, and is freed after the call. */
	void (*withdrawn)(void *owner, struct acp_ask *q);
	/* The turn has ended: why is its stop reason; or with e, and the session is idle. */
	void (*turn_ended)(void *owner, struct str why, const struct err *e);
	/* The answer to acp_set(): result, or why not. */
	void (*set)(void *owner, const struct json_val *result, const struct err *e);
	/* Once: the connection is of no use. A turn has ended before. ERR_LOGIN: the agent wants a
	 * log-in; ERR_UNSUPPORTED: another version; ERR_TRANSPORT, ERR_INVALID. */
	void (*over)(void *owner, const struct err *e);
};

/* Borrowed until acp_free(). */
struct acp_options {
	const struct acp_handler *handler; /* all set */
	void *owner;
	struct str name, version; /* of this client */
	bool files, terminals; /* the owner can answer such asks */
	struct str cwd; /* absolute */
	const struct str *folders; /* more of the session, where the agent takes them */
	size_t n_folders;
	const struct acp_server *servers;
	size_t n_servers;
	struct str session_id; /* an earlier session to go on with, if it is there; NONE */
	/* The one of authMethods to log in by if the agent wants it; NONE. */
	struct str auth_method;
};

struct acp *acp_new(const struct acp_options *o, struct err *e) MUST_USE;
/* Asks end without a callback. NULL-safe. */
void acp_free(struct acp *a);
AUTO_DEFINE(acp_free, struct acp)

/* Sends initialize. */
void acp_start(struct acp *a);

enum acp_state acp_state(const struct acp *a);
struct str acp_session_id(const struct acp *a); /* NONE: not open yet */
unsigned acp_asks(const struct acp *a);
/* Messages that were none, or fitted nothing. */
uint64_t acp_strays(const struct acp *a);

/* What goes with the text of a prompt: an image, where the agent takes them, or a file by its
 * address. */
struct acp_block {
	struct str image; /* in base64; NONE: the address */
	struct str type; /* of the media */
	struct str name, uri; /* of a file */
	uint64_t size; /* of a file */
};
/* Known once the session is open. */
bool acp_takes_images(const struct acp *a);
/* The last prompt was answered with an error. After an internal error the connection is over where
 * another process can go on with the session, and else with the second in a row. */
bool acp_refused(const struct acp *a);

/* ERR_CONFLICT: the session is not idle. blocks may be NULL. */
int acp_prompt(struct acp *a, struct str text, const struct acp_block *blocks, size_t n,
	       struct err *e) MUST_USE;
/* Its permissions are withdrawn. turn_ended follows when the agent has ended it. Nothing happens
 * without a prompt in flight. */
void acp_cancel(struct acp *a);
/* What can be set of a session, each by a method of its own. */
enum acp_setting { ACP_SETTING_MODE, ACP_SETTING_MODEL, ACP_SETTING_OPTION, ACP_SETTINGS };
/* `set` follows, or over. id: of an option. boolean: value is "true" or "false". ERR_CONFLICT: no
 * session is open, or too many are not answered; ERR_INVALID: version 2 has options alone. */
int acp_set(struct acp *a, enum acp_setting what, struct str id, struct str value, bool boolean,
	    struct err *e) MUST_USE;

/* A line of the agent. */
void acp_take(struct acp *a, struct str line);
/* A line that could not be taken whole: too long, or no memory. What it may have answered fails. */
void acp_dropped(struct acp *a, const struct rpc_sniff *sniff, const struct err *why);
/* The agent has ended. */
void acp_lost(struct acp *a, const struct err *why);
