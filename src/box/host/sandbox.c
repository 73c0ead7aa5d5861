/*
 * One sandbox as the hub knows it, and the socket to its init. Init's messages are checked, since
 * hostile code runs beside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sock.h"
#include "box/host/internal.h"

enum { QUEUE_MAX = 256, SEND_ROOM = 4 << 20 };

/* A message to init that waits for the end of a fork or of sleep. */
struct queued {
	struct queued *next;
	size_t n;
	int fds[3];
	size_t n_fds;
	char bytes[];
};

/* ---- what it is made of ---------------------------------------------------------------------- */

int env_check(const struct env_var *env, size_t n, struct err *e)
{
	if (n > SANDBOX_ENV_MAX)
		return err_set(e, ERR_INVALID, "env: at most %d variables", SANDBOX_ENV_MAX);
	for (size_t i = 0; i < n; i++) {
		const struct env_var *v = &env[i];

		if (v->name.n == 0 || memchr(v->name.p, '=', v->name.n) ||
		    memchr(v->name.p, 0, v->name.n) ||
		    (v->value.n && memchr(v->value.p, 0, v->value.n)))
			return err_set(
				e, ERR_INVALID,
				"env: a name is not empty and has no \"=\"; no NUL in either");
	}
	return 0;
}

/* Appends to the string. */
static int add_env(struct sandbox *sb, const struct env_var *env, size_t n, struct err *e)
{
	size_t bytes = 0;
	char **more;

	if (env_check(env, n, e) < 0)
		return -1;
	for (size_t i = 0; i < sb->n_env; i++)
		bytes += strlen(sb->env[i]) + 1;
	for (size_t i = 0; i < n; i++)
		bytes += env[i].name.n + env[i].value.n + 2;
	if (bytes > ENV_BYTES_MAX)
		return err_set(e, ERR_TOO_LARGE, "env: at most %d bytes", ENV_BYTES_MAX);
	more = realloc(sb->env, (sb->n_env + n + 1) * sizeof(*more));
	if (!more)
		return err_set(e, ERR_LIMIT, "out of memory");
	sb->env = more;
	for (size_t i = 0; i < n; i++) {
		if (asprintf(&sb->env[sb->n_env], "%.*s=%.*s", STR_ARG(env[i].name),
			     STR_ARG(env[i].value)) < 0)
			return err_set(e, ERR_LIMIT, "out of memory");
		sb->n_env++;
	}
	return 0;
}

