#include "mcp/message/header_text.h"

#include <stdlib.h>

#include "base/base64.h"
#include "json/document/utf8.h"

static const struct str opening = { "=?base64?", 9 }, closing = { "?=", 2 };

/* Characters that are allowed anywhere in a header's value. */
static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if ((c < 0x20 && c != '\t') || c > 0x7e)
			return false;
	}
	return true;
}

/* True if every recipient reads the text back unchanged. Leading and trailing white space would be
 * lost, an empty header may be, and some recipients reject tabs. A text with the mark of an encoded
 * one at its beginning could be mistaken for it. */
static bool is_safe(struct str s)
{
	return s.n > 0 && is_plain(s) && !memchr(s.p, '\t', s.n) && str_trim(s).n == s.n &&
	       !str_starts(s, opening.p);
}

char *mcp_header_encode(struct str text, struct err *e)
{
	autobuf struct buf b = BUF_INIT(2 * MCP_HEADER_TEXT_MAX);

	if (text.n > MCP_HEADER_TEXT_MAX) {
		err_set(e, ERR_TOO_LARGE, "a header takes a text of at most %d bytes",
			MCP_HEADER_TEXT_MAX);
		return NULL;
	}
	if (is_safe(text))
		return buf_add(&b, text.p, text.n, e) < 0 ? NULL : buf_take(&b);
	if (buf_add(&b, opening.p, opening.n, e) < 0 || base64_encode(&b, text, e) < 0 ||
	    buf_add(&b, closing.p, closing.n, e) < 0)
		return NULL;
	return buf_take(&b);
}

bool mcp_header_decode(struct str header, struct buf *room, struct str *ret)
{
	struct err e;

	*ret = header;
	if (!is_plain(header))
		return false;
	if (header.n < opening.n + closing.n || !str_starts(header, opening.p) ||
	    !str_ends(header, closing.p))
		return true;
	if (base64_decode(room,
			  (struct str){ header.p + opening.n, header.n - opening.n - closing.n },
			  &e) < 0 ||
	    !utf8_valid(buf_str(room)))
		return false;
	*ret = buf_str(room);
	return true;
}
