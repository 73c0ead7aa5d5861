/*
 * The start of a connection: initialize, whose answer names the revision, or server/discover, whose
 * answer lists everything about the server. A server that refuses the revision and names others is
 * asked once more. MCP 2025-11-25, basic/lifecycle; 2026-07-28, server/discover, basic/versioning.
 *
 *	NEW -> BEGINS -> READY <-> REOPENS
 *	 ^        |
 *	 +--------+	unfit: the transport tries another era
 */
#include "mcp/client/internal.h"

#include "base/log.h"

enum {
	TRIES_MAX = 2, /* first messages, each with another revision */
	RELAPSES_MAX = 3, /* sessions in a row that are lost at once */
	/* a session that lasted this long was not lost at once; nor was one in which anything was
	 * answered */
	LASTS_MS = 60 * 1000,
	HELLO_MAX = 1 << 20,
};

/* --- revisions --- */

/* The newest revision of the list; NULL: none. */
const struct mcp_profile *mcp_version_common(const struct mcp_client *c,
					     const struct json_val *supported, bool modern)
{
	const struct mcp_profile *best = NULL;
	struct json_iter it = json_iter(supported);

	while (json_type(supported) == JSON_ARRAY && json_next(&it)) {
		const struct mcp_profile *p = mcp_profile_find(json_str(it.val));

		if (p && p->modern == modern && (!c->only || p == c->profile) &&
		    (!best || strcmp(p->version, best->version) > 0))
			best = p;
	}
	return best;
}

static const struct mcp_profile *newest(bool modern)
{
	const struct mcp_profile *best = NULL, *p;

	for (size_t i = 0; (p = mcp_profile_at(i)); i++) {
		if (p->modern == modern)
			best = p;
	}
	return best;
}

static void use(struct mcp_client *c, const struct mcp_profile *p)
{
	c->profile = p;
	c->can = c->o.can;
	if (!p->form)
		c->can &= ~(unsigned)MCP_CAN_FORM;
	if (!p->url) /* the same revision has both */
		c->can &= ~(unsigned)(MCP_CAN_URL | MCP_CAN_SAMPLING_TOOLS);
	if (!p->modern)
		c->can &= ~(unsigned)MCP_CAN_TASKS;
}

/* --- why it could not be started --- */

/* The first message has failed. */
static void done(struct mcp_pending *p, const struct mcp_answer *a)
{
	struct mcp_client *c = p->client;
	bool reopens = c->state == MCP_CLIENT_REOPENS;
	char room[MCP_SAID_MAX];
	struct str says = mcp_said(json_str(json_get(a->fault, "message")), room);
	struct err e;

	if (c->first == p)
		c->first = NULL;
	if (!mcp_client_lives(c))
		return;
	if (a->e)
		e = *a->e;
	else
		err_set(&e, a->code == MCP_UNSUPPORTED_VERSION ? ERR_UNSUPPORTED : ERR_TRANSPORT,
			"the server refused %s: %.*s (%d)",
			c->era == MCP_MODERN ? "server/discover" : "initialize", STR_ARG(says),
			a->code);
	if (reopens) {
		err_wrap(&e, "the session could not be begun anew");
		mcp_client_end(c, &e);
		return;
	}
	c->state = MCP_CLIENT_NEW;
	if (c->t->unfit && c->t->unfit(c->transport, a))
		return;
	mcp_client_end(c, &e);
}

/* --- success --- */

static void send_queued(struct mcp_client *c)
{
	struct mcp_pending *p = c->pendings;

	while (c->state == MCP_CLIENT_READY && p) {
		if (!p->queued) {
			p = p->next;
			continue;
		}
		p->queued = false;
		mcp_pending_go_on(p);
		p = c->pendings;
	}
}

