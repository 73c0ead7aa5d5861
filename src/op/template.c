/* template.list and template.create: what sandboxes are made from: "host", which is always ready,
 * and imported images. */
#include "op/template.h"

#include "box/host/box.h"
#include "hub/core/hub.h"
#include "base/when.h"
#include "hub/image/images.h"
#include "op/sandbox_make.h"
#include "op/sandbox_view.h"

enum { TEMPLATE_MAX = 255, PATH_BYTES_MAX = 4095, ENV_MAX = 256 };

/* ---- as answers ---------------------------------------------------------------------------- */

static const struct field template_fields[] = {
	FIELD(struct template_view, id, .flags = FIELD_REQUIRED, .doc = "Name of the template."),
	FIELD(struct template_view, ready, .flags = FIELD_REQUIRED,
	      .doc = "Sandboxes can be made from it."),
	FIELD(struct template_view, created_at, .flags = FIELD_REQUIRED,
	      .doc = "When it was made, RFC 3339."),
	FIELD(struct template_view, creation_time_ms, .flags = FIELD_REQUIRED,
	      .doc = "How long its build took, in milliseconds."),
	FIELD_OBJECT(struct template_view, network, network_view_table, .flags = FIELD_REQUIRED,
		     .doc = "Network access of sandboxes made from it."),
};
const struct field_table template_view_table = FIELD_TABLE(struct template_view, template_fields);

static const struct template_view host_template = {
	.id = STR_LIT("host"),
	.ready = true,
	.created_at = STR_LIT("1970-01-01T00:00:00.000Z"), /* with the host itself */
	.network = NETWORK_VIEW_NONE,
};

/* NULL with ERR_NONE: nothing was imported yet. */
static struct images *template_look(struct call *c, struct err *e)
{
	struct images *s = call_images(c) ? images_look(call_images(c), e) : NULL;

	if (!s && e->code == ERR_TEMPLATE_NOT_FOUND)
		*e = ERR_INIT;
	return s;
}

/* -1 with ERR_TEMPLATE_NOT_FOUND: it has been removed meanwhile. */
static int template_describe(struct call *c, const struct images *s, struct str name,
			     struct template_view *ret, struct err *e)
{
	autoimage struct image i = { .record = { .bytes = 0 } };
	char *created = arena_alloc(call_arena(c), WHEN_MAX, e);
	char *id = created ? arena_dup(call_arena(c), name, e) : NULL;
	struct network_request network;

	if (!id || images_find(s, name, &i, e) < 0)
		return -1;
	network = (struct network_request){ .allow = i.record.network };
	if (network_normalize(&network, call_arena(c), e) < 0)
		return -1;
	when_text(created, i.record.created_ms);
	*ret = (struct template_view){ .id = { id, name.n },
				       .created_at = str_of(created),
				       .ready = true,
				       .network = NETWORK_VIEW_NONE };
	ret->network.mode = network.mode;
	ret->network.allow = network.allow;
	return 0;
}

/* Behind "host", those that have names. */
static int template_collect(struct call *c, const struct images *s, const struct image_names *names,
			    struct template_view *to, size_t *n, struct err *e)
{
	for (size_t i = 0; i < names->n; i++) {
		if (template_describe(c, s, names->p[i].name, &to[*n], e) == 0)
			++*n;
		else if (e->code != ERR_TEMPLATE_NOT_FOUND)
			return -1;
	}
	return 0;
}

size_t templates_count(struct call *c)
{
	struct err e = ERR_INIT;
	AUTO(images_close) struct images *s = template_look(c, &e);
	autodoc struct image_doc doc = { NULL };
	struct image_names names = { .n = 0 };

	return s && images_names(s, &doc, &names, &e) == 0 ? names.n + 1 : 1;
}

bool template_exists(struct ops *ops, struct str name)
{
	const char *path = hub_images(ops_hub(ops));
	struct err e;
	AUTO(images_close) struct images *s = path ? images_look(path, &e) : NULL;
	autoimage struct image i = { .record = { .bytes = 0 } };

	return str_eq(name, host_template.id) || (s && images_find(s, name, &i, &e) == 0);
}

