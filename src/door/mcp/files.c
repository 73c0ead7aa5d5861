/*
 * The files of sandboxes as resources. In sandbox://ID/PATH, PATH is absolute inside without its
 * first slash, and percent-encoded as in any URI. The list has the roots of running sandboxes; what
 * is below is found by reading: a directory gives the JSON of sandbox_list_files. A read is
 * files.read, or files.list if that finds a directory.
 */
#include <stdio.h>
#include <stdlib.h>

#include "door/mcp/internal.h"
#include "json/document/utf8.h"
#include "json/document/write.h"
#include "op/files.h"

#define SCHEME "sandbox://"

enum { LISTING_MAX = 4 << 20, VALUES_MAX = 100 };

static const char directory[] = "inode/directory";

static const struct mcp_template file = {
	.uri_template = SCHEME "{sandbox}/{+path}",
	.name = "sandbox-file",
	.title = "File of a sandbox",
	.description =
		"A file of a running sandbox by its absolute path without the first slash, at most "
		"4 MiB; of a directory its entries as JSON.",
};
static const struct mcp_template *const templates[] = { &file };

const struct mcp_template *const *files_templates(void *owner, struct mcp_session *s, size_t *ret_n)
{
	*ret_n = ARRAY_LEN(templates);
	return templates;
}

/* ---- the roots ----------------------------------------------------------------------------- */

struct root {
	char uri[sizeof(SCHEME) + SANDBOX_ID_MAX + 1], id[SANDBOX_ID_MAX + 1];
	struct mcp_resource resource;
};

struct mcp_roots {
	struct root *p;
	const struct mcp_resource **list; /* those that whoever asked last may know of */
	size_t n;
	uint64_t changes; /* of the sandboxes, when it was made */
};

static void roots_free(struct mcp_roots *r)
{
	if (!r)
		return;
	free(r->p);
	free(r->list);
	free(r);
}
AUTO_DEFINE(roots_free, struct mcp_roots)

void files_roots_free(struct mcp_door *d)
{
	roots_free(take_ptr(d->roots));
}

static void add_root(struct mcp_roots *r, struct hub_sandbox *l, struct str id)
{
	struct root *root = &r->p[r->n];
	struct err e;

	if (!hub_sandbox_machine(l, &e))
		return;
	snprintf(root->id, sizeof(root->id), "%.*s", STR_ARG(id));
	snprintf(root->uri, sizeof(root->uri), SCHEME "%s/", root->id);
	root->resource =
		(struct mcp_resource){ .uri = root->uri, .name = root->id, .mime = directory };
	r->n++;
}

static struct mcp_roots *roots_new(struct hub_sandboxes *all)
{
	enum { STEP = 256 };
	AUTO(roots_free) struct mcp_roots *r = calloc(1, sizeof(*r));
	struct hub_sandbox *step[STEP];
	struct hub_sandboxes_stats stats;
	size_t got = STEP, max;
	uint64_t after = 0;

	hub_sandboxes_stats(all, &stats);
	max = stats.by_state[SANDBOX_RUNNING] + stats.by_state[SANDBOX_PAUSED];
	if (r) {
		r->p = calloc(max + 1, sizeof(*r->p));
		r->list = calloc(max + 1, sizeof(struct mcp_resource *));
	}
	if (!r || !r->p || !r->list)
		return NULL;
	while (got == STEP && r->n < max) {
		got = hub_sandboxes_list(all, after, step, STEP);
		for (size_t i = 0; i < got && r->n < max; i++) {
			struct hub_sandbox_info info;

			hub_sandbox_info(step[i], &info);
			add_root(r, step[i], info.id);
			after = info.seq;
		}
	}
	r->changes = hub_sandboxes_changes(all);
	return take_ptr(r);
}

static bool roots_same(const struct mcp_roots *a, const struct mcp_roots *b)
{
	size_t i = 0;

	if (!a || !b || a->n != b->n)
		return a == b;
	while (i < a->n && strcmp(a->p[i].id, b->p[i].id) == 0)
		i++;
	return i == a->n;
}

static void roots_update(struct mcp_door *d)
{
	struct hub_sandboxes *all = hub_sandboxes(ops_hub(d->ops));
	struct mcp_roots *old = d->roots;

	if (old && old->changes == hub_sandboxes_changes(all))
		return;
	d->roots = roots_new(all);
	d->roots_changed |= !roots_same(old, d->roots);
	roots_free(old);
}