/* The answer to p describes the server. */
static void start_begin(struct mcp_pending *p, struct mcp_in *in, const struct json_val *result)
{
	struct mcp_client *c = p->client;
	struct err e;

	if (mcp_in_keep(in, &e) < 0) {
		mcp_pending_fail(p, &e);
		return;
	}
	mcp_in_unref(c->about_in);
	c->about_in = in;
	c->about = result;
	c->state = MCP_CLIENT_READY;
	c->opened_ms = mcp_client_now(c);
	mcp_tools_doubt(c);
	c->first = NULL;
	p->done = NULL;
	mcp_pending_end(p, NULL);
	log_debug("mcp client: revision %s", c->profile->version);
	if (c->era == MCP_LEGACY &&
	    mcp_send_notification(c, "notifications/initialized", STR_NONE, &e) < 0) {
		mcp_client_end(c, &e);
		return;
	}
	send_queued(c);
	if (mcp_client_lives(c))
		mcp_watch_apply(c);
	if (mcp_client_lives(c) && !c->told) {
		c->told = true;
		if (c->o.handler->ready)
			c->o.handler->ready(c->o.owner);
	}
}

static int check_about(const struct json_val *result, struct err *e)
{
	const struct json_val *can = json_get(result, "capabilities");

	if (can && json_type(can) != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "the server's capabilities take an object, not %s",
			       json_type_name(json_type(can)));
	return 0;
}

static int read_initialize(struct mcp_client *c, const struct json_val *result, struct err *e)
{
	struct str version = json_str(json_get(result, "protocolVersion"));
	const struct mcp_profile *p = mcp_profile_find(version);
	char room[MCP_SAID_MAX];

	if (!version.p)
		return err_set(e, ERR_INVALID,
			       "the server's answer to initialize has no "
			       "protocolVersion");
	if (!p || p->modern || (c->only && p != c->profile))
		return err_set(e, ERR_UNSUPPORTED,
			       "the server speaks revision \"%.*s\", which is not spoken here",
			       STR_ARG(mcp_said(version, room)));
	if (check_about(result, e) < 0)
		return -1;
	use(c, p);
	return 0;
}

static int read_discover(struct mcp_client *c, const struct mcp_pending *p,
			 const struct json_val *result, struct err *e)
{
	const struct json_val *supported = json_get(result, "supportedVersions");
	const struct mcp_profile *common = mcp_version_common(c, supported, true);

	if (mcp_result_type(p, result, e) < 0)
		return -1;
	if (json_type(supported) != JSON_ARRAY)
		return err_set(e, ERR_INVALID,
			       "the server's answer to server/discover has no "
			       "supportedVersions");
	if (!common)
		return err_set(e, ERR_UNSUPPORTED,
			       "the server has no revision of the modern kind that is spoken here");
	if (check_about(result, e) < 0)
		return -1;
	use(c, common);
	return 0;
}

static int start(struct mcp_client *c, struct err *e);

/* The server lists its revisions in the data of its error. */
static bool tries_again(struct mcp_pending *p, const struct mcp_answer *a)
{
	struct mcp_client *c = p->client;
	const struct json_val *supported = json_get(json_get(a->fault, "data"), "supported");
	const struct mcp_profile *common = mcp_version_common(c, supported, c->era == MCP_MODERN);
	struct err e;

	if (!common || c->tries >= TRIES_MAX)
		return false;
	use(c, common);
	p->done = NULL;
	c->first = NULL;
	mcp_pending_end(p, NULL);
	if (start(c, &e) < 0)
		mcp_client_end(c, &e);
	return true;
}

static void start_answered(struct mcp_pending *p, struct mcp_in *in, const struct mcp_answer *a)
{
	struct mcp_client *c = p->client;
	struct err e;
	int rc;

	if (a->fault) {
		if (!tries_again(p, a))
			mcp_pending_end(p, a);
		return;
	}
	rc = c->era == MCP_MODERN ? read_discover(c, p, a->result, &e)
				  : read_initialize(c, a->result, &e);
	if (rc < 0)
		mcp_pending_fail(p, &e);
	else
		start_begin(p, in, a->result);
}

/* --- the first message --- */

