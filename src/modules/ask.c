/*
 * What a server asks in the middle of a call: forms, addresses to open, and words of the client's
 * model. A question belongs to a call that is open. Legacy servers over stdio do not say to which:
 * then it is the newest that nothing was asked for yet, if the connection has served one principal.
 * A question that belongs to none is refused, and none outlives its call.
 */
#include "base/log.h"
#include "json/document/put.h"
#include "modules/code/clean.h"
#include "modules/code/form.h"
#include "modules/internal.h"

enum {
	ASK_OPEN_MAX = 4, /* of a call, at once */
	ASK_ALL_MAX = 32, /* of a call */
	ASK_FORM_MAX = 64 << 10,
	ASK_SAMPLING_MAX = 1 << 20,
	ASK_MESSAGE_CHARS = 1900,
};

struct upstream_question {
	struct upstream_question *next; /* of the call */
	struct upstream_call *of;
	struct mcp_question *q;
	char *params; /* owned */
	void *data;
};

/* ---- what is shown ------------------------------------------------------------------------- */

/* It says who asks, since a client may show it as its own server's. */
static int ask_write_message(struct json_writer *w, const struct upstream *u, struct str message,
			     struct err *e)
{
	autobuf struct buf b = BUF_INIT(ASK_FORM_MAX);

	if (buf_addf(&b, e, "Module %s asks: ", u->name) < 0 ||
	    clean_text(&b, message, CLEAN_TEXT, ASK_MESSAGE_CHARS, e) < 0)
		return -1;
	json_put_str(w, "message", buf_str(&b));
	return 0;
}

static int ask_write_form(struct json_writer *w, const struct json_val *params, struct err *e)
{
	autobuf struct buf b = BUF_INIT(ASK_FORM_MAX);

	if (clean_json(&b, json_get(params, "requestedSchema"), CLEAN_TEXT, e) < 0)
		return -1;
	json_put_raw(w, "requestedSchema", buf_str(&b));
	return 0;
}

static void ask_write_members(struct json_writer *w, const struct json_val *params,
			      const char *const *names)
{
	for (; *names; names++) {
		const struct json_val *v = json_get(params, *names);

		if (v)
			json_put_val(w, *names, v);
	}
}

/* The words for a model go as they are, but never with what the client knows from others
 * (includeContext). */
static char *ask_text(const struct upstream *u, enum mcp_ask_kind kind,
		      const struct json_val *params, struct err *e)
{
	static const char *const sampling[] = { "messages",    "modelPreferences", "systemPrompt",
						"temperature", "maxTokens",	   "stopSequences",
						NULL };
	static const char *const url[] = { "mode", "url", "elicitationId", NULL };
	autobuf struct buf b = BUF_INIT(kind == MCP_ASK_SAMPLING ? ASK_SAMPLING_MAX
								 : 2 * ASK_FORM_MAX);
	struct json_writer w = json_writer(&b);
	int rc = 0;

	json_write_object(&w);
	if (kind == MCP_ASK_SAMPLING) {
		ask_write_members(&w, params, sampling);
	} else {
		rc = ask_write_message(&w, u, json_str(json_get(params, "message")), e);
		if (kind == MCP_ASK_URL)
			ask_write_members(&w, params, url);
		else if (rc == 0)
			rc = ask_write_form(&w, params, e);
	}
	json_write_object_end(&w);
	return rc < 0 || json_write_done(&w, e) < 0 ? NULL : buf_take(&b);
}

/* ---- which are taken ----------------------------------------------------------------------- */

static struct upstream_call *ask_call(const struct upstream_conn *k, const struct mcp_question *q)
{
	const struct mcp_pending *p = mcp_question_pending(q);
	struct upstream_call *c = p || !k->mixed ? k->calls : NULL;

	while (c && (p ? c->pending != p : c->asked != NULL))
		c = c->next;
	return c;
}

