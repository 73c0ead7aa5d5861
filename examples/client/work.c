/*
 * A job is one request. Jobs are done one after the other; the answer to a list makes a job of each
 * of its entries. The server does not depend on the order, but it makes the output readable.
 */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 16 << 20 };

struct job {
	struct job *next;
	const char *list; /* what is listed, or NULL: */
	const char *method; /* "tools/call", "resources/read", "prompts/get" */
	struct mcp_buf params;
};

static void next_job(struct client *c);

/* --- jobs --- */

static struct job *add_job(struct client *c)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		abort();
	j->params = MCP_BUF_INIT(TEXT_MAX);
	*c->last = j;
	c->last = &j->next;
	return j;
}

static void job_free(struct job *j)
{
	mcp_buf_fini(&j->params);
	free(j);
}

void work_free(struct client *c)
{
	while (c->jobs) {
		struct job *j = c->jobs;

		c->jobs = j->next;
		job_free(j);
	}
}

static void end_job(struct client *c)
{
	struct job *j = c->jobs;

	c->jobs = j->next;
	if (!c->jobs)
		c->last = &c->jobs;
	job_free(j);
	next_job(c);
}

static struct mcp_json_writer begin_params(struct client *c, const char *method, struct job **ret)
{
	struct job *j = *ret = add_job(c);
	struct mcp_json_writer w = mcp_json_writer(&j->params);

	j->method = method;
	mcp_json_write_object(&w);
	return w;
}

static void end_params(struct mcp_json_writer *w)
{
	struct mcp_err e;

	mcp_json_write_object_end(w);
	if (mcp_json_write_done(w, &e) < 0)
		abort();
}

/* --- arguments for a tool, made from its schema --- */

static const struct mcp_json_val *tool_named(const struct mcp_listed *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++) {
		if (mcp_str_is(mcp_json_str(mcp_json_get(l->items[i], "name")), name))
			return l->items[i];
	}
	return NULL;
}

static void write_value(struct mcp_json_writer *w, const struct mcp_json_val *schema, size_t i)
{
	struct mcp_str type = mcp_json_str(mcp_json_get(schema, "type"));
	struct mcp_json_iter choices = mcp_json_iter(mcp_json_get(schema, "enum"));

	if (mcp_json_next(&choices)) {
		mcp_json_write_val(w, choices.val);
	} else if (mcp_str_is(type, "integer") || mcp_str_is(type, "number")) {
		mcp_json_write_uint(w, 2 + i);
	} else if (mcp_str_is(type, "boolean")) {
		mcp_json_write_bool(w, true);
	} else if (mcp_str_is(type, "object")) {
		mcp_json_write_object(w);
		mcp_json_write_object_end(w);
	} else if (mcp_str_is(type, "array")) {
		mcp_json_write_array(w);
		mcp_json_write_array_end(w);
	} else {
		mcp_json_write_str(w, MCP_STR_LIT("x"));
	}
}

static void write_arguments(struct mcp_json_writer *w, const struct mcp_json_val *schema)
{
	struct mcp_json_iter it = mcp_json_iter(mcp_json_get(schema, "required"));
	size_t i = 0;

	mcp_json_write_object(w);
	while (mcp_json_next(&it)) {
		struct mcp_str name = mcp_json_str(it.val);

		mcp_json_write_key_str(w, name);
		write_value(w, mcp_json_get_str(mcp_json_get(schema, "properties"), name), i++);
	}
	mcp_json_write_object_end(w);
}

/* The suite wants to see whether a schema has come as it was sent. */
static void write_schema_back(struct mcp_json_writer *w, const struct mcp_listed *l)
{
	mcp_json_write_object(w);
	mcp_json_write_key(w, "schema");
	mcp_json_write_val(w,
			   mcp_json_get(tool_named(l, "json_schema_2020_12_tool"), "inputSchema"));
	mcp_json_write_object_end(w);
}

static void add_call(struct client *c, struct mcp_str name, const struct mcp_json_val *tool,
		     const struct mcp_json_val *arguments, const struct mcp_listed *l)
{
	struct job *j;
	struct mcp_json_writer w = begin_params(c, "tools/call", &j);

	mcp_json_write_key(&w, "name");
	mcp_json_write_str(&w, name);
	mcp_json_write_key(&w, "arguments");
	if (arguments)
		mcp_json_write_val(&w, arguments);
	else if (mcp_str_is(name, "json_schema_echo"))
		write_schema_back(&w, l);
	else
		write_arguments(&w, mcp_json_get(tool, "inputSchema"));
	end_params(&w);
}

/* --- what lists lead to --- */

static void call_tools(struct client *c, const struct mcp_listed *l)
{
	const struct mcp_json_val *told =
		c->context ? mcp_json_get(mcp_json_root(c->context), "toolCalls") : NULL;
	struct mcp_json_iter it = mcp_json_iter(told);

	while (mcp_json_next(&it))
		add_call(c, mcp_json_str(mcp_json_get(it.val, "name")), NULL,
			 mcp_json_get(it.val, "arguments"), l);
	for (size_t i = 0; !told && i < l->n; i++)
		add_call(c, mcp_json_str(mcp_json_get(l->items[i], "name")), l->items[i], NULL, l);
}

