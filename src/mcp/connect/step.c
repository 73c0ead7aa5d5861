/*
 * Finds out what a server speaks, by steps in a fixed order. A step is a wire and an era: the wire
 * is opened, the client sends its first message on it, and either becomes ready or reports that the
 * server is unfit (mcp/client/client.h). may_step_on() decides what follows from that. The next
 * step begins in a later turn of the loop, on the same wire if possible, else when the old one is
 * gone.
 */
#include "mcp/connect/internal.h"

#include <assert.h>

#include "base/log.h"
#include "mcp/message/profile.h"

enum { PROBE_STOP_MS = 300 /* for a process that was only to be asked what it is */ };

static const struct step stdio_ladder[] = {
	{ MCP_WIRE_STDIO, MCP_MODERN },
	{ MCP_WIRE_STDIO, MCP_LEGACY, .patient = true },
	{ MCP_WIRE_STDIO, MCP_MODERN, .patient = true },
};
static const struct step http_ladder[] = {
	{ MCP_WIRE_HTTP, MCP_MODERN },
	{ MCP_WIRE_HTTP, MCP_LEGACY },
	{ MCP_WIRE_SSE, MCP_LEGACY },
	{ MCP_WIRE_HTTP, MCP_MODERN, .patient = true },
};

static void begin_step(struct mcp_link *l);

/* --- the plan --- */

static void add_step(struct mcp_link *l, struct step s)
{
	const struct mcp_profile *only = l->t.version ? mcp_profile_find(str_of(l->t.version))
						      : NULL;

	if (only && only->modern != (s.era == MCP_MODERN))
		return;
	if ((l->t.only.wire != MCP_WIRE_FIND && l->t.only.wire != s.wire) ||
	    (l->t.only.era != MCP_BROKEN && l->t.only.era != s.era))
		return;
	if ((only || l->t.only.era != MCP_BROKEN) && s.wire != MCP_WIRE_SSE)
		s.patient = true; /* it can't be anything else */
	for (size_t i = 0; i < l->steps_n; i++) {
		if (l->steps[i].wire == s.wire && l->steps[i].era == s.era &&
		    l->steps[i].patient == s.patient)
			return;
	}
	l->steps[l->steps_n++] = s;
}

static void add_known(struct mcp_link *l)
{
	struct step s = { .wire = l->t.known.wire, .era = l->t.known.era };

	if (s.wire == MCP_WIRE_SSE)
		s.era = MCP_LEGACY;
	if (s.wire == MCP_WIRE_FIND || s.era == MCP_BROKEN ||
	    (s.wire == MCP_WIRE_STDIO) != !l->t.url)
		return;
	add_step(l, s);
	if (s.wire == MCP_WIRE_STDIO)
		add_step(l, stdio_ladder[0]); /* before the patient steps */
}

void mcp_link_plan(struct mcp_link *l)
{
	const struct step *ladder = l->t.url ? http_ladder : stdio_ladder;
	size_t n = l->t.url ? ARRAY_LEN(http_ladder) : ARRAY_LEN(stdio_ladder);

	add_known(l);
	for (size_t i = 0; i < n; i++)
		add_step(l, ladder[i]);
}

static_assert(ARRAY_LEN(stdio_ladder) < LINK_STEPS_MAX && ARRAY_LEN(http_ladder) < LINK_STEPS_MAX,
	      "room for what is known");

/* --- steps --- */

static const struct step *step_of(const struct mcp_link *l)
{
	return &l->steps[l->at];
}

/* Error codes by which a modern server refuses a request that it understands. */
enum { HEADER_MISMATCH = -32020, CAPABILITY_MISSING = -32021, VERSION_UNKNOWN = -32022 };

static bool serves_legacy(const struct mcp_answer *a)
{
	struct json_iter it = json_iter(json_get(json_get(a->fault, "data"), "supported"));

	while (json_next(&it)) {
		const struct mcp_profile *p = mcp_profile_find(json_str(it.val));

		if (p && !p->modern)
			return true;
	}
	return false;
}