static void on_events(void *arg)
{
	struct mcp_door *d = arg;
	struct mcp_counts n;

	mcp_server_counts(d->server, &n);
	if (n.sessions == 0)
		return;
	roots_update(d);
	if (!d->roots_changed)
		return;
	d->roots_changed = false;
	mcp_server_changed(d->server, MCP_RESOURCES);
}

void files_roots_watch(struct mcp_door *d)
{
	d->watch = (struct hub_sandboxes_watch){ .on_events = on_events, .arg = d };
	hub_sandboxes_watch_add(hub_sandboxes(ops_hub(d->ops)), &d->watch);
}

/* The roots that the principal may know of. Without memory there are none. */
static const struct mcp_resource *const *roots_seen(struct mcp_door *d, const struct principal *who,
						    size_t *ret_n)
{
	struct hub_sandboxes *all = hub_sandboxes(ops_hub(d->ops));
	struct mcp_roots *r;

	*ret_n = 0;
	roots_update(d);
	r = d->roots;
	for (size_t i = 0; r && i < r->n; i++) {
		struct err e;
		struct hub_sandbox *l = hub_sandboxes_find(all, str_of(r->p[i].id), &e);

		if (l && op_sees(d->ops, who, l))
			r->list[(*ret_n)++] = &r->p[i].resource;
	}
	return r ? r->list : NULL;
}

const struct mcp_resource *const *files_roots(void *owner, struct mcp_session *s, size_t *ret_n)
{
	return roots_seen(owner, mcp_session_data(s), ret_n);
}

/* ---- the URI ------------------------------------------------------------------------------- */

static int files_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Each percent-encoded unit is a byte. */
static int files_decode(struct str from, char *to, size_t *ret_n, struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < from.n; i++) {
		int high = -1, low = -1;

		if (from.p[i] != '%') {
			to[n++] = from.p[i];
			continue;
		}
		if (i + 2 < from.n) {
			high = files_digit(from.p[i + 1]);
			low = files_digit(from.p[i + 2]);
		}
		if (high < 0 || low < 0 || high + low == 0)
			return err_set(e, ERR_INVALID,
				       "uri: %% stands before two hexadecimal digits, not 00");
		to[n++] = (char)(high << 4 | low);
		i += 2;
	}
	*ret_n = n;
	return 0;
}

/* One resources/read under way. */
struct resource_read {
	struct mcp_door *door;
	struct mcp_call *mc;
	struct str sandbox, path;
	struct call *call;
};

/* 1, or 0 where it is no URI of ours. */
static int files_parse(struct mcp_call *mc, struct resource_read *ret, struct err *e)
{
	struct str uri = mcp_call_uri(mc);
	const char *id = uri.p + sizeof(SCHEME) - 1, *slash;
	char *path;

	if (!str_starts(uri, SCHEME))
		return 0;
	slash = memchr(id, '/', uri.n - (sizeof(SCHEME) - 1));
	if (!slash || slash == id)
		return 0;
	ret->sandbox = (struct str){ id, (size_t)(slash - id) };
	path = arena_alloc(mcp_call_arena(mc), uri.n, e);
	if (!path || files_decode((struct str){ slash, (size_t)(uri.p + uri.n - slash) }, path,
				  &ret->path.n, e) < 0)
		return -1;
	ret->path.p = path;
	if (ret->path.n > FILES_PATH_MAX)
		return err_set(e, ERR_INVALID, "uri: a path has at most %d bytes", FILES_PATH_MAX);
	return 1;
}

/* ---- reading ------------------------------------------------------------------------------- */

static void read_by(struct resource_read *r, const struct op *op, const struct op_sink *sink,
		    int (*fill)(void *client, void *request, struct err *e));

static void files_fail(struct resource_read *r, const struct err *e)
{
	if (e->code == ERR_SANDBOX_NOT_FOUND || e->code == ERR_GUEST || e->code == ERR_IDLE ||
	    e->code == ERR_PATH_NOT_FOUND)
		mcp_call_not_found(r->mc);
	else
		mcp_call_fail(r->mc, e);
}

static void on_fail(void *client, const struct err *e)
{
	files_fail(client, e);
}

