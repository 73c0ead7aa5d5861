/*
 * Seals of project folders (project.h) that the host takes away while a sandbox runs. A mount on a
 * file goes with the file: programs of the host that replace one by another, as `git config` does,
 * leave the new one without a seal. Inotify tells which, and it is sealed at once. What was removed
 * is made again, but a little later, as many programs remove a file before they write it anew.
 *
 * A sandbox that waits for such a moment can still be faster.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/warden/internal.h"

enum {
	GRACE_MS = 50,
	CHANGES = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR,
	EVENTS_ROOM = 16384,
};

static struct {
	int fd;
	uint64_t remake_at; /* clock_ms(); 0: nothing was removed */
} seals = { .fd = -1 };

/* -1 with errno. The watch is of a path, and a descriptor has none here but the working
 * directory. */
static int seals_add(int dir, const char *name)
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

/* Others may have the same folder, and then have the same watch. */
static void seals_remove(const struct project *p, int wd)
{
	for (uint32_t i = 0; i < warden.n_bodies; i++) {
		const struct body *b = &warden.bodies[i];

		for (uint32_t k = 0; k < b->n_mounts; k++) {
			const struct project *other = &b->mounts[k].project;

			if (other != p && (other->top == wd || other->git == wd))
				return;
		}
	}
	inotify_rm_watch(seals.fd, wd);
}

/* It may be another directory than before. */
static int seals_watch_git(struct project *p)
{
	int wd = seals_add(p->lock, ".git"), errnum = errno;

	if (p->git >= 0 && p->git != wd)
		seals_remove(p, p->git);
	p->git = wd;
	return wd < 0 && errnum != ENOENT && errnum != ENOTDIR ? -1 : 0;
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
	/* What the host has removed before it was watched is not told. */
	if (project_hold_again(p) < 0)
		return err_sys(e, errno, "keep what programs of the host act on as it is");
	return 0;
}

void seals_forget(struct project *p)
{
	if (p->top >= 0)
		seals_remove(p, p->top);
	if (p->git >= 0)
		seals_remove(p, p->git);
	p->top = p->git = -1;
}

/* ---- sealing again --------------------------------------------------------------------------- */

static bool is_changed(const struct mount_spec *m)
{
	return m->project.broken || m->project.gone;
}

static int seals_renew(const struct body *b, struct project *p, bool remake)
{
	int failed;

	if (remake && p->gone) {
		p->gone = false;
		if (project_hold_again(p) < 0)
			return -1;
	}
	p->broken = false;
	if (seals_watch_git(p) < 0 || setns(b->pidfd, CLONE_NEWNS) < 0)
		return -1;
	failed = project_seal(p->tree, p->kept, true) < 0 ? errno : 0;
	if (store_leave_base(&warden.store) < 0)
		return -1;
	errno = failed;
	return failed ? -1 : 0;
}

static int seals_renew_all(struct body *b, bool remake, struct err *e)
{
	for (uint32_t i = 0; i < b->n_mounts; i++) {
		struct mount_spec *m = &b->mounts[i];

		if (is_changed(m) && seals_renew(b, &m->project, remake) < 0)
			return err_sys(e, errno,
				       "keep what programs of the host act on in %.200s as it is",
				       m->host);
	}
	return 0;
}

int seals_complete(struct request *r, struct err *e)
{
	for (uint32_t i = 0; i < r->wanted; i++) {
		if (seals_renew_all(r->bodies[i], true, e) < 0)
			return -1;
	}
	return 0;
}

/* Of those that are being made the last step is to seal. */
static void seals_renew_live(bool remake)
{
	for (uint32_t i = 0; i < warden.n_bodies; i++) {
		struct body *b = &warden.bodies[i];
		struct err e = ERR_INIT;

		if (b->state == BODY_LIVE && seals_renew_all(b, remake, &e) < 0) {
			log_error("a sandbox is ended: %s", e.msg);
			kill_body(b);
		}
	}
}

int seals_chores(uint64_t now)
{
	if (!seals.remake_at)
		return -1;
	if (now < seals.remake_at)
		return (int)(seals.remake_at - now);
	seals.remake_at = 0;
	seals_renew_live(true);
	return -1;
}

/* ---- what happened --------------------------------------------------------------------------- */

static void seals_note(struct project *p, const struct inotify_event *v)
{
	bool in_git = v->wd == p->git;

	if (v->mask & IN_Q_OVERFLOW) {
		p->broken = p->gone = true;
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

	for (uint32_t i = 0; i < warden.n_bodies; i++) {
		struct body *b = &warden.bodies[i];

		for (uint32_t k = 0; k < b->n_mounts; k++) {
			if (b->mounts[k].project.top >= 0)
				seals_note_events(&b->mounts[k].project, room, n);
		}
	}
	seals_renew_live(false);
}
