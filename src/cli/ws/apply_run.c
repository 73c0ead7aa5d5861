/*
 * Does what is planned, each operation in one step, and takes it back. Whether an operation was
 * done is told by the stage: a new file has left it, an old one has come, or both have changed
 * places, as the inode tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/common/tidy.h"
#include "cli/ws/apply.h"

/* ---- signals --------------------------------------------------------------------------------- */

/* The stage and the journal are needed to the end: a signal is heard between two steps. */
static void apply_hold(struct apply *a)
{
	sigset_t set;

	tidy_set(NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGPIPE);
	a->holds = sigprocmask(SIG_BLOCK, &set, &a->held) == 0;
}

void apply_release(struct apply *a)
{
	if (a->holds)
		sigprocmask(SIG_SETMASK, &a->held, NULL);
}

static bool is_interrupted(void)
{
	sigset_t set;

	return sigpending(&set) == 0 && (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
					 sigismember(&set, SIGHUP));
}

/* ---- what was there is saved ----------------------------------------------------------------- */

static int save_one(const struct apply *a, int saved, const struct apply_op *op, struct err *e)
{
	const char *name;
	autoclose int parent = apply_parent(a->dir, op->path, &name);
	struct apply_state is;

	if (parent < 0 || apply_copy(a, parent, name, saved, op->n, &is) < 0)
		return err_sys(e, errno, "save %.120s", op->path);
	return apply_same(&is, &op->old)
		     ? 0
		     : err_set(e, ERR_CONFLICT, "%.120s changes at the moment", op->path);
}

static int save_all(const struct apply *a, struct err *e)
{
	char name[32];
	autoclose int saved = -1;

	snprintf(name, sizeof(name), "saved-%s", a->plan.id);
	if (mkdirat(a->data, name, 0700) < 0)
		return err_sys(e, errno, "save what is there");
	saved = openat(a->data, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (saved < 0)
		return err_sys(e, errno, "save what is there");
	for (size_t i = 0; i < a->plan.n; i++) {
		const struct apply_op *op = &a->plan.ops[i];

		if (is_interrupted())
			return err_set(e, ERR_CANCELLED, "nothing was changed: it was interrupted");
		if ((op->old.type == APPLY_FILE || op->old.type == APPLY_LINK) &&
		    save_one(a, saved, op, e) < 0)
			return -1;
	}
	return fsync(saved) < 0 ? err_sys(e, errno, "save what is there") : 0;
}

/* ---- one step -------------------------------------------------------------------------------- */

static bool is_inode(int dir, const char *name, ino_t inode)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == inode;
}

/* Whether what came out of the folder is what was shown. */
static bool is_seen(int stage, const char *name, const struct apply_seen *seen)
{
	struct stat st;

	return fstatat(stage, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == seen->ino &&
	       st.st_size == seen->size && st.st_mtim.tv_sec == seen->mtime.tv_sec &&
	       st.st_mtim.tv_nsec == seen->mtime.tv_nsec;
}

/* type: O_DIRECTORY, or 0 for a file. It need not be readable. */
static int set_mode(int parent, const char *name, int type, uint32_t mode)
{
	autoclose int fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | type);
	char self[64];

	if (fd < 0)
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return chmod(self, mode);
}

/* ESTALE: it is another file than the one that was shown, and stays. */
static int swap(const struct apply *a, const struct apply_op *op, int parent, const char *name,
		unsigned flags)
{
	const struct apply_number number = apply_number(op->n);
	const char *n = number.text;

	if (flags == RENAME_EXCHANGE ? renameat2(a->stage, n, parent, name, flags) < 0
				     : renameat2(parent, name, a->stage, n, flags) < 0)
		return -1;
	if (is_seen(a->stage, n, &op->seen))
		return 0;
	if (renameat2(a->stage, n, parent, name, flags) == 0)
		errno = ESTALE;
	return -1;
}

static int make_dir(int parent, const char *name, uint32_t mode)
{
	return mkdirat(parent, name, 0700) < 0 ? -1 : set_mode(parent, name, O_DIRECTORY, mode);
}

static int do_op(const struct apply *a, const struct apply_op *op)
{
	const char *name;
	autoclose int parent = apply_parent(a->dir, op->path, &name);

	if (parent < 0)
		return -1;
	switch ((enum apply_kind)op->kind) {
	case APPLY_REMOVE:
		return swap(a, op, parent, name, RENAME_NOREPLACE);
	case APPLY_CHANGE:
		return swap(a, op, parent, name, RENAME_EXCHANGE);
	case APPLY_ADD:
		return renameat2(a->stage, apply_number(op->n).text, parent, name,
				 RENAME_NOREPLACE);
	case APPLY_RMDIR:
		return unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY &&
				       errno != EEXIST
			     ? -1
			     : 0;
	case APPLY_MKDIR:
		return make_dir(parent, name, op->new.mode);
	case APPLY_CHMOD:
		return set_mode(parent, name, O_DIRECTORY, op->new.mode);
	}
	errno = EINVAL;
	return -1;
}

