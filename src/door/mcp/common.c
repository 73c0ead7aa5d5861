#include "door/mcp/common.h"

#include "base/base64.h"

const char *const encoding_names[ENCODINGS] = {
	[ENCODING_UTF8] = "utf-8",
	[ENCODING_BASE64] = "base64",
};

int tool_bytes(struct call *c, const char *name, struct str text, enum encoding encoding,
	       struct str *ret, struct err *e)
{
	char *room;
	autobuf struct buf bytes = BUF_INIT(text.n);

	*ret = text;
	if (encoding != ENCODING_BASE64 || text.n == 0)
		return 0;
	if (base64_decode(&bytes, text, e) < 0)
		return err_wrap(e, "%s", name);
	room = arena_dup(call_arena(c), buf_str(&bytes), e);
	if (!room)
		return -1;
	*ret = (struct str){ room, bytes.n };
	return 0;
}
