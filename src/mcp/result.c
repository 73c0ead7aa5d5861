/* What is sent as JSON: results, contents, rows of lists; each with what the client's revision knows. */
#include <stdio.h>

#include "mcp/core.h"

enum { ERROR_TEXT_MAX = 8192 };

static void put_text(struct json_writer *w, const char *key, const char *text)
{
	if (!text)
		return;
	json_write_key(w, key);
	json_write_text(w, text);
}

static void put_raw(struct json_writer *w, const char *key, struct str json)
{
	if (!json.p)
		return;
	json_write_key(w, key);
	json_write_raw(w, json);
}

/* --- tools --- */

static void put_hint(struct json_writer *w, const char *key, enum mcp_hint hint)
{
	if (hint == MCP_UNSAID)
		return;
	json_write_key(w, key);
	json_write_bool(w, hint == MCP_YES);
}

/* The title stands here until the revision that gave it a place of its own. */
static void put_annotations(struct json_writer *w, const struct mcp_profile *p,
			    const struct mcp_tool *t)
{
	json_write_key(w, "annotations");
	json_write_object(w);
	if (!p->title)
		put_text(w, "title", t->title);
	put_hint(w, "readOnlyHint", t->read_only);
	put_hint(w, "destructiveHint", t->destructive);
	put_hint(w, "idempotentHint", t->idempotent);
	put_hint(w, "openWorldHint", t->open_world);
	json_write_object_end(w);
}

static bool has_annotations(const struct mcp_profile *p, const struct mcp_tool *t)
{
	return (t->title && !p->title) || t->read_only || t->destructive || t->idempotent ||
	       t->open_world;
}

void mcp_write_tool(struct json_writer *w, const struct mcp_profile *p, const struct mcp_tool *t)
{
	json_write_object(w);
	put_text(w, "name", t->name);
	if (p->title)
		put_text(w, "title", t->title);
	put_text(w, "description", t->description);
	put_raw(w, "inputSchema", str_of(t->input_schema));
	if (p->structured)
		put_raw(w, "outputSchema", str_of(t->output_schema));
	if (p->annotations && has_annotations(p, t))
		put_annotations(w, p, t);
	if (p->meta)
		put_raw(w, "_meta", str_of(t->meta));
	json_write_object_end(w);
}

/* --- content --- */

static void put_blob(struct json_writer *w, const char *type, const struct mcp_content *c)
{
	put_text(w, "type", type);
	json_write_key(w, "data");
	json_write_base64(w, c->data);
	put_text(w, "mimeType", c->mime ? c->mime : "application/octet-stream");
}

static void put_string(struct json_writer *w, struct str s)
{
	put_text(w, "type", "text");
	json_write_key(w, "text");
	json_write_str(w, s);
}

static void put_audio(struct json_writer *w, const struct mcp_profile *p,
		      const struct mcp_content *c)
{
	char text[128];

	if (p->audio) {
		put_blob(w, "audio", c);
		return;
	}
	snprintf(text, sizeof(text), "[%zu bytes of %.64s]", c->data.n,
		 c->mime ? c->mime : "audio");
	put_string(w, str_of(text));
}

static void put_resource(struct json_writer *w, const struct mcp_content *c)
{
	put_text(w, "type", "resource");
	json_write_key(w, "resource");
	json_write_object(w);
	put_text(w, "uri", c->uri ? c->uri : "");
	put_text(w, "mimeType", c->mime);
	if (c->text.p) {
		json_write_key(w, "text");
		json_write_str(w, c->text);
	} else {
		json_write_key(w, "blob");
		json_write_base64(w, c->data);
	}
	json_write_object_end(w);
}

static void put_link(struct json_writer *w, const struct mcp_profile *p,
		     const struct mcp_resource *r)
{
	if (!p->links) {
		put_string(w, str_of(r->uri));
		return;
	}
	put_text(w, "type", "resource_link");
	put_text(w, "uri", r->uri);
	put_text(w, "name", r->name);
	put_text(w, "mimeType", r->mime);
}

