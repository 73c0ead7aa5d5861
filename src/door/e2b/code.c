/*
 * The code interpreter. A context is a program of ours in the sandbox (guest/), started as a job.
 * exec.stdin gives it code, exec.attach has what it prints. Marks, which are lines with a token,
 * tell what belongs to which execution:
 *
 *	RS TOKEN ID B COUNT	it begins, on each stream
 *	RS TOKEN ID R JSON	a result, on standard output
 *	RS TOKEN ID E JSON	an error, likewise
 *	RS TOKEN ID Z		it ends, on each stream
 *
 * Code may forge them, as it may do all else in its own context: what comes is bounded, and has no
 * say outside of the answer.
 *
 * A context gets one execution at a time; the others wait in a line here. Who leaves the line is
 * not run. Who leaves while its code runs is interrupted: its ask lingers, hears the code out and
 * only then makes room for the next, so that no signal meets the code of another.
 */
#include "door/e2b/internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/when.h"
#include "door/e2b/guests.h"
#include "http/message/head.h"
#include "json/document/utf8.h"
#include "op/exec.h"
#include "op/exec_output.h"

enum {
	CONTEXTS_MAX = 1024,
	CONTEXTS_EACH_MAX = 32, /* of a sandbox */
	CODE_MAX = 512 << 10,
	BODY_MAX = 2 << 20,
	EXECUTIONS_EACH_MAX = 16, /* of a context, which runs one after the other */
	/* When code is interrupted that nobody waits for. Not at once: short code ends by itself,
	 * and an interpreter may lose a signal while code begins. Code that goes on is interrupted
	 * again, each time after twice as long. */
	INTERRUPT_FIRST_MS = 50,
	INTERRUPT_AGAIN_MS = 5000,
	INTERRUPT_MOST_MS = 300000,
	MARK_MAX = 8 << 20, /* bytes of a result */
	MARK_HEAD = 32, /* behind the token: an id, and what it is */
	MARK_KEPT = 64 << 10, /* of a buffer, for the next */
	ANSWER_MAX = 32 << 20, /* escaped: at most three times as long */
	PING_MS = 5000,
	NAME_MAX_BYTES = 64,
	ENV_MAX = 256, /* variables of an execution */
};

static const struct language {
	const char *name, *other;
	const char *argv[5]; /* before the program and the token */
	const char *program;
	const char *says; /* of one that is no program here */
} languages[] = {
	{ "python", "python3", { "python3", "-u", "-c" }, guest_python, "python3" },
	{ "javascript", "js", { "node", "-e" }, guest_node, "node" },
	{ "bash", "sh", { "bash", "-c" }, guest_bash, "bash" },
};

enum channel { CHANNEL_OUT, CHANNEL_ERR, CHANNELS };

struct executing {
	struct ask *ask;
	struct executing *next; /* that waits for the start or in the line, too */
	char context[ID_MAX];
	char job[32]; /* the context's, as this follows it */
	uint64_t id; /* 0: it was not sent yet */
	bool sent, begun, again, over;
	bool lost; /* its end may be among output that was dropped */
	bool signalling; /* an interruption is being delivered */
	uint64_t again_ms; /* until the next one */
	bool failed; /* an error was told a client of mitos */
	struct {
		struct buf mark; /* from its RS on */
		bool marking, ours, ended;
		char cut[4]; /* the beginning of a character */
		size_t n_cut;
	} of[CHANNELS];
	/* For who asks for a context alone: what follows its start. */
	void (*then)(struct ask *a, struct e2b_context *c);
};

struct e2b_context {
	struct e2b_context *next;
	char id[ID_MAX], sandbox[SANDBOX_ID_MAX + 1];
	uint32_t generation;
	const struct language *language;
	char *cwd;
	bool is_default;
	enum { CONTEXT_COLD, CONTEXT_STARTING, CONTEXT_WARM } state;
	char job[32], token[ID_MAX];
	uint64_t last; /* execution */
	struct executing *waiting; /* for its start */
	struct executing *running; /* whose turn it is, until its ask is freed */
	struct executing *line; /* for a turn */
};

/* ---- contexts ------------------------------------------------------------------------------ */

static struct executing *line_pop(struct e2b_context *c)
{
	struct executing *x = c->line;

	c->line = x->next;
	x->next = NULL;
	return x;
}

static void context_remove(struct e2b *x, struct e2b_context *c)
{
	struct e2b_context **at = &x->contexts;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	x->n_contexts--;
	while (c->line) {
		struct ask *a = line_pop(c)->ask;

		ask_fail_with(a, ERR_PROCESS_NOT_FOUND, "the context has ended");
		ask_leave(a);
	}
	free(c->cwd);
	free(c);
}

void e2b_contexts_free(struct e2b *x)
{
	while (x->contexts)
		context_remove(x, x->contexts);
}

/* Those whose sandbox has ended. */
static void contexts_sweep(struct e2b *x)
{
	struct e2b_context *c, *next;

	for (c = x->contexts; c; c = next) {
		struct hub_sandbox *l = e2b_find(x, str_of(c->sandbox));
		struct hub_sandbox_info i = { .generation = 0 };

		next = c->next;
		if (l)
			hub_sandbox_info(l, &i);
		if (i.generation != c->generation && c->state != CONTEXT_STARTING)
			context_remove(x, c);
	}
}

static bool is_of(const struct ask *a, const struct e2b_context *c)
{
	struct hub_sandbox *l = e2b_find(a->x, a->sandbox);
	struct hub_sandbox_info i = { .generation = 0 };

	if (l)
		hub_sandbox_info(l, &i);
	return str_is(a->sandbox, c->sandbox) && i.generation == c->generation;
}

static struct e2b_context *context_of(const struct ask *a, struct str id)
{
	struct e2b_context *c = a->x->contexts;

	while (c && !(str_is(id, c->id) && is_of(a, c)))
		c = c->next;
	return c;
}

static const struct language *language_of(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(languages); i++) {
		if (str_is(name, languages[i].name) || str_is(name, languages[i].other))
			return &languages[i];
	}
	return NULL;
}

