/* Describes the changes between two trees. */
#include <inttypes.h>

#include "base/unified.h"
#include "coding/path.h"
#include "coding/text.h"
#include "op/coding/snapshot.h"

enum { LINES_OF_MAX = 1 << 20 /* bytes of a file whose lines are compared */ };

static const char *kind_of(const struct tree_entry *t)
{
	return t->type == TREE_DIR ? "directory" : t->type == TREE_LINK ? "link" : "file";
}

static bool is_file(const struct tree_entry *t)
{
	return t && (t->type == TREE_PIECE || t->type == TREE_PIECES);
}

static int load_piece(void *arg, struct str bytes, struct err *e)
{
	return buf_add(arg, bytes.p, bytes.n, e);
}

/* The content of a file; of none, nothing. */
static int snapshot_text_load(const struct change_tell *t, const struct tree_entry *file,
			      struct buf *to, struct err *e)
{
	return is_file(file) ? tree_content(t->objects, file, load_piece, to, e) : 0;
}

static int tell_sizes(struct change_tell *t, const char *why, const struct tree_entry *was,
		      const struct tree_entry *is, struct err *e)
{
	return buf_addf(&t->text, e, "%s: %" PRIu64 " bytes, then %" PRIu64 "\n", why,
			is_file(was) ? was->bytes : 0, is_file(is) ? is->bytes : 0);
}

static int tell_lines(struct change_tell *t, const struct tree_entry *was,
		      const struct tree_entry *is, struct err *e)
{
	autobuf struct buf a = BUF_INIT(LINES_OF_MAX), b = BUF_INIT(LINES_OF_MAX);
	autobuf struct buf hunks = BUF_INIT(CHANGE_TEXT_MAX);
	int cut;

	if ((is_file(was) && was->bytes > LINES_OF_MAX) ||
	    (is_file(is) && is->bytes > LINES_OF_MAX))
		return tell_sizes(t, "large", was, is, e);
	if (snapshot_text_load(t, was, &a, e) < 0 || snapshot_text_load(t, is, &b, e) < 0)
		return -1;
	if (text_is_binary(buf_str(&a)) || text_is_binary(buf_str(&b)))
		return tell_sizes(t, "binary", was, is, e);
	cut = unified_diff(buf_str(&a), buf_str(&b), &hunks, e);
	if (cut < 0 || text_clean(buf_str(&hunks), &t->text, e) < 0)
		return -1;
	return cut ? err_set(e, ERR_TOO_LARGE, "the differences are too many") : 0;
}

static int tell_target(struct change_tell *t, char mark, const struct tree_entry *link,
		       struct err *e)
{
	if (!link || link->type != TREE_LINK)
		return 0;
	if (buf_add(&t->text, &mark, 1, e) < 0 || text_clean(link->link, &t->text, e) < 0)
		return -1;
	return buf_add(&t->text, "\n", 1, e);
}

/* A line, "changed file: PATH (mode 644, then 755)", and what has changed in it. */
static int tell_one(struct change_tell *t, struct str path, const struct tree_entry *was,
		    const struct tree_entry *is, struct err *e)
{
	autobuf struct buf whole = BUF_INIT(CODING_PATH_MAX), said = BUF_INIT(CODING_PATH_ARG_MAX);

	if (buf_addf(&whole, e, CODING_ROOT "/") < 0 || buf_add(&whole, path.p, path.n, e) < 0 ||
	    path_say(STR_LIT(CODING_ROOT), buf_str(&whole), &said, e) < 0 ||
	    buf_addf(&t->text, e, "%s %s: %.*s",
		     !was  ? "new"
		     : !is ? "deleted"
			   : "changed",
		     kind_of(is ? is : was), STR_ARG(buf_str(&said))) < 0)
		return -1;
	if (was && is && was->mode != is->mode && is->type != TREE_LINK &&
	    buf_addf(&t->text, e, " (mode %03o, then %03o)", was->mode, is->mode) < 0)
		return -1;
	if (buf_add(&t->text, "\n", 1, e) < 0 || !t->contents)
		return t->contents ? -1 : 0;
	if (tell_target(t, '-', was, e) < 0 || tell_target(t, '+', is, e) < 0)
		return -1;
	if ((!is_file(was) && !is_file(is)) ||
	    (is_file(was) && is_file(is) && memcmp(&was->id, &is->id, sizeof(was->id)) == 0))
		return 0;
	return tell_lines(t, was, is, e);
}

static bool is_wanted(struct str below, struct str path)
{
	return !below.p || (path.n >= below.n && memcmp(path.p, below.p, below.n) == 0 &&
			    (path.n == below.n || path.p[below.n] == '/'));
}

static bool differs(const struct tree_entry *was, const struct tree_entry *is)
{
	if (!was || !is)
		return true;
	return is->type == TREE_DIR ? was->mode != is->mode : !tree_same(was, is);
}

int change_tell(void *arg, struct str path, const struct tree_entry *was,
		const struct tree_entry *is, struct err *e)
{
	struct change_tell *t = arg;
	size_t n = t->text.n;
	struct err full = ERR_INIT;

	if (atomic_load(t->stop))
		return err_set(e, ERR_CANCELLED, "it was given up");
	if (!is_wanted(t->below, path))
		return 0;
	if (!differs(was, is)) {
		t->times += is->type != TREE_DIR;
		return 0;
	}
	t->changed += was && is;
	t->added += !was;
	t->removed += !is;
	if (t->more || tell_one(t, path, was, is, &full) == 0)
		return 0;
	if (full.code != ERR_TOO_LARGE) {
		*e = full;
		return -1;
	}
	t->text.n = n;
	t->more = true;
	return 0;
}
