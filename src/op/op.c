#include "op/op.h"

#include "base/hash.h"
#include "base/sha256.h"
#include "json/document/utf8.h"

/* Room for the largest file with every byte escaped. */
#define REQUEST_MAX ((size_t)256 << 20)

/* From here on the faster library is worth loading. */
enum { REQUEST_LARGE = 64 << 10 };

const char *const op_effect_names[OP_EFFECTS] = {
	[OP_READ] = "read",	  [OP_WRITE] = "write",		  [OP_EXECUTE] = "execute",
	[OP_DESTROY] = "destroy", [OP_ADMINISTER] = "administer",
};

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

int op_canonical(const struct op *op, const void *request, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	if (op_check_texts(op, request, e) < 0)
		return -1;
	json_write_object(&w);
	json_write_key(&w, "action");
	json_write_text(&w, op->action);
	json_write_key(&w, "request");
	field_encode(op->request, request, &w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

int op_digest(const struct op *op, const void *request, char ret[OP_DIGEST], struct err *e)
{
	autobuf struct buf text = BUF_INIT(REQUEST_MAX);
	AUTO(hash_free) struct hash *h = NULL;

	if (op_canonical(op, request, &text, e) < 0)
		return -1;
	if (text.n < REQUEST_LARGE) {
		sha256_hex(buf_str(&text), ret);
		return 0;
	}
	h = hash_new(e);
	if (!h)
		return -1;
	hash_add(h, text.p, text.n);
	hash_end(h, ret);
	return 0;
}