/* Whether it is the new file still. One that its owner may not read is opened to him for that: it
 * leaves the folder then. */
static bool is_new(const struct apply *a, const struct apply_op *op, int parent, const char *name)
{
	struct apply_state is;
	struct apply_seen seen;
	int looked;
	bool closed;

	if (!is_inode(parent, name, op->staged))
		return false;
	looked = apply_look(a, op->path, &is, &seen);
	closed = looked < 0 && errno == EACCES && is.mode == op->new.mode;
	if (closed && set_mode(parent, name, 0, is.mode | S_IRUSR) == 0)
		looked = apply_look(a, op->path, &is, &seen);
	is.mode &= op->new.mode | ~(uint32_t)S_IRUSR; /* which an earlier look may have given */
	if (looked == 0 && apply_same(&is, &op->new))
		return true;
	if (closed)
		set_mode(parent, name, 0, op->new.mode);
	return false;
}

/* The same. If another one is there, that stays, and it is told. */
static bool is_ours(struct apply *a, const struct apply_op *op, int parent, const char *name)
{
	if (is_new(a, op, parent, name))
		return true;
	if (faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		apply_tell(op->path, "was changed since, and stays");
		a->stayed++;
	}
	return false;
}

static int keep_old(struct apply *a, const struct apply_op *op)
{
	a->stayed++;
	return apply_keep(a, op);
}

/* An old file gets back to its place. If something else is there now, both stay. */
static int put_back(struct apply *a, const struct apply_op *op, int parent, const char *name)
{
	if (renameat2(a->stage, apply_number(op->n).text, parent, name, RENAME_NOREPLACE) == 0)
		return 0;
	return errno == EEXIST ? keep_old(a, op) : -1;
}

/* By errno: the directory is not there. It was not made yet, or somebody has removed it. */
static bool is_absent(void)
{
	return errno == ENOENT || errno == ENOTDIR;
}

/* The old file is neither in the stage, where somebody has removed it, nor in its place. */
static bool is_lost(const struct apply_op *op, int parent, const char *name)
{
	struct stat st;
	bool there = fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0;

	if (op->kind == APPLY_REMOVE)
		return !there;
	return op->kind == APPLY_CHANGE && (!there || st.st_ino == op->staged);
}