static void on_listed(void *client, const struct field_table *t, const void *result)
{
	struct resource_read *r = client;
	struct err e;
	autofree char *text = field_encode_text(&tool_listing_table, result, LISTING_MAX, &e);

	if (text)
		mcp_call_contents(r->mc,
				  &(struct mcp_contents){ .mime = directory, .text = str_of(text) },
				  1);
	else
		mcp_call_fail(r->mc, &e);
}

static const struct op_sink listing = { .answer = on_listed, .fail = on_fail };

static int decode_list(void *client, void *request, struct err *e)
{
	const struct resource_read *r = client;
	struct files_list_request *q = request;

	field_defaults(files_list_op.request, q);
	q->sandbox = r->sandbox;
	q->path = r->path;
	return 0;
}

static void on_read(void *client, const struct field_table *t, const void *result)
{
	struct resource_read *r = client;
	struct str bytes = ((const struct file_content *)result)->content;
	const struct mcp_contents text = { .mime = "text/plain",
					   .text = bytes.p ? bytes : STR_LIT("") };
	const struct mcp_contents data = { .mime = "application/octet-stream", .data = bytes };
	bool is_text = utf8_valid(bytes) && (bytes.n == 0 || !memchr(bytes.p, '\0', bytes.n));

	mcp_call_contents(r->mc, is_text ? &text : &data, 1);
}

static void on_not_read(void *client, const struct err *e)
{
	struct resource_read *r = client;

	if (e->code == ERR_NOT_A_FILE)
		read_by(r, &files_list_op, &listing, decode_list);
	else
		files_fail(r, e);
}

static const struct op_sink reading = { .answer = on_read, .fail = on_not_read };

static int decode_read(void *client, void *request, struct err *e)
{
	const struct resource_read *r = client;
	struct files_read_request *q = request;

	q->sandbox = r->sandbox;
	q->path = r->path;
	q->encoding = FILE_BASE64; /* whether it is text is seen then */
	return 0;
}

static void on_cancel(struct mcp_call *mc, void *data)
{
	struct resource_read *r = data;

	call_cancel(r->call);
}

static void read_by(struct resource_read *r, const struct op *op, const struct op_sink *sink,
		    int (*fill)(void *client, void *request, struct err *e))
{
	const struct op_start start = { .who = mcp_call_principal(r->mc),
					.agent = true,
					.session = door_session(r->door, r->mc),
					.op = op,
					.decode = fill,
					.sink = sink,
					.client = r,
					.arena = mcp_call_arena(r->mc),
					.label = mcp_call_label(r->mc) };
	struct err e;

	r->call = op_new(r->door->ops, &start, &e);
	if (r->call)
		op_start(r->call);
	else
		mcp_call_fail(r->mc, &e);
}

void files_read(void *owner, struct mcp_call *mc)
{
	struct err e = ERR_INIT;
	struct resource_read *r = arena_alloc(mcp_call_arena(mc), sizeof(*r), &e);
	int ours = r ? files_parse(mc, r, &e) : -1;

	if (ours == 0) {
		mcp_call_not_found(mc);
		return;
	}
	if (ours < 0) {
		mcp_call_fail(mc, &e);
		return;
	}
	r->door = owner;
	r->mc = mc;
	mcp_call_on_cancel(mc, on_cancel, r);
	read_by(r, &files_read_op, &reading, decode_read);
}

/* ---- completion ---------------------------------------------------------------------------- */

void files_complete(void *owner, struct mcp_call *mc)
{
	const struct mcp_completion m = mcp_call_completion(mc);
	bool ours = !m.is_prompt && str_is(m.ref, file.uri_template) &&
		    str_is(m.argument, "sandbox");
	const struct mcp_resource *const *roots;
	struct str values[VALUES_MAX];
	size_t n, found = 0;

	roots = roots_seen(owner, mcp_call_principal(mc), &n);
	for (size_t i = 0; ours && i < n; i++) {
		struct str id = str_of(roots[i]->name);

		if (id.n < m.value.n || (m.value.n && memcmp(id.p, m.value.p, m.value.n) != 0))
			continue;
		if (found < VALUES_MAX)
			values[found] = id;
		found++;
	}
	mcp_call_values(mc, values, found < VALUES_MAX ? found : VALUES_MAX, found,
			found > VALUES_MAX);
}
