#include "hub/workspace/differ.h"

struct differ {
	const struct objects *o;
	tree_diff_fn f;
	void *arg;
	bool exact;
	struct buf path;
	unsigned depth;
};

static int differ_dirs(struct differ *d, const struct object_id *a, const struct object_id *b,
		       struct err *e);

/* Files may be of one piece or several. */
static bool same_type(const struct tree_entry *a, const struct tree_entry *b)
{
	bool a_file = a->type == TREE_PIECE || a->type == TREE_PIECES;
	bool b_file = b->type == TREE_PIECE || b->type == TREE_PIECES;

	return a->type == b->type || (a_file && b_file);
}

static int differ_tell(struct differ *d, const struct tree_entry *was, const struct tree_entry *is,
		       struct err *e)
{
	const struct object_id *a = was && was->type == TREE_DIR ? &was->id : NULL;
	const struct object_id *b = is && is->type == TREE_DIR ? &is->id : NULL;
	bool same = was && is && (a ? was->mode == is->mode : tree_same(was, is));
	bool behind = d->exact && a && !is;
	int result = 0;

	if (same && d->exact)
		same = (!a || tree_same(was, is)) && was->mtime == is->mtime &&
		       was->mtime_ns == is->mtime_ns;
	if (!same && !behind)
		result = d->f(d->arg, buf_str(&d->path), was, is, e);
	if (result == 0 && (a || b))
		result = differ_dirs(d, a, b, e);
	return result == 0 && behind ? d->f(d->arg, buf_str(&d->path), was, is, e) : result;
}

/* was, is: of one name; either may be NULL. */
static int differ_name(struct differ *d, const struct tree_entry *was, const struct tree_entry *is,
		       struct err *e)
{
	struct str name = was ? was->name : is->name;
	size_t n = d->path.n;
	int result = 0;

	if ((n && buf_add(&d->path, "/", 1, e) < 0) || buf_add(&d->path, name.p, name.n, e) < 0)
		return -1;
	if (was && is && !same_type(was, is)) {
		result = differ_tell(d, was, NULL, e);
		was = NULL;
	}
	if (result == 0)
		result = differ_tell(d, was, is, e);
	d->path.n = n;
	d->path.p[n] = '\0';
	return result;
}

static int differ_merge(struct differ *d, const struct tree *a, const struct tree *b, struct err *e)
{
	size_t i = 0, k = 0;
	int result = 0;

	while (result == 0 && (i < a->n || k < b->n)) {
		int c = i == a->n ? 1
		      : k == b->n ? -1
				  : tree_compare(a->entries[i].name, b->entries[k].name);
		const struct tree_entry *was = c <= 0 ? &a->entries[i++] : NULL;
		const struct tree_entry *is = c >= 0 ? &b->entries[k++] : NULL;

		result = differ_name(d, was, is, e);
	}
	return result;
}

static int differ_dirs(struct differ *d, const struct object_id *a, const struct object_id *b,
		       struct err *e)
{
	struct tree was = { .n = 0 }, is = { .n = 0 };
	int result = 0;

	if (a && b && memcmp(a, b, sizeof(*a)) == 0)
		return 0;
	if (d->depth > WORKSPACE_DEPTH_MAX)
		return err_set(e, ERR_WORKSPACE, "the tree of the workspace is too deep");
	d->depth++;
	if (a)
		result = tree_load(d->o, a, &was, e);
	if (b && result == 0)
		result = tree_load(d->o, b, &is, e);
	if (result == 0)
		result = differ_merge(d, &was, &is, e);
	tree_fini(&was);
	tree_fini(&is);
	d->depth--;
	return result;
}

static int differ_all(struct differ *d, const struct object_id *a, const struct object_id *b,
		      struct err *e)
{
	int result;

	d->path = BUF_INIT((size_t)(WORKSPACE_DEPTH_MAX + 2) * (WORKSPACE_NAME_MAX + 1));
	result = differ_dirs(d, a, b, e);
	buf_fini(&d->path);
	return result < 0 ? -1 : 0;
}

int tree_diff(const struct objects *o, const struct object_id *a, const struct object_id *b,
	      tree_diff_fn f, void *arg, struct err *e)
{
	return differ_all(&(struct differ){ .o = o, .f = f, .arg = arg }, a, b, e);
}

int tree_diff_exact(const struct objects *o, const struct object_id *a, const struct object_id *b,
		    tree_diff_fn f, void *arg, struct err *e)
{
	return differ_all(&(struct differ){ .o = o, .f = f, .arg = arg, .exact = true }, a, b, e);
}
