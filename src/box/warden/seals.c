/*
 * Seals of project folders (project.h) that the host takes away while a sandbox runs. A mount on a
 * file goes with the file: programs of the host that replace one by another, as `git config` does,
 * leave the new one without a seal. Inotify tells which, and it is sealed at once. What was removed
 * is made again, but a little later, as many programs remove a file before they write it anew.
 *
 * A sandbox that waits for such a moment can still be faster.
 *
 * Nothing that the host does to the folder ends a sandbox. In a folder that was removed nothing can
 * be made, so nothing is sealed any more. Where sealing fails for another reason (a full file
 * system, a link at a sealed name), the folder is read-only in the sandbox until a later try works.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/warden/held_find.h"
#include "box/warden/internal.h"

enum {
	GRACE_MS = 50,
	AGAIN_MS = 1000,
	/* a file that is written in place may be git's configuration */
	CHANGES = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR,
	EVENTS_ROOM = 16384,
};

static struct {
	int fd;
	uint64_t remake_at; /* clock_ms(); 0: nothing was removed */
} seals = { .fd = -1 };

/* -1 with errno. The watch is of a path, and a descriptor has none here but the working
 * directory. */
int seals_add(int dir, const char *name)
{
	autoclose int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int wd, errnum;

	if (fd < 0 || fchdir(fd) < 0)
		return -1;
	wd = inotify_add_watch(seals.fd, ".", CHANGES);
	errnum = errno;
	if (chdir("/") < 0)
		return -1;
	errno = errnum;
	return wd;
}

static bool has_watch(const struct project *p, int wd)
{
	for (uint32_t i = 0; i < p->held.n; i++) {
		if (p->held.v[i].watch == wd)
			return true;
	}
	return p->top == wd || p->git == wd || planted_has_watch(p, wd);
}

/* Others may have the same folder, and then have the same watch. */
static void seals_remove(const struct project *p, int wd)
{
	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		const struct sandbox *b = &warden.sandboxes[i];

		for (uint32_t k = 0; k < b->n_mounts; k++) {
			const struct project *other = &b->mounts[k].project;

			if (other != p && has_watch(other, wd))
				return;
		}
	}
	inotify_rm_watch(seals.fd, wd);
}

void seals_drop(const struct project *p, int wd)
{
	if (!has_watch(p, wd))
		seals_remove(p, wd);
}

/* It may be another directory than before. */
static int seals_watch_git(struct project *p)
{
	int wd = p->is_git ? -1 : seals_add(p->lock, ".git"), errnum = errno;

	if (p->is_git)
		return 0; /* it is the folder itself */

	if (p->git >= 0 && p->git != wd)
		seals_remove(p, p->git);
	p->git = wd;
	return wd < 0 && errnum != ENOENT && errnum != ENOTDIR && errnum != ELOOP ? -1 : 0;
}

/* The directories that have held paths. They may be others than before. */
static void seals_watch_held(struct project *p)
{
	char above[WIRE_PATH_MAX];

	for (uint32_t i = 0; i < p->held.n; i++) {
		struct held_path *h = &p->held.v[i];
		const char *slash = strrchr(h->path, '/');
		autoclose int dir = -1;

		snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - h->path) : 1,
			 slash ? h->path : ".");
		dir = held_open(p->lock, above, O_PATH | O_DIRECTORY, 0);
		/* without it another pass is made when its directory is there again */
		h->watch = dir < 0 ? -1 : seals_add(dir, ".");
	}
}

int seals_watch(struct project *p, struct err *e)
{
	if (seals.fd < 0) {
		seals.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		if (seals.fd < 0 || watch(seals.fd, NULL, TAG_SEALS) < 0) {
			err_sys(e, errno, "watch a folder");
			close_fd(&seals.fd);
			return -1;
		}
	}
	p->top = seals_add(p->lock, ".");
	if (p->top < 0 || seals_watch_git(p) < 0)
		return err_sys(e, errno, "watch a folder");
	seals_watch_held(p);
	if (planted_watch(p, e) < 0)
		return -1;
	/* Names that the host removed before they were watched are not told. */
	if (project_hold_again(p) < 0)
		return held_fail(e, "what programs of the host act on");
	return 0;
}

void seals_forget(struct project *p)
{
	if (p->top >= 0)
		seals_remove(p, p->top);
	if (p->git >= 0)
		seals_remove(p, p->git);
	p->top = p->git = -1;
	planted_forget(p);
	for (uint32_t i = 0; i < p->held.n; i++) {
		int wd = p->held.v[i].watch;

		p->held.v[i].watch = -1;
		if (wd >= 0)
			seals_drop(p, wd);
	}
}

/* ---- sealing again --------------------------------------------------------------------------- */

static bool is_changed(const struct mount_spec *m)
{
	return m->project.broken || m->project.gone;
}