int sandbox_id_check(struct str id, struct err *e)
{
	static const char chars[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	bool valid = id.n > 0 && id.n <= SANDBOX_ID_MAX && id.p[0] != '-' && id.p[0] != '_';

	for (size_t i = 0; valid && i < id.n; i++)
		valid = memchr(chars, id.p[i], sizeof(chars) - 1) != NULL;
	return valid ? 0
		     : err_set(e, ERR_INVALID,
			       "id: 1 to %d letters, digits, - and _, the first a letter or digit",
			       SANDBOX_ID_MAX);
}

struct sandbox *sandbox_alloc(struct box *box)
{
	struct sandbox *sb = calloc(1, sizeof(*sb));

	if (!sb)
		return NULL;
	sb->box = box;
	sb->refs = 1;
	sb->socket = -1;
	id_make(sb->id, "sbx");
	return sb;
}

static int set_cwd(struct sandbox *sb, struct str cwd, struct err *e)
{
	if (cwd.n == 0 || cwd.p[0] != '/' || cwd.n >= PATH_MAX || memchr(cwd.p, 0, cwd.n))
		return err_set(e, ERR_INVALID, "cwd: an absolute path");
	free(sb->cwd);
	sb->cwd = strndup(cwd.p, cwd.n);
	return sb->cwd ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

/* box_template_use: applies the template's settings, before those of the spec. */
static int use_template(void *to, const struct box_template *t, struct err *e)
{
	struct sandbox *sb = to;

	sb->image = strdup(t->folder);
	sb->of_host = t->of_host;
	sb->argv = calloc(t->n_argv + 1, sizeof(*sb->argv));
	if (!sb->image || !sb->argv)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < t->n_argv; i++) {
		sb->argv[i] = strndup(t->argv[i].p, t->argv[i].n);
		if (!sb->argv[i])
			return err_set(e, ERR_LIMIT, "out of memory");
		sb->n_argv++;
	}
	if (t->cwd.p && set_cwd(sb, t->cwd, e) < 0)
		return -1;
	return add_env(sb, t->env, t->n_env, e);
}

static int set_template(struct sandbox *sb, struct str template, struct err *e)
{
	const struct box_config *c = &sb->box->config;

	if (template.n == 0 || template.n >= sizeof(sb->template) ||
	    memchr(template.p, 0, template.n))
		return err_set(e, ERR_TEMPLATE_NOT_FOUND, "a template's name has 1 to %zu bytes",
			       sizeof(sb->template) - 1);
	memcpy(sb->template, template.p, template.n);
	if (str_is(template, "host"))
		return 0;
	if (c->find_template)
		return c->find_template(c->find_arg, template, use_template, sb, e);
	return err_set(e, ERR_TEMPLATE_NOT_FOUND, "there is no template \"%.60s\"", sb->template);
}

/* Instead of what the template says of its user. */
static const struct env_var root_env[] = {
	{ STR_LIT("HOME"), STR_LIT("/root") },
	{ STR_LIT("USER"), STR_LIT("root") },
	{ STR_LIT("LOGNAME"), STR_LIT("root") },
};

static int sandbox_fill(struct sandbox *sb, const struct sandbox_spec *spec, struct err *e)
{
	if (spec->id.p && sandbox_id_check(spec->id, e) < 0)
		return -1;
	if (spec->id.p)
		snprintf(sb->id, sizeof(sb->id), "%.*s", STR_ARG(spec->id));
	if (set_cwd(sb, STR_LIT("/workspace"), e) < 0 ||
	    set_template(sb, spec->template.p ? spec->template : STR_LIT("host"), e) < 0 ||
	    (spec->cwd.p && set_cwd(sb, spec->cwd, e) < 0))
		return -1;
	sb->limits = spec->limits;
	if (sb->limits.root && add_env(sb, root_env, ARRAY_LEN(root_env), e) < 0)
		return -1;
	if (!sb->limits.cpu_milli)
		sb->limits.cpu_milli = sb->box->config.limits.cpu_milli;
	if (!sb->limits.files)
		sb->limits.files = sb->box->config.limits.files;
	if (!sb->limits.pids)
		sb->limits.pids = sb->box->config.limits.pids;
	if (!sb->limits.memory && sb->limits.disk <= sb->box->config.limits.memory)
		sb->limits.memory = sb->box->config.limits.memory;
	if (!sb->limits.disk && sb->limits.memory >= sb->box->config.limits.memory)
		sb->limits.disk = sb->box->config.limits.disk;
	sb->ttl_ms = spec->ttl_ms;
	if (limits_complete(&sb->limits, e) < 0 || record_set(sb, spec->record, e) < 0)
		return -1;
	return add_env(sb, spec->env, spec->n_env, e);
}

struct sandbox *sandbox_new(struct box *box, const struct sandbox_spec *spec, struct err *e)
{
	struct sandbox *sb = sandbox_alloc(box);

	if (!sb) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	if (sandbox_fill(sb, spec, e) == 0)
		return sb;
	sandbox_unref(sb);
	return NULL;
}

/* Copies n strings and a NULL after them; *ret_n counts those that could be copied. */
static char **copy_texts(char *const *from, size_t n, size_t *ret_n)
{
	char **to = calloc(n + 1, sizeof(*to));

	*ret_n = 0;
	while (to && *ret_n < n && (to[*ret_n] = strdup(from[*ret_n])))
		++*ret_n;
	return to;
}

static void free_texts(char **texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
	free(texts);
}

struct sandbox *sandbox_copy(const struct sandbox *from, const char *id, struct err *e)
{
	struct sandbox *sb = sandbox_alloc(from->box);

	if (sb) {
		if (id)
			memcpy(sb->id, id, sizeof(sb->id));
		memcpy(sb->template, from->template, sizeof(sb->template));
		sb->limits = from->limits;
		sb->ttl_ms = from->ttl_ms;
		sb->cwd = strdup(from->cwd);
		sb->env = copy_texts(from->env, from->n_env, &sb->n_env);
		sb->argv = copy_texts(from->argv, from->n_argv, &sb->n_argv);
		if (sb->cwd && sb->n_env == from->n_env && sb->n_argv == from->n_argv &&
		    record_set(sb, sandbox_record(from), e) == 0)
			return sb;
	}
	sandbox_unref(sb);
	err_set(e, ERR_LIMIT, "out of memory");
	return NULL;
}

struct sandbox *sandbox_ref(struct sandbox *sb)
{
	sb->refs++;
	return sb;
}

void sandbox_unref(struct sandbox *sb)
{
	if (!sb || --sb->refs)
		return;
	free_texts(sb->env, sb->n_env);
	free_texts(sb->argv, sb->n_argv);
	free(sb->image);
	free(sb->cwd);
	free(sb->record);
	free(sb);
}

const char *sandbox_id(const struct sandbox *sb)
{
	return sb->id;
}

const char *sandbox_template(const struct sandbox *sb)
{
	return sb->template;
}

const struct limits *sandbox_limits(const struct sandbox *sb)
{
	return &sb->limits;
}

bool sandbox_from_pool(const struct sandbox *sb)
{
	return sb->from_pool;
}

bool sandbox_live(const struct sandbox *sb)
{
	return sb->live;
}

bool sandbox_paused(const struct sandbox *sb)
{
	return sb->paused;
}

int64_t sandbox_ttl_left_ms(const struct sandbox *sb)
{
	uint64_t now = clock_ms();

	if (!sb->dies_at_ms)
		return -1;
	return sb->dies_at_ms > now ? (int64_t)(sb->dies_at_ms - now) : 0;
}

/* ---- its socket ------------------------------------------------------------------------------ */

static int send_now(struct sandbox *sb, const void *msg, size_t n, const int *fds, size_t n_fds,
		    struct err *e)
{
	if (sock_send(sb->socket, msg, n, fds, n_fds, MSG_DONTWAIT) >= 0)
		return 0;
	if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS)
		return err_set(e, ERR_LIMIT, "too many requests to sandbox %s at once", sb->id);
	if (errno == EMSGSIZE)
		return err_set(e, ERR_TOO_LARGE, "the request is too large for one message");
	return err_set(e, ERR_GUEST, "the first process of sandbox %s ended", sb->id);
}

