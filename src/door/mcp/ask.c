/*
 * Questions in the middle of a call, asked of the client that made it, whatever its era:
 *
 *	legacy, task	the call stays, and the handler runs again with the answer
 *	modern		its request is answered with input_required. The run goes on without a
 *			client until that comes back, with the answer and a sealed state that
 *			names the run
 *
 * One question at a time is with the client. A run whose client does not come back is cancelled
 * after ASK_MS; a result that nobody was there for is kept for KEPT_MS. What a run uses outlives
 * its first request, so it has an arena of its own.
 */
#include <stdlib.h>

#include "base/id.h"
#include "base/log.h"
#include "door/mcp/internal.h"

enum {
	ARENA_MAX = 64 << 20,
	ASK_MS = 10 * 60 * 1000,
	KEPT_MS = 60 * 1000,
	RUNS_MAX = 256, /* that have asked, of all clients */
	RUNS_OF_MAX = 32, /* of a principal */
	ANSWER_MAX = 4 << 20,
	KEY_MAX = 16,
};

#define STATE_PREFIX "run:"

struct run_asking {
	struct mcp_run *next; /* of the door */
	struct arena *arena;
	const void *who;
	const struct mcp_session *session; /* NULL: each request is one of its own */
	char id[ID_MAX]; /* "": it has asked nothing yet */
	struct call_question *first; /* the one that is with the client, and those behind it */
	char key[KEY_MAX]; /* of the first; "": it was not sent */
	unsigned asked;
	bool waits; /* the client has it */
	bool sending; /* to the client, on the stack */
	bool dropped; /* nobody will come back */
	bool timing;
	uv_timer_t timer;
	bool *gone; /* set when the run is freed */
	/* The result of a call that has ended without its client. */
	struct mcp_content texts[2];
	struct mcp_result kept;
};