static int write_hello(const struct mcp_client *c, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	if (c->era == MCP_LEGACY) {
		json_put_text(&w, "protocolVersion", c->profile->version);
		json_write_key(&w, "capabilities");
		mcp_write_can(&w, c);
		json_write_key(&w, "clientInfo");
		mcp_write_self(&w, c);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static int start(struct mcp_client *c, struct err *e)
{
	autobuf struct buf hello = BUF_INIT(HELLO_MAX);
	AUTO(mcp_pending_free) struct mcp_pending *p = NULL;

	if (write_hello(c, &hello, e) < 0)
		return -1;
	p = mcp_pending_new(c, c->era == MCP_MODERN ? "server/discover" : "initialize",
			    buf_str(&hello), e);
	if (!p)
		return -1;
	p->inner = true;
	p->timeless = c->state == MCP_CLIENT_BEGINS;
	p->answered = start_answered;
	p->done = done;
	c->tries++;
	c->first = p;
	if (mcp_pending_start(p, e) < 0) {
		c->first = NULL;
		return -1;
	}
	take_ptr(p);
	return 0;
}

int mcp_client_start(struct mcp_client *c, const struct mcp_client_transport *t, void *transport,
		     enum mcp_era era, const char *version, struct err *e)
{
	AUTO(mcp_client_leave) struct mcp_client *inside = mcp_client_enter(c);
	const struct mcp_profile *p = version ? mcp_profile_find(str_of(version))
					      : newest(era == MCP_MODERN);

	if (inside->state != MCP_CLIENT_NEW)
		return err_set(e, ERR_BUG, "the conversation has begun already");
	if (era != MCP_MODERN && era != MCP_LEGACY)
		return err_set(e, ERR_BUG, "a conversation is modern or legacy");
	if (!p || p->modern != (era == MCP_MODERN))
		return err_set(e, ERR_UNSUPPORTED, "there is no such revision of that era: %s",
			       version ? version : "");
	c->t = t;
	c->transport = transport;
	c->era = era;
	c->only = version != NULL;
	c->tries = 0;
	use(c, p);
	c->state = MCP_CLIENT_BEGINS;
	if (start(c, e) == 0)
		return 0;
	c->state = MCP_CLIENT_NEW;
	return -1;
}

/* --- sessions that were lost --- */

int mcp_client_reopen(struct mcp_client *c, struct err *e)
{
	if (mcp_client_now(c) - c->opened_ms >= LASTS_MS)
		c->relapses = 0;
	if (++c->relapses > RELAPSES_MAX)
		return err_set(e, ERR_TRANSPORT, "the server forgets each session at once");
	log_info("%s: the server has forgotten the session; a new one is begun", c->o.label);
	c->state = MCP_CLIENT_REOPENS;
	c->generation++;
	c->tries = 0;
	mcp_ask_drop_legacy(c);
	return mcp_client_lives(c) ? start(c, e) : 0;
}

/* Queues a request that was sent in a lost session, once, to be sent again. */
static void send_again(struct mcp_client *c, struct mcp_pending *p)
{
	const struct err twice = { ERR_TRANSPORT,
				   "the server forgot the session of this request twice" };

	mcp_pending_unlist(p);
	if (p->resent) {
		mcp_pending_fail(p, &twice);
		return;
	}
	p->resent = true;
	if (p->generation == c->generation || c->state == MCP_CLIENT_REOPENS)
		p->queued = true;
	else
		mcp_pending_go_on(p);
}

void mcp_client_session_lost(struct mcp_client *c, struct mcp_pending *p)
{
	AUTO(mcp_client_leave) struct mcp_client *inside = mcp_client_enter(c);
	bool current = !p || p->generation == c->generation;
	const struct err none = { ERR_TRANSPORT, "the server knows no session" };
	struct err e;

	if (!mcp_client_lives(inside))
		return;
	if (c->state == MCP_CLIENT_BEGINS || c->era == MCP_MODERN || (p && p == c->first)) {
		if (p && !p->ended)
			mcp_pending_fail(p, &none);
		return;
	}
	if (p && !p->ended)
		send_again(c, p);
	if (current && c->state == MCP_CLIENT_READY && mcp_client_reopen(c, &e) < 0)
		mcp_client_end(c, &e);
}