int sandbox_stop(struct sandbox *sb, uint32_t id, struct err *e)
{
	const struct im_head stop = { IM_STOP, id };

	if (send_now(sb, &stop, sizeof(stop), NULL, 0, e) < 0)
		return -1;
	sb->stopped = true;
	sb->asked_quiet++;
	return 0;
}

int sandbox_continue(struct sandbox *sb, struct err *e)
{
	const struct im_head go_on = { IM_CONTINUE, 0 };

	sb->stopped = false;
	return send_now(sb, &go_on, sizeof(go_on), NULL, 0, e);
}

int sandbox_ask_quiet(struct sandbox *sb, uint32_t id, struct err *e)
{
	const struct im_head ask = { IM_QUIESCE, id };

	if (send_now(sb, &ask, sizeof(ask), NULL, 0, e) < 0)
		return -1;
	sb->asked_quiet++;
	return 0;
}

/* Init has answered the request of a pause or resume. */
static void stood_still(struct sandbox *sb, const struct im_quiet *m)
{
	struct pending *p = sb->pausing;
	struct err e = ERR_INIT;

	if (p->pause && m->processes) {
		err_set(&e, ERR_TIMEOUT, "the processes could not be stopped");
		box_fork_failed(sb->box, p, &e);
	} else {
		box_paused(sb->box, p);
	}
}

static void quiet(struct sandbox *sb, const struct im_quiet *m)
{
	struct pending *p = sb->forking;
	struct err e = ERR_INIT;

	/* A hostile init could answer more often, and each answer would have its effect. */
	if (sb->asked_quiet == 0)
		return;
	sb->asked_quiet--;
	if (sb->sleep == SANDBOX_AWAKE && sb->sleep_seq && sb->sleep_seq == m->h.id)
		sandbox_is_quiet(sb, m);
	if (sb->pausing && sb->pausing->seq == m->h.id)
		stood_still(sb, m);
	if (!p || p->seq != m->h.id)
		return;
	if (sb->stopped && m->processes) {
		err_set(&e, ERR_TIMEOUT, "the processes could not be stopped");
		box_fork_failed(sb->box, p, &e);
	} else if (sb->stopped) {
		box_fork_known(sb->box, p, WM_FORK_STOPPED);
	} else if (!m->processes && !p->copies) {
		box_fork_known(sb->box, p, WM_FORK_IDLE);
	} else if (sb->box->can_freeze) {
		box_fork_known(sb->box, p, WM_FORK_BUSY);
	} else if (sandbox_stop(sb, p->seq, &e) < 0) {
		box_fork_failed(sb->box, p, &e);
	}
}

