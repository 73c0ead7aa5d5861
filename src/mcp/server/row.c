/* List entries as JSON, with the members that the client's revision defines. */
#include "json/schema/format.h"
#include "mcp/server/internal.h"

void mcp_put_text(struct json_writer *w, const char *key, const char *text)
{
	if (text)
		json_put_text(w, key, text);
}

void mcp_put_raw(struct json_writer *w, const char *key, struct str json)
{
	if (json.p)
		json_put_raw(w, key, json);
}

/* --- what rows have in common --- */

int mcp_uri_check(const char *what, const char *uri, struct err *e)
{
	if (uri && schema_format(STR_LIT("uri"))->is(str_of(uri)))
		return 0;
	return err_set(e, ERR_BUG, "%s is no URI", what);
}

int mcp_icons_check(const struct mcp_icons *icons, struct err *e)
{
	for (size_t i = 0; i < icons->n; i++) {
		if (mcp_uri_check("an icon's src", icons->p[i].src, e) < 0)
			return -1;
	}
	return 0;
}

static void put_sizes(struct json_writer *w, const char *sizes)
{
	json_put_array(w, "sizes");
	for (size_t n; *sizes; sizes += n) {
		sizes += strspn(sizes, " ");
		n = strcspn(sizes, " ");
		if (n > 0)
			json_write_str(w, (struct str){ sizes, n });
	}
	json_write_array_end(w);
}