static struct e2b_context *context_new(struct ask *a, const struct language *l, struct str cwd,
				       struct err *e)
{
	struct e2b *x = a->x;
	struct hub_sandbox *of = e2b_find(x, a->sandbox);
	struct hub_sandbox_info i;
	struct e2b_context *c;
	size_t n = 0;

	contexts_sweep(x);
	for (c = x->contexts; c; c = c->next)
		n += str_is(a->sandbox, c->sandbox);
	if (!of)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "the sandbox was not found"), NULL;
	if (n >= CONTEXTS_EACH_MAX || x->n_contexts >= CONTEXTS_MAX)
		return err_set(e, ERR_LIMIT, "there are too many contexts"), NULL;
	c = calloc(1, sizeof(*c));
	if (c)
		c->cwd = mem_dup(cwd.p, cwd.n);
	if (!c || !c->cwd) {
		free(c);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	hub_sandbox_info(of, &i);
	id_make(c->id, "ctx");
	snprintf(c->sandbox, sizeof(c->sandbox), "%.*s", STR_ARG(a->sandbox));
	c->generation = i.generation;
	c->language = l;
	c->next = x->contexts;
	x->contexts = c;
	x->n_contexts++;
	return c;
}

/* ---- an execution -------------------------------------------------------------------------- */

static struct e2b_context *context_of_execution(struct ask *a)
{
	const char *id = ((struct executing *)a->state)->context;
	struct e2b_context *c = a->x->contexts;

	while (c && strcmp(id, c->id) != 0)
		c = c->next;
	return c;
}

static void take_turn(struct executing *x, struct e2b_context *c);

static void executing_free(struct ask *a)
{
	struct executing *x = a->state;
	struct e2b_context *c = context_of_execution(a);
	struct executing *next;

	for (size_t i = 0; i < CHANNELS; i++)
		buf_fini(&x->of[i].mark);
	if (!c || c->running != x)
		return;
	c->running = NULL;
	if (!c->line)
		return;
	next = line_pop(c);
	take_turn(next, c);
	ask_leave(next->ask);
}

static struct executing *executing_new(struct ask *a)
{
	struct executing *x = a->state = arena_alloc(a->arena, sizeof(*x), &(struct err){ 0 });

	if (!x) {
		ask_fail_with(a, ERR_LIMIT, "out of memory");
		return NULL;
	}
	x->ask = a;
	for (size_t i = 0; i < CHANNELS; i++)
		x->of[i].mark = BUF_INIT(MARK_MAX);
	a->on_free = executing_free;
	return x;
}

/* ---- what is told: lines of JSON in ASCII, since clients decode each piece alone ------------- */

/* By hand: a result may be all such characters. Returns 6. */
static size_t put_escape(char *to, uint32_t unit)
{
	static const char digits[] = "0123456789abcdef";

	to[0] = '\\';
	to[1] = 'u';
	for (unsigned i = 0; i < 4; i++)
		to[2 + i] = digits[unit >> (12 - 4 * i) & 0xf];
	return 6;
}

