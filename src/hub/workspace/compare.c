/* The differences of two revisions, with those of text files as hunks. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/unified.h"
#include "hub/workspace/differ.h"
#include "hub/workspace/internal.h"
#include "hub/workspace/renames.h"
#include "json/document/utf8.h"

enum {
	COMPARE_MEMORY_MAX = 64 << 20,
	COMPARE_READ_MAX = 64 << 20, /* bytes of files that are compared by lines */
};

const char *const workspace_what_names[WORKSPACE_WHATS] = {
	[WORKSPACE_ADDED] = "added",
	[WORKSPACE_CHANGED] = "changed",
	[WORKSPACE_REMOVED] = "removed",
	[WORKSPACE_RENAMED] = "renamed",
};

struct comparing {
	struct work work;
	struct workspace *w; /* busy */
	struct revision from, to;
	bool text, renames;
	uint32_t limit;
	struct arena memory;
	struct compared *found;
	size_t n, room;
	struct workspace_change *changes; /* of those found; in memory */
	size_t n_changes;
	bool truncated;
	uint64_t to_read; /* bytes that may still be compared by lines */
	struct buf hunks; /* of the file at hand; its maximum is what is left */
	size_t hunks_n;
	workspace_diff_cb on_done;
	void *arg;
};

/* ---- hunks ----------------------------------------------------------------------------------- */

static int add_bytes(void *arg, struct str bytes, struct err *e)
{
	return buf_add(arg, bytes.p, bytes.n, e);
}

/* t: NULL: nothing. */
static int read_side(const struct objects *o, const struct tree_entry *t, struct buf *to,
		     struct err *e)
{
	if (!t)
		return 0;
	return t->type == TREE_LINK ? buf_add(to, t->link.p, t->link.n, e)
				    : tree_content(o, t, add_bytes, to, e);
}

static bool is_text(struct str s)
{
	return !memchr(s.p, '\0', s.n) && utf8_valid(s);
}

static uint64_t side_bytes(const struct tree_entry *t)
{
	return !t ? 0 : t->type == TREE_LINK ? t->link.n : t->bytes;
}

static int compare_text(struct comparing *c, const struct tree_entry *was,
			const struct tree_entry *is, struct workspace_change *to, struct err *e)
{
	autobuf struct buf a = BUF_INIT(WORKSPACE_COMPARED_MAX),
			   b = BUF_INIT(WORKSPACE_COMPARED_MAX);
	uint64_t a_n = side_bytes(was), b_n = side_bytes(is);
	const struct objects *o = &c->work.all->objects;
	const char *copy;
	int cut;

	if (was && is && memcmp(&was->id, &is->id, sizeof(is->id)) == 0 && was->type != TREE_LINK)
		return 0; /* only its mode is another */
	to->cut = a_n > WORKSPACE_COMPARED_MAX || b_n > WORKSPACE_COMPARED_MAX ||
		  a_n + b_n > c->to_read;
	if (to->cut)
		return 0;
	c->to_read -= a_n + b_n;
	if (read_side(o, was, &a, e) < 0 || read_side(o, is, &b, e) < 0)
		return -1;
	to->binary = !is_text(buf_str(&a)) || !is_text(buf_str(&b));
	if (to->binary)
		return 0;
	c->hunks.n = 0;
	c->hunks.max = WORKSPACE_HUNKS_MAX - c->hunks_n;
	cut = unified_diff(buf_str(&a), buf_str(&b), &c->hunks, e);
	copy = cut < 0 ? NULL : arena_dup(&c->memory, buf_str(&c->hunks), e);
	if (!copy)
		return -1;
	to->cut = cut == 1;
	to->text = (struct str){ copy, c->hunks.n };
	c->hunks_n += c->hunks.n;
	return 0;
}

/* ---- entries --------------------------------------------------------------------------------- */

static enum file_type type_of(const struct tree_entry *t)
{
	return t->type == TREE_DIR  ? FILE_DIRECTORY
	     : t->type == TREE_LINK ? FILE_SYMLINK
				    : FILE_REGULAR;
}

static int compare_room(struct comparing *c, struct err *e)
{
	size_t room = c->room ? 2 * c->room : 64;
	struct compared *more;

	if (c->n < c->room)
		return 0;
	more = realloc(c->found, room * sizeof(*more));
	if (!more)
		return err_set(e, ERR_LIMIT, "out of memory");
	c->found = more;
	c->room = room;
	return 0;
}

/* t: NULL: there is none. */
static int compare_keep(struct comparing *c, const struct tree_entry *t, struct tree_entry *to,
			bool *ret_has, struct err *e)
{
	*ret_has = t != NULL;
	if (!t)
		return 0;
	*to = *t;
	to->name = STR_NONE;
	if (t->type == TREE_LINK)
		to->link.p = arena_dup(&c->memory, t->link, e);
	return t->type == TREE_LINK && !to->link.p ? -1 : 0;
}

static bool compare_is_full(const struct comparing *c, size_t more)
{
	size_t answer = (c->n + 1) * sizeof(*c->changes);

	return c->n == c->limit ||
	       c->memory.total + more + answer + WORKSPACE_HUNKS_MAX > COMPARE_MEMORY_MAX;
}

