/*
 * The sealed text is JSON: {"r": rounds, "s": the handler's state, "q": [{"k": key, "t": kind, "p":
 * parameters, "a": answer}, …]}. A question without "a" is open. The seal proves that we wrote it.
 * It is still parsed like any other text, since a server of another version may have the same keys.
 */
#include "mcp/server/internal.h"

#include <stdlib.h>

#include "base/base64.h"
#include "json/schema/schema.h"
#include "json/document/write.h"
#include "mcp/message/question.h"

/* --- questions --- */

static void question_free(struct mcp_asked *q)
{
	if (!q)
		return;
	json_free(q->params);
	json_free(q->answer);
	free(q->error);
	free(q);
}
AUTO_DEFINE(question_free, struct mcp_asked)

void mcp_asking_fini(struct mcp_asking *a)
{
	while (a->first) {
		struct mcp_asked *q = a->first;

		a->first = q->next;
		question_free(q);
	}
	free(a->state);
	*a = (struct mcp_asking){ 0 };
}

struct mcp_asked *mcp_asking_find(const struct mcp_asking *a, struct str key)
{
	for (struct mcp_asked *q = a->first; q; q = q->next) {
		if (str_is(key, q->key))
			return q;
	}
	return NULL;
}

int mcp_asking_set_state(struct mcp_asking *a, struct str state, struct err *e)
{
	char *copy = state.p ? malloc(state.n + 1) : NULL;

	if (state.n > MCP_ASK_BYTES_MAX) {
		free(copy);
		return err_set(e, ERR_TOO_LARGE, "a state of %zu bytes", state.n);
	}
	if (state.p && !copy)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (copy && state.n > 0)
		memcpy(copy, state.p, state.n);
	free(a->state);
	a->state = copy;
	a->state_n = state.n;
	return 0;
}

static int take_bytes(struct mcp_asking *a, size_t n, struct err *e)
{
	if (n > MCP_ASK_BYTES_MAX - a->bytes)
		return err_set(e, ERR_TOO_LARGE,
			       "the questions and answers of one call take more than %d bytes",
			       MCP_ASK_BYTES_MAX);
	a->bytes += n;
	return 0;
}

/* Takes params, also on failure. */
static struct mcp_asked *asking_add(struct mcp_asking *a, struct str key, enum mcp_ask_kind kind,
				    struct json_doc *params, struct err *e)
{
	AUTO(question_free) struct mcp_asked *q = calloc(1, sizeof(*q));

	if (!q) {
		json_free(params);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	q->params = params;
	q->kind = kind;
	if (key.n == 0 || key.n > MCP_ASK_KEY_MAX || memchr(key.p, '\0', key.n)) {
		err_set(e, ERR_BUG, "a question's key takes 1 to %d bytes", MCP_ASK_KEY_MAX);
		return NULL;
	}
	memcpy(q->key, key.p, key.n);
	if (mcp_asking_find(a, key))
		return err_set(e, ERR_BUG, "%s was asked already", q->key), NULL;
	if (mcp_question_check(kind, params ? json_root(params) : NULL, e) < 0)
		return err_wrap(e, "%s", q->key), NULL;
	*(a->last ? &a->last->next : &a->first) = q;
	a->last = q;
	a->n++;
	a->open++;
	return take_ptr(q);
}

/* Checked before it is asked, since an answer could not be checked against an invalid question. */
static int check_schema(enum mcp_ask_kind kind, const struct json_doc *params, struct err *e)
{
	const struct json_val *v = params ? json_get(json_root(params), "requestedSchema") : NULL;
	struct schema *s;

	if (kind != MCP_ASK_FORM || json_type(v) != JSON_OBJECT)
		return 0;
	s = schema_new(v, NULL, e);
	if (!s) {
		e->code = e->code == ERR_LIMIT ? ERR_LIMIT : ERR_BUG;
		return err_wrap(e, "requestedSchema");
	}
	schema_free(s);
	return 0;
}

struct mcp_asked *mcp_asking_add(struct mcp_asking *a, struct str key, enum mcp_ask_kind kind,
				 struct str params, struct err *e)
{
	struct json_doc *doc = NULL;

	if (params.p) {
		doc = json_parse(params, NULL, e);
		if (!doc) {
			e->code = e->code == ERR_LIMIT ? ERR_LIMIT : ERR_BUG;
			return err_wrap(e, "params of %.*s", STR_ARG(key)), NULL;
		}
	}
	if (take_bytes(a, params.n, e) < 0 || check_schema(kind, doc, e) < 0) {
		json_free(doc);
		return NULL;
	}
	return asking_add(a, key, kind, doc, e);
}

int mcp_asking_append(struct mcp_asking *a, struct mcp_asking *from, struct err *e)
{
	if (take_bytes(a, from->bytes, e) < 0)
		return -1;
	if (from->first) {
		*(a->last ? &a->last->next : &a->first) = from->first;
		a->last = from->last;
		a->n += from->n;
		a->open += from->open;
	}
	from->first = from->last = NULL;
	mcp_asking_fini(from);
	return 0;
}

/* Copies v into a document of its own, since its document may be freed. */
static struct json_doc *copy_of(const struct json_val *v, size_t *ret_n, struct err *e)
{
	autobuf struct buf text = BUF_INIT(MCP_ASK_BYTES_MAX);
	struct json_writer w = json_writer(&text);

