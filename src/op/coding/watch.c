/*
 * coding.watch and coding.events. A watch reads its job's output by a cursor, which never holds the
 * program, whatever the length of its lines. Memory and time are bounded: events, bytes of a line,
 * and the steps of the search for patterns in each second. Patterns are searched in lines as they
 * are shown, so that no secret is found by guessing.
 */
#include <stdio.h>
#include <uv.h>

#include "base/clock.h"
#include "base/id.h"
#include "coding/lines.h"
#include "base/when.h"
#include "json/document/utf8.h"
#include "json/schema/regex.h"
#include "op/coding/shell.h"
#include "call/guard.h"

enum {
	PATTERNS_MAX = 32,
	WATCHES_MAX = 32, /* of a conversation */
	EVENTS_MAX = 256,
	TEXT_MAX = 1024, /* bytes of an event */
	LINE_LOOK = 4096, /* bytes of a line that are searched */
	STEPS_LINE = 100000, /* for one pattern in one line, about 2 ms */
	STEPS_SECOND = 4 << 20, /* of a watch */
	IDLE_MAX = 3600,
	PIECE_MAX = 64 << 10,
	TICK_MS = 1000,
};

enum watch_kind { WATCH_STARTED, WATCH_ERROR, WATCH_IDLE, WATCH_EXITED, WATCH_NOTE };
static const char *const kind_names[] = { "started", "error", "idle_timeout", "exited", "note" };

struct watch_record {
	uint64_t id;
	int64_t at_ms;
	enum watch_kind kind;
	unsigned pattern; /* of WATCH_ERROR */
	char text[TEXT_MAX];
};

struct watch {
	struct watch *next;
	char id[ID_MAX];
	struct job *job; /* a reference */
	struct spool_cursor *cursor; /* NULL: it has ended */
	struct redact_stream *shown[SPOOL_STREAMS]; /* what lines gets; NULL: as it comes */
	uv_timer_t timer;
	struct lines lines;
	struct regex *patterns[PATTERNS_MAX]; /* NULL: it took too long */
	char *sources[PATTERNS_MAX];
	size_t n_patterns;
	struct watch_record *events; /* a ring of EVENTS_MAX */
	uint64_t next_id; /* from 1 */
	uint64_t steps; /* left in this second */
	uint64_t unseen; /* lines that were not searched for want of them */
	uint64_t output_ms; /* when something came last */
	uint32_t idle_s;
	bool idle; /* it was told */
};

/* ---- events -------------------------------------------------------------------------------- */

static void watch_tell(struct watch *w, enum watch_kind kind, unsigned pattern, struct str text)
{
	struct watch_record *r = &w->events[w->next_id % EVENTS_MAX];
	struct str cut = utf8_cut(text, TEXT_MAX - 1);

	*r = (struct watch_record){
		.id = w->next_id++, .at_ms = clock_unix_ms(), .kind = kind, .pattern = pattern
	};
	if (cut.n)
		memcpy(r->text, cut.p, cut.n);
}

static void watch_note(struct watch *w, const char *text)
{
	watch_tell(w, WATCH_NOTE, 0, str_of(text));
}

/* Whether the pattern is in the line; one that takes too long is dropped. */
static bool watch_matches(struct watch *w, size_t i, struct str line)
{
	uint64_t steps = w->steps < STEPS_LINE ? w->steps : STEPS_LINE, was = steps;
	struct err e;
	int found = w->patterns[i] ? regex_search(w->patterns[i], line, &steps, &e) : 0;

	w->steps -= was - steps;
	if (found < 0 && was == STEPS_LINE) {
		char text[128];

		snprintf(text, sizeof(text), "pattern %zu takes too long and is not used any more",
			 i + 1);
		watch_note(w, text);
		regex_free(take_ptr(w->patterns[i]));
	}
	return found > 0;
}

/* Bytes that are no UTF-8 become U+001A, as exec.wait has it. */
static void make_valid(char *p, size_t n)
{
	for (size_t i = 0, len; i < n; i += len) {
		if (!utf8_next((struct str){ p + i, n - i }, &len))
			memset(p + i, 0x1a, len);
	}
}