static void put_content(struct json_writer *w, const struct mcp_profile *p,
			const struct mcp_content *c)
{
	json_write_object(w);
	switch (c->type) {
	case MCP_TEXT:
		put_string(w, c->text);
		break;
	case MCP_IMAGE:
		put_blob(w, "image", c);
		break;
	case MCP_AUDIO:
		put_audio(w, p, c);
		break;
	case MCP_RESOURCE:
		put_resource(w, c);
		break;
	case MCP_LINK:
		put_link(w, p, c->link);
		break;
	}
	json_write_object_end(w);
}

/* --- results --- */

void mcp_write_implementation(struct json_writer *w, const struct mcp_profile *p,
			      const struct mcp_server_options *o)
{
	json_write_object(w);
	put_text(w, "name", o->name);
	if (p->title)
		put_text(w, "title", o->title);
	put_text(w, "version", o->version);
	if (p->icons) {
		put_text(w, "description", o->description);
		put_text(w, "websiteUrl", o->website);
	}
	json_write_object_end(w);
}

void mcp_result_open(struct json_writer *w, const struct mcp_profile *p)
{
	json_write_object(w);
	if (p && p->modern)
		put_text(w, "resultType", "complete");
}

void mcp_write_members(struct json_writer *w, struct str object)
{
	static const char space[] = " \t\r\n";
	size_t from = 0, to = object.n;

	while (from < to && object.p[from] != '{')
		from++;
	while (to > from && object.p[to - 1] != '}')
		to--;
	for (from++, to--; from < to && strchr(space, object.p[from]);)
		from++;
	if (from < to)
		json_write_raw(w, (struct str){ object.p + from, to - from });
}

void mcp_result_close(struct json_writer *w, const struct mcp_server *srv,
		      const struct mcp_profile *p, struct str meta)
{
	bool modern = p && p->modern;

	if (modern || meta.p) {
		json_write_key(w, "_meta");
		json_write_object(w);
		if (meta.p)
			mcp_write_members(w, meta);
		if (modern)
			mcp_write_members(w, str_of(srv->info));
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

void mcp_write_cache(struct json_writer *w, const struct mcp_profile *p, uint64_t ttl_ms,
		     bool is_public)
{
	if (!p->modern)
		return;
	json_write_key(w, "ttlMs");
	json_write_uint(w, ttl_ms);
	put_text(w, "cacheScope", is_public ? "public" : "private");
}

static void put_result(struct json_writer *w, const struct mcp_profile *p,
		       const struct mcp_server *srv, const struct mcp_result *r,
		       struct str structured)
{
	const struct mcp_content copy = { .type = MCP_TEXT, .text = structured };

	mcp_result_open(w, p);
	json_write_key(w, "content");
	json_write_array(w);
	for (size_t i = 0; i < r->content_n; i++)
		put_content(w, p, &r->content[i]);
	if (r->content_n == 0 && structured.p)
		put_content(w, p, &copy);
	json_write_array_end(w);
	if (p->structured)
		put_raw(w, "structuredContent", structured);
	if (r->is_error) {
		json_write_key(w, "isError");
		json_write_bool(w, true);
	}
	mcp_result_close(w, srv, p, r->meta);
}

void mcp_write_result(struct json_writer *w, const struct mcp_profile *p,
		      const struct mcp_server *srv, const struct mcp_result *r, size_t max)
{
	autobuf struct buf text = BUF_INIT(max);
	struct json_writer own = json_writer(&text);
	struct err e;

	if (!r->table) {
		put_result(w, p, srv, r, r->structured);
		return;
	}
	field_encode(r->table, r->from, &own);
	if (json_write_done(&own, &e) < 0)
		json_write_fail(w, &e);
	else
		put_result(w, p, srv, r, buf_str(&text));
}

char *mcp_error_text(const struct err *e)
{
	const struct err_info *info = err_info(e->code);
	autobuf struct buf b = BUF_INIT(ERROR_TEXT_MAX);
	struct json_writer w = json_writer(&b);
	struct err failed;

	json_write_object(&w);
	put_text(&w, "code", info->name);
	put_text(&w, "cause", e->msg);
	put_text(&w, "remediation", info->remediation);
	json_write_key(&w, "retryable");
	json_write_bool(&w, info->retryable);
	json_write_object_end(&w);
	return json_write_done(&w, &failed) < 0 ? NULL : buf_take(&b);
}
