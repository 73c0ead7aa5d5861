#include "hub/workspace/renames.h"

#include <stdlib.h>

struct sides {
	struct compared **p;
	size_t n;
};

static struct str base_name(const struct compared *c)
{
	struct str path = c->change.path;
	const char *slash = memrchr(path.p, '/', path.n);
	size_t skip = slash ? (size_t)(slash - path.p) + 1 : 0;

	return (struct str){ path.p + skip, path.n - skip };
}

static int by_content(const struct compared *a, const struct compared *b)
{
	const struct tree_entry *x = a->has_is ? &a->is : &a->was;
	const struct tree_entry *y = b->has_is ? &b->is : &b->was;

	return memcmp(&x->id, &y->id, sizeof(x->id));
}

static int by_content_and_name(const struct compared *a, const struct compared *b)
{
	int order = by_content(a, b);

	return order ? order : tree_compare(base_name(a), base_name(b));
}

static int by_all(const void *a, const void *b)
{
	const struct compared *x = *(struct compared *const *)a;
	const struct compared *y = *(struct compared *const *)b;
	int order = by_content_and_name(x, y);

	return order ? order : tree_compare(x->change.path, y->change.path);
}

static void rename_one(struct compared *gone, struct compared *come)
{
	struct workspace_change *to = &come->change;

	gone->moved = true;
	come->has_was = true;
	come->was = gone->was;
	to->change = WORKSPACE_RENAMED;
	to->path_before = gone->change.path;
	to->path_before_bytes = gone->change.path_bytes;
	to->mode_before = gone->change.mode_before;
	to->bytes_before = gone->change.bytes_before;
}

/* Both are in this order. */
static void renames_pair(const struct sides *gone, const struct sides *come,
			 int (*order)(const struct compared *a, const struct compared *b))
{
	for (size_t i = 0, k = 0; i < gone->n && k < come->n;) {
		int o = order(gone->p[i], come->p[k]);

		if (gone->p[i]->moved || o < 0)
			i++;
		else if (come->p[k]->has_was || o > 0)
			k++;
		else
			rename_one(gone->p[i++], come->p[k++]);
	}
}

static bool may_move(const struct compared *c, enum workspace_what what)
{
	return c->change.change == what && c->change.type == FILE_REGULAR &&
	       c->change.bytes + c->change.bytes_before > 0;
}

static int sides_find(struct compared *all, size_t n, enum workspace_what what, struct sides *ret,
		      struct err *e)
{
	ret->n = 0;
	ret->p = calloc(n + 1, sizeof(*ret->p));
	if (!ret->p)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < n; i++) {
		if (may_move(&all[i], what))
			ret->p[ret->n++] = &all[i];
	}
	qsort(ret->p, ret->n, sizeof(*ret->p), by_all);
	return 0;
}

int renames_find(struct compared *all, size_t n, struct err *e)
{
	struct sides gone = { NULL, 0 }, come = { NULL, 0 };
	int rc = sides_find(all, n, WORKSPACE_REMOVED, &gone, e);

	if (rc == 0)
		rc = sides_find(all, n, WORKSPACE_ADDED, &come, e);
	if (rc == 0) {
		renames_pair(&gone, &come, by_content_and_name);
		renames_pair(&gone, &come, by_content);
	}
	free(gone.p);
	free(come.p);
	return rc;
}
