/*
 * Received messages, and the checks that tell the eras apart. The body decides: a request whose
 * _meta claims a protocol version is modern, any other is legacy. The HTTP head must agree with it.
 * The checks, of which the first that fails answers:
 *
 *	1	it is JSON, and JSON-RPC; no batch is empty or has a modern element
 *	2	head and claim name the same version and method; no initialize under a modern head
 *	3	the envelope in _meta is complete
 *	4	the version is served
 *	5	head has version, method and name
 *
 * Capabilities, Mcp-Param-*, the method and its params are checked when it is served.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "mcp/server/internal.h"

enum { BAD_REQUEST = 400 };

/* --- what a message says --- */

void mcp_meta_read(const struct json_val *params, struct mcp_meta *ret)
{
	enum { VERSION, CAPABILITIES, CLIENT, LEVEL, TOKEN, KEYS };
	static const struct str keys[KEYS] = {
		[VERSION] = STR_LIT(MCP_META_VERSION),
		[CAPABILITIES] = STR_LIT(MCP_META_CAPABILITIES),
		[CLIENT] = STR_LIT(MCP_META_CLIENT),
		[LEVEL] = STR_LIT(MCP_META_LEVEL),
		[TOKEN] = STR_LIT("progressToken"),
	};
	const struct json_val *has[KEYS];

	*ret = (struct mcp_meta){ .all = json_get(params, "_meta") };
	if (!ret->all)
		return;
	json_get_all(ret->all, keys, KEYS, has);
	ret->version = has[VERSION];
	ret->capabilities = has[CAPABILITIES];
	ret->client = has[CLIENT];
	ret->level = has[LEVEL];
	ret->token = has[TOKEN];
}

bool mcp_version_is_modern(struct str version)
{
	static const char first[] = "2026-07-28", shape[] = "dddd-dd-dd";

	if (version.n != sizeof(shape) - 1)
		return false;
	for (size_t i = 0; i < version.n; i++) {
		char c = version.p[i];

		if (shape[i] == 'd' ? c < '0' || c > '9' : c != '-')
			return false;
	}
	return memcmp(version.p, first, version.n) >= 0;
}

static bool head_is_modern(const struct mcp_inbound *in)
{
	return in->head && mcp_version_is_modern(in->head->protocol_version);
}

unsigned mcp_read_capabilities(const struct json_val *caps)
{
	const struct json_val *elicitation = json_get(caps, "elicitation");
	unsigned can = 0;

	if (json_len(caps) == 0)
		return 0;
	if (json_type(elicitation) == JSON_OBJECT) {
		if (json_get(elicitation, "url"))
			can |= MCP_CAN_URL;
		/* an empty object means form, which once was the only mode */
		if (json_get(elicitation, "form") || can == 0)
			can |= MCP_CAN_FORM;
	}
	if (json_type(json_get(caps, "roots")) == JSON_OBJECT)
		can |= MCP_CAN_ROOTS;
	if (json_type(json_get(caps, "sampling")) == JSON_OBJECT)
		can |= MCP_CAN_SAMPLING;
	if (json_type(json_get(json_get(caps, "sampling"), "tools")) == JSON_OBJECT)
		can |= MCP_CAN_SAMPLING_TOOLS;
	if (json_type(json_get(json_get(caps, "extensions"), MCP_EXTENSION_TASKS)) == JSON_OBJECT)
		can |= MCP_CAN_TASKS;
	return can;
}

/* --- the ladder --- */

static int inbound_bad(struct rpc_fault *f)
{
	f->status = BAD_REQUEST;
	if (!f->reason)
		f->reason = err_info(ERR_MESSAGE);
	return -1;
}

static int lacks(const char *key, const char *type, const struct json_val *v, struct rpc_fault *f)
{
	rpc_fault_set(f, RPC_INVALID_PARAMS, "_meta: %s takes %s, not %s", key, type,
		      json_type_name(json_type(v)));
	return inbound_bad(f);
}

static int check_head_method(const struct mcp_inbound *in, struct rpc_fault *f)
{
	struct str head = in->head ? in->head->method : STR_NONE;

	if (!head.p || str_eq(head, in->m.method))
		return 0;
	rpc_fault_set(f, MCP_HEADER_MISMATCH,
		      "Mcp-Method is \"%.*s\" and the message says \"%.*s\"",
		      STR_ARG(mcp_shown(head)), STR_ARG(mcp_shown(in->m.method)));
	return inbound_bad(f);
}

static int check_envelope(const struct mcp_meta *m, struct rpc_fault *f)
{
	if (json_type(m->version) != JSON_STR)
		return lacks(MCP_META_VERSION, "a string", m->version, f);
	if (json_type(m->capabilities) != JSON_OBJECT)
		return lacks(MCP_META_CAPABILITIES, "an object", m->capabilities, f);
	if (m->client && json_type(m->client) != JSON_OBJECT)
		return lacks(MCP_META_CLIENT, "an object", m->client, f);
	if (m->level && mcp_level_find(json_str(m->level)) < 0)
		return lacks(MCP_META_LEVEL, "a level from debug to emergency", m->level, f);
	return 0;
}

