/*
 * The hub's requests to the warden and their answers, and what happens to them when the warden
 * dies. Requests are sent at once, even before the warden has said that it is ready; the socket
 * buffers them. A warden that dies takes its sandboxes with it. The next create starts another one
 * (warden.c).
 */
#include "box/host/internal.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { SANDBOXES_DEFAULT = 4096, POOL_MAX = 64, NETS_MAX = 16, CLOSE_MS = 6000, ASK_MS = 3000 };
#define LINGER_DEFAULT_MS (24ull * 3600 * 1000)

/* ---- small loop things ----------------------------------------------------------------------- */

static void free_handle(uv_handle_t *h)
{
	free(h);
}

void box_close_handle(void *handle)
{
	if (handle)
		uv_close(handle, free_handle);
}

struct later {
	uv_timer_t timer;
	void (*f)(void *arg);
	void *arg;
};

static void on_later(uv_timer_t *t)
{
	struct later *l = (struct later *)t;

	l->f(l->arg);
	box_close_handle(l);
}

int box_later(struct box *box, void (*f)(void *arg), void *arg, struct err *e)
{
	struct later *l = calloc(1, sizeof(*l));

	if (!l)
		return err_set(e, ERR_LIMIT, "out of memory");
	l->f = f;
	l->arg = arg;
	uv_timer_init(box->loop, &l->timer);
	uv_timer_start(&l->timer, on_later, 0, 0);
	return 0;
}

/* ---- pending requests ------------------------------------------------------------------------ */

struct pending *box_expect(struct box *box, void *arg)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->seq = ++box->last_seq;
	p->to = -1;
	p->arg = arg;
	p->next = box->pending;
	box->pending = p;
	return p;
}

struct pending *box_expected(struct box *box, uint32_t seq)
{
	for (struct pending **at = &box->pending; *at; at = &(*at)->next) {
		struct pending *p = *at;

		if (p->seq != seq)
			continue;
		*at = p->next;
		return p;
	}
	return NULL;
}

void box_forget(struct pending *p)
{
	box_close_handle(p->timer);
	box_wait_no_more(p);
	close_fd(&p->to);
	for (size_t i = 0; i < ARRAY_LEN(p->children); i++)
		sandbox_unref(p->children[i]);
	sandbox_unref(p->source);
	sandbox_unref(p->model);
	free(p->ids);
	free(p->folder);
	free(p);
}

/* Releases the sandbox that a request has held. */
static void let_go(struct sandbox *sb, const struct pending *p)
{
	if (sb->forking != p && sb->pausing != p)
		return;
	if (sb->forking == p)
		sb->forking = NULL;
	else
		sb->pausing = NULL;
	sandbox_released(sb);
}

/* Ends a request that is off the list with an error. */
static void answer_error(struct pending *p, const struct err *err)
{
	if (p->source)
		let_go(p->source, p);
	if (p->on_fork)
		p->on_fork(p->arg, NULL, 0, err);
	else if (p->on_usage)
		p->on_usage(p->arg, NULL, 0, err);
	else if (p->on_sockets)
		p->on_sockets(p->arg, NULL, 0, err);
	else if (p->on_sandbox)
		p->on_sandbox(p->arg, NULL, err);
	box_forget(p);
}

static void fail_all(struct box *box, const struct err *err)
{
	while (box->pending) {
		struct pending *p = box->pending;

		box->pending = p->next;
		answer_error(p, err);
	}
}

/* ---- the warden's end ------------------------------------------------------------------------ */

static void finish_close(struct box *box)
{
	void (*on_closed)(void *arg) = box->on_closed;
	void *arg = box->on_closed_arg;

	box_close_handle(box->close_timer);
	box_close_handle(box->adopt_timer);
	box_close_handle(box->sleep_timer);
	free(box->warden_dir);
	free(box);
	if (on_closed)
		on_closed(arg);
}

void box_ended(struct box *box, int status, int signal)
{
	struct err err = ERR_INIT;

	box->stats.ready = false;
	box->stats.pool_ready = 0;
	if (box->state == BOX_CLOSING) {
		finish_close(box);
		return;
	}
	box->state = BOX_DEAD;
	if (box->start_error.code) {
		err = box->start_error;
	} else {
		log_error("the warden ended (status %d, signal %d)", status, signal);
		err_set(&err, ERR_GUEST, "the process that held all sandboxes ended");
	}
	while (box->sandboxes) {
		box->stats.lost++;
		sandbox_end(box->sandboxes, &err);
	}
	fail_all(box, &err);
}

/* ---- the box --------------------------------------------------------------------------------- */

static_assert((int)CLOSED_MAX == (int)WIRE_CLOSED_MAX, "the warden knows of each folder");

