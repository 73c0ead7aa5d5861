/*
 * The warden as a child process of the hub: where its program is, how it starts, its socket, how it
 * ends. box.c has the messages after the greeting.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/helper_env.h"
#include "base/sock.h"
#include "box/host/internal.h"
#include "box/wire/build_id.h"

/* Beside the running program as built, or in libexec as installed. */
int box_helpers(char *ret, size_t size, struct err *e)
{
	static const char *const places[] = { "", "/../box", "/../libexec/holt", "/../lib/holt" };
	char self[PATH_MAX], path[PATH_MAX];
	ssize_t n;

	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return err_sys(e, errno, "find the running program");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		if (snprintf(path, sizeof(path), "%s%s/holt-warden", self, places[i]) <
			    (int)sizeof(path) &&
		    access(path, X_OK) == 0 &&
		    snprintf(ret, size, "%s%s", self, places[i]) < (int)size)
			return 0;
	}
	return err_set(e, ERR_UNSUPPORTED, "holt-warden is not installed beside holt");
}

int box_warden_find(struct box *box, struct err *e)
{
	if (!box->config.libexec_dir)
		return box_helpers(box->libexec, sizeof(box->libexec), e);
	snprintf(box->libexec, sizeof(box->libexec), "%s", box->config.libexec_dir);
	return 0;
}

/* ---- its socket ------------------------------------------------------------------------------ */

/* 1: there was a message, 0: there is none now, -1: there will be none. */
static int read_message(struct box *box)
{
	int fds[SOCK_FDS_MAX];
	size_t n_fds = SOCK_FDS_MAX;
	ssize_t n;

	memset(fds, 0xff, sizeof(fds));
	n = sock_recv(box->socket, box->message, sizeof(box->message), fds, &n_fds, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < (ssize_t)sizeof(struct wm_head)) {
		uv_poll_stop(box->poll); /* the warden is ending; its exit follows */
		return -1;
	}
	box_heard(box, fds);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close_fd(&fds[i]);
	return 1;
}

static void warden_ended(struct box *box, int status, int signal)
{
	/* Reads its last messages, which may say why it could not start. */
	while (box->poll && read_message(box) > 0)
		continue;
	box_warden_forget(box);
	box_warden_drop(box);
	box_ended(box, status, signal);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
	struct box *box = poll->data;
	int heard = read_message(box);

	if (heard < 0 && !box->process && !box->exit_poll)
		warden_ended(box, 0, 0);
	else if (heard >= 0 && box->unsent)
		box_send_more(box);
}

void box_warden_listen(struct box *box)
{
	if (box->poll) /* false before box_warden_watch() */
		uv_poll_start(box->poll, box->unsent ? UV_READABLE | UV_WRITABLE : UV_READABLE,
			      on_event);
}

void box_warden_drop(struct box *box)
{
	box_send_no_more(box);
	if (box->poll) {
		uv_poll_stop(box->poll);
		box_close_handle(take_ptr(box->poll));
	}
	close_fd(&box->socket);
}

static void on_warden_exit(uv_process_t *process, int64_t status, int signal)
{
	warden_ended(process->data, (int)status, signal);
}

static void on_pidfd(uv_poll_t *poll, int status, int events)
{
	warden_ended(poll->data, 0, 0);
}

void box_warden_forget(struct box *box)
{
	box_close_handle(take_ptr(box->process));
	if (box->exit_poll) {
		uv_poll_stop(box->exit_poll);
		box_close_handle(take_ptr(box->exit_poll));
	}
	close_fd(&box->pidfd);
}

void box_warden_kill(struct box *box)
{
	if (box->process)
		uv_process_kill(box->process, SIGKILL);
	else if (box->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, box->pidfd, SIGKILL, NULL, 0);
}

static uv_poll_t *new_poll(struct box *box, int fd)
{
	uv_poll_t *poll = calloc(1, sizeof(*poll));

	if (!poll)
		return NULL;
	uv_poll_init(box->loop, poll, fd);
	poll->data = box;
	return poll;
}