static int seals_renew(const struct sandbox *b, struct project *p, bool remake)
{
	struct err e = ERR_INIT;
	int failed = 0;

	if (project_is_removed(p)) {
		seals_forget(p);
		p->kept = p->made = 0;
		p->broken = p->gone = false;
		return 0;
	}
	if (remake && p->gone) {
		p->gone = false;
		failed = project_hold_again(p) < 0 ? errno : 0;
	}
	p->broken = false;
	if (project_look_again(p, &e) < 0) {
		log_warn("what git of the host acts on has changed: %s", e.msg);
		failed = EINVAL;
	}
	seals_watch_held(p);
	if (seals_watch_git(p) < 0)
		failed = errno;
	if (planted_watch(p, &e) < 0) {
		if (!p->barred)
			log_warn("end the sandbox before you use git in %.200s: %s", p->of.host,
				 e.msg);
		failed = EINVAL;
	}
	if (setns(b->pidfd, CLONE_NEWNS) < 0)
		return -1;
	if (project_seal(p, p->tree, true) < 0)
		failed = errno;
	/* Barred names that do not exist yet stay barred. */
	if (project_bar(p, failed || (p->barred && p->gone)) < 0)
		failed = failed ?: errno;
	store_return(&warden.store);
	errno = failed;
	return failed ? -1 : 0;
}

static int seals_fail(const struct mount_spec *m, struct err *e)
{
	return err_sys(e, errno, "keep what programs of the host act on in %.200s as it is",
		       m->host);
}

static int seals_renew_all(struct sandbox *b, bool remake, struct err *e)
{
	for (uint32_t i = 0; i < b->n_mounts; i++) {
		struct mount_spec *m = &b->mounts[i];

		if (is_changed(m) && seals_renew(b, &m->project, remake) < 0)
			return seals_fail(m, e);
	}
	return 0;
}

int seals_complete(struct request *r, struct err *e)
{
	for (uint32_t i = 0; i < r->wanted; i++) {
		if (seals_renew_all(r->sandboxes[i], true, e) < 0)
			return -1;
	}
	return 0;
}

static void seals_renew_or_wait(const struct sandbox *b, struct mount_spec *m, bool remake)
{
	bool was_barred = m->project.barred;
	struct err e = ERR_INIT;

	if (!is_changed(m) || seals_renew(b, &m->project, remake) == 0)
		return;
	seals_fail(m, &e);
	if (!was_barred)
		log_warn("a sandbox may not write its folder for now: %s", e.msg);
	m->project.gone = true;
	if (!seals.remake_at)
		seals.remake_at = clock_ms() + AGAIN_MS;
}

/* Those that are being made are sealed as their last step. */
static void seals_renew_live(bool remake)
{
	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		struct sandbox *b = &warden.sandboxes[i];

		for (uint32_t k = 0; b->state == SANDBOX_LIVE && k < b->n_mounts; k++)
			seals_renew_or_wait(b, &b->mounts[k], remake);
	}
}

/* Returns as seals_chores(). What can't be looked at is tried once more, and then barred. */
static int seals_look(uint64_t now)
{
	bool failed = false;
	int wait = -1, one;

	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		struct sandbox *b = &warden.sandboxes[i];

		for (uint32_t k = 0; k < b->n_mounts; k++) {
			struct project *p = &b->mounts[k].project;

			if (p->top < 0)
				continue;
			if (planted_chores(p, now, &one) < 0)
				failed = p->broken = true;
			if (one >= 0 && (wait < 0 || one < wait))
				wait = one;
		}
	}
	if (failed)
		seals_renew_live(false);
	return wait;
}

int seals_chores(uint64_t now)
{
	int wait = seals_look(now);

	if (!seals.remake_at)
		return wait;
	if (now < seals.remake_at)
		return wait >= 0 && wait < (int)(seals.remake_at - now)
			     ? wait
			     : (int)(seals.remake_at - now);
	seals.remake_at = 0;
	seals_renew_live(true);
	return wait;
}

/* ---- what happened --------------------------------------------------------------------------- */

static void seals_note(struct project *p, const struct inotify_event *v)
{
	bool in_git = v->wd == p->git;

	planted_note(p, v);
	if (v->mask & IN_Q_OVERFLOW) {
		p->broken = p->gone = true;
	} else if (v->len && held_has(&p->held, v->wd, v->name)) {
		p->broken = true;
	} else if (v->wd != p->top && !in_git) {
		return;
	} else if (v->len && project_keeps(p, in_git, v->name)) {
		p->broken = true;
		p->gone |= v->mask & (IN_DELETE | IN_MOVED_FROM) || strcmp(v->name, ".git") == 0;
	}
	if (p->gone && !seals.remake_at)
		seals.remake_at = clock_ms() + GRACE_MS;
}

static void seals_note_events(struct project *p, const char *events, ssize_t n)
{
	const struct inotify_event *v;

	for (const char *at = events; at < events + n; at += sizeof(*v) + v->len) {
		v = (const void *)at;
		seals_note(p, v);
	}
}

/* One read for each turn of the loop: a sandbox can make events as fast as they are read. */
void seals_changed(void)
{
	static char room[EVENTS_ROOM] __attribute__((aligned(8)));
	ssize_t n = read(seals.fd, room, sizeof(room));

	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		struct sandbox *b = &warden.sandboxes[i];

		for (uint32_t k = 0; k < b->n_mounts; k++) {
			if (b->mounts[k].project.top >= 0)
				seals_note_events(&b->mounts[k].project, room, n);
		}
	}
	seals_renew_live(false);
}
