#pragma once
/*
 * The gate fills the hooks of calls (call/call.h): who may know of a sandbox, policy, approval,
 * redaction and audit, from the parts in guard/ and the operator's file. Each part is a file here,
 * which opens its part and sets its hooks.
 */
#include <uv.h>

#include "call/call.h"

struct config;
struct config_file;
struct feed;
struct gate;
struct conversation;
struct conversations;
struct guard;

struct gate_options {
	/* NULL: of a program without a hub. Its calls bring their own (call_loop()). */
	uv_loop_t *loop;
	struct hub *hub; /* NULL: there is none. Borrowed until gate_free() */
	struct config *config; /* a reference is taken; NULL: no file */
	const char *secrets; /* the data folder, which has the store of secrets; NULL: none */
	/* Names of the MCP tools that do an operation, and of the sets that they are in; gives how
	 * many. NULL: there are none. */
	size_t (*tools_of)(const struct op *op, const char **names, size_t max);
	/* Conversations, whose tokens identify, too; borrowed until gate_free(). NULL: none. */
	struct conversations *conversations;
	struct feed *feed; /* where news are published, borrowed likewise; NULL: nowhere */
	const char *audit; /* folder of the audit log, which is made; NULL: none is kept */
	/* They are called instead of the gate's, whose parts then only serve operations; NULL:
	 * none are. */
	const struct op_hooks *hooks;
	/* Another file holds. Called from the loop. May be NULL. */
	void (*on_config)(void *owner, struct config *c);
	/* A principal of gate_identify() is good for nothing any more; no new call of it is let in.
	 * Called from the loop, once. May be NULL. */
	void (*on_ended)(void *owner, const struct principal *who);
	void *owner;
};
struct gate *gate_open(const struct gate_options *o, struct err *e) MUST_USE;

/* Checks of a file beyond its tables. ERR_INVALID, with its place. */
int gate_check_config(const struct config *c, struct err *e) MUST_USE;

/* A secret of the file that can be had at once, so from no command, before there is a gate. folder:
 * of the data; NULL: there is none. Owned. */
struct secret *gate_secret_now(const struct config_file *f, const char *folder, struct str name,
			       struct err *e) MUST_USE;

/* Whether a hub with this configuration can open the audit log; folder NULL: it has none. */
int gate_check_audit(const struct config *c, const char *folder, struct err *e) MUST_USE;

/* A call as rules see it. All is borrowed. */
struct gate_asked {
	const struct op *op;
	const void *request; /* as normalized (call/op.h); NULL: any (policy_call.any_request) */
	struct str who, conversation; /* STR_NONE: it is no agent's */
	const char *const *tools; /* names of tools by which rules know it */
	size_t n_tools;
	struct str image; /* STR_NONE: it makes no sandbox */
	struct op_defaults *defaults;
};
struct policy_verdict;
/* What the file decides. *ret_unread: the pointer of a rule that leads to what can't be read, for
 * which the call is denied; NULL: there is none. */
struct policy_verdict gate_judge(const struct config_file *f, const struct gate_asked *q,
				 const char **ret_unread);
/* What a request says of that; STR_NONE: nothing. */
struct str gate_image(const struct op *op, const void *request);

/* Borrowed until gate_free(). */
const struct op_hooks *gate_hooks(const struct gate *g);

/* Why the operator's file, as it is now, is not what holds: it has a mistake, or is gone. NULL: it
 * holds. Borrowed until the loop's next turn. */
const struct err *gate_problem(const struct gate *g);

/* The parts of it, for what is run without a call; as long as the gate. */
const struct guard *gate_guard(const struct gate *g);

/* How often the file was read, and whether it is one that holds. */
struct gate_stats {
	uint64_t reads;
	uint32_t bad;
};
void gate_stats(const struct gate *g, struct gate_stats *ret);
/* Whether calls can run: ERR_STORE_FULL or ERR_IO where their records can't be kept. */
int gate_ready(const struct gate *g, struct err *e) MUST_USE;

/* The principal of an API key or of a conversation's token, which lives as long as the gate; NULL:
 * it is neither, or has ended. */
const struct principal *gate_identify(struct gate *g, struct str token);
/* Writes an audit record of what is no call: who gave or ended rights without one. */
void gate_audit_note(struct gate *g, const struct principal *who, const char *action,
		     struct str target);

/* For conversations_options.on_token_end. g may be NULL. */
void gate_token_ended(struct gate *g, struct conversation *t);

/* No call is under way. What waits on the loop ends in its next turns. NULL-safe. */
void gate_free(struct gate *g);
AUTO_DEFINE(gate_free, struct gate)
