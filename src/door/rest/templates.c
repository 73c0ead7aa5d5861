/* /v1/templates: what sandboxes are made from: "host", which is always ready, and imported
 * images. */
#include "door/http/common.h"
#include "hub/image/images.h"
#include "op/sandbox_make.h"

/* ---- as answers ---------------------------------------------------------------------------- */

struct template
{
	struct str id, created_at;
	bool ready;
	double creation_time_ms;
	struct network_view network;
};

static const struct field template_fields[] = {
	FIELD(struct template, id, .flags = FIELD_REQUIRED, .doc = "Its name."),
	FIELD(struct template, ready, .flags = FIELD_REQUIRED,
	      .doc = "Sandboxes can be made of it."),
	FIELD(struct template, created_at, .flags = FIELD_REQUIRED, .doc = "RFC 3339."),
	FIELD(struct template, creation_time_ms, .flags = FIELD_REQUIRED,
	      .doc = "How long it took to build."),
	FIELD_OBJECT(struct template, network, network_view_table, .flags = FIELD_REQUIRED,
		     .doc = "Of sandboxes made of it."),
};
static const struct field_table template_table = FIELD_TABLE(struct template, template_fields);

static const struct template host_template = {
	.id = STR_LIT("host"),
	.ready = true,
	.created_at = STR_LIT("1970-01-01T00:00:00.000Z"), /* with the host itself */
	.network = { .block = true, .egress = EGRESS_DENY },
};

/* NULL with ERR_NONE: nothing was imported yet. */
static struct images *look(struct call *c, struct err *e)
{
	struct images *s = call_images(c) ? images_look(call_images(c), e) : NULL;

	if (!s && e->code == ERR_TEMPLATE_NOT_FOUND)
		*e = ERR_INIT;
	return s;
}

/* -1 with ERR_TEMPLATE_NOT_FOUND: it has been removed meanwhile. */
static int describe(struct call *c, const struct images *s, struct str name, struct template *ret,
		    struct err *e)
{
	autoimage struct image i = { .record = { .bytes = 0 } };
	char *created = arena_alloc(call_arena(c), WHEN_MAX, e);
	char *id = created ? arena_dup(call_arena(c), name, e) : NULL;

	if (!id || images_find(s, name, &i, e) < 0)
		return -1;
	when_text(created, i.record.created_ms);
	*ret = (struct template){ .id = { id, name.n },
				  .created_at = str_of(created),
				  .ready = true,
				  .network = { .block = true, .egress = EGRESS_DENY } };
	return 0;
}

/* Behind "host", those that have names. */
static int collect(struct call *c, const struct images *s, const struct image_names *names,
		   struct template *to, size_t *n, struct err *e)
{
	for (size_t i = 0; i < names->n; i++) {
		if (describe(c, s, names->p[i].name, &to[*n], e) == 0)
			++*n;
		else if (e->code != ERR_TEMPLATE_NOT_FOUND)
			return -1;
	}
	return 0;
}

size_t api_templates_count(struct call *c)
{
	struct err e = ERR_INIT;
	AUTO(images_close) struct images *s = look(c, &e);
	autodoc struct image_doc doc = { NULL };
	struct image_names names = { .n = 0 };

	return s && images_names(s, &doc, &names, &e) == 0 ? names.n + 1 : 1;
}

static void run_list(struct call *c, const void *params)
{
	struct err e = ERR_INIT;
	AUTO(images_close) struct images *s = look(c, &e);
	autodoc struct image_doc doc = { NULL };
	struct image_names names = { .n = 0 };
	struct template *all;
	size_t n = 1;

	if ((!s && e.code) || (s && images_names(s, &doc, &names, &e) < 0)) {
		call_fail(c, &e);
		return;
	}
	all = arena_array(call_arena(c), names.n + 1, sizeof(*all), &e);
	if (!all || (all[0] = host_template, collect(c, s, &names, all, &n, &e)) < 0)
		call_fail(c, &e);
	else
		exchange_answer_array(c, all, n);
}

/* ---- create -------------------------------------------------------------------------------- */

struct ready {
	uint32_t port;
	struct str path, expect;
	uint32_t timeout_seconds;
};
static const struct field ready_fields[] = {
	FIELD(struct ready, port, .min = 1, .max = 65535, .doc = "Where it answers."),
	FIELD(struct ready, path, .max = API_PATH_MAX, .doc = "Path to ask for."),
	FIELD(struct ready, expect, .max = API_PATH_MAX, .doc = "Text that the answer has."),
	FIELD(struct ready, timeout_seconds, .max = 86400, .doc = "How long that may take."),
};
static const struct field_table ready_table = FIELD_TABLE(struct ready, ready_fields);