static void send_line(struct ask *a, struct json_writer *w)
{
	struct str text = buf_str(w->buf);
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer plain;
	struct err e = ERR_INIT;
	int rc = json_write_done(w, &e);

	for (size_t i = 0; rc == 0 && i < text.n;) {
		const unsigned char *p = (const unsigned char *)text.p + i;
		size_t n = 1, run = i, n_escape;
		char escape[12];
		uint32_t c;

		while (run < text.n && (unsigned char)text.p[run] < 0x80)
			run++;
		if (run > i) {
			rc = buf_add(&b, text.p + i, run - i, &e);
			i = run;
			continue;
		}
		utf8_next((struct str){ text.p + i, text.n - i }, &n);
		c = n == 2 ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
		  : n == 3 ? (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu)
		  : n == 4 ? (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 |
				     (p[3] & 0x3fu)
			   : 0xfffd;
		n_escape = c < 0x10000
				 ? put_escape(escape, c)
				 : put_escape(escape, 0xd800 + ((c - 0x10000) >> 10)) +
					   put_escape(escape + 6, 0xdc00 + ((c - 0x10000) & 0x3ff));
		rc = buf_add(&b, escape, n_escape, &e);
		i += n;
	}
	buf_fini(w->buf);
	json_writer_init(&plain, &b);
	if (rc == 0)
		ask_send(a, &plain);
	else
		buf_fini(&b);
}

static void begin_line(struct json_writer *w, struct buf *b, const char *type)
{
	*b = BUF_INIT(ANSWER_MAX);
	json_writer_init(w, b);
	json_write_object(w);
	ask_arg_str(w, "type", str_of(type));
}

static void end_line(struct ask *a, struct json_writer *w)
{
	json_write_object_end(w);
	send_line(a, w);
}

/* ---- what is told clients of mitos ----------------------------------------------------------- */

static bool is_mitos(const struct ask *a)
{
	return a->row->form == E2B_MITOS;
}

static void mitos_begin(struct json_writer *w, struct buf *b, const char *member)
{
	*b = BUF_INIT(ANSWER_MAX);
	json_writer_init(w, b);
	json_write_object(w);
	json_write_key(w, member);
}

static void mitos_end(struct ask *a, struct json_writer *w)
{
	json_write_object_end(w);
	ask_send(a, w);
}

static void mitos_send_exit(struct ask *a, int code)
{
	struct json_writer w;
	struct buf b;

	mitos_begin(&w, &b, "exitCode");
	json_write_int(&w, code);
	mitos_end(a, &w);
}

/* Texts as they are, values of JSON as their text. */
static void mitos_write_data(struct ask *a, struct json_writer *w, const char *mime,
			     const struct json_val *v)
{
	autobuf struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer text = json_writer(&b);
	struct str s = json_str(v);
	struct err e;

	if (json_type(v) == JSON_STR) {
		s = call_redact(ask_now(a), s);
	} else {
		e2b_write_redacted(a, &text, v);
		if (json_write_done(&text, &e) < 0)
			return;
		s = buf_str(&b);
	}
	json_put_base64(w, mime, s);
}

static void mitos_send_result(struct ask *a, const struct json_val *result)
{
	static const struct {
		const char *member, *mime;
	} forms[] = {
		{ "text", "text/plain" },	 { "html", "text/html" },
		{ "markdown", "text/markdown" }, { "svg", "image/svg+xml" },
		{ "png", "image/png" },		 { "jpeg", "image/jpeg" },
		{ "pdf", "application/pdf" },	 { "latex", "text/latex" },
		{ "json", "application/json" },	 { "javascript", "application/javascript" },
	};
	const struct json_val *v, *is_main = json_get(result, "is_main_result");
	struct json_writer w;
	struct buf b;

	mitos_begin(&w, &b, "result");
	json_write_object(&w);
	if (json_type(is_main) == JSON_BOOL && json_bool(is_main))
		ask_arg_str(&w, "text",
			    call_redact(ask_now(a), json_str(json_get(result, "text"))));
	json_put_object(&w, "data");
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		v = json_get(result, forms[i].member);
		if (v && json_type(v) != JSON_NULL)
			mitos_write_data(a, &w, forms[i].mime, v);
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	mitos_end(a, &w);
}

/* traceback: its lines. */
static void mitos_send_error(struct ask *a, struct str name, struct str value, struct str traceback)
{
	struct executing *x = a->state;
	struct json_writer w;
	struct buf b;

	if (x)
		x->failed = true;
	mitos_begin(&w, &b, "error");
	json_write_object(&w);
	ask_arg_str(&w, "name", name);
	ask_arg_str(&w, "value", value);
	json_put_array(&w, "traceback");
	while (traceback.n) {
		const char *end = memchr(traceback.p, '\n', traceback.n);
		struct str line = { traceback.p, end ? (size_t)(end - traceback.p) : traceback.n };

		json_write_str(&w, line);
		traceback.p += line.n + (end != NULL);
		traceback.n -= line.n + (end != NULL);
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	mitos_end(a, &w);
}

/* There is nothing here that runs it. */
static void mitos_send_unavailable(struct ask *a, const char *why)
{
	struct err e;

	if (ask_open(a, &e) < 0) {
		ask_fail(a, &e);
		return;
	}
	mitos_send_error(a, STR_LIT("KernelUnavailable"), str_of(why), STR_NONE);
	mitos_send_exit(a, 127);
	ask_end_stream(a);
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void send_text(struct ask *a, enum channel k, struct str text)
{
	char when[WHEN_MAX];
	struct json_writer w;
	struct buf b;

	if (!text.n)
		return;
	if (is_mitos(a)) {
		mitos_begin(&w, &b, k == CHANNEL_OUT ? "stdout" : "stderr");
		json_write_base64(&w, text);
		mitos_end(a, &w);
		return;
	}
	when_text(when, clock_unix_ms());
	begin_line(&w, &b, k == CHANNEL_OUT ? "stdout" : "stderr");
	ask_arg_str(&w, "text", text);
	ask_arg_str(&w, "timestamp", str_of(when));
	end_line(a, &w);
}

void e2b_write_redacted(struct ask *a, struct json_writer *w, const struct json_val *v)
{
	struct json_iter it = json_iter(v);

	switch (json_type(v)) {
	case JSON_STR:
		json_write_str(w, call_redact(ask_now(a), json_str(v)));
		break;
	case JSON_ARRAY:
		json_write_array(w);
		while (json_next(&it))
			e2b_write_redacted(a, w, it.val);
		json_write_array_end(w);
		break;
	case JSON_OBJECT:
		json_write_object(w);
		while (json_next(&it)) {
			json_write_key_str(w, it.key);
			e2b_write_redacted(a, w, it.val);
		}
		json_write_object_end(w);
		break;
	default:
		json_write_val(w, v);
	}
}

/* The members that clients know, of a result or an error. */
static void send_shown(struct ask *a, const char *type, struct str json)
{
	static const char *const members[] = { "text",	   "html",	     "markdown", "svg",
					       "png",	   "jpeg",	     "pdf",	 "latex",
					       "json",	   "javascript",     "data",	 "chart",
					       "extra",	   "is_main_result", "name",	 "value",
					       "traceback" };
	const struct json_options o = { .bytes = MARK_MAX };
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(json, &o, &e);
	struct json_writer w;
	struct buf b;

	if (!d)
		return;
	if (is_mitos(a) && strcmp(type, "result") == 0) {
		mitos_send_result(a, json_root(d));
		return;
	}
	if (is_mitos(a)) {
		mitos_send_error(a, call_redact(ask_now(a), ask_str(json_root(d), "name")),
				 call_redact(ask_now(a), ask_str(json_root(d), "value")),
				 call_redact(ask_now(a), ask_str(json_root(d), "traceback")));
		return;
	}
	begin_line(&w, &b, type);
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		const struct json_val *v = json_get(json_root(d), members[i]);

		if (!v || json_type(v) == JSON_NULL)
			continue;
		json_write_key(&w, members[i]);
		e2b_write_redacted(a, &w, v);
	}
	end_line(a, &w);
}

static void send_error(struct ask *a, const char *name, const char *value)
{
	struct json_writer w;
	struct buf b;

	if (is_mitos(a)) {
		mitos_send_error(a, str_of(name), str_of(value), STR_NONE);
		return;
	}
	begin_line(&w, &b, "error");
	ask_arg_str(&w, "name", str_of(name));
	ask_arg_str(&w, "value", str_of(value));
	ask_arg_str(&w, "traceback", STR_LIT(""));
	end_line(a, &w);
}

static void send_bare(struct ask *a, const char *type)
{
	struct json_writer w;
	struct buf b;

	begin_line(&w, &b, type);
	end_line(a, &w);
}

/* False: the ask has failed. */
static bool begin_answer(struct ask *a)
{
	struct err e;

	if (ask_open(a, &e) == 0)
		return true;
	ask_fail(a, &e);
	ask_cancel_later(a);
	return false;
}

static void send_ping(struct ask *a)
{
	if (!ask_is_full(a) && begin_answer(a))
		send_bare(a, "keepalive");
}

static void send_count(struct ask *a, struct str count)
{
	struct json_writer w;
	struct buf b;
	unsigned long long n;

	if (is_mitos(a) || !http_length_parse(count, &n))
		return;
	begin_line(&w, &b, "number_of_executions");
	ask_arg_uint(&w, "execution_count", n);
	end_line(a, &w);
}

static void code_finish(struct ask *a)
{
	struct executing *x = a->state;

	x->over = true;
	if (is_mitos(a))
		mitos_send_exit(a, x->failed);
	else
		send_bare(a, "end_of_execution");
	ask_end_stream(a);
	ask_cancel(a);
}

static void mitos_on_deadline(struct ask *a)
{
	if (!begin_answer(a))
		return;
	send_error(a, "TimeoutError", "the time of the code was over");
	mitos_send_exit(a, 1);
	ask_end_stream(a);
	ask_cancel(a);
}

/* ---- interruption --------------------------------------------------------------------------- */

/* The ask, and the turn with it, ends no earlier than the signal was delivered. */
static void on_signalled(struct ask *a, const void *result, const struct err *err)
{
	((struct executing *)a->state)->signalling = false;
}

static void interrupt(struct ask *a)
{
	struct executing *x = a->state;
	struct ask_args args;
	struct json_writer *w;

	ask_every(a, x->again_ms, interrupt);
	x->again_ms = 2 * x->again_ms < INTERRUPT_MOST_MS ? 2 * x->again_ms : INTERRUPT_MOST_MS;
	if (x->signalling)
		return;
	x->signalling = true;
	w = ask_args(a, &args, true);
	ask_arg_str(w, "exec", str_of(x->job));
	ask_arg_uint(w, "signal", SIGINT);
	ask_call(a, &exec_signal_op, &args, on_signalled);
}

/* A client that leaves stops the code that was sent; the context stays. */
static bool running_on_leave(struct ask *a)
{
	struct executing *x = a->state;

	if (x->over || !x->sent || x->lost)
		return false;
	ask_end_stream(a);
	x->again_ms = INTERRUPT_AGAIN_MS;
	ask_every(a, x->begun ? INTERRUPT_FIRST_MS : INTERRUPT_AGAIN_MS, interrupt);
	return true;
}

/* ---- what comes ---------------------------------------------------------------------------- */

/* One mark, without RS and the end of line; false: it is none of ours. */
static bool hear_mark(struct ask *a, enum channel k, struct str text, struct str token)
{
	struct executing *x = a->state;
	char *end = NULL;
	uint64_t id;
	struct str rest;
	bool begins;
	char kind;

	if (text.n < token.n + 4 || memcmp(text.p, token.p, token.n) != 0 || text.p[token.n] != ' ')
		return false;
	id = strtoull(text.p + token.n + 1, &end, 10); /* a NUL ends the buffer */
	if (!end || *end != ' ' || end + 1 >= text.p + text.n)
		return false;
	kind = end[1];
	rest = (struct str){ end + 2, (size_t)(text.p + text.n - (end + 2)) };
	if (rest.n && rest.p[0] == ' ')
		rest = (struct str){ rest.p + 1, rest.n - 1 };
	if (kind == 'B')
		x->of[k].ours = id == x->id;
	if (id != x->id)
		return true;
	begins = k == CHANNEL_OUT && !x->begun;
	x->begun |= begins;
	if (kind == 'Z') {
		x->of[k].ours = false;
		x->of[k].ended = true;
	}
	if (begins && a->lingers)
		ask_every(a, INTERRUPT_FIRST_MS, interrupt);
	if (a->done || !begin_answer(a))
		return true;
	if (begins && is_mitos(a)) /* its time begins when those before it have ended */
		ask_every(a, a->timeout_ms, mitos_on_deadline);
	if (kind == 'B' && begins)
		send_count(a, rest);
	else if (kind == 'R' && k == CHANNEL_OUT)
		send_shown(a, "result", rest);
	else if (kind == 'E' && k == CHANNEL_OUT)
		send_shown(a, "error", rest);
	return true;
}

/* Text of this execution, in whole characters. */
static void hear_text(struct ask *a, enum channel k, struct str text)
{
	struct executing *x = a->state;
	autobuf struct buf b = BUF_INIT(text.n + sizeof(x->of[k].cut));
	size_t cut = 0, n;
	struct err e;

	if (!x->of[k].ours || !text.n || a->done)
		return;
	if (buf_add(&b, x->of[k].cut, x->of[k].n_cut, &e) < 0 ||
	    buf_add(&b, text.p, text.n, &e) < 0)
		return;
	/* A last character that is not whole yet. */
	for (size_t back = 1; back <= 3 && back <= b.n && !cut; back++) {
		unsigned char c = (unsigned char)b.p[b.n - back];

		if (c >= 0xc0 && !utf8_next((struct str){ b.p + b.n - back, back }, &n) &&
		    n == back)
			cut = back;
		if (c < 0x80 || c >= 0xc0)
			break;
	}
	memcpy(x->of[k].cut, b.p + b.n - cut, cut);
	x->of[k].n_cut = cut;
	send_text(a, k, (struct str){ b.p, b.n - cut });
}

/* Whether what stands in the buffer can still become a mark. */
static bool may_be_mark(const struct buf *b, struct str token)
{
	size_t n = b->n - 1 < token.n ? b->n - 1 : token.n;

	return memcmp(b->p + 1, token.p, n) == 0;
}

/* Bytes that looked like a mark are text after all. */
static void hear_as_text(struct ask *a, enum channel k)
{
	struct executing *x = a->state;

	x->of[k].marking = false;
	hear_text(a, k, buf_str(&x->of[k].mark));
	x->of[k].mark.n = 0;
}

/* Whether the mark that begins in the buffer is of this execution; forged ones may be long. */
static bool is_own_mark(const struct executing *x, const struct buf *m, struct str token)
{
	char *end = NULL;

	return m->n > token.n + 2 && x->id && strtoull(m->p + token.n + 2, &end, 10) == x->id &&
	     *end == ' ';
}

static int keep_mark(struct executing *x, struct buf *m, struct str bytes, struct str token,
		     struct err *e)
{
	size_t head = 1 + token.n + MARK_HEAD;
	size_t n = m->n < head ? head - m->n : 0;

	n = n < bytes.n ? n : bytes.n;
	if (buf_add(m, bytes.p, n, e) < 0)
		return -1;
	if (n == bytes.n || (may_be_mark(m, token) && !is_own_mark(x, m, token)))
		return 0;
	return buf_add(m, bytes.p + n, bytes.n - n, e);
}

/* Some of a mark, in which there is no other: JSON escapes RS. end: behind these bytes it ends. */
static void hear_marking(struct ask *a, enum channel k, struct str bytes, bool end,
			 struct str token)
{
	struct executing *x = a->state;
	struct buf *m = &x->of[k].mark;
	struct err e;

	/* One that is too long is left out; its end is still found. */
	if (keep_mark(x, m, bytes, token, &e) < 0)
		m->n = m->n > 64 ? 64 : m->n;
	if (may_be_mark(m, token) && !end)
		return;
	if (end && may_be_mark(m, token) &&
	    hear_mark(a, k, (struct str){ m->p + 1, m->n - 1 }, token)) {
		x->of[k].marking = false;
		if (m->cap > MARK_KEPT)
			buf_fini(m);
		return;
	}
	hear_as_text(a, k);
	if (end)
		hear_text(a, k, STR_LIT("\n"));
}

static void code_hear(struct ask *a, enum channel k, struct str bytes, struct str token)
{
	struct executing *x = a->state;
	struct err e;

	while (bytes.n && !x->over) {
		const char *at = memchr(bytes.p, '\036', bytes.n);
		size_t n = at ? (size_t)(at - bytes.p) : bytes.n;
		char stop;

		at = x->of[k].marking && n ? memchr(bytes.p, '\n', n) : NULL;
		n = at ? (size_t)(at - bytes.p) : n;
		stop = n < bytes.n ? bytes.p[n] : '\0';
		if (x->of[k].marking)
			hear_marking(a, k, (struct str){ bytes.p, n }, stop == '\n', token);
		else
			hear_text(a, k, (struct str){ bytes.p, n });
		bytes = (struct str){ bytes.p + n, bytes.n - n };
		if (stop == '\036') {
			if (x->of[k].marking)
				hear_as_text(a, k);
			x->of[k].mark.n = 0;
			x->of[k].marking = buf_add(&x->of[k].mark, "\036", 1, &e) == 0;
		}
		if (stop)
			bytes = (struct str){ bytes.p + 1, bytes.n - 1 };
	}
}

/* ---- its way ------------------------------------------------------------------------------- */

static void context_start(struct ask *a, struct e2b_context *c);

static void sent_on_done(struct ask *a, const void *result, const struct err *err)
{
	struct executing *x = a->state;

	if (!err || x->over)
		return;
	x->over = true;
	ask_fail(a, err);
	ask_cancel(a);
}

/* The input of a shell: how many lines, and the lines. */
static int write_shell(struct ask *a, struct buf *b, uint64_t id, struct str code, struct err *e)
{
	struct json_iter it = json_iter(json_get(a->body, "env_vars"));
	autobuf struct buf text = BUF_INIT(2 * CODE_MAX);
	size_t lines = 0;

	while (json_next(&it)) {
		struct str v = json_str(it.val);

		for (size_t i = 0; i < it.key.n; i++) {
			char c = it.key.p[i];

			if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			      (i > 0 && c >= '0' && c <= '9')))
				return err_set(e, ERR_INVALID, "env_vars: no name for a variable");
		}
		if (buf_addf(&text, e, "export %.*s='", STR_ARG(it.key)) < 0)
			return -1;
		for (size_t i = 0; i < v.n; i++) {
			if (buf_add(&text, v.p[i] == '\'' ? "'\\''" : &v.p[i],
				    v.p[i] == '\'' ? 4 : 1, e) < 0)
				return -1;
		}
		if (buf_addf(&text, e, "'\n") < 0)
			return -1;
	}
	if (memchr(code.p, '\0', code.n))
		return err_set(e, ERR_INVALID, "code: it has a NUL");
	if (buf_add(&text, code.p, code.n, e) < 0 || buf_addf(&text, e, "\n") < 0)
		return -1;
	for (size_t i = 0; i < text.n; i++)
		lines += text.p[i] == '\n';
	if (buf_addf(b, e, "%llu %zu\n", (unsigned long long)id, lines) < 0)
		return -1;
	return buf_add(b, text.p, text.n, e); /* whole: the shell waits for so many lines */
}

