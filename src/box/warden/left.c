/*
 * What a sandbox leaves in a project folder that nothing could keep it from making: repositories
 * below the top, which git of the host obeys where they are, and at the top if they were added as
 * submodules; repositories of other programs; files of the fixed list that are not made for so long
 * (held_is_needed()); and those of project_told. They are told in the log when the sandbox ends.
 *
 * The folder may be large, so a process of its own looks, for at most LOOK_S seconds, and
 * END_MS more where the warden ends.
 *
 * A sandbox may leave any number of these, so each class has lines of its own: none hides what is
 * of another class, and what is most likely to run something comes first.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/warden/closed.h"
#include "box/warden/held_find.h"
#include "box/warden/left.h"
#include "box/wire/project.h"

enum {
	LOOKERS_MAX = 16,
	LOOK_S = 10,
	DEPTH_MAX = 64,
	LOOK_AGAIN_MS = 200,
	WHY_MAX = 256,
	END_MS = 2000,
	END_LAST_MS = 500,
	END_PAUSE_US = 5000
};

static pid_t lookers[LOOKERS_MAX]; /* 0: free */
static volatile sig_atomic_t late; /* no more is looked for */

bool left_is_new(const struct left *l, int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && project_is_new(l->project, &st);
}

bool left_is_new_text(const struct left *l, int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       !(S_ISREG(st.st_mode) && st.st_size == 0) && project_is_new(l->project, &st);
}

static bool left_is_empty(int dir, const char *path)
{
	autofolder struct folder f = folder_at(dir, path);

	return f.d && folder_next(&f) == 0;
}

void left_tell(struct left *l, enum left_class class, const char *path, const char *fmt, ...)
{
	char why[WHY_MAX];
	size_t n = strlen(path);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (l->n[class]++ >= LEFT_TOLD_MAX && class != LEFT_LISTED)
		return;
	if (n <= LEFT_PATH_MAX)
		log_warn("%.300s/%s %s", l->project->of.host, path, why);
	else
		log_warn("%.300s/%.*s[…]%s %s", l->project->of.host, LEFT_PATH_MAX / 2, path,
			 path + n - LEFT_PATH_MAX / 2, why);
}

