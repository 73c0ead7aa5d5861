/*
 * WatchDir, and watchers that clients ask for their events again and again. Holt writes a file by
 * giving a new one its name: such a rename is shown as the name's creation and its content, and the
 * other name is not shown at all.
 */
#include "door/e2b/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "op/files.h"

enum {
	ANSWER_MAX = 4 << 20,
	EVENTS_MAX = 1024, /* that a watcher keeps; with more of them it is useless */
	EVENT_BYTES_MAX = 1 << 20,
	WATCHERS_MAX = 256,
	WATCHERS_EACH_MAX = 32, /* of a sandbox */
	IDLE_MS = 5 * 60000, /* without a question a watcher makes room for others */
	PING_MS = 30000,
};

enum event_type { WATCH_CREATE, WATCH_WRITE, WATCH_REMOVE, WATCH_RENAME, WATCH_CHMOD };
static const char *const type_names[] = {
	[WATCH_CREATE] = "EVENT_TYPE_CREATE", [WATCH_WRITE] = "EVENT_TYPE_WRITE",
	[WATCH_REMOVE] = "EVENT_TYPE_REMOVE", [WATCH_RENAME] = "EVENT_TYPE_RENAME",
	[WATCH_CHMOD] = "EVENT_TYPE_CHMOD",
};

/* The front of temporary names (box/archive/tar_tree.h). */
#define TEMP_FRONT ".holt-"

/* ---- what is told -------------------------------------------------------------------------- */

struct watching {
	uint32_t hidden; /* cookie of the move of a name that is not shown */
	bool begun;
	void (*tell)(struct ask *a, enum event_type type, struct str name);
	struct e2b_watcher *watcher; /* NULL: it is a stream */
};

static void watch_tell(struct ask *a, const struct file_event *ev)
{
	struct watching *w = a->state;
	struct str name = ev->path;

	if (!name.n || str_starts(e2b_base_name(name), TEMP_FRONT)) {
		if (ev->kind == CHANGE_MOVED_FROM)
			w->hidden = ev->cookie;
		return;
	}
	switch (ev->kind) {
	case CHANGE_MOVED_TO:
		w->tell(a, WATCH_CREATE, name);
		if (ev->is_move && ev->cookie == w->hidden)
			w->tell(a, WATCH_WRITE, name);
		break;
	case CHANGE_CREATED:
		w->tell(a, WATCH_CREATE, name);
		break;
	case CHANGE_MODIFIED:
		w->tell(a, WATCH_WRITE, name);
		break;
	case CHANGE_ATTRIBUTES:
		w->tell(a, WATCH_CHMOD, name);
		break;
	case CHANGE_REMOVED:
		w->tell(a, WATCH_REMOVE, name);
		break;
	case CHANGE_MOVED_FROM:
		w->tell(a, WATCH_RENAME, name);
		break;
	default:
		break;
	}
}

static void write_event(struct json_writer *w, enum event_type type, struct str name)
{
	json_write_object(w);
	ask_arg_str(w, "name", name);
	ask_arg_str(w, "type", str_of(type_names[type]));
	json_write_object_end(w);
}

/* ---- WatchDir ------------------------------------------------------------------------------ */

static void stream_tell(struct ask *a, enum event_type type, struct str name)
{
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	json_write_key(&w, "filesystem");
	write_event(&w, type, name);
	json_write_object_end(&w);
	ask_send(a, &w);
}

static void stream_word(struct ask *a, const char *word)
{
	struct buf b = BUF_INIT(64);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	json_put_object(&w, word);
	json_write_object_end(&w);
	json_write_object_end(&w);
	ask_send(a, &w);
}

static void stream_ping(struct ask *a)
{
	stream_word(a, "keepalive");
}

static void stream_on_deadline(struct ask *a)
{
	ask_fail_as(a, "deadline_exceeded", "the timeout of the request is over");
	ask_cancel(a);
}

static void stream_on_event(struct ask *a, const void *event)
{
	const struct file_event *ev = event;

	if (ev->kind == CHANGE_READY) {
		stream_word(a, "start");
	} else if (ev->kind == CHANGE_OVERFLOW) {
		ask_fail_as(a, "resource_exhausted", "events were lost: watch again");
		ask_cancel_later(a);
	} else {
		watch_tell(a, ev);
	}
}

static void stream_on_end(struct ask *a, const void *result, const struct err *err)
{
	if (err)
		ask_fail(a, err);
	else
		ask_end_stream(a);
}

/* Begins a request; false: the ask has failed. */
static bool watch_args(struct ask *a, struct ask_args *args)
{
	struct str path = ask_path(a, ask_str(a->body, "path"));
	struct json_writer *w;

	if (!path.p)
		return false;
	w = ask_args(a, args, true);
	ask_arg_str(w, "path", path);
	ask_arg_bool(w, "recursive", json_bool(json_get(a->body, "recursive")));
	return true;
}