static int write_command(struct ask *a, const struct e2b_context *c, uint64_t id, struct buf *b,
			 struct err *e)
{
	const struct json_val *env = json_get(a->body, "env_vars");
	struct str code = ask_str(a->body, "code");
	struct json_writer w = json_writer(b);

	if (c->language->program == guest_bash)
		return write_shell(a, b, id, code, e);
	json_write_object(&w);
	ask_arg_uint(&w, "id", id);
	ask_arg_str(&w, "code", code);
	if (json_type(env) == JSON_OBJECT)
		json_put_val(&w, "env", env);
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0 ? -1 : buf_add(b, "\n", 1, e);
}

/* The output is followed, so the code can be sent. */
static void send_code(struct ask *a)
{
	struct executing *x = a->state;
	struct e2b_context *c = context_of_execution(a);
	autobuf struct buf b = BUF_INIT(2 * CODE_MAX);
	struct err e = ERR_INIT;
	struct ask_args args;
	struct json_writer *w;

	if (x->sent || a->done)
		return;
	if (!c) {
		ask_fail_with(a, ERR_PROCESS_NOT_FOUND, "the context has ended");
		ask_cancel(a);
		return;
	}
	x->id = ++c->last;
	if (write_command(a, c, x->id, &b, &e) < 0) {
		ask_fail(a, &e);
		ask_cancel(a);
		return;
	}
	x->sent = true;
	w = ask_args(a, &args, true);
	ask_arg_str(w, "exec", str_of(x->job));
	ask_arg_str(w, "data", buf_str(&b));
	ask_call(a, &exec_stdin_op, &args, sent_on_done);
}

