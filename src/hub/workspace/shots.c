#include "hub/workspace/shots.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/path.h"
#include "base/publish.h"
#include "hub/workspace/mark.h"

enum {
	LOCK_PAUSE_MS = 50,
	LOCK_WAIT_MS = 60 * 1000,
	ROW_MAX = 512 + SHOT_DESCRIPTION_MAX,
};

#define ROWS "rows"
#define NEW_ROW ".new" /* no name of a shot begins with a dot */
#define ROW_READ                                                                                   \
	"holt snapshot 1\ntree %64[0-9a-f]\n%" SCNd64 " %" SCNd64 " %" SCNu64 " %" SCNu64          \
	" %" SCNu64 "\n%n"
#define ROW_WRITE                                                                                  \
	"holt snapshot 1\ntree %s\n%" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n%s"

/* ---- stores -------------------------------------------------------------------------------- */

/* The name of the folder: of an owner's and a place's bytes, which have no NUL. */
static int store_name(const struct shots_of *of, char ret[BLAKE2B_HEX + 1], struct err *e)
{
	autobuf struct buf text = BUF_INIT(64 << 10);
	uint8_t hash[BLAKE2B_BYTES];

	if (buf_add(&text, of->owner.p, of->owner.n, e) < 0 || buf_add(&text, "", 1, e) < 0 ||
	    buf_add(&text, of->place.p, of->place.n, e) < 0)
		return -1;
	blake2b('s', text.p, text.n, hash);
	blake2b_hex(hash, ret);
	return 0;
}

static int store_lock(int dir, const atomic_bool *stop, struct err *e)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_MS * 1000000 };

	for (int waited = 0; waited < LOCK_WAIT_MS; waited += LOCK_PAUSE_MS) {
		if (flock(dir, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return err_sys(e, errno, "lock the snapshots of this workspace");
		if (atomic_load(stop))
			return err_set(e, ERR_CANCELLED, "it was given up");
		nanosleep(&pause, NULL);
	}
	return err_set(e, ERR_CONFLICT, "another process works on the snapshots of this workspace");
}

/* The folder may be removed between the two. */
static int store_open(int all, const char *name, const struct shots_of *of, struct err *e)
{
	enum { TRIES = 10 };

	for (int i = 0; i < TRIES; i++) {
		autoclose int dir = folder_open(all, name, e);
		struct stat open, there;

		if (dir < 0 || store_lock(dir, of->stop, e) < 0)
			return -1;
		if (fstat(dir, &open) == 0 &&
		    fstatat(all, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		    open.st_ino == there.st_ino && open.st_dev == there.st_dev)
			return take_fd(&dir);
	}
	return err_set(e, ERR_CONFLICT, "another process removes the snapshots of this workspace");
}

int shots_open(struct shots *s, const struct shots_of *of, struct err *e)
{
	char name[BLAKE2B_HEX + 1];
	autoclose int all = -1;

	*s = SHOTS_NONE;
	if (store_name(of, name, e) < 0)
		return -1;
	if (path_make(of->folder, e) == 0)
		all = folder_open(AT_FDCWD, of->folder, e);
	if (all >= 0)
		s->dir = store_open(all, name, of, e);
	if (s->dir >= 0)
		s->rows = folder_open(s->dir, ROWS, e);
	if (s->rows >= 0 && objects_open(&s->objects, s->dir, e) == 0)
		return 0;
	shots_close(s);
	return -1;
}

void shots_close(struct shots *s)
{
	objects_close(&s->objects);
	close_fd(&s->rows);
	close_fd(&s->dir);
}

int shots_begin(struct shots *s, const struct shots_of *of, struct err *e)
{
	if (of->room.max)
		shots_trim(of->folder);
	return objects_begin(&s->objects, e) < 0 ? -1 : room_left(&of->room, &s->objects.left, e);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c != '_' && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= 'a' && c <= 'z') && (i == 0 || (c != '.' && c != '-')))
			return false;
	}
	return s.n > 0 && s.n <= SHOT_NAME_MAX;
}

int shot_name_check(struct str name, struct err *e)
{
	return is_name(name) ? 0
			     : err_set(e, ERR_INVALID,
				       "name: 1 to %d letters, digits, '_', '-' and '.', of which "
				       "the last two do not begin it",
				       SHOT_NAME_MAX);
}

static bool has_ended(const struct shot *shot)
{
	return clock_unix_ms() > shot->expires_ms;
}

