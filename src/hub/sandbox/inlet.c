/*
 * What lets programs of a sandbox ask the hub for calls of modules: a socket in the sandbox's own
 * network, which the hub alone holds, and a folder of Holt's for shells and Python. Only a sandbox
 * that was made with modules has them, and its forks.
 */
#include <limits.h>
#include <stdlib.h>

#include "base/log.h"
#include "hub/sandbox/internal.h"

enum { BACKLOG = 64 };

/* In the template "host" it is there, so that it is no change to the files of a sandbox. */
#define INSIDE "/opt/holt/modules"

struct inlet {
	uv_tcp_t listener;
};

/* ---- Holt's folder ------------------------------------------------------------------------- */

static int inlet_find_folder(struct hub_sandboxes *all, struct err *e)
{
	char path[PATH_MAX];

	if (all->inlet_folder)
		return 0;
	if (box_program(all->box, "inside", path, sizeof(path), e) < 0)
		return -1;
	all->inlet_folder = realpath(path, NULL);
	return all->inlet_folder
		     ? 0
		     : err_set(e, ERR_PROGRAM, "holt-call is not installed beside holt-warden");
}

int inlet_check(struct hub_sandboxes *all, struct err *e)
{
	if (!all->inlets)
		return err_set(e, ERR_UNSUPPORTED, "there are no modules here");
	return inlet_find_folder(all, e);
}

void inlet_mounts(const struct hub_sandbox *l, struct sandbox_mount *mounts, size_t *n)
{
	struct err e = ERR_INIT;

	if (!l->modules)
		return;
	if (inlet_find_folder(l->all, &e) < 0)
		log_warn("sandbox %s: %s", l->id, e.msg);
	else
		mounts[(*n)++] = (struct sandbox_mount){ .host = str_of(l->all->inlet_folder),
							 .guest = STR_LIT(INSIDE) };
}

void inlet_env(const struct hub_sandbox *l, struct env_var *env, size_t *n)
{
	if (l->modules)
		env_add(STR_LIT("PYTHONPATH"), STR_LIT(INSIDE), env, n);
}

/* ---- the socket ---------------------------------------------------------------------------- */

static void inlet_on_closed(uv_handle_t *h)
{
	free(h);
}

void inlet_end(struct hub_sandbox *l)
{
	struct inlet *in = take_ptr(l->inlet);

	if (in)
		uv_close((uv_handle_t *)&in->listener, inlet_on_closed);
}

static void inlet_on_connection(uv_stream_t *listener, int status)
{
	struct hub_sandbox *l = listener->data;
	const struct hub_inlets *to = l->all->inlets;

	if (status < 0)
		log_warn("sandbox %s asks for modules: %s", l->id, uv_strerror(status));
	else
		to->on_connection(to->data, l, listener);
}

/* Takes *fd over where it succeeds. */
static int inlet_listen(struct hub_sandbox *l, int *fd, struct err *e)
{
	struct inlet *in = calloc(1, sizeof(*in));
	int rc;

	if (!in || uv_tcp_init(l->all->loop, &in->listener) < 0) {
		free(in);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	l->inlet = in;
	in->listener.data = l;
	rc = uv_tcp_open(&in->listener, *fd);
	if (rc == 0) {
		*fd = -1;
		rc = uv_listen((uv_stream_t *)&in->listener, BACKLOG, inlet_on_connection);
	}
	if (rc == 0)
		return 0;
	inlet_end(l);
	return err_sys(e, -rc, "listen in a sandbox");
}

struct inlet_start {
	struct hub_sandbox *hs; /* a reference */
	net_cb on_done;
	void *arg;
};

static int inlet_open(struct hub_sandbox *l, int *fds, size_t n, struct err *e)
{
	if (!l->box || l->ending || !l->all->inlets)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", l->id);
	if (n < 1)
		return err_set(e, ERR_LIMIT, "too many files are open");
	return inlet_listen(l, &fds[0], e);
}

static void inlet_on_socket(void *arg, int *fds, size_t n, const struct err *err)
{
	struct inlet_start *s = arg;
	struct err e = ERR_INIT;

	if (!err && inlet_open(s->hs, fds, n, &e) < 0)
		err = &e;
	s->on_done(s->arg, err);
	hub_sandbox_unref(s->hs);
	free(s);
}

bool inlet_serve(struct hub_sandbox *l, net_cb on_done, void *arg, struct err *e)
{
	struct inlet_start *s;

	if (!l->modules || l->inlet || inlet_check(l->all, e) < 0)
		return false;
	s = malloc(sizeof(*s));
	if (!s)
		abort(); /* out of memory: no callback could report it */
	*s = (struct inlet_start){ hub_sandbox_ref(l), on_done, arg };
	if (sandbox_sockets_start(l->box, &l->all->inlets->at, 1, inlet_on_socket, s, e) == 0)
		return true;
	hub_sandbox_unref(l);
	free(s);
	return false;
}

static void inlet_on_adopted(void *arg, const struct err *err)
{
	struct hub_sandbox *l = arg;

	if (err)
		log_warn("programs of sandbox %s can't call modules: %s", l->id, err->msg);
	hub_sandbox_unref(l);
}

void inlet_adopt(struct hub_sandbox *l)
{
	struct err e = ERR_INIT;

	hub_sandbox_ref(l);
	if (!inlet_serve(l, inlet_on_adopted, l, &e))
		inlet_on_adopted(l, e.code ? &e : NULL);
}

void hub_sandboxes_inlets_to(struct hub_sandboxes *all, const struct hub_inlets *to)
{
	all->inlets = to;
	for (struct hub_sandbox *l = all->oldest; l; l = l->newer) {
		if (to && l->box)
			inlet_adopt(l);
		else if (!to)
			inlet_end(l);
	}
}