static int close_folders(struct box *box, const struct box_config *config, struct err *e)
{
	if (config->n_closed > CLOSED_MAX)
		return err_set(e, ERR_BUG, "more than %d folders are closed", CLOSED_MAX);
	for (size_t i = 0; i < config->n_closed; i++) {
		if (strlen(config->closed[i]) >= sizeof(box->closed[i]))
			return err_set(e, ERR_INVALID, "the path of a folder of Holt is too long");
		strcpy(box->closed[i], config->closed[i]);
	}
	return 0;
}

struct box *box_new(uv_loop_t *loop, const struct box_config *config, struct err *e)
{
	autofree struct box *box = calloc(1, sizeof(*box));
	autofree uv_timer_t *close_timer = calloc(1, sizeof(*close_timer));
	autofree char *warden_dir = config->warden_dir ? strdup(config->warden_dir) : NULL;

	if (!box || !close_timer || (config->warden_dir && !warden_dir)) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	if (close_folders(box, config, e) < 0)
		return NULL;
	box->loop = loop;
	box->socket = -1;
	box->pidfd = -1;
	box->config = *config;
	box->warden_dir = warden_dir;
	if (!box->config.linger_ms)
		box->config.linger_ms = LINGER_DEFAULT_MS;
	if (!box->config.max_sandboxes)
		box->config.max_sandboxes = SANDBOXES_DEFAULT;
	if (box->config.pool > POOL_MAX)
		box->config.pool = POOL_MAX;
	if (box->config.networks > NETS_MAX)
		box->config.networks = NETS_MAX;
	box->stats.pool_size = box->config.pool;
	box->stats.tier = "namespace";
	box->stats.limits = "";
	snprintf(box->allow, sizeof(box->allow), "%s", config->allow ? config->allow : "");
	if (limits_complete(&box->config.limits, e) < 0 || box_warden_find(box, e) < 0 ||
	    box_warden_start(box, e) < 0)
		return NULL;
	box->warden_dir = take_ptr(warden_dir);
	box->close_timer = take_ptr(close_timer);
	return take_ptr(box);
}

static void on_close_timeout(uv_timer_t *t)
{
	struct box *box = t->data;

	log_error("the warden does not end; killing it");
	box_warden_kill(box);
}

/* The warden is gone already. A timer calls this, since a callback of the box may have called
 * box_close(). */
static void on_close_now(uv_timer_t *t)
{
	finish_close(t->data);
}

void box_end_with_process(struct box *box)
{
	const struct wm_head m = { WM_END, 0 };
	struct err e = ERR_INIT;

	if (box->warden_dir && box->socket >= 0 && box_send(box, &m, sizeof(m), &e) < 0)
		box_warden_kill(box); /* it does not read the message, so it would stay */
}

/* Ends everything in progress, and closes the socket. */
static void box_shut(struct box *box)
{
	struct err err = ERR_INIT;

	err_set(&err, ERR_CANCELLED, "Holt is shutting down");
	box->state = BOX_CLOSING;
	while (box->sandboxes)
		sandbox_end(box->sandboxes, &err);
	fail_all(box, &err);
	box_warden_drop(box);
}

static void close_within(struct box *box, uint64_t ms, uv_timer_cb f)
{
	uv_timer_init(box->loop, box->close_timer);
	box->close_timer->data = box;
	uv_timer_start(box->close_timer, f, ms, 0);
}

void box_close(struct box *box, void (*on_closed)(void *arg), void *arg)
{
	box->on_closed = on_closed;
	box->on_closed_arg = arg;
	box_end_with_process(box);
	if (box->warden_dir && box->unsent) /* the warden has not received WM_END */
		box_warden_kill(box);
	box_shut(box); /* closing the socket makes the warden end */
	if (box->process || box->exit_poll)
		close_within(box, CLOSE_MS, on_close_timeout);
	else
		close_within(box, 0, on_close_now);
}

void box_leave(struct box *box, void (*on_closed)(void *arg), void *arg)
{
	if (!box->warden_dir || !box->sandboxes) {
		box_close(box, on_closed, arg);
		return;
	}
	box->on_closed = on_closed;
	box->on_closed_arg = arg;
	box->config.on_end = NULL; /* the sandboxes do not end */
	box_shut(box);
	box_warden_forget(box);
	close_within(box, 0, on_close_now);
}

void box_stats(const struct box *box, struct box_stats *ret_stats)
{
	*ret_stats = box->stats;
	for (const struct sandbox *sb = box->sandboxes; sb; sb = sb->next) {
		ret_stats->live++;
		ret_stats->asleep += sb->sleep == SANDBOX_ASLEEP;
	}
}

