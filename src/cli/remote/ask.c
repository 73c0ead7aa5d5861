#include "cli/remote/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/id.h"
#include "cli/link/link.h"

enum { HEADERS_MAX = 8, BEARER_MAX = 8192, VALUES_MAX = 1 << 18, DEPTH_MAX = 32 };

static void on_head(void *owner, struct http_exchange *x, int status)
{
	struct remote_call *c = owner;

	c->status = status;
	if (status >= 300 && status < 400)
		http_redirect_place(http_exchange_header(x, "Location"), c->place);
}

static void asked(struct remote_call *c)
{
	struct err e = c->err;

	c->x = NULL;
	if (e.code != ERR_NONE)
		remote_fail(c, &e);
	else if (c->then(c, &e) < 0)
		remote_fail(c, &e);
}

static void on_bytes(void *owner, struct http_exchange *x, struct str bytes)
{
	struct remote_call *c = owner;
	int more = 1;

	if (c->take && c->status == 200)
		more = c->take(c, bytes);
	else if (buf_add(&c->came, bytes.p, bytes.n, &c->err) < 0)
		more = err_set(&c->err, ERR_TOO_LARGE, "the server's answer is too large");
	if (more > 0)
		return;
	http_exchange_cancel(x);
	asked(c);
}

static void on_end(void *owner, struct http_exchange *x, const struct err *e)
{
	struct remote_call *c = owner;

	if (e) {
		c->sent = http_exchange_sent(x);
		c->err = *e;
		err_wrap(&c->err, "%.100s", c->r->url);
	}
	asked(c);
}

int remote_ask(struct remote_call *c, const struct remote_question *q,
	       int (*take)(struct remote_call *c, struct str bytes), remote_step *then,
	       struct err *e)
{
	static const struct http_exchange_events events = { on_head, on_bytes, on_end };
	struct http_header headers[HEADERS_MAX];
	struct http_spec spec = { .method = q->method,
				  .headers = headers,
				  .body = q->body,
				  .whole_ms = (q->seconds ? q->seconds : REMOTE_TIME_S) * 1000 };
	struct buf bearer = BUF_INIT(BEARER_MAX);
	char url[REMOTE_PATH_MAX + 4096], key[ID_MAX];

	json_free(take_ptr(c->answer));
	buf_fini(&c->came);
	c->came.of = &c->r->came;
	c->status = 0;
	c->acts = !q->once && c->tool && c->tool->row->tool->op->effect != OP_READ;
	c->sent = false;
	c->err = ERR_INIT;
	c->take = take;
	c->then = then;
	snprintf(url, sizeof(url), "%s%s", c->r->url, q->path);
	spec.url = url;
	for (size_t i = 0; i < q->n_headers; i++)
		headers[spec.n_headers++] = q->headers[i];
	if (q->once) {
		id_make(key, "once");
		headers[spec.n_headers++] = (struct http_header){ "Idempotency-Key", str_of(key) };
	}
	if (q->body.p)
		headers[spec.n_headers++] = (struct http_header){
			"Content-Type", str_of(q->type ? q->type : "application/json")
		};
	if (c->r->token && buf_addf(&bearer, e, "Bearer %.*s",
				    STR_ARG(secret_expose(c->r->token, "sent to its server"))) == 0)
		headers[spec.n_headers++] = (struct http_header){ "Authorization",
								  buf_str(&bearer) };
	c->x = e->code == ERR_NONE ? http_exchange_start(c->r->http, &spec, &events, c, e) : NULL;
	buf_wipe(&bearer);
	return c->x ? 0 : -1;
}

/* ---- what came ----------------------------------------------------------------------------- */

const struct json_val *remote_document(struct remote_call *c)
{
	const struct json_options o = { .bytes = REMOTE_ANSWER_MAX,
					.values = VALUES_MAX,
					.depth = DEPTH_MAX };
	struct err e;

	if (!c->answer)
		c->answer = json_parse(buf_str(&c->came), &o, &e);
	return json_root(c->answer);
}

bool remote_has_no_route(struct remote_call *c)
{
	const struct json_val *error;

	if (c->status != 404)
		return c->status == 405 || c->status == 501 || c->status == 415;
	error = json_get(remote_document(c), "error"); /* mitos and Holt say it with a code */
	return !str_is(json_str(json_get(error, "code")), "not_found");
}

static enum err_code code_of_status(int status)
{
	switch (status) {
	case 400:
	case 422:
		return ERR_INVALID;
	case 401:
		return ERR_UNAUTHORIZED;
	case 403:
		return ERR_DENIED;
	case 404:
	case 405:
	case 501:
		return ERR_ROUTE;
	case 409:
		return ERR_CONFLICT;
	case 413:
		return ERR_TOO_LARGE;
	case 429:
		return ERR_LIMIT;
	case 504:
		return ERR_TIMEOUT;
	default:
		return ERR_TRANSPORT;
	}
}

int remote_check(struct remote_call *c, struct err *e)
{
	const struct json_val *v;
	struct str text;

	if (c->status >= 200 && c->status < 300)
		return 0;
	if (c->status >= 300 && c->status < 400)
		return err_set(
			e, ERR_TRANSPORT,
			"the server sends the request elsewhere (status %d, to %s), where it "
			"is not sent with a token",
			c->status, c->place);
	v = remote_document(c);
	if (json_type(json_get(v, "error")) == JSON_OBJECT)
		return hub_link_refusal(v, e);
	text = json_str(json_get(v, "error")); /* others have {"error":"…"} or {"message":"…"} */
	if (!text.n)
		text = json_str(json_get(v, "message"));
	return err_set(e, code_of_status(c->status), "the server answers with status %d%s%.*s",
		       c->status, text.n ? ": " : "", STR_CUT(text, 200));
}

const struct json_val *remote_answer(struct remote_call *c, struct err *e)
{
	const struct json_val *v;

	if (remote_check(c, e) < 0)
		return NULL;
	v = remote_document(c);
	if (json_type(v) == JSON_OBJECT || json_type(v) == JSON_ARRAY)
		return v;
	err_set(e, ERR_TRANSPORT, "the server's answer is no JSON, so it is no sandbox server");
	return NULL;
}

/* ---- paths --------------------------------------------------------------------------------- */

bool remote_escape(char ret[REMOTE_PATH_MAX], struct str text)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	size_t n = strlen(ret);

	if (text.n > (REMOTE_PATH_MAX - n - 1) / 3)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] && strchr(plain, text.p[i]))
			ret[n++] = text.p[i];
		else
			n += (size_t)sprintf(ret + n, "%%%02X", (unsigned char)text.p[i]);
	}
	ret[n] = '\0';
	return true;
}

int remote_path(char ret[REMOTE_PATH_MAX], struct str id, const char *more, struct err *e)
{
	char name[API_ID_MAX + 1];

	snprintf(name, sizeof(name), "%.*s", STR_ARG(id));
	if (id.n > API_ID_MAX || strlen(name) != id.n)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "no sandbox can be called so");
	return hub_link_path(ret, REMOTE_PATH_MAX, name, more, e);
}
