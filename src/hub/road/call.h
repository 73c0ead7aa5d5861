#pragma once
/*
 * A call: a principal asks for a tool with arguments. Whoever asks, it takes this one road:
 *
 *	identify -> validate -> run -> answer
 *
 * The side that asks (MCP today) makes the call with call_new(), lets it go with call_run(), and
 * hears of its end by its struct call_origin. The tool sees the rest of this header.
 */
#include <uv.h>

#include "base/arena.h"
#include "hub/road/tool.h"

struct hub;
struct box;
struct lives;
struct sandbox;
struct call;
struct previews;

/* Who asks. Static or as long-lived as the hub; never taken from an argument. */
struct principal {
	const char *name; /* in log records */
};

/* The user who started this program and holds its standard input. */
extern const struct principal principal_local;

/* What a tool hands back; borrowed until the function returns that it is given to. */
struct call_answer {
	struct str text; /* for who reads; STR_NONE: structured as JSON is */
	const void *structured; /* the struct of the tool's output table */
};

/* ---- for the side that asks ---------------------------------------------------------------- */

/* Exactly one of answer and fail is called, and is the last call. */
struct call_origin {
	void (*answer)(void *asker, const struct tool *tool, const struct call_answer *answer);
	void (*fail)(void *asker, const struct err *e);
	/* NULL, or how far it has come; total 0 is unknown. */
	void (*progress)(void *asker, double progress, double total, const char *message);
	/* NULL: the tool's input decodes args. Else, of who has more than one object to ask with: gives
	 * the struct of the input's table, which lives as long as the call. */
	int (*validate)(void *asker, void **ret_params, struct err *e);
};

/* Borrowed until the call ends, all but the struct itself. */
struct call_ask {
	const struct principal *who;
	const struct tool *tool;
	const struct json_val *args; /* an object, or NULL for none */
	struct arena *arena; /* for what lives as long as the call */
	const char *label; /* names it in log records */
	const struct call_origin *origin;
	void *asker;
};

/* NULL without memory. */
struct call *call_new(struct hub *hub, const struct call_ask *ask, struct err *e) MUST_USE;

/* Sends it down the road. It may have ended when this returns. */
void call_run(struct call *c);

/* The asker wants it no more: what runs for it is ended, and its end still follows. */
void call_cancel(struct call *c);

/* ---- for tools ----------------------------------------------------------------------------- */

/* For who both asks and runs. */
void *call_asker(struct call *c);

struct box *call_box(struct call *c);
struct arena *call_arena(struct call *c);

uv_loop_t *call_loop(struct call *c);

/* All sandboxes of the hub. */
struct lives *call_lives(struct call *c);
/* Path of the store of images (hub/image/images.h); NULL: none. */
const char *call_images(const struct call *c);
/* What makes links to servers in sandboxes (hub/road/preview.h); NULL: nothing does. */
const struct previews *call_previews(const struct call *c);

/* The running sandbox of this id, which is busy until the end of the call, and valid so long also
 * where it ends before; else NULL with what life_sandbox() says. One for each call. */
struct sandbox *call_sandbox(struct call *c, struct str id, struct err *e) MUST_USE;

/* Takes n bytes of what all calls together may keep of output; given back at the call's end.
 * ERR_LIMIT when it is used up. */
int call_reserve(struct call *c, size_t n, struct err *e) MUST_USE;

/* From here on the call only waits, for news or an end: it makes room for one that works, and counts among those that
 * wait instead. ERR_LIMIT where too many do. At most once. */
int call_waits(struct call *c, struct err *e) MUST_USE;

/* on_cancel is called at most once, and never after the call's end. */
void call_on_cancel(struct call *c, void (*on_cancel)(void *data), void *data);
bool call_cancelled(const struct call *c);

/* Where the asker wants progress: calls on_tick every second until the end of the call. */
void call_on_tick(struct call *c, void (*on_tick)(void *data), void *data);
void call_progress(struct call *c, double progress, double total, const char *message);

/* Ends the call; c is gone. */
void call_answer(struct call *c, const struct call_answer *answer);
void call_fail(struct call *c, const struct err *e);
