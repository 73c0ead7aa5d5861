/* Prompts of conversations and their turns: conversation.send, .queue and its changes, .cancel and
 * .wait. */
#include "base/clock.h"
#include "op/conversation/conversation.h"

enum {
	KEY_LENGTH_MAX = 128,
	DELAY_MAX = 7 * 86400,
	WAIT_MAX = 3600,
	WAIT_DEFAULT = 600,
	SEND_BYTES_MAX = 6 << 20, /* of the files of a prompt: in base64 below ACP's message */
};

#define MESSAGE_ROW(S)                                                                             \
	FIELD(S, message_id, .flags = FIELD_REQUIRED, .min = 1, .max = QUEUE_ID,                   \
	      .doc = "Id of the prompt.")

/* ---- conversation.send ----------------------------------------------------------------------- */

#define Q struct send_request
struct send_request {
	struct str session_id, conversation_id, prompt, key;
	struct field_strs files;
	uint32_t delay_seconds;
};
static const struct field send_fields[] = {
	SESSION_ROW(Q),
	CONVERSATION_ROW(Q, .flags = FIELD_REQUIRED, .min = 1,
			 .doc = "Id of the conversation that gets the prompt."),
	FIELD(Q, prompt, .flags = FIELD_REQUIRED, .min = 1, .max = QUEUE_MESSAGE_MAX,
	      .doc = "Text of the prompt."),
	FIELD(Q, key, .max = KEY_LENGTH_MAX,
	      .doc = "Idempotency key: a prompt with the same key is queued only once."),
	FIELD(Q, files, .max = QUEUE_FILES,
	      .doc = "Ids of files of the conversation (conversation.add_file) to send with it."),
	FIELD(Q, delay_seconds, .max = DELAY_MAX, .def = DEFAULT_INT(0),
	      .doc = "Seconds to wait before it is sent."),
};
#undef Q
static const struct field_table send_table = FIELD_TABLE(struct send_request, send_fields);

struct sent_view {
	bool success;
	struct str message_id;
	uint64_t queue_position;
};
static const struct field sent_fields[] = {
	FIELD(struct sent_view, success, .flags = FIELD_REQUIRED, .doc = "Always true."),
	FIELD(struct sent_view, message_id, .flags = FIELD_REQUIRED, .doc = "Id of the prompt."),
	FIELD(struct sent_view, queue_position, .flags = FIELD_REQUIRED,
	      .doc = "Number of prompts before it; also 0 if it was sent before."),
};
static const struct field_table sent_table = FIELD_TABLE(struct sent_view, sent_fields);

/* They are there, and fit into one message to an agent. */
static int send_check_files(const struct conversation *t, const struct field_strs *files,
			    struct err *e)
{
	struct attachment a;
	uint64_t sum = 0;

	for (size_t i = 0; i < files->n; i++) {
		if (attachment_read(conversation_folder(t), files->p[i], &a, NULL, e) < 0)
			return -1;
		sum += a.size;
	}
	return sum <= SEND_BYTES_MAX
		     ? 0
		     : err_set(e, ERR_TOO_LARGE, "the files of a prompt have at most %d bytes",
			       SEND_BYTES_MAX);
}

static int send_prompt(struct call *c, const struct send_request *q, struct sent_view *ret,
		       char id[QUEUE_ID + 1], struct err *e)
{
	struct conversation_caller who;
	struct queue_item item = { .message = q->prompt, .files = q->files, .key = q->key };
	size_t position;
	struct conversation *t = conversation_caller(c, q->session_id, &who, e) < 0
				       ? NULL
				       : conversation_target(c, &who, q->conversation_id,
							     CONVERSATION_FLAG_can_send_prompt, e);

	/* Who prompts an agent has its rights, also where the conversation is another's. */
	if (!t || send_check_files(t, &q->files, e) < 0 ||
	    conversation_check_start(c, conversation_record(t)->agent,
				     conversation_record(t)->workspace, e) < 0)
		return -1;
	item.source = conversation_source(c, &who, e);
	if (q->delay_seconds)
		item.not_before_ms = (uint64_t)clock_unix_ms() + q->delay_seconds * 1000ull;
	if (!item.source.p || conversation_send(t, &item, id, &position, e) < 0)
		return -1;
	*ret = (struct sent_view){ true, str_of(id), position };
	return 0;
}