struct str template_cwd(struct call *c, struct str name)
{
	bool of_host = str_eq(name, host_template.id);
	struct err e;
	AUTO(images_close) struct images *s = of_host ? NULL : template_look(c, &e);
	autoimage struct image i = { .record = { .bytes = 0 } };
	char *copy = NULL;

	if (s && images_find(s, name, &i, &e) == 0 && i.record.workdir.n)
		copy = arena_dup(call_arena(c), i.record.workdir, &e);
	return copy ? (struct str){ copy, i.record.workdir.n } : STR_LIT(OP_PATH_BASE);
}

int template_network(struct call *c, struct str name, struct network_request *ret, struct err *e)
{
	AUTO(images_close) struct images *s = NULL;
	autoimage struct image i = { .record = { .bytes = 0 } };

	if (str_eq(name, host_template.id))
		return 0;
	s = template_look(c, e);
	if (!s || images_find(s, name, &i, e) < 0) {
		if (e->code && e->code != ERR_TEMPLATE_NOT_FOUND)
			return -1;
		*e = ERR_INIT;
		return 0;
	}
	if (!i.record.network.n)
		return 0;
	*ret = (struct network_request){ .allow = i.record.network };
	return network_normalize(ret, call_arena(c), e) < 0 ? -1 : 1;
}

static const struct field list_fields[] = {
	FIELD_OBJECTS(struct templates_view, templates, template_view_table,
		      .flags = FIELD_REQUIRED, .doc = "The templates, \"host\" first."),
};
static const struct field_table list_table = FIELD_TABLE(struct templates_view, list_fields);

static void template_list_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	AUTO(images_close) struct images *s = template_look(c, &e);
	autodoc struct image_doc doc = { NULL };
	struct image_names names = { .n = 0 };
	struct template_view *all;
	size_t n = 1;

	if ((!s && e.code) || (s && images_names(s, &doc, &names, &e) < 0)) {
		call_fail(c, &e);
		return;
	}
	all = arena_array(call_arena(c), names.n + 1, sizeof(*all), &e);
	if (!all || (all[0] = host_template, template_collect(c, s, &names, all, &n, &e)) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &(struct templates_view){ { all, n } });
}

const struct op template_list_op = {
	.action = "template.list",
	.doc = "Lists the templates: \"host\", and imported images.",
	.effect = OP_READ,
	.request = &op_nothing_table,
	.result = &list_table,
	.run = template_list_run,
};

/* ---- template.create ----------------------------------------------------------------------- */

struct ready {
	uint32_t port;
	struct str path, expect;
	uint32_t timeout_seconds;
};
static const struct field ready_fields[] = {
	FIELD(struct ready, port, .min = 1, .max = 65535, .doc = "Port to ask."),
	FIELD(struct ready, path, .max = PATH_BYTES_MAX, .doc = "Path to ask for."),
	FIELD(struct ready, expect, .max = PATH_BYTES_MAX,
	      .doc = "Text that the answer must contain."),
	FIELD(struct ready, timeout_seconds, .max = 86400, .doc = "Seconds to wait for that."),
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
	FIELD(struct workload, env, .max = ENV_MAX, .doc = "Environment variables."),
	FIELD_OBJECT(struct workload, ready, ready_table,
		     .has = FIELD_HAS(struct workload, has_ready),
		     .doc = "How to find out that it is ready."),
};
static const struct field_table workload_table = FIELD_TABLE(struct workload, workload_fields);

struct resources {
	uint32_t vcpu_count, mem_size_mib;
};
static const struct field resources_fields[] = {
	FIELD(struct resources, vcpu_count, .max = 1024, .doc = "Number of processors."),
	FIELD(struct resources, mem_size_mib, .max = 1 << 20, .doc = "Memory in MiB."),
};
static const struct field_table resources_table = FIELD_TABLE(struct resources, resources_fields);

