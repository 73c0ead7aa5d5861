/*
 * The warden as a process of the hub's: where its program is, how it starts, its socket, how it
 * ends. What the two say to each other once they know each other is in box.c.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sock.h"
#include "box/box_impl.h"

/* Where the two programs are: beside the running one as built, or in libexec as installed. */
int box_warden_find(struct box *box, struct err *e)
{
	static const char *const places[] = { "", "/../box", "/../libexec/holt", "/../lib/holt" };
	char self[PATH_MAX], path[PATH_MAX];
	ssize_t n;

	if (box->config.libexec_dir) {
		snprintf(box->libexec, sizeof(box->libexec), "%s", box->config.libexec_dir);
		return 0;
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return err_sys(e, errno, "find the running program");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		if (snprintf(path, sizeof(path), "%s%s/holt-warden", self, places[i]) <
			    (int)sizeof(path) &&
		    access(path, X_OK) == 0) {
			snprintf(box->libexec, sizeof(box->libexec), "%.480s%s", self, places[i]);
			return 0;
		}
	}
	return err_set(e, ERR_UNSUPPORTED, "holt-warden is not installed beside holt");
}

/* ---- its socket ------------------------------------------------------------------------------- */

static bool read_message(struct box *box)
{
	int fds[WIRE_FORK_MAX];
	size_t n_fds = WIRE_FORK_MAX;
	ssize_t n;

	memset(fds, 0xff, sizeof(fds));
	n = sock_recv(box->socket, box->message, sizeof(box->message), fds, &n_fds, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < (ssize_t)sizeof(struct wm_head)) {
		uv_poll_stop(box->poll); /* it is ending: on_warden_exit follows */
		return false;
	}
	box_heard(box, fds);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close_fd(&fds[i]);
	return true;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	read_message(poll->data);
}

void box_warden_drop(struct box *box)
{
	if (box->poll) {
		uv_poll_stop(box->poll);
		box_close_handle(take_ptr(box->poll));
	}
	close_fd(&box->socket);
}

static void on_warden_exit(uv_process_t *process, int64_t status, int signal)
{
	struct box *box = process->data;

	/* Its last words, why it could not start among them. */
	while (box->poll && read_message(box))
		continue;
	box_close_handle(take_ptr(box->process));
	box_warden_drop(box);
	box_ended(box, (int)status, signal);
}

/* ---- its start -------------------------------------------------------------------------------- */

static int spawn_warden(struct box *box, int socket, struct err *e)
{
	char program[600], init[600], *args[] = { program, init, NULL };
	uv_stdio_container_t stdio[4] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_IGNORE },
		{ .flags = UV_INHERIT_FD, .data.fd = 2 },
		{ .flags = UV_INHERIT_FD, .data.fd = socket },
	};
	uv_process_options_t options = {
		.file = program,
		.args = args,
		.stdio = stdio,
		.stdio_count = 4,
		.exit_cb = on_warden_exit,
	};
	int rc;

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

/* Sandboxes and connections want descriptors, and the soft limit is low where select() is feared. The process has one
 * limit, whatever number of boxes: this is the one that it was started with. */
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

static int send_hello(struct box *box, struct err *e)
{
	struct wm_hello m = {
		.h = { WM_HELLO, 0 },
		.version = WIRE_VERSION,
		.pool = box->config.pool,
		.networks = box->config.networks,
		.max_sandboxes = box->config.max_sandboxes,
		.files = raise_files(),
		.limits = box->config.limits,
	};

	snprintf(m.allow, sizeof(m.allow), "%s", box->allow);
	if (send(box->socket, &m, sizeof(m), MSG_NOSIGNAL) < 0)
		return err_sys(e, errno, "greet the warden");
	return 0;
}

int box_warden_start(struct box *box, struct err *e)
{
	int sockets[2], failed;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return err_sys(e, errno, "socketpair");
	box->socket = sockets[0];
	box->start_error = ERR_INIT;
	failed = spawn_warden(box, sockets[1], e);
	close(sockets[1]);
	if (failed || send_hello(box, e) < 0) {
		close_fd(&box->socket);
		return -1;
	}
	box->poll = calloc(1, sizeof(*box->poll));
	if (!box->poll)
		return err_set(e, ERR_LIMIT, "out of memory");
	uv_poll_init(box->loop, box->poll, box->socket);
	box->poll->data = box;
	uv_poll_start(box->poll, UV_READABLE, on_readable);
	box->state = BOX_STARTING;
	return 0;
}