/* All that init said to the earlier hub comes before its answer. */
static void was_reset(struct sandbox *sb, const struct im_head *h, size_t n)
{
	if (h->type != IM_WAS_RESET || h->id != sb->epoch || n < sizeof(struct im_quiet))
		return;
	sb->epoch = 0;
	log_info("sandbox %s is adopted; %u processes run in it", sb->id,
		 ((const struct im_quiet *)h)->processes);
}

static void sandbox_dispatch(struct sandbox *sb, size_t n, int *fd, bool fd_lost)
{
	const struct im_head *h = (const void *)sb->box->message;

	if (sb->epoch) {
		was_reset(sb, h, n);
	} else if (h->type == IM_EXIT && n >= sizeof(struct im_exit)) {
		exec_exited(sb, (const void *)h);
	} else if (h->type == IM_FILE_DONE || h->type == IM_PROCESS_DONE ||
		   h->type == IM_TERMINAL_DONE) {
		init_call_answered(sb, h, n, fd, fd_lost);
	} else if (h->type == IM_QUIET && n >= sizeof(struct im_quiet)) {
		quiet(sb, (const void *)h);
	} else {
		log_warn("the init of sandbox %s said something unknown (%u)", sb->id, h->type);
		box_lose(sb);
	}
}

static void read_one(struct sandbox *sb)
{
	autoclose int fd = -1;
	size_t n_fds = 1;
	bool fd_lost;
	ssize_t n = sock_recv_short(sb->socket, sb->box->message, WIRE_MAX, &fd, &n_fds,
				    MSG_DONTWAIT, &fd_lost);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < (ssize_t)sizeof(struct im_head)) {
		box_lose(sb);
		return;
	}
	sb->heard_ms = clock_ms();
	box_watch_sleep(sb->box);
	sandbox_dispatch(sb, (size_t)n, &fd, fd_lost);
}

static void send_reset(struct sandbox *sb);
static void send_queue(struct sandbox *sb);

static void on_event(uv_poll_t *poll, int status, int events)
{
	struct sandbox *sb = sandbox_ref(poll->data);

	read_one(sb);
	if (sb->live && sb->unreset)
		send_reset(sb);
	else if (sb->live && !sb->sleep && (events & UV_WRITABLE))
		send_queue(sb);
	sandbox_unref(sb);
}

static void free_queued(struct queued *q)
{
	for (size_t i = 0; i < q->n_fds; i++)
		close_fd(&q->fds[i]);
	explicit_bzero(q->bytes, q->n); /* it may have secrets */
	free(q);
}

static int hold_back(struct sandbox *sb, const void *msg, size_t n, const int *fds, size_t n_fds,
		     struct err *e)
{
	struct queued *q = sb->n_queued < QUEUE_MAX ? malloc(sizeof(*q) + n) : NULL;
	struct queued **at = &sb->queue;

	if (!q)
		return err_set(e, ERR_LIMIT, "too many requests to sandbox %s at once", sb->id);
	*q = (struct queued){ .n = n };
	memcpy(q->bytes, msg, n);
	for (; q->n_fds < n_fds; q->n_fds++) {
		q->fds[q->n_fds] = fcntl(fds[q->n_fds], F_DUPFD_CLOEXEC, 0);
		if (q->fds[q->n_fds] < 0) {
			err_sys(e, errno, "keep a descriptor for sandbox %s", sb->id);
			free_queued(q);
			return -1;
		}
	}
	while (*at)
		at = &(*at)->next;
	*at = q;
	sb->n_queued++;
	return 0;
}

/* Whether a message starts something new, rather than continuing something in progress. */
static bool sandbox_begins(const void *msg)
{
	const struct im_file *m = msg;

	return m->h.type == IM_EXEC || m->h.type == IM_PROCESS ||
	       (m->h.type == IM_FILE && m->op != FILE_OP_APPEND && m->op != FILE_OP_COMMIT &&
		m->op != FILE_OP_ABORT && m->op != FILE_OP_STOP);
}