static int compare_entry(void *arg, struct str path, const struct tree_entry *was,
			 const struct tree_entry *is, struct err *e)
{
	struct comparing *c = arg;
	struct compared *to;
	const char *copy;

	if (atomic_load(&c->work.all->stop_reads))
		return err_set(e, ERR_CANCELLED, "Holt is shutting down");
	if (compare_is_full(c, 3 * WORKSPACE_PATH_MAX)) {
		c->truncated = true;
		return 1;
	}
	copy = compare_room(c, e) < 0 ? NULL : arena_dup(&c->memory, path, e);
	if (!copy)
		return -1;
	to = &c->found[c->n++];
	path.p = copy;
	*to = (struct compared){ .change = {
					 .change = !was ? WORKSPACE_ADDED
						 : !is	? WORKSPACE_REMOVED
							: WORKSPACE_CHANGED,
					 .type = type_of(is ? is : was),
					 .path = path,
					 .path_bytes = utf8_valid(path) ? STR_NONE : path,
					 .mode = is ? is->mode : 0,
					 .mode_before = was ? was->mode : 0,
					 .bytes = is ? is->bytes : 0,
					 .bytes_before = was ? was->bytes : 0,
				 } };
	return compare_keep(c, was, &to->was, &to->has_was, e) < 0
		     ? -1
		     : compare_keep(c, is, &to->is, &to->has_is, e);
}

/* Writes the answer, with hunks where those are wanted. */
static int compare_tell(struct comparing *c, struct err *e)
{
	c->changes = arena_array(&c->memory, c->n, sizeof(*c->changes), e);
	if (!c->changes)
		return -1;
	for (size_t i = 0; i < c->n; i++) {
		struct compared *f = &c->found[i];

		if (f->moved)
			continue;
		if (atomic_load(&c->work.all->stop_reads))
			return err_set(e, ERR_CANCELLED, "Holt is shutting down");
		if (c->text && f->change.type != FILE_DIRECTORY &&
		    compare_text(c, f->has_was ? &f->was : NULL, f->has_is ? &f->is : NULL,
				 &f->change, e) < 0)
			return -1;
		c->changes[c->n_changes++] = f->change;
	}
	return 0;
}

static int compare_trees(struct comparing *c, const struct object_id *to, struct err *e)
{
	if (tree_diff(&c->w->all->objects, &c->from.tree, to, compare_entry, c, e) < 0)
		return -1;
	return (c->renames && renames_find(c->found, c->n, e) < 0) || compare_tell(c, e) < 0 ? -1
											     : 0;
}

static void compare_work(struct work *work)
{
	struct comparing *c = (struct comparing *)work;

	(void)!compare_trees(c, &c->to.tree, &work->err); /* what it failed by is in work->err */
}

static void compare_end(struct comparing *c, const struct err *err)
{
	const struct workspace_diff diff = { str_of(c->from.id), str_of(c->to.id), c->changes,
					     c->n_changes, c->truncated };

	c->on_done(c->arg, err ? NULL : &diff, err);
	buf_fini(&c->hunks);
	arena_fini(&c->memory);
	free(c->found);
	free(c);
}

static void compare_done(struct work *work)
{
	struct comparing *c = (struct comparing *)work;
	struct err e = work->err;

	c->w->busy--;
	work_end(work);
	compare_end(c, e.code ? &e : NULL);
}

static int compare_look(void *arg, const struct object_id *tree, struct err *e)
{
	return compare_trees(arg, tree, e);
}

static void compare_looked(void *arg, const struct err *err)
{
	struct comparing *c = arg;

	c->w->busy--;
	compare_end(c, err);
}

static int compare_find(struct comparing *c, const struct workspace_diff_spec *spec, struct err *e)
{
	const struct workspace *w = c->w;

	c->to = w->tip;
	if (workspaces_check(w->all, e) < 0 ||
	    (spec->to.p && revision_find(w, spec->to, &c->to, e) < 0))
		return -1;
	if (spec->live) {
		c->from = w->tip;
		snprintf(c->to.id, sizeof(c->to.id), "live");
	}
	if (spec->from.p)
		return revision_find(w, spec->from, &c->from, e);
	return spec->live ? 0 : revision_before(w, &c->to, &c->from, e);
}

static void compare_start(struct comparing *c)
{
	c->work.work = compare_work;
	work_start(&c->w->all->reads, &c->work);
}

void workspace_diff_start(struct workspace *w, const struct workspace_diff_spec *spec,
			  workspace_diff_cb on_done, void *arg)
{
	struct comparing *c = calloc(1, sizeof(*c));

	if (!c)
		abort(); /* out of memory: no callback could report it */
	*c = (struct comparing){ .w = w,
				 .text = spec->text,
				 .renames = spec->renames,
				 .limit = spec->limit,
				 .to_read = COMPARE_READ_MAX,
				 .hunks = BUF_INIT(WORKSPACE_HUNKS_MAX),
				 .on_done = on_done,
				 .arg = arg };
	c->work = (struct work){ .all = w->all, .work = work_nothing, .done = compare_done };
	arena_init(&c->memory, COMPARE_MEMORY_MAX);
	w->busy++;
	if (compare_find(c, spec, &c->work.err) < 0)
		work_start(&w->all->reads, &c->work);
	else if (spec->live)
		commit_look_start(w, compare_look, compare_looked, c);
	else
		compare_start(c);
}