/* -1: there is no such row, or it is damaged. */
static int row_read(int rows, const char *name, struct shot *ret)
{
	autoclose int fd = openat(rows, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[ROW_MAX + 1], tree[BLAKE2B_HEX + 1];
	ssize_t n = fd < 0 ? -1 : read(fd, text, ROW_MAX);
	int at = 0;

	if (n < 0)
		return errno == ENOENT ? 1 : -1;
	text[n] = '\0';
	*ret = (struct shot){ .created_ms = 0 };
	if (sscanf(text, ROW_READ, tree, &ret->created_ms, &ret->expires_ms, &ret->files,
		   &ret->bytes, &ret->left_out, &at) != 6 ||
	    at == 0 || blake2b_of_hex(tree, strlen(tree), ret->tree.b) < 0)
		return 1;
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	snprintf(ret->description, sizeof(ret->description), "%s", text + at);
	return 0;
}

static int row_write(const struct shots *s, const struct shot *shot, struct err *e)
{
	autobuf struct buf text = BUF_INIT(ROW_MAX);
	char tree[BLAKE2B_HEX + 1];
	autoclose int fd = -1;
	int rc;

	blake2b_hex(shot->tree.b, tree);
	if (buf_addf(&text, e, ROW_WRITE, tree, shot->created_ms, shot->expires_ms, shot->files,
		     shot->bytes, shot->left_out, shot->description) < 0)
		return -1;
	fd = openat(s->rows, NEW_ROW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write(fd, text.p, text.n) < 0 || fsync(fd) < 0)
		return err_sys(e, errno, "keep the snapshot");
	rc = publish(s->rows, NEW_ROW, shot->name);
	if (rc == 0)
		return 0;
	err_sys(e, errno, "keep the snapshot");
	return rc > 0 ? err_unsure(e) : -1;
}

static int newest_first(const void *a, const void *b)
{
	const struct shot *x = a, *y = b;

	return x->created_ms < y->created_ms ? 1
	     : x->created_ms > y->created_ms ? -1
					     : strcmp(x->name, y->name);
}

/* All rows, also of those that have ended; the newest first. Owned. whole: each row was there and
 * could be understood, so what none of them names is needed by none; NULL: not asked. */
static struct shot *rows_read(int rows, size_t *ret_n, bool *whole, struct err *e)
{
	/* More than there should be: those that were killed may have left them. */
	enum { ROOM = 2 * SHOTS_MAX };
	autofree struct shot *all = calloc(ROOM, sizeof(*all));
	autofolder struct folder f = folder_at(rows, ".");
	int more = 0, odd = 0, rc;

	*ret_n = 0;
	while (all && (more = folder_next(&f)) > 0) {
		if (!is_name(str_of(f.entry->d_name)))
			continue;
		rc = *ret_n == ROOM ? 1 : row_read(rows, f.entry->d_name, &all[*ret_n]);
		if (rc < 0)
			return err_sys(e, errno, "read a snapshot"), NULL;
		*ret_n += rc == 0;
		odd += rc;
	}
	if (!all || more < 0)
		return err_sys(e, all ? f.errnum : ENOMEM, "list the snapshots"), NULL;
	qsort(all, *ret_n, sizeof(*all), newest_first);
	if (whole)
		*whole = odd == 0;
	return take_ptr(all);
}

int shots_list(const struct shots *s, struct shot *ret, size_t *ret_n, struct err *e)
{
	size_t n;
	autofree struct shot *all = rows_read(s->rows, &n, NULL, e);

	*ret_n = 0;
	for (size_t i = 0; all && i < n && *ret_n < SHOTS_MAX; i++) {
		if (!has_ended(&all[i]))
			ret[(*ret_n)++] = all[i];
	}
	return all ? 0 : -1;
}

int shots_find(const struct shots *s, struct str name, struct shot *ret, struct err *e)
{
	size_t n;
	autofree struct shot *all = NULL;
	char there[160] = "";

	if (shot_name_check(name, e) < 0)
		return -1;
	all = rows_read(s->rows, &n, NULL, e);
	for (size_t i = 0; all && i < n; i++) {
		size_t at = strlen(there);

		if (has_ended(&all[i]))
			continue;
		*ret = all[i];
		if (str_is(name, all[i].name))
			return 0;
		snprintf(there + at, sizeof(there) - at, "%s%s", at ? ", " : "", all[i].name);
	}
	if (!all)
		return -1;
	return err_set(e, ERR_SNAPSHOT_NOT_FOUND, "there is no snapshot '%.*s' here%s%s",
		       STR_CUT(name, SHOT_NAME_MAX), there[0] ? "; the newest are: " : "", there);
}

/* ---- objects that no shot has -------------------------------------------------------------- */

struct trimming {
	const struct objects *o;
	struct marker marker;
};

static int mark_shot(struct marker *m, const struct shot *shot, struct err *e)
{
	int result = marker_tree(m, &shot->tree, e);

	while (result == 0)
		result = marker_step(m, e);
	return result < 0 ? -1 : 0;
}

static int drop_unmarked(void *arg, const struct object_id *id, uint64_t bytes, struct err *e)
{
	const struct trimming *t = arg;

	return id_set_has(&t->marker.ids, id) ? 0 : objects_remove(t->o, id, e);
}

/* Where a tree can't be read nothing is removed. */
static int objects_trim(const struct objects *o, const struct shot *shots, size_t n, struct err *e)
{
	struct trimming t = { .o = o };
	int result = 0;

	marker_init(&t.marker, o);
	for (size_t i = 0; result == 0 && i < n; i++)
		result = mark_shot(&t.marker, &shots[i], e);
	for (unsigned folder = 0; result == 0 && folder < OBJECT_FOLDERS; folder++)
		result = objects_each(o, folder, drop_unmarked, &t, e);
	marker_fini(&t.marker);
	return result;
}

/* ---- keeping ------------------------------------------------------------------------------- */

/* Removes those that have ended, and the oldest ones above `max`; then what they alone had. */
static int trim(const struct shots *s, size_t max, char *ret_gone, struct err *e)
{
	size_t n, left = 0;
	bool whole;
	autofree struct shot *all = rows_read(s->rows, &n, &whole, e);

	if (!all)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (left < max && !has_ended(&all[i])) {
			all[left++] = all[i];
			continue;
		}
		if (!has_ended(&all[i]))
			snprintf(ret_gone, SHOT_NAME_MAX + 1, "%s", all[i].name);
		if (unlinkat(s->rows, all[i].name, 0) < 0 && errno != ENOENT)
			return err_sys(e, errno, "remove a snapshot");
	}
	return left < n && whole ? objects_trim(&s->objects, all, left, e) : 0;
}