static void on_news(struct ask *a, const void *event)
{
	const struct exec_news *n = event;
	struct executing *x = a->state;
	struct e2b_context *c = context_of_execution(a);
	enum channel k = n->event.stream == EXEC_STDERR ? CHANNEL_ERR : CHANNEL_OUT;

	if (x->over)
		return;
	if (n->kind == EXEC_NEWS_ATTACHED && n->stdin_open) {
		send_code(a);
	} else if (n->kind == EXEC_NEWS_CHUNK && c) {
		code_hear(a, k, n->event.bytes, str_of(c->token));
	} else if (n->kind == EXEC_NEWS_CHUNK) {
		x->over = true;
		ask_fail_with(a, ERR_PROCESS_NOT_FOUND, "the context has ended");
		ask_cancel(a);
	} else if (n->kind == EXEC_NEWS_DROPPED) {
		x->lost = true;
		send_error(a, "OutputLost", "the client was too slow: output is missing");
		if (a->lingers)
			ask_cancel(a);
	}
	if (!x->over && x->of[CHANNEL_OUT].ended && x->of[CHANNEL_ERR].ended)
		code_finish(a);
}

/* Whether the job that was followed is no more. */
static bool is_job_over(const struct err *err)
{
	return !err || err->code == ERR_PROCESS_NOT_FOUND || err->code == ERR_SANDBOX_NOT_FOUND ||
	       err->code == ERR_GUEST;
}

