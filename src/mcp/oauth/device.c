/* Device authorization, RFC 8628: a code for the person, who types it in elsewhere, and questions
 * meanwhile. */
#include "base/clock.h"
#include "mcp/oauth/internal.h"

static int take(struct mcp_oauth *o, struct str body, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(OAUTH_DOCUMENT_MAX * 2);
	const struct mcp_oauth_handler *h = o->opt.handler;
	struct oauth_device d;
	unsigned ms;

	if (!a)
		return oauth_no_memory(e);
	if (oauth_device_read(body, o->reach, a, &d, e) < 0)
		return -1;
	ms = d.expires_s * 1000 < o->opt.person_ms ? d.expires_s * 1000 : o->opt.person_ms;
	o->code = d.code;
	o->device_ms = d.interval_s * 1000;
	o->device_end = clock_ms() + ms;
	o->shown = true;
	oauth_flow_device_shown(o);
	h->device(o->opt.owner, d.url, d.user_code, d.url_complete, (ms + 999) / 1000);
	return 0;
}

static void on_answer(struct mcp_oauth *o, const struct oauth_answer *a, const struct err *why)
{
	struct err e = why ? *why : ERR_INIT;
	char word[OAUTH_WORD_MAX + 1];

	if (why) {
		err_wrap(&e, "device endpoint");
	} else if (a->status == 200) {
		if (take(o, a->body, &e) == 0)
			return;
	} else {
		oauth_refusal_read(a->body, word);
		err_set(&e, ERR_LOGIN, "the device endpoint refused: %s (HTTP %d)",
			word[0] ? word : "no reason given", a->status);
	}
	oauth_flow_failed(o, &e);
}

int oauth_device_start(struct mcp_oauth *o, struct err *e)
{
	autowipe struct buf form = BUF_INIT(OAUTH_FORM_MAX),
			    authorization = BUF_INIT(OAUTH_FORM_MAX);
	struct oauth_request q = { .url = o->issuer.device_endpoint,
				   .type = "application/x-www-form-urlencoded" };

	oauth_authorize_end(o);
	if (!buf_reserve(&form, OAUTH_FORM_ROOM, e) ||
	    oauth_client_prove(o->me, o->issuer.methods, o->issuer.jwt_algs, o->issuer.issuer,
			       &form, &authorization, e) < 0 ||
	    (o->scope.n > 0 && oauth_form_add(&form, "scope", buf_str(&o->scope), e) < 0) ||
	    oauth_form_add(&form, "resource", str_of(o->resource.resource), e) < 0)
		return -1;
	q.body = buf_str(&form);
	q.authorization = authorization.p;
	return oauth_fetch_start(o, &q, on_answer, e);
}