static void watch_on_line(void *arg, unsigned stream, struct str line, bool cut)
{
	struct watch *w = arg;
	char copy[LINE_LOOK];
	struct str seen = { copy, line.n < sizeof(copy) ? line.n : sizeof(copy) };

	if (w->n_patterns == 0)
		return;
	if (w->steps == 0) {
		w->unseen++;
		return;
	}
	memcpy(copy, line.p, seen.n);
	make_valid(copy, seen.n);
	for (size_t i = 0; i < w->n_patterns; i++) {
		if (!watch_matches(w, i, seen))
			continue;
		watch_tell(w, WATCH_ERROR, (unsigned)i, seen);
		return;
	}
}

/* Feeds lines with what is shown of the next bytes. */
static void watch_feed(struct watch *w, unsigned stream, struct str bytes, enum redact_flush flush)
{
	struct redact_stream *shown = w->shown[stream];
	size_t n = shown ? bytes.n + redact_stream_held(shown) : 0;
	autobuf struct buf said = BUF_INIT(redact_grown(n));
	struct err e;

	if (!shown)
		lines_feed(&w->lines, stream, bytes);
	else if (redact_stream_add(shown, bytes, flush, &said, &e) < 0)
		watch_note(w, "some output could not be looked at");
	else
		lines_feed(&w->lines, stream, buf_str(&said));
}

static void watch_flush(struct watch *w, enum redact_flush flush)
{
	for (unsigned i = 0; i < SPOOL_STREAMS; i++)
		watch_feed(w, i, STR_LIT(""), flush);
}

/* ---- its life ------------------------------------------------------------------------------ */

static void watch_end(struct watch *w)
{
	struct job_info i;
	char text[ERR_MSG_MAX];

	watch_flush(w, REDACT_END);
	lines_end(&w->lines);
	job_info(w->job, &i);
	spool_cursor_close(take_ptr(w->cursor));
	uv_timer_stop(&w->timer);
	if (i.has_result)
		snprintf(text, sizeof(text), "exit=%d", i.result.exit_code);
	else
		snprintf(text, sizeof(text), "%s", i.why ? i.why->msg : job_state_names[i.state]);
	watch_tell(w, WATCH_EXITED, 0, str_of(text));
}

static void watch_on_more(void *arg)
{
	struct watch *w = arg;
	struct spool_piece p;

	for (;;) {
		switch (spool_cursor_next(w->cursor, 3, PIECE_MAX, &p)) {
		case SPOOL_PIECE:
			w->output_ms = clock_ms();
			w->idle = false;
			watch_feed(w, p.stream, p.bytes, REDACT_MORE);
			break;
		case SPOOL_LOST:
			watch_flush(w, REDACT_END);
			watch_note(w, "some output was dropped before it was looked at");
			break;
		case SPOOL_LATER:
			return;
		case SPOOL_END:
			watch_end(w);
			return;
		}
	}
}

static void watch_on_tick(uv_timer_t *t)
{
	struct watch *w = t->data;
	char text[96];

	w->steps = STEPS_SECOND;
	if (w->cursor && clock_ms() - w->output_ms >= QUIET_MS)
		watch_flush(w, REDACT_QUIET);
	if (w->unseen > 0) {
		snprintf(text, sizeof(text), "%llu lines came too fast to be searched",
			 (unsigned long long)w->unseen);
		w->unseen = 0;
		watch_note(w, text);
	}
	if (!w->idle_s || w->idle || clock_ms() - w->output_ms < w->idle_s * 1000ull)
		return;
	w->idle = true;
	snprintf(text, sizeof(text), "no output for %u s", w->idle_s);
	watch_tell(w, WATCH_IDLE, 0, str_of(text));
}

static void watch_on_closed(uv_handle_t *h)
{
	struct watch *w = h->data;

	for (size_t i = 0; i < PATTERNS_MAX; i++) {
		regex_free(w->patterns[i]);
		free(w->sources[i]);
	}
	free(w->events);
	free(w);
}