static void read_resources(struct client *c, const struct mcp_listed *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct job *j;
		struct mcp_json_writer w = begin_params(c, "resources/read", &j);

		mcp_json_write_key(&w, "uri");
		mcp_json_write_val(&w, mcp_json_get(l->items[i], "uri"));
		end_params(&w);
	}
}

static void get_prompts(struct client *c, const struct mcp_listed *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct mcp_json_iter it = mcp_json_iter(mcp_json_get(l->items[i], "arguments"));
		struct job *j;
		struct mcp_json_writer w = begin_params(c, "prompts/get", &j);

		mcp_json_write_key(&w, "name");
		mcp_json_write_val(&w, mcp_json_get(l->items[i], "name"));
		mcp_json_write_key(&w, "arguments");
		mcp_json_write_object(&w);
		while (mcp_json_next(&it)) {
			mcp_json_write_key_str(&w, mcp_json_str(mcp_json_get(it.val, "name")));
			mcp_json_write_str(&w, MCP_STR_LIT("x"));
		}
		mcp_json_write_object_end(&w);
		end_params(&w);
	}
}

static void print_templates(struct client *c, const struct mcp_listed *l)
{
	for (size_t i = 0; i < l->n; i++)
		printf("template %.*s\n",
		       MCP_STR_ARG(mcp_json_str(mcp_json_get(l->items[i], "uriTemplate"))));
}

static const struct {
	const char *list, *capability;
	void (*use)(struct client *c, const struct mcp_listed *l);
} lists[] = {
	{ "tools", "tools", call_tools },
	{ "resources", "resources", read_resources },
	{ "resourceTemplates", "resources", print_templates },
	{ "prompts", "prompts", get_prompts },
};

static void print_failure(const struct mcp_answer *a)
{
	if (a->fault)
		printf("error %d: %.*s\n", a->code,
		       MCP_STR_ARG(mcp_json_str(mcp_json_get(a->fault, "message"))));
	else if (a->e)
		printf("failed: %s\n", a->e->msg);
}

static void on_listed(void *owner, const struct mcp_listed *l)
{
	struct client *c = owner;

	printf("%s: %zu\n", c->jobs->list, l->n);
	if (l->failed)
		print_failure(l->failed);
	for (size_t i = 0; !l->failed && i < MCP_ARRAY_LEN(lists); i++) {
		if (strcmp(lists[i].list, c->jobs->list) == 0)
			lists[i].use(c, l);
	}
	end_job(c);
}

/* --- doing them --- */

static void on_done(void *owner, const struct mcp_answer *a)
{
	struct client *c = owner;

	printf("%s %.*s: ", c->jobs->method, MCP_STR_ARG(mcp_buf_str(&c->jobs->params)));
	if (a->result)
		printf("%.*s\n", MCP_STR_ARG(a->text));
	else
		print_failure(a);
	end_job(c);
}

static void on_progress(void *owner, const struct mcp_progress *p)
{
	printf("progress: %g of %g\n", p->progress, p->total);
}

static struct mcp_pending *begin_job(struct client *c, struct job *j, struct mcp_err *e)
{
	struct mcp_client *client = mcp_link_client(c->link);
	struct mcp_request_spec s = { .method = j->method,
				      .params = mcp_buf_str(&j->params),
				      .on_progress = on_progress,
				      .on_done = on_done,
				      .owner = c };

	if (j->list)
		return mcp_client_list(client, j->list, on_listed, c, e);
	return mcp_client_request(client, &s, e);
}

static void next_job(struct client *c)
{
	struct mcp_err e;

	while (c->jobs && !begin_job(c, c->jobs, &e)) {
		struct job *j = c->jobs;

		fprintf(stderr, "client: %s\n", e.msg);
		c->status = 1;
		c->jobs = j->next;
		job_free(j);
	}
	if (!c->jobs)
		c->last = &c->jobs;
	if (!c->jobs && c->aside == 0)
		leave(c, 0);
}

void work(struct client *c)
{
	const struct mcp_json_val *about = mcp_client_about(mcp_link_client(c->link));

	for (size_t i = 0; i < MCP_ARRAY_LEN(lists); i++) {
		if (mcp_json_get(mcp_json_get(about, "capabilities"), lists[i].capability))
			add_job(c)->list = lists[i].list;
	}
	if (!c->jobs) /* some have tools and do not say so */
		add_job(c)->list = "tools";
	next_job(c);
}

static void on_aside_done(void *owner, const struct mcp_answer *a)
{
	struct client *c = owner;

	c->aside--;
	if (!c->jobs && c->aside == 0)
		leave(c, 0);
}

void work_aside(struct client *c, const char *tool)
{
	const struct mcp_request_spec s = { .on_done = on_aside_done, .owner = c };
	struct mcp_err e;

	if (mcp_client_call(mcp_link_client(c->link), tool, MCP_STR_LIT("{}"), &s, &e))
		c->aside++;
}
