/* /v1/templates as clients of mitos know it. */
#include "door/rest/mitos.h"

#include "door/http/routes.h"
#include "json/document/put.h"
#include "op/template.h"

enum { SAID_BYTES_MAX = 16 << 10 }; /* of each member */

struct asked_network {
	bool block;
	struct field_strs allow_domains, allow_cidrs;
};
static const struct field asked_network_fields[] = {
	FIELD(struct asked_network, block, .doc = "Grant no network access."),
	FIELD(struct asked_network, allow_domains, .max = 256, .item_min = 1, .item_max = 8192,
	      .doc = "Host names, as HOST or HOST:PORT."),
	FIELD(struct asked_network, allow_cidrs, .max = 256, .item_min = 1, .item_max = 8192,
	      .doc = "Address ranges (CIDR)."),
};
/* egress and inbound grant nothing, whatever they say. */
static const struct field_table asked_network_table =
	FIELD_TABLE(struct asked_network, asked_network_fields, .open = true);

struct asked_resources {
	uint32_t vcpu_count, mem_size_mib;
};
static const struct field asked_resources_fields[] = {
	FIELD(struct asked_resources, vcpu_count, .max = 1024, .doc = "Number of processors."),
	FIELD(struct asked_resources, mem_size_mib, .max = 1 << 20, .doc = "Memory in MiB."),
};
static const struct field_table asked_resources_table =
	FIELD_TABLE(struct asked_resources, asked_resources_fields, .open = true);

struct asked {
	struct str id;
	bool has_network;
	struct asked_network network;
	struct asked_resources resources;
	struct mitos_workload workload;
};
static const struct field asked_fields[] = {
	FIELD(struct asked, id, .flags = FIELD_REQUIRED, .min = 1, .max = API_ID_MAX,
	      .doc = "Name of the template."),
	FIELD_OBJECT(struct asked, network, asked_network_table, .flags = FIELD_NULLABLE,
		     .has = FIELD_HAS(struct asked, has_network),
		     .doc = "Hosts that sandboxes of the template may reach."),
	FIELD_OBJECT(struct asked, resources, asked_resources_table, .flags = FIELD_NULLABLE,
		     .doc = "Limits of sandboxes of the template."),
	FIELD_OBJECT(struct asked, workload, mitos_workload_table, .flags = FIELD_NULLABLE,
		     .doc = "Program that is started in each sandbox of the template."),
};
static const struct field_table asked_table = FIELD_TABLE(struct asked, asked_fields, .open = true);

static int read_asked(struct call *c, void *request, struct err *e)
{
	struct asked q;

	if (field_decode(&asked_table, exchange_body(c), call_arena(c), &q, e) < 0)
		return err_wrap(e, "body");
	return 0;
}

/* The member of a request for a sandbox, as its text; and what is told of it. */
static int network_asked(struct call *c, const struct asked_network *q, struct buf *to,
			 struct network_view *ret, struct err *e)
{
	struct network_request r = { .allow_domains = q->allow_domains,
				     .allow_cidrs = q->allow_cidrs };
	struct json_writer w = json_writer(to);
	struct str ignored;

	*ret = NETWORK_VIEW_NONE;
	if (q->block ||
	    (!q->allow_domains.n && !q->allow_cidrs.n)) /* also of what the image wants */
		return buf_addf(to, e, "{\"mode\":\"none\"}");
	if (network_normalize(&r, call_arena(c), e) < 0 || network_text(c, &r, &ignored, e) < 0)
		return -1;
	ret->mode = r.mode;
	ret->allow = r.allow;
	field_encode(&network_grant_table, &r, &w);
	return json_write_done(&w, e);
}

