#pragma once
/*
 * The stages of every call. A principal asks for an operation; whatever door it came through, it
 * goes
 *
 *	identify -> decode -> target -> policy -> approval -> run -> redaction -> audit -> answer
 *
 * Policy, approval, redaction and audit are hooks (struct op_hooks). A door makes a call with
 * op_new(), lets it go with op_start(), and hears of it by its struct op_sink; an operation sees
 * the rest of this header. One loop, callbacks.
 */
#include <uv.h>

#include "hub/net/net.h"
#include "base/arena.h"
#include "guard/key/key.h"
#include "guard/redact/redact.h"
#include "call/about.h"
#include "call/op.h"

struct hub;
struct box;
struct hub_sandboxes;
struct hub_sandbox;
struct sandbox;
struct previews;
struct workspaces;
struct ops;
struct once_key;
struct coding;
struct code;
struct upstreams;
struct store;
struct conversations;
struct feed;

/* What the name of a conversation's principal begins with; its id follows. */
#define CONVERSATION_PRINCIPAL "conversation:"

/* Who asks. Static or as long-lived as the hub; never taken from an argument. */
struct principal {
	const char *name; /* what policy, logs and messages call it */
	/* What it makes belongs to this, at most OWNER_MAX bytes, and so do its records. That of a
	 * key has an id behind the name, so that a later key of this name is another. NULL: it is
	 * the name. */
	const char *owner;
	/* The name of the owner of the conversation whose agent it is, which may do no more than
	 * that owner. NULL: it is no agent of a conversation. */
	const char *of;
	unsigned scopes; /* what it may ask for: enum key_scope (guard/key/key.h) */
	bool sees_all; /* also what belongs to others */
	bool ended; /* its key was revoked or has expired: it may ask for nothing any more */
	/* The operator, at this machine: may grant what others may have only within what the hub
	 * was started with. */
	bool is_operator;
	bool alone; /* nobody else asks: all the room for calls is its own */
	/* Whose shares of calls, connections and streams it uses. NULL: its own. */
	const struct principal *payer;
};

static inline const struct principal *principal_payer(const struct principal *p)
{
	return p->payer ? p->payer : p;
}

static inline struct str principal_owner(const struct principal *p)
{
	return str_of(p->owner ? p->owner : p->name);
}

/* By which names the operator's file decides: the one that asks, or for which an agent works; and
 * that of the agent's conversation, STR_NONE where there is none. */
static inline struct str principal_who(const struct principal *p)
{
	return str_of(p->of ? p->of : p->name);
}
static inline struct str principal_conversation(const struct principal *p)
{
	return p->of ? str_of(p->name) : STR_NONE;
}

/* The user who started this program and holds its standard input. */
extern const struct principal principal_local;

/* ---- the hooks ----------------------------------------------------------------------------- */

/* How a call ended, for the audit. Borrowed until call_audited(). */
struct op_outcome {
	const struct err *err; /* NULL: it was answered */
	const struct field_table *table; /* of the result, after redaction; NULL: there is none */
	const void *result;
	uint64_t taken_ms;
};

/* Any may be NULL. Each is called once for each call, but redact and may. */
struct guard;
struct op_hooks {
	/* Whether the principal may know of what belongs to this owner, where it owns that or sees
	 * all: else there is no such thing. */
	bool (*sees)(void *data, const struct principal *who, struct str owner);
	/* Whether the principal may ask for the operation at all, whatever its request says.
	 * ERR_DENIED. Also asked before there is a call. */
	int (*may)(void *data, const struct principal *who, const struct op *op, struct err *e);
	/* Whether the policy denies it every call of the operation, whatever the request says.
	 * tool: as op.tool() would give it; NULL: none. NULL: no operation is denied so. */
	bool (*never)(void *data, const struct principal *who, const struct op *op,
		      const char *tool);
	/* Then one call_allow() or call_deny(), now or later. */
	void (*policy)(void *data, struct call *c);
	/* Whether the policy wants a person's word. NULL: for every call. */
	bool (*asks)(void *data, struct call *c);
	/* Of a call for which a person is asked, then likewise one call_allow() or call_deny().
	 * Meanwhile the call counts among those that wait. */
	void (*approval)(void *data, struct call *c);
	/* What stands for a text that leaves: of the result and of each event, every string with
	 * its row; of bytes without a table, row is NULL. Owned by the call's arena, or text
	 * itself. */
	struct str (*redact)(void *data, struct call *c, const struct field *row, struct str text);
	/* What left before the end: an event of a stream, after redaction. */
	void (*sent)(void *data, struct call *c, const struct field_table *t, const void *event);
	/* Then one call_audited(), now or later; the answer waits for it. */
	void (*audit)(void *data, struct call *c, const struct op_outcome *o);
	void *data;
	const struct guard *guard; /* for operations (call/guard.h); NULL: none */
};
void call_allow(struct call *c);
void call_deny(struct call *c, const struct err *e);
void call_audited(struct call *c);