int sandbox_send(struct sandbox *sb, const void *msg, size_t n, const int *fds, size_t n_fds,
		 struct err *e)
{
	if (!sb->live)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", sb->id);
	if ((sb->paused || (sb->pausing && sb->pausing->pause)) && sandbox_begins(msg))
		return err_set(e, ERR_PAUSED, "sandbox %s is paused", sb->id);
	if (sb->sleep && sandbox_wake(sb, e) < 0)
		return -1;
	if (sandbox_held(sb))
		return hold_back(sb, msg, n, fds, n_fds, e);
	if (send_now(sb, msg, n, fds, n_fds, e) == 0)
		return 0;
	/* init holds resources until it has received a later step */
	if (e->code != ERR_LIMIT || sandbox_begins(msg) || hold_back(sb, msg, n, fds, n_fds, e) < 0)
		return -1;
	uv_poll_start(sb->poll, UV_READABLE | UV_WRITABLE, on_event);
	return 0;
}

static void drop_queued(struct sandbox *sb)
{
	struct queued *q = sb->queue;

	sb->queue = q->next;
	sb->n_queued--;
	free_queued(q);
}

/* Sends held messages while there is room. If init has ended, its socket reports that. */
static void send_queue(struct sandbox *sb)
{
	struct err e = ERR_INIT;
	bool more;

	while (sb->queue && !sandbox_stands(sb) &&
	       send_now(sb, sb->queue->bytes, sb->queue->n, sb->queue->fds, sb->queue->n_fds, &e) ==
		       0)
		drop_queued(sb);
	more = sb->queue && !sandbox_stands(sb) && e.code == ERR_LIMIT;
	uv_poll_start(sb->poll, more ? UV_READABLE | UV_WRITABLE : UV_READABLE, on_event);
}

void sandbox_released(struct sandbox *sb)
{
	struct err e = ERR_INIT;

	sb->heard_ms = clock_ms();
	if (!sb->live || sandbox_stands(sb))
		return;
	box_watch_sleep(sb->box);
	if (sb->stopped && sandbox_continue(sb, &e) < 0)
		log_error("sandbox %s: its processes could not be continued: %s", sb->id, e.msg);
	send_queue(sb);
}

/* Sends IM_RESET, again later if there is no room: an init may be blocked by answers that nobody
 * has read. */
static void send_reset(struct sandbox *sb)
{
	const struct im_reset m = { .h = { IM_RESET, sb->epoch }, .stay_stopped = sb->paused };
	struct err e = ERR_INIT;

	sb->unreset = send_now(sb, &m, sizeof(m), NULL, 0, &e) < 0 && e.code == ERR_LIMIT;
	uv_poll_start(sb->poll, sb->unreset ? UV_READABLE | UV_WRITABLE : UV_READABLE, on_event);
	if (!sandbox_stands(sb))
		send_queue(sb);
}

void sandbox_reset(struct sandbox *sb, uint32_t epoch)
{
	sb->epoch = epoch;
	send_reset(sb);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_ttl(uv_timer_t *t)
{
	struct sandbox *sb = t->data;

	log_info("sandbox %s has reached its time to live", sb->id);
	sandbox_destroy_start(sb, NULL, NULL);
}

static int start_ttl(struct sandbox *sb, uint64_t dies_at_ms, struct err *e)
{
	uint64_t now = clock_ms();

	sb->dies_at_ms = dies_at_ms;
	if (!dies_at_ms || sb->box->config.ttl_by_caller) {
		if (sb->ttl_timer)
			uv_timer_stop(sb->ttl_timer);
		return 0;
	}
	if (!sb->ttl_timer) {
		sb->ttl_timer = calloc(1, sizeof(*sb->ttl_timer));
		if (!sb->ttl_timer)
			return err_set(e, ERR_LIMIT, "out of memory");
		uv_timer_init(sb->box->loop, sb->ttl_timer);
		sb->ttl_timer->data = sb;
	}
	uv_timer_start(sb->ttl_timer, on_ttl, dies_at_ms > now ? dies_at_ms - now : 0, 0);
	return 0;
}

int sandbox_set_ttl(struct sandbox *sb, uint64_t ttl_ms, struct err *e)
{
	if (!sb->live || sb->destroying)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", sb->id);
	if (start_ttl(sb, ttl_ms ? clock_ms() + ttl_ms : 0, e) < 0)
		return -1;
	sb->ttl_ms = ttl_ms;
	return sb->box->warden_dir ? record_send(sb, e) : 0;
}

int sandbox_set_idle(struct sandbox *sb, uint32_t idle_ms, struct err *e)
{
	if (sb->idle_ms == idle_ms)
		return 0;
	sb->idle_ms = idle_ms;
	return sb->live && sb->box->warden_dir ? record_send(sb, e) : 0;
}

void sandbox_listen_on(struct sandbox *sb)
{
	uv_poll_start(sb->poll, UV_READABLE, on_event);
}

void sandbox_listen(struct sandbox *sb, int socket)
{
	/* Requests wait in the socket while init is busy. The kernel grants at most twice the
	 * default, which is some hundred requests. */
	const int room = SEND_ROOM;

	sb->socket = socket;
	if (setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)) < 0)
		log_debug("room for requests: %s", strerror(errno));
	uv_poll_init(sb->box->loop, sb->poll, socket);
	sb->poll->data = sb;
	sandbox_listen_on(sb);
}

