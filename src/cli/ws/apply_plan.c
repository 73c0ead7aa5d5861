/* What an apply has to do: the folder, the revision and the base of both, path by path. */
#include <errno.h>
#include <fcntl.h>

#include "box/host/box.h"
#include "cli/ws/apply.h"

enum { LEFT_OUT_TOLD = 50 };

struct planner {
	struct apply *a;
	const struct apply_list *new;
	size_t guarded; /* protected files that are changed */
	const char *replaced; /* of the revision: this directory takes the place of a file */
	struct err *e;
};

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

static bool plan_has(void *arg, const char *path)
{
	const struct planner *p = arg;
	struct apply_state st;
	struct apply_seen seen;
	size_t low = 0, high = p->new->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = apply_order(path, p->new->p[middle].path);

		if (order == 0)
			return true;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return apply_look(p->a, path, &st, &seen) == 0 && st.type != APPLY_NONE;
}

/* Whether programs of the host act on it, in this folder or in one that is opened for itself. */
static bool is_guarded(struct planner *p, const char *path)
{
	return box_project_acts(path, plan_has, p);
}

static int conflict(struct planner *p, const char *path, const char *why)
{
	apply_tell(path, why);
	p->a->conflicts++;
	return 0;
}

static int leave_out(struct planner *p, const char *path, const char *why)
{
	if (p->a->left_out++ < LEFT_OUT_TOLD)
		apply_tell(path, why);
	return 0;
}

static struct apply_op *add(struct planner *p, char kind, const char *path,
			    const struct apply_state *old, const struct apply_state *new,
			    const struct apply_seen *seen)
{
	struct apply_op *op = apply_plan_add(&p->a->plan, kind, path, p->e);

	if (op) {
		op->old = *old;
		op->new = *new;
		op->seen = *seen;
	}
	return op;
}

