#include "op/op.h"

#include "base/hash.h"

const char *const op_effect_names[OP_EFFECTS] = {
	[OP_READ] = "read",	  [OP_WRITE] = "write",		  [OP_EXECUTE] = "execute",
	[OP_DESTROY] = "destroy", [OP_ADMINISTER] = "administer",
};

int op_canonical(const struct op *op, const void *request, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

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
	/* Room for the largest file with every byte escaped. */
	autobuf struct buf text = BUF_INIT((size_t)256 << 20);
	AUTO(hash_free) struct hash *h = hash_new(e);

	if (!h || op_canonical(op, request, &text, e) < 0)
		return -1;
	hash_add(h, text.p, text.n);
	hash_end(h, ret);
	return 0;
}