/* Whether the server may still be what the next step tries. */
static bool may_step_on(const struct mcp_link *l, const struct mcp_answer *a)
{
	int status = l->fetch ? mcp_fetch_status(l->fetch) : 0;

	if (a->fault && step_of(l)->era == MCP_MODERN) {
		if (a->code == VERSION_UNKNOWN)
			return serves_legacy(a);
		return a->code != HEADER_MISMATCH && a->code != CAPABILITY_MISSING;
	}
	if (step_of(l)->wire == MCP_WIRE_STDIO || a->fault || l->silent)
		return true;
	switch (status) {
	case 0: /* nobody is there */
	case 401:
	case 403:
	case 429:
	case 502:
	case 503:
	case 504:
		return false;
	default:
		return true;
	}
}

/* Refusals are final. HTTP+SSE is tried if the URL does not accept a POST. */
static bool step_is_worth(const struct mcp_link *l, const struct step *s)
{
	int status = l->fetch ? mcp_fetch_status(l->fetch) : 0;

	if (s->patient)
		return !(l->refused & 1u << s->era);
	return s->wire != MCP_WIRE_SSE || step_of(l)->wire != MCP_WIRE_HTTP || status == 400 ||
	       status == 404 || status == 405;
}

/* The step after this one; steps_n if there is none. */
static size_t next_step(const struct mcp_link *l)
{
	size_t i = l->at + 1;

	while (i < l->steps_n && !step_is_worth(l, &l->steps[i]))
		i++;
	return i;
}

static bool has_next(const struct mcp_link *l)
{
	return next_step(l) < l->steps_n;
}

static void on_turn(uv_timer_t *timer)
{
	begin_step(timer->data);
}

void mcp_link_turn(struct mcp_link *l)
{
	uv_timer_start(&l->turn, on_turn, 0, 0);
}

static void step_on(struct mcp_link *l, const struct err *why)
{
	log_debug("mcp link: not so: %s", why->msg);
	l->why = *why;
	l->at = next_step(l);
	l->begun = l->silent = false;
	uv_timer_stop(&l->probe);
	mcp_link_turn(l);
}

static bool on_unfit(void *transport, const struct mcp_answer *a)
{
	struct mcp_link *l = transport;
	struct err why = a->e ? *a->e : ERR_INIT;

	if (l->state != STARTING || mcp_link_is_ready(l))
		return false;
	if (!l->silent)
		l->refused |= 1u << step_of(l)->era;
	if (!a->e)
		err_set(&why, ERR_UNSUPPORTED, "the server answered with the error %d", a->code);
	if (!may_step_on(l, a) || !has_next(l)) {
		l->state = OVER;
		return false;
	}
	step_on(l, &why);
	return true;
}

/* The wire has ended, or could not be opened. Tries the next step; without one, the link fails. */
static void wire_lost(struct mcp_link *l, const struct err *e)
{
	if (mcp_link_is_ready(l) || l->state >= OVER)
		mcp_link_lose(l, e);
	else if (l->first)
		mcp_client_failed(l->client, take_ptr(l->first), false, e);
	else if (!l->begun && step_of(l)->wire != MCP_WIRE_STDIO && has_next(l))
		step_on(l, e);
	else
		mcp_link_lose(l, e);
}

static void on_probe_late(uv_timer_t *timer)
{
	struct mcp_link *l = timer->data;
	uint64_t silent;
	struct err e;

	if (mcp_link_is_ready(l) || !l->first)
		return;
	silent = l->base.asking > 0 ? 0 : uv_now(l->loop) - l->base.went_ms;
	if (silent < l->t.probe_ms) { /* it has answered, or a person is or was being asked */
		uv_timer_start(timer, on_probe_late, l->t.probe_ms - silent, 0);
		return;
	}
	l->silent = true;
	err_set(&e, ERR_TIMEOUT, "the server was silent for %u ms", l->t.probe_ms);
	mcp_client_failed(l->client, take_ptr(l->first), false, &e);
}

/* --- between the client and the wire --- */