bool left_has(int dir, const char *path)
{
	return faccessat(dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool left_has_new(const struct left *l, int dir, const char *path)
{
	autofolder struct folder f = folder_at(dir, path);
	bool new = left_is_new(l, dir, path);
	int more = 0;

	if (!f.d)
		return new;
	while (!new && (more = folder_next(&f)) > 0)
		new = left_is_new(l, folder_fd(&f), f.entry->d_name);
	return new || more < 0;
}

/* ---- links ----------------------------------------------------------------------------------- */

enum left_where {
	IN_FILES,
	IN_OTHER_GIT, /* or in a git directory other than the project's own */
	IN_OWN_GIT,
};

/* Whether the owner of the folder can't write there anyway, as behind venv's link to Python. */
static bool left_is_system(const struct left *l, const char *target)
{
	static const char *const places[] = { "/usr/", "/bin/", "/lib", "/nix/store/" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		if (strncmp(target, places[i], strlen(places[i])) == 0)
			return (l->owner != 0 || warden.host.rootless) && !strstr(target, "..");
	}
	return false;
}

/* Links on the way count, but the last is judged by itself. */
static bool left_leads_out(const struct left *l, const char *path, const char *target)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	const char *host = l->project->of.host;
	size_t n = strlen(host);
	char whole[2 * WIRE_PATH_MAX + 4];
	autoclose int fd = -1;

	if (*target != '/')
		snprintf(whole, sizeof(whole), "./%s/%s", path, target);
	else if (strncmp(target, host, n) == 0 && target[n] == '/')
		snprintf(whole, sizeof(whole), "./%s", target + n);
	else
		return !left_is_system(l, target);
	fd = (int)syscall(SYS_openat2, LOOK_FD, whole, &how, sizeof(how));
	return fd < 0 && (errno == EXDEV || errno == EAGAIN || errno == EACCES);
}

static void left_look_at_link(struct left *l, int dir, const char *path, const char *name,
			      enum left_where where)
{
	char target[WIRE_PATH_MAX], whole[2 * WIRE_PATH_MAX];
	struct stat st;
	ssize_t n;

	if (!planted_is(dir, name, &st) || !project_is_new(l->project, &st))
		return;
	snprintf(whole, sizeof(whole), "%s%s%s", path, *path ? "/" : "", name);
	if (where == IN_OWN_GIT && !l->project->past &&
	    planted_take(l->project, dir, name, target)) {
		left_tell(l, LEFT_PLANTED, whole,
			  "was made by a sandbox, and is removed: git would have written through "
			  "it%s%.100s",
			  *target ? " to " : "", target);
		return;
	}
	n = S_ISLNK(st.st_mode) ? readlinkat(dir, name, target, sizeof(target) - 1) : 0;
	target[n > 0 ? n : 0] = '\0';
	if (where != IN_FILES)
		left_tell(l, LEFT_PLANTED, whole,
			  "is new, in a git directory: git writes through it%s%.100s",
			  *target ? " to " : "", target);
	else if (n > 0 && left_leads_out(l, path, target))
		left_tell(l, LEFT_OUT, whole,
			  "is a new link out of the folder: what writes to it writes to %.100s",
			  target);
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* At the top what one of Mercurial had at the start is read-only. What it lacked may be an empty
 * file still (held_list.c), which says nothing. */
static void left_look_at_other(struct left *l, int dir, const char *path, size_t at)
{
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(project_repositories[at].files); i++) {
		const char *file = project_repositories[at].files[i];

		if (!file || fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    (S_ISREG(st.st_mode) && st.st_size == 0) || !left_is_new(l, dir, file))
			continue;
		left_tell(l, LEFT_RUNS, *path ? path : project_repositories[at].dir,
			  LEFT_NEW "%s runs what this repository's configuration says where you "
				   "work in it",
			  project_repositories[at].program);
		return;
	}
}

unsigned left_repositories(int dir)
{
	unsigned all = 0;

	for (size_t i = 0; i < ARRAY_LEN(project_repositories); i++)
		all |= (unsigned)left_has(dir, project_repositories[i].dir) << i;
	return all;
}

static const char *left_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool left_is_directory(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Which names a directory has that programs act on, in whatever case. */
struct left_seen {
	bool git;
	unsigned others; /* as left_repositories() */
};

static void left_look_at_name(struct left *l, int dir, const char *path, const struct dirent *one,
			      enum left_where where, struct left_seen *seen)
{
	static const char *const git[] = { "HEAD", "config", "config.worktree", "hooks" };
	/* what renaming .hg would hide from left_look_at_other() */
	static const char *const hg[] = { "hgrc", "hgrc-not-shared", "sharedpath" };
	const char *name = one->d_name;
	char whole[2 * WIRE_PATH_MAX];

	if (one->d_type == DT_LNK || one->d_type == DT_FIFO || one->d_type == DT_UNKNOWN)
		left_look_at_link(l, dir, path, name, where);
	for (size_t i = 0; i < ARRAY_LEN(git); i++)
		seen->git = seen->git || strcasecmp(name, git[i]) == 0;
	for (size_t i = 0; i < ARRAY_LEN(project_repositories); i++)
		seen->others |= (unsigned)!strcasecmp(name, project_repositories[i].dir) << i;
	if (strcasecmp(name, ".git") == 0 && one->d_type != DT_DIR && *path &&
	    !left_is_directory(dir, name) && left_is_new(l, dir, name))
		left_tell(l, LEFT_RUNS, path, "%s", LEFT_GIT);
	snprintf(whole, sizeof(whole), "%s%s%s", path, *path ? "/" : "", name);
	for (size_t i = 0; i < ARRAY_LEN(hg); i++) {
		if (strcmp(name, hg[i]) == 0 && strcasecmp(left_name(path), ".hg") != 0 &&
		    strcasecmp(left_name(path), ".sl") != 0 && left_is_new_text(l, dir, name))
			left_tell(l, LEFT_RUNS, whole,
				  LEFT_NEW "hg runs what it says if it is in a repository");
	}
	if (strcmp(name, "git-rebase-todo") == 0 &&
	    (left_is_new(l, dir, name) || left_is_new(l, dir, ".")))
		left_tell(l, LEFT_REBASE, path,
			  LEFT_NEW "git rebase --continue and --skip run its exec lines");
}

/* Whether the sandbox could not write it, in the project's own git directory. */
static bool left_is_sealed(const struct left *l, const char *path, const char *name)
{
	return strcmp(path, l->project->is_git ? "" : ".git") == 0 &&
	       strcmp(name, "worktrees") != 0 &&
	       project_keeps(l->project, !l->project->is_git, name);
}

/* Takes over fd. */
static void left_walk(struct left *l, int fd, const char *path, unsigned depth,
		      enum left_where where)
{
	autofolder struct folder f = folder_take(fd);
	struct left_seen seen = { .git = false };
	char below[WIRE_PATH_MAX];
	int more = 0;

	if (depth == DEPTH_MAX) {
		left_tell(l, LEFT_UNSEEN, path, "is nested too deeply to be looked through");
		return;
	}
	if (where == IN_FILES && (strcasecmp(left_name(path), ".git") == 0 || left_is_bare(fd)))
		where = IN_OTHER_GIT;
	while (!late && (more = folder_next(&f)) > 0) {
		const char *name = f.entry->d_name;
		int next;

		if ((where == IN_OWN_GIT && left_is_sealed(l, path, name)) ||
		    (!l->project->is_git && !*path && strcmp(name, ".git") == 0))
			continue; /* left_look() begins with the latter */
		left_look_at_name(l, fd, path, f.entry, where, &seen);
		if ((f.entry->d_type != DT_DIR && f.entry->d_type != DT_UNKNOWN) ||
		    snprintf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "", name) >=
			    (int)sizeof(below))
			continue;
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* A bare repository may have its worktrees, whose links are theirs, in itself. */
		if (next >= 0)
			left_walk(l, next, below, depth + 1,
				  *path || !l->project->is_git || planted_is_gits(name) ? where
											: IN_FILES);
	}
	if (more < 0)
		left_tell(l, LEFT_UNSEEN, path, "could not be looked through to its end");
	if (seen.git && depth > 0 && strcmp(path, ".git") != 0)
		left_look_at_git(l, fd, path, strcasecmp(left_name(path), ".git") == 0);
	for (size_t i = 0; i < ARRAY_LEN(project_repositories); i++) {
		if (seen.others >> i & 1)
			left_look_at_other(l, fd, path, i);
	}
}

/* The project's own git directory comes first: most is done with it. */
static void left_walk_all(struct left *l)
{
	int git = l->project->is_git
			? -1
			: openat(LOOK_FD, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int top = openat(LOOK_FD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (git >= 0)
		left_walk(l, git, ".git", 1, IN_OWN_GIT);
	if (top >= 0)
		left_walk(l, top, "", 0, l->project->is_git ? IN_OWN_GIT : IN_FILES);
}

/* The second time a file system hangs. */
static void left_late(int signal)
{
	(void)signal;
	if (late)
		_exit(1);
	late = true;
	alarm(1);
}

#define LEFT_TOOLS LEFT_NEW "tools of this machine may run what it says"

/* Nobody knows what a killed warden kept. A placeholder that is still there is empty. */
static bool left_was_kept(const struct left *l, size_t i)
{
	return l->project->past
		     ? project_entries[i].open || left_is_empty(LOOK_FD, project_entries[i].path)
		     : l->project->kept >> i & 1;
}

static void left_look_for_listed(struct left *l)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const struct project_entry *n = &project_entries[i];

		if (!strchr(n->path, '/') && !n->of_home && !n->implicit && !left_was_kept(l, i) &&
		    left_is_new(l, LOOK_FD, n->path))
			left_tell(l, LEFT_LISTED, n->path, "%s", LEFT_TOOLS);
	}
	for (size_t i = 0; i < ARRAY_LEN(project_repositories); i++) {
		if (l->project->repositories >> i & 1 &&
		    !left_has(LOOK_FD, project_repositories[i].dir))
			left_tell(l, LEFT_LISTED, project_repositories[i].dir,
				  "is gone: it was there when a sandbox was given the folder");
	}
}

/* Tells names that are least likely to be meant to harm. */
static void left_tell_rest(struct left *l)
{
	unsigned hidden = 0, runs = 0;

	for (unsigned i = 0; i < l->n[LEFT_PLAIN] && i < LEFT_TOLD_MAX; i++)
		left_tell(l, LEFT_LISTED, l->plain[i], "%s", LEFT_GIT);
	for (size_t i = 0; i < ARRAY_LEN(project_told); i++) {
		if (left_has_new(l, LOOK_FD, project_told[i]))
			left_tell(l, LEFT_NAMED, project_told[i], "%s", LEFT_TOOLS);
	}
	for (size_t i = LEFT_RUNS; i < LEFT_CLASSES; i++) {
		hidden += l->n[i] > LEFT_TOLD_MAX ? l->n[i] - LEFT_TOLD_MAX : 0;
		runs = i == LEFT_RUNS ? hidden : runs;
	}
	if (hidden)
		log_warn("%s: %u more are not shown: %u repositories with commands, %u others",
			 l->project->of.host, hidden, runs, hidden - runs);
}

static _Noreturn void left_look(const struct project *p)
{
	static struct left l;
	/* not the warden's own descriptor, which has the lock of the folder */
	int top = held_open(p->lock, ".", O_RDONLY | O_DIRECTORY, 0);
	struct stat st;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (top < 0 || dup2(top, LOOK_FD) < 0)
		_exit(1);
	/* mounts, locks and pipes that others wait for the end of */
	syscall(SYS_close_range, LOOK_FD + 1, ~0u, 0);
	signal(SIGALRM, left_late);
	alarm(LOOK_S);
	l.project = p;
	l.owner = fstat(LOOK_FD, &st) < 0 ? 0 : st.st_uid;
	left_look_for_listed(&l);
	left_look_for_hidden(&l);
	left_walk_all(&l);
	if (late)
		log_warn("a folder that a sandbox could write is too large to look for new "
			 "repositories in");
	left_tell_rest(&l);
	_exit(0);
}

void left_start(const struct project *p)
{
	for (size_t i = 0; i < LOOKERS_MAX; i++) {
		if (lookers[i])
			continue;
		lookers[i] = fork();
		if (lookers[i] == 0)
			left_look(p);
		if (lookers[i] < 0)
			lookers[i] = 0;
		return;
	}
	log_warn("too many sandboxes end at once: it is not looked for what one left in %s",
		 p->of.host);
}

static bool left_has_path(const void *folder, const char *path)
{
	size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n]);
}