struct create_request {
	struct str id;
	uint32_t init_wait_seconds;
	bool has_network, has_workload, has_resources;
	struct network_request network;
	struct workload workload;
	struct resources resources;
};
static const struct field create_fields[] = {
	FIELD(struct create_request, id, .flags = FIELD_REQUIRED, .min = 1, .max = TEMPLATE_MAX,
	      .doc = "Name of the template."),
	FIELD(struct create_request, init_wait_seconds, .max = 3600, .def = DEFAULT_INT(5),
	      .doc = "No effect: seconds to wait for it to start."),
	FIELD_OBJECT(struct create_request, network, network_request_table,
		     .has = FIELD_HAS(struct create_request, has_network),
		     .doc = "Default network access of its sandboxes; unchanged if absent."),
	FIELD_OBJECT(struct create_request, workload, workload_table,
		     .has = FIELD_HAS(struct create_request, has_workload),
		     .doc = "Refused: a program that runs in it from the start."),
	FIELD_OBJECT(struct create_request, resources, resources_table,
		     .has = FIELD_HAS(struct create_request, has_resources),
		     .doc = "Refused: limits of its sandboxes."),
};
static const struct field_table create_table = FIELD_TABLE(struct create_request, create_fields);

static int create_normalize(void *request, struct arena *a, struct err *e)
{
	struct create_request *q = request;

	return q->has_network ? network_normalize(&q->network, a, e) : 0;
}

/* Describes a template; -1 where there is none. */
static int template_find(struct call *c, struct str id, struct template_view *ret, struct err *e)
{
	AUTO(images_close) struct images *s = NULL;

	*ret = host_template;
	if (str_eq(id, host_template.id))
		return 0;
	s = template_look(c, e);
	if (s && template_describe(c, s, id, ret, e) == 0)
		return 0;
	if (e->code == ERR_NONE || e->code == ERR_TEMPLATE_NOT_FOUND)
		err_set(e, ERR_UNSUPPORTED,
			"this version builds no templates here; `holt images import` takes images");
	return -1;
}

static void template_answer(struct call *c)
{
	const struct create_request *p = call_request(c);
	struct template_view template;
	struct err e = ERR_INIT;

	if (template_find(c, p->id, &template, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &template);
}

/* Takes the store's lock, and with it perhaps time. */
struct setting {
	uv_work_t pool;
	struct call *call;
	struct err err;
};

static void set_in_pool(uv_work_t *pool)
{
	struct setting *s = pool->data;
	const struct create_request *p = call_request(s->call);
	AUTO(images_close) struct images *store = images_look(call_images(s->call), &s->err);

	if (store && images_set_network(store, p->id, &p->network.allow, &s->err) == 0)
		s->err = ERR_INIT;
}

static void set_on_worked(uv_work_t *pool, int status)
{
	struct setting *s = pool->data;

	if (s->err.code)
		call_fail(s->call, &s->err);
	else
		template_answer(s->call);
}

/* Nobody makes a template want more than he may grant himself. */
static int template_set(struct call *c, const struct create_request *p, struct err *e)
{
	struct template_view template;
	struct setting *s;
	struct str ignored;

	if (template_find(c, p->id, &template, e) < 0 ||
	    network_text(c, &p->network, &ignored, e) < 0)
		return -1;
	if (str_eq(p->id, host_template.id)) {
		if (p->network.allow.n)
			return err_set(e, ERR_UNSUPPORTED,
				       "network: \"host\" wants none; grant it to each sandbox");
		template_answer(c);
		return 0;
	}
	s = arena_alloc(call_arena(c), sizeof(*s), e);
	if (!s)
		return -1;
	*s = (struct setting){ .pool.data = s, .call = c, .err = ERR_INIT };
	if (uv_queue_work(call_loop(c), &s->pool, set_in_pool, set_on_worked) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	return 0;
}

static void template_create_run(struct call *c, const void *request)
{
	const struct create_request *p = request;
	struct err e = ERR_INIT;
	int rc = 0;

	if (p->has_workload || p->has_resources)
		rc = err_set(&e, ERR_UNSUPPORTED, "this version builds no templates here");
	else if (p->has_network)
		rc = template_set(c, p, &e);
	else
		template_answer(c);
	if (rc < 0)
		call_fail(c, &e);
}

const struct op template_create_op = {
	.action = "template.create",
	.doc = "Checks that a template exists and sets its network access; a template "
	       "that would have to be built is refused.",
	.effect = OP_ADMINISTER,
	.request = &create_table,
	.result = &template_view_table,
	.normalize = create_normalize,
	.run = template_create_run,
};