/* Of its record: whoever audits names it so, and the door tells it to the client. "": nothing is
 * audited. */
const char *call_audit_id(const struct call *c);
/* What proves its record to the client, where it came through a door for agents; JSON, copied. */
void call_set_receipt(struct call *c, struct str receipt);
struct str call_receipt(const struct call *c);
bool call_by_agent(const struct call *c);
unsigned call_conversation(const struct call *c);
bool call_can_ask(const struct call *c);
/* Which request the client's person was asked about last, what that person said, and by which
 * values; NULL: none. */
struct str call_asked(const struct call *c);
enum op_said call_said(const struct call *c);
const struct json_val *call_said_values(const struct call *c);
/* Then call_deny() or call_fail(). text is shown to the person; schema: of the form's values. */
void call_ask_client(struct call *c, struct str id, struct str text, struct str schema);
/* Whether ops_drain() or hub_close() was called. */
bool call_going_down(const struct call *c);

/* A pointer for the hooks' own use, NULL at first; nothing frees it. */
void **call_hook_state(struct call *c);

/* What hooks may know of a call. */
const struct op *call_op(const struct call *c);
const struct principal *call_principal(const struct call *c);
bool call_is_operator(const struct call *c);
const struct field_strs *call_profiles(const struct call *c); /* of op_start */
bool call_unprofiled(const struct call *c);
const struct net_grant *call_network(const struct call *c);
/* hub_sandbox_info.seq of the sandbox that it names; 0: none. */
uint64_t call_target(const struct call *c);
/* The operation says before call_fail() that nothing was done. An approval that is good for one
 * call then stays good for it. */
void call_undo(struct call *c);
/* Something may have been done. */
bool call_begun(const struct call *c);
/* What its request leaves to its target, which the call knows from when it was decoded. */
struct op_defaults *call_defaults(struct call *c);
const void *call_request(const struct call *c); /* normalized; NULL: it did not get so far */

/* ---- all calls of a hub -------------------------------------------------------------------- */

struct ops_options {
	/* Calls at once, of all clients [0: 256]; and, of them, those that read, end or
	 * administer may go beyond it by this [0: 64], so that who is locked out can still look
	 * and end. */
	unsigned max_calls, max_urgent;
	/* Calls that only wait, which do not count among those [0: 768]. In either room a session
	 * may start a call while it has fewer than seven times as many as are free there: alone it
	 * gets seven eighths of the room, each of two nearly half, and there is always some for the
	 * next. All sessions of a principal together may have fifteen times as many as are free. */
	unsigned max_waiting;
	/* Bytes of output that all calls may keep [0: 512 MiB]. */
	size_t max_output;
	/* What callers other than the operator may grant to sandboxes at most. Borrowed until
	 * ops_free(). */
	struct net_grant network;
	/* Borrowed until ops_free(); NULL: none. */
	const struct op_hooks *hooks;
	/* Coding sessions (op/coding/session.h), borrowed until ops_free(); NULL: none. */
	struct coding *coding;
	struct code *code; /* where code runs (op/code/code.h); likewise */
	/* Modules (modules/upstream.h), borrowed likewise; NULL: none. */
	struct upstreams *upstreams;
	/* Conversations (agents/conversation/conversation.h) and news of the hub
	 * (agents/conversation/feed.h), likewise. */
	struct conversations *conversations;
	struct feed *feed;
	/* Without a hub, the loop that hooks wait on. */
	uv_loop_t *loop;
};
/* Borrows the hub until ops_free(). NULL: for operations that need none (op/local.h). */
struct ops *ops_new(struct hub *hub, const struct ops_options *o, struct err *e) MUST_USE;
/* No call is under way. NULL-safe. */
void ops_free(struct ops *ops);
struct hub *ops_hub(struct ops *ops);
struct coding *ops_coding(const struct ops *ops);
const struct guard *ops_guard(const struct ops *ops); /* as call_guard() */
/* Redacts in place what a door says where there is no call: a refusal quotes its request. False:
 * the text was cut, since it has become longer than there is room. */