/* The interpreter has ended, or the client has gone; or it can't be followed. */
static void attach_on_end(struct ask *a, const void *result, const struct err *err)
{
	struct executing *x = a->state;
	struct e2b_context *c = context_of_execution(a);

	if (x->over || a->done || a->left) {
		ask_end_stream(a);
		return;
	}
	if (err && (!is_job_over(err) || (e2b_is_gone(err->code) && !a->stream))) {
		ask_fail(a, err);
		return;
	}
	if (c && c->state == CONTEXT_WARM && strcmp(c->job, x->job) == 0)
		c->state = CONTEXT_COLD;
	if (c && !x->sent && !x->again) { /* it had ended before */
		x->again = true;
		take_turn(x, c);
		return;
	}
	if (!x->begun && is_mitos(a)) {
		mitos_send_unavailable(a, "the interpreter does not run");
		return;
	}
	if (!x->begun) {
		ask_fail_with(a, ERR_COMMAND_NOT_RUN, "the interpreter (%s) does not run: %s",
			      c ? c->language->says : "", err ? err->msg : "it has ended");
		return;
	}
	send_error(a, "InterpreterEnded", "the interpreter has ended; its state is lost");
	code_finish(a);
}

/* The answer begins with the first mark, so that what fails before is told as a failure. */
static void run_in(struct ask *a, struct e2b_context *c)
{
	struct ask_args args;
	struct json_writer *w;

	snprintf(((struct executing *)a->state)->job, sizeof(c->job), "%s", c->job);
	a->on_leave = running_on_leave;
	w = ask_args(a, &args, true);
	ask_arg_str(w, "exec", str_of(c->job));
	ask_follow(a, &exec_attach_op, &args, on_news, attach_on_end);
}

/* ---- its start ----------------------------------------------------------------------------- */

/* All that wait for it, or none of them. Each that ends may start it again, or end it. */
static void context_started(struct executing *x, const struct err *err)
{
	struct err e = err ? *err : ERR_INIT;

	for (struct executing *next; x; x = next) {
		struct ask *a = x->ask;
		struct e2b_context *c = context_of_execution(a);

		next = x->next;
		x->next = NULL;
		if (is_mitos(a) &&
		    (e.code == ERR_COMMAND_NOT_FOUND || e.code == ERR_COMMAND_NOT_RUN))
			mitos_send_unavailable(a, e.msg);
		else if (e.code != ERR_NONE)
			ask_fail(a, &e);
		else if (a->left || !c)
			ask_fail_with(a, ERR_CANCELLED, "the client or the context has gone");
		else
			x->then(a, c);
		ask_leave(a);
	}
}

static void start_on_done(struct ask *a, const void *result, const struct err *err)
{
	struct e2b_context *c = context_of_execution(a); /* one that is starting stays */

	c->state = err ? CONTEXT_COLD : CONTEXT_WARM;
	context_started(take_ptr(c->waiting), err);
	c = context_of_execution(a);
	if (err && c && c->state == CONTEXT_COLD && !c->is_default && !c->last)
		context_remove(a->x, c);
}

static void context_start(struct ask *a, struct e2b_context *c)
{
	struct str words[6], *kept;
	struct exec_request r;
	struct err e = ERR_INIT;
	size_t n = 0;

	id_make(c->token, "holt");
	snprintf(c->job, sizeof(c->job), "e2bctx-%u", e2b_new_pid(a->x));
	c->state = CONTEXT_STARTING;
	for (const char *const *word = &c->language->argv[1]; *word; word++)
		words[n++] = str_of(*word);
	words[n++] = str_of(c->language->program);
	words[n++] = str_of(c->token);
	field_defaults(sandbox_exec_op.request, &r);
	r.sandbox = a->sandbox;
	r.command = str_of(c->language->argv[0]);
	r.has_args = true;
	kept = arena_array(a->arena, n, sizeof(*kept), &e);
	if (!kept) {
		start_on_done(a, NULL, &e);
		return;
	}
	r.args = (struct field_strs){ memcpy(kept, words, n * sizeof(*words)), n };
	r.background = r.stdin_open = true;
	r.exec_id = ask_dup(a, str_of(c->job));
	r.cwd = *c->cwd ? ask_dup(a, str_of(c->cwd)) : STR_NONE;
	ask_call_with(a, &sandbox_exec_op, &r, start_on_done);
}

/* Goes on by x->then once the context runs. */
static void context_await(struct ask *a, struct e2b_context *c,
			  void (*then)(struct ask *a, struct e2b_context *c))
{
	struct executing *x = a->state;

	snprintf(x->context, sizeof(x->context), "%s", c->id);
	x->then = then;
	if (c->state == CONTEXT_WARM) {
		then(a, c);
		return;
	}
	ask_enter(a); /* until it is started */
	x->next = c->waiting;
	c->waiting = x;
	if (c->state == CONTEXT_COLD)
		context_start(a, c);
}

