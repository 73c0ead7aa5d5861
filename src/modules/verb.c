#include "modules/verb.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "mcp/connect/child.h"

enum {
	OUT_MAX = 256 << 10, /* a row of JSON */
	ERR_KEPT = 32 << 10,
	STOP_MS = 2000, /* of each step of its end */
};

struct verb_run {
	struct mcp_child *child; /* NULL: it is being closed */
	uv_timer_t timer;
	struct buf out, err;
	bool late;
	void (*on_done)(void *arg, const struct verb_end *end);
	void *arg;
};

static void verb_on_freed(uv_handle_t *h)
{
	struct verb_run *r = h->data;
	const struct verb_end end = { r->late, buf_str(&r->out), buf_str(&r->err) };

	r->on_done(r->arg, &end);
	buf_fini(&r->out);
	buf_fini(&r->err);
	free(r);
}

static void verb_on_closed(void *owner)
{
	struct verb_run *r = owner;

	uv_close((uv_handle_t *)&r->timer, verb_on_freed);
}

void verb_run_cancel(struct verb_run *r)
{
	if (r->child)
		mcp_child_close(take_ptr(r->child), STOP_MS, verb_on_closed, r);
}

static void verb_on_late(uv_timer_t *t)
{
	struct verb_run *r = t->data;

	r->late = true;
	verb_run_cancel(r);
}

static void verb_on_end(void *owner, const struct err *e)
{
	verb_run_cancel(owner);
}

static void verb_on_line(void *owner, struct str line)
{
	struct verb_run *r = owner;
	struct err ignored;

	if (buf_add(&r->out, line.p, line.n, &ignored) < 0)
		buf_drop(&r->out, r->out.n);
}

static void verb_on_long(void *owner, const struct rpc_sniff *sniff, const struct err *e)
{
}

static void verb_on_err(void *owner, struct str bytes)
{
	struct verb_run *r = owner;
	struct err ignored;

	if (bytes.n > ERR_KEPT) {
		bytes.p += bytes.n - ERR_KEPT;
		bytes.n = ERR_KEPT;
	}
	if (r->err.n + bytes.n > ERR_KEPT)
		buf_drop(&r->err, r->err.n + bytes.n - ERR_KEPT);
	if (buf_add(&r->err, bytes.p, bytes.n, &ignored) < 0)
		buf_drop(&r->err, r->err.n);
}

struct verb_run *verb_run_start(uv_loop_t *loop, const char *const *words, unsigned timeout_s,
				void (*on_done)(void *arg, const struct verb_end *end), void *arg,
				struct err *e)
{
	static const struct mcp_child_events events = { .on_line = verb_on_line,
							.on_long = verb_on_long,
							.on_stderr = verb_on_err,
							.on_end = verb_on_end };
	const char *argv[VERB_WORDS_MAX + 2] = { "/proc/self/exe" };
	const struct mcp_child_options o = { .argv = argv,
					     .env = (const char *const *)(uintptr_t)environ,
					     .tethered = true,
					     .line_max = OUT_MAX,
					     .stop_ms = STOP_MS };
	struct verb_run *r;

	for (size_t i = 0; words[i]; i++) {
		if (i == VERB_WORDS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d words", VERB_WORDS_MAX), NULL;
		argv[i + 1] = words[i];
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*r = (struct verb_run){ .out = BUF_INIT(OUT_MAX),
				.err = BUF_INIT(2 * ERR_KEPT),
				.on_done = on_done,
				.arg = arg };
	r->child = mcp_child_start(loop, &o, &events, r, e);
	if (!r->child) {
		free(r);
		return NULL;
	}
	uv_timer_init(loop, &r->timer);
	r->timer.data = r;
	uv_timer_start(&r->timer, verb_on_late, timeout_s * 1000ull, 0);
	return r;
}