bool ops_redact(const struct ops *ops, char *text, size_t size);
struct upstreams *ops_upstreams(const struct ops *ops);
/* The hub is to end: cancels the calls that wait for a person, whose requests stay for the next
 * hub, and lets no other wait for one. */
void ops_drain(struct ops *ops);
/* Its doors are closed, and the hub closes next: on_ended is called, later, when no call is left,
 * or after ms. What calls have in the work pool comes back to the hub, and to its audit. cancel:
 * they are cancelled. */
int ops_end(struct ops *ops, bool cancel, unsigned ms, void (*on_ended)(void *arg), void *arg,
	    struct err *e) MUST_USE;
void ops_end_calls_of(struct ops *ops, const struct principal *who);
/* Cancels all calls of a principal, and ends the ports that it forwarded. */
void ops_end_of(struct ops *ops, const struct principal *who);
/* op_hooks.may, for a door before it makes a call. */
int ops_may(const struct ops *ops, const struct principal *who, const struct op *op,
	    struct err *e) MUST_USE;
/* Whether op_hooks.may or op_hooks.never refuses every call. */
bool ops_never(const struct ops *ops, const struct principal *who, const struct op *op,
	       const char *tool);
/* Whether what this owner made is still somebody's: its key may have ended. */
bool ops_knows(const struct ops *ops, struct str owner);
/* Likewise, and whether it may act: an archived conversation may not. */
bool ops_acts(const struct ops *ops, struct str owner);
/* The principal for whom programs of what this owner made ask; NULL: nobody. */
const struct principal *ops_owner(const struct ops *ops, struct str owner);

/* ---- for doors ----------------------------------------------------------------------------- */

/* What a call asks of its client in the middle: of a person by a form or an address to open, or of
 * the client's model. Its owner keeps it until on_said() or call_unask(). */
enum call_ask_kind { CALL_ASK_FORM, CALL_ASK_URL, CALL_ASK_SAMPLING };
struct call_question {
	enum call_ask_kind kind;
	struct str params; /* JSON object, as MCP has it */
	/* Once. said: what MCP calls the result; STR_NONE: e says why there is none. */
	void (*on_said)(struct call_question *q, struct str said, const struct err *e);
	/* Private: of which call, and whose client has it; the next, for the door. */
	struct call *of, *via;
	struct call_question *next;
};
/* For doors: its answer. The call may end inside. */
void call_question_said(struct call_question *q, struct str said, const struct err *e);

/* What a door does with what leaves. Exactly one of answer and fail is called, and is the last
 * call. */
