/*
 * Writes a sandbox's changes, for a snapshot or for display. The sandbox stands still meanwhile (an
 * idle one because its init gets no requests, a busy one by the freezer), so nothing is copied and
 * no layer is added: it takes none of the sandbox's disk, however often it is done. The reader is a
 * process of the hub; when that ends, the writing ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "box/archive/mount.h"
#include "box/warden/internal.h"

/* Added to its disk limit, for the skeleton and marks. */
#define BYTES_ROOM (64 * MIB)

/* The directories that the walk compares. The warden opens them, since a layer may be gone before
 * the new process does. */
struct views {
	int pidfd; /* borrowed */
	int template;
	int layers[CHAIN_MAX + 1];
	size_t n_layers;
	const char *only; /* as in struct walk_from */
};

static void views_fini(struct views *v)
{
	close_fd(&v->template);
	for (size_t i = 0; i < v->n_layers; i++)
		close(v->layers[i]);
}

static int add_layer(struct views *v, const struct layer *l)
{
	int fd = store_layer_open(l);

	if (fd >= 0)
		v->layers[v->n_layers++] = fd;
	return fd;
}

/* Layers that contain the template, too (plain and squashed ones), don't tell what was changed. */
static bool layers_tell(const struct chain *c)
{
	const struct layer *lowest = c->n_frozen ? c->frozen[c->n_frozen - 1] : NULL;

	return !warden.store.plain && (!lowest || !lowest->complete || lowest->base);
}

/* The workspace alone, against the tree that is attached. */
static int open_workspace(struct views *v, const struct sandbox *b, struct err *e)
{
	const struct chain *c = &b->chain;
	uint32_t n = chain_workspace(c);
	int failed;

	*v = (struct views){ .pidfd = b->pidfd, .template = -1, .only = "workspace" };
	if (n == c->n_frozen)
		return 0;
	v->template = store_layer_open(c->frozen[n]);
	failed = v->template <0 || add_layer(v, c->upper) < 0;
	for (uint32_t i = 0; i < n && !failed; i++)
		failed = add_layer(v, c->frozen[i]) < 0;
	if (!failed)
		return 0;
	err_sys(e, errno, "open the layers of files");
	views_fini(v);
	return -1;
}

static int open_views(struct views *v, const struct sandbox *b, struct err *e)
{
	const struct layer *base = chain_base(&b->chain);
	uint32_t n = b->chain.n_frozen - (base ? 1 : 0);
	int failed;

	*v = (struct views){ .pidfd = b->pidfd };
	v->template = base ? store_layer_open(base)
			   : open("/skel", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	failed = v->template <0;
	if (layers_tell(&b->chain)) {
		failed = failed || add_layer(v, b->chain.upper) < 0;
		for (uint32_t i = 0; i < n && !failed; i++)
			failed = add_layer(v, b->chain.frozen[i]) < 0;
	}
	if (!failed)
		return 0;
	err_sys(e, errno, "open the layers of files");
	views_fini(v);
	return -1;
}

/* Opens the sandbox's root as it sees it, without the mounts on it: a read-only copy of the one
 * mount. */
static int open_merged(int pidfd)
{
	autoclose int tree = -1;

	if (setns(pidfd, CLONE_NEWNS) < 0)
		return -1;
	tree = mount_copy(AT_FDCWD, "/r", false);
	if (tree < 0 || mount_setattr_tree(tree, MOUNT_ATTR_RDONLY, -1) < 0)
		return -1;
	return openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int write_all(const struct views *v, const struct sandbox *b, enum wm_write_what what,
		     int fd)
{
	const struct walk_from from = {
		.merged = open_merged(v->pidfd),
		.template = v->template,
		.layers = v->layers,
		.n_layers = v->n_layers,
		.only = v->only,
		.uid = b->uid,
		.n_ids = b->limits.root ? ROOT_IDS : 1,
		.bytes_max = b->limits.disk + BYTES_ROOM,
	};

	return from.merged < 0 ? errno : walk_changes(&from, what, fd);
}

static int start_writing(struct job *j, const struct wm_write *m, int fd, struct err *e)
{
	struct views v;
	pid_t pid;

	if ((m->workspace ? open_workspace(&v, j->source, e) : open_views(&v, j->source, e)) < 0)
		return -1;
	j->attached = m->workspace && v.n_layers;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(write_all(&v, j->source, (enum wm_write_what)m->what, fd) & 0xff);
	}
	views_fini(&v);
	return job_started(j, pid, e);
}

/* An image's folder has its digest as its name. */
static void name_image(const struct sandbox *b, char ret[WIRE_IMAGE_MAX])
{
	const struct layer *image = chain_image(&b->chain);
	char self[32], path[4096];
	const char *slash;
	ssize_t n;

	ret[0] = '\0';
	if (!image)
		return;
	snprintf(self, sizeof(self), "self/fd/%d", image->image);
	n = readlinkat(warden.host.proc, self, path, sizeof(path) - 1);
	if (n <= 0)
		return;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (slash && strlen(slash + 1) < WIRE_IMAGE_MAX)
		strcpy(ret, slash + 1);
}

int sandbox_write(const struct hub_message *in, struct err *e)
{
	const struct wm_write *m = in->p;
	struct sandbox *source = find_awake(m->key, e);
	struct job *j;

	if (!source)
		return -1;
	if (in->fd < 0 || !m->h.seq)
		return err_set(e, ERR_BUG, "nowhere to write to");
	j = new_job(e);
	if (!j)
		return -1;
	j->source = source;
	j->write_seq = m->h.seq;
	j->frozen = m->how == WM_FORK_BUSY && !source->paused;
	name_image(source, j->image);
	if (j->frozen && sandbox_freeze(source, true, e) < 0)
		return -1;
	if (start_writing(j, m, in->fd, e) == 0)
		return 0;
	if (j->frozen)
		thaw(source);
	return -1;
}

static int say_why(int errnum, struct err *e)
{
	switch (errnum) {
	case EFBIG:
		return err_set(e, ERR_TOO_LARGE,
			       "its files, holes in them included, are larger than its disk");
	case ENAMETOOLONG:
		return err_set(e, ERR_TREE_DEEP, "a path in it is longer than 4095 bytes");
	case EPIPE:
		return err_set(e, ERR_CANCELLED, "nobody reads it any more");
	default:
		return err_sys(e, errnum, "write what was changed");
	}
}

void written(struct job *j, int errnum)
{
	struct wm_written m = { .h = { WM_WRITTEN, j->write_seq } };
	struct err e = ERR_INIT;

	if (j->source && j->frozen && !j->source->paused)
		thaw(j->source);
	if (j->forsaken)
		return;
	if (!j->source || j->source->state != SANDBOX_LIVE)
		err_set(&e, ERR_SANDBOX_NOT_FOUND, "the sandbox ended meanwhile");
	else if (errnum)
		say_why(errnum, &e);
	memcpy(m.image, j->image, sizeof(m.image));
	m.attached = j->attached;
	if (e.code)
		send_failed(m.h.seq, &e);
	else
		send_hub(&m, sizeof(m), NULL, 0);
}