static void on_send(void *transport, const struct mcp_client_out *m)
{
	struct mcp_link *l = transport;

	l->stirred = true;
	if (l->state == STARTING && m->kind == MCP_OUT_REQUEST && !mcp_link_is_ready(l))
		l->first = m->pending;
	if (l->child)
		mcp_child_send(l->child, m->text, m->kind == MCP_OUT_RESPONSE);
	else if (l->program)
		mcp_program_send(l->program, m->text);
	else if (l->fetch)
		mcp_fetch_send(l->fetch, m, m->pending); /* what is dropped ends by its timeout */
	else if (l->events)
		mcp_events_send(l->events, m);
}

static void on_let_go(void *transport, struct mcp_pending *p)
{
	struct mcp_link *l = transport;

	if (l->first == p)
		l->first = NULL;
	if (l->fetch)
		mcp_fetch_let_go(l->fetch, p);
	else if (l->events)
		mcp_events_let_go(l->events, p);
}

static const struct mcp_client_transport streams = {
	.streams = true, .send = on_send, .let_go = on_let_go, .unfit = on_unfit
};
static const struct mcp_client_transport one_stream = { .send = on_send,
							.let_go = on_let_go,
							.unfit = on_unfit };

/* Some programs log on their standard output: "[INFO] …" is no batch of messages. */
static bool is_logged(struct str line)
{
	size_t i = 0;

	while (i < line.n && strchr(" \t[", line.p[i]))
		i++;
	return i < line.n && line.p[i] != '{' && line.p[i] != ']';
}

static void on_line(void *owner, struct str line)
{
	struct mcp_link *l = owner;

	l->stirred = true;
	if (is_logged(line) && l->t.on_stderr) {
		l->t.on_stderr(l->t.owner, line);
		l->t.on_stderr(l->t.owner, STR_LIT("\n"));
	}
	mcp_client_message(l->client, NULL, line);
}

static void on_long(void *owner, const struct rpc_sniff *sniff, const struct err *e)
{
	struct mcp_link *l = owner;

	mcp_client_dropped(l->client, NULL, sniff, e);
}

static void on_stderr(void *owner, struct str bytes)
{
	struct mcp_link *l = owner;

	if (l->t.on_stderr)
		l->t.on_stderr(l->t.owner, bytes);
}

static void on_child_end(void *owner, const struct err *e)
{
	struct mcp_link *l = owner;

	if (l->child)
		l->child_status = mcp_child_status(l->child);
	wire_lost(l, e);
}

static const struct mcp_child_events child_events = { on_line, on_long, on_stderr, on_child_end };

/* --- wires --- */

/* Whether silence ends this step. A legacy server that is silent over HTTP would be silent in every
 * later step too. */
static bool is_probe(const struct mcp_link *l)
{
	const struct step *s = step_of(l);

	if (s->patient || next_step(l) == l->steps_n)
		return false;
	return s->wire == MCP_WIRE_STDIO || (s->wire == MCP_WIRE_HTTP && s->era == MCP_MODERN);
}

static void begin_client(struct mcp_link *l)
{
	const struct step *s = step_of(l);
	struct err e = ERR_INIT;

	l->begun = true;
	if (is_probe(l))
		uv_timer_start(&l->probe, on_probe_late, l->t.probe_ms, 0);
	if (mcp_client_start(l->client, s->wire == MCP_WIRE_HTTP ? &streams : &one_stream, l,
			     s->era, l->t.version, &e) < 0)
		mcp_link_lose(l, &e);
}

static void on_open(void *owner)
{
	begin_client(owner);
}

static void on_events_lost(void *owner, int status, const struct err *e)
{
	struct mcp_link *l = owner;

	/* if there are no events either, the earlier error says more */
	wire_lost(l, status == 200 || l->begun || !l->why.code ? e : &l->why);
}

static void on_wire_gone(void *owner)
{
	struct mcp_link *l = owner;

	l->wires--;
	l->ending = NULL; /* there is at most one at a time */
	if (l->state == CLOSING)
		mcp_link_go_on_closing(l);
	else if (l->wires == 0 && l->state == STARTING && !l->begun)
		begin_step(l);
}