struct op_sink {
	/* result: of the operation's table, or of the one that call_answer_by() named; borrowed. */
	void (*answer)(void *client, const struct field_table *t, const void *result);
	/* NULL, or called in the work pool where an answer is long, before answer() or fail() is:
	 * writes what the client will be told, and touches nothing that the loop may change. */
	void (*write)(void *client, const struct field_table *t, const void *result);
	void (*fail)(void *client, const struct err *e);
	/* NULL, or how far it has come; total 0 is unknown. */
	void (*progress)(void *client, double progress, double total, const char *message);
	/* NULL, or what is logged on the way, from op_start.log_level on. level: as RFC 5424 has
	 * them, 0 for debug. data: JSON of any type. */
	void (*log)(void *client, unsigned level, const char *logger, struct str data);
	/* For op_start.can_ask: the call fails next. Instead of telling that, the door asks the
	 * client's person about this request by a form, and starts the call anew with the
	 * answer. */
	void (*ask)(void *client, struct str id, struct str text, struct str schema);
	/* Of doors that take a stream, all three; else NULL. open: it begins, and from here on a
	 * failure is its last message. event: of the operation's table. full: whoever sends more
	 * now is too slow. */
	int (*open)(void *client, struct err *e);
	void (*event)(void *client, const void *event);
	bool (*full)(void *client);
	/* Holds or releases the door's client. Nothing that it says reaches a call before the first
	 * release. NULL: the client sends nothing after its request. */
	void (*hold)(void *client, bool hold);
	/* Asks the client, and later calls call_question_said(), unless unask() came before. -1: it
	 * can't be asked. NULL, both: no client of the door can be. */
	int (*question)(void *client, struct call_question *q, struct err *e);
	void (*unask)(void *client, struct call_question *q);
};

/* What the person at a client said of a request for approval. */
enum op_said { OP_SAID_NOTHING, OP_SAID_YES, OP_SAID_NO };

/* Borrowed until the call ends, all but the struct itself. */
struct op_start {
	const struct principal *who;
	bool agent; /* through a door for agents: the principal is not the operator here */
	/* Number of the conversation with an agent, none of which has it again while the hub
	 * runs; 0: there is none. */
	unsigned conversation;
	/* Whether the client has a person who can be asked (op_sink.ask), which request that person
	 * was asked about last (STR_NONE: none), and the answer. */
	bool can_ask;
	struct str asked;
	enum op_said said;
	const struct json_val *said_values; /* of the form that was filled in */
	/* Which of the principal's sessions asks, for its share of the room; only compared. */
	const void *session;
	const struct op *op;
	/* Writes the request's struct, which is zeroed, with defaults where the door hides
	 * members. */
	int (*decode)(void *client, void *request, struct err *e);
	const struct op_sink *sink;
	void *client;
	struct arena *arena; /* for what lives as long as the call */
	const char *label; /* names it in log records */
	unsigned log_level; /* least that op_sink.log is to hear */
	/* Profiles of the operator's file by which its door asks (call/profile.h): those of a
	 * session, or of what its sandbox was made with. n 0: those that the request names. */
	struct field_strs profiles;
	bool unprofiled; /* the operator said without any what it may use: none holds */
	/* call_audit_id(), where the door tells it before there is a call; NULL: one is made. */
	const char *audit_id;
};
/* Makes an id for op_start.audit_id; "" where nothing is audited. */
enum { AUDIT_ID_MAX = 40 };
void op_audit_id(const struct ops *ops, char ret[AUDIT_ID_MAX]);

/* NULL without memory. */
struct call *op_new(struct ops *ops, const struct op_start *s, struct err *e) MUST_USE;
/* Starts its stages. It may have ended when this returns. */
void op_start(struct call *c);

/* How long the client waits at most, where that is known only when its request is decoded. */
void call_set_timeout(struct call *c, uint64_t ms);

/* Base URL by which the client reached its door, for what tells clients where things are. */
void call_set_endpoint(struct call *c, struct str url);

/* Of an operation with OP_KEYED: the key under which it is done once (call/once.h). */
void call_set_key(struct call *c, struct str key);

/* The client wants it no more: what runs for it is ended, and its end still follows. */
void call_cancel(struct call *c);
/* The stream is no longer full. */
void call_room(struct call *c);
/* It has ended, and its audit may still take time: nothing reaches the operation any more. */
bool call_ended(const struct call *c);
/* What the client says after its request. -1: the message is refused, and the call goes on. */
int call_hear(struct call *c, const void *message, struct err *e) MUST_USE;

/* For what a door lists itself: whether the principal may know of a sandbox, that is, owns it or
 * sees all. */
bool op_sees(const struct ops *ops, const struct principal *who, const struct hub_sandbox *l);

/* What a door may say before a request is whole: whether the principal knows the sandbox, and
 * whether it runs. */