static int limits_asked(const struct asked_resources *q, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	if (!q->vcpu_count && !q->mem_size_mib)
		return 0;
	json_write_object(&w);
	if (q->vcpu_count)
		json_put_uint(&w, "cpus", q->vcpu_count);
	if (q->mem_size_mib)
		json_put_uint(&w, "memory_mb", q->mem_size_mib);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static const struct template_view *mitos_templates_find(const struct templates_view *all,
							struct str id)
{
	for (size_t i = 0; i < all->templates.n; i++) {
		if (mitos_is_template(all->templates.p[i].id, id))
			return &all->templates.p[i];
	}
	return NULL;
}

/* That of the host is as old as the hub, not as time. */
static struct template_view named(const struct mitos *m, const struct template_view *of,
				  struct str id)
{
	struct template_view v = *of;

	v.id = id;
	if (str_starts(v.created_at, "1970-"))
		v.created_at = mitos_began(m);
	return v;
}

static int mitos_templates_keep(struct call *c, const struct asked *q, struct network_view *ret,
				struct err *e)
{
	struct mitos_said said = { BUF_INIT(SAID_BYTES_MAX), BUF_INIT(SAID_BYTES_MAX),
				   BUF_INIT(SAID_BYTES_MAX) };
	struct json_writer w = json_writer(&said.workload);
	int rc = q->has_network ? network_asked(c, &q->network, &said.network, ret, e) : 0;

	if (rc == 0)
		rc = limits_asked(&q->resources, &said.limits, e);
	if (rc == 0 && q->workload.command.n) {
		field_encode(&mitos_workload_table, &q->workload, &w);
		rc = json_write_done(&w, e);
	}
	if (rc == 0)
		rc = mitos_keep(exchange_mitos(c), principal_owner(call_principal(c)), q->id, &said,
				e);
	buf_fini(&said.network);
	buf_fini(&said.limits);
	buf_fini(&said.workload);
	return rc;
}

static const void *show_template(struct call *c, const void *result, const struct field_table **t,
				 struct err *e)
{
	const struct mitos *m = exchange_mitos(c);
	struct template_view *v = arena_alloc(call_arena(c), sizeof(*v), e);
	const struct template_view *of;
	struct asked q;

	if (!v || field_decode(&asked_table, exchange_body(c), call_arena(c), &q, e) < 0)
		return NULL;
	of = mitos_templates_find(result, mitos_template(m, q.id));
	if (!of) {
		err_set(e, ERR_TEMPLATE_NOT_FOUND,
			"there is no template \"%.*s\": compat.templates of the operator's file "
			"gives one of `holt images ls` that name",
			STR_ARG(q.id));
		return NULL;
	}
	*v = named(m, of, q.id);
	*t = &template_view_table;
	return mitos_templates_keep(c, &q, &v->network, e) < 0 ? NULL : v;
}

static void add_alias(const struct mitos *m, const struct templates_view *all,
		      const struct field_pair *alias, struct template_view *to, size_t *n)
{
	const struct template_view *of = mitos_templates_find(all, alias->value);

	if (of && !mitos_templates_find(all, alias->key))
		to[(*n)++] = named(m, of, alias->key);
}

static const void *show_list(struct call *c, const void *result, const struct field_table **t,
			     struct err *e)
{
	const struct mitos *m = exchange_mitos(c);
	const struct field_map *names = mitos_aliases(m);
	const struct templates_view *all = result;
	struct templates_view *shown = arena_alloc(call_arena(c), sizeof(*shown), e);
	struct template_view *to = arena_array(call_arena(c), all->templates.n + names->n + 1,
					       sizeof(*to), e);
	bool said = false;
	size_t n = 0;

	if (!shown || !to)
		return NULL;
	for (size_t i = 0; i < all->templates.n; i++)
		to[n++] = named(m, &all->templates.p[i], all->templates.p[i].id);
	for (size_t i = 0; i < names->n; i++) {
		add_alias(m, all, &names->p[i], to, &n);
		said |= str_eq(names->p[i].key, mitos_alias_default.key);
	}
	if (!said)
		add_alias(m, all, &mitos_alias_default, to, &n);
	*shown = (struct templates_view){ { to, n } };
	return shown;
}

static const struct api_route rows[] = {
	{ .id = "templates.list",
	  .op = &template_list_op,
	  .projected = true,
	  .show = show_list,
	  .method = HTTP_GET,
	  .path = "/v1/templates",
	  .shape = API_ARRAY },
	/* The hub's own templates stay as they are, so this is a question. */
	{ .id = "templates.create",
	  .op = &template_list_op,
	  .doc = "Makes sure that a template exists, and sets the network, limits and program of "
		 "its sandboxes.",
	  .projected = true,
	  .body = &asked_table,
	  .read = read_asked,
	  .show = show_template,
	  .method = HTTP_POST,
	  .path = "/v1/templates",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(FORBIDDEN) | API_MAY(QUOTA_EXCEEDED) |
		    API_MAY(BODY_TOO_LARGE) | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_mitos_templates = API_RESOURCE(rows);
