#include "call/op.h"

#include "base/hash.h"
#include "base/path.h"
#include "base/sha256.h"
#include "json/document/put.h"
#include "json/document/utf8.h"

/* Room for the largest file with every byte escaped. */
#define REQUEST_MAX ((size_t)256 << 20)

/* From here on the faster library is worth loading. */
enum { REQUEST_LARGE = 64 << 10 };

const char *const op_effect_names[OP_EFFECTS] = {
	[OP_READ] = "read",	  [OP_WRITE] = "write",		  [OP_EXECUTE] = "execute",
	[OP_DESTROY] = "destroy", [OP_ADMINISTER] = "administer",
};

/* ---- paths --------------------------------------------------------------------------------- */

enum { OP_PATH_MAX = 32 << 10 };

struct op_paths {
	const struct op *op;
	struct str base;
	struct arena *arena;
	bool relative;
};

/* An empty one is as good as none, and the operation's to judge. */
static int op_spell_path(void *data, const struct field *row, struct str *s, struct err *e)
{
	struct op_paths *p = data;
	autobuf struct buf spelt = BUF_INIT(OP_PATH_MAX);
	char *copy;

	if (s->n == 0)
		return 0;
	if (p->op->path)
		return p->op->path(p->base, *s, p->arena, s, e);
	if (path_spell(p->base, *s, &spelt, e) < 0)
		return -1;
	p->relative |= s->p[0] != '/';
	copy = arena_dup(p->arena, buf_str(&spelt), e);
	if (copy)
		*s = (struct str){ copy, spelt.n };
	return copy ? 0 : -1;
}

int op_spell_paths(const struct op *op, void *request, struct str base, struct arena *a,
		   bool *ret_relative, struct err *e)
{
	struct op_paths p = { .op = op, .base = base, .arena = a };

	if (field_change(op->request, request, FIELD_PATH, a, op_spell_path, &p, e) < 0)
		return -1;
	*ret_relative = p.relative;
	return 0;
}

/* ---- what rules see ------------------------------------------------------------------------ */

enum { OP_COMMAND_MAX = 4 << 20 };

static int op_put_word(struct buf *to, struct str word, struct err *e)
{
	bool plain = word.n > 0;

	for (size_t i = 0; i < word.n; i++) {
		char c = word.p[i];

		plain &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			 (c >= '0' && c <= '9') || (c && strchr("-_./:=@%+,", c));
	}
	if (to->n > 0 && buf_add(to, " ", 1, e) < 0)
		return -1;
	if (plain)
		return buf_add(to, word.p, word.n, e);
	if (buf_add(to, "'", 1, e) < 0)
		return -1;
	for (size_t i = 0; i < word.n; i++) {
		if (word.p[i] == '\'' ? buf_add(to, "'\\''", 4, e) < 0
				      : buf_add(to, word.p + i, 1, e) < 0)
			return -1;
	}
	return buf_add(to, "'", 1, e);
}

int op_join_command(struct str program, const struct field_strs *args, struct arena *a,
		    struct str *ret, struct err *e)
{
	autobuf struct buf line = BUF_INIT(OP_COMMAND_MAX);
	char *copy;

	if (program.p && op_put_word(&line, program, e) < 0)
		return -1;
	for (size_t i = 0; i < args->n; i++) {
		if (op_put_word(&line, args->p[i], e) < 0)
			return -1;
	}
	copy = arena_dup(a, buf_str(&line), e);
	if (copy)
		*ret = (struct str){ copy, line.n };
	return copy ? 0 : -1;
}

/* Whether one pointer leads to what stands at the other, or above or below it. */
static bool op_pointers_meet(const char *a, const char *b)
{
	size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

	return strncmp(a, b, n) == 0 && strchr("/", a[n]) && strchr("/", b[n]);
}

/* Where else what rules know by a pointer stands in requests that run commands: the other words of
 * a command, and the working directory. NULL: nowhere. */