int op_check_sandbox(struct ops *ops, const struct principal *who, struct str id,
		     struct err *e) MUST_USE;

/* ---- for operations ------------------------------------------------------------------------ */

struct box *call_box(struct call *c);
/* The parts of the gate; none where all are NULL. */
const struct guard *call_guard(const struct call *c);
struct arena *call_arena(struct call *c);
uv_loop_t *call_loop(struct call *c);
/* All sandboxes of the hub. Those that a request names are found by call_hub_sandbox(). */
struct hub_sandboxes *call_sandboxes(struct call *c);
struct workspaces *call_workspaces(struct call *c); /* NULL: none are kept */
/* Path of the store of images (hub/images.h); NULL: none. */
const char *call_images(struct call *c);
/* What makes links to servers in sandboxes (hub/preview.h); NULL: nothing does. */
const struct previews *call_previews(struct call *c);
struct once_key *call_once(struct call *c);
struct coding *call_coding(const struct call *c);
struct code *call_code(const struct call *c);
struct upstreams *call_upstreams(const struct call *c);
struct conversations *call_conversations(const struct call *c); /* NULL: none */
struct feed *call_feed(const struct call *c); /* likewise */
struct store *call_store(const struct call *c); /* the registry; NULL: there is none */
const void *call_session(const struct call *c); /* op_start.session */
/* Begins a call of another operation that this one needs, with op, decode, sink, client, arena and
 * profiles from s. It passes all stages itself, for the same client. Neither ends with the
 * other. */
struct call *call_inner(const struct call *c, const struct op_start *s, struct err *e) MUST_USE;
/* For who both asks and runs. */
void *call_client(struct call *c);
/* How long its client waits at most, in ms; 0: it did not say. */
uint64_t call_timeout_ms(const struct call *c);

struct str call_endpoint(const struct call *c); /* STR_NONE: its door has none */

/* The sandbox of this id, in whatever state, where the principal may know of it: else
 * ERR_SANDBOX_NOT_FOUND. A failure is then about it. */
struct hub_sandbox *call_hub_sandbox(struct call *c, struct str id, struct err *e) MUST_USE;
/* The same, running: it is busy until the end of the call, and valid so long also where it ends
 * before; else NULL with what hub_sandbox_sandbox() says. One for each call. */
struct sandbox *call_sandbox(struct call *c, struct str id, struct err *e) MUST_USE;

/* For lists: whether the principal may know of it, or of what belongs to an owner. */
bool call_sees(const struct call *c, const struct hub_sandbox *l);
bool call_sees_owner(const struct call *c, struct str owner);
/* The only owner whose things the principal may know of; STR_NONE: it sees all. */
struct str call_owner_seen(const struct call *c);
/* To whom belongs what the call makes. */
struct str call_owner(const struct call *c);

/* What a failure would be about: to be filled as it becomes known. Texts live as long as the
 * call. */
struct call_about *call_about(struct call *c);

/* Takes n bytes of what all calls together may keep of output; given back at the call's end.
 * ERR_LIMIT when it is used up. */
int call_reserve(struct call *c, size_t n, struct err *e) MUST_USE;

/* From here on the call only waits, for news or an end: it makes room for one that works, and
 * counts among those that wait instead. ERR_LIMIT where too many do. At most once. */
int call_waits(struct call *c, struct err *e) MUST_USE;
/* The same for a person's answer: ops_drain() cancels it. */
int call_waits_for_person(struct call *c, struct err *e) MUST_USE;
bool call_is_waiting(const struct call *c);

/* Asks the client, while the call counts among those that wait. ERR_CLIENT_CANT: nobody is there
 * who could answer. All questions are answered or taken back before the call ends. */
int call_ask(struct call *c, struct call_question *q, struct err *e) MUST_USE;
/* The same question of an inner call, of the client of the call that began it. */
int call_ask_for(struct call *c, struct call_question *q, struct err *e) MUST_USE;
void call_unask(struct call_question *q);
/* Somebody else is asked in the middle: the same counting, until as many call_end_asking(). */
int call_begin_asking(struct call *c, struct err *e) MUST_USE;
void call_end_asking(struct call *c);