/* The program goes on, as any job in the background. */
static void watch_free(struct watch *w)
{
	spool_cursor_close(take_ptr(w->cursor));
	job_unref(take_ptr(w->job));
	lines_fini(&w->lines);
	for (unsigned i = 0; i < SPOOL_STREAMS; i++)
		redact_stream_free(take_ptr(w->shown[i]));
	uv_close((uv_handle_t *)&w->timer, watch_on_closed);
}

void watches_free(struct watch *first)
{
	struct watch *next;

	for (; first; first = next) {
		next = first->next;
		watch_free(first);
	}
}

/* ---- coding.watch -------------------------------------------------------------------------- */

struct watch_request {
	struct str command, description, workspace;
	struct field_strs error_patterns;
	bool has_patterns;
	uint32_t idle_timeout_seconds;
};
#define Q struct watch_request
static const struct field watch_fields[] = {
	FIELD(Q, command, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_BYTES_MAX,
	      .doc = "Shell command line, which starts in the workspace."),
	FIELD(Q, description, .max = 1024, .doc = "What it is for, in a few words."),
	FIELD(Q, error_patterns, .max = PATTERNS_MAX, .has = FIELD_HAS(Q, has_patterns),
	      .doc = "Regular expressions (ECMA-262, flag u) for lines that are errors; "
		     "absent: common ones; empty: none."),
	FIELD(Q, idle_timeout_seconds, .max = IDLE_MAX,
	      .doc = "Note an event if nothing is printed for this many seconds; 0: never."),
	CODING_WORKSPACE_ROW(Q),
};
#undef Q
static const struct field_table watch_table = FIELD_TABLE(struct watch_request, watch_fields);

static const struct field started_fields[] = {
	FIELD(struct watch_started, shell_id, .flags = FIELD_REQUIRED,
	      .doc = "Id for watch_process_events, BashOutput and KillShell."),
};
static const struct field_table started_table = FIELD_TABLE(struct watch_started, started_fields);

struct watch_work {
	struct coding_work w; /* first */
	const struct watch_request *q;
};

static const struct str usual_patterns[] = {
	{ "^Error:", 7 },
	{ "^Fatal:", 7 },
	{ "^panic:", 7 },
	{ "\\buncaught\\b", 12 },
	{ "UnhandledPromiseRejection", 25 },
	{ "^Traceback \\(most recent call last\\)", 36 },
};

static int watch_compile(struct watch *w, const struct watch_request *q, struct err *e)
{
	const struct str *p = q->has_patterns ? q->error_patterns.p : usual_patterns;
	size_t n = q->has_patterns ? q->error_patterns.n : ARRAY_LEN(usual_patterns);

	for (size_t i = 0; i < n; i++) {
		w->patterns[i] = regex_new(p[i], e);
		w->sources[i] = w->patterns[i] ? mem_dup(p[i].p, p[i].n) : NULL;
		if (!w->patterns[i])
			return err_wrap(e, "error_patterns: the %zu. of them", i + 1);
		if (!w->sources[i])
			return err_set(e, ERR_LIMIT, "out of memory");
	}
	w->n_patterns = n;
	return 0;
}

/* One that has ended makes room for a new one. */
static int watch_make_room(struct shell_note *s, struct err *e)
{
	struct watch **at = &s->watches, **ended = NULL;
	size_t n = 0;

	for (; *at; at = &(*at)->next) {
		n++;
		if (!(*at)->cursor)
			ended = at; /* the oldest stands last */
	}
	if (n < WATCHES_MAX)
		return 0;
	if (!ended)
		return err_set(e, ERR_LIMIT, "%d processes are watched in this session: KillShell",
			       WATCHES_MAX);
	{
		struct watch *w = *ended;

		*ended = w->next;
		watch_free(w);
	}
	return 0;
}

static int watch_launch(struct watch *w, struct coding_work *k, const struct watch_request *q,
			struct err *e)
{
	const struct job_spec spec = {
		.command = q->command,
		.exec = { .shell = q->command, .cwd = STR_LIT(CODING_ROOT) },
		.background = true,
		.keep = JOB_OUTPUT_DEFAULT,
	};
	struct job_info i;
	struct job *j = job_start(k->hs, &spec, e);

