/* Revisions and histories as rows of the registry. */
#include <inttypes.h>
#include <stdio.h>

#include "hub/workspace/internal.h"

void revision_name(struct revision *r)
{
	char text[2048], tree[BLAKE2B_HEX + 1];
	uint8_t hash[BLAKE2B_BYTES];
	int n;

	blake2b_hex(r->tree.b, tree);
	n = snprintf(text, sizeof(text),
		     "holt revision 1\ntree %s\nparent %s\ncreated %" PRId64 "\nsource %s\n\n%s",
		     tree, r->parent, r->created_ms, r->source, r->message);
	blake2b('r', text, (size_t)n, hash);
	blake2b_hex(hash, r->id);
}

static void copy_text(char *to, size_t size, struct str from)
{
	snprintf(to, size, "%.*s", STR_ARG(from));
}

static int read_revision(void *arg, const struct store_revision *row, struct err *e)
{
	struct revision *r = arg;

	if (blake2b_of_hex(row->tree.p, row->tree.n, r->tree.b) < 0 || row->id.n != REVISION_ID)
		return err_set(e, ERR_WORKSPACE, "a revision in the registry is damaged");
	copy_text(r->id, sizeof(r->id), row->id);
	copy_text(r->parent, sizeof(r->parent), row->parent);
	copy_text(r->source, sizeof(r->source), row->source);
	copy_text(r->message, sizeof(r->message), row->message);
	r->number = row->number;
	r->files = row->files;
	r->bytes = row->bytes;
	r->left_out = row->left_out;
	r->created_ms = row->created_ms;
	return 0;
}

int revision_load(struct workspaces *all, struct str id, struct revision *ret, struct err *e)
{
	ret->id[0] = '\0';
	if (id.n == REVISION_ID && store_revisions(all->store, id, read_revision, ret, e) < 0)
		return -1;
	return ret->id[0] ? 0
			  : err_set(e, ERR_WORKSPACE_NOT_FOUND, "there is no revision '%.*s'",
				    STR_CUT(id, REVISION_ID));
}

static int add_revision(struct workspaces *all, const struct revision *r, struct err *e)
{
	char tree[BLAKE2B_HEX + 1];
	const struct store_revision row = {
		.id = str_of(r->id),
		.parent = str_of(r->parent),
		.tree = { tree, BLAKE2B_HEX },
		.files = r->files,
		.bytes = r->bytes,
		.left_out = r->left_out,
		.created_ms = r->created_ms,
		.source = str_of(r->source),
		.message = str_of(r->message),
	};

	blake2b_hex(r->tree.b, tree);
	return store_revision_add(all->store, &row, e);
}

/* A transaction of the lifecycle may be open while the hub ends: then both are part of that. */
static int write_tip(struct workspace *w, const struct workspace *of, struct err *e)
{
	struct store *s = w->all->store;
	int result;

	if (of)
		result = store_history_copy(s, of->seq, w->seq, w->tip.number, e);
	else
		result = add_revision(w->all, &w->tip, e) < 0
			       ? -1
			       : store_history_add(s, w->seq, w->tip.number, str_of(w->tip.id), e);
	return result < 0 ? -1 : workspace_save(w, e);
}

static int write_in_transaction(struct workspace *w, const struct workspace *of, struct err *e)
{
	struct store *s = w->all->store;
	bool own = !store_is_open(s);

	if (own && store_begin(s, e) < 0)
		return -1;
	if (write_tip(w, of, e) == 0)
		return own ? store_commit(s, e) : 0;
	if (own)
		store_rollback(s);
	return -1;
}

int workspace_advance(struct workspace *w, const struct revision *r, struct err *e)
{
	const struct revision before = w->tip;

	w->tip = *r;
	w->tip.number = before.number + 1;
	if (write_in_transaction(w, NULL, e) == 0)
		return 0;
	w->tip = before;
	return -1;
}

int workspace_enter(struct workspace *w, const struct workspace *of, struct err *e)
{
	w->seq = ++w->all->last_seq;
	if (!of)
		w->tip.number = 1;
	return write_in_transaction(w, of, e);
}

/* ---- histories ------------------------------------------------------------------------------- */

int revision_load_tip(struct workspace *w, struct err *e)
{
	w->tip.id[0] = '\0';
	if (store_history_before(w->all->store, w->seq, INT64_MAX, 1, read_revision, &w->tip, e) <
	    0)
		return -1;
	return w->tip.id[0] ? 0
			    : err_set(e, ERR_WORKSPACE, "a revision in the registry is missing");
}

struct finding {
	struct revision *ret;
	unsigned n;
};

static int find_one(void *arg, const struct store_revision *row, struct err *e)
{
	struct finding *f = arg;

	return f->n++ ? 0 : read_revision(f->ret, row, e);
}

static bool is_digits(struct str id)
{
	for (size_t i = 0; i < id.n; i++) {
		if (!memchr("0123456789abcdef", id.p[i], 16))
			return false;
	}
	return id.n >= REVISION_DIGITS_MIN && id.n <= REVISION_ID;
}

int revision_find(const struct workspace *w, struct str id, struct revision *ret, struct err *e)
{
	struct finding f = { ret, 0 };

	if (is_digits(id) && store_history_find(w->all->store, w->seq, id, find_one, &f, e) < 0)
		return -1;
	if (!f.n)
		return err_set(e, ERR_WORKSPACE_NOT_FOUND, "workspace %s has no revision '%.*s'",
			       w->name, STR_CUT(id, REVISION_ID));
	return f.n == 1 ? 0
			: err_set(e, ERR_INVALID, "'%.*s' begins the ids of several revisions",
				  STR_CUT(id, REVISION_ID));
}

int revision_before(const struct workspace *w, const struct revision *r, struct revision *ret,
		    struct err *e)
{
	*ret = *r;
	return store_history_before(w->all->store, w->seq, r->number, 1, read_revision, ret, e);
}

struct logging {
	workspace_log_fn each;
	void *arg;
};

static int log_one(void *arg, const struct store_revision *row, struct err *e)
{
	const struct logging *l = arg;
	const struct workspace_revision r = {
		.number = row->number,
		.id = row->id,
		.parent = row->parent.n ? row->parent : STR_NONE,
		.source = row->source.n ? row->source : STR_NONE,
		.message = row->message.n ? row->message : STR_NONE,
		.created_ms = row->created_ms,
		.files = row->files,
		.bytes = row->bytes,
		.left_out = row->left_out,
	};

	return l->each(l->arg, &r, e);
}

int workspace_log(const struct workspace *w, uint64_t below, uint32_t limit, workspace_log_fn each,
		  void *arg, struct err *e)
{
	struct logging l = { each, arg };

	return store_history_before(w->all->store, w->seq, below < INT64_MAX ? below : INT64_MAX,
				    limit, log_one, &l, e);
}
