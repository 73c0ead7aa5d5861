/*
 * Replies. A reply is queued as soon as it is known: inside the daemon's call if the route answers
 * at once, else on the suspended connection, which is then resumed.
 */
#include "http/server/internal.h"

#include <stdlib.h>

#include "base/failure.h"

/* ---- heads --------------------------------------------------------------------------------- */

/* 0, or -1 if the daemon refuses the header: control characters, or no memory. */
static int reply_add(struct MHD_Response *r, const char *name, const char *value)
{
	return MHD_add_response_header(r, name, value) == MHD_YES ? 0 : -1;
}

static int add_str(struct MHD_Response *r, const char *name, struct str value)
{
	char small[256];
	autofree char *large = NULL;
	char *text = small;

	if (!http_value_ok(value))
		return -1;
	if (value.n >= sizeof(small))
		text = large = malloc(value.n + 1);
	if (!text)
		return -1;
	if (value.n > 0)
		memcpy(text, value.p, value.n);
	text[value.n] = '\0';
	return reply_add(r, name, text);
}

int reply_headers(struct http_request *q, struct MHD_Response *r, const struct http_reply *reply)
{
	bool close = reply->close || q->conn->srv->closing;
	const char *expose = q->conn->srv->o.expose;

	if ((reply->type && reply_add(r, "Content-Type", reply->type) < 0) ||
	    (q->mark && reply_add(r, q->mark, q->mark_value) < 0) ||
	    (close && reply_add(r, "Connection", "close") < 0))
		return -1;
	/* a page of an allowed origin needs them to read the reply (Fetch, section 3.2) */
	if (q->head.cross &&
	    (add_str(r, "Access-Control-Allow-Origin", q->head.origin) < 0 ||
	     reply_add(r, "Vary", "Origin") < 0 ||
	     (expose && reply_add(r, "Access-Control-Expose-Headers", expose) < 0)))
		return -1;
	for (size_t i = 0; i < reply->n_headers; i++) {
		if (add_str(r, reply->headers[i].name, reply->headers[i].value) < 0)
			return -1;
	}
	return 0;
}

/* ---- bodies -------------------------------------------------------------------------------- */

void reply_late(struct http_request *q)
{
	struct MHD_Response *r = take_ptr(q->late);

	if (MHD_queue_response(q->conn->mhd, q->late_status, r) != MHD_YES)
		conn_kill(q->conn);
	MHD_destroy_response(r);
	conn_set_state(q->conn, CONN_REPLYING);
}

void reply_queue(struct http_request *q, unsigned status, struct MHD_Response *r)
{
	struct conn *c = q->conn;

	if (status / 100 < ARRAY_LEN(c->srv->stats.by_class))
		c->srv->stats.by_class[status / 100]++;
	/* The daemon takes no answer in the middle of a body, except before a body whose sender
	 * waits for 100 Continue. */
	if (r && q->body_events && c->state == CONN_BODY && !(q->running && q->head.expects)) {
		q->late = r;
		q->late_status = status;
		q->drops = true;
		request_end(q);
		conn_set_state(c, CONN_BODY);
		conn_resume(c);
		return;
	}
	if (!r || MHD_queue_response(c->mhd, status, r) != MHD_YES)
		conn_kill(c);
	if (r)
		MHD_destroy_response(r);
	request_end(q);
	conn_resume(c);
}

static struct MHD_Response *make_body(struct http_request *q, const struct http_reply *reply)
{
	char *text = (char *)(uintptr_t)reply->body.p;
	size_t n = reply->body.n;

	if (n == 0)
		return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	if (reply->owned)
		return MHD_create_response_from_buffer(n, reply->owned, MHD_RESPMEM_MUST_FREE);
	/* A small reply is stored in the memory of the request's body. */
	q->replies = n <= q->body.cap && q->body.cap <= BODY_KEPT;
	if (q->replies)
		return MHD_create_response_from_buffer(n, q->body.p, MHD_RESPMEM_PERSISTENT);
	return MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_COPY);
}

static struct MHD_Response *reply_make(struct http_request *q, const struct http_reply *reply)
{
	struct MHD_Response *r = make_body(q, reply);

	if (!r || reply->body.n == 0)
		free(reply->owned);
	if (r && reply_headers(q, r, reply) < 0) {
		MHD_destroy_response(r);
		return NULL;
	}
	if (r && q->replies)
		memmove(q->body.p, reply->body.p, reply->body.n);
	return r;
}

void http_reply(struct http_request *q, const struct http_reply *reply)
{
	struct MHD_Response *r = reply_make(q, reply);

	if (r)
		reply_queue(q, (unsigned)reply->status, r);
	else
		reply_queue(q, 500,
			    MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
}

/* ---- errors -------------------------------------------------------------------------------- */

static void put_text(struct buf *b, const char *key, const char *text)
{
	struct err e;

	if (buf_addf(b, &e, "\"%s\":\"", key) < 0)
		return;
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		int added = c < 0x20 || c == 0x7f ? buf_addf(b, &e, "\\u%04x", c)
			  : c == '"' || c == '\\' ? buf_addf(b, &e, "\\%c", c)
						  : buf_add(b, text, 1, &e);

		if (added < 0)
			return;
	}
	if (buf_add(b, "\"", 1, &e) < 0)
		return;
}