int run_asking_init(struct mcp_run *r, struct err *e)
{
	const struct mcp_session *s = mcp_call_session(r->mc);
	struct run_asking *a = calloc(1, sizeof(*a));

	if (a)
		a->arena = arena_new(ARENA_MAX);
	if (!a || !a->arena) {
		free(a);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	a->who = mcp_call_principal(r->mc);
	a->session = s && mcp_session_road(s) != MCP_ROAD_POST ? s : NULL;
	r->asking = a;
	return 0;
}

struct arena *run_asking_arena(const struct mcp_run *r)
{
	return r->asking->arena;
}

static void asking_on_closed(uv_handle_t *h)
{
	free(h->data);
}

void run_asking_free(struct mcp_run *r)
{
	struct run_asking *a = take_ptr(r->asking);
	struct mcp_run **at = &r->door->asking;

	if (!a)
		return;
	if (a->gone)
		*a->gone = true;
	while (*a->id && *at != r)
		at = &(*at)->asking->next;
	if (*a->id)
		*at = a->next;
	arena_free(a->arena);
	a->timer.data = a;
	if (a->timing)
		uv_close((uv_handle_t *)&a->timer, asking_on_closed);
	else
		free(a);
}

/* ---- runs without a client ----------------------------------------------------------------- */

static void asking_drop(struct mcp_run *r)
{
	r->asking->dropped = true;
	if (r->call)
		call_cancel(r->call);
	else
		run_free(r);
}

static void asking_on_late(uv_timer_t *t)
{
	struct mcp_run *r = t->data;

	log_info("mcp: nobody came back for a call that had asked");
	asking_drop(r);
}

static void asking_wait(struct mcp_run *r, uint64_t ms)
{
	uv_timer_start(&r->asking->timer, asking_on_late, ms, 0);
}

static struct str asking_copy(struct arena *a, struct str s, struct err *e)
{
	char *p = s.p ? arena_dup(a, s, e) : NULL;

	return p ? (struct str){ p, s.n } : STR_NONE;
}

/* All of a result, in the run's memory: its content is texts (call.c), or JSON. */
static int asking_copy_result(struct run_asking *a, const struct mcp_result *r, struct err *e)
{
	a->kept = (struct mcp_result){
		.content_json = asking_copy(a->arena, r->content_json, e),
		.structured = asking_copy(a->arena, r->structured, e),
		.meta = asking_copy(a->arena, r->meta, e),
		.is_error = r->is_error,
	};
	a->kept.content = a->texts;
	a->kept.content_n = r->content_n;
	for (size_t i = 0; i < r->content_n; i++)
		a->texts[i] = (struct mcp_content){
			.type = MCP_TEXT, .text = asking_copy(a->arena, r->content[i].text, e)
		};
	return e->code ? -1 : 0;
}

void run_keep(struct mcp_run *r, const struct mcp_result *result)
{
	struct err e = ERR_INIT;

	r->call = NULL;
	if (r->asking->dropped || asking_copy_result(r->asking, result, &e) < 0)
		run_free(r);
	else
		asking_wait(r, r->asking->waits ? ASK_MS : KEPT_MS);
}

void run_asking_end(struct mcp_door *d, const struct mcp_session *s)
{
	struct mcp_run *r = d->asking, *next;

	for (; r; r = next) {
		next = r->asking->next;
		if (!r->mc && (!s || r->asking->session == s))
			asking_drop(r);
	}
}

/* ---- asking -------------------------------------------------------------------------------- */

static const struct principal *asking_payer(const struct run_asking *a)
{
	const struct principal *who = a->who;

	return who ? principal_payer(who) : NULL;
}

/* From its first question on a run is known by an id that nobody can guess. */
static int asking_list(struct mcp_run *r, struct err *e)
{
	struct mcp_door *d = r->door;
	struct run_asking *a = r->asking;
	unsigned n = 0, of = 0;

	if (*a->id)
		return 0;
	for (const struct mcp_run *o = d->asking; o; o = o->asking->next) {
		n++;
		of += asking_payer(o->asking) == asking_payer(a);
	}
	if (n >= RUNS_MAX || of >= RUNS_OF_MAX)
		return err_set(e, ERR_LIMIT, "%u calls have asked their clients already", of);
	if (uv_timer_init(hub_loop(ops_hub(d->ops)), &a->timer) < 0)
		return err_set(e, ERR_LIMIT, "no timer");
	a->timing = true;
	a->timer.data = r;
	id_make(a->id, "run");
	a->next = d->asking;
	d->asking = r;
	return 0;
}

/* The first one. A client that is not there gets it when it comes. */
static int asking_send(struct mcp_run *r, struct err *e)
{
	static const enum mcp_ask_kind kinds[] = { [CALL_ASK_FORM] = MCP_ASK_FORM,
						   [CALL_ASK_URL] = MCP_ASK_URL,
						   [CALL_ASK_SAMPLING] = MCP_ASK_SAMPLING };
	struct run_asking *a = r->asking;
	struct mcp_call *mc = r->mc;
	struct mcp_ask ask = { a->key, kinds[a->first->kind], a->first->params };
	char state[sizeof(STATE_PREFIX) + ID_MAX];
	bool stays;
	int rc;

	if (!mc)
		return 0;
	stays = mcp_call_stays(mc);
	snprintf(a->key, KEY_MAX, "q%u", ++a->asked);
	snprintf(state, sizeof(state), STATE_PREFIX "%s", a->id);
	a->waits = true;
	if (!stays) {
		mcp_call_on_cancel(mc, NULL, NULL);
		r->mc = NULL;
		asking_wait(r, ASK_MS);
	}
	a->sending = true;
	rc = mcp_call_ask(mc, &ask, 1, str_of(state), e);
	a->sending = false;
	if (rc == 0)
		return 0;
	a->waits = false;
	if (!stays) {
		uv_timer_stop(&a->timer);
		run_attach(r, mc);
	}
	return -1;
}

int run_on_question(void *client, struct call_question *q, struct err *e)
{
	struct mcp_run *r = client;
	struct call_question **at = &r->asking->first;

	if (call_going_down(r->call))
		return err_set(e, ERR_CANCELLED, "Holt is ending");
	if (asking_list(r, e) < 0)
		return -1;
	while (*at)
		at = &(*at)->next;
	q->next = NULL;
	*at = q;
	if (q != r->asking->first || r->asking->waits || asking_send(r, e) == 0)
		return 0;
	r->asking->first = NULL;
	return -1;
}

static void asking_take(struct run_asking *a, struct call_question *q)
{
	struct call_question **at = &a->first;

	if (a->first == q)
		*a->key = '\0';
	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
}

/* The client's question is withdrawn with the call, and an answer is dropped. */
void run_on_unask(void *client, struct call_question *q)
{
	struct mcp_run *r = client;

	asking_take(r->asking, q);
}

/* ---- the client comes back ----------------------------------------------------------------- */

/* The answer to the first, where there is one. The call may end inside. */
static void asking_answer(struct mcp_run *r)
{
	struct run_asking *a = r->asking;
	struct call_question *q = a->first;
	const struct json_val *answer = mcp_call_answer(r->mc, a->key);
	struct str error = mcp_call_ask_error(r->mc, a->key);
	autobuf struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);
	struct err e = ERR_INIT;

	if (!q || (!answer && !error.p))
		return;
	asking_take(a, q);
	if (answer) {
		json_write_val(&w, answer);
		if (json_write_done(&w, &e) == 0) {
			call_question_said(q, buf_str(&b), NULL);
			return;
		}
	} else {
		err_set(&e, ERR_CLIENT_FAILED, "the client gave no answer: %.*s",
			STR_CUT(error, 160));
	}
	call_question_said(q, STR_NONE, &e);
}