	if (!j)
		return -1;
	w->job = job_ref(j);
	job_info(j, &i);
	snprintf(w->id, sizeof(w->id), "%.*s", STR_ARG(i.id));
	w->cursor = spool_cursor_new(job_output(j), 0, watch_on_more, w, e);
	if (!w->cursor) {
		job_forget(j);
		return -1;
	}
	return 0;
}

static int watch_show(struct watch *w, struct redactor *r, struct err *e)
{
	for (unsigned i = 0; r && i < SPOOL_STREAMS; i++) {
		w->shown[i] = redact_stream_new(r, false, e);
		if (!w->shown[i])
			return -1;
	}
	return 0;
}

static int watch_start(struct watch *w, struct coding_work *k, const struct watch_request *q,
		       struct err *e)
{
	w->events = calloc(EVENTS_MAX, sizeof(*w->events));
	if (!w->events)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (watch_compile(w, q, e) < 0 || watch_show(w, call_guard(k->call)->redactor, e) < 0 ||
	    watch_launch(w, k, q, e) < 0)
		return -1;
	w->next_id = 1;
	w->steps = STEPS_SECOND;
	w->output_ms = clock_ms();
	w->idle_s = q->idle_timeout_seconds;
	uv_timer_start(&w->timer, watch_on_tick, TICK_MS, TICK_MS);
	watch_tell(w, WATCH_STARTED, 0, q->command);
	watch_on_more(w);
	return 0;
}

static void watch_then(struct coding_work *k)
{
	const struct watch_request *q = ((struct watch_work *)k)->q;
	struct watch_started answer;
	struct err e = ERR_INIT;
	struct shell_note *s = shell_note(k, &e);
	struct watch *w = s && watch_make_room(s, &e) == 0 ? calloc(1, sizeof(*w)) : NULL;

	if (!w) {
		if (e.code == ERR_NONE)
			err_set(&e, ERR_LIMIT, "out of memory");
		coding_fail(k, &e);
		return;
	}
	uv_timer_init(call_loop(k->call), &w->timer);
	w->timer.data = w;
	lines_init(&w->lines, watch_on_line, w);
	if (watch_start(w, k, q, &e) < 0) {
		watch_free(w);
		coding_fail(k, &e);
		return;
	}
	w->next = s->watches;
	s->watches = w;
	answer.shell_id = str_of(w->id);
	coding_answer(k, &answer);
}

static void watch_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct watch_work *k = arena_alloc(call_arena(c), sizeof(*k), &e);

	if (!k) {
		call_fail(c, &e);
		return;
	}
	k->q = request;
	coding_enter(&k->w, c, k->q->workspace, watch_then);
}

const struct op coding_watch_op = {
	.action = "coding.watch",
	.doc = "Runs a program in the background and notes events: errors that it "
	       "prints, silence, its end.",
	.effect = OP_EXECUTE,
	.flags = OP_COMMANDS,
	.request = &watch_table,
	.result = &started_table,
	.run = watch_run,
};

/* ---- coding.events ------------------------------------------------------------------------- */

struct events_request {
	struct str shell_id, workspace;
	uint64_t since_event_id;
};
#define Q struct events_request
static const struct field events_fields[] = {
	FIELD(Q, shell_id, .flags = FIELD_REQUIRED, .min = 1, .max = ID_MAX,
	      .doc = "Id that watch_process returned."),
	FIELD(Q, since_event_id, .doc = "Only events after this one."),
	CODING_WORKSPACE_ROW(Q),
};
#undef Q
static const struct field_table events_request = FIELD_TABLE(struct events_request, events_fields);

#define V struct watch_event
static const struct field event_fields[] = {
	FIELD(V, id, .flags = FIELD_REQUIRED, .doc = "Number of the event."),
	FIELD(V, at, .flags = FIELD_REQUIRED, .doc = "When it happened, RFC 3339."),
	FIELD(V, kind, .flags = FIELD_REQUIRED,
	      .doc = "started, error, idle_timeout, exited or note."),
	FIELD(V, pattern, .doc = "For an error: the pattern that matched."),
	FIELD(V, text, .flags = FIELD_REQUIRED | FIELD_BYTES,
	      .doc = "The printed line, or a description."),
};
#undef V
static const struct field_table event_table = FIELD_TABLE(struct watch_event, event_fields);