static void put_icons(struct json_writer *w, const struct mcp_profile *p,
		      const struct mcp_icons *icons)
{
	if (!p->icons || icons->n == 0)
		return;
	json_put_array(w, "icons");
	for (size_t i = 0; i < icons->n; i++) {
		const struct mcp_icon *icon = &icons->p[i];

		json_write_object(w);
		mcp_put_text(w, "src", icon->src);
		mcp_put_text(w, "mimeType", icon->mime);
		if (icon->sizes)
			put_sizes(w, icon->sizes);
		mcp_put_text(w, "theme", icon->theme);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

void mcp_put_annotations(struct json_writer *w, const struct mcp_profile *p,
			 const struct mcp_annotations *a)
{
	if (a->audience == 0 && !a->has_priority && !(a->last_modified && p->links))
		return;
	json_put_object(w, "annotations");
	if (a->audience) {
		json_put_array(w, "audience");
		if (a->audience & MCP_FOR_USER)
			json_write_text(w, "user");
		if (a->audience & MCP_FOR_ASSISTANT)
			json_write_text(w, "assistant");
		json_write_array_end(w);
	}
	if (a->has_priority) {
		json_write_key(w, "priority");
		json_write_real(w, a->priority);
	}
	if (p->links)
		mcp_put_text(w, "lastModified", a->last_modified);
	json_write_object_end(w);
}

static void put_title(struct json_writer *w, const struct mcp_profile *p, const char *title)
{
	if (p->title)
		mcp_put_text(w, "title", title);
}

static void put_meta(struct json_writer *w, const struct mcp_profile *p, const char *meta)
{
	if (p->meta)
		mcp_put_raw(w, "_meta", str_of(meta));
}

void mcp_write_implementation(struct json_writer *w, const struct mcp_profile *p,
			      const struct mcp_server_options *o)
{
	json_write_object(w);
	mcp_put_text(w, "name", o->name);
	put_title(w, p, o->title);
	mcp_put_text(w, "version", o->version);
	if (p->icons) {
		mcp_put_text(w, "description", o->description);
		mcp_put_text(w, "websiteUrl", o->website);
	}
	put_icons(w, p, &o->icons);
	json_write_object_end(w);
}

void mcp_write_versions(struct json_writer *w)
{
	size_t n = 0;

	while (mcp_profile_at(n))
		n++;
	json_write_array(w);
	while (n > 0)
		json_write_text(w, mcp_profile_at(--n)->version);
	json_write_array_end(w);
}

/* --- tools --- */

static void put_hint(struct json_writer *w, const char *key, enum mcp_hint hint)
{
	if (hint == MCP_UNSAID)
		return;
	json_put_bool(w, key, hint == MCP_YES);
}

/* The title is written here for revisions that have no member of its own for it. */
static void put_hints(struct json_writer *w, const struct mcp_profile *p, const struct mcp_tool *t)
{
	bool any = t->read_only || t->destructive || t->idempotent || t->open_world;

	if (!p->annotations || (!any && (p->title || !t->title)))
		return;
	json_put_object(w, "annotations");
	if (!p->title)
		mcp_put_text(w, "title", t->title);
	put_hint(w, "readOnlyHint", t->read_only);
	put_hint(w, "destructiveHint", t->destructive);
	put_hint(w, "idempotentHint", t->idempotent);
	put_hint(w, "openWorldHint", t->open_world);
	json_write_object_end(w);
}

void mcp_write_tool(struct json_writer *w, const struct mcp_profile *p, const struct mcp_tool *t)
{
	json_write_object(w);
	mcp_put_text(w, "name", t->name);
	put_title(w, p, t->title);
	mcp_put_text(w, "description", t->description);
	mcp_put_raw(w, "inputSchema", str_of(t->input_schema));
	if (mcp_tool_is_structured(t, p))
		mcp_put_raw(w, "outputSchema", str_of(t->output_schema));
	put_hints(w, p, t);
	/* In 2025-11-25 the client decides which calls are tasks; later the server does, without
	 * announcing it. */
	if (p->old_tasks && t->task != MCP_TASK_NEVER) {
		json_put_object(w, "execution");
		mcp_put_text(w, "taskSupport",
			     t->task == MCP_TASK_REQUIRED ? "required" : "optional");
		json_write_object_end(w);
	}
	put_icons(w, p, &t->icons);
	put_meta(w, p, t->meta);
	json_write_object_end(w);
}

/* --- resources --- */

void mcp_put_resource(struct json_writer *w, const struct mcp_profile *p,
		      const struct mcp_resource *r)
{
	mcp_put_text(w, "uri", r->uri);
	mcp_put_text(w, "name", r->name);
	put_title(w, p, r->title);
	mcp_put_text(w, "description", r->description);
	mcp_put_text(w, "mimeType", r->mime);
	if (r->size > 0)
		json_put_int(w, "size", r->size);
	mcp_put_annotations(w, p, &r->annotations);
	put_icons(w, p, &r->icons);
	put_meta(w, p, r->meta);
}

void mcp_write_resource(struct json_writer *w, const struct mcp_profile *p,
			const struct mcp_resource *r)
{
	json_write_object(w);
	mcp_put_resource(w, p, r);
	json_write_object_end(w);
}

void mcp_write_template(struct json_writer *w, const struct mcp_profile *p,
			const struct mcp_template *t)
{
	json_write_object(w);
	mcp_put_text(w, "uriTemplate", t->uri_template);
	mcp_put_text(w, "name", t->name);
	put_title(w, p, t->title);
	mcp_put_text(w, "description", t->description);
	mcp_put_text(w, "mimeType", t->mime);
	mcp_put_annotations(w, p, &t->annotations);
	put_icons(w, p, &t->icons);
	put_meta(w, p, t->meta);
	json_write_object_end(w);
}

/* --- prompts --- */

void mcp_write_prompt(struct json_writer *w, const struct mcp_profile *p,
		      const struct mcp_prompt *t)
{
	json_write_object(w);
	mcp_put_text(w, "name", t->name);
	put_title(w, p, t->title);
	mcp_put_text(w, "description", t->description);
	if (t->args_n > 0) {
		json_put_array(w, "arguments");
		for (size_t i = 0; i < t->args_n; i++) {
			json_write_object(w);
			mcp_put_text(w, "name", t->args[i].name);
			put_title(w, p, t->args[i].title);
			mcp_put_text(w, "description", t->args[i].description);
			if (t->args[i].required)
				json_put_bool(w, "required", true);
			json_write_object_end(w);
		}
		json_write_array_end(w);
	}
	put_icons(w, p, &t->icons);
	put_meta(w, p, t->meta);
	json_write_object_end(w);
}