int box_warden_watch(struct box *box, struct err *e)
{
	box->poll = new_poll(box, box->socket);
	if (box->poll && box->pidfd >= 0)
		box->exit_poll = new_poll(box, box->pidfd);
	if (!box->poll || (box->pidfd >= 0 && !box->exit_poll))
		return err_set(e, ERR_LIMIT, "out of memory");
	box_warden_listen(box);
	if (box->exit_poll)
		uv_poll_start(box->exit_poll, UV_READABLE, on_pidfd);
	return 0;
}

/* ---- its start ------------------------------------------------------------------------------- */

static int warden_spawn(struct box *box, int socket, const int *kept, struct err *e)
{
	char program[600], init[600], *args[] = { program, init, NULL };
	uv_stdio_container_t stdio[WARDEN_DIR_FD + 1] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_IGNORE },
		{ .flags = UV_INHERIT_FD, .data.fd = 2 },
		{ .flags = UV_INHERIT_FD, .data.fd = socket },
	};
	char *env[HELPER_ENV_MAX + 1];
	uv_process_options_t options = {
		.file = program,
		.args = args,
		.env = env,
		.stdio = stdio,
		.stdio_count = WARDEN_FD + 1,
		.exit_cb = on_warden_exit,
	};
	int rc;

	for (int fd = WARDEN_LISTENER_FD; kept && fd <= WARDEN_DIR_FD; fd++) {
		stdio[fd].flags = UV_INHERIT_FD;
		stdio[fd].data.fd = kept[fd - WARDEN_LISTENER_FD];
		options.stdio_count = fd + 1;
		/* the signals of a terminal are for the hub only */
		options.flags = UV_PROCESS_DETACHED;
	}

	helper_env(env);
	snprintf(program, sizeof(program), "%s/holt-warden", box->libexec);
	snprintf(init, sizeof(init), "%s/holt-init", box->libexec);
	box->process = calloc(1, sizeof(*box->process));
	if (!box->process)
		return err_set(e, ERR_LIMIT, "out of memory");
	box->process->data = box;
	rc = uv_spawn(box->loop, box->process, &options);
	if (rc < 0) {
		box_close_handle(take_ptr(box->process));
		return err_sys(e, -rc, "start holt-warden");
	}
	return 0;
}

/* Sandboxes and connections need descriptors, and the default soft limit is low for the sake of
 * select(). The limit is the process's, however many boxes it has; this is its value at the
 * start. */
static uint64_t raise_files(void)
{
	static uint64_t before;
	struct rlimit files;

	if (before == 0 && getrlimit(RLIMIT_NOFILE, &files) == 0) {
		before = files.rlim_cur;
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	return before;
}

int box_warden_hello(struct box *box, int log, struct err *e)
{
	struct wm_hello m = {
		.h = { WM_HELLO, 0 },
		.version = WIRE_VERSION,
		.build = BUILD_ID,
		.kept = box->warden_dir != NULL,
		.linger_ms = box->config.linger_ms,
		.pool = box->config.pool,
		.networks = box->config.networks,
		.root = box->config.root,
		.max_sandboxes = box->config.max_sandboxes,
		.files = raise_files(),
		.limits = box->config.limits,
	};

	snprintf(m.allow, sizeof(m.allow), "%s", box->allow);
	memcpy(m.closed, box->closed, sizeof(m.closed));
	if (sock_send(box->socket, &m, sizeof(m), &log, log >= 0, 0) < 0)
		return err_sys(e, errno, "greet the warden");
	return 0;
}

int box_warden_spawn(struct box *box, const int *kept, struct err *e)
{
	int sockets[2], failed;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return err_sys(e, errno, "socketpair");
	box->socket = sockets[0];
	box->start_error = ERR_INIT;
	failed = warden_spawn(box, sockets[1], kept, e);
	close(sockets[1]);
	if (failed || box_warden_hello(box, -1, e) < 0 || box_warden_watch(box, e) < 0) {
		box_warden_kill(box);
		box_warden_forget(box);
		box_warden_drop(box);
		return -1;
	}
	box->state = BOX_STARTING;
	return 0;
}

int box_warden_start(struct box *box, struct err *e)
{
	return box->warden_dir ? box_keep_start(box, e) : box_warden_spawn(box, NULL, e);
}