/* Idempotent. -1 with errno. */
static int take_back(struct apply *a, const struct apply_op *op)
{
	const struct apply_number number = apply_number(op->n);
	const char *name, *n = number.text;
	struct stat st;
	bool staged = op->n && fstatat(a->stage, n, &st, AT_SYMLINK_NOFOLLOW) == 0;
	bool old = staged && op->kind != APPLY_ADD && st.st_ino != op->staged;
	autoclose int parent = apply_parent(a->dir, op->path, &name);

	if (parent < 0 && !is_absent())
		return -1;
	a->lost += a->recovers && !staged && is_lost(op, parent, name);
	if (parent < 0)
		return old ? keep_old(a, op) : 0;
	switch ((enum apply_kind)op->kind) {
	case APPLY_REMOVE:
		return old ? put_back(a, op, parent, name) : 0;
	case APPLY_CHANGE:
		if (!old)
			return 0;
		return is_ours(a, op, parent, name)
			     ? renameat2(a->stage, n, parent, name, RENAME_EXCHANGE)
			     : put_back(a, op, parent, name);
	case APPLY_ADD:
		return staged || !is_ours(a, op, parent, name)
			     ? 0
			     : renameat2(parent, name, a->stage, n, RENAME_NOREPLACE);
	case APPLY_RMDIR:
		return make_dir(parent, name, op->old.mode) < 0 && errno != EEXIST ? -1 : 0;
	case APPLY_MKDIR:
		return unlinkat(parent, name, AT_REMOVEDIR) < 0 && !is_absent() &&
				       errno != ENOTEMPTY && errno != EEXIST
			     ? -1
			     : 0;
	case APPLY_CHMOD:
		return set_mode(parent, name, O_DIRECTORY, op->old.mode) < 0 && !is_absent() ? -1
											     : 0;
	}
	return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Where the stage is gone, or files of it, it can't be taken back step by step. What it has saved
 * is enough to undo it. An undo has saved nothing; what it undid can be undone again, as far as it
 * is there. */
static int end_without_stage(struct apply *a, struct err *e)
{
	const char *name = a->plan.undo ? "last" : "journal";
	bool known = apply_journal_has(a, "interrupted"); /* that undo was of it */

	if ((!known && renameat(a->data, name, a->data, "interrupted") < 0) ||
	    (unlinkat(a->data, "journal", 0) < 0 && errno != ENOENT) || fsync(a->data) < 0)
		return err_sys(e, errno, "end the journal");
	return 0;
}

/* The first n operations. The journal goes before the stage, which nobody needs then. */
static int roll_back(struct apply *a, size_t n, struct err *e)
{
	size_t failed = 0;

	a->stayed = a->lost = 0;
	for (; n-- > 0;) {
		if (take_back(a, &a->plan.ops[n]) < 0) {
			apply_tell(a->plan.ops[n].path, strerror(errno));
			failed++;
		}
	}
	if (failed)
		return err_set(e, ERR_IO,
			       "%zu changes can't be taken back; the next apply tries it again",
			       failed);
	if (syncfs(a->dir) < 0)
		return err_sys(e, errno, "write into the folder");
	if (a->lost) {
		apply_unstage(a);
		return end_without_stage(a, e);
	}
	if (unlinkat(a->data, "journal", 0) < 0 || fsync(a->data) < 0)
		return err_sys(e, errno, "end the journal");
	apply_unstage(a);
	apply_journal_clean(a);
	return 0;
}

static int run_all(struct apply *a, struct err *e)
{
	struct err why = ERR_INIT;

	for (size_t i = 0; i < a->plan.n; i++) {
		const struct apply_op *op = &a->plan.ops[i];
		bool stops = is_interrupted();
		bool begun = !stops && (op->kind == APPLY_REMOVE || op->kind == APPLY_CHANGE);

		if (!stops && do_op(a, op) == 0)
			continue;
		if (stops)
			err_set(&why, ERR_CANCELLED, "it was interrupted");
		else if (errno == ESTALE)
			err_set(&why, ERR_CONFLICT, "%.120s was changed meanwhile", op->path);
		else
			err_sys(&why, errno,
				errno == ELOOP ? "%.120s: a link is in the way" : "%.120s",
				op->path);
		/* with this one, if it has changed something and could not undo it at once */
		if (roll_back(a, i + begun, e) < 0)
			return -1;
		*e = why;
		return err_wrap(e, a->stayed ? "not all was taken back" : "nothing was changed");
	}
	return 0;
}

int apply_run(struct apply *a, struct err *e)
{
	int ready;

	apply_hold(a);
	ready = a->plan.undo ? 0 : save_all(a, e);
	if (ready == 0 && (fsync(a->stage) < 0 || fsync(a->dir) < 0))
		ready = err_sys(e, errno, "write into the folder");
	if (ready < 0 || apply_journal_write(a, "journal", e) < 0) {
		apply_journal_clean(a);
		return -1;
	}
	if (run_all(a, e) < 0)
		return -1;
	if (syncfs(a->dir) < 0 || renameat(a->data, "journal", a->data, "last") < 0 ||
	    fsync(a->data) < 0)
		return err_sys(e, errno, "end the journal");
	if (apply_journal_end(a, e) < 0)
		return -1;
	apply_journal_clean(a);
	return 0;
}

/* Until then nobody knows which of its files are of the base, and which of the revision. */
static int require_undo(const struct apply *a, struct err *e)
{
	struct apply_plan p = { 0 };
	int found = apply_journal_read(a, "interrupted", true, &p, e);

	if (found > 0)
		err_set(e, ERR_INVALID,
			"an apply to this folder was interrupted, and its stage is gone, or files "
			"of it; first take back what it did: holt ws apply %s --undo",
			p.to.workspace);
	return found ? -1 : 0;
}

static int recover_journal(struct apply *a, struct err *e)
{
	int result;

	a->stage = openat(a->dir, a->stage_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (a->stage < 0 && errno != ENOENT)
		return err_sys(e, errno, "open the stage");
	if (a->stage < 0) {
		result = end_without_stage(a, e);
	} else {
		a->recovers = true;
		result = roll_back(a, a->plan.n, e);
		a->recovers = false;
		if (result == 0 && !a->lost)
			fprintf(stderr,
				"holt: an apply to this folder was interrupted; what it had done "
				"was taken back%s\n",
				a->stayed ? ", but for these files" : "");
	}
	return result;
}

int apply_recover(struct apply *a, bool undo, struct err *e)
{
	int found = apply_journal_read(a, "journal", false, &a->plan, e);
	int result = found > 0 ? recover_journal(a, e) : found;

	apply_plan_fini(&a->plan);
	return result < 0 || undo ? result : require_undo(a, e);
}
