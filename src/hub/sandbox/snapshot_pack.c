/* Runs holt-pack as a process. Its arguments say what to do, and its report is read after its
 * end. It is killed if it takes too long. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "hub/sandbox/internal.h"
#include "base/helper_env.h"

enum { PACK_MS = 15 * 60 * 1000, PACKS_MAX = 16 };

struct packing {
	struct packing *next;
	struct hub_sandboxes *all;
	uv_process_t process;
	uv_timer_t timer;
	unsigned handles; /* that are not closed yet */
	int answer;
	bool timed_out;
	pack_cb on_done;
	void *arg;
};

uint64_t snapshot_max(const struct limits *l)
{
	return pack_max(l->disk);
}

/* ---- its end --------------------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *h)
{
	struct packing *p = h->data;

	if (--p->handles == 0)
		free(p);
}

static void snapshot_pack_forget(struct packing *p)
{
	struct packing **at = &p->all->snapshots->packs;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	close_fd(&p->answer);
	p->handles = 1;
	if (p->process.loop) { /* else it was not even tried */
		p->handles++;
		uv_close((uv_handle_t *)&p->process, on_handle_closed);
	}
	uv_close((uv_handle_t *)&p->timer, on_handle_closed);
}

/* All of it, or nothing is known. */
static int read_answer(const struct packing *p, struct pack_answer *ret)
{
	static_assert(sizeof(*ret) <= PIPE_BUF, "written at once, with nobody reading yet");
	if (fd_read(p->answer, ret, sizeof(*ret)) < 0)
		return -1;
	ret->err.msg[sizeof(ret->err.msg) - 1] = '\0';
	ret->digest[HASH_HEX] = '\0';
	ret->meta[PACK_META_MAX] = '\0';
	return 0;
}

static void on_ended(uv_process_t *process, int64_t status, int signal)
{
	struct packing *p = process->data;
	struct hub_sandboxes *all = p->all;
	pack_cb on_done = p->on_done;
	void *arg = p->arg;
	struct pack_answer a = { .bytes = 0 };
	struct err e = ERR_INIT;

	if (read_answer(p, &a) == 0)
		e = a.err;
	else if (p->timed_out)
		err_set(&e, ERR_TIMEOUT, "the snapshot took longer than %d minutes",
			PACK_MS / 60000);
	else if (p->all->stopping)
		err_set(&e, ERR_CANCELLED, "Holt is shutting down");
	else
		err_ended(&e, signal ? signal : (int)status << 8, ERR_IO, "holt-pack");
	snapshot_pack_forget(p);
	on_done(arg, &a, e.code ? &e : NULL);
	hub_sandboxes_try_close(all);
}

static void on_timeout(uv_timer_t *t)
{
	struct packing *p = t->data;

	p->timed_out = true;
	uv_process_kill(&p->process, SIGKILL);
}

void packs_kill(struct hub_sandboxes *all)
{
	for (struct packing *p = all->snapshots ? all->snapshots->packs : NULL; p; p = p->next)
		uv_process_kill(&p->process, SIGKILL);
}

/* ---- its start ------------------------------------------------------------------------------- */

static int snapshot_pack_spawn(struct packing *p, const struct pack_spec *spec, int answer,
			       struct err *e)
{
	char program[PATH_MAX], max[24];
	char *args[] = { program, (char *)spec->mode, max, (char *)spec->with, NULL };
	char *env[HELPER_ENV_MAX + 1];
	uv_stdio_container_t stdio[PACK_ANSWER_FD + 1] = {
		{ .flags = UV_INHERIT_FD, .data.fd = spec->in },
		{ .flags = spec->out < 0 ? UV_IGNORE : UV_INHERIT_FD, .data.fd = spec->out },
		{ .flags = UV_INHERIT_FD, .data.fd = 2 },
		{ .flags = UV_INHERIT_FD, .data.fd = answer },
	};
	const uv_process_options_t options = {
		.file = program,
		.args = args,
		.env = env,
		.stdio = stdio,
		.stdio_count = ARRAY_LEN(stdio),
		.exit_cb = on_ended,
	};
	int rc;

	helper_env(env);
	if (box_program(p->all->box, "holt-pack", program, sizeof(program), e) < 0)
		return -1;
	snprintf(max, sizeof(max), "%" PRIu64, spec->max);
	p->process.data = p;
	rc = uv_spawn(p->all->loop, &p->process, &options);
	return rc < 0 ? err_sys(e, -rc, "start holt-pack") : 0;
}

static int check_room(const struct hub_sandboxes *all, struct err *e)
{
	int n = 0;

	for (const struct packing *p = all->snapshots->packs; p; p = p->next)
		n++;
	return n < PACKS_MAX ? 0
			     : err_set(e, ERR_LIMIT, "%d snapshots are being read or written", n);
}

static struct packing *new_packing(struct hub_sandboxes *all, pack_cb on_done, void *arg,
				   struct err *e)
{
	struct packing *p = check_room(all, e) < 0 ? NULL : calloc(1, sizeof(*p));

	if (!p) {
		if (!e->code)
			err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	p->all = all;
	p->on_done = on_done;
	p->arg = arg;
	p->timer.data = p;
	uv_timer_init(all->loop, &p->timer);
	p->next = all->snapshots->packs;
	all->snapshots->packs = p;
	return p;
}

struct packing *pack_start(struct hub_sandboxes *all, const struct pack_spec *spec, pack_cb on_done,
			   void *arg, struct err *e)
{
	struct packing *p;
	int ends[2], failed;

	/* Not blocking: it may be killed without an answer while another process has a copy of
	 * the pipe's end. */
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, errno, "make a pipe"), NULL;
	p = new_packing(all, on_done, arg, e);
	failed = !p || snapshot_pack_spawn(p, spec, ends[1], e) < 0;
	close(ends[1]);
	if (!p) {
		close(ends[0]);
		return NULL;
	}
	p->answer = ends[0];
	if (failed) {
		snapshot_pack_forget(p);
		return NULL;
	}
	uv_timer_start(&p->timer, on_timeout, PACK_MS, 0);
	return p;
}
