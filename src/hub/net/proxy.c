/*
 * The egress proxy as a process of the hub's. It keeps nothing that the hub doesn't know, so one
 * that dies is replaced: at once, and after several short lives later and later. What it says is
 * checked for its length here, since it has strangers on both sides.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/sock.h"
#include "hub/net/internal.h"
#include "base/helper_env.h"

enum { SHORT_LIFE_MS = 2000, TRIES = 3, WAIT_MS = 1000, WAIT_MAX_MS = 30000 };

static void on_freed(uv_handle_t *h)
{
	free(h);
}

static void close_handle(void *handle)
{
	if (handle)
		uv_close(handle, on_freed);
}

/* ---- what it is told ----------------------------------------------------------------------- */

static void drop_outgoing(struct outgoing *m)
{
	for (size_t i = 0; i < m->n_fds; i++)
		close(m->fds[i]);
	explicit_bzero(m->bytes, m->n); /* it may have secrets */
	free(m);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void listen_to(struct nets *all)
{
	uv_poll_start(all->poll, all->unsent ? UV_READABLE | UV_WRITABLE : UV_READABLE, on_poll);
}

/* All else that can happen to a socket is its end, which is heard as such. */
static void send_more(struct nets *all)
{
	while (all->unsent) {
		struct outgoing *m = all->unsent;

		if (sock_send(all->socket, m->bytes, m->n, m->fds, m->n_fds, MSG_DONTWAIT) < 0 &&
		    (errno == EAGAIN || errno == ENOBUFS))
			break;
		all->unsent = m->next;
		drop_outgoing(m);
	}
	if (!all->unsent)
		all->end = &all->unsent;
	listen_to(all);
}

void proxy_send(struct nets *all, const void *msg, size_t n, const int *fds, size_t n_fds)
{
	struct outgoing *m = all->socket < 0 ? NULL : malloc(sizeof(*m) + n);

	if (!m) { /* a proxy that misses something is of no use */
		for (size_t i = 0; i < n_fds; i++)
			close(fds[i]);
		if (all->process)
			uv_process_kill(all->process, SIGKILL);
		return;
	}
	*m = (struct outgoing){ .n = n, .n_fds = n_fds };
	memcpy(m->bytes, msg, n);
	if (n_fds)
		memcpy(m->fds, fds, n_fds * sizeof(*fds));
	*all->end = m;
	all->end = &m->next;
	send_more(all);
}

/* ---- its end ------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
	struct nets *all = timer->data;
	struct err e;

	if (proxy_need(all, &e) < 0)
		log_warn("%s", e.msg);
}

static void finish_close(struct nets *all)
{
	void (*on_closed)(void *arg) = all->on_closed;
	void *arg = all->on_closed_arg;

	uv_timer_stop(all->timer);
	close_handle(all->timer);
	free(all);
	on_closed(arg);
}

static void start_again(struct nets *all, const struct err *why)
{
	unsigned wait_ms = 0;

	all->failures = clock_ms() - all->started_ms < SHORT_LIFE_MS ? all->failures + 1 : 0;
	if (all->failures >= TRIES) {
		unsigned n = all->failures - TRIES;

		wait_ms = n < 5 ? (unsigned)WAIT_MS << n : WAIT_MAX_MS;
		nets_fail_all(all, why);
	}
	uv_timer_start(all->timer, on_timer, wait_ms, 0);
}

static void proxy_ended(uv_process_t *process, int64_t status, int signal)
{
	struct nets *all = process->data;
	struct err e;

	close_handle(take_ptr(all->process));
	while (all->unsent) {
		struct outgoing *m = all->unsent;

		all->unsent = m->next;
		drop_outgoing(m);
	}
	all->end = &all->unsent;
	if (all->poll)
		uv_poll_stop(all->poll);
	close_handle(take_ptr(all->poll));
	close_fd(&all->socket);
	questions_drop(all, 0);
	if (all->closing) {
		finish_close(all);
		return;
	}
	err_set(&e, ERR_IO, "the egress proxy ended (status %d, signal %d)", (int)status, signal);
	log_warn("%s: connections of sandboxes have ended", e.msg);
	if (all->first)
		start_again(all, &e);
}

/* ---- what it says -------------------------------------------------------------------------- */

static bool is_sound(const void *m, size_t n)
{
	const struct nw_head *h = m;

	if (n < sizeof(*h))
		return false;
	switch (h->type) {
	case NW_DONE:
		return n == sizeof(*h);
	case NW_FAILED:
		return n == sizeof(struct nw_failed);
	case NW_WANT:
		return n == sizeof(struct nw_want) &&
		       ((const struct nw_want *)m)->n_ports <= NW_PORTS_MAX;
	case NW_FLOW:
		return n == sizeof(struct nw_flow);
	case NW_ASK:
		return n == sizeof(struct nw_ask);
	case NW_LEAVE:
		return n == sizeof(struct nw_leave);
	case NW_TOKENS:
		return n >= sizeof(struct nw_tokens) &&
		       ((const struct nw_tokens *)m)->n <= NW_TOKENS_MAX &&
		       n == sizeof(struct nw_tokens) + ((const struct nw_tokens *)m)->n;
	default:
		return false;
	}
}

/* One message at most in a turn of the loop for each 64: others are to have theirs, too. */
static void read_messages(struct nets *all)
{
	_Alignas(8) static char message[sizeof(struct nw_tokens) + NW_TOKENS_MAX];

	for (int i = 0; i < 64 && all->socket >= 0; i++) {
		ssize_t n = recv(all->socket, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) { /* its exit follows */
			uv_poll_stop(all->poll);
			return;
		}
		if ((size_t)n > sizeof(message) || !is_sound(message, (size_t)n)) {
			log_error("the egress proxy said something unknown");
			uv_process_kill(all->process, SIGKILL);
			return;
		}
		nets_hear(all, (const void *)message);
		if (((const struct nw_head *)message)->type == NW_TOKENS)
			explicit_bzero(message, (size_t)n);
	}
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct nets *all = poll->data;

	if (events & UV_WRITABLE)
		send_more(all);
	if (status < 0 || (events & UV_READABLE))
		read_messages(all);
}

/* ---- its start ----------------------------------------------------------------------------- */

static int proxy_spawn(struct nets *all, int socket, struct err *e)
{
	char program[PATH_MAX];
	char *args[] = { program, NULL };
	char *env[HELPER_ENV_MAX + 1];
	uv_stdio_container_t stdio[NW_FD + 1] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_IGNORE },
		{ .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
		{ .flags = UV_INHERIT_FD, .data.fd = socket },
	};
	const uv_process_options_t options = {
		.file = program,
		.args = args,
		.env = env,
		.stdio = stdio,
		.stdio_count = ARRAY_LEN(stdio),
		.exit_cb = proxy_ended,
	};
	int rc;

	helper_env(env);
	if (box_program(all->box, "holt-egress", program, sizeof(program), e) < 0)
		return -1;
	all->process = calloc(1, sizeof(*all->process));
	all->poll = calloc(1, sizeof(*all->poll));
	if (!all->process || !all->poll) {
		free(take_ptr(all->process));
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	all->process->data = all;
	rc = uv_spawn(all->loop, all->process, &options);
	if (rc < 0) {
		close_handle(take_ptr(all->process)); /* libuv has initialised it */
		return err_sys(e, -rc, "start holt-egress");
	}
	return 0;
}

static int pack_way(const struct nets_way *w, struct nw_hello *m, struct buf *rest, struct err *e)
{
	struct str auth = w->auth ? secret_expose(w->auth, "handed to the proxy") : STR_NONE;

	memcpy(m->proxy, w->proxy, sizeof(m->proxy));
	m->proxy_port = w->proxy_port;
	m->n_split = (uint32_t)w->n_split;
	m->n_private = (uint32_t)w->n_private;
	m->n_direct = (uint32_t)w->n_direct;
	m->n_auth = (uint32_t)auth.n;
	m->n_ca = (uint32_t)w->ca.n;
	if (buf_add(rest, w->split, w->n_split * sizeof(*w->split), e) < 0 ||
	    buf_add(rest, w->private, w->n_private * sizeof(*w->private), e) < 0 ||
	    buf_add(rest, w->direct, w->n_direct * sizeof(*w->direct), e) < 0)
		return -1;
	return buf_add(rest, auth.p, auth.n, e) < 0 ? -1 : buf_add(rest, w->ca.p, w->ca.n, e);
}

static int say_hello(struct nets *all, struct err *e)
{
	autowipe struct buf rest = BUF_INIT(NW_MAX), whole = BUF_INIT(NW_MAX);
	struct nw_hello m = { .h = { NW_HELLO, ++all->last_seq }, .version = NW_VERSION };

	m.n_resolvers = (uint32_t)all->o.n_resolvers;
	memcpy(m.resolvers, all->o.resolvers, sizeof(m.resolvers));
	if ((all->o.way && pack_way(all->o.way, &m, &rest, e) < 0) ||
	    buf_add(&whole, &m, sizeof(m), e) < 0 || buf_add(&whole, rest.p, rest.n, e) < 0)
		return -1;
	proxy_send(all, whole.p, whole.n, NULL, 0);
	return 0;
}

bool proxy_runs(const struct nets *all)
{
	return all->process && all->socket >= 0;
}

int proxy_need(struct nets *all, struct err *e)
{
	int ends[2], failed;

	if (all->process || uv_is_active((uv_handle_t *)all->timer))
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(e, errno, "make a pair of sockets");
	failed = proxy_spawn(all, ends[1], e) < 0;
	close(ends[1]);
	all->started_ms = clock_ms();
	if (failed) {
		free(take_ptr(all->poll));
		close(ends[0]);
		return -1;
	}
	all->socket = ends[0];
	uv_poll_init(all->loop, all->poll, all->socket);
	all->poll->data = all;
	listen_to(all);
	if (say_hello(all, e) < 0) {
		uv_process_kill(all->process, SIGKILL);
		return -1;
	}
	nets_tell_all(all);
	return 0;
}

/* ---- all of a hub -------------------------------------------------------------------------- */

struct nets *nets_new(uv_loop_t *loop, struct box *box, const struct nets_options *o, struct err *e)
{
	struct nets *all = calloc(1, sizeof(*all));

	if (all)
		all->timer = calloc(1, sizeof(*all->timer));
	if (!all || !all->timer) {
		free(all);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	all->loop = loop;
	all->box = box;
	all->o = *o;
	all->socket = -1;
	all->end = &all->unsent;
	uv_timer_init(loop, all->timer);
	uv_unref((uv_handle_t *)all->timer);
	all->timer->data = all;
	return all;
}

void nets_close(struct nets *all, void (*on_closed)(void *arg), void *arg)
{
	all->closing = true;
	all->on_closed = on_closed;
	all->on_closed_arg = arg;
	if (all->process)
		uv_process_kill(all->process, SIGKILL); /* it has nothing to lose */
	else
		finish_close(all);
}

struct str nets_ca(const struct nets *all)
{
	return all->o.way ? all->o.way->ca : STR_NONE;
}