void mcp_link_close_wire(struct mcp_link *l, unsigned stop_ms)
{
	if (l->child) {
		l->child_status = mcp_child_status(l->child);
		l->ending = take_ptr(l->child);
		mcp_child_close(l->ending, stop_ms, on_wire_gone, l);
	}
	if (l->program)
		mcp_program_close(take_ptr(l->program), stop_ms, on_wire_gone, l);
	if (l->fetch)
		mcp_fetch_close(take_ptr(l->fetch), on_wire_gone, l);
	if (l->events)
		mcp_events_close(take_ptr(l->events), on_wire_gone, l);
}

static int open_child(struct mcp_link *l, struct err *e)
{
	const struct mcp_child_options o = { .argv = l->t.argv,
					     .env = l->t.env,
					     .env_more = l->t.env_more,
					     .cwd = l->t.cwd,
					     .tethered = l->t.tethered,
					     .line_max = l->base.text_max,
					     .stop_ms = l->t.stop_ms };

	if (l->t.runner) {
		l->program = mcp_program_start(l->t.runner, l->t.owner, o.line_max, &child_events,
					       l, e);
		return l->program ? 0 : -1;
	}
	l->child = mcp_child_start(l->loop, &o, &child_events, l, e);
	return l->child ? 0 : -1;
}

static bool on_fetch_message(void *owner, void *request, struct str text)
{
	struct mcp_link *l = owner;

	return mcp_client_message(l->client, request, text);
}

static void on_fetch_failed(void *owner, void *request, bool sent, const struct err *e)
{
	struct mcp_link *l = owner;

	mcp_client_failed(l->client, request, sent, e);
}

static void on_session_lost(void *owner, void *request)
{
	struct mcp_link *l = owner;

	mcp_client_session_lost(l->client, request);
}

static void on_fetch_lost(void *owner, const struct err *e)
{
	struct mcp_link *l = owner;

	mcp_client_lost(l->client, e);
}

static const struct mcp_fetch_events fetch_events = { on_fetch_message, on_fetch_failed,
						      on_session_lost, on_fetch_lost };

static int open_fetch(struct mcp_link *l, struct err *e)
{
	const struct mcp_fetch_options o = { .base = &l->base,
					     .url = l->t.url,
					     .ev = &fetch_events,
					     .owner = l,
					     .stop_ms = l->t.stop_ms };

	l->fetch = mcp_fetch_new(l->loop, &o, e);
	return l->fetch ? 0 : -1;
}

static int open_events(struct mcp_link *l, struct err *e)
{
	const struct mcp_events_options o = { .base = &l->base,
					      .url = l->t.url,
					      .client = l->client,
					      .on_open = on_open,
					      .on_lost = on_events_lost,
					      .owner = l };

	l->events = mcp_events_new(l->loop, &o, e);
	return l->events ? 0 : -1;
}

int mcp_link_open(struct mcp_link *l, struct err *e)
{
	static int (*const openers[])(struct mcp_link *, struct err *) = {
		[MCP_WIRE_STDIO] = open_child,
		[MCP_WIRE_HTTP] = open_fetch,
		[MCP_WIRE_SSE] = open_events,
	};

	if (openers[step_of(l)->wire](l, e) < 0)
		return -1;
	l->wires++;
	return 0;
}

/* Over HTTP the next era only needs other messages; anything else needs a wire of its own. */
static void begin_step(struct mcp_link *l)
{
	enum mcp_wire wire = step_of(l)->wire;
	bool has = l->at == 0 || (l->fetch && wire == MCP_WIRE_HTTP);
	struct err e = ERR_INIT;

	if (l->state != STARTING)
		return;
	if (!has && l->wires > 0) {
		mcp_link_close_wire(l, PROBE_STOP_MS);
		return; /* on_wire_gone() continues */
	}
	if (!has && mcp_link_open(l, &e) < 0)
		mcp_link_lose(l, &e);
	else if (wire != MCP_WIRE_SSE)
		begin_client(l);
}