struct workload {
	struct field_strs command;
	struct field_map env;
	bool has_ready;
	struct ready ready;
};
static const struct field workload_fields[] = {
	FIELD(struct workload, command, .max = EXEC_ARGS_MAX, .doc = "Program and arguments."),
	FIELD(struct workload, env, .max = API_ENV_MAX, .doc = "Environment variables."),
	FIELD_OBJECT(struct workload, ready, ready_table,
		     .has = FIELD_HAS(struct workload, has_ready), .doc = "When it is ready."),
};
static const struct field_table workload_table = FIELD_TABLE(struct workload, workload_fields);

struct resources {
	uint32_t vcpu_count, mem_size_mib;
};
static const struct field resources_fields[] = {
	FIELD(struct resources, vcpu_count, .max = 1024, .doc = "Processors."),
	FIELD(struct resources, mem_size_mib, .max = 1 << 20, .doc = "Memory in MiB."),
};
static const struct field_table resources_table = FIELD_TABLE(struct resources, resources_fields);

struct create_body {
	struct str id;
	uint32_t init_wait_seconds;
	bool has_network, has_workload, has_resources;
	struct network_request network;
	struct workload workload;
	struct resources resources;
};
static const struct field create_fields[] = {
	FIELD(struct create_body, id, .flags = FIELD_REQUIRED, .min = 1, .max = API_TEMPLATE_MAX,
	      .doc = "Name of the template."),
	FIELD(struct create_body, init_wait_seconds, .max = 3600, .def = DEFAULT_INT(5),
	      .doc = "How long to wait for it to begin."),
	FIELD_OBJECT(struct create_body, network, network_request_table,
		     .has = FIELD_HAS(struct create_body, has_network),
		     .doc = "Network of its sandboxes."),
	FIELD_OBJECT(struct create_body, workload, workload_table,
		     .has = FIELD_HAS(struct create_body, has_workload),
		     .doc = "What runs in it from the start."),
	FIELD_OBJECT(struct create_body, resources, resources_table,
		     .has = FIELD_HAS(struct create_body, has_resources),
		     .doc = "Limits of its sandboxes."),
};
static const struct field_table create_body_table = FIELD_TABLE(struct create_body, create_fields);

struct create_params {
	struct create_body body;
};
static const struct field create_parts[] = {
	FIELD_OBJECT(struct create_params, body, create_body_table, .flags = FIELD_REQUIRED,
		     .doc = "The template."),
};
static const struct field_table create_input = FIELD_TABLE(struct create_params, create_parts);

/* What it says of a template that is there; -1 where there is none. */
static int find(struct call *c, struct str id, struct template *ret, struct err *e)
{
	AUTO(images_close) struct images *s = NULL;

	*ret = host_template;
	if (str_eq(id, host_template.id))
		return 0;
	s = look(c, e);
	if (s && describe(c, s, id, ret, e) == 0)
		return 0;
	if (e->code == ERR_NONE || e->code == ERR_TEMPLATE_NOT_FOUND)
		err_set(e, ERR_UNSUPPORTED,
			"this version builds no templates here; `holt images import` takes images");
	return -1;
}

static void run_create(struct call *c, const void *params)
{
	const struct create_body *p = &((const struct create_params *)params)->body;
	struct template template;
	struct err e = ERR_INIT;

	if (p->has_workload || p->has_resources)
		err_set(&e, ERR_UNSUPPORTED, "this version builds no templates here");
	if (e.code || (p->has_network && network_refuse(&p->network, &e) < 0) ||
	    find(c, p->id, &template, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &template);
}

static const struct api_route rows[] = {
	{ .id = "templates.list",
	  .op = &(const struct
		  op){ .action = "template.list",
		       .doc = "The templates that are there: \"host\", and the names of imported "
			      "images.",
		       .effect = OP_READ,
		       .request = &api_nothing_table,
		       .result = &template_table,
		       .run = run_list },
	  .method = HTTP_GET,
	  .path = "/v1/templates",
	  .shape = API_ARRAY },
	{ .id = "templates.create",
	  .op = &(const struct
		  op){ .action = "template.create",
		       .doc = "Makes sure that a template exists; one that would have to be built "
			      "is refused.",
		       .effect = OP_ADMINISTER,
		       .request = &create_input,
		       .result = &template_table,
		       .run = run_create },
	  .method = HTTP_POST,
	  .path = "/v1/templates",
	  .errors = API_MAY(UNSUPPORTED) },
};
const struct api_resource api_templates = API_RESOURCE(rows);