static void send_run(struct call *c, const void *request)
{
	char id[QUEUE_ID + 1];
	struct sent_view view;
	struct err e = ERR_INIT;

	if (send_prompt(c, request, &view, id, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

const struct op conversation_send_op = {
	.action = "conversation.send",
	.doc = "Puts a prompt into a conversation's queue. It is in the queue when this returns.",
	.effect = OP_WRITE,
	.request = &send_table,
	.result = &sent_table,
	.run = send_run,
};

/* ---- the queue ------------------------------------------------------------------------------- */

struct queue_request {
	struct str conversation_id;
};
static const struct field queue_request_fields[] = { CONVERSATION_NAMED(struct queue_request) };
static const struct field_table queue_request_table = FIELD_TABLE(struct queue_request,
								  queue_request_fields);

struct queue_view {
	struct {
		const struct queue_item *p;
		size_t n;
	} messages;
	uint64_t count;
};
static const struct field queue_fields[] = {
	FIELD_OBJECTS(struct queue_view, messages, queue_item_table, .flags = FIELD_REQUIRED,
		      .max = QUEUE_ALL, .doc = "In the order in which they are sent."),
	FIELD(struct queue_view, count, .flags = FIELD_REQUIRED, .doc = "Number of prompts."),
};
static const struct field_table queue_table = FIELD_TABLE(struct queue_view, queue_fields);

/* Copies, since the next change of any frees them. */
static void queue_answer(struct call *c, struct conversation *t)
{
	struct err e = ERR_INIT;
	const struct queue *all = conversation_queue(t, &e);
	const struct queue_view now = { { all ? queue_at(all, 0) : NULL,
					  all ? queue_count(all) : 0 },
					all ? queue_count(all) : 0 };
	const struct queue_view *view = all ? field_copy(&queue_table, &now, call_arena(c),
							 conversation_keep, call_arena(c), &e)
					    : NULL;

	if (view)
		call_answer(c, view);
	else
		call_fail(c, &e);
}

static void queue_run(struct call *c, const void *request)
{
	const struct queue_request *q = request;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_own(c, q->conversation_id, &e);

	if (t)
		queue_answer(c, t);
	else
		call_fail(c, &e);
}

const struct op conversation_queue_op = {
	.action = "conversation.queue",
	.doc = "Lists the prompts that wait for a conversation.",
	.effect = OP_READ,
	.request = &queue_request_table,
	.result = &queue_table,
	.run = queue_run,
};

#define Q struct change_request
struct change_request {
	struct str conversation_id, message_id;
	uint32_t to;
};
static const struct field change_fields[] = {
	CONVERSATION_NAMED(Q),
	MESSAGE_ROW(Q),
	FIELD(Q, to, .flags = FIELD_REQUIRED, .max = QUEUE_MAX,
	      .doc = "New place: number of prompts before it."),
};
#undef Q
static const struct field_table move_table = FIELD_TABLE(struct change_request, change_fields);
static const struct field_table change_table = { .rows = change_fields,
						 .n = ARRAY_LEN(change_fields) - 1,
						 .size = sizeof(struct change_request) };

static int change_move(struct conversation *t, const struct change_request *q, struct err *e)
{
	return conversation_queue_move(t, q->message_id, q->to, e);
}

static int change_remove(struct conversation *t, const struct change_request *q, struct err *e)
{
	return conversation_queue_remove(t, q->message_id, e);
}

static int change_retry(struct conversation *t, const struct change_request *q, struct err *e)
{
	return conversation_queue_again(t, q->message_id, e);
}

static void change_run(struct call *c, const void *request,
		       int (*change)(struct conversation *t, const struct change_request *q,
				     struct err *e))
{
	const struct change_request *q = request;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_own(c, q->conversation_id, &e);

	if (t && change(t, q, &e) == 0)
		queue_answer(c, t);
	else
		call_fail(c, &e);
}

#define CHANGE(name, table, effect_, doc_)                                                         \
	static void name##_run(struct call *c, const void *request)                                \
	{                                                                                          \
		change_run(c, request, change_##name);                                             \
	}                                                                                          \
	const struct op conversation_##name##_op = { .action = "conversation." #name,              \
						     .doc = doc_,                                  \
						     .effect = effect_,                            \
						     .request = &table,                            \
						     .result = &queue_table,                       \
						     .run = name##_run }

CHANGE(move, move_table, OP_WRITE, "Moves a prompt to another place in the queue.");
CHANGE(remove, change_table, OP_DESTROY, "Takes a prompt out of the queue.");
CHANGE(retry, change_table, OP_WRITE, "Sends a failed prompt again.");

/* ---- conversation.cancel --------------------------------------------------------------------- */

struct cancelled_view {
	bool cancelled;
};
static const struct field cancelled_fields[] = {
	FIELD(struct cancelled_view, cancelled, .flags = FIELD_REQUIRED,
	      .doc = "The turn is being ended; false: no turn was under way."),
};
static const struct field_table cancelled_table = FIELD_TABLE(struct cancelled_view,
							      cancelled_fields);

static void cancel_run(struct call *c, const void *request)
{
	const struct queue_request *q = request;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_own(c, q->conversation_id, &e);

	if (t)
		call_answer(c, &(struct cancelled_view){ conversation_cancel(t) });
	else
		call_fail(c, &e);
}

const struct op conversation_cancel_op = {
	.action = "conversation.cancel",
	.doc = "Ends the current turn of a conversation; what it has done stays.",
	.effect = OP_WRITE,
	.flags = OP_IDEMPOTENT,
	.request = &queue_request_table,
	.result = &cancelled_table,
	.run = cancel_run,
};

/* ---- conversation.wait ----------------------------------------------------------------------- */

#define Q struct wait_request
struct wait_request {
	struct str session_id, conversation_id, what;
	uint32_t timeout_seconds;
};
static const struct field wait_fields[] = {
	SESSION_ROW(Q),
	CONVERSATION_ROW(Q, .doc = "Id of another conversation, not your own."),
	FIELD(Q, what, .max = 32, .def = DEFAULT_STR("agent_responded"),
	      .doc = "What to wait for. agent_responded: the queue is empty and no turn is "
		     "under way."),
	FIELD(Q, timeout_seconds, .min = 1, .max = WAIT_MAX, .def = DEFAULT_INT(WAIT_DEFAULT),
	      .doc = "Maximum number of seconds to wait."),
};
#undef Q
static const struct field_table wait_table = FIELD_TABLE(struct wait_request, wait_fields);

#define V struct waited_view
struct waited_view {
	bool success, timed_out, still_prompting;
	struct str what, state;
};
static const struct field waited_fields[] = {
	FIELD(V, success, .flags = FIELD_REQUIRED, .doc = "What was waited for has happened."),
	FIELD(V, what, .flags = FIELD_REQUIRED, .doc = "What was waited for."),
	FIELD(V, timed_out, .flags = FIELD_REQUIRED, .doc = "The time was up before that."),
	FIELD(V, still_prompting, .flags = FIELD_REQUIRED, .doc = "A turn is under way."),
	FIELD(V, state, .flags = FIELD_REQUIRED,
	      .doc = "State of the conversation, as in conversation_get."),
};
#undef V
static const struct field_table waited_table = FIELD_TABLE(struct waited_view, waited_fields);

static struct conversation *wait_target(struct call *c, const struct wait_request *q, struct err *e)
{
	struct conversation_caller who;
	struct conversation *t;

	if (!str_is(q->what, "agent_responded"))
		return err_set(e, ERR_INVALID, "what: agent_responded"), NULL;
	t = conversation_caller(c, q->session_id, &who, e) < 0
		  ? NULL
		  : conversation_target(c, &who, q->conversation_id,
					CONVERSATION_FLAG_can_do_introspection, e);
	if (t && t == who.me) {
		err_set(e, ERR_INVALID, "conversation_id: your own turn does not end before this");
		return NULL;
	}
	return t;
}

/* Who waits; in the arena of its call. */
struct waiter {
	struct conversation_watch watch;
	struct call *call;
	struct conversation *conversation; /* NULL: deleted */
	struct str what;
	uint64_t since_ms;
	bool over; /* it was so, whatever came after that */
};

static bool wait_is_over(const struct conversation *t)
{
	return !conversation_is_prompting(t) && conversation_queue_length(t) == 0;
}

static void wait_answer(struct call *c, const struct conversation *t, struct str what, bool over)
{
	call_answer(c, &(struct waited_view){
			       .success = over,
			       .what = what,
			       .timed_out = !over,
			       .still_prompting = conversation_is_prompting(t),
			       .state = str_of(conversation_state_names[conversation_state(t)]) });
}

static void wait_end(void *data)
{
	struct waiter *w = data;
	struct err e;

	if (w->conversation)
		conversation_watch_remove(w->conversation, &w->watch);
	else
		err_set(&e, ERR_CONVERSATION_NOT_FOUND, "the conversation was deleted meanwhile");
	/* The flags of who asks may be others by now. */
	if (w->conversation && wait_target(w->call, call_request(w->call), &e))
		wait_answer(w->call, w->conversation, w->what, w->over);
	else
		call_fail(w->call, &e);
}

/* Inside of a change nothing is answered, and more changes may come before the answer. */
static void wait_on_change(void *data)
{
	struct waiter *w = data;

	if (!wait_is_over(w->conversation))
		return;
	w->over = true;
	call_on_quiet(w->call, 0, wait_end, w);
}

static void wait_on_gone(void *data)
{
	struct waiter *w = data;

	w->conversation = NULL;
	call_on_quiet(w->call, 0, wait_end, w);
}

static void wait_on_cancel(void *data)
{
	struct waiter *w = data;
	struct err e;

	if (w->conversation)
		conversation_watch_remove(w->conversation, &w->watch);
	err_set(&e, ERR_CANCELLED, "nobody waits for the conversation any more");
	call_fail(w->call, &e);
}

/* So that the client's own time is not over meanwhile. */
static void wait_on_tick(void *data)
{
	struct waiter *w = data;
	struct err e;

	/* What it would tell is no longer for who asks. */
	if (w->conversation && !wait_target(w->call, call_request(w->call), &e))
		call_on_quiet(w->call, 0, wait_end, w);
	else
		call_progress(
			w->call, (double)(clock_ms() - w->since_ms) / 1000, 0,
			w->conversation
				? conversation_state_names[conversation_state(w->conversation)]
				: "gone");
}

static int wait_begin(struct call *c, struct conversation *t, const struct wait_request *q,
		      struct err *e)
{
	struct waiter *w = arena_alloc(call_arena(c), sizeof(*w), e);

	if (!w || call_waits(c, e) < 0)
		return -1;
	*w = (struct waiter){
		.watch = { .on_change = wait_on_change, .on_gone = wait_on_gone, .data = w },
		.call = c,
		.conversation = t,
		.what = q->what,
		.since_ms = clock_ms(),
	};
	conversation_watch_add(t, &w->watch);
	call_on_cancel(c, wait_on_cancel, w);
	call_on_tick(c, wait_on_tick, w);
	call_on_quiet(c, q->timeout_seconds * 1000ull, wait_end, w);
	return 0;
}

static void wait_run(struct call *c, const void *request)
{
	const struct wait_request *q = request;
	struct err e = ERR_INIT;
	struct conversation *t = wait_target(c, q, &e);

	if (t && wait_is_over(t))
		wait_answer(c, t, q->what, true);
	else if (!t || wait_begin(c, t, q, &e) < 0)
		call_fail(c, &e);
}

const struct op conversation_wait_op = {
	.action = "conversation.wait",
	.doc = "Waits until the agent of another conversation has answered all its prompts.",
	.effect = OP_READ,
	.flags = OP_WAITS,
	.request = &wait_table,
	.result = &waited_table,
	.run = wait_run,
};