/* Then those behind it, until the client has one. */
static void asking_go_on(struct mcp_run *r, struct mcp_call *mc)
{
	struct run_asking *a = r->asking;
	bool gone = false, *outer = a->gone;

	a->gone = &gone;
	run_attach(r, mc);
	if (!gone)
		asking_answer(r);
	while (!gone && a->first && r->mc && !a->waits) {
		struct call_question *q = a->first;
		struct err e = ERR_INIT;

		if (asking_send(r, &e) == 0)
			break;
		asking_take(a, q);
		call_question_said(q, STR_NONE, &e);
	}
	if (!gone)
		a->gone = outer;
	else if (outer)
		*outer = true;
}

static void asking_on_early(uv_timer_t *t)
{
	struct mcp_run *r = t->data;

	asking_go_on(r, r->mc);
}

static struct mcp_run *asking_find(const struct mcp_door *d, struct str id, const void *who)
{
	struct mcp_run *r = d->asking;

	while (r && (r->asking->who != who || !str_is(id, r->asking->id)))
		r = r->asking->next;
	return r;
}

bool run_resumes(struct mcp_door *d, struct mcp_call *mc)
{
	const size_t n = strlen(STATE_PREFIX);
	struct str id = mcp_call_state(mc);
	struct mcp_run *r;
	struct err e;

	if (!str_starts(id, STATE_PREFIX))
		return false;
	r = asking_find(d, (struct str){ id.p + n, id.n - n }, mcp_call_principal(mc));
	if (!r || (r->mc && r->mc != mc)) {
		err_set(&e, ERR_CONFLICT,
			r ? "another request goes on with this call already"
			  : "the call that asked has ended; call the tool anew");
		mcp_call_fail(mc, &e);
		return true;
	}
	uv_timer_stop(&r->asking->timer);
	r->asking->waits = false;
	if (!r->call) {
		r->mc = mc;
		run_finish(r, &r->asking->kept);
		return true;
	}
	/* The request had the answer before it was asked. The call, which may end with the answer,
	 * is asking still: it hears of it later. */
	if (r->asking->sending) {
		run_attach(r, mc);
		uv_timer_start(&r->asking->timer, asking_on_early, 0, 0);
		return true;
	}
	asking_go_on(r, mc);
	return true;
}