static void put_versions(struct rpc_fault *f, struct str requested)
{
	struct buf b = BUF_INIT(RPC_DATA_MAX - 1);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_object(&w);
	json_write_key(&w, "supported");
	mcp_write_versions(&w);
	json_put_str(&w, "requested", mcp_shown(requested));
	json_write_object_end(&w);
	if (json_write_done(&w, &e) == 0)
		memcpy(f->data, b.p, b.n + 1);
	buf_fini(&b);
}

static int check_version(struct mcp_inbound *in, struct str version, struct rpc_fault *f)
{
	in->profile = mcp_profile_find(version);
	if (in->profile && in->profile->modern)
		return 0;
	in->profile = NULL;
	rpc_fault_set(f, MCP_UNSUPPORTED_VERSION, "revision \"%.*s\" is not served%s",
		      STR_ARG(mcp_shown(version)),
		      mcp_profile_find(version) ? " without initialize" : "");
	put_versions(f, version);
	return inbound_bad(f);
}

/* A request or notification whose _meta claims a version. */
static int take_modern(struct mcp_inbound *in, struct rpc_fault *f)
{
	struct str claim = json_str(in->meta.version);
	struct str head = in->head ? in->head->protocol_version : STR_NONE;

	in->era = MCP_MODERN;
	if (claim.p && head.p && !str_eq(head, claim)) {
		rpc_fault_set(f, MCP_HEADER_MISMATCH,
			      "MCP-Protocol-Version is \"%.*s\" and the message says \"%.*s\"",
			      STR_ARG(mcp_shown(head)), STR_ARG(mcp_shown(claim)));
		return inbound_bad(f);
	}
	if (check_head_method(in, f) < 0)
		return -1;
	if (in->m.kind == RPC_REQUEST && check_envelope(&in->meta, f) < 0)
		return -1;
	if (!claim.p)
		return lacks(MCP_META_VERSION, "a string", in->meta.version, f);
	if (check_version(in, claim, f) < 0)
		return -1;
	if (in->m.kind != RPC_REQUEST || !in->head)
		return 0;
	if (!head.p) {
		rpc_fault_set(f, MCP_HEADER_MISMATCH, "the header MCP-Protocol-Version is missing");
		return inbound_bad(f);
	}
	return mcp_header_check(in->head, &in->m, f) < 0 ? inbound_bad(f) : 0;
}

/* The head of a legacy message must name an existing revision, or none (before 2025-06-18). */
static int check_legacy_head(const struct mcp_inbound *in, struct rpc_fault *f)
{
	struct str head = in->head ? in->head->protocol_version : STR_NONE;

	if (!head.p || mcp_profile_find(head))
		return 0;
	rpc_fault_set(f, RPC_INVALID_REQUEST,
		      "revision \"%.*s\" of MCP-Protocol-Version is not served",
		      STR_ARG(mcp_shown(head)));
	return inbound_bad(f);
}

/* initialize counts as modern only with a complete modern envelope. */
static bool is_handshake(const struct mcp_inbound *in)
{
	struct rpc_fault f;

	return str_is(in->m.method, "initialize") &&
	       (check_envelope(&in->meta, &f) < 0 ||
		!mcp_version_is_modern(json_str(in->meta.version)));
}

static int take_request(struct mcp_inbound *in, struct rpc_fault *f)
{
	if (is_handshake(in)) {
		in->era = MCP_LEGACY;
		if (!head_is_modern(in))
			return 0;
		rpc_fault_set(f, MCP_HEADER_MISMATCH,
			      "revision %.*s of MCP-Protocol-Version has no initialize",
			      STR_ARG(in->head->protocol_version));
		return inbound_bad(f);
	}
	if (in->meta.version)
		return take_modern(in, f);
	in->era = MCP_LEGACY;
	if (!head_is_modern(in))
		return check_legacy_head(in, f);
	in->era = MCP_MODERN;
	return lacks(MCP_META_VERSION, "a string", NULL, f);
}

/* A notification without a claimed version belongs to the era of the head. */
static int take_notification(struct mcp_inbound *in, struct rpc_fault *f)
{
	if (in->meta.version)
		return take_modern(in, f);
	in->era = head_is_modern(in) ? MCP_MODERN : MCP_LEGACY;
	if (in->era == MCP_LEGACY)
		return check_legacy_head(in, f);
	if (check_head_method(in, f) < 0)
		return -1;
	return check_version(in, in->head->protocol_version, f);
}

static int take_response(struct mcp_inbound *in, struct rpc_fault *f)
{
	in->era = MCP_LEGACY;
	if (!head_is_modern(in))
		return check_legacy_head(in, f);
	in->era = MCP_MODERN;
	rpc_fault_set(f, RPC_INVALID_REQUEST, "revision %.*s has no responses of clients",
		      STR_ARG(in->head->protocol_version));
	return inbound_bad(f);
}