#define A struct watch_events
static const struct field all_fields[] = {
	FIELD(A, shell_id, .flags = FIELD_REQUIRED, .doc = "Id of the shell."),
	FIELD(A, state, .flags = FIELD_REQUIRED, .doc = "State of the program."),
	FIELD_OBJECTS(A, events, event_table, .flags = FIELD_REQUIRED,
		      .doc = "In order of their ids."),
	FIELD(A, dropped, .flags = FIELD_REQUIRED,
	      .doc = "Number of events that are no longer kept."),
	FIELD(A, next_event_id, .flags = FIELD_REQUIRED,
	      .doc = "Value of since_event_id for the next call."),
};
#undef A
static const struct field_table all_table = FIELD_TABLE(struct watch_events, all_fields);

struct events_work {
	struct coding_work w; /* first */
	const struct events_request *q;
};

static char *copy_of(struct coding_work *k, const char *text, struct err *e)
{
	return arena_dup(call_arena(k->call), str_of(text), e);
}

/* Copies: the watch may go with its conversation before the answer leaves. */
static int events_collect(struct coding_work *k, const struct watch *w, uint64_t since,
			  struct watch_events *ret, struct err *e)
{
	uint64_t first = w->next_id > EVENTS_MAX ? w->next_id - EVENTS_MAX : 1;
	uint64_t from = since + 1 > first ? since + 1 : first;
	size_t n = from < w->next_id ? (size_t)(w->next_id - from) : 0;
	struct watch_event *to = arena_array(call_arena(k->call), n, sizeof(*to), e);
	struct job_info i;

	if (!to)
		return -1;
	for (size_t m = 0; m < n; m++) {
		const struct watch_record *r = &w->events[(from + m) % EVENTS_MAX];
		const char *pattern = r->kind == WATCH_ERROR ? w->sources[r->pattern] : "";
		char at[WHEN_MAX];
		char *when, *text, *matched;

		when_text(at, r->at_ms);
		when = copy_of(k, at, e);
		text = when ? copy_of(k, r->text, e) : NULL;
		matched = text ? copy_of(k, pattern, e) : NULL;
		if (!matched)
			return -1;
		to[m] = (struct watch_event){ .id = r->id,
					      .at = str_of(when),
					      .kind = str_of(kind_names[r->kind]),
					      .pattern = str_of(matched),
					      .text = str_of(text) };
	}
	job_info(w->job, &i);
	ret->state = str_of(job_state_names[i.state]);
	ret->events.p = to;
	ret->events.n = n;
	ret->dropped = from > since + 1 ? from - since - 1 : 0;
	ret->next_event_id = w->next_id - 1;
	return 0;
}

static void events_then(struct coding_work *k)
{
	const struct events_request *q = ((struct events_work *)k)->q;
	struct watch_events answer = { .shell_id = q->shell_id };
	struct err e = ERR_INIT;
	struct shell_note *s = shell_note(k, &e);
	struct watch *w = s ? s->watches : NULL;

	while (w && !str_is(q->shell_id, w->id))
		w = w->next;
	if (s && !w)
		err_set(&e, ERR_PROCESS_NOT_FOUND, "this session watches no shell \"%.*s\"",
			STR_CUT(q->shell_id, 64));
	if (w && events_collect(k, w, q->since_event_id, &answer, &e) == 0)
		coding_answer(k, &answer);
	else
		coding_fail(k, &e);
}

static void events_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct events_work *k = arena_alloc(call_arena(c), sizeof(*k), &e);

	if (!k) {
		call_fail(c, &e);
		return;
	}
	k->q = request;
	coding_enter(&k->w, c, k->q->workspace, events_then);
}

const struct op coding_events_op = {
	.action = "coding.events",
	.doc = "Returns what has happened to a watched program.",
	.effect = OP_READ,
	.request = &events_request,
	.result = &all_table,
	.run = events_run,
};
