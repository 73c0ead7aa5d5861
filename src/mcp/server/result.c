/* Results and content as JSON, with the members that the client's revision defines. */
#include <stdio.h>

#include "base/failure.h"
#include "mcp/server/internal.h"

enum { ERROR_TEXT_MAX = 8192 };

/* --- content --- */

static void put_blob(struct json_writer *w, const char *type, const struct mcp_content *c)
{
	mcp_put_text(w, "type", type);
	json_write_name(w, "data");
	json_write_base64(w, c->data);
	mcp_put_text(w, "mimeType", c->mime ? c->mime : "application/octet-stream");
}

static void put_string(struct json_writer *w, struct str s)
{
	json_write_raw(w, STR_LIT("\"type\":\"text\""));
	json_write_name(w, "text");
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

static void put_link(struct json_writer *w, const struct mcp_profile *p,
		     const struct mcp_resource *r)
{
	char text[512];

	if (p->links) {
		mcp_put_text(w, "type", "resource_link");
		mcp_put_resource(w, p, r);
		return;
	}
	snprintf(text, sizeof(text), "[%.128s: %.300s]", r->name, r->uri);
	put_string(w, str_of(text));
}

static void put_body(struct json_writer *w, struct str text, struct str data)
{
	json_write_key(w, text.p ? "text" : "blob");
	if (text.p)
		json_write_str(w, text);
	else
		json_write_base64(w, data);
}

static void put_embedded(struct json_writer *w, const struct mcp_content *c)
{
	mcp_put_text(w, "type", "resource");
	json_write_name(w, "resource");
	json_write_object(w);
	mcp_put_text(w, "uri", c->uri ? c->uri : "");
	mcp_put_text(w, "mimeType", c->mime);
	put_body(w, c->text, c->data);
	json_write_object_end(w);
}

void mcp_write_content(struct json_writer *w, const struct mcp_profile *p,
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
		put_embedded(w, c);
		break;
	case MCP_LINK:
		put_link(w, p, c->link);
		break;
	}
	if (c->type != MCP_LINK)
		mcp_put_annotations(w, p, &c->annotations);
	if (p->meta && !(c->type == MCP_LINK && c->link->meta))
		mcp_put_raw(w, "_meta", c->meta);
	json_write_object_end(w);
}

void mcp_write_contents(struct json_writer *w, const struct mcp_profile *p,
			const struct mcp_contents *c, struct str uri)
{
	json_write_object(w);
	json_write_name(w, "uri");
	json_write_str(w, c->uri.p ? c->uri : uri);
	mcp_put_text(w, "mimeType", c->mime);
	put_body(w, c->text, c->data);
	if (p->meta)
		mcp_put_raw(w, "_meta", c->meta);
	json_write_object_end(w);
}

/* --- results --- */

void mcp_result_open(struct json_writer *w, const struct mcp_profile *p)
{
	json_write_object(w);
	if (p && p->modern)
		json_write_raw(w, STR_LIT("\"resultType\":\"complete\""));
}

void mcp_write_members(struct json_writer *w, struct str object)
{
	static const char space[] = " \t\r\n";
	size_t from = 0, to = object.n;

	while (from < to && object.p[from] != '{')
		from++;
	while (to > from && object.p[to - 1] != '}')
		to--;
	if (to - from < 2)
		return;
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
		json_write_name(w, "_meta");
		json_write_object(w);
		if (meta.p)
			mcp_write_members(w, meta);
		if (modern)
			json_write_raw(w, str_of(srv->info));
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

void mcp_write_cache(struct json_writer *w, const struct mcp_profile *p, uint64_t ttl_ms,
		     bool is_public)
{
	if (!p->modern)
		return;
	json_write_name(w, "ttlMs");
	json_write_uint(w, ttl_ms);
	mcp_put_text(w, "cacheScope", is_public ? "public" : "private");
}

static bool is_object(struct str json)
{
	static const char space[] = " \t\r\n";
	size_t i = 0;

	while (i < json.n && strchr(space, json.p[i]))
		i++;
	return i < json.n && json.p[i] == '{';
}

void mcp_write_result(struct json_writer *w, const struct mcp_profile *p,
		      const struct mcp_server *srv, const struct mcp_result *r,
		      struct str structured)
{
	const struct mcp_content copy = { .type = MCP_TEXT, .text = structured };

	mcp_result_open(w, p);
	json_write_name(w, "content");
	if (r->content_json.p) {
		json_write_raw(w, r->content_json);
	} else {
		json_write_array(w);
		for (size_t i = 0; i < r->content_n; i++)
			mcp_write_content(w, p, &r->content[i]);
		if (r->content_n == 0 && structured.p)
			mcp_write_content(w, p, &copy);
		json_write_array_end(w);
	}
	if (p->any_structured || (p->structured && is_object(structured)))
		mcp_put_raw(w, "structuredContent", structured);
	if (r->is_error) {
		json_write_name(w, "isError");
		json_write_bool(w, true);
	}
	mcp_result_close(w, srv, p, r->meta);
}

/* --- errors --- */

char *mcp_error_text(const struct err *e)
{
	const struct err_info *info = err_info(e->code);
	autobuf struct buf b = BUF_INIT(ERROR_TEXT_MAX);
	struct json_writer w = json_writer(&b);
	struct err failed;

	json_write_object(&w);
	mcp_put_text(&w, "code", info->name);
	mcp_put_text(&w, "cause", e->msg);
	mcp_put_text(&w, "remediation", info->remediation);
	mcp_put_text(&w, "failure", err_failure_names[info->failure]);
	json_put_bool(&w, "retryable", info->retryable);
	if (*e->pointer)
		mcp_put_text(&w, "pointer", e->pointer);
	json_write_object_end(&w);
	return json_write_done(&w, &failed) < 0 ? NULL : buf_take(&b);
}