/* A file or link gets to its place. */
static int add_file(struct planner *p, char kind, const struct apply_item *it,
		    const struct apply_state *old)
{
	struct apply_op *op = add(p, kind, it->path, old, &it->is, &it->seen);
	struct stat st;

	if (!op)
		return -1;
	op->n = it->n;
	if (fstatat(p->a->stage, apply_number(it->n).text, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(p->e, errno, "look at the stage");
	op->staged = st.st_ino;
	return 0;
}

static int remove_file(struct planner *p, const struct apply_item *it)
{
	const struct apply_state none = { .type = APPLY_NONE };
	struct apply_op *op = add(p, APPLY_REMOVE, it->path, &it->here, &none, &it->seen);

	if (!op)
		return -1;
	op->n = ++p->a->next;
	return 0;
}

static int make_dir(struct planner *p, const struct apply_item *it)
{
	const struct apply_state none = { .type = APPLY_NONE };
	struct apply_state open = it->is;

	open.mode |= 0700;
	if (!add(p, APPLY_MKDIR, it->path, &none, &open, &it->seen))
		return -1;
	if (open.mode == it->is.mode)
		return 0;
	return add(p, APPLY_CHMOD, it->path, &open, &it->is, &it->seen) ? 0 : -1;
}

static int plan_dir(struct planner *p, const struct apply_item *it, const struct apply_state *base)
{
	if (it->here.type == APPLY_NONE)
		return make_dir(p, it);
	if (it->here.type == APPLY_DIR) /* modes alone are no conflict: the folder's stays */
		return apply_same(&it->here, base)
			     ? (add(p, APPLY_CHMOD, it->path, &it->here, &it->is, &it->seen) ? 0
											     : -1)
			     : 0;
	if (remove_file(p, it) < 0)
		return -1;
	p->replaced = it->path;
	return make_dir(p, it);
}

static int plan_file(struct planner *p, const struct apply_item *it)
{
	const struct apply_state none = { .type = APPLY_NONE };

	if (it->here.type == APPLY_DIR &&
	    !add(p, APPLY_RMDIR, it->path, &it->here, &none, &it->seen))
		return -1;
	if (it->here.type == APPLY_DIR)
		return add_file(p, APPLY_ADD, it, &none);
	return add_file(p, it->here.type == APPLY_NONE ? APPLY_ADD : APPLY_CHANGE, it, &it->here);
}

static int plan_change(struct planner *p, const struct apply_item *it,
		       const struct apply_state *base)
{
	bool dirs = it->is.type == APPLY_DIR && it->here.type == APPLY_DIR;
	bool mine = it->is.type == APPLY_DIR && it->here.type == APPLY_NONE;
	bool both = it->here.type == APPLY_DIR && base->type == APPLY_DIR;

	if (it->here.type == APPLY_OTHER)
		return conflict(p, it->path, "is no file, directory or link here");
	if (!dirs && !mine && !both && !apply_same(&it->here, base) && !p->a->force)
		return conflict(p, it->path,
				base->type == APPLY_NONE ? "is here, too, and is another one"
							 : "was changed here, too");
	if (it->is.type == APPLY_DIR)
		return plan_dir(p, it, base);
	if (it->is.type != APPLY_NONE)
		return plan_file(p, it);
	if (it->here.type != APPLY_DIR)
		return remove_file(p, it);
	return add(p, APPLY_RMDIR, it->path, &it->here, &it->is, &it->seen) ? 0 : -1;
}

/* it: what the revision has there, which may be nothing. */
static int plan_path(struct planner *p, struct apply_item *it, const struct apply_state *base)
{
	const struct apply_state none = { .type = APPLY_NONE };

	if (p->replaced && is_below(it->path, p->replaced)) {
		it->here_errnum = 0;
		it->here = (struct apply_state){ .type = APPLY_NONE };
	}
	if (!it->here_errnum && apply_same(&it->here, &it->is))
		return 0;
	/* A path that was left out before may be wanted now. */
	if (p->a->guarded && apply_same(&it->is, base) && is_guarded(p, it->path))
		base = &none;
	/* Only the folder has changed it, if anything. A directory has to be there for what is in
	 * it. */
	if (apply_same(&it->is, base) &&
	    (it->is.type != APPLY_DIR || it->here_errnum || it->here.type != APPLY_NONE))
		return 0;
	if (ws_has_git_part(it->path))
		return leave_out(p, it->path, "left out, as .git is never touched");
	if (strncmp(it->path, p->a->stage_name, strlen(p->a->stage_name)) == 0)
		return leave_out(p, it->path, "left out, as Holt uses it now");
	if (is_guarded(p, it->path)) {
		if (!p->a->guarded)
			return leave_out(p, it->path,
					 "left out without --protected: programs of this machine "
					 "act on it");
		if (p->guarded++ < LEFT_OUT_TOLD)
			apply_tell(it->path, "programs of this machine act on it");
	}
	if (it->here_errnum == ELOOP)
		return err_set(p->e, ERR_INVALID, "%.120s: a symbolic link is in the way",
			       it->path);
	if (it->here_errnum)
		return err_sys(p->e, it->here_errnum, "look at %.120s", it->path);
	return plan_change(p, it, base);
}

/* A path of the base that the revision has not. */
static int plan_gone(struct planner *p, const struct apply_item *base)
{
	struct apply_item it = { .path = base->path, .is = { .type = APPLY_NONE } };

	if (apply_look(p->a, it.path, &it.here, &it.seen) < 0)
		it.here_errnum = errno;
	/* what is behind a link is not what the base had */
	if (it.here_errnum == ELOOP || it.here_errnum == EXDEV || it.here_errnum == ENOTDIR)
		return 0;
	if (it.here_errnum)
		return err_sys(p->e, it.here_errnum, "look at %.120s", it.path);
	if (it.here.type == APPLY_NONE)
		return 0;
	if (base->is.type == APPLY_DIR && it.here.type != APPLY_DIR)
		return 0;
	return plan_path(p, &it, &base->is);
}

static int rank(char kind)
{
	return (int)(strchr("RXMACP", kind) - "RXMACP");
}

/* Old files make room first, the innermost first; modes of directories come last. */
static int op_order(const void *x, const void *y)
{
	const struct apply_op *a = x, *b = y;
	int a_rank = a->kind == APPLY_CHANGE ? rank(APPLY_ADD) : rank(a->kind);
	int b_rank = b->kind == APPLY_CHANGE ? rank(APPLY_ADD) : rank(b->kind);
	int order = apply_order(a->path, b->path);

	if (a_rank != b_rank)
		return a_rank - b_rank;
	return a->kind == APPLY_RMDIR || a->kind == APPLY_CHMOD ? -order : order;
}

static void sort(struct apply_plan *plan)
{
	if (plan->n)
		qsort(plan->ops, plan->n, sizeof(*plan->ops), op_order);
}

int apply_plan(struct apply *a, const struct apply_list *new, const struct apply_list *base,
	       struct err *e)
{
	const struct apply_state none = { .type = APPLY_NONE };
	struct planner p = { .a = a, .new = new, .e = e };
	size_t i = 0, j = 0;
	int result = 0;

	while (result == 0 && (i < new->n || j < base->n)) {
		int order = i == new->n	 ? 1
			  : j == base->n ? -1
					 : apply_order(new->p[i].path, base->p[j].path);

		if (order > 0)
			result = plan_gone(&p, &base->p[j]);
		else
			result = plan_path(&p, &new->p[i], order ? &none : &base->p[j].is);
		i += order <= 0;
		j += order >= 0;
	}
	sort(&a->plan);
	return result;
}

/* ---- undo ------------------------------------------------------------------------------------ */

/* The old content comes from what was saved. */
static int restage(struct planner *p, int saved, const struct apply_op *op, struct apply_item *it)
{
	it->n = ++p->a->next;
	if (apply_copy(p->a, saved, apply_number(op->n).text, p->a->stage, it->n, &it->is) < 0)
		return err_sys(p->e, errno, "copy what was saved");
	return apply_same(&it->is, &op->old)
		     ? 0
		     : err_set(p->e, ERR_IO, "what was saved of %.120s is damaged", op->path);
}

static bool was_done(const struct apply_plan *last, char kind, const char *path)
{
	const struct apply_op key = { .kind = kind, .path = (char *)path };

	return bsearch(&key, last->ops, last->n, sizeof(key), op_order) != NULL;
}

/* Whether the apply made a directory of this path. */
static bool was_made(const struct apply_plan *last, const char *path)
{
	return was_done(last, APPLY_MKDIR, path);
}

static int undo_file(struct planner *p, int saved, const struct apply_op *op, struct apply_item *it)
{
	if (apply_same(&it->here, &op->old))
		return 0;
	if (!apply_same(&it->here, &op->new) &&
	    (!p->a->force || it->here.type == APPLY_DIR || it->here.type == APPLY_OTHER))
		return conflict(p, it->path, "was changed since");
	if (op->old.type == APPLY_NONE)
		return remove_file(p, it);
	if (restage(p, saved, op, it) < 0)
		return -1;
	return add_file(p, it->here.type == APPLY_NONE ? APPLY_ADD : APPLY_CHANGE, it, &it->here);
}

static int undo_dir(struct planner *p, const struct apply_plan *last, const struct apply_op *op,
		    struct apply_item *it)
{
	const struct apply_state none = { .type = APPLY_NONE };

	it->is = op->old;
	switch (op->kind) {
	case APPLY_MKDIR:
		return it->here.type != APPLY_DIR ||
				       add(p, APPLY_RMDIR, it->path, &it->here, &none, &it->seen)
			     ? 0
			     : -1;
	case APPLY_RMDIR:
		return it->here.type == APPLY_DIR ? 0 : make_dir(p, it);
	default:
		return it->here.type != APPLY_DIR || apply_same(&it->here, &op->old) ||
				       was_made(last, it->path) ||
				       add(p, APPLY_CHMOD, it->path, &it->here, &op->old, &it->seen)
			     ? 0
			     : -1;
	}
}

int apply_plan_undo(struct apply *a, const struct apply_plan *last, struct err *e)
{
	const struct apply_state none = { .type = APPLY_NONE };
	struct planner p = { .a = a, .e = e };
	char name[32];
	autoclose int saved = -1;
	int result = 0;

	snprintf(name, sizeof(name), "saved-%s", last->id);
	saved = openat(a->data, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (saved < 0)
		return err_sys(e, errno, "open what was saved");
	for (size_t i = last->n; i-- > 0 && result == 0;) {
		const struct apply_op *op = &last->ops[i];
		struct apply_item it = { .path = op->path };

		if (apply_look(a, op->path, &it.here, &it.seen) < 0)
			return err_sys(e, errno, "look at %.120s", op->path);
		if (it.here.type == APPLY_DIR && op->kind == APPLY_REMOVE &&
		    was_made(last, op->path))
			it.here = none; /* when the directory has gone */
		if (it.here.type == APPLY_DIR && op->kind == APPLY_ADD &&
		    was_done(last, APPLY_RMDIR, op->path))
			continue; /* interrupted before the file took the directory's place */
		result = op->old.type == APPLY_DIR || op->new.type == APPLY_DIR
			       ? undo_dir(&p, last, op, &it)
			       : undo_file(&p, saved, op, &it);
	}
	sort(&a->plan);
	return result;
}