static int ask_check(const struct upstream_call *c, const struct mcp_question *q, struct err *e)
{
	const char *secret;
	unsigned open = 0;

	if (!c)
		return err_set(e, ERR_DENIED, "no call is open that this question can belong to");
	if (!c->on_asked)
		return err_set(e, ERR_CLIENT_CANT, "nobody can be asked for this call");
	for (const struct upstream_question *o = c->asked; o; o = o->next)
		open++;
	if (open >= ASK_OPEN_MAX || c->asks >= ASK_ALL_MAX)
		return err_set(e, ERR_LIMIT,
			       "at most %d questions at once and %d in all for a call",
			       ASK_OPEN_MAX, ASK_ALL_MAX);
	secret = mcp_question_kind(q) == MCP_ASK_FORM ? form_wants_secret(mcp_question_params(q))
						      : NULL;
	if (secret)
		return err_set(e, ERR_DENIED,
			       "a form that asks for a secret (\"%s\") is shown to nobody", secret);
	return 0;
}

static struct upstream_question *ask_new(struct upstream_call *c, struct mcp_question *q,
					 struct err *e)
{
	struct upstream_question *uq = calloc(1, sizeof(*uq));
	char *params = ask_text(c->of, mcp_question_kind(q), mcp_question_params(q), e);

	if (!uq || !params) {
		if (!uq)
			err_set(e, ERR_LIMIT, "out of memory");
		free(params);
		free(uq);
		return NULL;
	}
	*uq = (struct upstream_question){ .next = c->asked, .of = c, .q = q, .params = params };
	c->asked = uq;
	c->asks++;
	mcp_question_set_data(q, uq);
	return uq;
}

static void ask_free(struct upstream_question *uq)
{
	struct upstream_question **at = &uq->of->asked;

	while (*at != uq)
		at = &(*at)->next;
	*at = uq->next;
	free(uq->params);
	free(uq);
}

void ask_on_asked(void *owner, struct mcp_question *q)
{
	struct upstream_conn *k = owner;
	struct upstream_call *c = ask_call(k, q);
	struct upstream_question *uq = NULL;
	struct err e = ERR_INIT;

	if (ask_check(c, q, &e) == 0)
		uq = ask_new(c, q, &e);
	if (uq) {
		c->on_asked(c->owner, uq);
		return;
	}
	log_info("module %.*s: its question is refused: %s", STR_ARG(k->server->name), e.msg);
	mcp_question_fail(q, e.msg);
}

/* ---- their ends ---------------------------------------------------------------------------- */

void ask_on_withdrawn(void *owner, struct mcp_question *q)
{
	struct upstream_question *uq = mcp_question_data(q);

	if (!uq)
		return;
	uq->of->on_unasked(uq->of->owner, uq);
	ask_free(uq);
}

void ask_end(struct upstream_call *c)
{
	while (c->asked) {
		struct upstream_question *uq = c->asked;
		struct mcp_question *q = uq->q;

		c->on_unasked(c->owner, uq);
		mcp_question_set_data(q, NULL);
		ask_free(uq);
		mcp_question_fail(q, "the call that it belongs to has ended");
	}
}

enum mcp_ask_kind upstream_question_kind(const struct upstream_question *uq)
{
	return mcp_question_kind(uq->q);
}

struct str upstream_question_params(const struct upstream_question *uq)
{
	return str_of(uq->params);
}

void upstream_question_set_data(struct upstream_question *uq, void *data)
{
	uq->data = data;
}

void *upstream_question_data(const struct upstream_question *uq)
{
	return uq->data;
}

void upstream_question_answer(struct upstream_question *uq, struct str result)
{
	struct mcp_question *q = uq->q;
	struct err e = ERR_INIT;

	mcp_question_set_data(q, NULL);
	ask_free(uq);
	if (mcp_question_answer(q, result, &e) < 0)
		mcp_question_fail(q, e.msg);
}

void upstream_question_fail(struct upstream_question *uq, const char *why)
{
	struct mcp_question *q = uq->q;

	mcp_question_set_data(q, NULL);
	ask_free(uq);
	mcp_question_fail(q, why);
}
