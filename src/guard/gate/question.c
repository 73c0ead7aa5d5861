/*
 * Questions to people: those of the hub, whose clients may show them to their own person, and what
 * is told of them: in the conversation that one belongs to, and in the news of the hub.
 */
#include "agents/conversation/conversation.h"
#include "agents/conversation/feed.h"
#include "ask/question.h"
#include "base/log.h"
#include "base/when.h"
#include "guard/gate/internal.h"
#include "hub/core/hub.h"

enum { EVENT_MAX = 512 << 10 };

/* The events ui_prompt and ui_prompt_answer. */
struct gate_prompt {
	struct str request_id;
	enum question_kind kind;
	enum question_origin origin;
	struct str title, question;
	struct {
		const struct question_option *p;
		size_t n;
	} options;
	struct str text;
	struct field_json schema;
	struct str tool_call_id, expires_at;
};
#define P struct gate_prompt
static const struct field prompt_fields[] = {
	FIELD(P, request_id, .flags = FIELD_REQUIRED),
	FIELD_ENUM(P, kind, question_kind_names),
	FIELD_ENUM(P, origin, question_origin_names),
	FIELD(P, title),
	FIELD(P, question),
	FIELD_OBJECTS(P, options, question_option_table),
	FIELD(P, text),
	FIELD(P, schema),
	FIELD(P, tool_call_id),
	FIELD(P, expires_at),
};
#undef P
static const struct field_table prompt_table = FIELD_TABLE(struct gate_prompt, prompt_fields);

struct gate_prompt_answer {
	struct str request_id;
	enum question_state outcome;
	struct str option_id, label, free_text;
	struct field_json values;
	struct str by, over;
};
#define A struct gate_prompt_answer
static const struct field prompt_answer_fields[] = {
	FIELD(A, request_id, .flags = FIELD_REQUIRED),
	FIELD_ENUM(A, outcome, question_state_names),
	FIELD(A, option_id),
	FIELD(A, label),
	FIELD(A, free_text),
	FIELD(A, values),
	FIELD(A, by),
	FIELD(A, over),
};
#undef A
static const struct field_table prompt_answer_table = FIELD_TABLE(struct gate_prompt_answer,
								  prompt_answer_fields);

struct gate_question_copy {
	const struct gate *gate;
	struct arena *arena;
};

static struct str gate_question_redact(void *data, const struct field *row, struct str text)
{
	struct gate_question_copy *k = data;

	return gate_redact_text(k->gate, text, k->arena);
}

static int gate_question_append(struct gate *g, struct conversation *t, const char *type,
				const struct field_table *table, const void *event, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(EVENT_MAX);
	struct gate_question_copy k = { g, a };
	const void *copy = a ? field_copy(table, event, a, gate_question_redact, &k, e) : NULL;
	autofree char *text = copy ? field_encode_text(table, copy, EVENT_MAX, e) : NULL;

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	return text ? conversation_append(t, type, str_of(text), NULL, e) : -1;
}

static int gate_question_record(struct gate *g, struct conversation *t, const struct question *q,
				struct err *e)
{
	const struct question_spec *s = &q->spec;
	char expires[WHEN_MAX];
	struct gate_prompt asked = {
		.request_id = q->ask.id,
		.kind = q->kind,
		.origin = q->origin,
		.title = s->title,
		.question = s->question,
		.options = { s->options.p, s->options.n },
		.text = s->text,
		.schema = s->schema,
		.tool_call_id = s->tool_call_id,
	};

	if (q->state != QUESTION_PENDING)
		return gate_question_append(g, t, "ui_prompt_answer", &prompt_answer_table,
					    &(struct gate_prompt_answer){
						    .request_id = q->ask.id,
						    .outcome = q->state,
						    .option_id = q->reply.option_id,
						    .label = q->reply.label,
						    .free_text = q->reply.free_text,
						    .values = q->reply.values,
						    .by = q->who.n ? q->who : STR_NONE,
						    .over = q->surface.n ? q->surface : STR_NONE,
					    },
					    e);
	when_text(expires, q->ask.deadline_ms);
	asked.expires_at = str_of(expires);
	return gate_question_append(g, t, "ui_prompt", &prompt_table, &asked, e);
}

static struct conversation *gate_question_conversation(const struct gate *g,
						       const struct question *q)
{
	return q->session.n && g->conversations ? conversations_find(g->conversations, q->session)
						: NULL;
}

static void gate_question_waits(struct gate *g, const struct question *q)
{
	struct conversation *t = q->kind == QUESTION_NOTIFY ? NULL
							    : gate_question_conversation(g, q);

	if (t)
		conversation_waits(t, q->state == QUESTION_PENDING);
}

void gate_tell_news(struct gate *g, const struct gate_news *n)
{
	autobuf struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_object(&w);
	json_write_name(&w, "state");
	json_write_text(&w, n->state);
	if (n->session.n) {
		json_write_name(&w, "session_id");
		json_write_str(&w, n->session);
	}
	json_write_object_end(&w);
	if (json_write_done(&w, &e) == 0)
		feed_publish(g->feed, &(struct feed_news){ .topic = n->topic,
							   .id = n->id,
							   .owner = n->owner,
							   .data = buf_str(&b) });
}

static void gate_question_on_change(void *data, const struct ask *ask)
{
	const struct question *q = (const struct question *)ask;
	struct gate *g = data;
	struct conversation *t = gate_question_conversation(g, q);
	struct err e;

	gate_tell_news(g, &(struct gate_news){ .topic = "question",
					       .id = q->ask.id,
					       .owner = q->ask.principal,
					       .session = q->session,
					       .state = question_state_names[q->state] });
	if (t && gate_question_record(g, t, q, &e) < 0)
		log_warn("question %.*s: %s", STR_ARG(q->ask.id), e.msg);
	gate_question_waits(g, q);
}

static bool gate_question_elicits(void *data, const struct call *c)
{
	return gate_elicits(data, c);
}

/* The program that asked for this permission has ended with the hub of before: whatever a person
 * said now, nobody would do. */
static void gate_question_take_back(struct gate *g, const struct question *q)
{
	struct err e;

	if (question_cancel(g->guard.questions, q->ask.id, STR_LIT(""), STR_LIT(""), &e) < 0)
		log_warn("question %.*s: %s", STR_ARG(q->ask.id), e.msg);
}

int gate_question_open(struct gate *g, struct err *e)
{
	const struct asks_options o = { .payer = gate_payer,
					.on_change = gate_question_on_change,
					.data = g };
	const struct question *q;
	uint64_t seq = 0;

	if (!g->hub)
		return 0;
	g->guard.questions = questions_new(g->loop, hub_store(g->hub), &o, e);
	g->guard.elicits = gate_question_elicits;
	if (!g->guard.questions)
		return -1;
	while ((q = question_after(g->guard.questions, seq))) {
		seq = q->ask.seq;
		if (q->state != QUESTION_PENDING)
			continue;
		gate_question_waits(g, q);
		if (q->origin == QUESTION_OF_ACP)
			gate_question_take_back(g, q);
	}
	return 0;
}

void gate_question_close(struct gate *g)
{
	questions_free(g->guard.questions);
	g->guard.questions = NULL;
}
