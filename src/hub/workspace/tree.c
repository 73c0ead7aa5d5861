#include "hub/workspace/tree.h"

#include <stdlib.h>

enum {
	FIXED = 1 + 2 + 8 + 4 + 8 + 4 + 2 + 2, /* bytes of an entry before its name */
	PIECE = 4 + BLAKE2B_BYTES,
};

static void put_be(uint8_t *to, uint64_t value, size_t n)
{
	for (size_t i = n; i-- > 0; value >>= 8)
		to[i] = (uint8_t)value;
}

static uint64_t get_be(const uint8_t *from, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value = value << 8 | from[i];
	return value;
}

int tree_compare(struct str a, struct str b)
{
	int c = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return c ? c : a.n < b.n ? -1 : a.n > b.n;
}

bool tree_same(const struct tree_entry *a, const struct tree_entry *b)
{
	if (a->type != b->type || (a->mode != b->mode && a->type != TREE_LINK))
		return false;
	return a->type == TREE_LINK ? tree_compare(a->link, b->link) == 0
				    : memcmp(&a->id, &b->id, sizeof(a->id)) == 0;
}

/* ---- directories ----------------------------------------------------------------------------- */

int tree_write(struct buf *to, const struct tree_entry *t, struct err *e)
{
	uint8_t fixed[FIXED];

	fixed[0] = (uint8_t)t->type;
	put_be(fixed + 1, t->mode, 2);
	put_be(fixed + 3, (uint64_t)t->mtime, 8);
	put_be(fixed + 11, t->mtime_ns, 4);
	put_be(fixed + 15, t->bytes, 8);
	put_be(fixed + 23, t->count, 4);
	put_be(fixed + 27, t->name.n, 2);
	put_be(fixed + 29, t->link.n, 2);
	if (buf_add(to, fixed, sizeof(fixed), e) < 0 || buf_add(to, t->name.p, t->name.n, e) < 0)
		return -1;
	return t->type == TREE_LINK ? buf_add(to, t->link.p, t->link.n, e)
				    : buf_add(to, t->id.b, sizeof(t->id.b), e);
}

static bool name_is_sound(struct str s)
{
	return s.n > 0 && s.n <= WORKSPACE_NAME_MAX && !memchr(s.p, '/', s.n) &&
	       !memchr(s.p, '\0', s.n) && !str_is(s, ".") && !str_is(s, "..");
}

static bool type_is_sound(const struct tree_entry *t)
{
	switch (t->type) {
	case TREE_PIECE:
	case TREE_PIECES:
		return t->link.n == 0 && t->count == 0;
	case TREE_DIR:
		return t->link.n == 0;
	case TREE_LINK:
		return t->link.n > 0 && t->link.n <= WORKSPACE_PATH_MAX &&
		       !memchr(t->link.p, '\0', t->link.n) && t->count == 0;
	}
	return false;
}

/* Bytes that the entry takes; 0: it is not sound. */
static size_t read_entry(const uint8_t *p, size_t n, struct tree_entry *t)
{
	size_t name_n, link_n, tail;

	if (n < FIXED)
		return 0;
	name_n = get_be(p + 27, 2);
	link_n = get_be(p + 29, 2);
	*t = (struct tree_entry){
		.type = (enum tree_type)p[0],
		.mode = (uint16_t)get_be(p + 1, 2),
		.mtime = (int64_t)get_be(p + 3, 8),
		.mtime_ns = (uint32_t)get_be(p + 11, 4),
		.bytes = get_be(p + 15, 8),
		.count = (uint32_t)get_be(p + 23, 4),
		.name = { (const char *)p + FIXED, name_n },
		.link = { (const char *)p + FIXED + name_n, link_n },
	};
	tail = t->type == TREE_LINK ? link_n : sizeof(t->id.b);
	if (n - FIXED < name_n + tail)
		return 0;
	if (t->type != TREE_LINK)
		memcpy(t->id.b, p + FIXED + name_n, sizeof(t->id.b));
	if (!type_is_sound(t) || !name_is_sound(t->name) || t->mode > 0777 ||
	    t->mtime_ns > 999999999)
		return 0;
	return FIXED + name_n + tail;
}