/* on_cancel is called at most once, and never after the call's end. NULL: nobody wants to know. */
void call_on_cancel(struct call *c, void (*on_cancel)(void *data), void *data);
bool call_cancelled(const struct call *c);

/* Where the client wants progress: calls on_tick, instead of an earlier one, every second until
 * the end of the call. */
void call_on_tick(struct call *c, void (*on_tick)(void *data), void *data);
void call_progress(struct call *c, double progress, double total, const char *message);
/* It has come no further since. */
void call_still(struct call *c, const char *message);
/* Whether its client wants to hear such messages, and from which level on. data: JSON, of which
 * only what redaction leaves is told. */
bool call_wants_log(const struct call *c, unsigned *ret_least);
void call_log(struct call *c, unsigned level, struct str logger, struct str data);

/* Whether what it has to tell can go out as it comes: else it is kept for the answer. */
bool call_streams(const struct call *c);
/* Begins the stream. on_room is called when there is room again after call_full() was true. */
int call_open(struct call *c, void (*on_room)(void *data), void *data, struct err *e) MUST_USE;
void call_send(struct call *c, const void *event);
bool call_full(struct call *c);
/* Counts bytes that leave the sandbox that the request names, where box/host does not see them. */
void call_count_out(struct call *c, uint64_t bytes);

/* Hears what the client says from here on (call_hear()), which is no longer held. on_message: -1
 * refuses it. */
void call_listen(struct call *c, int (*on_message)(void *data, const void *message, struct err *e),
		 void *data);
void call_hold(struct call *c, bool hold);

/* Streams of bytes that leave in pieces, or parts of which leave: a secret may be cut by both. An
 * archive keeps its length. */
enum call_stream { CALL_STDOUT, CALL_STDERR, CALL_FILE, CALL_ARCHIVE, CALL_STREAMS };

/* What may leave of the next bytes of a stream, and of those that were held back; valid until the
 * next call. */
struct str call_redact_piece(struct call *c, enum call_stream stream, struct str bytes,
			     enum redact_flush flush);
/* Bytes before the first piece, which do not leave. */
void call_redact_before(struct call *c, enum call_stream stream, struct str bytes);
/* How many bytes of a stream are held back, and how many matches were replaced in it. */
size_t call_redact_held(const struct call *c, enum call_stream stream);
uint64_t call_redact_replaced(const struct call *c, enum call_stream stream);
/* Calls on_quiet once, where it is not asked for again within ms. */
void call_on_quiet(struct call *c, uint64_t ms, void (*on_quiet)(void *data), void *data);

/* A part of a text: its length may change. Valid until the end of the call. */
struct str call_redact_part(struct call *c, const struct redact_part *part);
/* The same for a text of the answer, where it may be long: it is put into the answer as it is.
 * The text and what stands around it stay until the end of the call. */
int call_answer_part(struct call *c, const struct redact_part *part, struct err *e) MUST_USE;
/* Takes a buffer, which is freed at the end of the call. */
int call_keep(struct call *c, struct buf *b, struct err *e) MUST_USE;

/* As call_send(), where the event's bytes have passed call_redact_piece(). */
void call_send_redacted(struct call *c, const void *event);

/* As call_send(), of an event that was redacted. */
void call_send_as_is(struct call *c, const void *event);

/* What leaves in bytes, without a table: as redaction lets it. */
struct str call_redact(struct call *c, struct str bytes);
/* A struct that leaves by a door of its own making: from itself, or a copy that is valid until the
 * next. */
const void *call_redact_by(struct call *c, const struct field_table *t, const void *from);

/* Each ends the call; c is gone. */
void call_answer(struct call *c, const void *result);
/* By another table than the operation's; NULL: no document. */
void call_answer_by(struct call *c, const struct field_table *t, const void *result);
/* The operation has had its effect, and its answer can't be given: *e becomes ERR_UNSURE and says
 * that it was done, with the ids of the result, which may be NULL. One that only reads fails as it
 * did. */
void call_say_done(const struct call *c, const struct field_table *t, const void *result,
		   struct err *e);
void call_fail(struct call *c, const struct err *e);