/* The placeholders of the killed warden are removed first. */
int look_at_left(const struct hub_message *in, struct err *e)
{
	const struct wm_look *m = in->p;
	const struct project_of of = { m->folder, left_has_path, m->folder };
	struct project made = PROJECT_INIT, p = PROJECT_INIT;
	autoclose int root = open("/h", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int there = -1;
	autoclose int parent = -1;

	made.of = p.of = of;
	if (project_is_state(m->folder) || closed_open(root, m->folder, &there, &parent) < 0)
		return 0;
	if (project_hold(&made, there, e) < 0)
		log_warn("%.300s: %s", m->folder, e->msg);
	p.is_git = made.is_git;
	project_release(&made);
	p.past = true;
	p.since = (struct timespec){ m->since_ms / 1000, m->since_ms % 1000 * 1000000 };
	p.lock = held_open(there, ".", O_RDONLY | O_DIRECTORY, 0);
	if (p.lock >= 0)
		left_start(&p);
	close_fd(&p.lock);
	return 0;
}

void left_end(void)
{
	uint64_t deadline = clock_ms() + END_MS;

	while (left_chores() >= 0 && clock_ms() < deadline)
		usleep(END_PAUSE_US);
	for (size_t i = 0; i < LOOKERS_MAX; i++) {
		if (lookers[i])
			kill(lookers[i], SIGALRM); /* left_late() */
	}
	while (left_chores() >= 0 && clock_ms() < deadline + END_LAST_MS)
		usleep(END_PAUSE_US);
}

int left_chores(void)
{
	bool any = false;

	for (size_t i = 0; i < LOOKERS_MAX; i++) {
		if (lookers[i] && waitpid(lookers[i], NULL, WNOHANG) != 0)
			lookers[i] = 0;
		any = any || lookers[i];
	}
	return any ? LOOK_AGAIN_MS : -1;
}