static struct watching *watching_new(struct ask *a)
{
	struct watching *w = a->state = arena_alloc(a->arena, sizeof(*w), &(struct err){ 0 });

	if (!w)
		ask_fail_with(a, ERR_LIMIT, "out of memory");
	return w;
}

static void run_watch(struct ask *a)
{
	struct watching *w = watching_new(a);
	struct ask_args args;

	if (!w || !watch_args(a, &args))
		return;
	w->tell = stream_tell;
	if (a->timeout_ms)
		ask_every(a, a->timeout_ms, stream_on_deadline);
	else
		ask_every(a, PING_MS, stream_ping);
	ask_follow(a, &files_watch_op, &args, stream_on_event, stream_on_end);
}

/* ---- watchers ------------------------------------------------------------------------------ */

/* The call goes on without a client, and its events wait for one. */
struct e2b_watcher {
	struct e2b_watcher *next;
	char id[ID_MAX], sandbox[SANDBOX_ID_MAX + 1];
	struct ask *ask; /* of the call; NULL: it has ended */
	struct ask *asks; /* who waits for its beginning; NULL: nobody */
	struct buf events; /* JSON, with a comma before each */
	size_t n;
	bool lost;
	uint64_t asked_ms; /* of the last question */
};

/* Answers who asked for the watcher, who may have gone. */
static void watcher_answer(struct e2b_watcher *w, const struct err *err)
{
	struct ask *a = take_ptr(w->asks);
	struct buf b = BUF_INIT(256);
	struct json_writer j = json_writer(&b);

	if (!a)
		return;
	if (err) {
		ask_fail(a, err);
	} else {
		json_write_object(&j);
		ask_arg_str(&j, "watcherId", str_of(w->id));
		json_write_object_end(&j);
		ask_reply(a, 200, &j);
	}
	ask_leave(a);
}

static void watcher_remove(struct e2b *x, struct e2b_watcher *w)
{
	struct e2b_watcher **at = &x->watchers;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	x->n_watchers--;
	watcher_answer(w, &(struct err){ ERR_CANCELLED, "the watch has ended" });
	if (w->ask) {
		((struct watching *)w->ask->state)->watcher = NULL;
		ask_cancel(w->ask);
	}
	buf_fini(&w->events);
	free(w);
}

void e2b_watchers_free(struct e2b *x)
{
	while (x->watchers)
		watcher_remove(x, x->watchers);
}

static void watcher_tell(struct ask *a, enum event_type type, struct str name)
{
	struct e2b_watcher *w = ((struct watching *)a->state)->watcher;
	autobuf struct buf b = BUF_INIT(16 << 10);
	struct json_writer j = json_writer(&b);
	struct err e;

	write_event(&j, type, name);
	if (!w || w->n == EVENTS_MAX || json_write_done(&j, &e) < 0 ||
	    buf_addf(&w->events, &e, ",%.*s", STR_ARG(buf_str(&b))) < 0) {
		if (w)
			w->lost = true;
		return;
	}
	w->n++;
}

static void watcher_on_event(struct ask *a, const void *event)
{
	struct e2b_watcher *w = ((struct watching *)a->state)->watcher;
	const struct file_event *ev = event;

	if (w && ev->kind == CHANGE_READY)
		watcher_answer(w, NULL);
	else if (w && ev->kind == CHANGE_OVERFLOW)
		w->lost = true;
	else if (w)
		watch_tell(a, ev);
}

static void watcher_on_end(struct ask *a, const void *result, const struct err *err)
{
	struct e2b_watcher *w = ((struct watching *)a->state)->watcher;
	bool asked = w && w->asks;

	ask_end_stream(a);
	if (!w)
		return;
	w->ask = NULL;
	if (asked) {
		watcher_answer(w, err ? err : &(struct err){ ERR_IO, "the watch has ended" });
		watcher_remove(a->x, w);
	}
}

static bool has_room(const struct e2b *x, struct str sandbox)
{
	size_t n = 0;

	for (const struct e2b_watcher *w = x->watchers; w; w = w->next)
		n += str_is(sandbox, w->sandbox);
	return n < WATCHERS_EACH_MAX && x->n_watchers < WATCHERS_MAX;
}

/* Those that are good for nobody: ended, or useless, or forgotten. */
static void watchers_sweep(struct e2b *x)
{
	struct e2b_watcher *w, *next;
	uint64_t now = clock_ms();

	for (w = x->watchers; w; w = next) {
		next = w->next;
		if (!w->asks && (!w->ask || w->lost || now - w->asked_ms > IDLE_MS))
			watcher_remove(x, w);
	}
}

static struct e2b_watcher *watcher_new(struct ask *a, struct err *e)
{
	struct e2b *x = a->x;
	struct e2b_watcher *w;