static int take_batch(struct mcp_inbound *in, const struct json_val *root, struct rpc_fault *f)
{
	struct json_iter it = json_iter(root);
	struct mcp_meta meta;

	in->is_batch = true;
	in->era = MCP_LEGACY;
	in->m.id.n = 0;
	if (head_is_modern(in)) {
		in->era = MCP_MODERN;
		rpc_fault_set(f, RPC_INVALID_REQUEST, "revision %.*s has no batches",
			      STR_ARG(in->head->protocol_version));
		return inbound_bad(f);
	}
	if (in->head && json_len(root) == 0) {
		rpc_fault_set(f, RPC_INVALID_REQUEST, "an empty batch");
		return inbound_bad(f);
	}
	if (check_legacy_head(in, f) < 0)
		return -1;
	while (json_next(&it)) {
		bool call = json_get(it.val, "method") && json_get(it.val, "id");

		in->answered |= call || !(json_get(it.val, "method") ||
					  json_get(it.val, "result") || json_get(it.val, "error"));
		mcp_meta_read(json_get(it.val, "params"), &meta);
		if (!meta.version)
			continue;
		rpc_fault_set(f, RPC_INVALID_REQUEST,
			      "a batch with a message of a revision that "
			      "has none; send one message at a time");
		return inbound_bad(f);
	}
	return 0;
}

static int classify(struct mcp_inbound *in, struct rpc_fault *f)
{
	const struct json_val *root = json_root(in->doc);
	bool silent;

	if (json_type(root) == JSON_ARRAY)
		return take_batch(in, root, f);
	if (rpc_read(root, &in->m, f, &silent) < 0) {
		in->answered = !silent || in->head;
		f->status = f->code == RPC_INTERNAL_ERROR ? 500 : BAD_REQUEST;
		return -1;
	}
	mcp_meta_read(in->m.params, &in->meta);
	in->answered = in->m.kind == RPC_REQUEST;
	switch (in->m.kind) {
	case RPC_REQUEST:
		return take_request(in, f);
	case RPC_NOTIFICATION:
		return take_notification(in, f);
	case RPC_RESPONSE:
		return take_response(in, f);
	}
	return 0;
}

/* The fault is allocated separately, since most messages have none. */
static int set_broken(struct mcp_inbound *in, const struct rpc_fault *f)
{
	in->era = MCP_BROKEN;
	in->fault = malloc(sizeof(*f));
	if (!in->fault)
		return -1;
	*in->fault = *f;
	return 0;
}

static void *take_room(struct mcp_server *srv)
{
	void *room = take_ptr(srv->room);

	if (room || !SPARE_KEEPS || srv->rooms == MCP_ROOMS)
		return room;
	room = malloc(MCP_ROOM);
	srv->rooms += room != NULL;
	return room;
}

static void give_room(struct mcp_server *srv, void *room)
{
	if (!room)
		return;
	if (srv->room) {
		free(room);
		srv->rooms--;
	} else {
		srv->room = room;
	}
}

static int read_text(struct mcp_inbound *in, struct str text)
{
	struct json_options o = in->server->o.json;
	struct rpc_fault f;

	in->room = take_room(in->server);
	o.room = in->room;
	o.room_n = in->room ? MCP_ROOM : 0;
	if (rpc_parse(text, &o, &in->doc, &f, &in->m.id) < 0) {
		in->answered = true;
		f.status = f.code == RPC_INTERNAL_ERROR ? 500 : BAD_REQUEST;
		return set_broken(in, &f);
	}
	if (classify(in, &f) == 0)
		return 0;
	in->answered |= in->head != NULL;
	return set_broken(in, &f);
}

struct mcp_inbound *mcp_inbound_new(struct mcp_server *srv, struct str text,
				    const struct mcp_http_head *head)
{
	AUTO(mcp_inbound_free)
	struct mcp_inbound *in = spare_take(&srv->spare_inbound, sizeof(*in));

	if (!in)
		return NULL;
	in->server = srv;
	in->head = head;
	in->answers = BUF_INIT(srv->o.reply_max + MCP_BATCH_MAX * (MCP_FAULT_ROOM + 1));
	return read_text(in, text) < 0 ? NULL : take_ptr(in);
}

void mcp_inbound_free(struct mcp_inbound *in)
{
	if (!in)
		return;
	json_free(in->doc);
	give_room(in->server, in->room);
	buf_fini(&in->answers);
	free(in->fault);
	spare_give(&in->server->spare_inbound, in);
}

/* --- what transports ask --- */

enum mcp_era mcp_inbound_era(const struct mcp_inbound *in)
{
	return in->era;
}

bool mcp_inbound_is_initialize(const struct mcp_inbound *in)
{
	return in->era == MCP_LEGACY && !in->is_batch && in->m.kind == RPC_REQUEST &&
	       str_is(in->m.method, "initialize");
}

bool mcp_inbound_is_answered(const struct mcp_inbound *in)
{
	return in->answered;
}

bool mcp_inbound_is_listen(const struct mcp_inbound *in)
{
	return in->era == MCP_MODERN && in->m.kind == RPC_REQUEST &&
	       str_is(in->m.method, "subscriptions/listen");
}

struct str mcp_inbound_method(const struct mcp_inbound *in)
{
	return in->is_batch || in->era == MCP_BROKEN ? STR_NONE : in->m.method;
}