struct sandbox *box_find(struct box *box, struct str id)
{
	for (struct sandbox *sb = box->sandboxes; sb; sb = sb->next) {
		if (str_is(id, sb->id) && !sb->destroying)
			return sb;
	}
	return NULL;
}

void box_each(struct box *box, void (*f)(void *arg, struct sandbox *sb), void *arg)
{
	for (struct sandbox *sb = box->sandboxes, *next; sb; sb = next) {
		next = sb->next;
		f(arg, sb);
	}
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Makes a sandbox live, and stores its record if sandboxes outlive this process; on failure
 * discards it. */
static int go_live(struct sandbox *sb, uint64_t key, int socket, struct err *e)
{
	uint64_t dies_at_ms = sb->ttl_ms ? clock_ms() + sb->ttl_ms : 0;

	if (sandbox_go_live(sb, key, socket, dies_at_ms, e) < 0) {
		box_discard(sb->box, key);
		return -1;
	}
	if (sb->box->warden_dir && record_send(sb, e) < 0) {
		box_lose(sb);
		return -1;
	}
	return 0;
}

static void answer_create(struct pending *p)
{
	struct err err = ERR_INIT;

	if (!p->model->live) {
		err_set(&err, ERR_GUEST, "the first process of sandbox %s ended", p->model->id);
		answer_error(p, &err);
		return;
	}
	p->model->announced = true;
	p->on_sandbox(p->arg, p->model, NULL);
	box_forget(p);
}

static void undo_fork(struct pending *p, const struct err *err)
{
	for (uint32_t i = 0; i < p->n; i++) {
		if (p->children[i] && p->children[i]->live)
			sandbox_destroy_start(p->children[i], NULL, NULL);
	}
	answer_error(p, err);
}

static void answer_fork(struct box *box, struct pending *p)
{
	struct err err = ERR_INIT;

	for (uint32_t i = 0; i < p->n; i++) {
		if (p->children[i]->live)
			continue;
		err_set(&err, ERR_GUEST, "the first process of sandbox %s ended",
			p->children[i]->id);
		undo_fork(p, &err);
		return;
	}
	box->stats.forked += p->n;
	for (uint32_t i = 0; i < p->n; i++)
		p->children[i]->announced = true;
	p->on_fork(p->arg, p->children, p->n, NULL);
	box_forget(p);
}

static void box_answer(struct box *box, struct pending *p)
{
	if (p->on_fork) {
		answer_fork(box, p);
	} else if (p->model) {
		answer_create(p);
	} else {
		let_go(p->source, p);
		p->on_sandbox(p->arg, p->source, NULL);
		box_forget(p);
	}
}

void box_confirmed(struct box *box, struct pending *p)
{
	box_answer(box, box_expected(box, p->seq));
}

/* Answers p, which is off the list. What is acknowledged must outlive this process, so its messages
 * to the warden must have been sent before. */
static void confirm(struct box *box, struct pending *p)
{
	if (box->warden_dir && box_wait_sent(box, p)) {
		p->next = box->pending;
		box->pending = p;
	} else {
		box_answer(box, p);
	}
}

static void created(struct box *box, struct pending *p, const struct wm_created *m, int fd)
{
	struct err err = ERR_INIT;

	box->stats.created++;
	if (m->from_pool)
		box->stats.pool_hits++;
	else
		box->stats.pool_misses++;
	p->model->from_pool = m->from_pool;
	if (go_live(p->model, m->keys[0], fd, &err) < 0)
		answer_error(p, &err);
	else
		confirm(box, p);
}

static void forked(struct box *box, struct pending *p, const struct wm_created *m, int *fds)
{
	struct err err = ERR_INIT;
	uint32_t i = 0;

	for (; i < m->n; i++) {
		p->children[i] = sandbox_copy(p->source, p->ids ? p->ids[i] : NULL, &err);
		if (!p->children[i] ||
		    go_live(p->children[i], m->keys[i], take_fd(&fds[i]), &err) < 0)
			break;
	}
	let_go(p->source, p);
	if (i == m->n) {
		confirm(box, p);
		return;
	}
	for (; i < m->n; i++)
		box_discard(box, m->keys[i]);
	undo_fork(p, &err);
}

static void lose(struct sandbox *sb)
{
	struct err err = ERR_INIT;

	err_set(&err, ERR_GUEST, "the first process of sandbox %s ended", sb->id);
	sb->box->stats.lost++;
	sandbox_end(sb, &err);
}

static void lost(struct box *box, const struct wm_lost *m)
{
	for (struct sandbox *sb = box->sandboxes; sb; sb = sb->next) {
		if (sb->key != m->key)
			continue;
		lose(sb);
		return;
	}
}

static void failed(struct box *box, const struct wm_failed *m)
{
	struct pending *p = box_expected(box, m->h.seq);
	struct err err = m->err;

	if (err.code == ERR_PATH_NOT_FOUND || err.code == ERR_PATH_DENIED)
		err.code = ERR_UNSUPPORTED;
	if (p)
		answer_error(p, &err);
	else if (m->h.seq)
		box_sleep_failed(box, m->h.seq, &err);
	/* the warden could not start, and exits now */
	else
		box->start_error = err;
}

static void destroyed(struct box *box, uint32_t seq)
{
	struct pending *p = box_expected(box, seq);

	if (!p)
		return;
	box->stats.destroyed++;
	if (p->on_sandbox)
		p->on_sandbox(p->arg, p->model, NULL);
	box_forget(p);
}

static void paused(struct pending *p)
{
	struct sandbox *sb = p->source;

	sb->paused = p->pause;
	exec_hold_timeouts(sb, sb->paused);
	box_keep_pause(sb);
	confirm(sb->box, p);
}

static void written(struct pending *p, const struct wm_written *m)
{
	struct sandbox *sb = p->source;

	snprintf(sb->base, sizeof(sb->base), "%.*s", (int)sizeof(m->image), m->image);
	sb->attached = m->attached;
	let_go(sb, p);
	p->on_sandbox(p->arg, sb, NULL);
	box_forget(p);
}

static void attached(struct pending *p)
{
	let_go(p->source, p);
	p->on_sandbox(p->arg, p->source, NULL);
	box_forget(p);
}

static void made(struct pending *p, int *fds)
{
	size_t n = 0;

	while (n < WIRE_SOCKETS_MAX && fds[n] >= 0)
		n++;
	p->on_sockets(p->arg, fds, n, NULL);
	box_forget(p);
}

void box_paused(struct box *box, struct pending *p)
{
	paused(box_expected(box, p->seq));
}

static void ready(struct box *box, const struct wm_ready *m)
{
	box->stats.ready = true;
	box->stats.limits = limit_driver_name((enum limit_driver)m->driver);
	box->stats.rootless = m->rootless;
	box->can_freeze = m->can_freeze;
	box->state = BOX_READY;
}

void box_heard(struct box *box, int *fds)
{
	const struct wm_head *h = (const void *)box->message;
	const struct wm_created *m = (const void *)h;
	struct pending *p;

	switch (h->type) {
	case WM_READY:
		ready(box, (const void *)h);
		break;
	case WM_CREATED:
		p = box_expected(box, h->seq);
		if (p && p->on_fork)
			forked(box, p, m, fds);
		else if (p)
			created(box, p, m, take_fd(&fds[0]));
		for (uint32_t i = 0; !p && i < m->n; i++)
			box_discard(box, m->keys[i]); /* the source has ended meanwhile */
		break;
	case WM_DESTROYED:
		destroyed(box, h->seq);
		break;
	case WM_FAILED:
		failed(box, (const void *)h);
		break;
	case WM_PAUSED:
		p = box_expected(box, h->seq);
		if (p)
			paused(p);
		break;
	case WM_USED:
		p = box_expected(box, h->seq);
		if (p)
			usage_said(p, (const void *)h);
		break;
	case WM_SOCKET_MADE:
		p = box_expected(box, h->seq);
		if (p)
			made(p, fds);
		break;
	case WM_ASLEEP:
		box_asleep(box, h->seq);
		break;
	case WM_AWAKE:
		box_awake(box, h->seq, &fds[0]);
		break;
	case WM_WRITTEN:
		p = box_expected(box, h->seq);
		if (p)
			written(p, (const void *)h);
		break;
	case WM_ATTACHED:
		p = box_expected(box, h->seq);
		if (p)
			attached(p);
		break;
	case WM_LOST:
		lost(box, (const void *)h);
		break;
	case WM_POOL:
		box->stats.pool_ready = ((const struct wm_pool *)h)->ready;
		break;
	default:
		log_error("the warden said something unknown (%u)", h->type);
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

/* A request that fails before it is sent is answered in the loop's next turn. */
struct refusal {
	struct box *box;
	struct err err;
	sandbox_cb on_sandbox;
	fork_cb on_fork;
	void *arg;
};

static void on_refusal(void *arg)
{
	struct refusal *r = arg;

	if (r->on_fork)
		r->on_fork(r->arg, NULL, 0, &r->err);
	else if (r->on_sandbox)
		r->on_sandbox(r->arg, NULL, &r->err);
	free(r);
}

static void box_refuse(struct box *box, sandbox_cb on_sandbox, fork_cb on_fork, void *arg,
		       const struct err *err)
{
	struct refusal *r = calloc(1, sizeof(*r));
	struct err ignored = ERR_INIT;

	if (!r)
		abort(); /* without memory, no promise of an answer can be kept */
	*r = (struct refusal){ box, *err, on_sandbox, on_fork, arg };
	if (box_later(box, on_refusal, r, &ignored) < 0)
		abort();
}

void box_discard(struct box *box, uint64_t key)
{
	const struct wm_destroy m = { .h = { WM_DESTROY, ++box->last_seq }, .key = key };
	struct err e = ERR_INIT;

	if (box_send(box, &m, sizeof(m), &e) < 0)
		log_debug("%s", e.msg); /* the warden is gone, and its sandboxes with it */
}

void box_lose(struct sandbox *sb)
{
	struct box *box = sb->box;
	uint64_t key = sb->key;

	lose(sb);
	box_discard(box, key);
}

/* Files named in the warden's errors are the host's; the caller could not name them better. */
static bool absolute(struct str path)
{
	return path.n > 0 && path.n < PATH_MAX && path.p[0] == '/' && !memchr(path.p, 0, path.n);
}

/* True for a path below the root without "..", and outside /proc, which init needs unchanged. */
static bool mountable(struct str guest)
{
	const char *at = guest.p, *end = guest.p + guest.n;
	size_t depth = 0;

	while (at < end) {
		const char *slash = memchr(at, '/', (size_t)(end - at));
		struct str name = { at, (size_t)((slash ? slash : end) - at) };

		if (str_is(name, "..") || (depth == 0 && str_is(name, "proc")))
			return false;
		depth += name.n > 0 && !str_is(name, ".");
		at += name.n + 1;
	}
	return depth > 0;
}

static int add_mounts(const struct sandbox_spec *spec, struct buf *b, struct err *e)
{
	for (size_t i = 0; i < spec->n_mounts; i++) {
		const struct sandbox_mount *s = &spec->mounts[i];
		struct wm_mount wm = {
			.host_len = (uint32_t)s->host.n + 1,
			.guest_len = (uint32_t)s->guest.n + 1,
			.writable = s->writable && s->host.n,
			.all = s->all,
			.own = s->own,
			.state = s->state,
			.size = s->size,
		};

		if ((s->host.n && !absolute(s->host)) || !absolute(s->guest))
			return err_set(e, ERR_INVALID, "a mount takes two absolute paths");
		if (!mountable(s->guest))
			return err_set(
				e, ERR_INVALID,
				"mount on %.*s: a place below / without \"..\", not in /proc",
				STR_ARG(s->guest));
		if (buf_add(b, &wm, sizeof(wm), e) < 0 || buf_add(b, s->host.p, s->host.n, e) < 0 ||
		    buf_add(b, "", 1, e) < 0 || buf_add(b, s->guest.p, s->guest.n, e) < 0 ||
		    buf_add(b, "", 1, e) < 0)
			return -1;
	}
	return 0;
}

static int send_create(struct box *box, const struct sandbox_spec *spec, struct pending *p,
		       struct err *e)
{
	autobuf struct buf b = BUF_INIT(WIRE_MAX);
	struct wm_create m = {
		.h = { WM_CREATE, p->seq },
		.limits = p->model->limits,
		.of_host = p->model->of_host,
		.n_mounts = (uint32_t)spec->n_mounts,
	};

	snprintf(m.image, sizeof(m.image), "%s", p->model->image ? p->model->image : "");
	if (spec->n_mounts > WIRE_MOUNTS_MAX)
		return err_set(e, ERR_INVALID, "at most %d mounts", WIRE_MOUNTS_MAX);
	if (buf_add(&b, &m, sizeof(m), e) < 0 || add_mounts(spec, &b, e) < 0)
		return -1;
	return box_send(box, b.p, b.n, e);
}

/* Counts sandboxes that are ending, but not those of the pool. */
static int check_room(const struct box *box, uint32_t n, struct err *e)
{
	for (const struct sandbox *sb = box->sandboxes; sb; sb = sb->next)
		n++;
	for (const struct pending *p = box->pending; p; p = p->next)
		n += p->on_fork ? p->n : p->model != NULL;
	if (n > box->config.max_sandboxes)
		return err_set(e, ERR_LIMIT, "there are as many sandboxes as allowed (%u)",
			       box->config.max_sandboxes);
	return 0;
}

bool sandbox_mount_failed(struct str guest, const struct err *err)
{
	const char *at = strstr(err->msg, IM_STAGE_MOUNT);
	size_t n = guest.n < IM_STAGE_GUEST ? guest.n : IM_STAGE_GUEST;

	at = at ? at + strlen(IM_STAGE_MOUNT) : NULL;
	return at && strncmp(at, guest.p, n) == 0 && (n < guest.n || at[n] == ':');
}

void sandbox_create_start(struct box *box, const struct sandbox_spec *spec, sandbox_cb on_done,
			  void *arg)
{
	struct err e = ERR_INIT;
	struct pending *p = NULL;
	struct sandbox *model = NULL;

	if (box->state == BOX_CLOSING)
		err_set(&e, ERR_CANCELLED, "Holt is shutting down");
	else if (check_room(box, 1, &e) == 0 &&
		 (box->state != BOX_DEAD || box_warden_start(box, &e) == 0))
		model = sandbox_new(box, spec, &e);
	if (model)
		p = box_expect(box, arg);
	if (!p) {
		if (!e.code)
			err_set(&e, ERR_LIMIT, "out of memory");
		sandbox_unref(model);
		box_refuse(box, on_done, NULL, arg, &e);
		return;
	}
	p->model = model;
	p->on_sandbox = on_done;
	if (send_create(box, spec, p, &e) < 0) {
		box_forget(box_expected(box, p->seq));
		box_refuse(box, on_done, NULL, arg, &e);
	}
}

void box_look_at_left(struct box *box, struct str folder, int64_t since_ms)
{
	struct wm_look m = { .h = { WM_LOOK, 0 }, .since_ms = since_ms };
	struct err e = ERR_INIT;

	if (box->state == BOX_CLOSING || folder.n >= sizeof(m.folder))
		return;
	memcpy(m.folder, folder.p, folder.n);
	if ((box->state == BOX_DEAD && box_warden_start(box, &e) < 0) ||
	    box_send(box, &m, sizeof(m), &e) < 0)
		log_warn("it is not looked for what a sandbox left in %s: %s", m.folder, e.msg);
}

void sandbox_destroy_start(struct sandbox *sb, sandbox_cb on_done, void *arg)
{
	struct box *box = sb->box;
	struct wm_destroy m = { .h = { .type = WM_DESTROY }, .key = sb->key };
	struct err e = ERR_INIT;
	struct pending *p;

	if (!sb->live || sb->destroying) {
		err_set(&e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", sb->id);
		box_refuse(box, on_done, NULL, arg, &e);
		return;
	}
	p = box_expect(box, arg);
	if (!p)
		abort(); /* see box_refuse() */
	p->on_sandbox = on_done;
	p->model = sandbox_ref(sb);
	m.h.seq = p->seq;
	if (box_send(box, &m, sizeof(m), &e) < 0) {
		box_forget(box_expected(box, p->seq));
		box_refuse(box, on_done, NULL, arg, &e);
		return;
	}
	sb->destroying = true;
	err_set(&e, ERR_CANCELLED, "sandbox %s was terminated", sb->id);
	sandbox_end(sb, &e);
}

/* Checks that nothing is in progress that a fork, a pause or a resume would disturb. */
static int check_still(const struct sandbox *sb, struct err *e)
{
	if (sb->forking)
		return err_set(e, ERR_CONFLICT, "sandbox %s is being forked", sb->id);
	/* a paused sandbox's init can't answer before it is resumed */
	if (sb->unreset && !sb->paused)
		return err_set(e, ERR_CONFLICT, "sandbox %s is being taken over", sb->id);
	if (sb->pausing)
		return err_set(e, ERR_CONFLICT, "sandbox %s is being %s", sb->id,
			       sb->pausing->pause ? "paused" : "resumed");
	return 0;
}

/* Starts a request whose source must be awake: a pause, a resume, or a copy of files. */
static int box_begin(struct pending *p, struct err *e);

/* ---- fork ------------------------------------------------------------------------------------ */

void box_fork_failed(struct box *box, struct pending *p, const struct err *err)
{
	answer_error(box_expected(box, p->seq), err);
}

static int send_fork(struct box *box, struct pending *p, enum wm_fork_how how, struct err *e)
{
	const struct wm_fork m = {
		.h = { WM_FORK, p->seq },
		.key = p->source->key,
		.n = p->n,
		.how = how,
	};
	const struct wm_write w = {
		.h = { WM_WRITE, p->seq },
		.key = p->source->key,
		.how = how,
		.what = p->what,
		.workspace = p->workspace,
	};
	struct wm_attach a = { .h = { WM_ATTACH, p->seq }, .key = p->source->key, .how = how };

	uv_timer_stop(p->timer);
	if (p->folder) {
		snprintf(a.folder, sizeof(a.folder), "%s", p->folder);
		return box_send(box, &a, sizeof(a), e);
	}
	return p->to < 0 ? box_send(box, &m, sizeof(m), e)
			 : box_send_fd(box, &w, sizeof(w), p->to, e);
}

void box_fork_known(struct box *box, struct pending *p, enum wm_fork_how how)
{
	struct err e = ERR_INIT;

	if (send_fork(box, p, how, &e) < 0)
		box_fork_failed(box, p, &e);
}

static void on_ask_timeout(uv_timer_t *t)
{
	struct pending *p = t->data;
	struct err e = ERR_INIT;

	err_set(&e, ERR_TIMEOUT, "the first process of sandbox %s does not answer", p->source->id);
	box_fork_failed(p->source->box, p, &e);
}

static int start_ask_timer(struct box *box, struct pending *p, struct err *e)
{
	p->timer = calloc(1, sizeof(*p->timer));
	if (!p->timer)
		return err_set(e, ERR_LIMIT, "out of memory");
	uv_timer_init(box->loop, p->timer);
	p->timer->data = p;
	uv_timer_start(p->timer, on_ask_timeout, ASK_MS, 0);
	return 0;
}

/* Asks the source's init whether anything runs. If the hub knows that something does, init is asked
 * only if it has to stop it, or if it works for us itself: its answer then comes after that work,
 * so that it is not frozen in the middle of it. */
static int ask_source(struct box *box, struct pending *p, struct err *e)
{
	struct sandbox *sb = p->source;
	bool busy = sb->execs || sb->n_files;

	if (start_ask_timer(box, p, e) < 0)
		return -1;
	if (sb->paused && !box->can_freeze)
		return send_fork(box, p, WM_FORK_STOPPED, e);
	if (sb->paused || (sb->execs && !sb->n_files && box->can_freeze))
		return send_fork(box, p, WM_FORK_BUSY, e);
	p->copies = busy;
	if (busy && !box->can_freeze)
		return sandbox_stop(sb, p->seq, e);
	return sandbox_ask_quiet(sb, p->seq, e);
}

static int keep_ids(struct pending *p, const struct str *ids, struct err *e)
{
	if (!ids)
		return 0;
	p->ids = calloc(p->n, sizeof(*p->ids));
	if (!p->ids)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (uint32_t i = 0; i < p->n; i++) {
		if (sandbox_id_check(ids[i], e) < 0)
			return -1;
		memcpy(p->ids[i], ids[i].p, ids[i].n);
	}
	return 0;
}

void sandbox_fork_start(struct sandbox *source, uint32_t n, const struct str *ids, fork_cb on_done,
			void *arg)
{
	struct box *box = source->box;
	struct err e = ERR_INIT;
	struct pending *p = NULL;

	if (!source->live || source->destroying)
		err_set(&e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", source->id);
	else if (n < 1 || n > WIRE_FORK_MAX)
		err_set(&e, ERR_INVALID, "replicas: from 1 to %d", WIRE_FORK_MAX);
	else if (check_still(source, &e) == 0 && check_room(box, n, &e) == 0)
		p = box_expect(box, arg);
	if (!p) {
		if (!e.code)
			err_set(&e, ERR_LIMIT, "out of memory");
		box_refuse(box, NULL, on_done, arg, &e);
		return;
	}
	p->on_fork = on_done;
	p->source = sandbox_ref(source);
	p->n = n;
	if (keep_ids(p, ids, &e) < 0 || box_begin(p, &e) < 0) {
		box_forget(box_expected(box, p->seq));
		box_refuse(box, NULL, on_done, arg, &e);
		return;
	}
	source->forking = p;
}

static int take_base(void *to, const struct box_template *t, struct err *e)
{
	const char *name = strrchr(t->folder, '/');

	if (!name || strlen(name + 1) >= SANDBOX_BASE_MAX)
		return err_set(e, ERR_BUG, "an image without a name");
	strcpy(to, name + 1);
	return 0;
}

int box_base(struct box *box, struct str template, char ret[SANDBOX_BASE_MAX], struct err *e)
{
	ret[0] = '\0';
	if (str_is(template, "host"))
		return 0;
	if (box->config.find_template)
		return box->config.find_template(box->config.find_arg, template, take_base, ret, e);
	return err_set(e, ERR_TEMPLATE_NOT_FOUND, "there is no template but \"host\"");
}

const char *sandbox_base(const struct sandbox *sb)
{
	return sb->base;
}

int box_program(const struct box *box, const char *name, char *ret, size_t size, struct err *e)
{
	if (snprintf(ret, size, "%s/%s", box->libexec, name) < (int)size)
		return 0;
	return err_set(e, ERR_UNSUPPORTED, "the path of %s is too long", name);
}

/* ---- what was changed ------------------------------------------------------------------------ */

/* A request to a sandbox that stands still meanwhile, not begun. NULL: refused. */
static struct pending *new_still(struct sandbox *sb, sandbox_cb on_done, void *arg)
{
	struct err e = ERR_INIT;
	struct pending *p = NULL;

	if (!sb->live || sb->destroying)
		err_set(&e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", sb->id);
	else if (check_still(sb, &e) == 0)
		p = box_expect(sb->box, arg);
	if (!p) {
		if (!e.code)
			err_set(&e, ERR_LIMIT, "out of memory");
		box_refuse(sb->box, on_done, NULL, arg, &e);
		return NULL;
	}
	p->on_sandbox = on_done;
	p->source = sandbox_ref(sb);
	return p;
}

static bool copies_files(const struct pending *p)
{
	return p->on_fork || p->to >= 0 || p->folder;
}

/* Its source stands still for the request from now on. */
static void hold_source(struct pending *p)
{
	if (copies_files(p))
		p->source->forking = p;
	else
		p->source->pausing = p;
}

static void begin_still(struct pending *p, struct err *e)
{
	struct sandbox *sb = p->source;

	if (!e->code && box_begin(p, e) == 0) {
		hold_source(p);
		return;
	}
	box_refuse(sb->box, p->on_sandbox, NULL, p->arg, e);
	box_forget(box_expected(sb->box, p->seq));
}

void sandbox_write_start(struct sandbox *sb, enum sandbox_write what, int fd, sandbox_cb on_done,
			 void *arg)
{
	struct pending *p = new_still(sb, on_done, arg);
	struct err e = ERR_INIT;

	if (!p) {
		close_fd(&fd);
		return;
	}
	p->to = fd;
	p->what = what == SANDBOX_WRITE_NAMES ? WM_WRITE_NAMES : WM_WRITE_TAR;
	p->workspace = what == SANDBOX_WRITE_WORKSPACE;
	begin_still(p, &e);
}

bool sandbox_attached(const struct sandbox *sb)
{
	return sb->attached;
}

void sandbox_attach_start(struct sandbox *sb, const char *folder, sandbox_cb on_done, void *arg)
{
	struct pending *p = new_still(sb, on_done, arg);
	struct err e = ERR_INIT;

	if (!p)
		return;
	p->folder = strlen(folder) < WIRE_PATH_MAX ? strdup(folder) : NULL;
	if (!p->folder)
		err_set(&e, ERR_LIMIT, "the path of the tree is too long");
	begin_still(p, &e);
}

/* ---- pause ----------------------------------------------------------------------------------- */

/* Pauses by the freezer; without one, init stops all processes. The answer to a resume only tells
 * that init has handled it. */
static int send_pause(struct box *box, struct pending *p, struct err *e)
{
	struct sandbox *sb = p->source;
	const struct wm_pause m = {
		.h = { WM_PAUSE, p->seq },
		.key = sb->key,
		.paused = p->pause,
	};

	if (box->can_freeze)
		return box_send(box, &m, sizeof(m), e);
	if (start_ask_timer(box, p, e) < 0)
		return -1;
	if (p->pause)
		return sandbox_stop(sb, p->seq, e);
	return sandbox_continue(sb, e) < 0 ? -1 : sandbox_ask_quiet(sb, p->seq, e);
}

static void start_pause(struct sandbox *sb, bool pause, sandbox_cb on_done, void *arg)
{
	struct pending *p = new_still(sb, on_done, arg);
	struct err e = ERR_INIT;

	if (!p)
		return;
	p->pause = pause;
	if (sb->paused == pause)
		err_set(&e, ERR_CONFLICT, "sandbox %s is %s", sb->id,
			pause ? "paused" : "not paused");
	begin_still(p, &e);
}

void sandbox_pause_start(struct sandbox *sb, sandbox_cb on_done, void *arg)
{
	start_pause(sb, true, on_done, arg);
}

void sandbox_resume_start(struct sandbox *sb, sandbox_cb on_done, void *arg)
{
	start_pause(sb, false, on_done, arg);
}

/* ---- of one that may be asleep --------------------------------------------------------------- */

static int box_begin(struct pending *p, struct err *e)
{
	struct sandbox *sb = p->source;

	if (sb->sleep)
		return sandbox_wake(sb, e); /* box_source_awake() follows */
	return copies_files(p) ? ask_source(sb->box, p, e) : send_pause(sb->box, p, e);
}

void box_source_awake(struct pending *p)
{
	struct sandbox *sb = p->source;
	struct err e = ERR_INIT;
	bool failed = box_begin(p, &e) < 0;

	hold_source(p);
	if (failed)
		box_fork_failed(sb->box, p, &e);
}