/* Later than all others, whatever the clock says: by that they are listed and removed. */
static int shot_is_last(const struct shots *s, struct shot *shot, struct err *e)
{
	size_t n;
	autofree struct shot *all = rows_read(s->rows, &n, NULL, e);

	if (all && n && shot->created_ms <= all[0].created_ms)
		shot->created_ms = all[0].created_ms + 1;
	return all ? 0 : -1;
}

int shots_keep(struct shots *s, struct shot *shot, char *ret_gone, struct err *e)
{
	struct shot same;
	struct err old = ERR_INIT;
	int there;

	ret_gone[0] = '\0';
	if (shot_name_check(str_of(shot->name), e) < 0)
		return -1;
	there = row_read(s->rows, shot->name, &same);
	if (there < 0)
		return err_sys(e, errno, "read a snapshot");
	if (there == 0 && !has_ended(&same))
		return err_set(e, ERR_NAME_TAKEN, "there is a snapshot %s already", shot->name);
	if (shot_is_last(s, shot, e) < 0 || objects_commit(&s->objects, e) < 0 ||
	    row_write(s, shot, e) < 0)
		return -1;
	/* It is kept. What could not be removed, the next one removes. */
	if (trim(s, SHOTS_MAX, ret_gone, &old) < 0)
		log_warn("old snapshots of a workspace stay: %s", old.msg);
	return 0;
}

/* ---- stores that are over ------------------------------------------------------------------ */

/* Whether the store has a shot that has not ended; also where that is not known. */
static bool is_alive(int dir)
{
	autoclose int rows = openat(dir, ROWS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct err e = ERR_INIT;
	size_t n = 0;
	autofree struct shot *all = rows < 0 ? NULL : rows_read(rows, &n, NULL, &e);

	for (size_t i = 0; i < n; i++) {
		if (!has_ended(&all[i]))
			return true;
	}
	return rows < 0 ? errno != ENOENT : !all;
}

void shots_trim(const char *folder)
{
	struct err e = ERR_INIT;
	autoclose int all = folder_open(AT_FDCWD, folder, &e);
	autofolder struct folder f = folder_at(all, ".");
	uint8_t id[BLAKE2B_BYTES];

	/* The next time looks at what this one does not see. */
	while (folder_next(&f) > 0) {
		const char *name = f.entry->d_name;
		autoclose int dir = -1;

		if (blake2b_of_hex(name, strlen(name), id) < 0)
			continue;
		dir = openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0 && !is_alive(dir) &&
		    folder_clear(all, name, true, &e) < 0)
			continue; /* the next one tries again */
	}
}