static const char *op_also(const struct op *op, const char *pointer)
{
	static const char *const pairs[][2] = {
		{ OP_COMMAND_POINTER, "/args" },
		{ "/cwd", "/working_dir" },
		{ "/working_dir", "/cwd" },
	};

	for (size_t i = 0; (op->flags & OP_COMMANDS) && i < ARRAY_LEN(pairs); i++) {
		if (strcmp(pointer, pairs[i][0]) == 0)
			return pairs[i][1];
	}
	return NULL;
}

struct op_look {
	field_see_fn see;
	void *data;
	const struct op_defaults *defaults;
	bool is_path, is_user;
	bool any; /* a text that is not empty */
};

static void op_look_see(void *data, struct str text)
{
	struct op_look *l = data;

	if (l->is_path && text.n == 0)
		return; /* as good as none */
	l->any = true;
	l->see(l->data, text);
	if (l->is_user && str_is(text, "sandbox") && l->defaults->user.p)
		l->see(l->data, l->defaults->user);
}

static bool op_visit(const struct op *op, const void *request, struct op_defaults *d,
		     const char *pointer, field_see_fn see, void *data)
{
	const struct field *f = field_of_pointer(op->request, pointer);
	struct op_look l = { see, data, d, .is_path = f && (f->flags & FIELD_PATH) };

	l.is_user = f && (op->flags & OP_COMMANDS) && strcmp(pointer, "/user") == 0;
	if (!field_visit(op->request, request, pointer, op_look_see, &l))
		return false;
	if (l.is_path && !l.any && d->path.p) {
		d->path_counts = true;
		see(data, d->path);
	}
	return true;
}

bool op_show(const struct op *op, const void *request, struct op_defaults *d, const char *pointer,
	     bool whole, field_see_fn see, void *data)
{
	AUTO(arena_free) struct arena *a = NULL;
	const char *also = op_also(op, pointer);
	struct str line;
	struct err e;

	if (op->later && op_pointers_meet(op->later, pointer))
		return false;
	if (op->command && strcmp(pointer, OP_COMMAND_POINTER) == 0) {
		a = arena_new(2 * OP_COMMAND_MAX);
		if (!a || op->command(request, a, &line, &e) < 0)
			return false;
		see(data, line);
		if (whole)
			return true;
	}
	if (also && !op_visit(op, request, d, also, see, data))
		return false;
	return op_visit(op, request, d, pointer, see, data);
}

/* ---- the canonical form -------------------------------------------------------------------- */

/* The texts of one request must not read as those of another: bytes that are not UTF-8 have no
 * JSON of their own. */
static struct str op_check_text(void *data, const struct field *row, struct str text)
{
	bool *bad = data;

	*bad |= !(row->flags & FIELD_BYTES) && !utf8_valid(text);
	return STR_NONE; /* only looked at: nothing is copied */
}

static int op_check_texts(const struct op *op, const void *request, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(REQUEST_MAX);
	bool bad = false;

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (!field_copy(op->request, request, a, op_check_text, &bad, e))
		return -1;
	return bad ? err_set(e, ERR_INVALID, "%s: a text is not UTF-8", op->action) : 0;
}

int op_canonical(const struct op *op, const void *request, op_bytes_fn bytes, struct buf *to,
		 struct err *e)
{
	struct json_writer w = { .buf = to, .bytes = bytes };

	if (op_check_texts(op, request, e) < 0)
		return -1;
	json_write_object(&w);
	json_put_text(&w, "action", op->action);
	json_write_key(&w, "request");
	field_encode(op->request, request, &w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

int op_digest(const struct op *op, const void *request, char ret[OP_DIGEST], struct err *e)
{
	autobuf struct buf text = BUF_INIT(REQUEST_MAX);

	if (op_canonical(op, request, NULL, &text, e) < 0)
		return -1;
	if (text.n < REQUEST_LARGE) {
		sha256_hex(buf_str(&text), ret);
		return 0;
	}
	return hash_of(buf_str(&text), ret, e);
}