/* ---- its turn ------------------------------------------------------------------------------ */

static void take_turn(struct executing *x, struct e2b_context *c)
{
	c->running = x;
	context_await(x->ask, c, run_in);
}

/* Code whose client leaves the line never runs. */
static bool waiting_on_leave(struct ask *a)
{
	struct executing *x = a->state, **at;
	struct e2b_context *c = context_of_execution(a);

	for (at = c ? &c->line : NULL; at && *at; at = &(*at)->next) {
		if (*at != x)
			continue;
		*at = x->next;
		ask_end_stream(a);
		ask_leave(a);
		break;
	}
	return false;
}

static void execute(struct ask *a, struct e2b_context *c)
{
	struct executing *x = a->state, **last = &c->line;
	size_t n = c->running != NULL;

	for (; *last; last = &(*last)->next)
		n++;
	if (n >= EXECUTIONS_EACH_MAX) {
		ask_fail_with(a, ERR_LIMIT, "%d executions run in the context or wait for it",
			      EXECUTIONS_EACH_MAX);
		return;
	}
	snprintf(x->context, sizeof(x->context), "%s", c->id);
	if (!is_mitos(a))
		ask_every(a, PING_MS, send_ping);
	if (!c->running) {
		take_turn(x, c);
		return;
	}
	a->on_leave = waiting_on_leave;
	ask_enter(a); /* until it is its turn */
	*last = x;
}

/* ---- the routes ---------------------------------------------------------------------------- */

/* The language of a request; NULL: the ask has failed. */
static const struct language *asked_language(struct ask *a)
{
	struct str name = ask_str(a->body, "language");
	const struct language *l = language_of(name.n ? name : STR_LIT("python"));

	if (!l)
		ask_fail_with(a, ERR_INVALID,
			      "language %.*s: there are python, javascript and bash here",
			      STR_CUT(name, 32));
	return l;
}

static struct e2b_context *default_context(struct ask *a, const struct language *l, struct err *e)
{
	struct e2b_context *c = a->x->contexts;

	while (c && !(c->is_default && c->language == l && is_of(a, c)))
		c = c->next;
	if (c)
		return c;
	c = context_new(a, l, is_mitos(a) ? STR_LIT("") : STR_LIT(E2B_HOME), e);
	if (c)
		c->is_default = true;
	return c;
}

/* A name or value that no environment can have would end an interpreter, with its state. */
static bool are_variables(const struct json_val *env)
{
	struct json_iter it = json_iter(env);
	enum json_type t = json_type(env);

	if (t == JSON_ABSENT || t == JSON_NULL)
		return true;
	if (t != JSON_OBJECT || json_len(env) > ENV_MAX)
		return false;
	while (json_next(&it)) {
		struct str v = json_str(it.val);

		if (!it.key.n || memchr(it.key.p, '\0', it.key.n) ||
		    memchr(it.key.p, '=', it.key.n) || !v.p || memchr(v.p, '\0', v.n))
			return false;
	}
	return true;
}

static void run_execute(struct ask *a)
{
	struct str id = ask_str(a->body, "context_id"), code = ask_str(a->body, "code");
	const struct language *l = id.n ? NULL : asked_language(a);
	struct err e = ERR_INIT;
	struct e2b_context *c = NULL;

	if (a->done)
		return;
	if (!code.p || code.n > CODE_MAX) {
		ask_fail_with(a, code.p ? ERR_TOO_LARGE : ERR_INVALID,
			      "code: a text of at most 512 KiB");
		return;
	}
	if (!are_variables(json_get(a->body, "env_vars"))) {
		ask_fail_with(
			a, ERR_INVALID,
			"env_vars: at most %d texts without NUL, and names without =", ENV_MAX);
		return;
	}
	if (id.n)
		c = context_of(a, id);
	else
		c = default_context(a, l, &e);
	if (!c && id.n)
		ask_fail_with(a, ERR_PROCESS_NOT_FOUND, "there is no context %.*s",
			      STR_CUT(id, NAME_MAX_BYTES));
	else if (!c)
		ask_fail(a, &e);
	else if (executing_new(a))
		execute(a, c);
}

static void write_context(struct json_writer *w, const struct e2b_context *c)
{
	json_write_object(w);
	ask_arg_str(w, "id", str_of(c->id));
	ask_arg_str(w, "language", str_of(c->language->name));
	ask_arg_str(w, "cwd", str_of(c->cwd));
	json_write_object_end(w);
}

static void reply_context(struct ask *a, struct e2b_context *c)
{
	struct buf b = BUF_INIT(16 << 10);
	struct json_writer w = json_writer(&b);

	write_context(&w, c);
	ask_reply(a, 200, &w);
}

static void run_create(struct ask *a)
{
	const struct language *l = asked_language(a);
	struct str cwd = l ? ask_path(a, ask_str(a->body, "cwd")) : STR_NONE;
	struct err e = ERR_INIT;
	struct e2b_context *c = cwd.p ? context_new(a, l, cwd, &e) : NULL;

	if (a->done)
		return;
	if (!c)
		ask_fail(a, &e);
	else if (executing_new(a))
		context_await(a, c, reply_context);
}

static void run_list(struct ask *a)
{
	struct buf b = BUF_INIT(1 << 20);
	struct json_writer w = json_writer(&b);

	contexts_sweep(a->x);
	json_write_array(&w);
	for (const struct e2b_context *c = a->x->contexts; c; c = c->next) {
		if (is_of(a, c))
			write_context(&w, c);
	}
	json_write_array_end(&w);
	ask_reply(a, 200, &w);
}

/* That of the path; NULL: the ask has failed. */
static struct e2b_context *named_context(struct ask *a)
{
	struct str id = http_request_segment(a->q, "context");
	struct e2b_context *c = context_of(a, id);