int sandbox_go_live(struct sandbox *sb, uint64_t key, int socket, uint64_t dies_at_ms,
		    struct err *e)
{
	bool asleep = sb->sleep == SANDBOX_ASLEEP;

	sb->key = key;
	sb->poll = asleep ? NULL : calloc(1, sizeof(*sb->poll));
	if ((!asleep && (socket < 0 || !sb->poll)) || start_ttl(sb, dies_at_ms, e) < 0) {
		free(take_ptr(sb->poll));
		close_fd(&socket);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	if (!asleep)
		sandbox_listen(sb, socket);
	sb->heard_ms = clock_ms();
	box_watch_sleep(sb->box);
	sb->live = true;
	sb->next = sb->box->sandboxes;
	sb->box->sandboxes = sandbox_ref(sb);
	return 0;
}

/* Callbacks may ask for more, which fails in the same way. */
void sandbox_fail(struct sandbox *sb, const struct err *err)
{
	while (sb->execs || sb->calls || sb->forking || sb->pausing) {
		exec_end_all(sb, err);
		init_call_end_all(sb, err);
		if (sb->forking)
			box_fork_failed(sb->box, sb->forking, err);
		if (sb->pausing)
			box_fork_failed(sb->box, sb->pausing, err);
	}
	while (sb->queue)
		drop_queued(sb);
}

void sandbox_end(struct sandbox *sb, const struct err *err)
{
	struct sandbox **at = &sb->box->sandboxes;

	if (!sb->live)
		return;
	sb->live = false;
	while (*at != sb)
		at = &(*at)->next;
	*at = sb->next;
	sb->next = NULL;
	if (sb->ttl_timer) {
		uv_timer_stop(sb->ttl_timer);
		box_close_handle(take_ptr(sb->ttl_timer));
	}
	if (sb->socket >= 0) {
		uv_poll_stop(sb->poll);
		box_close_handle(take_ptr(sb->poll));
	}
	free(take_ptr(sb->poll)); /* of a waking sandbox, not in use yet */
	close_fd(&sb->socket);
	sandbox_fail(sb, err);
	box_watch_sleep(sb->box);
	if (sb->announced && sb->box->config.on_end)
		sb->box->config.on_end(sb->box->config.on_end_arg, sb, err);
	sandbox_unref(sb); /* the reference of the list */
}

const char *sandbox_cwd(const struct sandbox *sb)
{
	return sb->cwd;
}

int sandbox_path(const struct sandbox *sb, struct str path, char *at, struct err *e)
{
	int n;

	if (path.n == 0 || path.n >= PATH_MAX || memchr(path.p, 0, path.n))
		return err_set(e, ERR_INVALID, "path: 1 to %d bytes, no NUL", PATH_MAX - 1);
	if (path.p[0] == '/')
		n = snprintf(at, PATH_MAX, "%.*s", STR_ARG(path));
	else
		n = snprintf(at, PATH_MAX, "%s/%.*s", sb->cwd, STR_ARG(path));
	return n < PATH_MAX ? n + 1 : err_set(e, ERR_INVALID, "path: too long");
}