	if (!has_room(x, a->sandbox))
		watchers_sweep(x);
	if (!has_room(x, a->sandbox)) {
		err_set(e, ERR_LIMIT, "there are too many watchers: %d, or %d of the sandbox",
			WATCHERS_MAX, WATCHERS_EACH_MAX);
		return NULL;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	id_make(w->id, "watch");
	snprintf(w->sandbox, sizeof(w->sandbox), "%.*s", STR_ARG(a->sandbox));
	w->events = BUF_INIT(EVENT_BYTES_MAX);
	w->asked_ms = clock_ms();
	w->next = x->watchers;
	x->watchers = w;
	x->n_watchers++;
	return w;
}

/* The call's own ask lives as long as that, and asks for nobody. */
static void watcher_start(struct ask *a, struct e2b_watcher *w, struct ask *own)
{
	struct watching *state = watching_new(own);
	struct ask_args args;

	own->body = a->body; /* for the arguments alone */
	if (!state || !watch_args(own, &args)) {
		w->ask = NULL;
		watcher_answer(w, &(struct err){ ERR_INVALID, "the path is not fit" });
		watcher_remove(a->x, w);
		return;
	}
	own->body = NULL;
	state->watcher = w;
	state->tell = watcher_tell;
	ask_follow(own, &files_watch_op, &args, watcher_on_event, watcher_on_end);
}

/* Nobody would ever learn the watcher's name. */
static bool create_on_leave(struct ask *a)
{
	struct e2b_watcher *w = a->x->watchers;

	while (w && w->asks != a)
		w = w->next;
	if (w)
		watcher_remove(a->x, w);
	return false;
}

static void run_create(struct ask *a)
{
	struct err e = ERR_INIT;
	struct ask *own = ask_new(a->x, a->who, a->sandbox, &e);
	struct e2b_watcher *w = own ? watcher_new(a, &e) : NULL;

	if (own)
		ask_enter(own);
	if (w) {
		w->ask = own;
		w->asks = a;
		a->on_leave = create_on_leave;
		ask_enter(a); /* until it is answered */
		watcher_start(a, w, own);
	} else {
		ask_fail(a, &e);
	}
	if (!own)
		return;
	if (!own->steps)
		ask_end_stream(own);
	ask_leave(own);
}

/* The watcher of this sandbox; NULL: the ask has failed. */
static struct e2b_watcher *watcher_find(struct ask *a)
{
	struct str id = ask_str(a->body, "watcherId");
	struct e2b_watcher *w = a->x->watchers;

	while (w && !(str_is(id, w->id) && str_is(a->sandbox, w->sandbox)))
		w = w->next;
	if (!w)
		ask_fail_as(a, "not_found", "there is no such watcher");
	return w;
}

static void run_events(struct ask *a)
{
	struct e2b_watcher *w = watcher_find(a);
	struct buf b = BUF_INIT(EVENT_BYTES_MAX + 64);
	struct json_writer j = json_writer(&b);

	if (!w)
		return;
	w->asked_ms = clock_ms();
	if (w->lost || !w->ask) {
		ask_fail_as(a, w->lost ? "resource_exhausted" : "not_found",
			    w->lost ? "events were lost: watch again" : "the watch has ended");
		watcher_remove(a->x, w);
		return;
	}
	json_write_object(&j);
	json_put_array(&j, "events");
	if (w->n)
		json_write_raw(&j, (struct str){ w->events.p + 1, w->events.n - 1 });
	json_write_array_end(&j);
	json_write_object_end(&j);
	w->n = w->events.n = 0;
	ask_reply(a, 200, &j);
}

static void run_remove(struct ask *a)
{
	struct e2b_watcher *w = watcher_find(a);
	struct buf b = BUF_INIT(64);
	struct json_writer j = json_writer(&b);

	if (!w)
		return;
	watcher_remove(a->x, w);
	json_write_object(&j);
	json_write_object_end(&j);
	ask_reply(a, 200, &j);
}

static const struct e2b_member members[] = {
	{ "path", JSON_STR },
	{ "recursive", JSON_BOOL },
	{ "watcherId", JSON_STR },
	{ 0 },
};

#define AT(name) "/filesystem.Filesystem/" name
static const struct e2b_row rows[] = {
	{ HTTP_POST, AT("WatchDir"), E2B_STREAM, 0, run_watch, "What happens in a directory.",
	  members },
	{ HTTP_POST, AT("CreateWatcher"), E2B_UNARY, 0, run_create, "Watches a directory.",
	  members },
	{ HTTP_POST, AT("GetWatcherEvents"), E2B_UNARY, 0, run_events, "What happened in it.",
	  members },
	{ HTTP_POST, AT("RemoveWatcher"), E2B_UNARY, 0, run_remove, "Ends a watch.", members },
};
const struct e2b_rows e2b_watch = { rows, ARRAY_LEN(rows) };
