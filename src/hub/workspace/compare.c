/* The differences of two revisions, with those of text files as hunks. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/unified.h"
#include "hub/workspace/differ.h"
#include "hub/workspace/internal.h"
#include "json/document/utf8.h"

enum {
	COMPARE_MEMORY_MAX = 64 << 20,
	COMPARE_READ_MAX = 64 << 20, /* bytes of files that are compared by lines */
};

struct comparing {
	struct work work;
	struct workspace *w; /* busy */
	struct revision from, to;
	bool text;
	uint32_t limit;
	struct arena memory;
	struct workspace_change *changes;
	size_t n, room;
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
	struct workspace_change *more;

	if (c->n < c->room)
		return 0;
	more = realloc(c->changes, room * sizeof(*more));
	if (!more)
		return err_set(e, ERR_LIMIT, "out of memory");
	c->changes = more;
	c->room = room;
	return 0;
}

static int compare_entry(void *arg, struct str path, const struct tree_entry *was,
			 const struct tree_entry *is, struct err *e)
{
	struct comparing *c = arg;
	const struct tree_entry *any = is ? is : was;
	struct workspace_change *to;
	const char *copy;

	if (atomic_load(&c->work.all->stop_reads))
		return err_set(e, ERR_CANCELLED, "Holt is shutting down");
	if (c->n == c->limit ||
	    c->memory.total + path.n + WORKSPACE_HUNKS_MAX > COMPARE_MEMORY_MAX) {
		c->truncated = true;
		return 1;
	}
	copy = compare_room(c, e) < 0 ? NULL : arena_dup(&c->memory, path, e);
	if (!copy)
		return -1;
	to = &c->changes[c->n++];
	path.p = copy;
	*to = (struct workspace_change){
		.change = !was ? DIFF_ADDED
			: !is  ? DIFF_REMOVED
			       : DIFF_CHANGED,
		.type = type_of(any),
		.path = path,
		.path_bytes = utf8_valid(path) ? STR_NONE : path,
		.mode = is ? is->mode : 0,
		.mode_before = was ? was->mode : 0,
		.bytes = is ? is->bytes : 0,
		.bytes_before = was ? was->bytes : 0,
	};
	return c->text && to->type != FILE_DIRECTORY ? compare_text(c, was, is, to, e) : 0;
}

static void compare_work(struct work *work)
{
	struct comparing *c = (struct comparing *)work;

	if (tree_diff(&work->all->objects, &c->from.tree, &c->to.tree, compare_entry, c,
		      &work->err) < 0)
		c->n = 0;
}

static void compare_done(struct work *work)
{
	struct comparing *c = (struct comparing *)work;
	const struct workspace_diff diff = { str_of(c->from.id), str_of(c->to.id), c->changes, c->n,
					     c->truncated };

	c->w->busy--;
	c->on_done(c->arg, work->err.code ? NULL : &diff, work->err.code ? &work->err : NULL);
	work_end(work);
	buf_fini(&c->hunks);
	arena_fini(&c->memory);
	free(c->changes);
	free(c);
}

static int compare_find(struct comparing *c, const struct workspace_diff_spec *spec, struct err *e)
{
	const struct workspace *w = c->w;

	c->to = w->tip;
	if (workspaces_check(w->all, e) < 0 ||
	    (spec->to.p && revision_find(w, spec->to, &c->to, e) < 0))
		return -1;
	return spec->from.p ? revision_find(w, spec->from, &c->from, e)
			    : revision_before(w, &c->to, &c->from, e);
}

void workspace_diff_start(struct workspace *w, const struct workspace_diff_spec *spec,
			  workspace_diff_cb on_done, void *arg)
{
	struct comparing *c = calloc(1, sizeof(*c));

	if (!c)
		abort(); /* out of memory: no callback could report it */
	*c = (struct comparing){ .w = w,
				 .text = spec->text,
				 .limit = spec->limit,
				 .to_read = COMPARE_READ_MAX,
				 .hunks = BUF_INIT(WORKSPACE_HUNKS_MAX),
				 .on_done = on_done,
				 .arg = arg };
	c->work = (struct work){ .all = w->all, .work = work_nothing, .done = compare_done };
	arena_init(&c->memory, COMPARE_MEMORY_MAX);
	w->busy++;
	if (compare_find(c, spec, &c->work.err) == 0)
		c->work.work = compare_work;
	work_start(&w->all->reads, &c->work);
}
