/*
 * Gives a running sandbox another root. The kernel keeps mounts wherever programs have moved the
 * directories that they are on, so the names that were once requested are not used here. Mounts are
 * found by their ids, and each is opened, in the old root and in the new one, before the first is
 * moved. A name that leads elsewhere meanwhile, through a link or to another mount, is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "box/archive/mount.h"
#include "box/warden/internal.h"

enum { MOVED_MAX = BINDS_MAX + WIRE_MOUNTS_MAX };

/* A mount on the sandbox's root itself; mounts inside it move with it. */
struct moved {
	int mount;
	/* its place in the new root */
	int to;
	char *path;
	bool done;
};

struct reroot {
	int old_root, new_root;
	/* a place that the sandbox can't see, to which /proc moves meanwhile */
	int aside;
	int proc;
	/* /proc is in the new root already */
	bool proc_moved;
	struct moved moved[MOVED_MAX];
	size_t n;
};

static int open_in(int root, const char *path, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | resolve };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* The kernel writes space, tab, newline and backslash as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	while (*text) {
		if (text[0] == '\\' && text[1] && text[2] && text[3]) {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
				       (text[3] - '0'));
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

/* One line of mountinfo: "id parent major:minor root place options". */
static bool read_line(char *line, uint64_t *ret_id, uint64_t *ret_parent, char **ret_place)
{
	char *at = line;

	*ret_id = strtoull(at, &at, 10);
	*ret_parent = strtoull(at, &at, 10);
	for (int i = 0; i < 2 && at; i++)
		at = strchr(at + 1, ' ');
	if (!at)
		return false;
	*ret_place = at + 1;
	at = strchr(at + 1, ' ');
	if (!at)
		return false;
	*at = '\0';
	unescape(*ret_place);
	return true;
}

/* A mount that is hidden by another one can't be reached by its name, and stays in the old root. */
static int add_moved(struct reroot *r, uint64_t id, const char *path)
{
	struct moved *m = &r->moved[r->n];
	uint64_t found;

	if (r->n == MOVED_MAX) {
		errno = E2BIG;
		return -1;
	}
	*m = (struct moved){ .mount = open_in(r->old_root, path, 0), .to = -1 };
	r->n++;
	if (m->mount < 0 || mount_id(m->mount, &found) < 0)
		return -1;
	if (found != id) {
		close(m->mount);
		r->n--;
		return 0;
	}
	m->path = strdup(path);
	m->to = open_in(r->new_root, path, RESOLVE_NO_XDEV);
	return m->path && m->to >= 0 ? 0 : -1;
}

/* Finds the mounts on the root, except /proc. */
static int find_moved(struct reroot *r, int host_proc)
{
	int fd = openat(host_proc, "self/mountinfo", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	uint64_t root, id, parent;
	char *line = NULL, *place;
	size_t room = 0;
	int rc = f ? mount_id(r->old_root, &root) : -1;

	while (rc == 0 && getline(&line, &room, f) > 0) {
		if (read_line(line, &id, &parent, &place) && parent == root && id != root &&
		    strcmp(place, "/proc") != 0)
			rc = add_moved(r, id, place);
	}
	free(line);
	if (f)
		fclose(f);
	else
		close_fd(&fd);
	return rc;
}

/* Swaps the roots while /proc is aside. pivot_root needs the new root somewhere below the old one;
 * /proc is surely a directory, since something was mounted on it. PID 1's root and working
 * directory, both "/", move along. */
static int swap_roots(struct reroot *r)
{
	autoclose int new_proc = open_in(r->new_root, "/proc", RESOLVE_NO_XDEV);

	if (new_proc < 0 || mount_attach(r->new_root, AT_FDCWD, "/proc") < 0)
		return -1;
	for (size_t i = 0; i < r->n; i++) {
		struct moved *m = &r->moved[i];

		if (mount_attach(m->mount, m->to, "") < 0)
			return -1;
		m->done = true;
	}
	r->proc_moved = mount_attach(r->proc, new_proc, "") == 0;
	return r->proc_moved ? (int)syscall(SYS_pivot_root, "/proc", "/proc/proc") : -1;
}

/* Moves everything back to its old place. */
static void undo(struct reroot *r)
{
	bool failed = r->proc_moved && mount_attach(r->proc, r->aside, "") < 0;

	for (size_t i = r->n; i-- > 0;) {
		struct moved *m = &r->moved[i];
		autoclose int back = m->done ? open_in(r->old_root, m->path, RESOLVE_NO_XDEV) : -1;

		failed |= m->done && (back < 0 || mount_attach(m->mount, back, "") < 0);
	}
	umount2("/proc", MNT_DETACH);
	failed |= mount_attach(r->proc, AT_FDCWD, "/proc") < 0;
	if (failed)
		log_error("a sandbox could not be given its mounts back");
}

static int reroot(struct reroot *r, int host_proc)
{
	int errnum;

	r->old_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r->proc = open("/proc", O_PATH | O_CLOEXEC);
	if (r->old_root < 0 || r->proc < 0 || find_moved(r, host_proc) < 0)
		return -1;
	if (mount_attach(r->proc, r->aside, "") < 0)
		return -1;
	if (swap_roots(r) < 0) {
		errnum = errno;
		undo(r);
		errno = errnum;
		return -1;
	}
	return umount2("/proc", MNT_DETACH);
}

int store_reroot(const struct store *s, const struct host *h, int pidfd, int root, struct err *e)
{
	struct reroot r = { .old_root = -1, .new_root = root, .aside = -1, .proc = -1 };
	int errnum = 0;

	if (setns(pidfd, CLONE_NEWNS) < 0)
		errnum = errno;
	else if ((r.aside = open("/n", O_PATH | O_CLOEXEC)) < 0 || chroot("/r") < 0 ||
		 chdir("/") < 0 || reroot(&r, h->proc) < 0)
		errnum = errno;
	close_fd(&r.old_root);
	close_fd(&r.aside);
	close_fd(&r.proc);
	for (size_t i = 0; i < r.n; i++) {
		close_fd(&r.moved[i].mount);
		close_fd(&r.moved[i].to);
		free(r.moved[i].path);
	}
	store_return(s);
	return errnum ? err_sys(e, errnum, "put a new root under the sandbox") : 0;
}
