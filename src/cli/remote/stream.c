/*
 * Connect streams (JSON): messages of one byte of flags and four of length, the last of which has
 * the flag 2 and says whether there was an error.
 */
#include "cli/remote/internal.h"

#include "door/http/frame.h"

enum { VALUES_MAX = 1024, DEPTH_MAX = 16 };

/* Codes of Connect that are not ours to mend. */
static enum err_code code_of(struct str code)
{
	static const struct {
		const char *name;
		enum err_code code;
	} codes[] = {
		{ "invalid_argument", ERR_INVALID },	 { "not_found", ERR_SANDBOX_NOT_FOUND },
		{ "permission_denied", ERR_DENIED },	 { "unauthenticated", ERR_UNAUTHORIZED },
		{ "resource_exhausted", ERR_LIMIT },	 { "deadline_exceeded", ERR_TIMEOUT },
		{ "failed_precondition", ERR_CONFLICT }, { "canceled", ERR_CANCELLED },
		{ "unimplemented", ERR_UNSUPPORTED },	 { "unavailable", ERR_TRANSPORT },
	};

	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		if (str_is(code, codes[i].name))
			return codes[i].code;
	}
	return ERR_IO;
}

static int take_message(struct remote_call *c, struct remote_stream *s, unsigned flags,
			struct str text, struct err *e)
{
	const struct json_options o = { .bytes = REMOTE_ANSWER_MAX,
					.values = VALUES_MAX,
					.depth = DEPTH_MAX };
	AUTO(json_free) struct json_doc *doc = NULL;
	const struct json_val *error;

	if (flags & ~(unsigned)FRAME_END)
		return err_set(e, ERR_TRANSPORT, "the server's stream is not Connect's");
	doc = json_parse(text, &o, e);
	if (!doc)
		return err_wrap(e, "a message of the server's stream");
	if (!(flags & FRAME_END))
		return s->on_message(c, json_root(doc), e);
	s->ended = true;
	error = json_get(json_root(doc), "error");
	if (json_type(error) != JSON_OBJECT)
		return 0;
	return err_set(e, code_of(json_str(json_get(error, "code"))), "%.*s",
		       STR_CUT(json_str(json_get(error, "message")), 240));
}

int remote_stream_take(struct remote_call *c, struct str bytes)
{
	struct remote_stream *s = c->state;
	int more = 1;

	if (buf_add(&s->part, bytes.p, bytes.n, &c->err) < 0)
		return err_set(&c->err, ERR_TOO_LARGE, "the server's answer is too large");
	while (more > 0 && s->part.n >= FRAME_HEAD) {
		const unsigned char *p = (const unsigned char *)s->part.p;
		size_t n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];

		if (n > REMOTE_ANSWER_MAX)
			return err_set(&c->err, ERR_TOO_LARGE, "the server's answer is too large");
		if (s->part.n - FRAME_HEAD < n)
			return 1;
		more = take_message(c, s, p[0], (struct str){ s->part.p + FRAME_HEAD, n }, &c->err);
		buf_drop(&s->part, FRAME_HEAD + n);
	}
	return more;
}

int remote_stream_put(struct buf *to, struct str json, struct err *e)
{
	char head[FRAME_HEAD];

	frame_head(head, 0, json.n);
	if (buf_add(to, head, sizeof(head), e) < 0)
		return -1;
	return buf_add(to, json.p, json.n, e);
}