	json_write_val(&w, v);
	if (json_write_done(&w, e) < 0)
		return NULL;
	*ret_n = text.n;
	return json_parse(buf_str(&text), NULL, e);
}

static void put_answer(struct mcp_asking *a, struct mcp_asked *q, struct json_doc *answer)
{
	q->answer = answer;
	q->state = MCP_ASKED_ANSWERED;
	a->open--;
}

int mcp_asked_answer(struct mcp_asking *a, struct mcp_asked *q, const struct json_val *v,
		     struct err *e)
{
	AUTO(json_free) struct json_doc *copy = NULL;
	size_t n = 0;

	if (mcp_answer_check(q->kind, q->params ? json_root(q->params) : NULL, v, e) < 0)
		return err_wrap(e, "%s", q->key);
	copy = copy_of(v, &n, e);
	if (!copy || take_bytes(a, n, e) < 0)
		return err_wrap(e, "%s", q->key);
	put_answer(a, q, take_ptr(copy));
	return 0;
}

void mcp_asked_fail(struct mcp_asking *a, struct mcp_asked *q, struct str why)
{
	q->error = strndup(why.p ? why.p : "", why.n);
	q->state = MCP_ASKED_FAILED;
	a->open--;
}

/* --- as text --- */

static void write_question(struct json_writer *w, const struct mcp_asked *q)
{
	json_write_object(w);
	json_put_text(w, "k", q->key);
	json_put_int(w, "t", q->kind);
	if (q->params)
		json_put_val(w, "p", json_root(q->params));
	if (q->answer)
		json_put_val(w, "a", json_root(q->answer));
	json_write_object_end(w);
}

static void write_asking(struct json_writer *w, const struct mcp_asking *a)
{
	json_write_object(w);
	json_put_uint(w, "r", a->rounds);
	if (a->state) {
		json_put_base64(w, "s", (struct str){ a->state, a->state_n });
	}
	json_put_array(w, "q");
	for (const struct mcp_asked *q = a->first; q; q = q->next)
		write_question(w, q);
	json_write_array_end(w);
	json_write_object_end(w);
}

int mcp_asking_seal(const struct mcp_asking *a, const struct seal_ring *ring, struct str context,
		    uint64_t expires, struct buf *to, struct err *e)
{
	autobuf struct buf text = BUF_INIT(SEAL_PLAIN_MAX);
	struct json_writer w = json_writer(&text);

	write_asking(&w, a);
	if (json_write_done(&w, e) < 0)
		return -1;
	return seal(ring, to, buf_str(&text), context, expires, e);
}

static int open_question(struct mcp_asking *a, const struct json_val *v, struct err *e)
{
	const struct json_val *params = json_get(v, "p"), *answer = json_get(v, "a");
	struct json_doc *copy = NULL;
	struct mcp_asked *q;
	int64_t kind = -1;
	size_t n = 0;

	if (!json_int64(json_get(v, "t"), &kind) || kind < 0 || kind > MCP_ASK_ROOTS)
		return err_set(e, ERR_INVALID, "a question of an unknown kind");
	if (params) {
		copy = copy_of(params, &n, e);
		if (!copy)
			return -1;
	}
	q = asking_add(a, json_str(json_get(v, "k")), (enum mcp_ask_kind)kind, copy, e);
	if (!q || take_bytes(a, n, e) < 0)
		return -1;
	if (!answer)
		return 0;
	copy = copy_of(answer, &n, e);
	if (!copy)
		return -1;
	put_answer(a, q, copy);
	return take_bytes(a, n, e);
}

static int open_asking(struct mcp_asking *a, const struct json_val *v, struct err *e)
{
	struct json_iter it = json_iter(json_get(v, "q"));
	const struct json_val *state = json_get(v, "s");
	autobuf struct buf raw = BUF_INIT(MCP_ASK_BYTES_MAX);
	uint64_t rounds = MCP_ASK_ROUNDS_MAX;

	json_uint64(json_get(v, "r"), &rounds);
	a->rounds = rounds < MCP_ASK_ROUNDS_MAX ? (unsigned)rounds : MCP_ASK_ROUNDS_MAX;
	while (json_next(&it)) {
		if (open_question(a, it.val, e) < 0)
			return -1;
	}
	if (!state)
		return 0;
	if (base64_decode(&raw, json_str(state), e) < 0)
		return -1;
	return mcp_asking_set_state(a, buf_str(&raw), e);
}

int mcp_asking_open(struct mcp_asking *a, const struct seal_ring *ring, struct str context,
		    uint64_t now, struct str text, struct err *e)
{
	/* a form's schema may be nested as deeply as a message's */
	const struct json_options bounds = { .depth = 2 * JSON_DEPTH_MAX };
	autobuf struct buf plain = BUF_INIT(SEAL_PLAIN_MAX);
	AUTO(json_free) struct json_doc *d = NULL;

	if (seal_open(ring, &plain, text, context, now, e) < 0)
		return -1;
	d = json_parse(buf_str(&plain), &bounds, e);
	if (!d || open_asking(a, json_root(d), e) < 0) {
		mcp_asking_fini(a);
		return -1;
	}
	return 0;
}