	if (!c)
		ask_fail_with(a, ERR_PROCESS_NOT_FOUND, "there is no context %.*s",
			      STR_CUT(id, NAME_MAX_BYTES));
	else if (c->state == CONTEXT_STARTING)
		ask_fail_with(a, ERR_CONFLICT, "the context is being started");
	return a->done ? NULL : c;
}

static void end_job(struct ask *a, const struct e2b_context *c, ask_then then)
{
	struct executing *x = a->state;
	struct ask_args args;
	struct json_writer *w = ask_args(a, &args, true);

	snprintf(x->job, sizeof(x->job), "%s", c->job);
	ask_arg_str(w, "exec", str_of(c->job));
	ask_call(a, &exec_delete_op, &args, then);
}

static bool is_ended(const struct err *err)
{
	return !err || err->code == ERR_PROCESS_NOT_FOUND;
}

/* Somebody may have started it again meanwhile. */
static void remove_on_ended(struct ask *a, const void *result, const struct err *err)
{
	struct executing *x = a->state;
	struct e2b_context *c = context_of_execution(a);

	if (!is_ended(err)) {
		ask_fail(a, err);
	} else if (c && c->state == CONTEXT_STARTING) {
		ask_fail_with(a, ERR_CONFLICT, "the context is being started");
	} else if (c && c->state == CONTEXT_WARM && strcmp(c->job, x->job) != 0) {
		end_job(a, c, remove_on_ended);
	} else {
		if (c)
			context_remove(a->x, c);
		ask_reply_empty(a, 204);
	}
}

/* Ends the interpreter of the context that is named, if it has one; then goes on. */
static void end_named(struct ask *a, ask_then then)
{
	struct e2b_context *c = named_context(a);
	struct executing *x = c ? executing_new(a) : NULL;

	if (!x)
		return;
	snprintf(x->context, sizeof(x->context), "%s", c->id);
	if (c->state == CONTEXT_COLD)
		then(a, NULL, NULL);
	else
		end_job(a, c, then);
}

static void run_remove(struct ask *a)
{
	end_named(a, remove_on_ended);
}

static void restart_on_ended(struct ask *a, const void *result, const struct err *err)
{
	struct e2b_context *c = context_of_execution(a);

	if (!is_ended(err)) {
		ask_fail(a, err);
		return;
	}
	if (!c) {
		ask_fail_with(a, ERR_PROCESS_NOT_FOUND, "the context has ended");
		return;
	}
	if (c->state == CONTEXT_WARM)
		c->state = CONTEXT_COLD;
	context_await(a, c, reply_context);
}

static void run_restart(struct ask *a)
{
	end_named(a, restart_on_ended);
}

static const struct e2b_member members[] = {
	{ "context_id", JSON_STR },
	{ "language", JSON_STR },
	{ "cwd", JSON_STR },
	{ 0 },
};

static const struct e2b_row rows[] = {
	{ HTTP_POST, "/execute", E2B_CODE, BODY_MAX, run_execute, "Runs code.", members },
	{ HTTP_POST, "/contexts", E2B_CODE, 0, run_create, "Starts an interpreter.", members },
	{ HTTP_GET, "/contexts", E2B_CODE, 0, run_list, "The interpreters." },
	{ HTTP_POST, "/contexts/{context}/restart", E2B_CODE, 0, run_restart, "Starts it anew." },
	{ HTTP_DELETE, "/contexts/{context}", E2B_CODE, 0, run_remove, "Ends an interpreter." },
};
const struct e2b_rows e2b_code = { rows, ARRAY_LEN(rows) };

/* ---- for clients of mitos -------------------------------------------------------------------- */

enum { MITOS_SECONDS = 60, MITOS_SECONDS_MAX = 86400 };

/* "timeoutSeconds" is an int64, which JSON may have as a string. Connect-Timeout-Ms holds where it
 * is shorter. */
static bool mitos_timeout(struct ask *a)
{
	const struct json_val *v = json_get(a->body, "timeoutSeconds");
	unsigned long long n = 0;
	uint64_t u = 0;

	if (json_type(v) == JSON_STR && http_length_parse(json_str(v), &n))
		u = n;
	else if (v)
		json_uint64(v, &u);
	if (u > MITOS_SECONDS_MAX) {
		ask_fail_with(a, ERR_INVALID, "timeoutSeconds: at most %d", MITOS_SECONDS_MAX);
		return false;
	}
	u = (u ? u : MITOS_SECONDS) * 1000;
	if (!a->timeout_ms || a->timeout_ms > u)
		a->timeout_ms = u;
	return true;
}

static void run_mitos_code(struct ask *a)
{
	struct hub_sandbox *l = e2b_find(a->x, a->sandbox);
	struct str language = ask_str(a->body, "language");

	if (!l || !op_sees(a->x->o.ops, a->who, l))
		ask_fail_with(a, ERR_SANDBOX_NOT_FOUND, "the sandbox was not found");
	else if (language.n && !language_of(language))
		mitos_send_unavailable(a, "language: there are python, javascript and bash here");
	else if (mitos_timeout(a))
		run_execute(a);
}

/* Over HTTP/1.1 there is one message: what runs can't be sent input. */
static void run_mitos_open(struct ask *a)
{
	a->body = json_get(a->body, "open");
	if (json_type(a->body) == JSON_OBJECT)
		run_mitos_code(a);
	else
		ask_fail_with(a, ERR_INVALID, "the message has open");
}

static const struct e2b_row mitos_rows[] = {
	{ HTTP_POST, "/sandbox.v1.Sandbox/RunCodeStream", E2B_MITOS, BODY_MAX, run_mitos_code,
	  "Runs code." },
	{ HTTP_POST, "/sandbox.v1.Sandbox/RunCode", E2B_MITOS, BODY_MAX, run_mitos_open,
	  "The same, with its request as \"open\"." },
	{ HTTP_POST, "/v1/sandboxes/{id}/run_code", E2B_MITOS, BODY_MAX, run_mitos_open,
	  "RunCode of the sandbox that the path names." },
};
const struct e2b_rows e2b_mitos = { mitos_rows, ARRAY_LEN(mitos_rows) };