struct tree_entry *tree_read(struct str bytes, size_t *ret_n, struct err *e)
{
	size_t room = bytes.n / (FIXED + 2) + 1, n = 0;
	autofree struct tree_entry *entries = calloc(room, sizeof(*entries));

	if (!entries)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	for (size_t at = 0; at < bytes.n;) {
		size_t took = read_entry((const uint8_t *)bytes.p + at, bytes.n - at, &entries[n]);

		if (!took || n + 1 >= room ||
		    (n && tree_compare(entries[n - 1].name, entries[n].name) >= 0)) {
			err_set(e, ERR_WORKSPACE, "a directory of the workspace is damaged");
			return NULL;
		}
		at += took;
		n++;
	}
	*ret_n = n;
	return take_ptr(entries);
}

int tree_load(const struct objects *o, const struct object_id *id, struct tree *ret, struct err *e)
{
	*ret = (struct tree){ .bytes = BUF_INIT(OBJECT_MAX + 1) };
	if (objects_get(o, OBJECT_TREE, id, &ret->bytes, e) < 0)
		return -1;
	ret->entries = tree_read(buf_str(&ret->bytes), &ret->n, e);
	return ret->entries ? 0 : -1;
}

void tree_fini(struct tree *t)
{
	buf_fini(&t->bytes);
	free(t->entries);
	t->entries = NULL;
	t->n = 0;
}

const struct tree_entry *tree_find(const struct tree *t, struct str name)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = tree_compare(t->entries[mid].name, name);

		if (c == 0)
			return &t->entries[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

int tree_list_write(struct buf *to, const struct tree_piece *p, struct err *e)
{
	uint8_t bytes[PIECE];

	put_be(bytes, p->bytes, 4);
	memcpy(bytes + 4, p->id.b, sizeof(p->id.b));
	return buf_add(to, bytes, sizeof(bytes), e);
}

int tree_list_load(const struct objects *o, const struct tree_entry *file, struct buf *to,
		   struct err *e)
{
	const struct tree_piece only = { (uint32_t)file->bytes, file->id };

	if (file->type == TREE_PIECE)
		return tree_list_write(to, &only, e);
	if (objects_get(o, OBJECT_LIST, &file->id, to, e) < 0)
		return -1;
	return to->n % PIECE ? err_set(e, ERR_WORKSPACE, "a file of the workspace is damaged") : 0;
}

bool tree_list_next(struct str *list, struct tree_piece *ret)
{
	if (list->n < PIECE)
		return false;
	ret->bytes = (uint32_t)get_be((const uint8_t *)list->p, 4);
	memcpy(ret->id.b, list->p + 4, sizeof(ret->id.b));
	list->p += PIECE;
	list->n -= PIECE;
	return true;
}

int tree_pieces(const struct objects *o, const struct tree_entry *file,
		int (*f)(void *arg, const struct tree_piece *p, struct err *e), void *arg,
		struct err *e)
{
	autobuf struct buf list = BUF_INIT(OBJECT_MAX + 1);
	struct tree_piece p;
	struct str rest;
	int result = tree_list_load(o, file, &list, e);

	rest = buf_str(&list);
	while (result == 0 && tree_list_next(&rest, &p))
		result = f(arg, &p, e);
	return result;
}

struct reading {
	const struct objects *o;
	struct buf piece;
	int (*f)(void *arg, struct str bytes, struct err *e);
	void *arg;
};

static int read_piece(void *arg, const struct tree_piece *p, struct err *e)
{
	struct reading *r = arg;

	if (objects_get(r->o, OBJECT_PIECE, &p->id, &r->piece, e) < 0)
		return -1;
	if (r->piece.n != p->bytes)
		return err_set(e, ERR_WORKSPACE, "a file of the workspace is damaged");
	return r->f(r->arg, buf_str(&r->piece), e);
}

int tree_content(const struct objects *o, const struct tree_entry *file,
		 int (*f)(void *arg, struct str bytes, struct err *e), void *arg, struct err *e)
{
	struct reading r = { o, BUF_INIT(OBJECT_MAX + 1), f, arg };
	int result = tree_pieces(o, file, read_piece, &r, e);

	buf_fini(&r.piece);
	return result;
}
