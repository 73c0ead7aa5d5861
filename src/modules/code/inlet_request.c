#include "modules/code/inlet_request.h"

#include "json/document/json.h"
#include "json/document/write.h"

enum { DEPTH = 64, VALUES = 1 << 16 };

static const char *const does[INLET_DOES] = {
	[INLET_LIST] = "list", [INLET_INFO] = "info", [INLET_CALL] = "call"
};

/* A member that is a text, or is not there. */
static int read_text(const struct json_val *of, const char *name, struct arena *a, struct str *ret,
		     struct err *e)
{
	const struct json_val *v = json_get(of, name);
	struct str s = json_str(v);

	*ret = STR_NONE;
	if (!v)
		return 0;
	if (!s.p)
		return err_set(e, ERR_INVALID, "%s: a string", name);
	*ret = (struct str){ arena_dup(a, s, e), s.n };
	return ret->p ? 0 : -1;
}

static int read_arguments(const struct json_val *v, struct arena *a, struct str *ret, struct err *e)
{
	autobuf struct buf text = BUF_INIT(2 * INLET_REQUEST_MAX);
	struct json_writer w = json_writer(&text);

	*ret = STR_LIT("{}");
	if (!v)
		return 0;
	if (json_type(v) != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "arguments: an object");
	json_write_val(&w, v);
	if (json_write_done(&w, e) < 0)
		return -1;
	*ret = (struct str){ arena_dup(a, buf_str(&text), e), text.n };
	return ret->p ? 0 : -1;
}

static int read_what(struct str what, enum inlet_do *ret, struct err *e)
{
	for (int i = 0; i < INLET_DOES; i++) {
		if (str_is(what, does[i])) {
			*ret = (enum inlet_do)i;
			return 0;
		}
	}
	return err_set(e, ERR_INVALID, "do: \"list\", \"info\" or \"call\"");
}

static int read_request(struct str text, struct arena *a, struct inlet_request *ret, struct err *e)
{
	const struct json_options o = { .depth = DEPTH, .values = VALUES };
	AUTO(json_free) struct json_doc *doc = json_parse(text, &o, e);
	const struct json_val *v = json_root(doc);

	if (!doc || read_what(json_str(json_get(v, "do")), &ret->what, e) < 0 ||
	    read_text(v, "module", a, &ret->module, e) < 0 ||
	    read_text(v, "tool", a, &ret->tool, e) < 0 ||
	    read_arguments(json_get(v, "arguments"), a, &ret->arguments, e) < 0)
		return -1;
	ret->text = json_bool(json_get(v, "text"));
	if (ret->what != INLET_LIST && !ret->module.n)
		return err_set(e, ERR_INVALID, "module: it is missing");
	if (ret->what == INLET_CALL && !ret->tool.n)
		return err_set(e, ERR_INVALID, "tool: it is missing");
	return 1;
}

int inlet_read(struct str in, struct arena *a, struct inlet_request *ret, struct err *e)
{
	const unsigned char *p = (const unsigned char *)in.p;
	size_t n;

	*ret = (struct inlet_request){ .what = INLET_LIST };
	if (in.n < INLET_HEAD)
		return 0;
	n = p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
	if (n > INLET_REQUEST_MAX)
		return err_set(e, ERR_TOO_LARGE, "a request has at most %d bytes",
			       INLET_REQUEST_MAX);
	if (in.n > n + INLET_HEAD)
		return err_set(e, ERR_INVALID, "there is more than one request");
	if (in.n < n + INLET_HEAD)
		return 0;
	return read_request((struct str){ in.p + INLET_HEAD, n }, a, ret, e);
}

int inlet_say(struct buf *to, enum inlet_answer how, struct str text, struct err *e)
{
	size_t n = text.n + 1;
	const char head[] = { (char)(n & 0xff), (char)(n >> 8 & 0xff), (char)(n >> 16 & 0xff),
			      (char)(n >> 24 & 0xff), (char)how };

	return buf_add(to, head, sizeof(head), e) < 0 ? -1 : buf_add(to, text.p, text.n, e);
}

/* Their texts, with an end of line between two. False: there is something else. */
static int say_texts(const struct json_val *content, struct buf *to, bool *ret, struct err *e)
{
	struct json_iter it = json_iter(content);

	*ret = true;
	while (json_next(&it)) {
		struct str text = json_str(json_get(it.val, "text"));

		if (!text.p)
			*ret = false;
		else if ((to->n && buf_add(to, "\n", 1, e) < 0) ||
			 buf_add(to, text.p, text.n, e) < 0)
			return -1;
	}
	return 0;
}

int inlet_say_text(struct buf *to, struct str result, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(result, NULL, e);
	const struct json_val *v = json_root(doc), *shown = json_get(v, "structuredContent");
	autobuf struct buf text = BUF_INIT(INLET_ANSWER_MAX);
	struct json_writer w = json_writer(&text);
	bool failed = json_bool(json_get(v, "isError")), all = true;

	if (json_type(shown) == JSON_NULL)
		shown = NULL;
	if (!doc || (!shown && say_texts(json_get(v, "content"), &text, &all, e) < 0))
		return -1;
	if (!all) {
		shown = json_get(v, "content");
		buf_drop(&text, text.n);
	}
	if (shown) {
		json_write_val(&w, shown);
		if (json_write_done(&w, e) < 0)
			return -1;
	}
	return inlet_say(to, failed ? INLET_ERROR : INLET_RESULT, buf_str(&text), e);
}