static void reply_put(struct buf *b, const char *text)
{
	struct err e;

	if (buf_add(b, text, strlen(text), &e) < 0)
		return;
}

/* The buffer is several times larger than the largest error, so nothing is cut. */
static void put_problem(struct buf *b, int status, const struct err *e)
{
	const struct err_info *info = err_info(e->code);
	const char *phrase = MHD_get_reason_phrase_for((unsigned)status);

	reply_put(b, "{\"error\":{");
	put_text(b, "code", info->name);
	reply_put(b, ",");
	put_text(b, "message", phrase ? phrase : info->name);
	reply_put(b, ",");
	put_text(b, "cause", e->msg);
	reply_put(b, ",");
	put_text(b, "remediation", info->remediation);
	reply_put(b, ",");
	put_text(b, "failure", err_failure_names[info->failure]);
	reply_put(b, info->retryable ? ",\"retryable\":true}}\n" : ",\"retryable\":false}}\n");
}

/* The table that writes errors of this path in a form of its own, or NULL. */
static const struct http_routes *explainer(const struct http_request *q)
{
	const struct http_options *o = &q->conn->srv->o;

	if (q->table && q->table->explain)
		return q->table;
	for (size_t i = 0; i < o->n_routes; i++) {
		if (o->routes[i].below && q->path.p && str_starts(q->path, o->routes[i].below))
			return &o->routes[i];
	}
	return NULL;
}

static void reply_error(struct http_request *q, const struct http_problem *problem,
			const struct http_header *headers, size_t n_headers, bool close)
{
	const struct http_routes *by = explainer(q);
	autobuf struct buf b = BUF_INIT(16 << 10);
	struct err e;

	if (!by || by->explain(problem, &b, &e) < 0) {
		b.n = 0;
		put_problem(&b, problem->status, problem->e);
	}
	http_reply(q, &(struct http_reply){
			      .status = problem->status,
			      .type = "application/json",
			      .body = buf_str(&b),
			      .headers = headers,
			      .n_headers = n_headers,
			      .close = close,
		      });
}

void http_reply_error(struct http_request *q, const struct err *e)
{
	static const struct http_header later = { "Retry-After", STR_LIT("1") };
	int status = err_info(e->code)->http;
	bool retry = status == 429 || status == 503;
	struct http_problem problem = { status, e, retry, q->path };

	reply_error(q, &problem, &later, retry ? 1 : 0, false);
}

/* ---- refusals ------------------------------------------------------------------------------ */

/* RFC 6750 section 3, RFC 9728 section 5.1. */
static struct str challenge(const struct http_request *q, char *to, size_t n)
{
	const char *metadata = q->conn->srv->o.metadata;
	int length = snprintf(to, n, "Bearer realm=\"holt\"%s",
			      q->head.n_authorizations > 0 ? ", error=\"invalid_token\"" : "");

	if (metadata && q->head.host.n + q->path.n < n / 2)
		length += snprintf(
			to + length, n - (size_t)length, ", resource_metadata=\"%s://%.*s%s%.*s\"",
			http_request_is_tls(q) ? "https" : "http", STR_ARG(q->head.host), metadata,
			memchr(q->path.p, '"', q->path.n) ? 0 : (int)q->path.n, q->path.p);
	return (struct str){ to, (size_t)length };
}

static void reply_preflight(struct http_request *q)
{
	struct http_header headers[] = {
		{ "Access-Control-Allow-Methods", STR_LIT("GET, HEAD, POST, PUT, PATCH, DELETE") },
		{ "Access-Control-Max-Age", STR_LIT("600") },
		{ "Access-Control-Allow-Headers",
		  http_request_header(q, STR_LIT("Access-Control-Request-Headers")) },
	};

	http_reply(q, &(struct http_reply){
			      .status = 204,
			      .headers = headers,
			      .n_headers = headers[2].value.n > 0 ? 3 : 2,
		      });
}

void reply_refusal(struct http_request *q)
{
	char text[1024];
	struct http_problem problem = { q->refusal, &q->why, 0, q->path };
	struct http_header h = { NULL };
	int length;

	if (q->refusal == 204) {
		reply_preflight(q);
		return;
	}
	q->conn->srv->stats.refused++;
	log_debug("%s: refused with %d: %s", q->conn->peer, q->refusal, q->why.msg);
	if (q->refusal == 401) {
		h = (struct http_header){ "WWW-Authenticate", challenge(q, text, sizeof(text)) };
	} else if (q->refusal == 405) {
		h = (struct http_header){ "Allow", str_of(strchr(q->why.msg, ':') + 2) };
	} else if (q->refusal == 429 || q->refusal == 503) {
		problem.retry_after = q->retry_after ? q->retry_after : 1;
		length = snprintf(text, sizeof(text), "%u", problem.retry_after);
		h = (struct http_header){ "Retry-After", { text, (size_t)length } };
	}
	reply_error(q, &problem, &h, h.name ? 1 : 0, q->must_close);
}
